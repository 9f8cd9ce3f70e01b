"""The last messages of a room, kept so that linking the next one is a handful of array operations.

Everything here follows from the last `SIZE` entries alone. Whatever a message takes from the messages before it when it
is pushed comes from at most `BEHIND` entries back, and only messages at most `REACH` entries back are candidates, so a
window rebuilt from the store holds the same numbers as one that never left memory.
"""

import math
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from roomlore.core.link_traits import MAX_NAMED, TRAITS, Reading, read
from roomlore.core.mates import Mates
from roomlore.core.models import Entry, LinkKind, MessageFeatures, Role, StoredMessage

SIZE = 400
CANDIDATES = 100
REACH = 300
BEHIND = 100

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Marks = dict[int, int]

UNANSWERED = frozenset({Role.SYSTEM, Role.TOOL})
COUNTS = ("fresh", "run", "pause", "calls_agent", "answered", "continued", "spoke_since", "called_since", "joined")
FRESH, RUN, PAUSE, CALLS_AGENT, ANSWERED, CONTINUED, SPOKE_SINCE, CALLED_SINCE, JOINED = range(len(COUNTS))
SAME_THREAD = 0.5
LONGEST_RUN = 4
BEAT = 30
LONG_PAUSE = 8.0
MOMENT = 0.02
SENDER, PARTNER = 0, 1
_SPARE = 200
_ALONE = 250_000
"""Multiplications of a block."""
_NEVER = -(10**9)
_RARITY = [math.log((SIZE + 1) / (uses + 0.5)) for uses in range(SIZE + 1)]
_NOBODY = (-1,) * MAX_NAMED


def product(left: Floats, right: Floats) -> Floats:
    """Return `left @ right`, block by block: a matrix library would start threads for more, which costs more than it
    brings."""
    rows = max(1, _ALONE // right.size)
    result = np.empty((len(left), right.shape[1]), np.float32)
    for first in range(0, len(left), rows):
        np.matmul(left[first : first + rows], right, result[first : first + rows])
    return result


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


_Key = TypeVar("_Key", int, str)


def _unmark(marks: dict[_Key, int], key: _Key, bit: int) -> None:
    left = marks[key] ^ bit
    if left:
        marks[key] = left
    else:
        del marks[key]


class RoomWindow:
    """The last `SIZE` entries of a room. Not safe for use by two threads at once.

    Messages that can be answered have a row each; the newest is at `end - 1`, and the `SIZE` rows before `end` are
    always there, blank (people: -1, time: never) before the `alive` ones. `place` counts entries, system lines
    included; the rows from `within` on are at most `REACH` entries back. `facts` holds a column of `COUNTS` and
    `TRAITS` for each row, `kin` P(same thread) of any two rows, `speakers` how many people spoke after a row, `people`
    a column of names: the sender, the partner and those named. `counts` is how often each name, plus one, spoke.

    Sets of rows are numbers, with bit n set for row n: the rows that each name `said`, those that call it, speak `to`
    it or answer it (`answered`, as far as within), those that speak to anybody (`addressing`), the `last` of each
    sender. Python works on such numbers many times faster than numpy on arrays this short.
    """

    def __init__(self) -> None:
        self.end = self.within = SIZE
        self.pushed = 0
        self.alive = 0
        self.names = _Names()
        self.said: Marks = {}
        self.called: Marks = {}
        self.to: Marks = {}
        self.answered: Marks = {}
        self.addressing = self.answering = self.last = 0
        self.counts = np.zeros(SIZE * (2 + MAX_NAMED), np.float32)
        self._uses: dict[str, int] = {}
        self._slots: deque[_Slot] = deque()
        self._by_id: dict[str, Entry] = {}
        self._agents: dict[str, int] = {}
        self._last: tuple[StoredMessage, MessageFeatures, Reading] | None = None
        self._make_rows(SIZE + _SPARE)

    def _make_rows(self, rows: int) -> None:
        self.facts = np.zeros((len(COUNTS) + len(TRAITS), rows), np.float32)
        self.kin = np.zeros((rows, rows), np.float32)
        self.arrival = np.zeros(rows, np.int64)
        self.thread = np.zeros(rows, np.int64)
        self.place = np.full(rows, _NEVER, np.int64)
        self.at = np.full(rows, np.inf)
        self.latest = np.full(rows, np.inf)
        self.gaps = np.zeros(rows, np.float32)
        self.began = np.zeros(rows, np.float32)
        self.people = np.full((2 + MAX_NAMED, rows), -1, np.int64)
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

    def of_root(self, root_id: str) -> Flags:
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

    def agents(self, named: Iterable[str], within: int = REACH) -> int:
        """Return how many of these people are agents that spoke in the last `within` entries."""
        return sum(self._agents.get(name, _NEVER) >= self.pushed - within for name in named)

    def spoke_agent(self) -> bool:
        """Return whether an agent spoke in the last `BEHIND` entries."""
        return any(at >= self.pushed - BEHIND for at in self._agents.values())

    def beat(self) -> float:
        """Return the mean log of the minutes between the newest `BEAT` messages, which long pauses hardly move."""
        count = min(BEAT, self.alive, self.end - self.within)
        return float(np.add.reduce(self.gaps[self.end - count : self.end])) / count if count else 0.0

    def habits(self, beat: float) -> tuple[float, float, float]:
        """Return how often the newest messages began something new, how often those after a pause did, and the log of
        how many messages followed each in its thread."""
        first = self.end - min(CANDIDATES, self.alive, self.end - self.within)
        if first == self.end:
            return 0.0, 0.0, 0.0
        newest = slice(first, self.end)
        began, pauses = self.began[newest], np.maximum(self.gaps[newest] - np.float32(beat), 0)
        count = self.end - first
        return (
            float(np.add.reduce(began)) / count,
            float(began.dot(pauses)) / (float(np.add.reduce(pauses)) + 1.0),
            math.log1p(float(np.add.reduce(self.facts[JOINED, newest])) / count),
        )

    def shared(self, known: tuple[str, ...]) -> tuple[list[int], list[float], float]:
        """The rows that use each of these words, words nobody used left out; the rarity of each of those words, and of
        all words together."""
        found = [uses for word in known if (uses := self._uses.get(word))]
        rarities = [_RARITY[uses.bit_count()] for uses in found]
        return found, rarities, sum(rarities) + _RARITY[0] * (len(known) - len(found))

    def unpack(self, marks: Iterable[int]) -> Flags:
        """Sets of rows as flags: a line for each, a column for each of the newest `SIZE` rows."""
        first, width = self.end - SIZE, SIZE // 8
        packed = b"".join([(rows >> first).to_bytes(width, "little") for rows in marks])
        return np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little").view(np.bool_).reshape(-1, SIZE)

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
        if message.role is Role.ASSISTANT:
            self._agents[message.sender_id] = self.pushed
        self.pushed += 1
        while self.within < self.end and self.place[self.within] < self.pushed - REACH:
            self._pass(self.within)
            self.within += 1

    def _pass(self, row: int) -> None:
        """Lets go of what is not known of a row beyond reach once the window is rebuilt."""
        partner = int(self.people[PARTNER, row])
        if partner >= 0:
            _unmark(self.answered, partner, 1 << row)
            self.answering &= ~(1 << row)
            self.people[PARTNER, row] = -1

    def _evict(self) -> None:
        old, reading = self._slots.popleft()
        self._by_id.pop(old.message.id, None)
        if reading is None:
            return
        row = self.end - self.alive
        self.alive -= 1
        self._forget(row, old.message.sender_id, reading)
        self.place[row], self.at[row], self.latest[row] = _NEVER, np.inf, np.inf
        self.people[:, row] = -1
        self.facts[:, row] = 0.0

    def _forget(self, row: int, sender: str, reading: Reading) -> None:
        bit, me = 1 << row, self.names.find(sender)
        self.counts[me + 1] -= 1
        self.last &= ~bit
        _unmark(self.said, me, bit)
        if reading.addressed:
            self.addressing ^= bit
            _unmark(self.to, self.names.find(reading.named[0]), bit)
        for name in reading.named:
            _unmark(self.called, self.names.find(name), bit)
            self.names.drop(name)
        self.names.drop(sender)
        for word in reading.words:
            _unmark(self._uses, word, bit)

    def _write(self, entry: Entry, reading: Reading) -> None:
        if self.end == len(self.at):
            self._make_room()
        row, message = self.end, entry.message
        me = self.names.take(message.sender_id)
        named = [self.names.take(name) for name in reading.named]
        at = message.at.timestamp()
        self.arrival[row], self.place[row], self.at[row], self.latest[row] = message.arrival, self.pushed, at, at
        self._look_back(row, me, reading)
        self._note_later(row, me, named)
        self.people[:, row] = (me, -1, *named, *_NOBODY[len(named) :])
        self._mark_row(row, me, named, reading)
        self._note_link(row, me, entry)
        self.end += 1
        self.alive += 1

    def _mark_row(self, row: int, me: int, named: list[int], reading: Reading) -> None:
        bit, said, uses = 1 << row, self.said.get(me, 0), self._uses
        self.counts[me + 1] += 1
        self.last = (self.last & ~said) | bit
        self.said[me] = said | bit
        if reading.addressed:
            self.addressing |= bit
            self.to[named[0]] = self.to.get(named[0], 0) | bit
        for name in named:
            self.called[name] = self.called.get(name, 0) | bit
        for word in reading.words:
            uses[word] = uses.get(word, 0) | bit

    def _look_back(self, row: int, me: int, reading: Reading) -> None:
        """What the message takes from those before it, at most `BEHIND` entries back."""
        facts, oldest, said = self.facts[:, row], self.pushed - BEHIND, self.said.get(me, 0)
        facts[: len(COUNTS)] = 0.0
        facts[len(COUNTS) :] = reading.traits
        facts[FRESH] = not said or self.place[said.bit_length() - 1] < oldest
        facts[RUN] = self._run(row, said, oldest)
        recent = self.place[row - 1] >= oldest
        facts[CALLS_AGENT] = self.agents(reading.named, BEHIND) > 0
        pause = max(0.0, self.at[row] - self.at[row - 1]) / 60
        facts[PAUSE] = math.log1p(pause) if recent else LONG_PAUSE
        self.gaps[row] = math.log(pause + MOMENT) if recent else LONG_PAUSE

    def _run(self, row: int, said: int, oldest: int) -> int:
        """How many messages just before this one, without a break, have the same sender."""
        for run in range(LONGEST_RUN - 1):
            if not said >> (row - run - 1) & 1 or self.place[row - run - 1] < oldest:
                return run
        return LONGEST_RUN - 1

    def _note_later(self, row: int, me: int, named: list[int]) -> None:
        """What the message changes for those before it; one who spoke before is no new speaker before that."""
        first = row - REACH
        senders = self.people[SENDER, first:row]
        spoken = self.facts[SPOKE_SINCE, first:row]
        spoken += senders == me
        for name in named:
            called = self.facts[CALLED_SINCE, first:row]
            called += senders == name
        self.speakers[max(self.said.get(me, 0).bit_length() - 1, first) : row] += 1.0
        self.speakers[row] = 0.0

    def _note_link(self, row: int, me: int, entry: Entry) -> None:
        self.thread[row], self.began[row] = entry.link.thread, entry.link.new_probability
        where, shares = self._known(row, entry.link.mates)
        kin = self.kin[row]
        kin[where] = shares
        kin[row] = 1.0
        self.kin[:, row][where] = shares
        self.facts[JOINED][where] += shares
        mates = where[shares >= SAME_THREAD]
        self.latest[mates] = np.maximum(self.latest[mates], self.at[row])
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
        sender = int(self.people[SENDER, at])
        self.people[PARTNER, row] = sender
        self.answered[sender] = self.answered.get(sender, 0) | 1 << row
        self.answering |= 1 << row
        self.facts[CONTINUED if sender == me else ANSWERED, at] += probability

    def _make_room(self) -> None:
        """Moves the newest rows to the front, step by step where numpy would otherwise copy them twice."""
        size, moved, kept = SIZE, self.end - SIZE, slice(self.end - SIZE, self.end)
        for rows in (self.arrival, self.thread, self.place, self.at, self.latest, self.gaps, self.began, self.speakers):
            rows[:size] = rows[kept]
        self.people[:, :size] = self.people[:, kept]
        self.facts[:, :size] = self.facts[:, kept]
        for row in range(0, size, moved):
            self.kin[row : row + moved, :size] = self.kin[row + moved : row + 2 * moved, kept]
        self.kin[size:] = 0.0
        self.kin[:size, size:] = 0.0
        for marks in (self.said, self.called, self.to, self.answered):
            marks.update([(name, rows >> moved) for name, rows in marks.items()])
        self._uses = {word: rows >> moved for word, rows in self._uses.items()}
        self.addressing >>= moved
        self.answering >>= moved
        self.last >>= moved
        self.within -= moved
        self.end = size
