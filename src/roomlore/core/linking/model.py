"""The link model: the message that a message answers, and those that share its thread."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from roomlore.core.linking.calibration import USUAL, Habits, errors_of, losses_of, tempered, weighted
from roomlore.core.linking.candidates import ThreadCandidates, in_parts
from roomlore.core.linking.features import PAIR, SELF, LinkView, spread, view
from roomlore.core.linking.kernel import Guess, KernelLibrary, LinkKernel, fits
from roomlore.core.linking.reading import TRAITS
from roomlore.core.linking.window import (
    CANDIDATES,
    COUNTS,
    SIZE,
    UNANSWERED,
    Flags,
    Floats,
    Places,
    RoomWindow,
    product,
)
from roomlore.core.models import Entry, Link, LinkKind, MessageFeatures, StoredMessage

READ_AS = 4
"""Raise it where features or links come out otherwise with the same weights: then links are made anew."""
MIN_SHARE = 0.01
MAX_THREAD_CANDIDATES = 64
MAX_FOR_NEW, MIN_FOR_NEW = 5, 0.02
_HARDLY = 1e-300
_NOTHING = np.array(0.0, np.float32)
_MIN = np.array(MIN_SHARE, np.float32)
_AWAY, _OTHERS_SINCE, _MINE = (PAIR.index(name) for name in ("away", "others_between", "mine"))


@dataclass(frozen=True, slots=True)
class LinkModel:
    """A feed-forward net that scores each candidate, and "starts something new" beside them.

    All float32. `pair` (hidden, len(PAIR)), `own` (hidden, len(SELF)) and `first` (hidden,) make the first layer,
    `inner` (inner, hidden) and `second` (inner,) the next, `out` (inner,) the score; `new_own` (inner, len(SELF)),
    `new_first`, `new_out` (inner,) and `new_bias` (1,) the score of something new. `kernel`: the compiled form.
    """

    pair: Floats
    own: Floats
    first: Floats
    inner: Floats
    second: Floats
    out: Floats
    new_own: Floats
    new_first: Floats
    new_out: Floats
    new_bias: Floats
    kernel: LinkKernel | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[np.float32]]) -> "LinkModel":
        weights: dict[str, Any] = {name: np.ascontiguousarray(arrays[name], np.float32) for name in WEIGHTS}
        return cls(**weights)

    def compiled(self, library: KernelLibrary) -> "LinkModel":
        """Return the same model, which uses its compiled form if the library has the same features."""
        own = len(TRAITS)
        if not fits(library, COUNTS, TRAITS, PAIR[: -len(COUNTS) - own], SELF[own:]):
            return self
        return replace(self, kernel=LinkKernel(library, [getattr(self, name) for name in WEIGHTS]))

    def scores(self, seen: LinkView) -> Floats:
        """Return the logits: one per candidate, the last one for a new thread; -inf for what cannot be answered."""
        own = seen.own
        first = self.own.dot(own) + self.first
        hidden = _from(product(self.pair, seen.pairs), first)
        second = self.inner.dot(first) + self.second
        hidden = _from(product(self.inner, hidden), second)
        logits = np.empty(CANDIDATES + 1, np.float32)
        np.add(self.out.dot(hidden), self.out.dot(second), logits[:-1])
        if np.count_nonzero(seen.open) < CANDIDATES:
            logits[:-1][~seen.open] = -np.inf
        begun = self.new_own.dot(own) + self.new_first
        logits[-1] = self.new_out.dot(np.maximum(begun, _NOTHING, out=begun)) + self.new_bias[0]
        return logits


WEIGHTS = tuple(name for name in LinkModel.__slots__ if name != "kernel")


def version_of(model: LinkModel) -> str:
    """Name the model: two models have the same name only if they have the same weights and see the same features."""
    named = hashlib.sha256(repr((READ_AS, PAIR, SELF)).encode())
    for name in WEIGHTS:
        weights = np.ascontiguousarray(getattr(model, name), "<f4")
        named.update(repr((name, weights.shape)).encode() + weights.tobytes())
    return named.hexdigest()[:16]


def _from(sums: Floats, bias: Floats) -> Floats:
    """Return the output of a layer, less its bias: max(sum + bias, 0) - bias. The next layer's bias makes up for it."""
    return np.maximum(sums, np.negative(bias)[:, None], out=sums)


def answers(model: LinkModel, seen: LinkView) -> tuple[npt.NDArray[np.float64], float]:
    """Return the probability of each candidate to be answered, and that of a new thread; they add up to 1."""
    odds = model.scores(seen).astype(np.float64)
    odds -= odds[odds.argmax()]
    np.exp(odds, odds)
    odds /= np.add.reduce(odds)
    return odds[:-1], float(odds[-1])


def link(
    model: LinkModel,
    window: RoomWindow,
    message: StoredMessage,
    features: MessageFeatures,
    target: Entry | None = None,
    habits: Habits = USUAL,
) -> Link:
    """The place of `message` among the messages of the window, which end just before it.

    `target`: the stored message it replies to, where the platform says so and the message is known; the window is asked
    where it is not given; while it is not known, the link is a guess. A platform thread (`root_id`) leaves only the
    messages of that thread to guess from, a topic (`topic_id`) those of the topic. `habits`: the ways of this room.
    """
    if message.role in UNANSWERED:
        return _start(message)
    target = target or (window.find(message.reply_to) if message.reply_to else None)
    if target is not None and target.message.arrival != message.arrival:
        return _certain(window, message, target)
    in_root = message.root_id is not None and message.root_id != message.id
    among = _among(window, message, in_root=in_root)
    if model.kernel is not None:
        reading, at = window.read_to_link(message, features), message.at.timestamp()
        guess = model.kernel.guess(window, reading, message.sender_id, at, habits, among=among, never_new=in_root)
    else:
        seen = _only(view(window, message, features), window, among)
        guess = _guess(model, window, message, seen, habits, never_new=in_root)
    if guess is not None:
        return _guessed(message, guess)
    return _in_root(window, message) if in_root else _start(message)


def _guessed(message: StoredMessage, guess: Guess) -> Link:
    kind = LinkKind.NEW if guess.new >= 0.5 else LinkKind.GUESS
    return Link(
        kind=kind,
        thread=message.arrival if kind is LinkKind.NEW else guess.thread,
        parent=guess.parent,
        parent_probability=min(1.0, guess.chance),
        new_probability=guess.new,
        thread_candidates=guess.thread_candidates,
    )


def surprise(
    model: LinkModel, window: RoomWindow, message: StoredMessage, features: MessageFeatures, target: Entry
) -> npt.NDArray[np.float64] | None:
    """Ask the model as if it was not known that `message` answers `target`; return its errors (`calibration`), None
    where the target is not among those that it may choose from."""
    seen = _only(view(window, message, features), window, window.of_topic(message.topic_id))
    open_rows = (seen.open & (window.arrival[seen.rows] == target.message.arrival)).nonzero()[0]
    if not len(open_rows):
        return None
    chances, new = answers(model, seen)
    near = seen.rows - (window.end - SIZE)
    kin = seen.kin.take(near, 1).astype(np.float64)
    chances /= max(1.0 - new, _HARDLY)
    answered = int(open_rows[0])
    return np.concatenate((errors_of(chances, kin, kin[answered]), losses_of(chances, *_standing(seen), answered)))


def _start(message: StoredMessage) -> Link:
    return Link(kind=LinkKind.NEW, thread=message.arrival)


def _guess(
    model: LinkModel, window: RoomWindow, message: StoredMessage, seen: LinkView, habits: Habits, *, never_new: bool
) -> Guess | None:
    """Return what the message most likely answers, None if nothing can be answered. `never_new`: it certainly answers
    something."""
    if not np.count_nonzero(seen.open):
        return None
    chances, new = answers(model, seen)
    if never_new:
        chances, new = chances / max(np.add.reduce(chances), _HARDLY), 0.0
    chances = tempered(chances, habits.temperature)
    best = _answered(seen, chances, habits)
    row = seen.rows[best]
    return Guess(
        parent=int(window.arrival[row]),
        thread=int(window.thread[row]),
        chance=float(chances[best]),
        new=new,
        thread_candidates=_thread_candidates(window, message, spread(seen, chances)),
    )


def _answered(seen: LinkView, chances: npt.NDArray[np.float64], habits: Habits) -> int:
    """Return the candidate that is stated as answered: the likeliest one by the ways of the room."""
    if habits[1:] == USUAL[1:]:
        best = int(chances.argmax())
        if not seen.pairs[_MINE, best] or not seen.pairs[_OTHERS_SINCE, best] > 0.0:
            return best  # What is usual makes no candidate likelier.
    return int(weighted(chances, *_standing(seen), habits).argmax())


def _standing(seen: LinkView) -> tuple[Floats, Floats, Floats]:
    """Return the log of each candidate's distance, if it is the sender's own, and if also somebody spoke since."""
    away, others, mine = seen.pairs[_AWAY], seen.pairs[_OTHERS_SINCE], seen.pairs[_MINE]
    return away, mine, mine * (others > _NOTHING)


def _in_root(window: RoomWindow, message: StoredMessage) -> Link:
    """Return the link of a message in a platform thread, which is certain, of which nothing can be answered: to its
    newest message still in the window, as likely as any other one there. Which of them is answered stays a guess."""
    members = window.members_of_root(message.root_id)
    if not members:
        return _start(message)
    certain = _certain(window, message, members[-1])
    return replace(certain, kind=LinkKind.GUESS, parent_probability=1.0 / len(members))


def _among(window: RoomWindow, message: StoredMessage, *, in_root: bool) -> Flags | None:
    """Return which of the newest rows a message may answer; None for all."""
    among = window.of_topic(message.topic_id)
    if not in_root:
        return among
    assert message.root_id is not None
    rooted = window.of_root(message.root_id)
    return rooted if among is None else among & rooted


def _only(seen: LinkView, window: RoomWindow, among: Flags | None) -> LinkView:
    return seen if among is None else seen._replace(open=seen.open & among[seen.rows - (window.end - SIZE)])


def _thread_candidates(window: RoomWindow, message: StoredMessage, shares: Floats) -> ThreadCandidates:
    newest = slice(window.end - SIZE, window.end)
    now = message.at.timestamp()
    if window.alive < SIZE or not window.in_order(now):
        shares = shares * (window.at[newest] <= now)
    likely = likeliest(shares)
    parts = in_parts(shares.take(likely))
    found = ThreadCandidates.counted(window.arrival[newest].take(likely), parts)
    window.remember(found, likely, parts)
    return found


def link_as_corrected(window: RoomWindow, message: StoredMessage, target: Entry | None) -> Link:
    """Return the link of a message of which a person said that it answers `target`, or nothing."""
    if target is None:
        return Link(kind=LinkKind.CORRECTED, thread=message.arrival)
    return replace(_certain(window, message, target), kind=LinkKind.CORRECTED)


def likeliest(shares: Floats) -> Places:
    """Return where the shares are that are kept, ascending; of equal ones, the newest."""
    least = MIN_SHARE
    if len(shares) > MAX_THREAD_CANDIDATES:
        ordered = shares.copy()
        ordered.partition(-MAX_THREAD_CANDIDATES)
        least = max(least, ordered[-MAX_THREAD_CANDIDATES])
    likely = (shares >= least).nonzero()[0]
    if len(likely) > MAX_THREAD_CANDIDATES:
        equal = likely[shares[likely] == least]
        likely = np.setdiff1d(likely, equal[: len(likely) - MAX_THREAD_CANDIDATES], assume_unique=True)
    return likely


def _certain(window: RoomWindow, message: StoredMessage, target: Entry) -> Link:
    """Return the link of a platform reply. Its thread candidates are the target, those of the target, and the messages
    that have joined the target since."""
    thread_candidates = target.link.thread_candidates
    joined, joining = window.thread_candidates_of(target.message.arrival)
    arrivals = np.concatenate((thread_candidates.arrivals, [target.message.arrival], joined))
    shares = np.concatenate((thread_candidates.probabilities, [1.0], joining))
    shares = shares * (arrivals < message.arrival)
    likely = likeliest(shares)
    return Link(
        kind=LinkKind.PLATFORM,
        thread=target.link.thread,
        parent=target.message.arrival,
        parent_probability=1.0,
        new_probability=0.0,
        thread_candidates=ThreadCandidates.ascending(arrivals[likely], shares[likely]),
    )


def select(read_link: Link, max_messages: int) -> list[tuple[int, float]]:
    """Return (arrival, P(same thread)) of the earlier messages to show, likeliest first, the newer one among equals.

    The set with the highest expected F1 of at most `max_messages`: it ends where 2 * sum(p) / (size + sum of all p)
    peaks. It holds the likeliest parent unless something new is likelier. Who rather starts something new gets at most
    `MAX_FOR_NEW` messages, none less likely than `MIN_FOR_NEW`; that may be none.
    """
    mates = read_link.thread_candidates.by_arrival()
    likeliest = list(mates.items())[::-1]  # of equals, the newer one stays first
    likeliest.sort(key=itemgetter(1), reverse=True)
    shares = [share for _, share in likeliest]
    if read_link.kind is LinkKind.NEW:
        size = best_size(shares, min(max_messages, MAX_FOR_NEW))
        return [mate for mate in likeliest[:size] if mate[1] >= MIN_FOR_NEW]
    chosen = likeliest[: best_size(shares, max_messages)]
    parent = read_link.parent or 0
    if parent in mates and max_messages and parent not in [arrival for arrival, _ in chosen]:
        chosen = [*chosen[: max_messages - 1], (parent, mates[parent])]
    return chosen


def best_size(shares: Sequence[float], most: int, squared: float = 1.0) -> int:
    """Return how many of these, likeliest first, have the highest expected F-beta. `squared`: this beta, squared."""
    total, held, best, size = sum(shares), 0.0, 0.0, 0
    for count, share in enumerate(shares[:most], 1):
        held += share
        gain = held / (count + squared * total)
        if gain > best:
            best, size = gain, count
    return size
