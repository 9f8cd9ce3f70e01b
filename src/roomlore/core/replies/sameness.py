"""Whether a message handed in for a reply is the one that is stored."""

from dataclasses import replace

from roomlore.core.identity import content_hash
from roomlore.core.intake import normalised
from roomlore.core.models import Message, StoredMessage


def is_same(stored: StoredMessage, given: Message) -> bool:
    """Whether they say the same. A turn or a time that one of them lacks counts as the other's: a bot may have stored
    the message before it asks for a reply, or its session gave it what it lacked."""
    turn = given.turn_id if stored.turn_id and given.turn_id else stored.turn_id
    timeless = given.sent_at is None or stored.sent_at_estimated
    sent_at = stored.sent_at if timeless else given.sent_at
    completed = replace(given, turn_id=turn, sent_at=sent_at)
    if isinstance(completed, StoredMessage):
        completed = replace(completed, sent_at_estimated=False)
    return content_hash(normalised(completed)) == content_hash(replace(stored, sent_at_estimated=False))
