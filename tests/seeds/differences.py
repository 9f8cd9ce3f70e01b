"""Where roomlore does otherwise than a design document says, by decision, and the test that shows what it does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """`seed`: the document's number. `section`: of that document. `reason`: with the section of the specification.
    `test`: the function in this folder that shows it."""

    seed: str
    section: str
    says: str
    does: str
    reason: str
    test: str


SEED_000: list[Difference] = []

SEED_001: list[Difference] = []

SEED_002: list[Difference] = []

SEED_003: list[Difference] = []

SEED_004: list[Difference] = []

DIFFERENCES: list[Difference] = [*SEED_000, *SEED_001, *SEED_002, *SEED_003, *SEED_004]
