"""Errors of providers in roomlore's own words: a provider's text may quote the conversation or the key."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from roomlore.core.chat import Offer
from roomlore.core.errors import Cause, ModelUnavailable
from roomlore.core.texts import Phrase

_CAUSES: Mapping[int, Cause] = {408: "timeout", 429: "limited", 504: "timeout"}
_ADVICE: Mapping[int, str] = {
    400: "advice_check_request",
    402: "advice_no_credit",
    404: "advice_check_address",
    413: "advice_too_long",
    422: "advice_check_request",
    429: "advice_limit_reached",
}


def of_status(
    offer: Offer, status: int, headers: Mapping[str, str] | None = None, *, now: datetime
) -> ModelUnavailable:
    """Return the error for an HTTP status. `now`: the time that a `Retry-After` with a date is compared with."""
    cause = _CAUSES.get(status, "refused" if 300 <= status < 500 else "broken")
    wait = wait_seconds(headers or {}, now=now)
    return _failed(offer, "provider_status", cause, wait, status=status, advice=_advice(offer, status))


def late(offer: Offer, seconds: float) -> ModelUnavailable:
    return _failed(offer, "provider_late", "timeout", seconds=f"{seconds:g}")


def unreachable(offer: Offer) -> ModelUnavailable:
    return _failed(offer, "provider_unreachable", "unreachable")


def dropped(offer: Offer) -> ModelUnavailable:
    return _failed(offer, "provider_broke_off", "dropped")


def broken(offer: Offer, how: str) -> ModelUnavailable:
    return _failed(offer, "provider_broken", "broken", how=how)


def bad_key(offer: Offer) -> ModelUnavailable:
    return _failed(offer, "provider_key_invalid", "refused", variable=offer.provider.key_variable)


def bad_address(offer: Offer) -> ModelUnavailable:
    return _failed(offer, "provider_address_invalid", "refused")


def wait_seconds(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the pause in seconds that a provider asks for, at least 0; None if it gives none or an unreadable one.

    `retry-after-ms` is in milliseconds; `retry-after` in seconds or a date.
    """
    thousandths = _number(headers.get("retry-after-ms"))
    if thousandths is not None:
        return max(thousandths / 1000, 0.0)
    after = headers.get("retry-after")
    seconds = _number(after)
    if seconds is None:
        seconds = _until(after, now)
    return None if seconds is None else max(seconds, 0.0)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _until(text: str | None, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - now).total_seconds()


def _advice(offer: Offer, status: int) -> Phrase:
    if 300 <= status < 400:
        return Phrase("advice_redirects")
    if status in (401, 403):
        variable = offer.provider.key_variable
        return Phrase("advice_check_key", variable=variable) if variable else Phrase("advice_name_key")
    return Phrase(_ADVICE.get(status, "advice_try_later"))


def _failed(offer: Offer, code: str, cause: Cause, wait: float | None = None, **fields: object) -> ModelUnavailable:
    return ModelUnavailable(code, cause=cause, wait_seconds=wait, provider=offer.provider.name, **fields)
