"""ChatLab's format for chats of any platform, JSON or JSONL, which converters and WeFlow write too."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from roomlore.core.audience import RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore_importers.export_files import Options, Source
from roomlore_importers.json_stream import (
    Event,
    Facts,
    Layout,
    Member,
    read_json_lines,
    read_members,
    sniff_objects,
)
from roomlore_importers.shapes import (
    RECALL_NOTICE,
    first_name,
    id_at,
    joined,
    kept,
    labelled,
    name,
    named,
    obj,
    objects,
    words,
)

_SYSTEM, _RECALL = 80, 81
_LABELS = {
    1: "图片", 2: "语音", 3: "视频", 4: "文件", 5: "表情", 7: "链接", 8: "位置", 20: "红包", 21: "转账", 22: "拍一拍",
    23: "通话", 24: "分享", 26: "聊天记录", 27: "名片",
}  # fmt: skip
_KINDS = {"group": RoomKind.PRIVATE, "private": RoomKind.DIRECT}
_META = ("name", "platform", "type", "groupId", "ownerId")
_LAYOUT = Layout(
    streams=lambda path: path in (("messages",), ("members",)),
    start=lazy_pattern(r'\{\s*"(?:sender|platformMessageId|platformId)"\s*:'),
    plausible=lambda value: isinstance(value, dict) and ("timestamp" in value or "platformId" in value),
    home=("messages", 0),
)


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat. The room is the group's id, else the name of the chat on its platform.

    A recalled message is empty and marked as such. What is no text and has no content becomes a short label. A
    forwarded conversation, which WeFlow writes as `chatRecords`, keeps who said what.
    """
    lines = resume_from["lines"] if resume_from else _is_lines(source)
    for item in (_from_lines if lines else _from_document)(source, options, resume_from):
        yield replace(item, position={**item.position, "lines": lines})


def _is_lines(source: Source) -> bool:
    """Return True for JSON lines; a document may be written on one line too."""
    first_objects = sniff_objects(source)
    return first_objects is not None and not any(isinstance(item.get("messages"), list) for item in first_objects[:1])


def _from_document(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    for member in read_members(source, _LAYOUT, resume_from, _note):
        if isinstance(member, Bad):
            yield member
        elif member.path[0] == "members":
            _take_member(member.value, member.facts)
        else:
            yield _parsed(member, member.facts, source, options)


def _note(event: Event, facts: Facts) -> None:
    if event.kind == "scalar" and len(event.path) == 2 and event.path[0] == "meta" and event.path[1] in _META:
        facts[str(event.path[1])] = name(event.value)


def _take_member(member: dict[str, Any], facts: Facts) -> None:
    """Keep the two people of a private chat. A group's list holds whoever ever wrote, so it says nothing."""
    people = facts.get("people", [])
    if facts.get("type") == "private" and len(people) <= 2 and (person := name(member.get("platformId"))):
        facts["people"] = [*people, person]


def _from_lines(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    facts: Facts = dict(resume_from["facts"]) if resume_from else {}
    for line in read_json_lines(source, resume_from):
        if isinstance(line, Bad):
            if not line.excerpt.startswith("#"):
                yield replace(line, position={**line.position, "facts": facts})
            continue
        kind = line.value.get("_type")
        if kind == "header":
            meta = obj(line.value.get("meta"))
            facts = {key: name(meta.get(key)) for key in _META}
        elif kind == "member":
            facts = dict(facts)
            _take_member(line.value, facts)
        else:
            facts = dict(facts)
            item = _parsed(line, facts, source, options)
            yield replace(item, position={**item.position, "facts": facts})


def _parsed(member: Member, facts: Facts, source: Source, options: Options) -> Item:
    record = member.value
    sender, moment = name(record.get("sender")), parse_time(record.get("timestamp"))
    if not sender and moment is None:
        return member.bad("neither sender nor timestamp: not a ChatLab message")
    kind = record.get("type")
    text, role, metadata = _content(record, kind)
    room_id = options.room_id or room_of(facts, options) or source.stem
    message = Message(
        id=name(record.get("platformMessageId")) or id_at(facts, moment, sender, kind, record.get("content")),
        room_id=room_id,
        sender_id=sender or "unknown",
        sender_name=first_name(record.get("groupNickname"), record.get("accountName")),
        role=role,
        text=text,
        sent_at=moment,
        reply_to=name(record.get("replyToMessageId")) or None,
        metadata=kept(metadata),
    )
    return Parsed(
        message, member.position, room=None if options.room_id else named(_room_facts(facts), facts.get("name", ""))
    )


def room_of(facts: Facts, options: Options) -> str:
    """Return the room: the group's id, for a private chat the other person's, else the platform and the name."""
    others = [person for person in facts.get("people", []) if person != facts.get("ownerId")]
    if facts.get("type") == "private" and facts.get("ownerId") and len(others) == 1:
        return f"private:{others[0]}"
    called = "/".join(part for key in ("platform", "name") if (part := facts.get(key, "")))
    return facts.get("groupId") or options.id_of(called)


def _room_facts(facts: Facts) -> RoomFacts | None:
    kind = _KINDS.get(facts.get("type", ""))
    people = tuple(facts.get("people", []))
    return RoomFacts(kind, people if kind is RoomKind.DIRECT and len(people) == 2 else None) if kind else None


def _content(record: dict[str, Any], kind: object) -> tuple[str, Role, dict[str, Any]]:
    text = words(record.get("content"))
    if kind == _RECALL and not RECALL_NOTICE.fullmatch(text):
        return "", Role.USER, {"deleted": True}
    if kind in (_SYSTEM, _RECALL):
        return text, Role.SYSTEM, {}
    records = objects(record.get("chatRecords"))
    label = "聊天记录" if records else _LABELS.get(kind) if isinstance(kind, int) else None
    text = joined((text or (f"[{label}]" if label else ""), *map(_record, records)), "\n")
    return text, Role.USER, {"type": label, "attachments": labelled(label)}


def _record(record: dict[str, Any]) -> str:
    who, text = first_name(record.get("accountName"), record.get("sender")), words(record.get("content"))
    return f"{who}: {text}" if who else text
