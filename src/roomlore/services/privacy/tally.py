"""What forgetting has done so far."""

from collections import Counter
from dataclasses import dataclass, field

from roomlore.core.privacy.report import Left


@dataclass(slots=True)
class Tally:
    """`dry`: nothing is changed, only counted."""

    dry: bool
    places: Counter[str] = field(default_factory=Counter)
    rooms_removed: list[str] = field(default_factory=list)
    same_words: Counter[str] = field(default_factory=Counter)
    retired: dict[str, None] = field(default_factory=dict)
    rewritten: dict[str, None] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)

    def leave(self, place: str, count: int, why: str) -> None:
        before = self.left.get(place)
        self.left[place] = Left(place, count + (before.count if before else 0), why)
