"""The features of the link model: numbers for each candidate, and numbers for the message itself."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roomlore.core.linking.reading import TRAITS
from roomlore.core.linking.window import (
    CANDIDATES,
    COUNTS,
    LONG_PAUSE,
    MOMENT,
    PARTNER,
    REACH,
    RUN,
    SENDER,
    SIZE,
    Flags,
    Floats,
    Marks,
    Places,
    RoomWindow,
    product,
)
from roomlore.core.models import MessageFeatures, StoredMessage

NEWEST = 64
_CHOSEN = CANDIDATES - NEWEST
_FIRST = SIZE - REACH
_OLDER = SIZE - NEWEST
_PACES = (5, 20, 60)
_MOMENTS = len(_PACES) + 3
_DAY_MINUTES = 1_440.0
_UNKNOWN = 8.0

_TIES = ("said", "calls_me", "answers_me", "called_me_last", "i_call", "i_answer")
_KIN = ("size", "words", "mine", "named", "calls_me", "my_last", "newest", "recent", "foreign")
PAIR = (
    "away", "others_between", "speakers_between", "minutes", "minutes_to_pace5", "minutes_to_pace20",
    "minutes_to_pace60", "minutes_to_beat", "quiet_minutes", "quiet_minutes_to_beat",
    "mine", "mine_since", "my_last", "their_last", "i_address", "i_name", "i_address_last", "addresses_me", "names_me",
    "i_address_other", "addresses_other", "same_target", "answers_me", "answers_other",
    "last_answer_to_me",
    "words", "words_count", "words_of_mine", "words_of_best", "rarest",
    *(f"ties_{name}" for name in _TIES), "my_last_named", "my_last_answered",
    *(f"kin_{name}" for name in _KIN), "kin_covers", "kin_covers_of_best", "kin_covers_rare", "kin_covers_rare_of_best",
    "foreign", "foreign_to_me", "kin_foreign_share", *COUNTS, *TRAITS,
)  # fmt: skip
SELF = (
    *TRAITS, "spoken", "silent_messages", "silent_minutes", "last_asked", "last_run", "called_since", "previous_mine",
    "pause", "pace5", "pace20", "pace60", "beat", "pause_to_beat", "speakers", "crowd", "called", "addressee_known",
    "addressee_away", "words_best", "words_all", "words_new", "candidates", "habit_addresses", "habit_words",
    "habit_new", "habit_new_after_pause", "habit_joined", "calls_agent", "agent_spoke", "covers_best",
    "covers_my_last", "covers_mine", "covers_newest", "my_quiet_minutes", "my_last_and_newest",
    "foreign_room", "foreign_newest", "habit_foreign",
)  # fmt: skip

_AT = {name: row for row, name in enumerate(PAIR[: -len(TRAITS)])}
_MINUTES, _PACED, _MINE, _MINE_SINCE = (_AT[name] for name in ("minutes", "minutes_to_pace5", "mine", "mine_since"))
_SHARED, _TIED, _LAST_NAMED, _HELD = (_AT[name] for name in ("words", "ties_said", "my_last_named", "kin_size"))
_COUNTED = _AT[COUNTS[0]]
_LOGGED = _COUNTED + len(COUNTS)
_ASKED, _ADDRESSES, _WORDS = (len(COUNTS) + TRAITS.index(name) for name in ("asked", "addresses", "words"))
_QUIET, _COVERS, _FOREIGN = _AT["quiet_minutes"], _AT["kin_covers"], _AT["foreign"]
_LATELY, _AGAINST = _KIN.index("recent"), _KIN.index("foreign")
_TELLING, _RAREST = 24, 30.0
_HABITS = slice(_WORDS, _ADDRESSES + 1, _ADDRESSES - _WORDS)

_SPOKEN, _MY_LAST = slice(0, _SHARED - _MINE), slice(_SHARED - _MINE, _SHARED - _MINE + 2)
_CALLS = slice(_MY_LAST.stop, _MY_LAST.stop + 3)
_CONCERNED = _CALLS.stop
_COLUMNS = slice(_CONCERNED + 1, _CONCERNED + 1 + len(_KIN))
_USES = slice(_COLUMNS.stop, None)
_FITS = np.array([_HELD + _KIN.index(name) for name in ("my_last", "mine", "newest")])

_RECENT = np.exp(-np.arange(SIZE, 0, -1) / 20)
_RECENTLY = _RECENT.astype(np.float32)
_LOG = np.log(np.arange(1, SIZE + 2)).astype(np.float32)
_NEAR = np.arange(SIZE - CANDIDATES, SIZE)
_AWAY = np.arange(SIZE - 1, -1, -1)
_WHICH = np.repeat(np.arange(3), SIZE)
_ZERO, _ONE, _MOMENT = (np.array(number, np.float32) for number in (0.0, 1.0, MOMENT))
_MINUTE = np.array(60.0)
_NO_WORDS = np.zeros(SIZE, np.float32)
for _table in (_RECENT, _RECENTLY, _LOG, _NEAR, _AWAY, _WHICH, _NO_WORDS):
    _table.flags.writeable = False


class LinkView(NamedTuple):
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


def spread(seen: LinkView, chances: npt.NDArray[np.float64]) -> Floats:
    """P(same thread) for each of the newest rows of the window: through whichever candidate is answered."""
    odds = chances.astype(np.float32)
    shares: Floats = odds[:_CHOSEN] @ seen.older_kin + odds[_CHOSEN:] @ seen.newest_kin
    return shares


def view(window: RoomWindow, message: StoredMessage, features: MessageFeatures) -> LinkView:
    """Return the newest messages of the window as `message` sees them; it is not in the window yet."""
    return _FeatureReader(window, message, features).read()


class _FeatureReader:
    """Reads the features of one message. `pairs` gets plain counts first; then these become logs; then come the numbers
    that are no logs."""

    def __init__(self, window: RoomWindow, message: StoredMessage, features: MessageFeatures) -> None:
        self.window, self.reading = window, window.read_to_link(message, features)
        self.at = message.at.timestamp()
        self.first = window.end - SIZE
        self.me = window.names.find(message.sender_id)
        self.mine, self.calls_me = window.said.get(self.me, 0), window.called.get(self.me, 0)
        self.my_last = self.mine.bit_length() - 1
        self.uses, self.rarities, self.total = window.shared(self.reading.words)
        self.calls_agent = window.agents(self.reading.named) > 0
        self.bits = window.unpack(self._marks())
        self.flags = self.bits.astype(np.float32)
        self.my_rows = self.bits[0].nonzero()[0]
        self.near = self._candidates()
        self.rows = self.near + self.first
        self.senders = window.people[SENDER].take(self.rows) + 1
        self.pairs = np.zeros((len(PAIR), CANDIDATES), np.float32)

    def _marks(self) -> list[int]:
        """Return the sets of rows that matter: those of `PAIR` from "mine", then of `_MY_LAST`, `_CALLS`, `_CONCERNED`,
        `_COLUMNS` and `_USES`."""
        window, mine, calls_me = self.window, self.mine, self.calls_me
        marks, last, to_me = window.said, window.last, window.to.get(self.me, 0)
        answers_me = window.answered.get(self.me, 0)
        every = (1 << window.end) - (1 << window.end - window.alive)
        named = [window.names.find(name) for name in self.reading.named]
        i_name, addressed = _any_of(marks, named), named[: self.reading.addressed]
        self.i_address = i_address = _any_of(marks, addressed)
        i_address_other, same_target = (every ^ i_address, window.to.get(addressed[0], 0)) if addressed else (0, 0)
        answered, *called = window.people[PARTNER:, self.my_last].tolist() if mine else (-1,)
        return [
            mine, 0, mine & last, last, i_address, i_name, i_address & last, to_me, calls_me,
            i_address_other, window.addressing ^ to_me, same_target, answers_me, window.answering ^ answers_me,
            1 << answers_me.bit_length() - 1 if answers_me else 0,
            _any_of(marks, called), marks.get(answered, 0),
            calls_me, answers_me, calls_me & last,
            mine | calls_me | (answers_me if self.calls_agent else i_name),
            every, 0, mine, i_name, calls_me, 1 << self.my_last if mine else 0, 1 << window.end - 1, 0, 0,
            *self.uses,
        ]  # fmt: skip

    def _candidates(self) -> Places:
        """Return the newest messages, and of the older ones first those by or to the people concerned."""
        concerned = self.bits[_CONCERNED, _FIRST:_OLDER]
        chosen = concerned.nonzero()[0][-_CHOSEN:]
        if len(chosen) < _CHOSEN:
            concerned = concerned.copy()
            concerned[(~concerned).nonzero()[0][len(chosen) - _CHOSEN] :] = True
            chosen = concerned.nonzero()[0]
        near = _NEAR.copy()
        np.add(chosen, _FIRST, near[:_CHOSEN])
        return near

    def read(self) -> LinkView:
        window, rows, pairs = self.window, self.rows, self.pairs
        times = window.at.take(rows)
        ready = times <= self.at
        if rows[0] < window.within:
            ready &= rows >= window.within
        columns = slice(self.first, window.end)
        older = window.kin.take(rows[:_CHOSEN], 0)[:, columns]
        newest = window.kin[window.end - NEWEST : window.end, columns]
        window.facts.take(rows, 1, pairs[_COUNTED:], "clip")
        self._distance()
        self._times(times)
        near = self._words()
        self._contacts()
        self._scripts()
        self._thread_words(older, newest)
        _log(pairs[:_PACED])
        _log(pairs[_SHARED:_LOGGED])
        self._people()
        self._shares(near)
        return LinkView(pairs, self._message_features(ready), ready, rows, older, newest)

    def _distance(self) -> None:
        """Distance in messages, and who spoke in between."""
        pairs, near = self.pairs, self.near
        pairs[0] = away = _AWAY.take(near)
        self.mine_since = len(self.my_rows) - self.my_rows.searchsorted(near, "right")
        pairs[1] = away - self.mine_since
        self.window.speakers.take(self.rows, 0, pairs[2], "clip")

    def _times(self, times: npt.NDArray[np.float64]) -> None:
        """Fill in the minutes on the room's clock since each candidate and since its likely thread was last active, and
        their logs."""
        pairs, window, end = self.pairs, self.window, self.window.end
        heard = np.empty(2 * CANDIDATES + _MOMENTS)
        heard[:CANDIDATES] = times
        window.latest.take(self.rows, 0, heard[CANDIDATES : 2 * CANDIDATES], "clip")
        at, mine = window.at, self.my_last
        heard[-_MOMENTS:] = (*(at[end - back] for back in _PACES), at[end - 1], at[mine], window.latest[mine])
        clock = window.clock(self.at)
        minutes = np.maximum(clock.since(heard), 0.0) / _MINUTE if clock else np.full(len(heard), _DAY_MINUTES)
        *since, self.pause, self.silent, self.quiet = minutes[-_MOMENTS:].tolist()
        self.paces = [self._pace(*since_pace) for since_pace in zip(_PACES, since, strict=True)]
        logs = minutes[: 2 * CANDIDATES].astype(np.float32).reshape(2, CANDIDATES)
        pairs[_MINUTES] = logs[0]
        np.add(logs, _MOMENT, logs)
        np.log(logs, logs)
        self.beat = window.beat()
        beats = np.array((*self.paces, self.beat), np.float32)[:, None]
        np.subtract(logs[0], beats, pairs[_PACED:_QUIET])
        pairs[_QUIET] = logs[1]
        np.subtract(logs[1], beats[-1], pairs[_QUIET + 1])

    def _pace(self, back: int, minutes: float) -> float:
        """Return the log of the mean minutes on the clock between so many newest messages, which lie within these; 0 if
        there are too few."""
        return math.log(minutes / back + 0.02) if self.window.alive >= back else 0.0

    def _people(self) -> None:
        """Fill in who speaks to whom."""
        pairs, near = self.pairs, self.near
        self.flags[_SPOKEN].take(near, 1, pairs[_MINE:_SHARED], "clip")
        self.flags[_MY_LAST].take(near, 1, pairs[_LAST_NAMED:_HELD], "clip")
        _LOG.take(self.mine_since, 0, pairs[_MINE_SINCE], "clip")

    def _words(self) -> Floats | None:
        """Count shared words, weighted by rarity."""
        self.best, self.words = 0.0, _NO_WORDS
        rarities, whole = self.rarities, self.total + 1.0
        if not rarities:
            return None
        shares, squares = [rarity / whole for rarity in rarities], [rarity * rarity for rarity in rarities]
        counted = np.array((rarities, [1.0] * len(rarities), shares, squares), np.float32) @ self.flags[_USES]
        self.words = counted[0]
        near: Floats = counted.take(self.near, 1)
        self.best = _most(near[0])
        self.pairs[_SHARED : _SHARED + 2] = near[:2]
        return near

    def _shares(self, near: Floats | None) -> None:
        """Shared words beside all words, beside the most shared, and how rare the rarest are."""
        if near is None:
            return
        words, pairs, rarest = near[0], self.pairs, self.pairs[_SHARED + 4]
        pairs[_SHARED + 2] = near[2]
        np.divide(words, self.best + 1.0, pairs[_SHARED + 3])
        np.divide(near[3], np.maximum(words, _ONE), rarest)
        np.sqrt(rarest, rarest)

    def _contacts(self) -> None:
        """Fill in the recent contacts of each candidate's sender with this one."""
        size = self.window.names.highest + 2
        table = np.zeros((len(_TIES), size), np.float32)
        table[0] = self.window.counts[:size]
        table[1:4] = self._callers(size)
        if self.mine:
            table[4:] = self._addressees(size)
        table.take(self.senders, 1, self.pairs[_TIED:_LAST_NAMED], "clip")

    def _callers(self, size: int) -> npt.NDArray[np.number]:
        """Return who called the sender, who answered, and for whom a call was the last thing said."""
        flags = self.bits[_CALLS].reshape(-1).nonzero()[0]
        recent, which = _RECENT.take(flags, mode="wrap"), _WHICH.take(flags)
        self.calls = float(np.add.reduce(recent[: self.calls_me.bit_count()]))
        which *= size
        which += self.window.people[SENDER, self.first : self.window.end].take(flags, mode="wrap")
        which += 1
        counted: npt.NDArray[np.number] = np.bincount(which, recent, 3 * size)
        return counted.reshape(3, size)

    def _addressees(self, size: int) -> npt.NDArray[np.number]:
        """Whom the sender called and answered."""
        recent = _RECENT.take(self.my_rows)
        to = self.window.people[PARTNER:].take(self.my_rows + self.first, axis=1)
        to[0] += size
        to += 1
        counted: npt.NDArray[np.number] = np.bincount(to.ravel(), np.concatenate((recent,) * len(to)), 2 * size)
        return counted.reshape(2, size)

    def _scripts(self) -> None:
        """Fill in how far the script of each row differs from the message's, or from its sender's usual one if it has
        no letters; and, for the candidates, from the sender's usual one. All 0 in a room of one script."""
        lean, pairs = self.window.lean[self.first : self.window.end], self.pairs
        recent = _RECENTLY.take(self.my_rows)
        usual = float(recent.dot(lean.take(self.my_rows))) / (float(np.add.reduce(recent)) + 0.2)
        self.foreign = np.maximum(lean * np.float32(-(self.reading.lean or usual)), _ZERO)
        self.foreign.take(self.near, 0, pairs[_FOREIGN], "clip")
        np.maximum(lean.take(self.near) * np.float32(-usual), _ZERO, out=pairs[_FOREIGN + 1])

    def _thread_words(self, older: Floats, newest: Floats) -> None:
        """Fill in the contents of each candidate's thread, and how much of the message's words it covers."""
        weights, columns = self._word_weights()
        columns[1] = self.words
        np.multiply(columns[0], _RECENTLY, columns[_LATELY])
        columns[_AGAINST] = self.foreign
        held = np.empty((len(columns), CANDIDATES), np.float32)
        product(columns, older.T, held[:, :_CHOSEN])
        product(columns, newest.T, held[:, _CHOSEN:])
        self.pairs[_HELD:_COVERS] = held[: len(_KIN)]
        np.divide(held[_AGAINST], np.maximum(held[0], _ONE), self.pairs[_FOREIGN + 2])
        word_marks = held[len(_KIN) :]
        covers, rare = weights @ np.minimum(word_marks, _ONE, out=word_marks)
        self.covers, self.covers_best = covers, _most(covers)
        self.pairs[_COVERS] = covers
        np.divide(covers, self.covers_best + 0.05, self.pairs[_COVERS + 1])
        self.pairs[_COVERS + 2] = rare
        np.divide(rare, _most(rare) + 0.02, self.pairs[_COVERS + 3])

    def _word_weights(self) -> tuple[Floats, Floats]:
        """Return the share of the message that each of its rarest words makes up, and `_COLUMNS` with the rows that use
        each."""
        rarities, columns = np.array(self.rarities, np.float32), self.flags[_COLUMNS.start :]
        if len(rarities) > _TELLING:
            rarest = np.sort(np.argsort(-rarities, kind="stable")[:_TELLING])
            rarities = rarities[rarest]
            columns = np.concatenate((self.flags[_COLUMNS], self.flags[_USES][rarest]))
        weights = np.empty((2, len(rarities)), np.float32)
        shares, squares = weights
        np.divide(rarities, np.float32(self.total + 1.0), shares)
        np.multiply(rarities, rarities, squares)
        np.divide(squares, np.float32(np.add.reduce(squares) + _RAREST), squares)
        return weights, columns

    def _message_features(self, ready: Flags) -> Floats:
        window, end = self.window, self.window.end
        pause = self.pause if window.alive else LONG_PAUSE
        crowd = min(max(1, window.alive), CANDIDATES)
        addressee = self.i_address.bit_length() - 1 - self.first
        known = bool(self.i_address) and addressee >= self.near[0]
        habits = np.add.reduce(window.facts[_HABITS, end - CANDIDATES : end], axis=1)
        own = np.empty(len(SELF), np.float32)
        own[: len(TRAITS)] = self.reading.traits
        own[len(TRAITS) :] = (
            *self._own_messages(),
            self.my_last == end - 1,
            math.log1p(pause) if window.alive else _UNKNOWN,
            *self.paces,
            self.beat,
            math.log(pause + MOMENT) - self.beat,
            math.log1p((window.last >> end - CANDIDATES).bit_count()),
            math.log1p((window.last >> end - 20).bit_count()),
            math.log1p(self.calls),
            known,
            math.log(SIZE - addressee) if known else 5.0,
            math.log1p(self.best),
            math.log1p(self.total),
            self.best / (1.0 + self.total),
            math.log1p(np.count_nonzero(ready)),
            habits[1] / crowd,
            habits[0] / crowd,
            *window.habits(self.beat),
            self.calls_agent,
            window.spoke_agent(),
            self.covers_best,
            *self._last_thread(),
            float(self.foreign.dot(_RECENTLY)) / 20,
            float(self.foreign[-1]),
            window.mixing(),
        )
        return own

    def _last_thread(self) -> tuple[float, ...]:
        """Return the fit of the last threads of the sender and of the room: words covered, and time since."""
        shares = self.pairs.take(_FITS, 0)
        np.minimum(shares, _ONE, out=shares)
        np.multiply(shares, self.covers, shares)
        fits = np.maximum.reduce(shares, 1).tolist()
        if not self.mine:
            return (*fits, _UNKNOWN, 0.0)
        return (*fits, math.log(self.quiet + 0.02), float(self.window.kin[self.my_last, self.window.end - 1]))

    def _own_messages(self) -> tuple[float, ...]:
        """Of the sender's own messages: how many, how long ago the last was, what it was, who called since."""
        if not self.mine:
            return (0.0, _OWN_NEVER, _UNKNOWN, 0.0, 0.0, 0.0)
        window, last = self.window, self.my_last
        return (
            math.log1p(self.mine.bit_count()),
            math.log(window.end - last),
            math.log1p(self.silent),
            float(window.facts[_ASKED, last]),
            float(window.facts[RUN, last]) if last >= window.within else 0.0,
            math.log1p((self.calls_me >> last + 1).bit_count()),
        )


_OWN_NEVER = math.log(SIZE)


def _log(counts: Floats) -> None:
    """In place; of one more, as what is counted may be nothing."""
    np.add(counts, _ONE, counts)
    np.log(counts, counts)


def _most(numbers: Floats) -> float:
    return float(numbers[numbers.argmax()])


def _any_of(marks: Marks, names: list[int]) -> int:
    """Return the rows of any of these people."""
    rows = 0
    for name in names:
        rows |= marks.get(name, 0)
    return rows
