"""Ids for messages of exports that have none: made of time, sender and text, so that overlapping exports agree.

The same words by the same person at the same time get a running number. It is counted within a *passage*: the
messages from the first one with a new latest time to the next such one. Reading can go on from a passage's start.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from roomlore.core.exports import Item, Position
from roomlore.importers.items import derived_id

_LONGEST = 1 << 16


class Passage:
    """Counts repetitions. `latest`: the latest time stamp so far (ISO text, which sorts as time does). `part`: how
    often a passage was cut because it grew too long. `start`: the caller's state at its first message."""

    def __init__(self, *, latest: str = "", part: int = 0, start: dict[str, Any] | None = None) -> None:
        self.latest = latest
        self.part = part
        self.start = start if start is not None else {}
        self._seen: Counter[str] = Counter()

    @classmethod
    def resumed(cls, start: dict[str, Any]) -> "Passage":
        return cls(latest=start.get("latest", ""), part=start.get("part", 0), start=start)

    def take(self, stamp: str, sender: str, text: str, state: dict[str, Any]) -> str:
        """The message's id; `state` is kept as the passage's start if this message begins one."""
        if stamp > self.latest or len(self._seen) >= _LONGEST or not self.start:
            self._begin(stamp, state)
        key = derived_id(stamp, self.latest, self.part, sender, text)
        self._seen[key] += 1
        repeated = self._seen[key]
        return key if repeated == 1 else f"{key}-{repeated}"

    def _begin(self, stamp: str, state: dict[str, Any]) -> None:
        self.part += stamp <= self.latest and len(self._seen) >= _LONGEST
        self.latest = max(self.latest, stamp)
        self._seen.clear()
        self.start = {**state, "latest": self.latest, "part": self.part}


def not_given_yet(items: Iterable[Item], resume_from: Position | None) -> Iterator[Item]:
    """The items after `resume_from`: reading goes on from the start of its passage, so some come a second time."""
    done = resume_from["offset"] if resume_from else -1
    return (item for item in items if item.position["offset"] > done)
