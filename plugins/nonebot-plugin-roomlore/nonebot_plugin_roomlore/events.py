"""Events of NoneBot's OneBot v11 adapter as OneBot sends them, before NoneBot takes quotes and mentions out."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nonebot.adapters.onebot.v11 import Event, Message, MessageEvent, MessageSegment

_SENDS = {"send_msg", "send_group_msg", "send_private_msg"}


def raw_of(event: Event) -> dict[str, Any]:
    """Return the event as OneBot sent it."""
    raw = event.model_dump()
    if isinstance(event, MessageEvent):
        raw["message"] = segments(event.original_message)
    return raw


def segments(message: Any) -> list[dict[str, Any]] | str:
    """Return a message in OneBot's array form; a text may hold CQ codes and stays."""
    if isinstance(message, MessageSegment):
        message = Message(message)
    if isinstance(message, Message):
        return [{"type": one.type, "data": dict(one.data)} for one in message]
    return message if isinstance(message, (list, str)) else str(message)


def sent(
    self_id: str, api: str, data: Mapping[str, Any], result: Any, answering: MessageEvent | None
) -> dict[str, Any] | None:
    """Return the event of a message that the bot sent, None for another call. If it quotes nothing, it answers the
    message that is being handled, if that is of the same room."""
    message_id = result.get("message_id") if isinstance(result, Mapping) else None
    if api not in _SENDS or message_id is None:
        return None
    group, user = data.get("group_id"), data.get("user_id")
    raw: dict[str, Any] = {
        "time": int(datetime.now(UTC).timestamp()),
        "self_id": int(self_id),
        "post_type": "message_sent",
        "message_id": message_id,
        "user_id": int(self_id),
        "message": segments(data.get("message", "")),
        "sender": {},
    }
    raw |= {"message_type": "group", "group_id": group} if group else {"message_type": "private", "target_id": user}
    if answering is not None and _same_room(answering, group, user):
        raw["roomlore_answers"] = str(answering.message_id)
    return raw


def _same_room(event: MessageEvent, group: Any, user: Any) -> bool:
    of_event = getattr(event, "group_id", None)
    return str(of_event) == str(group) if of_event or group else str(event.user_id) == str(user)
