"""Errors of providers in roomlore's own words: a provider's text may quote the conversation or the key."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from roomlore.core.chat import Offer
from roomlore.core.errors import Cause, ModelUnavailable

_CAUSES: Mapping[int, Cause] = {408: "timeout", 429: "limited", 504: "timeout"}
_ADVICE: Mapping[int, str] = {
    400: "check its model_id and what was asked of it",
    402: "the account has no credit",
    404: "check its base_url (it mostly ends in /v1) and model_id",
    413: "what was asked is too long for it",
    422: "check its model_id and what was asked of it",
    429: "the account's limit is reached; wait, or raise it",
}


def of_status(
    offer: Offer, status: int, headers: Mapping[str, str] | None = None, *, now: datetime
) -> ModelUnavailable:
    """Return the error for an HTTP status. `now`: the time that a `Retry-After` with a date is compared with."""
    cause = _CAUSES.get(status, "refused" if 300 <= status < 500 else "broken")
    wait = wait_seconds(headers or {}, now=now)
    return _told(offer, f"answers with HTTP {status}: {_advice(offer, status)}", cause, wait)


def late(offer: Offer, seconds: float) -> ModelUnavailable:
    return _told(offer, f"did not answer within {seconds:g} s: try later, or raise model_timeout_seconds", "timeout")


def unreachable(offer: Offer) -> ModelUnavailable:
    return _told(offer, "cannot be reached: check its base_url and the network", "unreachable")


def dropped(offer: Offer) -> ModelUnavailable:
    return _told(offer, "broke off in the middle: try again", "dropped")


def broken(offer: Offer, how: str) -> ModelUnavailable:
    return _told(offer, f"{how}: try again later, or check that its base_url speaks OpenAI's protocol", "broken")


def bad_key(offer: Offer) -> ModelUnavailable:
    what = f"has a key that cannot be sent: {offer.provider.key_variable} must be printable ASCII"
    return _told(offer, what, "refused")


def bad_address(offer: Offer) -> ModelUnavailable:
    return _told(offer, "has a base_url that is no address: mend it under `providers:`", "refused")


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


def _advice(offer: Offer, status: int) -> str:
    if 300 <= status < 400:
        return "redirects are not followed; set its base_url to the address of the server itself"
    return _key_advice(offer) if status in (401, 403) else _ADVICE.get(status, "try again later")


def _key_advice(offer: Offer) -> str:
    variable = offer.provider.key_variable
    return f"check the key in {variable}" if variable else "it wants a key: name its key_variable under `providers:`"


def _told(offer: Offer, what: str, cause: Cause, wait: float | None = None) -> ModelUnavailable:
    return ModelUnavailable(f"The provider {offer.provider.name} {what}.", cause=cause, wait_seconds=wait)
