"""The last messages of a room, kept so that linking the next one is a handful of array operations.

Everything here follows from the last `SIZE` entries alone. Whatever a message takes from the messages before it when it
is pushed comes from at most `BEHIND` entries back, and only messages at most `REACH` entries back are candidates, so a
window rebuilt from the store holds the same numbers as one that never left memory.
"""

import math
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roomlore.core.link_traits import MAX_NAMED, TRAITS, Reading, read
from roomlore.core.models import Entry, LinkKind, MessageFeatures, Role, StoredMessage

SIZE = 400
CANDIDATES = 100
REACH = 250
BEHIND = 150

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]

UNANSWERED = frozenset({Role.SYSTEM, Role.TOOL})
COUNTS = ("fresh", "run", "pause", "answered", "continued", "spoke_since", "called_since", "joined")
FRESH, RUN, PAUSE, ANSWERED, CONTINUED, SPOKE_SINCE, CALLED_SINCE, JOINED = range(len(COUNTS))
LONGEST_RUN = 4
LONG_PAUSE = 8.0
_NEVER = -(10**9)
_RARITY = [math.log((SIZE + 1) / (uses + 0.5)) for uses in range(SIZE + 1)]


class _Names:
    """Numbers for the people of a window; a number is free again when nobody in the window uses it."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []
        self.highest = 1

    def find(self, name: str) -> int:
        """-2 for a stranger: a number nobody has."""
        return self._slots.get(name, -2)

    def take(self, name: str) -> int:
        slot = self._slots.get(name)
        if slot is None:
            slot = self._free.pop() if self._free else len(self._uses)
            self._slots[name] = slot
            if slot == len(self._uses):
                self._uses.append(0)
                self.highest = slot + 1
        self._uses[slot] += 1
        return slot

    def drop(self, name: str) -> None:
        slot = self._slots[name]
        self._uses[slot] -= 1
        if not self._uses[slot]:
            del self._slots[name]
            self._free.append(slot)


class _Slot(NamedTuple):
    """An entry of the window; `reading` is None where it can never be answered (system and tool lines)."""

    entry: Entry
    reading: Reading | None


def _of_root(slot: _Slot, root_id: str | None) -> bool:
    return root_id in (slot.entry.message.id, slot.entry.message.root_id)


class RoomWindow:
    """The last `SIZE` entries of a room. Not safe for use by two threads at once.

    Messages that can be answered have a row each; the newest is at `end - 1`, and the `SIZE` rows before `end` are
    always there, zero (people: -1) where nobody has spoken yet. `place` counts entries, system lines included.
    `facts` holds a column of `COUNTS` and `TRAITS` for each row, `kin` P(same thread) of any two rows.
    """

    def __init__(self) -> None:
        self.end = SIZE
        self.pushed = 0
        self.names = _Names()
        self.postings: dict[str, list[int]] = {}
        self._serial = 0
        self._alive = 0
        self._slots: deque[_Slot] = deque()
        self._by_id: dict[str, Entry] = {}
        self._last: tuple[StoredMessage, MessageFeatures, Reading] | None = None
        self._make_rows(2 * SIZE)

    def _make_rows(self, rows: int) -> None:
        self.facts = np.zeros((len(COUNTS) + len(TRAITS), rows), np.float32)
        self.kin = np.zeros((rows, rows), np.float32)
        self.arrival = np.zeros(rows, np.int64)
        self.thread = np.zeros(rows, np.int64)
        self.place = np.full(rows, _NEVER, np.int64)
        self.at = np.zeros(rows, np.float64)
        self.sender = np.full(rows, -1, np.int64)
        self.to = np.full(rows, -1, np.int64)
        self.partner = np.full(rows, -1, np.int64)
        self.named = np.full((MAX_NAMED, rows), -1, np.int64)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "RoomWindow":
        """The window after these entries, in order of arrival; only the last `SIZE` matter."""
        window = cls()
        for entry in list(entries)[-SIZE:]:
            window.push(entry)
        return window

    def find(self, message_id: str) -> Entry | None:
        return self._by_id.get(message_id)

    def of_root(self, root_id: str) -> npt.NDArray[np.bool_]:
        """Which of the newest `SIZE` rows belong to this platform thread."""
        flags = [_of_root(slot, root_id) for slot in self._slots if slot.reading is not None]
        return np.array([False] * (SIZE - len(flags)) + flags, np.bool_)

    def newest_of_root(self, root_id: str | None) -> Entry | None:
        return next((slot.entry for slot in reversed(self._slots) if _of_root(slot, root_id)), None)

    def mates_of(self, arrival: int) -> tuple[npt.NDArray[np.int64], Floats]:
        """Arrivals of the messages after this one that may share its thread, and how likely each does."""
        first = self.end - SIZE
        row = first + int(np.searchsorted(self.arrival[first : self.end], arrival))
        if row == self.end or self.arrival[row] != arrival or self.place[row] == _NEVER:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return self.arrival[row + 1 : self.end], self.kin[row, row + 1 : self.end]

    def read(self, message: StoredMessage, features: MessageFeatures) -> Reading:
        """Reads a message, once for linking it and pushing it."""
        if self._last is None or self._last[0] is not message or self._last[1] is not features:
            self._last = (message, features, read(message, features))
        return self._last[2]

    def shared(self, known: tuple[str, ...]) -> tuple[list[int], list[float], float]:
        """For every earlier use of these words the place among the last `SIZE` rows and the word's rarity; and the
        rarity of them all."""
        first = self._serial - SIZE
        where: list[int] = []
        weights: list[float] = []
        total = 0.0
        for word in known:
            uses = self.postings.get(word, ())
            rarity = _RARITY[len(uses)]
            total += rarity
            where.extend([use - first for use in uses])
            weights.extend([rarity] * len(uses))
        return where, weights, total

    def push(self, entry: Entry) -> None:
        """Takes in the next entry of the room and lets go of the oldest one if there are more than `SIZE`."""
        if len(self._slots) == SIZE:
            self._evict()
        message = entry.message
        reading = None if message.role in UNANSWERED else self.read(message, entry.features)
        self._slots.append(_Slot(entry, reading))
        self._by_id[message.id] = entry
        if reading is not None:
            self._write(entry, reading)
        self.pushed += 1

    def _evict(self) -> None:
        old, reading = self._slots.popleft()
        self._by_id.pop(old.message.id, None)
        if reading is None:
            return
        row = self.end - self._alive
        self._alive -= 1
        self._forget_names(old.message.sender_id, reading)
        for word in reading.words:
            uses = self.postings[word]
            uses.pop(0)
            if not uses:
                del self.postings[word]
        self.place[row] = _NEVER
        self.sender[row] = self.to[row] = self.partner[row] = -1
        self.named[:, row] = -1
        self.facts[:, row] = 0.0

    def _forget_names(self, sender: str, reading: Reading) -> None:
        self.names.drop(sender)
        for name in reading.named:
            self.names.drop(name)

    def _write(self, entry: Entry, reading: Reading) -> None:
        if self.end == len(self.at):
            self._make_room()
        row, message = self.end, entry.message
        me = self.names.take(message.sender_id)
        named = [self.names.take(name) for name in reading.named]
        self.facts[len(COUNTS) :, row] = reading.traits
        self.arrival[row], self.place[row], self.at[row] = message.arrival, self.pushed, message.at.timestamp()
        self._look_back(row, me)
        self.sender[row], self.to[row] = me, named[0] if reading.addressed else -1
        self.named[:, row] = -1
        self.named[: len(named), row] = named
        self._note_later(row, me, named)
        self._note_link(row, me, entry)
        for word in reading.words:
            self.postings.setdefault(word, []).append(self._serial)
        self.end += 1
        self._serial += 1
        self._alive += 1

    def _look_back(self, row: int, me: int) -> None:
        """What the message takes from those before it, at most `BEHIND` entries back."""
        near = slice(row - BEHIND, row)
        recent = self.place[near] >= self.pushed - BEHIND
        mine = (self.sender[near] == me) & recent
        last = self.facts[: len(COUNTS), row]
        last[:] = 0.0
        last[FRESH] = not mine.any()
        others = ~mine[:-LONGEST_RUN:-1]
        last[RUN] = others.argmax() if others.any() else len(others)
        last[PAUSE] = math.log1p(max(0.0, self.at[row] - self.at[row - 1]) / 60) if recent[-1] else LONG_PAUSE

    def _note_later(self, row: int, me: int, named: list[int]) -> None:
        """What the message changes for those before it."""
        near = slice(row - REACH, row)
        senders = self.sender[near]
        self.facts[SPOKE_SINCE, near] += senders == me
        for name in named:
            self.facts[CALLED_SINCE, near] += senders == name

    def _note_link(self, row: int, me: int, entry: Entry) -> None:
        self.thread[row] = entry.link.thread
        first = row - SIZE
        mates = entry.link.mates
        where = np.searchsorted(self.arrival[first:row], mates.arrivals) + first
        known = (where < row) & (self.arrival[np.minimum(where, row - 1)] == mates.arrivals)
        where, shares = where[known], mates.probabilities[known].astype(np.float32)
        self.kin[row, where] = self.kin[where, row] = shares
        self.kin[row, row] = 1.0
        self.facts[JOINED, where] += shares
        self.partner[row] = -1
        if entry.link.parent is not None and entry.link.kind is not LinkKind.NEW:
            self._note_parent(row, me, entry.link.parent, entry.link.parent_probability)

    def _note_parent(self, row: int, me: int, parent: int, probability: float) -> None:
        at = int(np.searchsorted(self.arrival[row - REACH : row], parent)) + row - REACH
        if at == row or self.arrival[at] != parent or self.place[at] < self.pushed - BEHIND:
            return
        self.partner[row] = self.sender[at]
        self.facts[CONTINUED if self.sender[at] == me else ANSWERED, at] += probability

    def _make_room(self) -> None:
        """Moves the newest rows to the front."""
        size, kept = SIZE, slice(self.end - SIZE, self.end)
        for rows in (self.arrival, self.thread, self.place, self.at, self.sender, self.to, self.partner):
            rows[:size] = rows[kept]
        self.named[:, :size] = self.named[:, kept]
        self.facts[:, :size] = self.facts[:, kept]
        self.kin[:size, :size] = self.kin[kept, kept]
        self.kin[size:] = 0.0
        self.kin[:size, size:] = 0.0
        self.end = size
