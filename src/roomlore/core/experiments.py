"""Experiments: the arm of a room, the figures of each arm, and usage records as rows for training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.models import ContextUsageRecord, Entry
from roomlore.core.records import to_record

SHARE = "share"
"""The name beside an arm's settings that gives its share of the rooms."""
MAX_SHARE = 1_000_000
MAX_DAYS = 36_500
"""The most days of usage records that can be asked for."""
_SURE = 1.96
"""Standard errors on each side of a mean that hold it in 95 of 100 samples."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Settings that are tried in a share of the rooms. `share`: relative to the shares of the other arms."""

    name: str
    share: float
    settings: Mapping[str, Any]


class Experiment:
    """Arms, between which rooms are split by hash. Without arms no room is in one."""

    def __init__(self, arms: Mapping[str, Mapping[str, Any]]) -> None:
        """Raise `InvalidInput` for a bad share."""
        self.arms = tuple(_arm(name, given) for name, given in sorted(arms.items()))
        self._total = sum(arm.share for arm in self.arms)
        self._compared = {setting for arm in self.arms for setting in arm.settings}
        if self.arms and not self._total:
            raise InvalidInput("arm_shares_zero")

    def arm_of(self, tenant: str, room_id: str, *, given: Mapping[str, Any]) -> Arm | None:
        """Return the arm of a room, the same in every process. `given`: what the call sets itself: a call that sets
        what the arms compare is in none."""
        if not self.arms or self._compared & given.keys():
            return None
        digest = sha256(f"{tenant}\x00{room_id}".encode("utf-8", "surrogatepass")).digest()
        place, reached = int.from_bytes(digest[:8]) / 2**64 * self._total, 0.0
        for arm in self.arms:
            reached += arm.share
            if place < reached:
                return arm
        return next(arm for arm in reversed(self.arms) if arm.share)


def _arm(name: str, given: Mapping[str, Any]) -> Arm:
    share = given.get(SHARE, 1)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= MAX_SHARE:
        raise InvalidInput("arm_share_invalid", arm=repr(name), value=f"{share!r:.60}", most=MAX_SHARE)
    return Arm(name, float(share), {setting: value for setting, value in given.items() if setting != SHARE})


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSelection:
    """A selection of usage records. `arm`, `room_id`: None for all. `judged`: only those with feedback as a number.
    `since`: made at or after this time."""

    room_id: str | None = None
    arm: str | None = None
    judged: bool = False
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSums:
    """The sums over the records of an arm. `scored`: records with a mean score."""

    arm: str | None
    contexts: int
    rooms: int
    tokens: int
    window_tokens: int
    build_ms: float
    scored: int
    scores: float
    degraded: int
    answered: int
    judged: int
    success: float
    success_squares: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmReport:
    """The figures of an arm; `arm` is None for rooms outside an experiment.

    `tokens`, `window_tokens`, `build_ms`: means of a context. `token_savings`: the share of the plain window's tokens
    that was saved. `mean_score`: of contexts that chose something. `degraded`, `answered`: shares of the contexts.
    `judged`: the number of contexts with feedback as a number, `success` its mean. `success_margin`: the mean lies this
    near to it with a probability of 95 % if each feedback stands for itself; None below two.
    """

    arm: str | None
    contexts: int
    rooms: int
    tokens: float
    window_tokens: float
    token_savings: float | None
    build_ms: float
    mean_score: float | None
    degraded: float
    answered: float
    judged: int
    success: float | None
    success_margin: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """The figures of each arm for the contexts that were built at or after `since`."""

    since: datetime
    until: datetime
    arms: tuple[ArmReport, ...]


def arm_report(sums: ArmSums) -> ArmReport:
    """Return the figures of an arm with at least one context."""
    contexts = sums.contexts
    return ArmReport(
        arm=sums.arm,
        contexts=contexts,
        rooms=sums.rooms,
        tokens=sums.tokens / contexts,
        window_tokens=sums.window_tokens / contexts,
        token_savings=1 - sums.tokens / sums.window_tokens if sums.window_tokens else None,
        build_ms=sums.build_ms / contexts,
        mean_score=sums.scores / sums.scored if sums.scored else None,
        degraded=sums.degraded / contexts,
        answered=sums.answered / contexts,
        judged=sums.judged,
        success=sums.success / sums.judged if sums.judged else None,
        success_margin=_margin(sums.judged, sums.success, sums.success_squares),
    )


@dataclass(frozen=True, slots=True)
class FeedbackDifference:
    """By how much the mean feedback of an arm lies above that of another one. `margin`: the difference of the means
    lies this near to it with a probability of 95 %."""

    arm: ArmReport
    base: ArmReport
    by: float
    margin: float

    @property
    def is_clear(self) -> bool:
        return abs(self.by) > self.margin


def feedback_differences(report: UsageReport, *, base: str | None = None) -> list[FeedbackDifference]:
    """Return how the feedback of each arm differs from that of the arm `base`, by default of the first one; empty if
    fewer than two arms have a margin."""
    known = [arm for arm in report.arms if arm.arm is not None and arm.success_margin is not None]
    if len(known) < 2:
        return []
    first = next((arm for arm in known if arm.arm == base), known[0])
    return [_difference(arm, first) for arm in known if arm is not first]


def _difference(arm: ArmReport, base: ArmReport) -> FeedbackDifference:
    assert arm.success is not None
    assert base.success is not None
    margin = math.hypot(arm.success_margin or 0.0, base.success_margin or 0.0)
    return FeedbackDifference(arm, base, arm.success - base.success, margin)


def _margin(count: int, total: float, squares: float) -> float | None:
    if count < 2:
        return None
    variance = max(squares - total * total / count, 0.0) / (count - 1)
    return _SURE * math.sqrt(variance / count)


def training_row(record: ContextUsageRecord, entries: Sequence[Entry]) -> dict[str, Any] | None:
    """Return a usage record as JSON values with the messages as they are now: for each its features and its score.

    `entries`: those of the record's messages that still exist. None if the message that the context was built for does
    not: it was deleted, or its sender was forgotten.
    """
    known = {entry.message.id: entry for entry in entries}
    trigger = known.get(record.trigger_message_id)
    if trigger is None:
        return None
    chosen = [known[message_id] for message_id in record.context_message_ids if message_id in known]
    return {
        "context_id": record.context_id,
        "room_id": record.room_id,
        "created_at": record.created_at.isoformat(),
        "strategy": record.strategy,
        "arm": record.arm,
        "degraded": record.degraded,
        "tokens": record.tokens,
        "window_tokens": record.window_tokens,
        "build_ms": record.build_ms,
        "message": _with_features(trigger),
        "context": [
            {**_with_features(entry), "score": record.relevance_scores.get(entry.message.id)} for entry in chosen
        ],
        "gone": len(record.context_message_ids) - len(chosen),
        "llm_response": record.llm_response,
        "user_feedback": record.user_feedback,
        "success_indicator": record.success_indicator,
    }


def _with_features(entry: Entry) -> dict[str, Any]:
    features = entry.features
    return {
        **to_record(entry.message),
        "message_type": str(features.message_type),
        "keywords": list(features.keywords),
        "addressed": list(features.addressed),
    }
