"""What the link model sees: numbers for each candidate, and numbers for the message itself."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roomlore.core.link_traits import TRAITS, Reading
from roomlore.core.link_window import COUNTS, REACH, RUN, SIZE, SPOKE_SINCE, Floats, RoomWindow
from roomlore.core.models import MessageFeatures, StoredMessage

CANDIDATES = 100

_AWAY = np.arange(CANDIDATES, 0, -1).astype(np.float32)
_LOG_AWAY = np.log(_AWAY)
_RECENT = np.exp(-np.arange(SIZE, 0, -1) / 20).astype(np.float32)
_RECENT.flags.writeable = _AWAY.flags.writeable = _LOG_AWAY.flags.writeable = False
_PACES = (5, 20, 60)

_TIES = ("said", "calls_me", "answers_me", "called_me_last", "i_call", "i_answer")
_MEMBERS = ("size", "words", "mine", "theirs", "calls_me", "recent")
PAIR = (
    "away", "others_between", "speakers_between", "minutes", "minutes_to_pace5", "minutes_to_pace20", "minutes_to_pace60",
    "mine", "mine_since", "my_last", "their_last",
    "i_address", "i_name", "i_address_last", "addresses_me", "names_me", "i_address_other", "addresses_other", "same_target",
    "words", "words_count", "words_of_mine", "words_of_best", "rarest", "my_last_named", "my_last_answered",
    *(f"ties_{name}" for name in _TIES),
    *(f"before_{name}" for name in _MEMBERS), *(f"after_{name}" for name in _MEMBERS),
    *COUNTS, *TRAITS,
)  # fmt: skip
SELF = (
    *TRAITS, "spoken", "silent_messages", "silent_minutes", "last_asked", "last_mine_run", "previous_mine", "pause",
    "pace5", "pace20", "pace60", "speakers", "crowd", "called", "called_since", "addressee_known", "addressee_away",
    "words_best", "words_all", "candidates", "habit_addresses", "habit_words", "unread",
)  # fmt: skip


class View(NamedTuple):
    """`pairs`: float32 (len(PAIR), CANDIDATES). `own`: float32 (len(SELF),). `open`: which of the candidates (the newest
    rows of the window, in order) may be answered."""

    pairs: Floats
    own: Floats
    open: npt.NDArray[np.bool_]


def view(window: RoomWindow, message: StoredMessage, features: MessageFeatures) -> View:
    """How the newest messages of the window look from `message`, which is not in it yet."""
    return _Eye(window, message, window.read(message, features)).look()


class _Eye:
    def __init__(self, window: RoomWindow, message: StoredMessage, reading: Reading) -> None:
        self.window, self.reading = window, reading
        self.near = slice(window.end - CANDIDATES, window.end)
        self.all = slice(window.end - SIZE, window.end)
        self.me = window.names.find(message.sender_id)
        self.named = [window.names.find(name) for name in reading.named]
        self.at = message.at.timestamp()
        self.senders = window.sender[self.all]
        self.mine = self.senders == self.me
        self.calls_me = (window.named[self.all] == self.me).any(1)
        self.pairs = np.empty((len(PAIR), CANDIDATES), np.float32)
        self.own = np.empty(len(SELF), np.float32)
        self.filled = 0

    def look(self) -> View:
        window = self.window
        ready = (window.at[self.near] <= self.at) & (window.place[self.near] >= window.pushed - REACH)
        self._near()
        self._times()
        self._relations()
        self._words()
        self._ties()
        self._members()
        n = len(TRAITS)
        self.pairs[-n:] = window.traits[self.near].T
        counts = self.pairs[-n - len(COUNTS) : -n]
        np.log1p(window.counts[:, self.near], out=counts)
        self._own(ready)
        return View(self.pairs, self.own, ready)

    def _add(self, *rows: npt.NDArray[np.generic]) -> None:
        for row in rows:
            self.pairs[self.filled] = row
            self.filled += 1

    def _near(self) -> None:
        """Distance in messages, and who spoke in between."""
        mine = self.mine[-CANDIDATES:]
        self.mine_since = _after(mine)
        last = self.window.counts[SPOKE_SINCE, self.near] == 0
        self.last = last
        self._add(
            _LOG_AWAY,
            np.log(_AWAY - self.mine_since),
            np.log1p(_after(last)),
        )

    def _times(self) -> None:
        """Gaps in minutes, as they are and beside the room's pace."""
        gaps = np.maximum((self.at - self.window.at[self.near]) / 60, 0.0)
        minutes = np.log1p(gaps)
        times = self.window.at
        self.paces = []
        self._add(minutes)
        for back in _PACES:
            row = self.window.end - back
            known = self.window.arrival[row] > 0
            pace = math.log(max(self.at - times[row], 0.0) / 60 / back + 0.02) if known else 0.0
            self.paces.append(pace)
            self._add(np.log(gaps + 0.02) - pace)

    def _relations(self) -> None:
        """Who speaks to whom."""
        window, mine = self.window, self.mine[-CANDIDATES:]
        senders, to = self.senders[-CANDIDATES:], window.to[self.near]
        addressed = self.named[: self.reading.addressed]
        i_address, i_name = _any_of(senders, addressed), _any_of(senders, self.named)
        addresses_me = to == self.me
        target = addressed[0] if addressed else -3
        self.i_address = i_address
        self._add(
            mine,
            np.log1p(self.mine_since),
            mine & (self.mine_since == 0),
            self.last,
            i_address,
            i_name,
            i_address & self.last,
            addresses_me,
            self.calls_me[-CANDIDATES:],
            ~i_address if addressed else i_address,
            (to >= 0) & ~addresses_me,
            to == target,
        )

    def _words(self) -> None:
        """Shared words, weighted by rarity."""
        places, weights, total = self.window.shared(self.reading.words)
        self.words = np.bincount(places, weights, SIZE).astype(np.float32) if places else np.zeros(SIZE, np.float32)
        squares = np.bincount(places, np.square(weights), SIZE) if places else np.zeros(SIZE)
        counts = np.bincount(places, minlength=SIZE) if places else np.zeros(SIZE)
        near = self.words[-CANDIDATES:]
        self.best, self.total = float(near.max()), total
        self._add(
            np.log1p(near),
            np.log1p(counts[-CANDIDATES:]),
            near / (total + 1.0),
            near / (self.best + 1.0),
            np.sqrt(squares[-CANDIDATES:] / np.maximum(near, 1.0)),
        )

    def _ties(self) -> None:
        """What each candidate's sender and this one had to do with each other lately."""
        window, senders = self.window, self.senders
        everyone = senders + 1
        mine = np.flatnonzero(self.mine)
        size = window.names.highest + 2
        recent, partner = _RECENT[mine], window.partner[self.all]
        named = window.named[self.all][mine]
        calls = np.where(self.calls_me, _RECENT, 0.0)
        last = calls * (window.counts[SPOKE_SINCE, self.all] == 0)
        table = np.stack((
            np.bincount(everyone, minlength=size),
            np.bincount(everyone, calls, size),
            np.bincount(everyone, np.where(partner == self.me, _RECENT, 0.0), size),
            np.bincount(everyone, last, size),
            np.bincount(named.ravel() + 1, np.repeat(recent, named.shape[1]), size),
            np.bincount(partner[mine] + 1, recent, size),
        ))  # fmt: skip
        near = everyone[-CANDIDATES:]
        if len(mine):
            self._add(_any_of(near - 1, [int(slot) for slot in named[-1] if slot >= 0]), near - 1 == partner[mine[-1]])
        else:
            self._add(np.zeros(CANDIDATES), np.zeros(CANDIDATES))
        self._add(*np.log1p(table[:, near]))
        self.spoken, self.my_rows, self.called = len(mine), mine, float(calls.sum())

    def _members(self) -> None:
        """What each candidate's thread holds before and after it."""
        window, people = self.window, self.senders >= 0
        columns = np.zeros((SIZE, len(_MEMBERS)), np.float32)
        columns[:, 0] = people
        columns[:, 1] = self.words
        columns[:, 2] = self.mine
        columns[:, 3] = _any_of(self.senders, self.named)
        columns[:, 4] = self.calls_me & people
        columns[:, 5] = np.where(people, _RECENT, 0.0)
        before = (window.mates[self.near, self.all] @ columns).T
        after = columns.T @ window.mates[self.all, self.near]
        at = self.filled
        n = len(_MEMBERS)
        np.log1p(before, out=self.pairs[at : at + n])
        np.log1p(after, out=self.pairs[at + n : at + 2 * n])
        self.filled += 2 * n

    def _own(self, ready: npt.NDArray[np.bool_]) -> None:
        window, mine = self.window, self.my_rows
        first = window.end - SIZE
        last = first + int(mine[-1]) if len(mine) else -1
        away = window.end - last if len(mine) else SIZE
        people = self.senders[-CANDIDATES:] >= 0
        addressee = np.flatnonzero(self.i_address)
        previous = window.at[window.end - 1]
        alive = max(1, int(people.sum()))
        self.own[: len(TRAITS)] = self.reading.traits
        self.own[len(TRAITS) :] = (
            math.log1p(self.spoken),
            math.log(away),
            math.log1p(max(0.0, self.at - window.at[last]) / 60) if len(mine) else 8.0,
            window.traits[last, _ASKED] if len(mine) else 0.0,
            window.counts[RUN, last] if len(mine) else 0.0,
            self.senders[-1] == self.me,
            math.log1p(max(0.0, self.at - previous) / 60) if people[-1] else 8.0,
            *self.paces,
            math.log1p((self.last & people).sum()),
            math.log1p((self.last & people)[-20:].sum()),
            math.log1p(self.called),
            math.log1p((self.calls_me[-CANDIDATES:] & (self.mine_since == 0)).sum()) if len(mine) else 0.0,
            len(addressee) > 0,
            math.log(CANDIDATES - addressee[-1]) if len(addressee) else 5.0,
            math.log1p(self.best),
            math.log1p(self.total),
            math.log1p(ready.sum()),
            window.traits[self.near, _ADDRESSES].sum() / alive,
            window.traits[self.near, 0].sum() / alive,
            self.best / (1.0 + self.total),
        )


_ASKED, _ADDRESSES = TRAITS.index("asked"), TRAITS.index("addresses")


def _after(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """How many flags are set after each place."""
    total = np.cumsum(flags[::-1])[::-1]
    return total - flags


def _any_of(senders: npt.NDArray[np.int64], names: list[int]) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(senders), np.bool_)
    for name in names:
        found |= senders == name
    return found
