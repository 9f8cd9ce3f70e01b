"""The last messages of a room and their traits, kept so that linking the next one is a handful of array operations."""

import math
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.linking.clock import MOST_GAPS, RoomClock, on_clock, pace_of
from roomlore.core.linking.reading import MAX_NAMED, READ_CHARACTERS, TRAITS, MessageReading, read, without_calls
from roomlore.core.models import Entry, Link, LinkKind, MessageFeatures, Role, StoredMessage

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
_SPARE = 40
_ALONE = 250_000
"""Multiplications of a block."""
_NEVER = -(10**9)
_RARITY = [math.log((SIZE + 1) / (uses + 0.5)) for uses in range(SIZE + 1)]
_NOBODY = (-1,) * MAX_NAMED


def product(left: Floats, right: Floats, result: Floats | None = None) -> Floats:
    """Return `left @ right`, written to `result` if given, block by block: a matrix library would start threads for
    more, which costs more than it brings."""
    rows = max(1, _ALONE // right.size)
    if result is None:
        result = np.empty((len(left), right.shape[1]), np.float32)
    for first in range(0, len(left), rows):
        np.matmul(left[first : first + rows], right, result[first : first + rows])
    return result


class RowWriter(Protocol):
    """What writes an entry into the arrays of a window in place of numpy: a `LinkKernel`."""

    def write(
        self,
        window: "RoomWindow",
        me: int,
        named: list[int],
        entry: Entry,
        reading: MessageReading,
        *,
        calls_agent: bool,
    ) -> int: ...


class _Names:
    """Numbers for the people of a window; a number is free again when nobody in the window uses it."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []
        self.highest = 1

    def find(self, name: str) -> int:
        """Return the number of a name; -2, which nobody has, for an unknown one."""
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


_SLOT_BYTES, _WORD_BYTES = 700, 250
"""Approximate memory of an entry and of a word that entries have, besides the arrays."""
_NO_TRAITS = np.empty(0, np.float32)


class _Slot(NamedTuple):
    """An entry of the window; `reading` is None where it can never be answered (system and tool lines). Its traits are
    in the columns of the window alone."""

    entry: Entry
    reading: MessageReading | None


def _says_more(old: Link, new: Link) -> bool:
    """Return True if more than the thread's number changed."""
    return replace(old, thread=new.thread) != new


def _newest_rows(flags: list[bool]) -> Flags:
    return np.array([False] * (SIZE - len(flags)) + flags, np.bool_)


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
    `lean` is the script of each row, `across` how far each differs in it from what it likely answers.

    Sets of rows are numbers, with bit n set for row n: the rows that each name `said`, those that call it, speak `to`
    it or answer it (`answered`, as far as within), those that speak to anybody (`addressing`), the `last` of each
    sender. Python works on such numbers many times faster than numpy on arrays this short.
    """

    def __init__(self, kernel: RowWriter | None = None) -> None:
        self._kernel = kernel
        self.addresses: Any = None
        """Of the arrays, for the kernel: they are made once."""
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
        self._uses_ahead = 0
        self._slots: deque[_Slot] = deque()
        self._by_id: dict[str, Entry] = {}
        self._agents: dict[str, int] = {}
        self._last: tuple[StoredMessage, MessageFeatures, MessageReading] | None = None
        self._pace = (-1, 1.0)
        self._in_topics = 0
        self._make_rows(SIZE + _SPARE)
        self._array_bytes = sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def size_bytes(self) -> int:
        """Return the approximate memory size in bytes, without the entries."""
        return self._array_bytes + _SLOT_BYTES * len(self._slots) + _WORD_BYTES * len(self._uses)

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
        self.lean = np.zeros(rows, np.float32)
        self.across = np.zeros(rows, np.float32)
        self.people = np.full((2 + MAX_NAMED, rows), -1, np.int64)
        self.speakers = np.zeros(rows, np.float32)

    @classmethod
    def of(cls, entries: Iterable[Entry], kernel: RowWriter | None = None) -> "RoomWindow":
        """Return the window after these entries, in order of arrival; only the last `SIZE` matter."""
        window = cls(kernel)
        for entry in list(entries)[-SIZE:]:
            window.push(entry)
        return window

    def find(self, message_id: str) -> Entry | None:
        return self._by_id.get(message_id)

    def of_root(self, root_id: str) -> Flags:
        """Return a mask of the newest `SIZE` rows that belong to this platform thread."""
        flags = [_of_root(slot, root_id) for slot in self._slots if slot.reading is not None]
        return _newest_rows(flags)

    def of_topic(self, topic_id: str | None) -> Flags | None:
        """Return a mask of the newest `SIZE` rows that belong to this topic, or to none; None if all do."""
        if topic_id is None and not self._in_topics:
            return None
        flags = [slot.entry.message.topic_id == topic_id for slot in self._slots if slot.reading is not None]
        return _newest_rows(flags)

    def members_of_root(self, root_id: str | None) -> list[Entry]:
        """Return the entries of this platform thread that are still here, in order of arrival."""
        return [slot.entry for slot in self._slots if _of_root(slot, root_id)]

    def thread_candidates_of(self, arrival: int) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the arrivals of the later messages that may share its thread, and the probability of each."""
        first = self.end - SIZE
        row = first + int(self.arrival[first : self.end].searchsorted(arrival))
        if row == self.end or self.arrival[row] != arrival or self.place[row] == _NEVER:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return self.arrival[row + 1 : self.end], self.kin[row, row + 1 : self.end]

    def read(self, message: StoredMessage, features: MessageFeatures) -> MessageReading:
        """Read a message, once for linking it and pushing it."""
        if self._last is None or self._last[0] is not message or self._last[1] is not features:
            self._last = (message, features, read(message, features))
        return self._last[2]

    def read_to_link(self, message: StoredMessage, features: MessageFeatures) -> MessageReading:
        """Return the reading of a message to be linked, without a call at its beginning or end ("@bot") of somebody who
        said nothing in the window: it does not tell what is answered."""
        reading = self.read(message, features)
        strangers = {name for name in reading.named if self.names.find(name) not in self.said}
        if not strangers:
            return reading
        text = message.text[:READ_CHARACTERS]
        without_names = without_calls(text, strangers)
        if without_names == text:
            return reading
        addressed, mentions = (
            tuple(name for name in names if name not in strangers) for names in (features.addressed, features.mentions)
        )
        return read(replace(message, text=without_names), replace(features, addressed=addressed, mentions=mentions))

    def agents(self, named: Iterable[str], within: int = REACH) -> int:
        """Return how many of these people are agents that spoke in the last `within` entries."""
        if not self._agents:
            return 0
        return sum(self._agents.get(name, _NEVER) >= self.pushed - within for name in named)

    def spoke_agent(self) -> bool:
        """Return whether an agent spoke in the last `BEHIND` entries."""
        return any(at >= self.pushed - BEHIND for at in self._agents.values())

    def pace(self) -> float:
        """Return how fast the room's clock goes after the newest messages. Reckon it once for linking and pushing."""
        if self._pace[0] != self.pushed:
            near = slice(max(self.end - self.alive, self.end - MOST_GAPS - 1), self.end)
            self._pace = self.pushed, pace_of(self.at[near][self.place[near] >= self.pushed - BEHIND])
        return self._pace[1]

    def clock(self, now: float) -> RoomClock | None:
        """Return the room's clock at this time; None if there is no message at most `REACH` entries back."""
        times = self.at[max(self.within, self.end - self.alive) : self.end]
        return RoomClock.at(now, times, self.pace()) if len(times) else None

    def beat(self) -> float:
        """Return the mean log of the minutes on the clock between the newest `BEAT` messages."""
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

    def mixing(self) -> float:
        """Return how often what the newest messages answer is in another script, beside how often that would be so by
        chance: 0 in a room of one script."""
        count = min(CANDIDATES, self.alive, self.end - self.within)
        newest = slice(self.end - count, self.end)
        lean = self.lean[newest]
        other = float(np.add.reduce(np.maximum(lean, 0)))
        latin = other - float(np.add.reduce(lean))
        if not other or not latin:
            return 0.0
        return float(np.add.reduce(self.across[newest])) * count / (2 * other * latin + count)

    def packed_uses(self, words: Iterable[str]) -> list[bytes]:
        """Return which of the newest `SIZE` rows use each of these words, as bits, without words that nobody used."""
        find, before = self._uses.get, self._uses_ahead + self.end - SIZE
        return [(uses >> before).to_bytes(SIZE // 8, "little") for word in words if (uses := find(word))]

    def shared(self, known: tuple[str, ...]) -> tuple[list[int], list[float], float]:
        """Return the rows that use each of these words, without words that nobody used; the rarity of each of those
        words, and of all words together."""
        uses_known = [uses >> self._uses_ahead for word in known if (uses := self._uses.get(word))]
        rarities = [_RARITY[uses.bit_count()] for uses in uses_known]
        return uses_known, rarities, sum(rarities) + _RARITY[0] * (len(known) - len(uses_known))

    def unpack(self, marks: Iterable[int]) -> Flags:
        """Return sets of rows as flags: a line for each, a column for each of the newest `SIZE` rows."""
        first, width = self.end - SIZE, SIZE // 8
        packed = b"".join([(rows >> first).to_bytes(width, "little") for rows in marks])
        return np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little").view(np.bool_).reshape(-1, SIZE)

    def push(self, entry: Entry) -> None:
        """Add the next entry of the room, and drop the oldest one if there are more than `SIZE`."""
        if len(self._slots) == SIZE:
            self._evict()
        message = entry.message
        reading = None if message.role in UNANSWERED else self.read(message, entry.features)
        self._slots.append(_Slot(entry, reading and reading._replace(traits=_NO_TRAITS)))
        self._by_id[message.id] = entry
        self._in_topics += message.topic_id is not None
        if reading is not None:
            self._write(entry, reading)
        if message.role is Role.ASSISTANT:
            self._agents[message.sender_id] = self.pushed
        self.pushed += 1
        while self.within < self.end and self.place[self.within] < self.pushed - REACH:
            self._pass(self.within)
            self.within += 1

    def relink(self, changed: Collection[Entry]) -> None:
        """Take in entries whose links changed, so that the window is as if built from them. Building it takes as long
        as linking a hundred messages, and a room that arrives newest first changes a link with nearly every message."""
        known = {entry.message.arrival: entry for entry in changed}
        row, rows = self.end - self.alive, dict[int, tuple[Entry, Entry]]()
        for place, slot in enumerate(self._slots):
            new = known.get(slot.entry.message.arrival)
            if new is not None:
                self._slots[place] = slot._replace(entry=new)
                self._by_id[new.message.id] = new
                if slot.reading is not None:
                    rows[row] = slot.entry, new
            row += slot.reading is not None
        moved = [row for row, (old, new) in rows.items() if _says_more(old.link, new.link)]
        parents = {row: self._parent_row(row, rows[row][0].link) for row in moved}
        for row in rows:
            self.thread[row] = rows[row][1].link.thread
        for row in moved:
            self._change_kin(row, *rows[row])
            self._change_parent(row, rows[row][1])
        parent_rows = {*parents.values(), *(self._parent_row(row, rows[row][1].link) for row in moved)} - {None}
        for at in parent_rows:
            assert at is not None
            self._count_answers(at)

    def _change_kin(self, row: int, old: Entry, new: Entry) -> None:
        """Replace P(same thread) with the rows before, and what follows from it for each of them."""
        self.began[row] = new.link.new_probability
        before, _ = self._known(row, old.link.thread_candidates)
        where, shares = self._known(row, new.link.thread_candidates)
        for line in (self.kin[row], self.kin[:, row]):
            line[before] = 0.0
            line[where] = shares
        for at in {*before.tolist(), *where.tolist()}:
            later = self.kin[at, at + 1 : self.end]
            # One after another, as they were added when they came.
            self.facts[JOINED, at] = np.add.accumulate(later)[-1]
            heard = self.at[at + 1 : self.end][later >= SAME_THREAD]
            self.latest[at] = max(self.at[at], heard.max(initial=-np.inf))

    def _change_parent(self, row: int, new: Entry) -> None:
        self._pass(row)
        self.across[row] = 0.0
        at = self._parent_row(row, new.link)
        if at is None:
            return
        self.across[row] = new.link.parent_probability * max(0.0, -float(self.lean[row] * self.lean[at]))
        if row >= self.within:
            self._note_partner(row, int(self.people[SENDER, at]))

    def _count_answers(self, at: int) -> None:
        """Count anew what answers a row."""
        parent_arrival, sender = int(self.arrival[at]), self.people[SENDER, at]
        self.facts[CONTINUED, at] = self.facts[ANSWERED, at] = 0.0
        row = self.end - self.alive
        for slot in self._slots:
            if slot.reading is None:
                continue
            link = slot.entry.link
            if row > at and link.parent == parent_arrival and self._parent_row(row, link) == at:
                mine = self.people[SENDER, row] == sender
                self.facts[CONTINUED if mine else ANSWERED, at] += link.parent_probability
            row += 1

    def _pass(self, row: int) -> None:
        """Drop the data of a row that a rebuilt window would not have either."""
        partner = int(self.people[PARTNER, row])
        if partner >= 0:
            _unmark(self.answered, partner, 1 << row)
            self.answering &= ~(1 << row)
            self.people[PARTNER, row] = -1

    def _evict(self) -> None:
        old, reading = self._slots.popleft()
        self._by_id.pop(old.message.id, None)
        self._in_topics -= old.message.topic_id is not None
        if reading is None:
            return
        row = self.end - self.alive
        self.alive -= 1
        self._forget(row, old.message.sender_id, reading)
        self.place[row], self.at[row], self.latest[row] = _NEVER, np.inf, np.inf
        self.people[:, row] = -1
        self.facts[:, row] = 0.0
        self.lean[row] = 0.0

    def _forget(self, row: int, sender: str, reading: MessageReading) -> None:
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
            _unmark(self._uses, word, bit << self._uses_ahead)

    def _write(self, entry: Entry, reading: MessageReading) -> None:
        if self.end == len(self.at):
            self._make_room()
        row, message = self.end, entry.message
        me = self.names.take(message.sender_id)
        named = [self.names.take(name) for name in reading.named]
        if self._kernel is not None:
            calls_agent = self.agents(reading.named, BEHIND) > 0
            partner = self._kernel.write(self, me, named, entry, reading, calls_agent=calls_agent)
            self._mark_row(row, me, named, reading)
            if partner >= 0:
                self._note_partner(row, partner)
            self.end += 1
            self.alive += 1
            return
        at = message.at.timestamp()
        self.arrival[row], self.place[row], self.at[row], self.latest[row] = message.arrival, self.pushed, at, at
        self.lean[row], self.across[row] = reading.lean, 0.0
        self._look_back(row, me, reading)
        self._note_later(row, me, named)
        self.people[:, row] = (me, -1, *named, *_NOBODY[len(named) :])
        self._mark_row(row, me, named, reading)
        self._note_link(row, me, entry)
        self.end += 1
        self.alive += 1

    def _mark_row(self, row: int, me: int, named: list[int], reading: MessageReading) -> None:
        bit, earlier_rows, uses, used = 1 << row, self.said.get(me, 0), self._uses, 1 << row + self._uses_ahead
        self.counts[me + 1] += 1
        self.last = (self.last & ~earlier_rows) | bit
        self.said[me] = earlier_rows | bit
        if reading.addressed:
            self.addressing |= bit
            self.to[named[0]] = self.to.get(named[0], 0) | bit
        for name in named:
            self.called[name] = self.called.get(name, 0) | bit
        for word in reading.words:
            uses[word] = uses.get(word, 0) | used

    def _look_back(self, row: int, me: int, reading: MessageReading) -> None:
        """Fill in the part of the row that earlier messages decide, at most `BEHIND` entries back."""
        facts, oldest, marks_before = self.facts[:, row], self.pushed - BEHIND, self.said.get(me, 0)
        facts[: len(COUNTS)] = 0.0
        facts[len(COUNTS) :] = reading.traits
        facts[FRESH] = not marks_before or self.place[marks_before.bit_length() - 1] < oldest
        facts[RUN] = self._run(row, marks_before, oldest)
        recent = self.place[row - 1] >= oldest
        facts[CALLS_AGENT] = self.agents(reading.named, BEHIND) > 0
        pause = on_clock(float(self.at[row] - self.at[row - 1]), self.pace()) / 60 if recent else 0.0
        facts[PAUSE] = math.log1p(pause) if recent else LONG_PAUSE
        self.gaps[row] = math.log(pause + MOMENT) if recent else LONG_PAUSE

    def _run(self, row: int, marks_before: int, oldest: int) -> int:
        """Return the number of messages just before this one, without a break, by the same sender."""
        for run in range(LONGEST_RUN - 1):
            if not marks_before >> (row - run - 1) & 1 or self.place[row - run - 1] < oldest:
                return run
        return LONGEST_RUN - 1

    def _note_later(self, row: int, me: int, named: list[int]) -> None:
        """Update the rows before the message; one who spoke before is no new speaker before that."""
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
        where, shares = self._known(row, entry.link.thread_candidates)
        kin = self.kin[row]
        kin[where] = shares
        kin[row] = 1.0
        self.kin[:, row][where] = shares
        self.facts[JOINED][where] += shares
        thread_candidates = where[shares >= SAME_THREAD]
        self.latest[thread_candidates] = np.maximum(self.latest[thread_candidates], self.at[row])
        self._note_parent(row, me, entry.link)

    def _known(self, row: int, thread_candidates: ThreadCandidates) -> tuple[Places, Floats]:
        """Return the rows of those thread candidates that have one, and their probabilities."""
        arrivals, shares = thread_candidates.arrivals, thread_candidates.probabilities.astype(np.float32)
        first = max(row - SIZE, self.end - SIZE)
        before = self.arrival[first:row]
        where = before.searchsorted(arrivals)
        known = before.take(where, mode="clip") == arrivals
        where += first
        return (where, shares) if np.count_nonzero(known) == len(known) else (where[known], shares[known])

    def _note_parent(self, row: int, me: int, link: Link) -> None:
        at = self._parent_row(row, link)
        if at is None:
            return
        self.across[row] = link.parent_probability * max(0.0, -float(self.lean[row] * self.lean[at]))
        sender = int(self.people[SENDER, at])
        self._note_partner(row, sender)
        self.facts[CONTINUED if sender == me else ANSWERED, at] += link.parent_probability

    def _note_partner(self, row: int, sender: int) -> None:
        self.people[PARTNER, row] = sender
        self.answered[sender] = self.answered.get(sender, 0) | 1 << row
        self.answering |= 1 << row

    def _parent_row(self, row: int, link: Link) -> int | None:
        """Return the row of what a row answers, if that is at most `BEHIND` entries before it."""
        if link.parent is None or link.kind is LinkKind.NEW:
            return None
        first = max(row - REACH, self.end - SIZE)
        at = int(self.arrival[first:row].searchsorted(link.parent)) + first
        if at == row or self.arrival[at] != link.parent or self.place[at] < self.place[row] - BEHIND:
            return None
        return at

    def _make_room(self) -> None:
        """Move the newest rows to the front, step by step where numpy would otherwise copy them twice."""
        size, moved, kept = SIZE, self.end - SIZE, slice(self.end - SIZE, self.end)
        for rows in (self.arrival, self.thread, self.place, self.at, self.latest, self.gaps, self.speakers):
            rows[:size] = rows[kept]
        for numbers in (self.began, self.lean, self.across):
            numbers[:size] = numbers[kept]
        self.people[:, :size] = self.people[:, kept]
        self.facts[:, :size] = self.facts[:, kept]
        for row in range(0, size, moved):
            self.kin[row : row + moved, :size] = self.kin[row + moved : row + 2 * moved, kept]
        self.kin[size:] = 0.0
        self.kin[:size, size:] = 0.0
        for marks in (self.said, self.called, self.to, self.answered):
            marks.update([(name, rows >> moved) for name, rows in marks.items()])
        self._move_uses(moved)
        self.addressing >>= moved
        self.answering >>= moved
        self.last >>= moved
        self.within -= moved
        self.end = size

    def _move_uses(self, moved: int) -> None:
        """Move the rows of the words to the front. There are a thousand words, so that is done once in `SIZE` rows;
        until then their rows are that many ahead."""
        self._uses_ahead += moved
        if self._uses_ahead >= SIZE:
            self._uses = {word: rows >> self._uses_ahead for word, rows in self._uses.items()}
            self._uses_ahead = 0
