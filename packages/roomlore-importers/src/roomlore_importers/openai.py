"""OpenAI chat messages: `{"messages": [...]}` per line (training files, logs), one such object, or a bare list."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore_importers.export_files import Options, Source, derived_id
from roomlore_importers.json_stream import (
    Event,
    Facts,
    Layout,
    Member,
    read_json_lines,
    read_members,
    sniff_objects,
    spread,
)
from roomlore_importers.shapes import attached, first_name, joined, kept, name, obj, objects, role, words

_HEAD_BYTES = 1 << 16
_HAS_MESSAGES = lazy_pattern(rb'"messages"\s*:\s*\[')
_TIMES = ("created_at", "timestamp", "create_time", "created")
_NOT_METADATA = {"role", "content", "name", "id", "tool_calls", *_TIMES}


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of every conversation; each conversation is a room, named by its id or by the file and its
    number.

    A user's message and the next answer without tool calls share a turn. A tool's message replies to the call.
    """
    if resume_from["lines"] if resume_from else sniff_objects(source) is not None:
        yield from _read_lines(source, options, resume_from)
    else:
        yield from _read_document(source, options, resume_from)


def _read_lines(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    talk: Facts = dict(resume_from.get("talk", {})) if resume_from else {}
    for line in read_json_lines(source, resume_from):
        if isinstance(line, Bad):
            yield _marked(line, talk)
        elif isinstance(line.value.get("messages"), list):
            yield from (_marked(item, talk) for item in spread(line, _conversation(line, source, options), resume_from))
        else:
            item = _item(line.value, source.stem, talk, line.number, line, options)
            talk = dict(talk)
            yield _marked(item, talk)


def _marked(item: Item, talk: Facts) -> Item:
    """Add to the position that the file is read by lines, and the progress of a conversation over several of them."""
    position = {**item.position, "lines": True, "talk": talk}
    return replace(item, position=position)


def _conversation(member: Member, source: Source, options: Options) -> Iterator[Item]:
    talk: Facts = {}
    own = first_name(*(member.value.get(key) for key in ("conversation_id", "id", "custom_id", "thread_id")))
    room = own or f"{source.stem}-{member.number}"
    first = next((moment for key in _TIMES if (moment := parse_time(member.value.get(key)))), None)
    for place, record in enumerate(member.value["messages"], 1):
        item = _item(record, room, talk, place, member, options)
        if isinstance(item, Parsed) and place == 1 and item.message.sent_at is None and first:
            item = replace(item, message=replace(item.message, sent_at=first))
        yield item


def _read_document(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    layout = _layout(source)
    for member in read_members(source, layout, resume_from, _note):
        item: Item = member if isinstance(member, Bad) else _from_document(member, source, options)
        yield replace(item, position={**item.position, "lines": False})


def _layout(source: Source) -> Layout:
    with source.open() as file:
        nested = _HAS_MESSAGES.search(file.read(_HEAD_BYTES)) is not None
    return Layout(
        streams=(lambda path: path[-1:] == ("messages",)) if nested else (lambda path: path == ()),
        start=re.compile(r'\{\s*"(?:role|content|id|name)"\s*:'),
        plausible=lambda value: (
            isinstance(value, dict) and "role" in value and ("content" in value or "tool_calls" in value)
        ),
        home=("messages", 0) if nested else (0,),
        head=re.compile(r'\{[^{}\[\]]{0,2000}"messages"\s*:\s*\[') if nested else None,
        head_home=(None,),
    )


def _note(event: Event, facts: Facts) -> None:
    """Begin a new conversation at a new list of messages; the fields of the object before the list name it."""
    if event.kind == "enter" and event.path[-1:] != ("messages",):
        facts.clear()
    elif event.kind == "scalar" and event.path[-1:] in (("id",), ("conversation_id",)):
        facts["room"] = name(event.value)


def _from_document(member: Member, source: Source, options: Options) -> Item:
    index = next((key + 1 for key in member.path[:-1] if isinstance(key, int)), 0)
    room = member.facts.get("room") or (f"{source.stem}-{index}" if index else source.stem)
    return _item(member.value, room, member.facts, member.number, member, options)


def _item(record: object, room: str, talk: Facts, place: int, member: Member, options: Options) -> Item:
    """Return one message; `talk` holds the question without an answer yet and the last message that called tools."""
    if not isinstance(record, dict) or not ({"role", "content", "tool_calls"} & record.keys()):
        return member.bad(f"message {place} has neither role nor content")
    who = role(record.get("role")) or Role.USER
    parts = objects(record.get("content"))
    calls = bool(record.get("tool_calls") or record.get("function_call")) or any(
        part.get("type") == "tool_use" for part in parts
    )
    own = first_name(record.get("id"))
    key = f"{room}/{own}" if own and options.room_id else own or derived_id("openai", room, place, record)
    message = Message(
        id=key,
        room_id=options.room_id or room,
        sender_id=name(record.get("name")) or words(record.get("role")) or "unknown",
        sender_name=name(record.get("name")),
        role=who,
        text=_text(record),
        sent_at=next((moment for field in _TIMES if (moment := parse_time(record.get(field)))), None),
        reply_to=talk.get("caller") if who is Role.TOOL else None,
        has_tool_calls=calls,
        turn_id=_turn(who, calls, key, talk),
        metadata=_metadata(record, parts),
    )
    talk["caller"] = key if calls else talk.get("caller")
    return Parsed(message, member.position)


def _turn(who: Role, calls: bool, key: str, talk: Facts) -> str | None:
    if who is Role.USER:
        talk["asked"] = key
        return key
    return talk.pop("asked", None) if who is Role.ASSISTANT and not calls else None


def _text(record: dict[str, Any]) -> str:
    content = record.get("content")
    if not isinstance(content, list):
        return words(content) or words(record.get("refusal"))
    return joined((part if isinstance(part, str) else _part(obj(part)) for part in content), "\n")


def _part(part: dict[str, Any]) -> str:
    text = part.get("text")
    return first_name(text, obj(text).get("value"), part.get("refusal"), part.get("content"))


def _metadata(record: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    other = [part for part in parts if not _part(part)]
    files = (first_name(obj(part.get("file")).get("filename"), part.get("filename")) for part in other)
    rest = {key: value for key, value in record.items() if key not in _NOT_METADATA}
    own = obj(rest.pop("metadata", None))
    content = record.get("content") if isinstance(record.get("content"), dict) else None
    unknown_role = record.get("role") if role(record.get("role")) is None else None
    return kept(
        {
            **rest, **own, "caption": joined(files), "tool_calls": record.get("tool_calls"), "content": content,
            "content_types": [part.get("type") for part in other], "role": unknown_role,
            "attachments": [attachment for attachment in map(_attachment, other) if attachment],
        }
    )  # fmt: skip


def _attachment(part: dict[str, Any]) -> dict[str, Any]:
    """Return a picture, a recording or a file; {} for another part, such as a call of a tool. A picture that is written
    into its address is left out."""
    kind = words(part.get("type"))
    if kind not in ("image_url", "input_image", "input_audio", "file", "input_file", "image", "image_file"):
        return {}
    url = first_name(obj(part.get("image_url")).get("url"), part.get("image_url"))
    name_of_file = first_name(obj(part.get("file")).get("filename"), part.get("filename"))
    return attached(kind=kind, name=name_of_file, url=url if url.startswith(("http://", "https://")) else "")
