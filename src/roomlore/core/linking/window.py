"""The last messages of a room and their traits, kept so that linking the next one is a handful of array operations."""

import math
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import replace
from mmap import ACCESS_COPY, mmap
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from roomlore.core.linking.candidates import WHOLE, ThreadCandidates
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
ROWS = SIZE + _SPARE
_ALONE = 500_000
"""Multiplications of a block."""
_NEVER = -(10**9)
_RARITY = [math.log((SIZE + 1) / (uses + 0.5)) for uses in range(SIZE + 1)]
_NOBODY = (-1,) * MAX_NAMED
_ONES = np.ones(CANDIDATES, np.float32)
_ZERO, _ONE, _SAME_THREAD = (np.array(number, np.float32) for number in (0.0, 1.0, SAME_THREAD))


def product(left: Floats, right: Floats) -> Floats:
    """Return `left @ right`, block by block: a matrix library would start threads for more than 2**19 multiplications,
    which costs more than it brings."""
    result = np.empty((len(left), right.shape[1]), np.float32)
    most = max(1, _ALONE // right.size)
    rows = -(-len(left) // -(-len(left) // most))
    multiply = np.dot if right.flags.c_contiguous else np.matmul  # The first is quicker, but copies what is not.
    for first in range(0, len(left), rows):
        multiply(left[first : first + rows], right, result[first : first + rows])
    return result


def _zeros(rows: int, columns: int) -> Floats:
    """Return zeros that take memory only where they are written, so those of a small room take little. `np.zeros` takes
    all of it wherever it is given memory that was used before."""
    own = mmap(-1, 4 * rows * columns, access=ACCESS_COPY)
    return np.frombuffer(own, np.float32).reshape(rows, columns)


class RowWriter(Protocol):
    """Writes an entry into the arrays of a window in place of numpy: a `LinkKernel`."""

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
_NUMBERS = ("gaps", "lean", "began", "across", "speakers")
_GAPS, LEAN, _BEGAN, _ACROSS, SPEAKERS = range(len(_NUMBERS))
FACTS = len(_NUMBERS)
_ADDRESSES, _WORDS = (FACTS + len(COUNTS) + TRAITS.index(name) for name in ("addresses", "words"))


class _Slot(NamedTuple):
    """An entry of the window; `reading` is None where it can never be answered (system and tool lines). Its traits are
    in the columns of the window alone."""

    entry: Entry
    reading: MessageReading | None


def _says_more(old: Link, new: Link) -> bool:
    """Return True if more than the thread's number changed."""
    return replace(old, thread=new.thread) != new


def _mixing(lean: Floats, across: float) -> float:
    """Return how often what these messages answer is in another script, beside how often that would be so by chance."""
    if not across:
        return 0.0
    other = float(np.add.reduce(np.maximum(lean, _ZERO)))
    latin = other - float(np.add.reduce(lean))
    return across * len(lean) / (2 * other * latin + len(lean)) if other and latin else 0.0


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
    `lean` is the script of each row, `across` how far each differs in it from what it likely answers. What has the same
    type lies in one array, each kind of number in a row of it: `numbers`, `heard` (times), `whole`. `counted` is what
    the clock of the room shows at the times of `heard`.

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
        self._newest = self._shown = 0.0
        self._counted_at = 0.0
        self._linked: tuple[ThreadCandidates, int, Places, npt.NDArray[np.float64]] | None = None
        self._in_topics = 0
        self._make_rows()
        arrays = [value for value in vars(self).values() if isinstance(value, np.ndarray)]
        self._array_bytes = self.kin.nbytes + sum(array.nbytes for array in arrays if array.base is None)

    def size_bytes(self) -> int:
        """Return the approximate memory size in bytes, without the entries."""
        return self._array_bytes + _SLOT_BYTES * len(self._slots) + _WORD_BYTES * len(self._uses)

    def _make_rows(self) -> None:
        self.kin = _zeros(ROWS, ROWS)
        self.numbers = np.zeros((FACTS + len(COUNTS) + len(TRAITS), ROWS), np.float32)
        self.gaps, self.lean, self.began, self.across, self.speakers = self.numbers[:FACTS]
        self.facts = self.numbers[FACTS:]
        self.heard = np.full((2, ROWS), np.inf)
        self.at, self.latest = self.heard
        self.counted = np.zeros((2, ROWS))
        self.whole = np.full((3 + 2 + MAX_NAMED, ROWS), -1, np.int64)
        self.arrival, self.thread, self.place = self.whole[:3]
        self.people = self.whole[3:]
        self.whole[:3] = [[0], [0], [_NEVER]]

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
        if not reading.named:
            return reading
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
            first = max(self.end - self.alive, self.end - MOST_GAPS - 1)
            if first < self.end and self.place[first] < self.pushed - BEHIND:
                first += int(self.place[first : self.end].searchsorted(self.pushed - BEHIND))
            self._pace = self.pushed, pace_of(self.at[first : self.end])
        return self._pace[1]

    def in_order(self, now: float) -> bool:
        """Return whether no row is known to be later than one after it, or than `now`."""
        return self._counted_at == self.pace() and self._newest <= now

    def clock(self, now: float) -> float:
        """Return what the room's clock shows at this time; `counted` is what it shows at the times of `heard`. It is
        counted anew where messages came in another order than they were sent, and where the pace has changed."""
        if self.in_order(now):
            return self._shown + on_clock(now - self._newest, self._counted_at)
        alive = slice(self.end - self.alive, self.end)
        clock = RoomClock.at(now, self.at[max(self.within, alive.start) : self.end], self.pace())
        self.counted[:, alive] = clock.shown(self.heard[:, alive])
        at = self.at[alive]
        self._counted_at = self.pace() if (at[:-1] <= at[1:]).all() else 0.0
        self._newest, self._shown = float(clock.times[-1]), float(clock.counted[-1])
        return clock.now

    def beat(self) -> float:
        """Return the mean log of the minutes on the clock between the newest `BEAT` messages."""
        count = min(BEAT, self.alive, self.end - self.within)
        return sum(self.gaps[self.end - count : self.end].tolist()) / count if count else 0.0

    def habits(self, beat: float) -> tuple[float, ...]:
        """Return the habits of the newest messages: how often they address somebody, and how long they are; how often
        they began something new, how often those after a pause did, and the log of how many messages followed each in
        its thread; how often what they answer is in another script, beside how often that would be so by chance: 0 in a
        room of one script."""
        known = min(CANDIDATES, self.alive)
        count = min(known, self.end - self.within)
        if not known:
            return (0.0,) * 6
        newest = self.numbers[:, self.end - count : self.end]
        sums = newest.dot(_ONES[:count]).tolist()
        every = sums if count == known else self.numbers[:, self.end - known : self.end].dot(_ONES[:known]).tolist()
        told = (every[_ADDRESSES] / known, every[_WORDS] / known)
        if not count:
            return (*told, 0.0, 0.0, 0.0, 0.0)
        pauses = np.maximum(newest[_GAPS] - np.float32(beat), _ZERO)
        return (
            *told,
            sums[_BEGAN] / count,
            float(newest[_BEGAN].dot(pauses)) / (float(np.add.reduce(pauses)) + 1.0),
            math.log1p(sums[FACTS + JOINED] / count),
            _mixing(newest[LEAN], sums[_ACROSS]),
        )

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
        self._slots.append(_Slot(entry, reading and MessageReading(_NO_TRAITS, *reading[1:])))
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
            self._change_kin(row, rows[row][1])
            self._change_parent(row, rows[row][1])
        parent_rows = {*parents.values(), *(self._parent_row(row, rows[row][1].link) for row in moved)} - {None}
        for at in parent_rows:
            assert at is not None
            self._count_answers(at)

    def _change_kin(self, row: int, new: Entry) -> None:
        """Replace P(same thread) with the rows before, and what follows from it for each of them."""
        self.began[row] = new.link.new_probability
        shares, first = self._shares(row, new.link.thread_candidates), self.end - SIZE
        changed = (shares != 0.0) | (self.kin[row, first:row] != 0.0)
        self.kin[row, first:row] = self.kin[first:row, row] = shares
        for at in (changed.nonzero()[0] + first).tolist():
            later = self.kin[at, at + 1 : self.end]
            # One after another, as they were added when they came.
            self.facts[JOINED, at] = np.add.accumulate(later)[-1]
            heard = self.at[at + 1 : self.end][later >= SAME_THREAD]
            self.latest[at] = max(self.at[at], heard.max(initial=-np.inf))
        self._counted_at = 0.0

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
        self.place[row] = _NEVER
        self.heard[:, row] = np.inf
        self.counted[:, row] = 0.0
        self.people[:, row] = -1
        self.numbers[:, row] = 0.0

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
            self._counted_at = 0.0
            self._mark_row(row, me, named, reading)
            if partner >= 0:
                self._note_partner(row, partner)
            self.end += 1
            self.alive += 1
            return
        self._note_time(row, message.at.timestamp())
        self.whole[:, row] = (message.arrival, entry.link.thread, self.pushed, me, -1, *named, *_NOBODY[len(named) :])
        self._look_back(row, me, entry, reading)
        self._note_later(row, me, named)
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

    def _look_back(self, row: int, me: int, entry: Entry, reading: MessageReading) -> None:
        """Fill in the numbers of the row, of which earlier messages, at most `BEHIND` entries back, decide some."""
        oldest, marks_before = self.pushed - BEHIND, self.said.get(me, 0)
        fresh = not marks_before or self.place[marks_before.bit_length() - 1] < oldest
        run, calls_agent = self._run(row, marks_before, oldest), self.agents(reading.named, BEHIND) > 0
        gap = log_pause = LONG_PAUSE
        if self.place[row - 1] >= oldest:
            pause = on_clock(float(self.at[row] - self.at[row - 1]), self.pace()) / 60
            gap, log_pause = math.log(pause + MOMENT), math.log1p(pause)
        numbers = self.numbers[:, row]
        numbers[: -len(TRAITS)] = (
            gap, reading.lean, entry.link.new_probability, 0.0, 0.0,
            fresh, run, log_pause, calls_agent, 0.0, 0.0, 0.0, 0.0, 0.0,
        )  # fmt: skip
        numbers[-len(TRAITS) :] = reading.traits

    def _note_time(self, row: int, at: float) -> None:
        self.heard[:, row] = at
        if at < self._newest:
            self._counted_at = 0.0
        elif self._counted_at:
            self._shown += on_clock(at - self._newest, self._counted_at)
            self._newest = at
            self.counted[:, row] = self._shown

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
        later = self.speakers[max(self.said.get(me, 0).bit_length() - 1, first) : row]
        later += _ONE

    def _note_link(self, row: int, me: int, entry: Entry) -> None:
        before = slice(self.end - SIZE, row)
        shares = self._shares(row, entry.link.thread_candidates)
        self.kin[row, before] = self.kin[before, row] = shares
        self.kin[row, row] = 1.0
        followed = self.facts[JOINED, before]
        followed += shares
        joined = (shares >= _SAME_THREAD).nonzero()[0]
        joined += before.start
        self.latest[joined] = np.maximum(self.latest[joined], self.at[row])
        self.counted[1, joined] = self.counted[0, row]
        self._note_parent(row, me, entry.link)

    def remember(self, thread_candidates: ThreadCandidates, rows: Places, parts: npt.NDArray[np.float64]) -> None:
        """Note which of the newest `SIZE` rows these of the next message are, and their probabilities in parts of
        `WHOLE`: that saves to decode them when it is pushed."""
        self._linked = thread_candidates, self.pushed, rows, parts

    def _shares(self, row: int, thread_candidates: ThreadCandidates) -> Floats:
        """Return P(same thread) of a row with each of the newest `SIZE` rows that lie before it."""
        first = self.end - SIZE
        shares = np.zeros(row - first, np.float32)
        if self._linked is not None and self._linked[0] is thread_candidates and self._linked[1] == self.pushed:
            shares[self._linked[2]] = self._linked[3] / WHOLE
            return shares
        arrivals, before = thread_candidates.arrivals, self.arrival[first:row]
        where = before.searchsorted(arrivals)
        known = before.take(where, mode="clip") == arrivals
        shares[where[known]] = thread_candidates.probabilities[known]
        return shares

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
        for columns in (self.whole, self.heard, self.counted):
            columns[:, :size] = columns[:, kept]
        self.counted -= self._shown
        self._shown = 0.0
        self.numbers[:, :size] = self.numbers[:, kept]
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
