"""WeChat chats as JSON: the answers of chatlog, and the exports of WeFlow and EchoTrace."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from roomlore.core.audience import RoomKind
from roomlore.core.membership import RoomFacts
from roomlore.core.models import Message, Role
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore.importers.export_files import Options, Source, derived_id
from roomlore.importers.json_stream import (
    Event,
    Facts,
    Layout,
    Member,
    lines_or_document,
    read_json_lines,
    read_members,
)
from roomlore.importers.shapes import RECALL_NOTICE, first_name, id_at, joined, kept, name, obj, objects, words

ROOM_MARK = "@chatroom"
"""The end of a group's id."""
SYSTEM_SENDER = "系统消息"
_SYSTEM, _SHARED, _QUOTE, _FORWARD = 10000, 49, 57, (19, 24, 87)
_LABELS = {
    3: "图片", 34: "语音", 42: "名片", 43: "视频", 47: "动画表情", 48: "位置", 50: "语音通话",
    (49, 1): "链接", (49, 4): "链接", (49, 5): "链接", (49, 6): "文件", (49, 8): "动画表情", (49, 19): "聊天记录",
    (49, 24): "笔记", (49, 33): "小程序", (49, 36): "小程序", (49, 51): "视频号", (49, 62): "拍一拍",
    (49, 63): "视频号直播", (49, 87): "群公告", (49, 92): "音乐", (49, 2000): "转账", (49, 2001): "红包",
    (49, 2003): "红包",
}  # fmt: skip
_WEFLOW_KINDS = {"群聊": RoomKind.PRIVATE, "私聊": RoomKind.DIRECT}
_WEFLOW_LABELS = {
    "图片消息": "图片", "语音消息": "语音", "视频消息": "视频", "文件消息": "文件", "动画表情": "动画表情",
    "名片消息": "名片", "卡片式链接": "链接", "图文消息": "链接", "位置消息": "位置", "红包卡片": "红包",
    "转账卡片": "转账", "小程序分享": "小程序", "视频号直播卡片": "视频号直播", "聊天记录合并转发": "聊天记录",
}  # fmt: skip

_CHATLOG = Layout(
    streams=lambda path: path == (),
    start=re.compile(r'\{\s*"seq"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "talker" in value,
    home=(0,),
)
_WEFLOW = Layout(
    streams=lambda path: path == ("messages",),
    start=re.compile(r'\{\s*"localId"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "createTime" in value,
    home=("messages", 0),
)


def chatlog(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of an answer of chatlog, which may hold several chats; the room is the chat's id.

    chatlog quotes by sender and second, so ids are made of these, and a quote finds its message.
    """
    yield from lines_or_document(source, options, resume_from, _chatlog_lines, _chatlog_document)


def _chatlog_lines(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    facts: Facts = resume_from["facts"] if resume_from else {}
    for found in read_json_lines(source, resume_from):
        facts = dict(facts)
        item = found if isinstance(found, Bad) else _of_chatlog(replace(found, facts=facts), options)
        yield replace(item, position={**found.position, "facts": facts})


def _chatlog_document(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    for found in read_members(source, _CHATLOG, resume_from):
        yield found if isinstance(found, Bad) else _of_chatlog(found, options)


def _of_chatlog(member: Member, options: Options) -> Item:
    said = member.value
    talker, sender, moment = name(said.get("talker")), name(said.get("sender")), parse_time(said.get("time"))
    if not talker or (not sender and moment is None):
        return member.bad("no talker, or neither sender nor time: not a message of chatlog")
    system = said.get("type") == _SYSTEM or sender == SYSTEM_SENDER
    contents = obj(said.get("contents"))
    quoted = obj(contents.get("refer"))
    text = words(said.get("content")) or _label(said, contents)
    message = Message(
        id=id_at(member.facts, _second(moment), talker, sender),
        room_id=options.room_id or talker,
        sender_id="system" if system else sender or "unknown",
        sender_name="" if system else name(said.get("senderName")),
        role=Role.SYSTEM if system else Role.USER,
        text=text,
        sent_at=moment,
        reply_to=_quoted_id(talker, quoted),
        metadata=_metadata(said, contents),
    )
    kind = RoomKind.PRIVATE if talker.endswith(ROOM_MARK) or said.get("isChatRoom") is True else RoomKind.DIRECT
    return Parsed(message, member.position, room=None if options.room_id else RoomFacts(kind))


def _second(moment: datetime | None) -> str:
    return moment.replace(microsecond=0).isoformat() if moment else ""


def _quoted_id(talker: str, quoted: dict[str, Any]) -> str | None:
    """Return the id of the quoted message: the first of its sender in that second."""
    sender, moment = name(quoted.get("sender")), parse_time(quoted.get("time"))
    return derived_id(_second(moment), talker, sender) if sender and moment else None


def _label(said: dict[str, Any], contents: dict[str, Any]) -> str:
    kind, sub = said.get("type"), said.get("subType")
    label = _LABELS.get((kind, sub)) if kind == _SHARED else _LABELS.get(kind)
    title = first_name(contents.get("title"), contents.get("label"))
    head = f"[{joined((label, title))}]" if label else title
    if kind == _SHARED and sub in _FORWARD:
        return joined((head, *_forwarded(contents)), "\n")
    return head


def _forwarded(contents: dict[str, Any]) -> list[str]:
    """Return the lines of a forwarded conversation, each with who said it."""
    record = obj(contents.get("recordInfo"))
    listed = obj(record.get("DataList", record.get("dataList")))
    items = objects(listed.get("DataItems", listed.get("dataItems")))
    lines = []
    for one in items:
        who = first_name(one.get("SourceName"), one.get("sourceName"))
        text = first_name(*(one.get(key) for key in ("DataDesc", "dataDesc", "DataTitle", "dataTitle")))
        lines.append(f"{who}: {text}" if who else text)
    return [line for line in lines if line]


def _metadata(said: dict[str, Any], contents: dict[str, Any]) -> dict[str, Any]:
    return kept(
        {
            "seq": said.get("seq"),
            "room_name": said.get("talkerName"),
            "caption": "" if words(said.get("content")) == "" else words(contents.get("title")),
            "url": contents.get("url"),
        }
    )


def weflow(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat; the room is its id. A quote without the id of its message stays in
    `metadata.quoted`."""
    for found in read_members(source, _WEFLOW, resume_from, _note):
        yield found if isinstance(found, Bad) else _of_weflow(found, source, options)


def _note(event: Event, facts: Facts) -> None:
    if event.kind == "scalar" and event.path[:1] == ("session",) and len(event.path) == 2:
        key = str(event.path[1])
        if key in ("wxid", "accountId", "type", "displayName", "nickname"):
            facts[key] = name(event.value)


def _of_weflow(member: Member, source: Source, options: Options) -> Item:
    said, facts = member.value, member.facts
    moment = parse_time(said.get("createTime"))
    sender = name(said.get("senderUsername"))
    if moment is None and not sender:
        return member.bad("neither createTime nor senderUsername: not a message of WeFlow")
    kind, text = words(said.get("type")), words(said.get("content"))
    system = kind == SYSTEM_SENDER or (said.get("isSend", 0) is None and RECALL_NOTICE.fullmatch(text) is not None)
    room = facts.get("wxid") or facts.get("accountId") or source.stem
    label = _WEFLOW_LABELS.get(kind)
    message = Message(
        id=first_name(*(one for key in ("platformMessageId", "localId") if (one := said.get(key))))
        or id_at(facts, moment, sender, text),
        room_id=options.room_id or room,
        sender_id="system" if system else sender or "unknown",
        sender_name="" if system else name(said.get("senderDisplayName")),
        role=Role.SYSTEM if system else Role.USER,
        text=text or (f"[{label}]" if label else ""),
        sent_at=moment,
        reply_to=name(said.get("replyToMessageId")) or None,
        metadata=kept({"type": label, "quoted": _quoted(said)}),
    )
    return Parsed(message, member.position, room=None if options.room_id else _weflow_facts(facts))


def _quoted(said: dict[str, Any]) -> dict[str, Any]:
    return kept({"sender": said.get("quotedSender"), "text": said.get("quotedContent")})


def _weflow_facts(facts: Facts) -> RoomFacts | None:
    room = facts.get("wxid") or facts.get("accountId") or ""
    kind = _WEFLOW_KINDS.get(facts.get("type", "")) or (RoomKind.PRIVATE if room.endswith(ROOM_MARK) else None)
    return RoomFacts(kind) if kind else None
