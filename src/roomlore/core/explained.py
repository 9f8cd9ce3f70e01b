"""What was weighed for the context of a message: what each strategy takes, and what it leaves and why."""

from dataclasses import dataclass
from typing import Literal

from roomlore.core.models import Entry, Signals, StoredMessage

Left = Literal["", "below", "crowded", "unlikely", "unseen"]
"""Why a message was left: a score below the threshold, enough better ones, more likely to hurt than to help, or no sign
that it belongs there. '' for what was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """An earlier message. `score`: in [0, 1], the probability for `threaded`, the weighted sum for `weighted`, None
    where the strategy gives none. `reason`: why it was taken, '' where it was left."""

    message: StoredMessage
    score: float | None = None
    signals: Signals | None = None
    reason: str = ""
    left: Left = ""

    @property
    def taken(self) -> bool:
        return not self.left


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What one strategy makes of a message, its candidates in people's order.

    `in_force`: whether it is the one that the room goes by. `tokens`: of the texts taken; `window_tokens`,
    `window_messages`: what the plain window would have cost. `threshold`: the least score, None but for `weighted`.
    """

    target: Entry
    strategy: str
    in_force: bool
    weighed: tuple[Weighed, ...]
    tokens: int
    window_tokens: int
    window_messages: int
    threshold: float | None = None

    @property
    def taken(self) -> tuple[Weighed, ...]:
        return tuple(one for one in self.weighed if one.taken)
