"""Messages as a program hands them in that knows no ids, senders, times or turns, made ready to be stored."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role

_OPENING = (Role.USER, Role.SYSTEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Messages for one conversation. `turn_id`: the turn that goes on until a user speaks, None for none."""

    conversation_id: str
    messages: Sequence[Message]
    user_id: str
    agent_code: str
    turn_id: str | None
    now: datetime
    new_id: Callable[[], str]

    def completed(self) -> list[Message]:
        """The messages with what they lacked: id, room, sender, time and turn. `InvalidInput` for one of elsewhere."""
        return [self._complete(message) for message in self._in_turns()]

    def _in_turns(self) -> Iterator[Message]:
        """A user begins a turn, with the users' and the system's messages right beside; what follows belongs to it."""
        turn = self.turn_id
        for opening, group in groupby(self.messages, key=_opens):
            said = list(group)
            if opening and any(message.role == Role.USER for message in said):
                turn = self.new_id()
            yield from (message if message.turn_id else replace(message, turn_id=turn) for message in said)

    def _complete(self, message: Message) -> Message:
        if message.room_id not in ("", self.conversation_id):
            raise InvalidInput(f"Message {message.id!r:.60} is of room {message.room_id!r:.60}; give one call a room.")
        return replace(
            message,
            id=message.id or self.new_id(),
            room_id=self.conversation_id,
            sender_id=message.sender_id or self._sender(message.role),
            sent_at=message.sent_at or self.now,
        )

    def _sender(self, role: Role) -> str:
        named = {"user": self.user_id, "assistant": self.agent_code}
        return named.get(str(role)) or str(role)


def joins_a_turn(messages: Sequence[Message]) -> bool:
    """Whether the first of the messages belongs to a turn that began before; `InvalidInput` where they are none."""
    if not messages:
        raise InvalidInput("Give at least one message.")
    for place, message in enumerate(messages):
        if not isinstance(message, Message):
            raise InvalidInput(f"Item {place} of the batch is no roomlore.Message but a {type(message).__name__}.")
    first = next(groupby(messages, key=_opens))
    return not (first[0] and any(message.role == Role.USER for message in first[1]))


def _opens(message: Message) -> bool:
    return message.role in _OPENING
