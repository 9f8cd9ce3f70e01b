"""Events of LangBot as messages of roomlore: who said what, in which room, in answer to what."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_SHOWN = {
    "Image": "[图片]", "Voice": "[语音]", "File": "[文件]", "Face": "[表情]", "AtAll": "@全体成员 ",
    "Forward": "[合并转发]", "WeChatEmoji": "[表情]", "WeChatLink": "[链接]", "WeChatFile": "[文件]",
    "WeChatMiniPrograms": "[小程序]",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Heard:
    """A message, and whom it can be shown to: `kind` is that of the room."""

    message: dict[str, Any]
    kind: str
    agent_id: str


def query_of(ctx: Any) -> str:
    """Return what names a request of LangBot, from its message to its answer."""
    return str(ctx.query_uuid or ctx.query_id)


def heard_of(event: Any, bot: str) -> Heard | None:
    """Return the message of an event, None if it has no text. A person is the same in groups and alone, as far as one
    bot knows; two bots may give the same number to two people."""
    text = _text(event.message_chain)
    if not text:
        return None
    group = event.launcher_type == "group"
    source = event.message_chain.source
    sender = event.message_event.sender
    sent_at = source.time.astimezone(UTC) if source else datetime.now(UTC)
    message_id = str(source.id) if source else f"{event.sender_id}-{sent_at.timestamp()}"
    message = {
        "id": message_id,
        "room_id": f"langbot:{bot}:{event.launcher_type}:{event.launcher_id}",
        "sender_id": person_id(bot, event.sender_id),
        "sender_name": str(sender.get_name() or ""),
        "text": text,
        "sent_at": sent_at.isoformat(),
        "mentions": list(dict.fromkeys(person_id(bot, one) for one in _mentioned(event.message_chain))),
    }
    quoted = next((one.id for one in event.message_chain if one.type == "Quote" and one.id), None)
    if quoted is not None:
        message["reply_to"] = str(quoted)
    return Heard(message, "private" if group else "direct", f"langbot:{bot}")


def person_id(bot: str, user: Any) -> str:
    """Return the id of a person."""
    return f"langbot:{bot}:{user}"


def _text(chain: Iterable[Any]) -> str:
    return "".join(_shown(one) for one in chain).strip()


def _shown(component: Any) -> str:
    if component.type == "Plain":
        return str(component.text)
    if component.type == "At":
        return f"@{component.display or component.target} "
    # A quoted text belongs to its author, who said it before.
    return _SHOWN.get(component.type, "")


def _mentioned(chain: Iterable[Any]) -> list[Any]:
    return [one.target for one in chain if one.type == "At"]
