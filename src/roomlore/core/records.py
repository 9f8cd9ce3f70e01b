"""Messages as JSON objects, without loss: one record a message, for export, re-import and HTTP bodies."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, TypeAlias

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.errors import MOST_LISTED, InvalidInput
from roomlore.core.json_values import in_json, json_line
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.texts import Phrase, also

Position: TypeAlias = Mapping[str, Any]
"""An opaque JSON object. Passed back as `resume_from`, it makes reading continue right after its item."""


@dataclass(frozen=True, slots=True)
class CorrectedLink:
    """The correction of a link, as an export has it. `answers`: the id of that message, None for nothing."""

    answers: str | None
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Parsed:
    """A message from an export. `sent_at` is None if the export gives no readable time.

    `room`: what the export says of its room here. `moves`: who came or went with this message. `deletes`: the id of an
    earlier message of the room that was recalled with this one. `corrected`: the correction of its link. `heard`: from
    when until when an estimated message was said, by the store that the export comes from. `begins`: True for the
    notice that the chat was created.
    """

    message: Message
    position: Position
    edited_at: datetime | None = None
    sent_at_estimated: bool = False
    room: RoomFacts | None = None
    moves: tuple[Move, ...] = ()
    deletes: str | None = None
    corrected: CorrectedLink | None = None
    heard: tuple[datetime, datetime] | None = None
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Bad:
    """A line or record that was skipped. `number` counts lines (line formats) or records, from 1."""

    position: Position
    number: int
    reason: str
    excerpt: str


Item: TypeAlias = Parsed | Bad


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that may be an export and was not read. `reason`: why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRead:
    """One export that was read, and how many messages. `name`: its path. `rooms`: those with messages in it."""

    name: str
    format: str
    read: int
    added: int
    rooms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportConflict:
    """A message of an export that was not stored, since its room has another one with this id. `title`: the name of the
    room, else its id."""

    room_id: str
    title: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The result of an import. `bad` holds the first 1,000 skipped records, `bad_count` counts all of them; likewise
    `conflicts` and `conflict_count`. `titles`: the names of the rooms by their ids, an id if the room has no name.

    `edited`: messages that their senders edited since, and that were changed here. `older`: messages that were edited
    since, here or in a newer export; they stay as they are. `deleted`: messages that were deleted here and stay so, or
    were deleted now since the export calls them recalled. `archived`: messages that are in an archive and stay there.
    `redacted`: messages from which words of a forgotten person were removed; they stay as they are. `undated`: messages
    with an estimated time. `unsigned`: messages for which the export names no sender, stored with the sender `unknown`.
    `repaired`: records whose broken bytes were replaced. `resumed`: True if the import continued an interrupted one.
    `time_zone`: the zone used for times without one, None if the format has none. `kinds`: the kinds of the rooms, as
    they are after the import. `members`: how many members of a room are known to be there, for those rooms of which all
    are known. `exports`: how many exports were read. `files`: what was read of each, the first 1,000. `left_out`: the
    first 1,000 files and folders that may be exports and were not read, `left_out_count` counts all of them. `apart`:
    by the ids of rooms that are not called like their chats, the names of the chats: other chats have these names.
    `continued`: rooms that were there, and that share neither a message nor most people with the export; it has no id
    of its chat, so that may be another one.
    `attachments`: what the added messages hold beside their texts. `described`: those of them that the describer put
    into words. `undescribed`: those where it failed.
    """

    format: str
    added: int
    duplicates: int
    edited: int
    older: int
    deleted: int
    archived: int
    redacted: int
    conflicts: tuple[ImportConflict, ...]
    conflict_count: int
    bad: tuple[Bad, ...]
    bad_count: int
    undated: int
    unsigned: int
    repaired: int
    total_bytes: int
    rooms: tuple[str, ...]
    titles: Mapping[str, str]
    resumed: bool
    time_zone: str | None = None
    kinds: Mapping[str, RoomKind | None] = field(default_factory=dict)
    members: Mapping[str, int] = field(default_factory=dict)
    exports: int = 1
    files: tuple[ExportRead, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: int = 0
    apart: Mapping[str, str] = field(default_factory=dict)
    continued: tuple[str, ...] = ()
    attachments: int = 0
    described: int = 0
    undescribed: int = 0

    @property
    @in_json
    def read(self) -> int:
        """The number of messages read from the export."""
        there = self.duplicates + self.edited + self.older + self.deleted + self.archived + self.redacted
        return self.added + there + self.conflict_count


UNKNOWN_SENDER = "unknown"
"""The sender of a message for which an export names none."""
MAX_METADATA_DEPTH = 32
ROOM_NAMES = ("room_id", "group_id", "chat_id", "conversation_id")
_FIRST = (
    "id", "room_id", "sender_id", "sender_name", "role", "text", "sent_at", "sent_at_estimated", "heard_from",
    "heard_until", "edited_at",
)  # fmt: skip
"""The first fields of a record, in this order; the others follow as the dataclass lists them."""
FIELDS = tuple(dict.fromkeys((*_FIRST, *(field_.name for field_ in fields(Message)))))

UNIX_TEXT = r"^(-?([0-9]{1,7}|[0-9]{9,10})|[0-9]{11,19})(\.[0-9]{1,6})?$"
"""A Unix time as text, in any unit; eight digits are a day."""
FIRST_UNIX, LAST_UNIX = -62_135_596_800, 253_402_300_799_999_999_999
"""The years 1 to 9999: in seconds, and in nanoseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((1e10, 1), (1e13, 10**3), (1e16, 10**6))
_UNITS_BEFORE = ((1e11, 1), (1e14, 10**3), (1e17, 10**6))
"""Units per second by the size of a number; before 1970 wider, since programs write the year 1 in seconds for a date
that they do not know."""
# A number of seconds, or of smaller units.
_DIGITS = lazy_pattern(r"[+-]?\d+(\.\d+)?")
_EXCERPT = 60
_ALWAYS = ("id", "room_id", "sender_id")
_NULLABLE = ("reply_to", "root_id", "topic_id", "turn_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A message with the values that only a store knows: if its time was estimated, from when until when it was heard
    then, and when it was edited."""

    message: Message
    sent_at_estimated: bool = False
    edited_at: datetime | None = None
    heard: tuple[datetime, datetime] | None = None


def to_record(message: Message) -> dict[str, Any]:
    """Return the message as a JSON object with keys in the order of `FIELDS`; a stored message includes its flags."""
    values = {name: _written_form(name, getattr(message, name, None)) for name in FIELDS}
    return {name: value for name, value in values.items() if _is_written(name, value)}


def _written_form(name: str, value: Any) -> Any:
    if name == "role":
        return "" if value is Role.USER else str(value)
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


_CORRECTED = "corrected_link"


def to_line(message: Message, corrected: CorrectedLink | None = None) -> bytes:
    """Return the record as one line of UTF-8 JSON with its line feed, with the correction of its link if there is
    one."""
    record = to_record(message)
    if corrected is not None:
        record[_CORRECTED] = {"answers": corrected.answers, "by": corrected.by, "at": _iso(corrected.at)}
    return json_line(record)


def split_correction(record: Mapping[str, Any]) -> tuple[Mapping[str, Any], CorrectedLink | None]:
    """Return the record of a message as `to_record` gives it, and the correction that `to_line` put beside it. Raises
    `InvalidInput`."""
    if _CORRECTED not in record:
        return record, None
    rest = {name: value for name, value in record.items() if name != _CORRECTED}
    correction = record[_CORRECTED]
    if not isinstance(correction, Mapping) or set(correction) != {"answers", "by", "at"}:
        raise _wrong(_CORRECTED, correction, Phrase("wanted_correction"))
    at = _time(correction, "at")
    if at is None:
        raise _wrong("at", correction["at"], Phrase("wanted_time_at"))
    return rest, CorrectedLink(
        _optional_name(correction, "answers"), _typed(correction, "by", str, "wanted_text", ""), at
    )


def from_record(record: Mapping[str, Any]) -> Record:
    """Parse the output of `to_record`; the room may also be called `group_id`, `chat_id` or `conversation_id`.

    An unreadable `sent_at` text becomes None (the store then estimates it). Raises `InvalidInput` for any other invalid
    value; the error names the field, shows the value and states what is expected.
    """
    if not isinstance(record, Mapping):
        raise InvalidInput("record_not_object", value=_show(record))
    _refuse_unknown(record)
    message = Message(
        id=_name(record, "id"),
        room_id=_room(record),
        sender_id=_name(record, "sender_id"),
        text=_typed(record, "text", str, "wanted_text", ""),
        sent_at=_time(record, "sent_at"),
        sender_name=_typed(record, "sender_name", str, "wanted_text", ""),
        role=_role(record),
        reply_to=_optional_name(record, "reply_to"),
        root_id=_optional_name(record, "root_id"),
        topic_id=_optional_name(record, "topic_id"),
        mentions=_mentions(record),
        has_tool_calls=_typed(record, "has_tool_calls", bool, "wanted_boolean", False),
        turn_id=_optional_name(record, "turn_id"),
        metadata=check_metadata(_typed(record, "metadata", dict, "wanted_object", {})),
    )
    estimated = _typed(record, "sent_at_estimated", bool, "wanted_boolean", False)
    heard = heard_in(record, estimated=estimated)
    return Record(message=message, sent_at_estimated=estimated, edited_at=_readable(record, "edited_at"), heard=heard)


def all_wrong(record: Mapping[str, Any], read: Callable[[dict[str, Any]], object], first: InvalidInput) -> InvalidInput:
    """Return one error about each field of a record that cannot be read. `read`: reads a record. `first`: the error of
    reading it whole, returned if each field by itself can be read."""
    needed, errors = dict.fromkeys(_ALWAYS, "-"), list[str]()
    strange = {name: value for name, value in record.items() if name not in FIELDS and name not in ROOM_NAMES}
    has_room = any(name in record for name in ROOM_NAMES)
    alone = [{**needed, **strange}] if strange else []
    alone += [_without(needed, name) for name in needed if name not in record and not (name == "room_id" and has_room)]
    for name in (column for column in record if column not in strange):
        alone.append(_without(needed, "room_id" if name in ROOM_NAMES else name) | {name: record[name]})
    for reader in alone:
        try:
            read(reader)
        except InvalidInput as error:
            errors.append(str(error))
    return InvalidInput(also(errors)) if errors else first


def _without(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {column: value for column, value in record.items() if column != name}


def heard_in(record: Mapping[str, Any], *, estimated: bool = True) -> tuple[datetime, datetime] | None:
    """Return from when until when an estimated message was heard; None if the record does not say, and for another
    message. Raise `InvalidInput`."""
    since, until = _readable(record, "heard_from"), _readable(record, "heard_until")
    if not estimated or since is None or until is None:
        return None
    if until < since:
        raise InvalidInput("heard_span_reversed", value=_show(record["heard_until"]))
    return since, until


_OTHER_NAMES = {"message_id": "id", "user_id": "sender_id", "content": "text", "timestamp": "sent_at"}


def with_own_names(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message that may call its fields `message_id`, `user_id`, `content` and `timestamp` under their names
    here. Raise `InvalidInput` if one is given under both names."""
    renamed = dict(record)
    for other, own in _OTHER_NAMES.items():
        if other in record:
            if own in record:
                raise InvalidInput("record_names_alike", own=own, other=other)
            renamed[own] = renamed.pop(other)
    return renamed


def _readable(record: Mapping[str, Any], field: str) -> datetime | None:
    """Return a time other than `sent_at`. An unreadable one is refused, since the store cannot estimate it."""
    moment = _time(record, field)
    if moment is None and record.get(field) is not None:
        raise InvalidInput("record_time_invalid", field=field, value=_show(record[field]))
    return moment


def check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata. Raises `InvalidInput` if it is nested deeper than 32 levels or is not plain JSON."""
    _check_value(metadata, 1)
    return metadata


def parse_time(value: object, *, zone: tzinfo = UTC) -> datetime | None:
    """Return the aware UTC time of a datetime, ISO 8601 text (naive is of `zone`) or epoch number; None if it cannot be
    read.

    The size of a number tells its unit (s, ms, us or ns): each moment from 27 April 1970 until 20 November 2286 is read
    right in all four. Other years are read from text, and those before 1970 from seconds too.
    """
    try:
        return _parse_time(value, zone)
    except (ValueError, OverflowError):
        return None


def _parse_time(value: object, zone: tzinfo) -> datetime | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, datetime):
        return _utc(value, zone)
    if isinstance(value, int | float):
        return _from_epoch(value)
    return _from_text(value.strip(), zone) if isinstance(value, str) else None


def _from_text(text: str, zone: tzinfo) -> datetime:
    if _DIGITS.fullmatch(text) and not (len(text) == len("YYYYMMDD") and text.isdigit()):
        return _from_epoch(float(text) if "." in text else int(text))
    plain = text.removesuffix("UTC").removesuffix("GMT").rstrip().replace("/", "-")
    named = plain != text.replace("/", "-")
    return _utc(datetime.fromisoformat(plain), UTC if named else zone)


def _from_epoch(number: float) -> datetime:
    limits = _UNITS if number >= 0 else _UNITS_BEFORE
    per_second = next((unit for limit, unit in limits if abs(number) < limit), 10**9)
    if isinstance(number, int):
        return _EPOCH + timedelta(microseconds=number * 10**6 // per_second)
    return _EPOCH + timedelta(seconds=number / per_second)


def _utc(moment: datetime, zone: tzinfo = UTC) -> datetime:
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


def _iso(moment: datetime) -> str:
    return _utc(moment).isoformat()


def _is_written(name: str, value: object) -> bool:
    return name in _ALWAYS or bool(value) or (name in _NULLABLE and value is not None)


def _refuse_unknown(record: Mapping[str, Any]) -> None:
    unknown = [name for name in record if name not in FIELDS and name not in ROOM_NAMES]
    if unknown:
        named = ", ".join(map(_show, unknown[:MOST_LISTED]))
        raise InvalidInput("record_field_unknown", value=named, listed=", ".join(FIELDS))


def _room(record: Mapping[str, Any]) -> str:
    given = [name for name in ROOM_NAMES if name in record]
    if not given:
        raise InvalidInput("record_room_missing")
    rooms = {_name(record, name) for name in given}
    if len(rooms) > 1:
        raise InvalidInput("record_rooms_differ", names=" and ".join(given))
    return rooms.pop()


def _name(record: Mapping[str, Any], field: str) -> str:
    if field not in record:
        raise InvalidInput("record_field_missing", field=field)
    value = record[field]
    if not isinstance(value, str) or not value:
        raise _wrong(field, value, Phrase("wanted_text_not_empty"))
    return value


def _optional_name(record: Mapping[str, Any], field: str) -> str | None:
    value = record.get(field)
    if value is not None and not isinstance(value, str):
        raise _wrong(field, value, Phrase("wanted_text_or_null"))
    return value


def _typed(record: Mapping[str, Any], field: str, kind: type, wanted: str, default: Any) -> Any:
    value = record.get(field)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise _wrong(field, value, Phrase(wanted))
    return value


def _time(record: Mapping[str, Any], field: str) -> datetime | None:
    value = record.get(field)
    if isinstance(value, bool) or not isinstance(value, str | int | float | datetime | None):
        raise _wrong(field, value, Phrase("wanted_time"))
    return parse_time(value)


def _role(record: Mapping[str, Any]) -> Role:
    value = record.get("role")
    if value is None:
        return Role.USER
    if not isinstance(value, str) or value not in set(Role):
        raise _wrong("role", value, Phrase("wanted_one_of", known=", ".join(Role)))
    return Role(value)


def _mentions(record: Mapping[str, Any]) -> tuple[str, ...]:
    value = record.get("mentions")
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(mention, str) for mention in value):
        raise _wrong("mentions", value, Phrase("wanted_ids"))
    return tuple(value)


def _check_value(value: object, level: int) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong("metadata", value, Phrase("wanted_finite"))
    if isinstance(value, dict | list):
        _check_container(value, level)
    elif not isinstance(value, str | int | float | None):
        raise _wrong("metadata", value, Phrase("wanted_plain_json"))


def _check_container(value: "dict[Any, Any] | list[Any]", level: int) -> None:
    if level > MAX_METADATA_DEPTH:
        raise InvalidInput("record_metadata_too_deep", most=MAX_METADATA_DEPTH)
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        raise _wrong("metadata", value, Phrase("wanted_text_keys"))
    inner: Iterable[object] = value.values() if isinstance(value, dict) else value
    for inner_value in inner:
        _check_value(inner_value, level + 1)


def _wrong(field: str, value: object, wanted: str) -> InvalidInput:
    return InvalidInput("record_field_invalid", field=field, value=_show(value), kind=wanted)


def _show(value: object) -> str:
    if isinstance(value, Mapping):
        return "a JSON object"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value[:_EXCERPT] if isinstance(value, str) else value)
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
