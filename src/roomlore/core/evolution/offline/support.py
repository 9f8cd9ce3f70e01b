"""Who said something, on which days: what makes it the group's and not one person's."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from roomlore.core.evolution.offline.reading import Line

MOST_EVIDENCE = 60


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """The lines that say something, one of each message, in order of time. Never empty."""

    lines: tuple[Line, ...]

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "Support":
        """Of too many messages those are kept that hold on to each day and each person, then the latest."""
        first: dict[str, Line] = {}
        for line in lines:
            first.setdefault(line.handle, line)
        return cls(tuple(_some(list(first.values()))))

    @property
    def days(self) -> frozenset[date]:
        return frozenset(line.day for line in self.lines)

    @property
    def people(self) -> frozenset[str]:
        return frozenset(line.sender for line in self.lines)

    @property
    def handles(self) -> tuple[str, ...]:
        return tuple(line.handle for line in self.lines)

    @property
    def fresh(self) -> bool:
        return any(line.fresh for line in self.lines)

    def holds(self, *, messages: int, days: int, people: int) -> bool:
        """Whether it has as many of each, and without its loudest voice was still said on two days."""
        enough = len(self.lines) >= messages and len(self.days) >= days and len(self.people) >= people
        return enough and self.fresh and len({line.day for line in self._without_loudest()}) >= 2

    def _without_loudest(self) -> list[Line]:
        loudest = max(Counter(line.sender for line in self.lines).items(), key=lambda pair: pair[1])[0]
        return [line for line in self.lines if line.sender != loudest]


def _some(lines: Sequence[Line]) -> Sequence[Line]:
    if len(lines) <= MOST_EVIDENCE:
        return lines
    kept: dict[str, None] = {}
    for key in ("sender", "day"):
        kept |= {line.handle: None for line in {getattr(line, key): line for line in lines}.values()}
    for line in reversed(lines):
        if len(kept) >= MOST_EVIDENCE:
            break
        kept[line.handle] = None
    return [line for line in lines if line.handle in kept][-4 * MOST_EVIDENCE :]
