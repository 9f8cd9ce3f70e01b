"""A message that an export has again, compared with the stored one that has its id and another content."""

from datetime import datetime
from enum import Enum, auto

from roomlore.core.intake import is_estimated
from roomlore.core.json_values import texts_in
from roomlore.core.models import Message, StoredMessage
from roomlore.core.privacy import has_mark


class Again(Enum):
    """What the message of the export is to the stored one. `REDACTED`: words of a forgotten person were removed from
    the stored one. `OTHER`: another message."""

    REDACTED = auto()
    OTHER = auto()


def compared(stored: StoredMessage, message: Message) -> Again:
    """Return what a message of an export is to the stored one with its id and another content."""
    if stored.sender_id != message.sender_id or not _same_time(_told(stored), _told(message)):
        return Again.OTHER
    if any(map(has_mark, (stored.text, *texts_in(stored.metadata)))):
        return Again.REDACTED
    return Again.OTHER


def _told(message: Message) -> datetime | None:
    """Return when the message was sent, None if that is an estimate."""
    return None if is_estimated(message) else message.sent_at


def _same_time(one: datetime | None, other: datetime | None) -> bool:
    return one is None or other is None or one == other
