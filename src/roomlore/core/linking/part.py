"""The part of a room that a viewer may see, told as if nothing else had been said there."""

from collections.abc import Container, Sequence
from dataclasses import replace

from roomlore.core.audience import Window, covers
from roomlore.core.linking.model import LinkModel
from roomlore.core.linking.room import RoomState
from roomlore.core.models import Entry, Origin, Room, StoredMessage


def is_seen(message: StoredMessage, windows: Sequence[Window]) -> bool:
    """Return True if the message was sent, and last edited, within these windows."""
    said = Origin(message.at, message.sender_id, message.edited_at)
    return covers(windows, said.first, said.last)


def pointers(messages: Sequence[StoredMessage]) -> set[str]:
    """Return the ids of other messages that these name."""
    return {name for one in messages for name in (one.reply_to, one.root_id) if name}


def told_alone(message: StoredMessage, arrival: int, seen: Container[str]) -> StoredMessage:
    """Return a message with its place among those that are seen, and without the ids of others. `seen`: the ids of
    those among its `pointers` that may be told."""
    return replace(
        message,
        arrival=arrival,
        reply_to=message.reply_to if message.reply_to in seen else None,
        root_id=message.root_id if message.root_id in seen else None,
    )


def linked_alone(model: LinkModel, messages: Sequence[StoredMessage]) -> list[Entry]:
    """Return the messages, in order of arrival, with features and links that follow from them alone: hidden messages
    had a say in the stored ones."""
    if not messages:
        return []
    first = messages[0]
    room = Room(tenant="", room_id=first.room_id, created_at=first.at, next_arrival=first.arrival)
    state = RoomState(model=model, room=room, participants={}, entries=(), learning=False)
    arrivals = state.begin((), ())
    for message in messages:
        arrivals.take(message)
    return arrivals.entries
