"""Events of AstrBot as messages of roomlore: who said what, in which room, in answer to what."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from roomlore import Message
from roomlore_importers import onebot_message, onebot_recall

ONEBOT = "aiocqhttp"


def person_of(platform: str, sender_id: str) -> str:
    """Return the id of a person. QQ numbers stay as they are, as imports store them; ids of other platforms get the
    platform's name, since two platforms may give the same number to two people."""
    return sender_id if platform == ONEBOT else f"{platform}:{sender_id}"


def message_of(event: Any) -> Message | None:
    """Return the message of an event. None for a notice, and for what the bot said, which is stored as a reply."""
    raw = event.message_obj.raw_message
    if _is_onebot(raw):
        if raw["post_type"] != "message" or str(raw.get("user_id")) == str(raw.get("self_id")):
            return None
        message = onebot_message(raw)
        return message and replace(message, room_id=event.unified_msg_origin)
    if not event.get_sender_id() or event.get_sender_id() == event.get_self_id():
        return None
    return _from_parts(event)


def recall_of(event: Any) -> str | None:
    """Return the id of the message that the event says was recalled, None for any other event."""
    raw = event.message_obj.raw_message
    recalled = onebot_recall(raw) if _is_onebot(raw) else None
    return recalled[1] if recalled else None


def _is_onebot(raw: Any) -> bool:
    return isinstance(raw, Mapping) and isinstance(raw.get("post_type"), str)


def _from_parts(event: Any) -> Message | None:
    """Return the message made of AstrBot's own parts, for platforms other than OneBot."""
    said, platform = event.message_obj, event.get_platform_name()
    parts = [(type(part).__name__, part) for part in said.message]
    text = "".join(_text_of(kind, part) for kind, part in parts).strip()
    if not said.message_id or not text:
        return None
    mentions = (str(part.qq) for kind, part in parts if kind == "At")
    replied = next((str(part.id) for kind, part in parts if kind == "Reply" and part.id), None)
    return Message(
        id=str(said.message_id),
        room_id=event.unified_msg_origin,
        sender_id=person_of(platform, str(event.get_sender_id())),
        sender_name=event.get_sender_name(),
        text=text,
        sent_at=datetime.fromtimestamp(said.timestamp, UTC) if said.timestamp else None,
        reply_to=replied,
        mentions=tuple(dict.fromkeys(person_of(platform, one) for one in mentions if one != "all")),
    )


_SHOWN = {
    "Image": "[图片]",
    "Record": "[语音]",
    "Video": "[视频]",
    "File": "[文件]",
    "Face": "[表情]",
    "AtAll": "@全体成员 ",
}


def _text_of(kind: str, part: Any) -> str:
    if kind == "Plain":
        return str(part.text)
    if kind == "At":
        return f"@{getattr(part, 'name', '') or part.qq} "
    # A quoted text belongs to its author, who said it before.
    return _SHOWN.get(kind, "")
