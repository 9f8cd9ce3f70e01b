"""What makes two hand-ins of a message the same message: a hash of the caller's own content."""

import hashlib
import json
from datetime import UTC, datetime

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, StoredMessage


def content_hash(message: Message) -> str:
    """SHA-256 (64 hex digits) of everything the caller said.

    Arrival, tokens and edits do not count, and an estimated `sent_at` counts as missing, so a stored message hashes as
    the one handed in. A naive time counts as UTC. `InvalidInput` where the metadata is not JSON.
    """
    try:
        canonical = _ENCODE([_said_at(message), *_content(message)])
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput(f"The metadata of message {message.id!r} is not JSON: {exc}") from exc
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _content(message: Message) -> list[object]:
    return [
        message.id,
        message.room_id,
        message.sender_id,
        message.sender_name,
        message.role.value,
        message.text,
        message.reply_to,
        message.root_id,
        message.mentions,
        message.has_tool_calls,
        message.turn_id,
        dict(message.metadata),
    ]


def _said_at(message: Message) -> str | None:
    if message.sent_at is None or (isinstance(message, StoredMessage) and message.sent_at_estimated):
        return None
    return _utc(message.sent_at).isoformat()


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
