"""Generic JSONL: one message per line, with the names of roomlore's own export or other common names."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.records import ROOM_NAMES, Item, Parsed, Position, from_record, parse_time, split_correction
from roomlore_importers.export_files import Options, Source, derived_id
from roomlore_importers.json_stream import Member, read_json_lines
from roomlore_importers.shapes import first_name, joined, local_time, name, obj, role, storable

_ID = ("id", "message_id", "msg_id")
_TEXT = ("text", "content", "message", "body")
_TIME = ("sent_at", "timestamp", "created_at", "ts", "time", "create_time", "date")
_SENDER = ("sender_id", "user_id", "sender", "from", "user", "author")
_SENDER_NAME = ("sender_name", "user_name", "username", "nickname", "name")
_REPLY = ("reply_to", "reply_to_id", "reply_to_message_id", "in_reply_to", "parent_id")
_ROOT = ("root_id", "thread_id", "thread_ts")
_TELLING = {*_ID, *_TEXT, *_TIME, *_SENDER}


@dataclass(slots=True)
class Fields:
    """The fields of one line; fields that no reader takes go into the metadata."""

    left: dict[str, Any]
    kept: dict[str, Any] = field(default_factory=dict)

    def named(self, names: tuple[str, ...]) -> str:
        """Return an id: text, a whole number, or an object with an id; anything else is kept as metadata."""
        key = next((known_name for known_name in names if known_name in self.left), "")
        value = self.left.pop(key, None)
        reference = name(value) or first_name(obj(value).get("id"), obj(value).get("name"))
        self._keep(key, value, understood=bool(reference) or value in (None, ""))
        return reference

    def text(self) -> str:
        key = next((known_name for known_name in _TEXT if known_name in self.left), "")
        value = self.left.pop(key, None)
        if isinstance(value, str):
            return value
        parts = (
            [part if isinstance(part, str) else obj(part).get("text") for part in value]
            if isinstance(value, list)
            else []
        )
        text = name(value) or joined(parts, "\n")
        clear = isinstance(value, list) and all(isinstance(part, str) for part in parts)
        self._keep(key, value, understood=clear or isinstance(value, int | float | None))
        return text or (str(value) if isinstance(value, bool | float) else "")

    def time(self, names: tuple[str, ...], options: Options) -> datetime | None:
        key = next((known_name for known_name in names if known_name in self.left), "")
        value = self.left.pop(key, None)
        moment = parse_time(value) if key == "sent_at" else local_time(value, options.timezone)
        self._keep(key, value, understood=moment is not None or value in (None, ""))
        return moment

    def mentions(self) -> tuple[str, ...]:
        value = self.left.pop("mentions", None)
        listed = value if isinstance(value, list) else []
        mentions = tuple(
            name(mention) or first_name(obj(mention).get("id"), obj(mention).get("name")) for mention in listed
        )
        self._keep("mentions", value, understood=value is None or (isinstance(value, list) and all(mentions)))
        return tuple(mention for mention in mentions if mention)

    def flag(self, key: str) -> bool:
        value = self.left.pop(key, None)
        self._keep(key, value, understood=isinstance(value, bool | None) or value in (0, 1))
        return value is True or value == 1

    def role(self) -> Role:
        value = self.left.pop("role", None)
        own = role(value)
        self._keep("role", value, understood=own is not None or value in (None, ""))
        return own or Role.USER

    def metadata(self) -> dict[str, Any]:
        """Return the line's own metadata, then the fields that could not be read, then every unknown field."""
        own = self.left.pop("metadata", None)
        self._keep("metadata", own, understood=isinstance(own, dict | None))
        return storable({**self.left, **self.kept, **obj(own)})

    def _keep(self, key: str, value: object, *, understood: bool) -> None:
        if not understood:
            self.kept[key] = value


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield one message per line; unknown fields become metadata, lines that are no message are `Bad`.

    With `options.room_id` all go into that room. If the lines name several rooms, ids become "room/id".
    """
    apart = bool(options.room_id) and _names_several_rooms(source)
    for line in read_json_lines(source, resume_from):
        item = _item(line, source, options) if isinstance(line, Member) else line
        yield _moved(item, options.room_id, apart=apart) if options.room_id and isinstance(item, Parsed) else item


def _names_several_rooms(source: Source) -> bool:
    """Return True if the lines are of more than one room: equal ids may then be those of different messages."""
    rooms = set[str]()
    with source.looked_at():
        for line in read_json_lines(source, None):
            if isinstance(line, Member) and is_message(line.value):
                rooms.add(_room(Fields(dict(line.value)), source))
            if len(rooms) > 1:
                break
    return len(rooms) > 1


def _moved(item: Parsed, room_id: str, *, apart: bool) -> Parsed:
    """Return the item in another room. `apart`: with the old room before all ids."""
    original, correction = item.message, item.corrected
    if not apart:
        return replace(item, message=replace(original, room_id=room_id))

    def within(message_id: str | None) -> str | None:
        return message_id and f"{original.room_id}/{message_id}"

    message = replace(
        original,
        room_id=room_id,
        id=f"{original.room_id}/{original.id}",
        reply_to=within(original.reply_to),
        root_id=within(original.root_id),
        topic_id=within(original.topic_id),
        turn_id=within(original.turn_id),
    )
    return replace(
        item, message=message, corrected=correction and replace(correction, answers=within(correction.answers))
    )


def is_message(value: dict[str, Any]) -> bool:
    """Return True if the object has at least one of the fields that make a message."""
    return not _TELLING.isdisjoint(value)


def is_own(value: dict[str, Any]) -> bool:
    """Return True if the line is one of roomlore's own export."""
    try:
        from_record(split_correction(value)[0])
    except InvalidInput:
        return False
    return True


def text_is_unread(message: Message) -> bool:
    """Return True if the line had another type in place of the text, such as parts of another kind."""
    return not message.text and any(isinstance(message.metadata.get(key), dict | list) for key in _TEXT)


def _item(member: Member, source: Source, options: Options) -> Item:
    if not is_message(member.value):
        return member.bad(f"not a message: none of {', '.join((*_ID[:1], *_TEXT[:2], *_SENDER[:2]))} is there")
    if (exact := _exact(member)) is not None:
        return exact
    fields = Fields(dict(member.value))
    person = obj(next((member.value[key] for key in _SENDER if key in member.value), None))
    tool_calls = bool(fields.left.get("tool_calls"))
    estimated, edited_at = fields.flag("sent_at_estimated"), fields.time(("edited_at",), options)
    since, until = fields.time(("heard_from",), options), fields.time(("heard_until",), options)
    heard = (since, until) if estimated and since and until and since <= until else None
    message = Message(
        id=fields.named(_ID) or derived_id("jsonl", member.number, member.value),
        room_id=_room(fields, source),
        sender_id=fields.named(_SENDER) or _fallback_sender(fields),
        sender_name=fields.named(_SENDER_NAME) or name(person.get("name")),
        role=fields.role(),
        text=fields.text(),
        sent_at=fields.time(_TIME, options),
        reply_to=fields.named(_REPLY) or None,
        root_id=fields.named(_ROOT) or None,
        topic_id=fields.named(("topic_id",)) or None,
        mentions=fields.mentions(),
        has_tool_calls=fields.flag("has_tool_calls") or tool_calls,
        turn_id=fields.named(("turn_id",)) or None,
        metadata=fields.metadata(),
    )
    return Parsed(message, member.position, edited_at=edited_at, sent_at_estimated=estimated, heard=heard)


def _exact(member: Member) -> Parsed | None:
    """Return a line of roomlore's own export exactly as it was."""
    try:
        uncorrected, corrected = split_correction(member.value)
        record = from_record(uncorrected)
    except InvalidInput:
        return None
    if record.message.sent_at is None and member.value.get("sent_at"):
        return None
    fields = (record.message, member.position, record.edited_at, record.sent_at_estimated)
    return Parsed(*fields, corrected=corrected, heard=record.heard)


def _room(fields: Fields, source: Source) -> str:
    return fields.named(ROOM_NAMES) or source.stem


def _fallback_sender(fields: Fields) -> str:
    role_name = fields.left.get("role")
    return (
        first_name(*(fields.left.get(key) for key in _SENDER_NAME), role_name if role(role_name) else "") or "unknown"
    )
