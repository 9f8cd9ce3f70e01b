"""WeCom's message archive: one decrypted record a line, as the platform's documentation lists them."""

from collections.abc import Iterator
from typing import Any

from roomlore.core.audience import RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.records import Item, Parsed, Position, parse_time
from roomlore_importers.export_files import Options, Source
from roomlore_importers.json_stream import Member, parse_object, read_json_lines
from roomlore_importers.shapes import first_name, joined, kept, labelled, name, obj, objects, words

_LABELS = {
    "image": "图片", "voice": "语音", "video": "视频", "file": "文件", "emotion": "表情", "card": "名片",
    "location": "位置", "link": "链接", "weapp": "小程序", "chatrecord": "聊天记录", "todo": "待办", "vote": "投票",
    "collect": "填表", "redpacket": "红包", "external_redpacket": "红包", "meeting": "会议", "docmsg": "在线文档",
    "news": "图文", "calendar": "日程", "mixed": "", "meeting_voice_call": "语音通话", "voip_doc_share": "共享文档",
    "sphfeed": "视频号", "qydiskfile": "微盘文件", "voiptext": "通话",
}  # fmt: skip
_TITLES = (
    "title",
    "filename",
    "votetitle",
    "topic",
    "room_name",
    "corpname",
    "address",
    "displayname",
    "wish",
    "doc_title",
)
_OTHER_KEYS = ("info", "doc", "redpacket")
"""Where the platform puts the content of a kind that has no key of its own, such as markdown, news and documents."""
_ROBOT = "wb"
"""The beginning of a robot's id."""


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of all chats. The room is the group's id, or the ids of the people of a chat without one.

    A recall deletes its message; records of switching companies are left out.
    """
    for line in read_json_lines(source, resume_from):
        item = _item(line, options) if isinstance(line, Member) else line
        if item is not None:
            yield item


def _item(member: Member, options: Options) -> Item | None:
    record = member.value
    action, own_id, sender = words(record.get("action")), name(record.get("msgid")), name(record.get("from"))
    if action == "switch":
        return None
    if not own_id or not sender:
        return member.bad("neither msgid nor from: not a message of WeCom's archive")
    kind = words(record.get("msgtype"))
    content = next((inner for key in (kind, *_OTHER_KEYS) if (inner := obj(record.get(key)))), {})
    recalled = name(obj(record.get("revoke")).get("pre_msgid")) if action == "recall" or kind == "revoke" else ""
    room, people = name(record.get("roomid")), sorted({sender, *_receivers(record)})
    held = labelled(_LABELS.get(kind), name=content.get("filename"))
    message = Message(
        id=own_id,
        room_id=options.room_id or room or "private:" + ",".join(people),
        sender_id=sender,
        role=Role.SYSTEM if recalled else Role.ASSISTANT if sender.startswith(_ROBOT) else Role.USER,
        text="撤回了一条消息" if recalled else _text(kind, content),
        sent_at=parse_time(record.get("msgtime")),
        metadata={} if recalled else kept({"type": _LABELS.get(kind, ""), "attachments": held}),
    )
    facts = RoomFacts(RoomKind.PRIVATE) if room else RoomFacts(RoomKind.DIRECT, tuple(people))
    return Parsed(message, member.position, room=None if options.room_id else facts, deletes=recalled or None)


def _receivers(record: dict[str, Any]) -> list[str]:
    listed = record.get("tolist")
    return [receiver for listed_name in listed if (receiver := name(listed_name))] if isinstance(listed, list) else []


def _text(kind: str, content: dict[str, Any]) -> str:
    if kind in ("text", "markdown"):
        return words(content.get("content"))
    if kind == "mixed":
        return joined((_text(words(item.get("type")), _inner(item)) for item in objects(content.get("item"))), "\n")
    if kind == "chatrecord":
        lines = (_line(item) for item in objects(content.get("item")))
        return joined((f"[聊天记录] {words(content.get('title'))}".strip(), *lines), "\n")
    title = first_name(*(item.get(key) for item in (content, *objects(content.get("item"))) for key in _TITLES))
    return f"[{joined((_LABELS.get(kind, kind), title))}]"


def _line(item: dict[str, Any]) -> str:
    """Return a message of a forwarded conversation. The archive does not say who wrote it."""
    return _text(words(item.get("type")).removeprefix("ChatRecord").lower(), _inner(item))


def _inner(item: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a part, which is JSON inside a string."""
    content = item.get("content")
    read_as = parse_object(content) if isinstance(content, str) else content
    return obj(read_as)
