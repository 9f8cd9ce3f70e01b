"""Messages in the bodies of requests."""

from collections.abc import Mapping
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message
from roomlore.core.records import from_record, parse_time, with_own_names

_TIME = "sent_at"


def read_message(record: Any) -> Message:
    """Return the message of a JSON object, whose fields may have their other names. Raise `InvalidInput`, also for a
    time that cannot be read: who sends it can mend it, and an estimated time would hide the mistake."""
    if not isinstance(record, Mapping):
        return from_record(record).message
    named = with_own_names(record)
    message = from_record(named).message
    given = named.get(_TIME)
    if given is not None and parse_time(given) is None:
        raise InvalidInput(
            f"{_TIME} is {given!r:.60}; give ISO 8601 such as 2024-05-01T12:30:00Z or a Unix time, or leave it out."
        )
    return message
