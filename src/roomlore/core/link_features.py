"""What the link model sees: numbers for each candidate, and numbers for the message itself."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roomlore.core.link_traits import TRAITS
from roomlore.core.link_window import (
    CANDIDATES,
    COUNTS,
    NAMED,
    PARTNER,
    REACH,
    RUN,
    SENDER,
    SIZE,
    TO,
    Floats,
    Places,
    RoomWindow,
    Slots,
)  # fmt: skip
from roomlore.core.models import MessageFeatures, StoredMessage

Flags = npt.NDArray[np.bool_]

NEWEST = 84
_CHOSEN = CANDIDATES - NEWEST
_FIRST = SIZE - REACH
_OLDER = SIZE - NEWEST
_PACES = (5, 20, 60)
_UNKNOWN = 8.0

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

_AT = {name: row for row, name in enumerate(PAIR[: -len(TRAITS)])}
_MINUTES, _PACED, _MINE_SINCE, _SHARED, _TIED, _HELD = (
    _AT[name] for name in ("minutes", "minutes_to_pace5", "mine_since", "words", "ties_said", "kin_size")
)
_COUNTED = _AT[COUNTS[0]]
_LOGGED = _COUNTED + len(COUNTS)
_ASKED, _ADDRESSES, _WORDS = (len(COUNTS) + TRAITS.index(name) for name in ("asked", "addresses", "words"))
_HABITS = slice(_WORDS, _ADDRESSES + 1, _ADDRESSES - _WORDS)

_RECENT = np.exp(-np.arange(SIZE, 0, -1) / 20)
_COLUMNS = np.zeros((len(_KIN), SIZE), np.float32)
_COLUMNS[0], _COLUMNS[-1] = 1.0, _RECENT
_NEAR = np.arange(SIZE - CANDIDATES, SIZE)
_PARTNER_LAST = np.array([[1], *[[0]] * (NAMED.stop - NAMED.start)])
for _table in (_RECENT, _COLUMNS, _NEAR, _PARTNER_LAST):
    _table.flags.writeable = False


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
    """One look. `pairs` gets plain counts first; then these become logs; then come the numbers that are no logs."""

    def __init__(self, window: RoomWindow, message: StoredMessage, features: MessageFeatures) -> None:
        self.window, self.reading = window, window.read(message, features)
        self.at = message.at.timestamp()
        self.first = window.end - SIZE
        find = window.names.find
        self.me = find(message.sender_id)
        self.named = [find(name) for name in self.reading.named]
        self.people = window.people[:, self.first : window.end]
        found = self.people == self.me
        self.mine, self.to_me, self.answers_me = found[SENDER], found[TO], found[PARTNER]
        self.calls_me: Flags = np.logical_or.reduce(found[NAMED], axis=0)
        self.i_name = _any_of(self.people[SENDER], self.named)
        self.my_rows = self.mine.nonzero()[0]
        self.near = self._candidates()
        self.rows = self.near + self.first
        self.senders = self.people[SENDER].take(self.near)
        self.pairs = np.zeros((len(PAIR), CANDIDATES), np.float32)

    def _candidates(self) -> Places:
        """The newest messages, and of the older ones first those by or to the people concerned."""
        span = slice(_FIRST, _OLDER)
        concerned = self.mine[span] | self.calls_me[span]
        concerned |= self.i_name[span]
        chosen = concerned.nonzero()[0][-_CHOSEN:]
        if len(chosen) < _CHOSEN:
            others = (~concerned).nonzero()[0][len(chosen) - _CHOSEN :]
            chosen = np.sort(np.concatenate((chosen, others)))
        near = _NEAR.copy()
        np.add(chosen, _FIRST, out=near[:_CHOSEN])
        return near

    def look(self) -> View:
        window, rows, pairs = self.window, self.rows, self.pairs
        times = window.at.take(rows)
        ready = times <= self.at
        if rows[0] < window.within:
            ready &= rows >= window.within
        kin = window.kin[:, self.first : window.end]
        older, newest = kin[rows[:_CHOSEN]], kin[window.end - NEWEST : window.end]
        np.take(window.facts, rows, axis=1, out=pairs[_COUNTED:], mode="clip")
        self._distance()
        gaps = self._times(times)
        near = self._words()
        self._ties()
        self._kin(older, newest)
        counts = pairs[:_LOGGED]
        counts += 1.0
        np.log(counts, out=counts)
        self._paced(gaps)
        self._people()
        self._shares(near)
        return View(pairs, self._own(ready), ready, rows, older, newest)

    def _distance(self) -> None:
        """Distance in messages, and who spoke in between."""
        away, others, speakers = self.pairs[:_MINUTES]
        np.subtract(SIZE - 1, self.near, out=away, casting="unsafe")
        mine_since = self.pairs[_MINE_SINCE]
        np.subtract(len(self.my_rows), self.my_rows.searchsorted(self.near, "right"), out=mine_since, casting="unsafe")
        np.subtract(away, mine_since, out=others)
        np.take(self.window.speakers, self.rows, out=speakers, mode="clip")

    def _times(self, times: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Gaps in minutes."""
        gaps = self.at - times
        gaps /= 60
        np.maximum(gaps, 0.0, out=gaps)
        self.pairs[_MINUTES] = gaps
        return gaps

    def _paced(self, gaps: npt.NDArray[np.float64]) -> None:
        """The gaps beside the room's pace."""
        gaps += 0.02
        logs = np.log(gaps, out=gaps)
        self.paces = [self._pace(back) for back in _PACES]
        for row, pace in enumerate(self.paces, _PACED):
            np.subtract(logs, pace, out=self.pairs[row], casting="same_kind")

    def _pace(self, back: int) -> float:
        """Log of the mean minutes between the newest messages; 0 where there are too few."""
        if self.window.alive < back:
            return 0.0
        return math.log(max(self.at - float(self.window.at[self.window.end - back]), 0.0) / 60 / back + 0.02)

    def _people(self) -> None:
        """Who speaks to whom."""
        near, to, pairs = self.near, self.people[TO].take(self.near), self.pairs
        mine, last = self.mine.take(near), self.window.last.take(self.rows)
        to_me = self.to_me.take(near)
        pairs[_AT["mine"]] = mine
        pairs[_AT["my_last"]] = mine & last
        pairs[_AT["their_last"]] = last
        pairs[_AT["addresses_me"]] = to_me
        pairs[_AT["names_me"]] = self.calls_me.take(near)
        pairs[_AT["addresses_other"]] = (to >= 0) > to_me
        if self.named:
            pairs[_AT["i_name"]] = self.i_name.take(near)
        if len(self.my_rows):
            answered, *named = self.spoken_to
            pairs[_AT["my_last_answered"]] = self.senders == answered
            pairs[_AT["my_last_named"]] = _any_of(self.senders, [name for name in named if name >= 0])
        self.i_address = _NONE
        if self.reading.addressed:
            self._address(to, last)

    def _address(self, to: Slots, last: Flags) -> None:
        """Whom the message speaks to."""
        addressed, pairs = self.named[: self.reading.addressed], self.pairs
        self.i_address = _any_of(self.senders, addressed)
        pairs[_AT["i_address"]] = self.i_address
        pairs[_AT["i_address_last"]] = self.i_address & last
        pairs[_AT["i_address_other"]] = ~self.i_address
        pairs[_AT["same_target"]] = to == addressed[0]

    def _words(self) -> Floats | None:
        """Counts shared words, weighted by rarity."""
        flags, rarities, self.total = self.window.shared(self.reading.words)
        self.best, self.words = 0.0, _NO_WORDS
        if not rarities:
            return None
        weights = np.array((rarities, [1.0] * len(rarities), [rarity * rarity for rarity in rarities]), np.float32)
        counted = weights @ flags
        self.words = counted[0]
        near: Floats = counted.take(self.near, axis=1)
        self.best = float(np.maximum.reduce(near[0]))
        self.pairs[_SHARED : _SHARED + 2] = near[:2]
        return near

    def _shares(self, near: Floats | None) -> None:
        """Shared words beside all words, beside the most shared, and how rare the rarest are."""
        if near is None:
            return
        words, _, squares = near
        of_mine, of_best, rarest = self.pairs[_SHARED + 2 : _SHARED + 5]
        np.divide(words, self.total + 1.0, out=of_mine)
        np.divide(words, self.best + 1.0, out=of_best)
        np.divide(squares, np.maximum(words, 1.0), out=rarest)
        np.sqrt(rarest, out=rarest)

    def _ties(self) -> None:
        """What each candidate's sender and this one had to do with each other lately."""
        size = self.window.names.highest + 2
        table = np.zeros((len(_TIES), size), np.float32)
        table[0] = self.window.said[:size]
        self.calls = self._called(table)
        answers = self.answers_me.nonzero()[0]
        if len(answers):
            table[2] = np.bincount(self.people[SENDER].take(answers) + 1, _RECENT.take(answers), size)
        if len(self.my_rows):
            self._spoken_to(table)
        np.take(table, self.senders + 1, axis=1, out=self.pairs[_TIED : _TIED + len(_TIES)], mode="clip")

    def _called(self, table: Floats) -> float:
        """Who called the sender, and for whom that was the last thing said."""
        calls = self.calls_me.nonzero()[0]
        if not len(calls):
            return 0.0
        size, people, recent = table.shape[1], self.people[SENDER].take(calls) + 1, _RECENT.take(calls)
        table[1] = np.bincount(people, recent, size)
        table[3] = np.bincount(people, recent * self.window.last.take(calls + self.first), size)
        return float(np.add.reduce(recent))

    def _spoken_to(self, table: Floats) -> None:
        """Whom the sender called and answered."""
        size, recent = table.shape[1], _RECENT.take(self.my_rows)
        to = self.people[PARTNER:].take(self.my_rows, axis=1)
        places = (to + (_PARTNER_LAST * size + 1)).ravel()
        counted = np.bincount(places, np.concatenate((recent,) * len(to)), 2 * size)
        table[4:] = counted.reshape(2, size)
        self.spoken_to = to[:, -1].tolist()

    def _kin(self, older: Floats, newest: Floats) -> None:
        """What each candidate's thread holds."""
        columns = _COLUMNS.copy()
        columns[1] = self.words
        columns[2] = self.mine
        columns[3] = self.i_name
        columns[4] = self.calls_me
        columns[:, : SIZE - self.window.alive] = 0.0
        held = self.pairs[_HELD:_COUNTED]
        held[:, :_CHOSEN] = columns @ older.T
        held[:, _CHOSEN:] = columns @ newest.T

    def _own(self, ready: Flags) -> Floats:
        window, end = self.window, self.window.end
        last = window.last[end - CANDIDATES : end]
        crowd = min(max(1, window.alive), CANDIDATES)
        addressee = self.i_address.nonzero()[0]
        habits = np.add.reduce(window.facts[_HABITS, end - CANDIDATES : end], axis=1)
        own = np.empty(len(SELF), np.float32)
        own[: len(TRAITS)] = self.reading.traits
        own[len(TRAITS) :] = (
            *self._mine(),
            self.mine[-1],
            math.log1p(max(0.0, self.at - float(window.at[end - 1])) / 60) if window.alive else _UNKNOWN,
            *self.paces,
            math.log1p(np.count_nonzero(last)),
            math.log1p(np.count_nonzero(last[-20:])),
            math.log1p(self.calls),
            len(addressee) > 0,
            math.log(SIZE - int(self.near[addressee[-1]])) if len(addressee) else 5.0,
            math.log1p(self.best),
            math.log1p(self.total),
            self.best / (1.0 + self.total),
            math.log1p(np.count_nonzero(ready)),
            habits[1] / crowd,
            habits[0] / crowd,
        )
        return own

    def _mine(self) -> tuple[float, ...]:
        """Of the sender's own messages: how many, how long ago the last was, what it was, who called since."""
        mine, window = self.my_rows, self.window
        if not len(mine):
            return (0.0, _OWN_NEVER, _UNKNOWN, 0.0, 0.0, 0.0)
        place = int(mine[-1])
        last = place + self.first
        return (
            math.log1p(len(mine)),
            math.log(SIZE - place),
            math.log1p(max(0.0, self.at - float(window.at[last])) / 60),
            float(window.facts[_ASKED, last]),
            float(window.facts[RUN, last]) if last >= window.within else 0.0,
            math.log1p(np.count_nonzero(self.calls_me[place + 1 :])),
        )


_NONE = np.zeros(CANDIDATES, np.bool_)
_NO_WORDS = np.zeros(SIZE, np.float32)
_OWN_NEVER = math.log(SIZE)
for _table in (_NONE, _NO_WORDS):
    _table.flags.writeable = False


def _any_of(senders: Slots, names: list[int]) -> Flags:
    found: Flags = np.zeros(len(senders), np.bool_)
    for name in names:
        found |= senders == name
    return found
