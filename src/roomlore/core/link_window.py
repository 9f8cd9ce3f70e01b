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
from roomlore.core.mates import Mates
from roomlore.core.models import Entry, LinkKind, MessageFeatures, Role, StoredMessage

SIZE = 400
CANDIDATES = 100
REACH = 250
BEHIND = 150

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int16]

UNANSWERED = frozenset({Role.SYSTEM, Role.TOOL})
COUNTS = ("fresh", "run", "pause", "answered", "continued", "spoke_since", "called_since", "joined")
FRESH, RUN, PAUSE, ANSWERED, CONTINUED, SPOKE_SINCE, CALLED_SINCE, JOINED = range(len(COUNTS))
LONGEST_RUN = 4
LONG_PAUSE = 8.0
_PEOPLE = 3 + MAX_NAMED
SENDER, TO, PARTNER, NAMED = 0, 1, 2, slice(3, _PEOPLE)
_SPARE = 200
_NEVER = -(10**9)
_RARITY = [math.log((SIZE + 1) / (uses + 0.5)) for uses in range(SIZE + 1)]
_NOBODY = (-1,) * MAX_NAMED
_UNSHARED = np.zeros((0, SIZE), np.float32)


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
    always there, blank (people: -1, time: never) before the `alive` ones. `place` counts entries, system lines
    included; the rows from `within` on are at most `REACH` entries back. `facts` holds a column of `COUNTS` and
    `TRAITS` for each row, `people` a column of names (`SENDER`, `TO`, `PARTNER`, `NAMED`), `kin` P(same thread) of any
    two rows. `last` marks the newest row of each sender, `speakers` counts who spoke after a row, `said` how often each
    name, plus one, has.
    """

    def __init__(self) -> None:
        self.end = self.within = SIZE
        self.pushed = 0
        self.alive = 0
        self.names = _Names()
        self.said = np.zeros(SIZE * _PEOPLE, np.float32)
        self._newest: dict[int, int] = {}
        self._uses: dict[str, int] = {}
        self._slots: deque[_Slot] = deque()
        self._by_id: dict[str, Entry] = {}
        self._last: tuple[StoredMessage, MessageFeatures, Reading] | None = None
        self._make_rows(SIZE + _SPARE)

    def _make_rows(self, rows: int) -> None:
        self.facts = np.zeros((len(COUNTS) + len(TRAITS), rows), np.float32)
        self.kin = np.zeros((rows, rows), np.float32)
        self.arrival = np.zeros(rows, np.int64)
        self.thread = np.zeros(rows, np.int64)
        self.place = np.full(rows, _NEVER, np.int64)
        self.at = np.full(rows, np.inf)
        self.people = np.full((_PEOPLE, rows), -1, np.int16)
        self.last = np.zeros(rows, np.bool_)
        self.speakers = np.zeros(rows, np.float32)

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
        row = first + int(self.arrival[first : self.end].searchsorted(arrival))
        if row == self.end or self.arrival[row] != arrival or self.place[row] == _NEVER:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return self.arrival[row + 1 : self.end], self.kin[row, row + 1 : self.end]

    def read(self, message: StoredMessage, features: MessageFeatures) -> Reading:
        """Reads a message, once for linking it and pushing it."""
        if self._last is None or self._last[0] is not message or self._last[1] is not features:
            self._last = (message, features, read(message, features))
        return self._last[2]

    def shared(self, known: tuple[str, ...]) -> tuple[Floats, list[float], float]:
        """Which of the newest `SIZE` rows use which of these words (1 or 0, words nobody used left out), the rarity of
        each of those words, and of all of them together."""
        first, width = self.end - SIZE, SIZE // 8
        found = [uses for word in known if (uses := self._uses.get(word))]
        rarities = [_RARITY[uses.bit_count()] for uses in found]
        if not found:
            return _UNSHARED, [], _RARITY[0] * len(known)
        packed = b"".join([(uses >> first).to_bytes(width, "little") for uses in found])
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        flags = bits.astype(np.float32).reshape(len(found), SIZE)
        return flags, rarities, sum(rarities) + _RARITY[0] * (len(known) - len(found))

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
        while self.within < self.end and self.place[self.within] < self.pushed - REACH:
            self.people[PARTNER, self.within] = -1
            self.within += 1

    def _evict(self) -> None:
        old, reading = self._slots.popleft()
        self._by_id.pop(old.message.id, None)
        if reading is None:
            return
        row = self.end - self.alive
        self.alive -= 1
        self._forget_people(row, old.message.sender_id, reading)
        self._forget_words(row, reading)
        self.place[row], self.at[row], self.last[row] = _NEVER, np.inf, False
        self.people[:, row] = -1
        self.facts[:, row] = 0.0

    def _forget_people(self, row: int, sender: str, reading: Reading) -> None:
        slot = int(self.people[SENDER, row])
        self.said[slot + 1] -= 1
        if self._newest[slot] == row:
            del self._newest[slot]
        self.names.drop(sender)
        for name in reading.named:
            self.names.drop(name)

    def _forget_words(self, row: int, reading: Reading) -> None:
        uses, bit = self._uses, 1 << row
        for word in reading.words:
            left = uses[word] ^ bit
            if left:
                uses[word] = left
            else:
                del uses[word]

    def _write(self, entry: Entry, reading: Reading) -> None:
        if self.end == len(self.at):
            self._make_room()
        row, message = self.end, entry.message
        me = self.names.take(message.sender_id)
        named = [self.names.take(name) for name in reading.named]
        self.arrival[row], self.place[row], self.at[row] = message.arrival, self.pushed, message.at.timestamp()
        self._look_back(row, me, reading)
        self._note_later(row, me, named)
        self._note_speaker(row, me)
        self.people[:, row] = (me, named[0] if reading.addressed else -1, -1, *named, *_NOBODY[len(named) :])
        self._note_link(row, me, entry)
        uses, bit = self._uses, 1 << row
        for word in reading.words:
            uses[word] = uses.get(word, 0) | bit
        self.end += 1
        self.alive += 1

    def _look_back(self, row: int, me: int, reading: Reading) -> None:
        """What the message takes from those before it, at most `BEHIND` entries back."""
        facts, oldest = self.facts[:, row], self.pushed - BEHIND
        facts[: len(COUNTS)] = 0.0
        facts[len(COUNTS) :] = reading.traits
        newest = self._newest.get(me)
        facts[FRESH] = newest is None or self.place[newest] < oldest
        facts[RUN] = self._run(row, me, oldest)
        recent = self.place[row - 1] >= oldest
        facts[PAUSE] = math.log1p(max(0.0, self.at[row] - self.at[row - 1]) / 60) if recent else LONG_PAUSE

    def _run(self, row: int, me: int, oldest: int) -> int:
        """How many messages just before this one, without a break, have the same sender."""
        for run in range(LONGEST_RUN - 1):
            if self.people[SENDER, row - run - 1] != me or self.place[row - run - 1] < oldest:
                return run
        return LONGEST_RUN - 1

    def _note_later(self, row: int, me: int, named: list[int]) -> None:
        """What the message changes for those before it."""
        near = slice(row - REACH, row)
        senders = self.people[SENDER, near]
        self.facts[SPOKE_SINCE, near] += senders == me
        for name in named:
            self.facts[CALLED_SINCE, near] += senders == name

    def _note_speaker(self, row: int, me: int) -> None:
        """Who spoke before is no new speaker for the rows before that."""
        before = self._newest.get(me)
        if before is not None:
            self.last[before] = False
        self.speakers[max(before or 0, row - REACH) : row] += 1.0
        self.speakers[row] = 0.0
        self.last[row] = True
        self._newest[me] = row
        self.said[me + 1] += 1

    def _note_link(self, row: int, me: int, entry: Entry) -> None:
        self.thread[row] = entry.link.thread
        where, shares = self._known(row, entry.link.mates)
        kin = self.kin[row]
        kin[where] = shares
        kin[row] = 1.0
        self.kin[:, row][where] = shares
        self.facts[JOINED][where] += shares
        if entry.link.parent is not None and entry.link.kind is not LinkKind.NEW:
            self._note_parent(row, me, entry.link.parent, entry.link.parent_probability)

    def _known(self, row: int, mates: Mates) -> tuple[Places, Floats]:
        """The rows of those mates that have one, and their shares."""
        arrivals, shares = mates.arrivals, mates.probabilities.astype(np.float32)
        before = self.arrival[row - SIZE : row]
        where = before.searchsorted(arrivals)
        known = before.take(where, mode="clip") == arrivals
        where += row - SIZE
        return (where, shares) if np.count_nonzero(known) == len(known) else (where[known], shares[known])

    def _note_parent(self, row: int, me: int, parent: int, probability: float) -> None:
        at = int(self.arrival[row - REACH : row].searchsorted(parent)) + row - REACH
        if at == row or self.arrival[at] != parent or self.place[at] < self.pushed - BEHIND:
            return
        self.people[PARTNER, row] = sender = self.people[SENDER, at]
        self.facts[CONTINUED if sender == me else ANSWERED, at] += probability

    def _make_room(self) -> None:
        """Moves the newest rows to the front."""
        size, moved, kept = SIZE, self.end - SIZE, slice(self.end - SIZE, self.end)
        for rows in (self.arrival, self.thread, self.place, self.at, self.last, self.speakers):
            rows[:size] = rows[kept]
        self.people[:, :size] = self.people[:, kept]
        self.facts[:, :size] = self.facts[:, kept]
        self.kin[:size, :size] = self.kin[kept, kept]
        self.kin[size:] = 0.0
        self.kin[:size, size:] = 0.0
        self._newest = {slot: row - moved for slot, row in self._newest.items()}
        self._uses = {word: uses >> moved for word, uses in self._uses.items()}
        self.within -= moved
        self.end = size
