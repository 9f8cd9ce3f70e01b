"""Limits of a tenant: how much it may use, and what a refusal says."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta

from roomlore.core.errors import InvalidInput, QuotaExceeded, TokensExceeded
from roomlore.core.texts import Phrase

MESSAGES, TOKENS, KEPT, REQUESTS = "messages_a_day", "model_tokens_a_day", "messages_kept", "requests_a_minute"
ATTACHMENTS, ATTACHMENT_BYTES = "attachments_a_day", "attachment_bytes_a_day"
MOST = 1_000_000_000_000
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)
_BLOCKS = 50
_ALLOWED: Mapping[str, str] = {
    MESSAGES: "quota_messages",
    TOKENS: "quota_tokens",
    KEPT: "quota_kept",
    REQUESTS: "quota_requests",
    ATTACHMENTS: "quota_attachments",
    ATTACHMENT_BYTES: "quota_attachment_bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """The limits of a tenant; None: no limit. Days and minutes are those of UTC."""

    messages_a_day: int | None = None
    model_tokens_a_day: int | None = None
    messages_kept: int | None = None
    requests_a_minute: int | None = None
    attachments_a_day: int | None = None
    attachment_bytes_a_day: int | None = None

    def overridden(self, limits: Mapping[str, int | None]) -> "Quotas":
        """Return these limits with others in place of some. Names that are unknown, since a newer roomlore wrote them,
        are skipped."""
        return replace(self, **{name: most for name, most in limits.items() if name in LIMITS})


LIMITS: tuple[str, ...] = tuple(field.name for field in fields(Quotas))


@dataclass(frozen=True, slots=True)
class Standing:
    """The use of one limit. `most`: None if there is no limit, and then `used` is None where nothing is counted.
    `resets_at`: None for a limit that is not reset by time. `own`: the limit is the tenant's own, not that of the
    settings."""

    limit: str
    used: int | None
    most: int | None
    resets_at: datetime | None
    own: bool


def check_limits(limits: Mapping[str, int | None]) -> None:
    """Raise `InvalidInput` if a limit is unknown or out of range."""
    for name, most in limits.items():
        if name not in LIMITS:
            raise InvalidInput("quota_unknown", name=f"{name!r:.60}", known=", ".join(LIMITS))
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= MOST):
            raise InvalidInput("quota_invalid", name=name, value=f"{most!r:.60}", most=MOST)


def period_of(limit: str, now: datetime) -> tuple[datetime, datetime | None]:
    """Return when the limit's current period began, and when the next one begins; None if it has no periods."""
    now = now.astimezone(UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if limit == REQUESTS:
        begun = now.replace(second=0, microsecond=0)
        return begun, begun + _MINUTE
    return day, None if limit == KEPT else day + _DAY


def block_of(most: int) -> int:
    """Return how many requests a process takes at a time from what is left: so many that it rarely asks the database,
    and so few that those it does not use are not missed."""
    return max(1, most // _BLOCKS)


def exceeded(limit: str, *, used: int, wanted: int, most: int, now: datetime) -> QuotaExceeded:
    """Return the error about a limit that does not allow `wanted` more."""
    resets_at = period_of(limit, now)[1]
    wait = None if resets_at is None else max((resets_at - now).total_seconds(), 0.0)
    kind = TokensExceeded if limit == TOKENS else QuotaExceeded
    text = Phrase(
        "quota_used_up_by_more" if wanted > 1 and used < most else "quota_used_up",
        used=f"{used:,}",
        allowed=Phrase(_ALLOWED[limit], count=f"{most:,}"),
        limit=limit,
        more=f"{wanted:,}",
        advice=_advice(wanted, most, resets_at),
    )
    return kind(
        text,
        limit=limit,
        used=used,
        most=most,
        resets_at=resets_at,
        wait_seconds=wait,
    )


def _advice(wanted: int, most: int, resets_at: datetime | None) -> Phrase:
    if resets_at is None:
        return Phrase("quota_advice_delete")
    if wanted > most:
        return Phrase("quota_advice_fewer")
    return Phrase("quota_advice_wait", time=f"{resets_at:%Y-%m-%d %H:%M}")


def import_stopped(refused: QuotaExceeded, *, added: int) -> QuotaExceeded:
    """Return the error about an import that this refusal stopped. `added`: the messages that it has stored."""
    text = Phrase(
        "import_stopped_by_kept_quota" if refused.resets_at is None else "import_stopped_by_quota",
        allowed=Phrase(_ALLOWED[refused.limit], count=f"{refused.most:,}"),
        limit=refused.limit,
        added=f"{added:,}",
        time=f"{refused.resets_at:%Y-%m-%d %H:%M}" if refused.resets_at else "",
    )
    return QuotaExceeded(
        text,
        limit=refused.limit,
        used=refused.used,
        most=refused.most,
        resets_at=refused.resets_at,
        wait_seconds=refused.wait_seconds,
    )
