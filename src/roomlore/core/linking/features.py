"""The features of the link model: numbers for each candidate, and numbers for the message itself."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roomlore.core.linking.reading import MAX_NAMED, TRAITS
from roomlore.core.linking.window import (
    CANDIDATES,
    COUNTS,
    FACTS,
    LEAN,
    LONG_PAUSE,
    MOMENT,
    PARTNER,
    REACH,
    ROWS,
    RUN,
    SENDER,
    SIZE,
    SPEAKERS,
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
_ASKED = len(COUNTS) + TRAITS.index("asked")
_QUIET, _COVERS, _FOREIGN = _AT["quiet_minutes"], _AT["kin_covers"], _AT["foreign"]
_OWN_KIN = _KIN.index("mine")
_FITS = slice(_HELD + _OWN_KIN, _HELD + _KIN.index("newest") + 1)
_FIT_LAST, _FIT_NEWEST = _KIN.index("my_last") - _OWN_KIN, _KIN.index("newest") - _OWN_KIN
_TELLING, _RAREST = 24, 30.0

# The rows of flags: as those of `PAIR` from "mine" to "words", then three that count words, `_KIN`, each word's uses.
_WORDS = _SHARED - _MINE
_COLUMNS = _WORDS + 3
_SHARED_KIN, _LATELY, _AGAINST = (_COLUMNS + _KIN.index(name) for name in ("words", "recent", "foreign"))
_USES = _COLUMNS + len(_KIN)
# Contacts: whose of `people` is counted, and for which of `_TIES`. The rows they are counted from are the last bits.
_CONTACTS = ((SENDER, 1), (SENDER, 2), (SENDER, 3), (PARTNER, 5), *[(PARTNER + 1 + n, 4) for n in range(MAX_NAMED)])
_CONTACTING = slice(-len(_CONTACTS), None)
_MY_LAST = slice(_CONTACTING.start - 2, _CONTACTING.start)
_CONCERNED = _MY_LAST.start - 1

_RECENT = np.exp(-np.arange(SIZE, 0, -1) / 20)
_RECENTLY = _RECENT.astype(np.float32)
_RECENT_CONTACTS = np.tile(_RECENT, len(_CONTACTS))
_CONTACTED = np.concatenate([people * ROWS + np.arange(SIZE) for people, _ in _CONTACTS])
_TIE = np.repeat([len(_TIES) + tie for _, tie in _CONTACTS], SIZE)
_PLACES = np.concatenate((np.arange(SIZE - CANDIDATES, SIZE), [SIZE - back for back in _PACES], [SIZE - 1, SIZE - 1]))
"""The candidates, and other rows from which time is measured: the last is the sender's last one."""
_AWAY = np.arange(SIZE, 0, -1).astype(np.float32)
_ONES = np.ones((_TELLING, CANDIDATES), np.float32)
_EVERY = np.ones(CANDIDATES, np.bool_)
_ZERO, _ONE, _MOMENT = (np.array(number, np.float32) for number in (0.0, 1.0, MOMENT))
_MINUTE = np.array(60.0)
for _table in (_RECENT, _RECENTLY, _RECENT_CONTACTS, _CONTACTED, _TIE, _PLACES, _AWAY, _ONES, _EVERY):
    _table.flags.writeable = False


class LinkView(NamedTuple):
    """The room from one message's place.

    `pairs`: float32 (len(PAIR), CANDIDATES). `own`: float32 (len(SELF),). `open`: which candidates may be answered.
    `rows`: where in the window the candidates are, ascending. `kin`: float32 (CANDIDATES, SIZE), P(same thread) of each
    with each of the newest rows.
    """

    pairs: Floats
    own: Floats
    open: Flags
    rows: Places
    kin: Floats


def spread(seen: LinkView, chances: npt.NDArray[np.float64]) -> Floats:
    """P(same thread) for each of the newest rows of the window: through whichever candidate is answered."""
    shares: Floats = chances.astype(np.float32) @ seen.kin
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
        self.first, self.oldest = window.end - SIZE, max(window.within, window.end - window.alive)
        self.me = window.names.find(message.sender_id)
        self.mine, self.calls_me = window.said.get(self.me, 0), window.called.get(self.me, 0)
        self.my_last = self.mine.bit_length() - 1
        self.uses, self.rarities, self.total = window.shared(self.reading.words)
        self.calls_agent = window.agents(self.reading.named) > 0
        self.bits = window.unpack(self._marks())
        self.flags = self.bits[:_CONCERNED].astype(np.float32)
        self.places = self._places()
        self.near = self.places[:CANDIDATES]
        self.rows = self.places + self.first
        self.pairs = np.zeros((len(PAIR), CANDIDATES), np.float32)

    def _marks(self) -> list[int]:
        """Return the sets of rows that matter, in the order of the rows of flags."""
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
            1 << answers_me.bit_length() - 1 if answers_me else 0, 0, 0, 0,
            every, 0, mine, i_name, calls_me, 1 << self.my_last if mine else 0, 1 << window.end - 1, 0, 0,
            *self.uses,
            mine | calls_me | (answers_me if self.calls_agent else i_name),
            _any_of(marks, called), marks.get(answered, 0),
            calls_me, answers_me, calls_me & last, *(mine,) * (1 + MAX_NAMED),
        ]  # fmt: skip

    def _places(self) -> Places:
        """Return `_PLACES` of this message. Candidates are the newest messages, and of the older ones first those by or
        to the people concerned."""
        concerned = self.bits[_CONCERNED, _FIRST:_OLDER]
        chosen = concerned.nonzero()[0][-_CHOSEN:]
        if len(chosen) < _CHOSEN:
            concerned = concerned.copy()
            concerned[(~concerned).nonzero()[0][len(chosen) - _CHOSEN] :] = True
            chosen = concerned.nonzero()[0]
        places = _PLACES.copy()
        np.add(chosen, _FIRST, places[:_CHOSEN])
        if self.mine:
            places[-1] = self.my_last - self.first
        return places

    def read(self) -> LinkView:
        window, pairs, rows = self.window, self.pairs, self.rows[:CANDIDATES]
        kin = window.kin.take(rows, 0)[:, self.first : window.end]
        numbers = window.numbers.take(rows, 1)
        pairs[_COUNTED:] = numbers[FACTS:]
        self._count_words()
        self.flags[:_COLUMNS].take(self.near, 1, pairs[_MINE : _MINE + _COLUMNS], "clip")
        words = pairs[_SHARED : _SHARED + 3].copy()
        self._distance(numbers[SPEAKERS])
        self._times()
        self._contacts(rows)
        self._scripts(numbers[LEAN])
        self._thread_words(kin)
        _log(pairs[_SHARED:_LOGGED])
        self._shares(*words)
        pairs[_LAST_NAMED:_HELD] = self.bits[_MY_LAST].take(self.near, 1)
        ready = self._ready(rows)
        return LinkView(pairs, self._message_features(ready), ready, rows, kin)

    def _ready(self, rows: Places) -> Flags:
        """Return which candidates may be answered: none from the future, and none from long ago."""
        if self.window.in_order(self.at) and rows[0] >= self.oldest:
            return _EVERY
        ready: Flags = (self.window.at.take(rows) <= self.at) & (rows >= self.window.within)
        return ready

    def _count_words(self) -> None:
        """Count the words that each row shares, weighted by rarity, plain, and weighted by its square."""
        if self.rarities:
            squares = [rarity * rarity for rarity in self.rarities]
            self.weights = np.array((self.rarities, [1.0] * len(squares), squares), np.float32)
            counted = self.weights.dot(self.flags[_USES:], self.flags[_WORDS:_COLUMNS])
            self.flags[_SHARED_KIN] = counted[0]

    def _shares(self, words: Floats, _: Floats, squares: Floats) -> None:
        """Fill in shared words beside all words, beside the most shared, and how rare the rarest are."""
        self.best = 0.0
        if not self.rarities:
            return
        self.best, pairs, rarest = _most(words), self.pairs, self.pairs[_SHARED + 4]
        np.divide(words, self.total + 1.0, pairs[_SHARED + 2])
        np.divide(words, self.best + 1.0, pairs[_SHARED + 3])
        np.divide(squares, np.maximum(words, _ONE), rarest)
        np.sqrt(rarest, rarest)

    def _distance(self, speakers: Floats) -> None:
        """Fill in one more than the distance in messages, and than how many people, others and the sender, spoke in
        between; the logs are taken with those of times."""
        pairs, mine = self.pairs, np.add.accumulate(self.flags[0])
        mine_since = pairs[_MINUTES + 3]
        _AWAY.take(self.near, 0, pairs[0], "clip")
        np.subtract(mine[-1], mine.take(self.near), mine_since)
        np.subtract(pairs[0], mine_since, pairs[1])
        np.add(mine_since, _ONE, mine_since)
        np.add(speakers, _ONE, pairs[2])

    def _times(self) -> None:
        """Fill in the logs of the minutes on the room's clock since each candidate and since its likely thread was last
        active, beside the paces of the room."""
        pairs, window = self.pairs, self.window
        if self.oldest < window.end:
            shown, most = window.clock(self.at), math.inf
            minutes = (shown - window.counted.take(self.rows, 1)) / _MINUTE
            if window.in_order(self.at):
                most = (shown - float(window.counted[0, self.oldest])) / 60
            else:
                np.maximum(minutes, 0.0, out=minutes)
        else:
            minutes, most = np.full((2, len(self.rows)), _DAY_MINUTES), _DAY_MINUTES
        *since, self.pause, self.silent = [min(long, most) for long in minutes[0, CANDIDATES:].tolist()]
        self.quiet = min(float(minutes[1, -1]), most)
        self.paces = [
            math.log(long / back + 0.02) if window.alive >= back else 0.0
            for back, long in zip(_PACES, since, strict=True)
        ]
        self.beat = self.window.beat()
        near, counts = minutes[:, :CANDIDATES].astype(np.float32), pairs[: _MINUTES + 4]
        np.add(near[0], _ONE, counts[_MINUTES])
        np.add(near, _MOMENT, counts[_MINUTES + 1 : _MINUTES + 3])
        np.log(counts, counts)
        logs = counts[_MINUTES + 1 :].copy()
        beats = np.array((*self.paces, self.beat), np.float32)
        np.subtract(logs[0], beats[:, None], pairs[_PACED:_QUIET])
        pairs[_QUIET] = logs[1]
        np.subtract(logs[1], beats[-1], pairs[_QUIET + 1])
        pairs[_MINE_SINCE] = logs[2]

    def _contacts(self, rows: Places) -> None:
        """Fill in the recent contacts of each candidate's sender with this one: how often they spoke, called the
        sender, answered, and called as the last thing they said; how often the sender called and answered them."""
        window, pairs = self.window, self.pairs
        people = window.people.reshape(-1)
        flags = self.bits[_CONTACTING].reshape(-1).nonzero()[0]
        recent = _RECENT_CONTACTS.take(flags)
        self.calls = sum(recent[: self.calls_me.bit_count()].tolist())
        # One number for each person, from -1 on, and tie.
        ties = people.take(_CONTACTED.take(flags) + self.first)
        ties *= len(_TIES)
        ties += _TIE.take(flags)
        counted = np.bincount(ties, recent, len(_TIES) * (window.names.highest + 2)).reshape(-1, len(_TIES))
        senders = people.take(rows) + 1
        pairs[_TIED:_LAST_NAMED] = counted.take(senders, 0).T
        window.counts.take(senders, 0, pairs[_TIED], "clip")

    def _scripts(self, near: Floats) -> None:
        """Fill in how far the script of each row differs from the message's, or from its sender's usual one if it has
        no letters; and, for the candidates, from the sender's usual one. All 0 in a room of one script."""
        lean, flags, ours = self.window.lean[self.first : self.window.end], self.flags, self.reading.lean
        if (ours <= 0 and lean[lean.argmax()] <= 0) or (ours >= 0 and lean[lean.argmin()] >= 0):
            return
        recent = flags[0] * _RECENTLY
        usual = float(recent.dot(lean)) / (float(flags[0].dot(_RECENTLY)) + 0.2)
        ours, foreign = ours or usual, flags[_AGAINST]
        np.multiply(lean, -ours, foreign)
        np.maximum(foreign, _ZERO, out=foreign)
        for row, script in ((_FOREIGN, ours), (_FOREIGN + 1, usual)):
            np.multiply(near, -script, self.pairs[row])
            np.maximum(self.pairs[row], _ZERO, out=self.pairs[row])

    def _thread_words(self, kin: Floats) -> None:
        """Fill in the contents of each candidate's thread, and how much of the message's words it covers: as a share of
        all of them, and of the rarest ones, the rarer the more."""
        pairs, flags = self.pairs, self.flags
        np.multiply(flags[_COLUMNS], _RECENTLY, flags[_LATELY])
        weights, columns = self._telling()
        held = product(columns, kin.T)
        pairs[_HELD:_COVERS] = held[: len(_KIN)]
        np.divide(pairs[_COVERS - 1], np.maximum(held[0], _ONE), pairs[_FOREIGN + 2])
        self.covers, self.covers_best = held[0], 0.0
        if not self.rarities:
            return
        word_marks = held[len(_KIN) :]
        np.minimum(word_marks, _ONES[: len(word_marks)], out=word_marks)
        self.covers, rare = weights.dot(word_marks)
        self.covers /= self.total + 1.0
        rare /= float(np.add.reduce(weights[1])) + _RAREST
        self.covers_best = _most(self.covers)
        pairs[_COVERS] = self.covers
        np.divide(self.covers, self.covers_best + 0.05, pairs[_COVERS + 1])
        pairs[_COVERS + 2] = rare
        np.divide(rare, _most(rare) + 0.02, pairs[_COVERS + 3])

    def _telling(self) -> tuple[Floats, Floats]:
        """Return the rarity of the message's rarest words, and its square; `_KIN` and the rows that use each word."""
        columns = self.flags[_COLUMNS:]
        if not self.rarities:
            return columns, columns
        weights = self.weights[::2]
        if len(self.rarities) > _TELLING:
            rarest = np.sort(np.argsort(-weights[0], kind="stable")[:_TELLING])
            weights, columns = weights[:, rarest], np.concatenate((columns[: len(_KIN)], columns[len(_KIN) :][rarest]))
        return weights, columns

    def _message_features(self, ready: Flags) -> Floats:
        window, end, foreign = self.window, self.window.end, self.flags[_AGAINST]
        pause = self.pause if window.alive else LONG_PAUSE
        addressee = self.i_address.bit_length() - 1 - self.first
        known = bool(self.i_address) and addressee >= self.near[0]
        *habits, mixing = window.habits(self.beat)
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
            *habits,
            self.calls_agent,
            window.spoke_agent(),
            self.covers_best,
            *self._last_thread(),
            float(foreign.dot(_RECENTLY)) / 20,
            float(foreign[-1]),
            mixing,
        )
        return own

    def _last_thread(self) -> tuple[float, ...]:
        """Return the fit of the last threads of the sender and of the room: words covered, and time since."""
        fits = [0.0] * (1 + _FIT_NEWEST)
        if self.covers_best:
            shares = np.minimum(self.pairs[_FITS], _ONES[: len(fits)])
            np.multiply(shares, self.covers, shares)
            fits = np.maximum.reduce(shares, 1).tolist()
        covered = (fits[_FIT_LAST], fits[0], fits[_FIT_NEWEST])
        if not self.mine:
            return (*covered, _UNKNOWN, 0.0)
        return (*covered, math.log(self.quiet + 0.02), float(self.window.kin[self.my_last, self.window.end - 1]))

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
