"""OneBot v11 events of QQ bots: logged as lines, in a list, or in the answers of `get_group_msg_history`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore_importers.export_files import Options, Source, derived_id
from roomlore_importers.json_stream import (
    Layout,
    Member,
    holds_list,
    lines_or_document,
    read_json_lines,
    read_members,
    spread,
)
from roomlore_importers.shapes import (
    attached,
    event_of,
    first_name,
    joined,
    kept,
    name,
    obj,
    objects,
    without_labels,
    words,
)

_CQ = lazy_pattern(r"\[CQ:([a-zA-Z0-9_.-]+)((?:,[a-zA-Z0-9_.-]+=[^,\]]*)*),?\]")
_SPOKEN = ("message", "message_sent")
_RECALLS = ("group_recall", "friend_recall")
_MOVED = {"group_increase": True, "group_decrease": False}
_WENT = {"kick": "被移出了群聊", "kick_me": "被移出了群聊"}
_LABELS = {
    "image": "图片", "record": "语音", "video": "视频", "file": "文件", "face": "表情", "mface": "表情",
    "rps": "猜拳", "dice": "骰子", "poke": "戳一戳", "shake": "窗口抖动", "share": "链接", "contact": "名片",
    "location": "位置", "music": "音乐", "forward": "合并转发", "node": "合并转发", "json": "卡片", "xml": "卡片",
    "redbag": "红包", "redpacket": "红包", "hb": "红包", "gift": "礼物", "markdown": "", "lightapp": "小程序",
}  # fmt: skip
"""Short texts for what is no text. A segment of another type keeps its type."""
_TITLES = ("title", "summary", "content", "name", "file_name")
_MAX_DEPTH = 4
"""Forwarded conversations inside each other that are shown."""


_EVENTS = Layout(
    streams=lambda path: path == (),
    start=lazy_pattern(r'\{\s*"[a-z_]+"\s*:'),
    plausible=lambda value: isinstance(value, dict) and ("post_type" in value or "message_id" in value),
    home=(0,),
)
_ANSWERS = replace(_EVENTS, streams=lambda path: path[-1:] == ("messages",), home=("data", "messages", 0))


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages and notices of one or more chats. The room of a group is its number, that of a private chat
    "private:" and the number of the other person.

    A recall deletes its message. Other events, such as heartbeats and requests, are left out.
    """
    yield from lines_or_document(source, options, resume_from, _from_lines, _from_document)


def onebot_message(event: Mapping[str, Any]) -> Message | None:
    """Return the message of a OneBot v11 message event, or of one message of `get_group_msg_history`, as an import of
    the same would store it: for a notice that somebody came, went or recalled a message, the system message. None for
    another notice, a request and a heartbeat. Raise `InvalidInput` if it is no event.

    Of a library's event hand over the message as the bot got it (`original_message` in NoneBot): others lack who was
    mentioned and what was answered.
    """
    event = event_of(event)
    if event.get("notice_type"):
        return _notice(event, _room(event))
    if event.get("request_type") or event.get("meta_event_type"):
        return None
    message = _message(event, None)
    if message is None:
        raise InvalidInput("onebot_message_invalid")
    return without_labels(message)


def onebot_recall(event: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (room id, message id) if the event says that a message was recalled, else None: hand the two to
    `lore.messages.delete`."""
    recalled = name(event.get("message_id"))
    if event.get("notice_type") not in _RECALLS or not recalled:
        return None
    room_id = _room(dict(event))
    return (room_id, recalled) if room_id else None


def _from_lines(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    for line in read_json_lines(source, resume_from):
        if isinstance(line, Bad):
            yield line
        else:
            listed = _listed(line.value)
            items = [item for record in listed if (item := _item(record, line, options)) is not None]
            yield from spread(line, items, resume_from)


def _listed(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of an answer; anything else is one event."""
    data = value.get("data")
    messages = obj(data).get("messages", value.get("messages"))
    return objects(messages) if isinstance(messages, list) else [value]


def _from_document(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    layout = _ANSWERS if holds_list(source, "messages") else _EVENTS
    for member in read_members(source, layout, resume_from):
        if isinstance(member, Bad):
            yield member
        elif (item := _item(member.value, member, options)) is not None:
            yield item


def _item(event: dict[str, Any], member: Member, options: Options) -> Item | None:
    kind = words(event.get("post_type"))
    if kind == "notice":
        return _noticed(event, member, options)
    if kind not in (*_SPOKEN, ""):
        return None
    message = _message(event, options.room_id)
    if message is None:
        return member.bad("neither message_id nor user_id: not a OneBot message")
    return Parsed(message, member.position, room=None if options.room_id else _facts(event))


def _facts(event: dict[str, Any]) -> RoomFacts:
    if name(event.get("group_id")):
        return RoomFacts(RoomKind.PRIVATE)
    people = (_other(event), name(event.get("self_id")))
    return RoomFacts(RoomKind.DIRECT, tuple(person for person in people if person))


def _room(event: dict[str, Any]) -> str:
    group = name(event.get("group_id"))
    other = _other(event)
    return group or (f"private:{other}" if other else "")


def _other(event: dict[str, Any]) -> str:
    """Return the other person of a private chat: whom a bot's own message went to, else who wrote."""
    target, user = name(event.get("target_id")), name(event.get("user_id"))
    return target if target and user == name(event.get("self_id")) else user


def _message(event: dict[str, Any], room_id: str | None) -> Message | None:
    own_id, user = name(event.get("message_id")), name(event.get("user_id"))
    sender = obj(event.get("sender"))
    user = user or name(sender.get("user_id"))
    room = room_id or _room({**event, "user_id": user})
    if not (own_id and user and room):
        return None
    segments = _segments(event.get("message", event.get("raw_message")))
    own = user == name(event.get("self_id")) or event.get("post_type") == "message_sent"
    return Message(
        id=own_id,
        room_id=room,
        sender_id=user,
        sender_name=first_name(sender.get("card"), sender.get("nickname")),
        role=Role.ASSISTANT if own else Role.USER,
        text=_text(segments, 0).strip(),
        sent_at=parse_time(event.get("time")),
        reply_to=next((name(data.get("id")) for kind, data in segments if kind == "reply"), "") or None,
        mentions=tuple(dict.fromkeys(who for kind, data in segments if kind == "at" and (who := _mentioned(data)))),
        metadata=_metadata(event, sender, segments),
    )


def _notice(event: dict[str, Any], room: str) -> Message | None:
    """Return a recall, or who came or went, as a system message; None for another notice."""
    notice, person = words(event.get("notice_type")), name(event.get("user_id"))
    recall = onebot_recall(event)
    if not room or (recall is None and (notice not in _MOVED or not person)):
        return None
    moved = "加入了群聊" if _MOVED.get(notice) else _WENT.get(words(event.get("sub_type")), "退出了群聊")
    return Message(
        id=derived_id("onebot", notice, room, event.get("time"), person, event.get("message_id")),
        room_id=room,
        sender_id=first_name(event.get("operator_id"), person) if recall else person,
        role=Role.SYSTEM,
        text="撤回了一条消息" if recall else f"{person} {moved}",
        sent_at=parse_time(event.get("time")),
    )


def _noticed(event: dict[str, Any], member: Member, options: Options) -> Parsed | None:
    message, recall = _notice(event, options.room_id or _room(event)), onebot_recall(event)
    if message is None:
        return None
    facts = None if options.room_id else _facts(event)
    moved = _MOVED.get(words(event.get("notice_type")))
    moves = () if moved is None or options.room_id else (Move(message.sender_id, moved),)
    return Parsed(message, member.position, room=facts, moves=moves, deletes=recall[1] if recall else None)


def _segments(message: object) -> list[tuple[str, dict[str, Any]]]:
    """Return the parts of a message as (type, data), from a list of segments or from text with CQ codes."""
    if isinstance(message, str):
        return list(_of_codes(message))
    listed = [message] if isinstance(message, dict) else message
    return [(words(segment.get("type")), obj(segment.get("data"))) for segment in objects(listed)]


def _of_codes(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    done = 0
    for code in _CQ.finditer(text):
        if code.start() > done:
            yield "text", {"text": _unescaped(text[done : code.start()])}
        pairs = (pair.partition("=") for pair in code[2].split(",") if pair)
        yield code[1], {key.strip(): _unescaped(value) for key, _, value in pairs}
        done = code.end()
    if done < len(text):
        yield "text", {"text": _unescaped(text[done:])}


def _unescaped(text: str) -> str:
    return text.replace("&#44;", ",").replace("&#91;", "[").replace("&#93;", "]").replace("&amp;", "&")


def _text(segments: Iterable[tuple[str, dict[str, Any]]], depth: int) -> str:
    """Return the text of the segments. A mention is set off from the word that follows it."""
    pieces: list[str] = []
    mentioned = False
    for kind, data in segments:
        if kind == "reply":
            continue
        piece = _shown(kind, data, depth)
        if mentioned and kind != "at" and piece[:1].strip():
            pieces.append(" ")
        if kind in ("forward", "node") and pieces:
            pieces.append("\n")
        pieces.append(piece)
        mentioned = kind == "at" or (mentioned and not piece)
    return "".join(pieces)


def _shown(kind: str, data: dict[str, Any], depth: int) -> str:
    if kind == "text":
        return words(data.get("text"))
    if kind == "at":
        who = words(data.get("qq"))
        return f"@{'全体成员' if who == 'all' else words(data.get('name')).removeprefix('@') or who}"
    if kind == "markdown":
        return words(data.get("content"))
    label = _LABELS.get(kind, kind)
    if kind in ("forward", "node"):
        return _forwarded(kind, data, depth)
    return f"[{joined((label, _title(kind, data)))}]"


def _title(kind: str, data: dict[str, Any]) -> str:
    """Return what a segment says of itself: the title of a card, the name of a file, what a sticker shows."""
    if kind == "json":
        return words(obj(_decoded(data.get("data"))).get("prompt"))
    if kind == "face":
        return words(obj(data.get("raw")).get("faceText")).removeprefix("/")
    if kind in ("dice", "rps"):
        return words(data.get("result"))
    if kind == "file":
        return first_name(data.get("name"), data.get("file_name"), data.get("file"))
    shown = next((title for key in _TITLES if (title := words(data.get(key)).strip("[]"))), "")
    return "" if shown == _LABELS.get(kind) else shown


def _decoded(value: object) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None


def _forwarded(kind: str, data: dict[str, Any], depth: int) -> str:
    """Return a forwarded conversation line by line, each with who said it, as far as the event holds it."""
    nodes = [data] if kind == "node" else objects(data.get("content", data.get("messages")))
    lines = [] if depth >= _MAX_DEPTH else [line for node in nodes if (line := forwarded_line(node, depth + 1))]
    return "\n".join(("[合并转发]", *lines))


def forwarded_line(node: dict[str, Any], depth: int) -> str:
    """Return who said what in a message of a forwarded conversation, '' if it holds no words."""
    record = obj(node.get("data")) if node.get("type") == "node" else node
    sender = obj(record.get("sender"))
    who = first_name(
        sender.get("card"),
        sender.get("nickname"),
        record.get("nickname"),
        record.get("name"),
        sender.get("user_id"),
        record.get("user_id"),
        record.get("uin"),
    )
    content = next((record[key] for key in ("message", "content", "raw_message") if record.get(key)), None)
    text = _text(_segments(content), depth).strip()
    return f"{who}: {text}".replace("\n", "\n  ") if text else ""


def _mentioned(data: dict[str, Any]) -> str:
    who = name(data.get("qq"))
    return "" if who in ("all", "0") else who


def _metadata(
    event: dict[str, Any], sender: dict[str, Any], segments: list[tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    files = [
        attached(
            kind=kind,
            name=first_name(data.get("name"), data.get("file")),
            caption=words(data.get("summary")).strip("[]"),
            url=data.get("url"),
        )
        for kind, data in segments
        if kind in ("image", "record", "video", "file")
    ]
    card, nickname = words(sender.get("card")), words(sender.get("nickname"))
    return kept(
        {
            "attachments": files,
            "nickname": nickname if card and card != nickname else "",
            "title": sender.get("title"),
            "anonymous": obj(event.get("anonymous")).get("name"),
        }
    )
