"""Where roomlore does otherwise than a design document says, by decision. A test of the part shows what it does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """`seed`: the document's number. `section`: of that document. `reason`: with the section of the specification."""

    seed: str
    section: str
    says: str
    does: str
    reason: str


DIFFERENCES: list[Difference] = []
