"""What the link model sees: numbers for each candidate, and numbers for the message itself."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roomlore.core.link_traits import TRAITS
from roomlore.core.link_window import CANDIDATES, COUNTS, REACH, RUN, SIZE, SPOKE_SINCE, Floats, Places, RoomWindow
from roomlore.core.models import MessageFeatures, StoredMessage

Flags = npt.NDArray[np.bool_]

NEWEST = 84
_CHOSEN = CANDIDATES - NEWEST
_FIRST = SIZE - REACH
_OLDER = SIZE - NEWEST
_PACES = (5, 20, 60)
_UNKNOWN = 8.0
_NOBODY = -3

_TIES = ("said", "calls_me", "answers_me", "called_me_last", "i_call", "i_answer")
_KIN = ("size", "words", "mine", "named", "calls_me", "recent")
PAIR = (
    "away", "others_between", "speakers_between", "minutes", "minutes_to_pace5", "minutes_to_pace20",
    "minutes_to_pace60",
    "mine", "mine_since", "my_last", "their_last", "i_address", "i_name", "i_address_last", "addresses_me", "names_me",
    "i_address_other", "addresses_other", "same_target",
    "words", "words_count", "words_of_mine", "words_of_best", "rarest",
    *(f"ties_{name}" for name in _TIES), "my_last_named", "my_last_answered",
    *(f"kin_{name}" for name in _KIN),
    *COUNTS, *TRAITS,
)  # fmt: skip
SELF = (
    *TRAITS, "spoken", "silent_messages", "silent_minutes", "last_asked", "last_run", "called_since", "previous_mine",
    "pause", "pace5", "pace20", "pace60", "speakers", "crowd", "called", "addressee_known", "addressee_away",
    "words_best", "words_all", "words_new", "candidates", "habit_addresses", "habit_words",
)  # fmt: skip

_RECENT = np.exp(-np.arange(SIZE, 0, -1) / 20)
_LOG = np.log(np.arange(1, SIZE + 2)).astype(np.float32)
for _table in (_RECENT, _LOG):
    _table.flags.writeable = False
_ASKED, _ADDRESSES, _WORDS = (len(COUNTS) + TRAITS.index(name) for name in ("asked", "addresses", "words"))


class View(NamedTuple):
    """The room from one message's place.

    `pairs`: float32 (len(PAIR), CANDIDATES). `own`: float32 (len(SELF),). `open`: which candidates may be answered.
    `rows`: where in the window the candidates are, ascending. `older_kin`, `newest_kin`: float32 (_, SIZE), P(same
    thread) of the first and of the other candidates with each of the newest rows.
    """

    pairs: Floats
    own: Floats
    open: Flags
    rows: Places
    older_kin: Floats
    newest_kin: Floats


def spread(seen: View, chances: npt.NDArray[np.float64]) -> Floats:
    """P(same thread) for each of the newest rows of the window: through whichever candidate is answered."""
    odds = chances.astype(np.float32)
    shares: Floats = odds[:_CHOSEN] @ seen.older_kin + odds[_CHOSEN:] @ seen.newest_kin
    return shares


def view(window: RoomWindow, message: StoredMessage, features: MessageFeatures) -> View:
    """How the newest messages of the window look from `message`, which is not in it yet."""
    return _Eye(window, message, features).look()


class _Eye:
    """One look; the methods fill `pairs` in the order of `PAIR`."""

    def __init__(self, window: RoomWindow, message: StoredMessage, features: MessageFeatures) -> None:
        self.window, self.reading = window, window.read(message, features)
        self.at = message.at.timestamp()
        self.me = window.names.find(message.sender_id)
        self.named = [window.names.find(name) for name in self.reading.named]
        self.addressed = self.named[: self.reading.addressed]
        self.every = slice(window.end - SIZE, window.end)
        self.senders = window.sender[self.every]
        self.mine = self.senders == self.me
        self.my_rows = self.mine.nonzero()[0]
        self.i_name = _any_of(self.senders, self.named)
        self.calls_me = _any_row(window.named[:, self.every] == self.me)
        self.last = window.facts[SPOKE_SINCE, self.every] == 0
        self.near = self._candidates()
        self.rows = self.near + (window.end - SIZE)
        self.pairs = np.empty((len(PAIR), CANDIDATES), np.float32)
        self.filled = 0

    def _candidates(self) -> Places:
        """The newest messages, and of the older ones first those by or to the people concerned."""
        span = slice(_FIRST, _OLDER)
        concerned = self.mine[span] | self.i_name[span] | self.calls_me[span]
        chosen = concerned.nonzero()[0][-_CHOSEN:]
        if len(chosen) < _CHOSEN:
            others = (~concerned).nonzero()[0][len(chosen) - _CHOSEN :]
            chosen = np.sort(np.concatenate((chosen, others)))
        return np.concatenate((chosen + _FIRST, _NEWEST_ROWS))

    def look(self) -> View:
        window, rows = self.window, self.rows
        times = window.at[rows]
        ready = (times <= self.at) & (window.place[rows] >= window.pushed - REACH)
        kin = window.kin[:, self.every]
        older, newest = kin[rows[:_CHOSEN]], kin[window.end - NEWEST : window.end]
        self._distance()
        self._times(times)
        self._people()
        self._words()
        self._ties()
        self._kin(older, newest)
        facts = self.pairs[self.filled :]
        np.take(window.facts, rows, axis=1, out=facts, mode="clip")
        np.log1p(facts[: len(COUNTS)], out=facts[: len(COUNTS)])
        return View(self.pairs, self._own(ready, facts), ready, rows, older, newest)

    def _add(self, *rows: npt.NDArray[np.generic]) -> None:
        for row in rows:
            self.pairs[self.filled] = row
            self.filled += 1

    def _distance(self) -> None:
        """Distance in messages, and who spoke in between."""
        away = SIZE - self.near
        self.mine_since = _after(self.mine)[self.near]
        self._add(_LOG[away - 1], _LOG[away - self.mine_since - 1], _LOG[_after(self.last)[self.near]])

    def _times(self, times: npt.NDArray[np.float64]) -> None:
        """Gaps in minutes, as they are and beside the room's pace."""
        window = self.window
        gaps = np.maximum((self.at - times) / 60, 0.0)
        self._add(np.log1p(gaps))
        gaps += 0.02
        logs = np.log(gaps, out=gaps)
        self.paces = [self._pace(window, back) for back in _PACES]
        self._add(*(logs - pace for pace in self.paces))

    def _pace(self, window: RoomWindow, back: int) -> float:
        """Log of the mean minutes between the newest messages; 0 where there are too few."""
        row = window.end - back
        if window.place[row] < 0:
            return 0.0
        return math.log(max(self.at - float(window.at[row]), 0.0) / 60 / back + 0.02)

    def _people(self) -> None:
        """Who speaks to whom."""
        near, to = self.near, self.window.to[self.rows]
        mine, last = self.mine[near], self.last[near]
        i_name = self.i_name[near]
        self.i_address = _any_of(self.senders[near], self.addressed) if self.addressed else _NONE
        addresses_me = to == self.me
        self._add(
            mine,
            _LOG[self.mine_since],
            mine & (self.mine_since == 0),
            last,
            self.i_address,
            i_name,
            self.i_address & last,
            addresses_me,
            self.calls_me[near],
            ~self.i_address if self.addressed else _NONE,
            (to >= 0) & ~addresses_me,
            to == (self.addressed[0] if self.addressed else _NOBODY),
        )

    def _words(self) -> None:
        """Shared words, weighted by rarity."""
        places, weights, self.total = self.window.shared(self.reading.words)
        self.best, self.words = 0.0, _NO_WORDS
        if not places:
            self.pairs[self.filled : self.filled + 5] = 0.0
            self.filled += 5
            return
        at, rarity = np.array(places), np.array(weights)
        self.words = np.bincount(at, rarity, SIZE).astype(np.float64, copy=False)
        near = self.words[self.near]
        self.best = float(near.max())
        count = np.bincount(at, None, SIZE)[self.near]
        squares = np.bincount(at, rarity * rarity, SIZE)[self.near]
        self._add(
            np.log1p(near),
            _LOG[count],
            near / (self.total + 1.0),
            near / (self.best + 1.0),
            np.sqrt(squares / np.maximum(near, 1.0)),
        )

    def _ties(self) -> None:
        """What each candidate's sender and this one had to do with each other lately."""
        window, mine = self.window, self.my_rows
        people = self.senders + 1
        size = window.names.highest + 2
        partner = np.where(window.place[self.every] >= window.pushed - REACH, window.partner[self.every], -1)
        table = np.zeros((len(_TIES), size))
        self.calls = _RECENT * self.calls_me
        table[0] = np.bincount(people, None, size)
        table[1] = np.bincount(people, self.calls, size)
        table[3] = np.bincount(people, self.calls * self.last, size)
        if len(mine):
            recent, named = _RECENT[mine], window.named[:, self.every][:, mine]
            table[2] = np.bincount(people, _RECENT * (partner == self.me), size)
            table[4] = np.bincount(named.ravel() + 1, np.concatenate((recent,) * len(named)), size)
            table[5] = np.bincount(partner[mine] + 1, recent, size)
            table[4:, 0] = 0.0
        near = people[self.near]
        ties = self.pairs[self.filled : self.filled + len(_TIES)]
        np.log1p(table[:, near], out=ties, casting="same_kind")
        self.filled += len(_TIES)
        if len(mine):
            self._add(
                _any_of(near, [slot + 1 for slot in named[:, -1].tolist() if slot >= 0]), near == partner[mine[-1]] + 1
            )
        else:
            self._add(_NONE, _NONE)

    def _kin(self, older: Floats, newest: Floats) -> None:
        """What each candidate's thread holds."""
        columns = np.empty((len(_KIN), SIZE), np.float32)
        columns[0] = people = self.senders >= 0
        columns[1] = self.words
        columns[2] = self.mine
        columns[3] = self.i_name
        columns[4] = self.calls_me
        columns[5] = _RECENT * people
        held = self.pairs[self.filled : self.filled + len(_KIN)]
        held[:, :_CHOSEN] = columns @ older.T
        held[:, _CHOSEN:] = columns @ newest.T
        np.log1p(held, out=held)
        self.filled += len(_KIN)

    def _own(self, ready: Flags, facts: Floats) -> Floats:
        window, now = self.window, self.at
        people = self.senders[-CANDIDATES:] >= 0
        last = self.last[-CANDIDATES:] & people
        crowd = max(1, int(np.count_nonzero(people)))
        addressee = self.i_address.nonzero()[0]
        pause = math.log1p(max(0.0, now - float(window.at[window.end - 1])) / 60) if people[-1] else _UNKNOWN
        own = np.empty(len(SELF), np.float32)
        own[: len(TRAITS)] = self.reading.traits
        own[len(TRAITS) :] = (
            *self._mine(),
            self.senders[-1] == self.me,
            pause,
            *self.paces,
            math.log1p(np.count_nonzero(last)),
            math.log1p(np.count_nonzero(last[-20:])),
            math.log1p(self.calls.sum()),
            len(addressee) > 0,
            math.log(SIZE - int(self.near[addressee[-1]])) if len(addressee) else 5.0,
            math.log1p(self.best),
            math.log1p(self.total),
            self.best / (1.0 + self.total),
            math.log1p(np.count_nonzero(ready)),
            window.facts[_ADDRESSES, window.end - CANDIDATES : window.end].sum() / crowd,
            window.facts[_WORDS, window.end - CANDIDATES : window.end].sum() / crowd,
        )
        return own

    def _mine(self) -> tuple[float, ...]:
        """Of the sender's own messages: how many, how long ago the last was, what it was, who called since."""
        mine, window = self.my_rows, self.window
        if not len(mine):
            return (0.0, _OWN_NEVER, _UNKNOWN, 0.0, 0.0, 0.0)
        place = int(mine[-1])
        last = place + window.end - SIZE
        return (
            math.log1p(len(mine)),
            math.log(SIZE - place),
            math.log1p(max(0.0, self.at - float(window.at[last])) / 60),
            float(window.facts[_ASKED, last]),
            float(window.facts[RUN, last]) if window.place[last] >= window.pushed - REACH else 0.0,
            math.log1p(np.count_nonzero(self.calls_me[place + 1 :])),
        )


_NEWEST_ROWS = np.arange(_OLDER, SIZE)
_NONE = np.zeros(CANDIDATES, np.bool_)
_NO_WORDS: npt.NDArray[np.float64] = np.zeros(SIZE)
_OWN_NEVER = math.log(SIZE)
for _table in (_NEWEST_ROWS, _NONE, _NO_WORDS):
    _table.flags.writeable = False


def _after(flags: Flags) -> Places:
    """How many flags are set after each place."""
    total: Places = flags.cumsum()
    after: Places = total[-1] - total
    return after


def _any_row(flags: Flags) -> Flags:
    found: Flags = flags[0]
    for row in flags[1:]:
        found |= row
    return found


def _any_of(senders: Places, names: list[int]) -> Flags:
    found = np.zeros(len(senders), np.bool_)
    for name in names:
        found |= senders == name
    return found
