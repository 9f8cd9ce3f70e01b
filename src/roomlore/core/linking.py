"""Which earlier message does this one answer, and which share its thread."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roomlore.core.link_features import CANDIDATES, PAIR, SELF, View, view
from roomlore.core.link_window import SIZE, Floats, RoomWindow
from roomlore.core.mates import Mates
from roomlore.core.models import Entry, Link, LinkKind, MessageFeatures, Role, StoredMessage

__all__ = ["LinkModel", "RoomWindow", "answers", "link", "select"]

LEAST_SHARE = 0.01
MOST_MATES = 64


@dataclass(frozen=True, slots=True)
class LinkModel:
    """A feed-forward net that scores each candidate, and "starts something new" beside them.

    All float32. `pair` (hidden, len(PAIR)), `own` (hidden, len(SELF)) and `first` (hidden,) make the first layer, `inner`
    (inner, hidden) and `second` (inner,) the next, `out` (inner,) the score; `new_own`, `new_first` and `new_out` the
    score of something new.
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

    @classmethod
    def of(cls, arrays: Mapping[str, npt.NDArray[np.float32]]) -> "LinkModel":
        return cls(**{name: np.ascontiguousarray(arrays[name], np.float32) for name in cls.__slots__})

    def scores(self, seen: View) -> Floats:
        """Logits: one a candidate, the last one for something new; -inf for what may not be answered."""
        hidden = self.pair @ seen.pairs
        hidden += (self.own @ seen.own + self.first)[:, None]
        np.maximum(hidden, 0.0, out=hidden)
        hidden = self.inner @ hidden
        hidden += self.second[:, None]
        np.maximum(hidden, 0.0, out=hidden)
        logits = np.empty(CANDIDATES + 1, np.float32)
        logits[:-1] = np.where(seen.open, self.out @ hidden, -np.inf)
        logits[-1] = self.new_out @ np.maximum(self.new_own @ seen.own + self.new_first, 0.0) + self.new_bias[0]
        return logits


def answers(model: LinkModel, seen: View) -> tuple[npt.NDArray[np.float64], float]:
    """P(answers it) for each candidate, and P(starts something new); together 1."""
    logits = model.scores(seen).astype(np.float64)
    odds = np.exp(logits - logits.max())
    odds /= odds.sum()
    return odds[:-1], float(odds[-1])


def link(
    model: LinkModel,
    window: RoomWindow,
    message: StoredMessage,
    features: MessageFeatures,
    target: Entry | None = None,
) -> Link:
    """The place of `message` among the messages of the window, which end just before it.

    `target`: the stored message it replies to, where the platform says so and the message is known; the window is asked
    where it is not given. A platform thread (`root_id`) leaves only messages of that thread to choose from.
    """
    if message.role in (Role.SYSTEM, Role.TOOL):
        return Link(kind=LinkKind.NEW, thread=message.arrival)
    target = target or (window.find(message.reply_to) if message.reply_to else None)
    if target is not None and target.message.arrival != message.arrival:
        return _certain(message, target)
    seen = view(window, message, features)
    chances, new = answers(model, seen)
    if not seen.open.any():
        return Link(kind=LinkKind.NEW, thread=message.arrival)
    near = slice(window.end - CANDIDATES, window.end)
    best = int(chances.argmax())
    kind = LinkKind.NEW if new >= chances[best] else LinkKind.GUESS
    parent = int(window.arrival[near][best])
    thread = message.arrival if kind is LinkKind.NEW else window.thread[near][best]
    return Link(
        kind=kind, thread=int(thread), parent=parent, parent_probability=float(chances[best]), new_probability=new,
        mates=_spread(window, chances),
    )  # fmt: skip


def _spread(window: RoomWindow, chances: npt.NDArray[np.float64]) -> Mates:
    """P(same thread) for every message of the window: through whichever candidate is answered."""
    every = slice(window.end - SIZE, window.end)
    near = slice(window.end - CANDIDATES, window.end)
    odds = chances.astype(np.float32)
    shares = odds @ window.mates[near, every] + window.mates[every, near] @ odds
    shares[-CANDIDATES:] -= odds
    likely = np.flatnonzero((shares >= LEAST_SHARE) & (window.sender[every] >= 0))
    if len(likely) > MOST_MATES:
        likely = np.sort(likely[np.argsort(-shares[likely], kind="stable")[:MOST_MATES]])
    return Mates.of(window.arrival[every][likely], shares[likely])


def _certain(message: StoredMessage, target: Entry) -> Link:
    """A platform reply: the target, and with it the target's mates."""
    mates = target.link.mates
    arrivals = np.append(mates.arrivals, target.message.arrival)
    shares = np.append(mates.probabilities, 1.0)
    earlier = arrivals < message.arrival
    return Link(
        kind=LinkKind.PLATFORM,
        thread=target.link.thread,
        parent=target.message.arrival,
        parent_probability=1.0,
        new_probability=0.0,
        mates=Mates.of(arrivals[earlier], shares[earlier]),
    )


def select(found: Link, max_messages: int) -> list[tuple[int, float]]:
    """(arrival, P(same thread)) of the mates to show, likeliest first: the set with the highest expected F1."""
    order = np.argsort(-found.mates.probabilities, kind="stable")[:max_messages]
    shares = found.mates.probabilities[order]
    if not len(order):
        return []
    gains = 2 * np.cumsum(shares) / (np.arange(1, len(order) + 1) + found.mates.probabilities.sum())
    size = int(gains.argmax()) + 1
    chosen = [(int(found.mates.arrivals[place]), float(found.mates.probabilities[place])) for place in order[:size]]
    return chosen
