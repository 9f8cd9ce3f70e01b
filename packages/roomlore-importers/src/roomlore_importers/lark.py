"""Lark / Feishu messages: answers of im/v1/messages, lists of them, or logged `im.message.receive_v1` events."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore_importers.export_files import Options, Source, derived_id
from roomlore_importers.json_stream import (
    JsonPath,
    Layout,
    Member,
    holds_list,
    lines_or_document,
    read_json_lines,
    read_members,
    spread,
)
from roomlore_importers.shapes import attached, event_of, first_name, joined, kept, name, obj, objects, texts, words

_IDS = ("open_id", "user_id", "union_id", "app_id")
_CAPTIONS = ("file_name", "title", "name", "chat_name", "location_name", "summary", "topic")

_HELD = {
    "image": "image", "file": "file", "folder": "file", "audio": "audio", "media": "video", "sticker": "sticker",
    "vote": "poll", "location": "location",
}  # fmt: skip
_KINDS = {"p2p": RoomKind.DIRECT, "group": RoomKind.PRIVATE, "topic_group": RoomKind.PRIVATE}
_RECEIVED = "im.message.receive_v1"
_CAME = lazy_pattern(r"\b(?:invited|added|joined)\b|邀请|加入|添加", re.I)
_WENT = lazy_pattern(r"\b(?:removed|left)\b|移出|移除|退出|离开", re.I)


def _streams(path: JsonPath) -> bool:
    """Return True for a list of messages, or `items` of an answer, alone or in a list of answers."""
    return path[-1:] == ("items",)


_ANSWERS = Layout(
    streams=_streams,
    start=lazy_pattern(r'\{\s*"[a-z_]+"\s*:'),
    plausible=lambda value: (
        isinstance(value, dict) and "message_id" in value and ("body" in value or "content" in value)
    ),
    home=("data", "items", 0),
)
_LIST = replace(_ANSWERS, streams=lambda path: path == (), home=(0,))


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one or more chats; the room is the chat's id.

    Keys such as @_user_1 in the text become names. Withdrawn messages are empty and marked as such.
    """
    yield from lines_or_document(source, options, resume_from, _from_lines, _from_document)


def _from_lines(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    for line in read_json_lines(source, resume_from):
        if isinstance(line, Bad):
            yield line
        else:
            items = [_item(item, place, line, source, options) for place, item in enumerate(_listed(line.value), 1)]
            yield from spread(line, items, resume_from)


def _listed(value: dict[str, Any]) -> list[Any]:
    """Return the messages of an answer; anything else is one message or event."""
    items = obj(value.get("data")).get("items", value.get("items"))
    return items if isinstance(items, list) else [value]


def _from_document(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    layout = _ANSWERS if holds_list(source, "items") else _LIST
    for member in read_members(source, layout, resume_from):
        yield member if isinstance(member, Bad) else _item(member.value, member.number, member, source, options)


def _item(value: object, place: int, member: Member, source: Source, options: Options) -> Item:
    record = _flat(obj(value))
    if not ({"message_id", "body", "content"} & record.keys()):
        return member.bad("neither message_id nor content: not a Lark message")
    own_id = name(record.get("message_id")) or derived_id("lark", member.number, place, record)
    message = _message(record, own_id, options.room_id or name(record.get("chat_id")) or source.stem)
    edited = parse_time(name(record.get("update_time"))) if record.get("updated") is True else None
    kind = None if options.room_id else _KINDS.get(name(record.get("chat_type")))
    return Parsed(
        message,
        member.position,
        edited_at=edited,
        room=RoomFacts(kind) if kind else None,
        moves=() if options.room_id else _moves(record),
    )


def _moves(record: dict[str, Any]) -> tuple[Move, ...]:
    """Return who came or went with a system message, which has names in place of ids."""
    content = obj(_content(record)) if _kind(record) == "system" else {}
    template = words(content.get("template"))
    came, went = _CAME.search(template), _WENT.search(template)
    if bool(came) == bool(went):
        return ()
    people = texts(content.get("to_chatters" if "{to_chatters}" in template else "from_user"))
    return tuple(Move(person, bool(came), by_name=True) for person in people)


def lark_message(event: Mapping[str, Any]) -> Message | None:
    """Return the message of an `im.message.receive_v1` event, or one of `im/v1/messages`, as an import of the same
    would store it. None for another event, such as a recall. Raise `InvalidInput` if it names no message or no
    chat."""
    event = event_of(event)
    if first_name(obj(event.get("header")).get("event_type"), _RECEIVED) != _RECEIVED:
        return None
    record = _flat(event)
    own_id, chat_id = name(record.get("message_id")), name(record.get("chat_id"))
    if not (own_id and chat_id):
        raise InvalidInput("lark_message_invalid")
    return _message(record, own_id, chat_id)


def _message(record: dict[str, Any], own_id: str, room_id: str) -> Message:
    content = "" if record.get("deleted") is True else _content(record)
    sender = obj(record.get("sender"))
    people = objects(record.get("mentions"))
    return Message(
        id=own_id,
        room_id=room_id,
        sender_id=_sender_id(sender) or ("system" if _kind(record) == "system" else "unknown"),
        sender_name=first_name(sender.get("name"), sender.get("sender_name")),
        role=_role(record, sender),
        text=_named(_text(_kind(record), content), people),
        sent_at=parse_time(name(record.get("create_time"))),
        reply_to=name(record.get("parent_id")) or None,
        root_id=first_name(record.get("root_id"), record.get("thread_id")) or None,
        mentions=tuple(dict.fromkeys(mentioned for person in people if (mentioned := _mention_id(person)))),
        metadata=_metadata(record, content),
    )


def _flat(value: dict[str, Any]) -> dict[str, Any]:
    """Return an event's message with its sender, in the form of the message list."""
    event = obj(value.get("event")) or value
    message = event.get("message")
    return {**message, "sender": event.get("sender")} if isinstance(message, dict) else event


def _kind(record: dict[str, Any]) -> str:
    return first_name(record.get("msg_type"), record.get("message_type"))


def _role(record: dict[str, Any], sender: dict[str, Any]) -> Role:
    if _kind(record) == "system":
        return Role.SYSTEM
    return Role.ASSISTANT if sender.get("sender_type") == "app" else Role.USER


def _sender_id(sender: dict[str, Any]) -> str:
    ids = obj(sender.get("sender_id"))
    return first_name(sender.get("id"), *(ids.get(key) for key in _IDS), sender.get("sender_id"))


def _mention_id(mention: dict[str, Any]) -> str:
    ids = obj(mention.get("id"))
    return first_name(mention.get("id"), *(ids.get(key) for key in _IDS))


def _content(record: dict[str, Any]) -> Any:
    """Return the content, which is JSON inside a string; text that is no JSON stays as it is."""
    raw = record.get("content", obj(record.get("body")).get("content"))
    if not isinstance(raw, str):
        return raw
    try:
        return json.loads(raw, strict=False, parse_constant=str)
    except (ValueError, RecursionError):
        return raw


def _text(kind: str, content: Any) -> str:
    if not isinstance(content, dict):
        return words(content)
    if kind == "post":
        return _post(content)
    if kind == "interactive":
        return _card(content)
    if kind == "system":
        return _filled(content)
    return words(content.get("text"))


def _post(content: dict[str, Any]) -> str:
    """Return title and paragraphs; `content` is a list of paragraphs, each a list of elements, maybe under a
    language."""
    body = (
        content
        if "content" in content
        else next((body_of_language for body_of_language in content.values() if isinstance(body_of_language, dict)), {})
    )
    paragraphs = body.get("content")
    lines = (
        ["".join(map(_element, objects(paragraph))) for paragraph in paragraphs if paragraph]
        if isinstance(paragraphs, list)
        else []
    )
    return joined((words(body.get("title")), *lines), "\n")


def _element(element: dict[str, Any]) -> str:
    if element.get("tag") == "at":
        key = words(element.get("user_id"))
        return key if key.startswith("@_") else f"@{first_name(element.get('user_name'), key)}"
    if element.get("tag") == "a":
        text, link = words(element.get("text")), words(element.get("href"))
        return f"{text} ({link})" if text and link and text != link else text or link
    return words(element.get("text")) or words(element.get("emoji_type"))


def _card(content: dict[str, Any]) -> str:
    """Return every text on a card: its title, then the rest in order."""
    title = obj(content.get("header")).get("title", content.get("title"))
    heading = words(title) or words(obj(title).get("content"))
    rows = content.get("elements")
    if isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows):
        return joined((heading, *("".join(map(_element, objects(row))) for row in rows)), "\n")
    return joined((heading, *_texts(content.get("elements", obj(content.get("body")).get("elements")), 0)), "\n")


def _texts(value: object, level: int) -> Iterator[str]:
    if level > 20:
        return
    if isinstance(value, list):
        for part in value:
            yield from _texts(part, level + 1)
    elif isinstance(value, dict):
        text = value.get("content") if isinstance(value.get("content"), str) else value.get("text")
        if isinstance(text, str):
            yield text
        for key in ("text", "fields", "elements", "columns", "actions"):
            if isinstance(value.get(key), dict | list):
                yield from _texts(value[key], level + 1)


def _filled(content: dict[str, Any]) -> str:
    """Return the text of a system message: its template with the names filled in."""
    text = words(content.get("template"))
    for key, value in content.items():
        listed = joined(value, ", ") if isinstance(value, list) else words(value)
        text = text.replace("{" + key + "}", listed)
    return text.strip()


def _named(text: str, people: list[dict[str, Any]]) -> str:
    """Replace keys such as @_user_1 by names, all at once: @_user_1 begins @_user_10, and a name may be like a key."""
    pairs = ((words(person.get("key")), words(person.get("name"))) for person in people)
    names = {key: called.removeprefix("@") for key, called in pairs if key and called} | {"@_all": "所有人"}
    keys = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(keys, lambda match: f"@{names[match[0]]}", text)


def _attachment(kind: str, facts: dict[str, Any]) -> dict[str, Any]:
    listed = joined(texts(facts.get("options")), ", ") if kind == "vote" else ""
    named = facts.get("name") if kind == "location" else facts.get("file_name")
    return attached(kind=_HELD[kind], name=named, caption=listed)


def _metadata(record: dict[str, Any], content: Any) -> dict[str, Any]:
    kind = _kind(record)
    facts = content if isinstance(content, dict) and kind not in ("text", "post", "interactive", "system") else {}
    task = obj(facts.get("summary"))
    return kept(
        {
            "caption": joined((*(facts.get(key) for key in _CAPTIONS), _post(task) if task else "")),
            "type": "" if kind == "text" else kind,
            "attachments": [_attachment(kind, facts)] if kind in _HELD else [],
            "content": facts,
            "deleted": record.get("deleted"),
            "upper_message_id": record.get("upper_message_id"),
        }
    )
