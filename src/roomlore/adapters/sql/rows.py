"""Python values in the form that both engines can store: escaped text, JSON, microseconds; rows to values and back.

PostgreSQL cannot store NUL, and neither engine a lone surrogate. Such a character is written as U+001A (SUBSTITUTE) and
a code, and U+001A itself is doubled, so every text is restored unchanged.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from roomlore.adapters.sql import schema
from roomlore.core.audience import RoomKind
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import content_hash
from roomlore.core.linking.calibration import TEMPERATURES, UNCALIBRATED, Calibration, Linked
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.models import (
    Entry,
    Link,
    LinkKind,
    MessageFeatures,
    MessageType,
    ReplyInfo,
    Role,
    Room,
    StoredMessage,
)

_MARK = "\x1a"
_UNHOLDABLE = re.compile("[\x00\x1a\ud800-\udfff]")
_SPELLING = re.compile("\x1a(\x1a|0|u[0-9a-f]{4})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_QUOTED = encode_basestring


def escape(text: str) -> str:
    """Return the text without NUL, lone surrogates or single U+001A. Raises `InvalidInput` if it is no text."""
    if not isinstance(text, str):
        raise InvalidInput(f"A string is needed, not {text!r:.60}.")
    if text.isascii() and "\x00" not in text and _MARK not in text:
        return text
    return _UNHOLDABLE.sub(_spell, text)


def _spell(found: re.Match[str]) -> str:
    character = found.group()
    if character == _MARK:
        return _MARK + _MARK
    return f"{_MARK}0" if character == "\x00" else f"{_MARK}u{ord(character):04x}"


def unescape(text: str) -> str:
    """Return the text that `escape` was given."""
    return _SPELLING.sub(_read, text) if _MARK in text else text


def _read(found: re.Match[str]) -> str:
    spelling = found.group(1)
    if spelling == _MARK:
        return _MARK
    return "\x00" if spelling == "0" else chr(int(spelling[1:], 16))


def escape_or_none(text: str | None) -> str | None:
    return None if text is None else escape(text)


def unescape_or_none(text: str | None) -> str | None:
    return None if text is None else unescape(text)


def list_text(items: Sequence[str | None]) -> str:
    """Return a list of strings as JSON; None is null. Encoding a list is several times as slow as encoding strings."""
    return escape(f"[{','.join(['null' if one is None else _QUOTED(one) for one in items])}]") if items else "[]"


@lru_cache(maxsize=1 << 14)
def read_list(text: str) -> tuple[str, ...]:
    """Return the list that `list_text` wrote. Most lists are plain words, and splitting those is four times as fast as
    parsing."""
    if text == "[]":
        return ()
    text = unescape(text)
    if "\\" in text or "null" in text:
        return tuple(json.loads(text))
    return tuple(text[2:-2].split('","'))


def pairs_text(pairs: Sequence[tuple[Any, ...]]) -> str:
    """Return a list of pairs of strings as JSON."""
    return escape(_ENCODE(pairs)) if pairs else "[]"


def read_pairs(text: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs that `pairs_text` wrote."""
    return () if text == "[]" else tuple((first, second) for first, second in json.loads(unescape(text)))


def mapping_text(mapping: Mapping[str, Any]) -> str:
    """Return a JSON object. Raises TypeError or ValueError for values that JSON does not have."""
    return escape(_ENCODE(dict(mapping))) if mapping else "{}"


def read_mapping(text: str) -> dict[str, Any]:
    return {} if text == "{}" else json.loads(unescape(text))


def names_text(ids: Sequence[str]) -> str:
    """Return ids for `among`: a JSON list whose members are escaped as the columns are."""
    return f"[{','.join([_QUOTED(escape(name)) for name in ids])}]"


def numbers_text(numbers: Sequence[int]) -> str:
    """Return numbers for `among`."""
    return f"[{','.join(map(str, map(int, numbers)))}]"


def to_micros(at: datetime) -> int:
    """Return microseconds since 1970 for an aware time."""
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def to_micros_or_none(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


def from_micros(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def from_micros_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


_ROLES = {role.value: role for role in Role}
_TYPES = {kind.value: kind for kind in MessageType}
_LINKS = {kind.value: kind for kind in LinkKind}

_m, _f, _r = schema.messages.c, schema.features.c, schema.rooms.c

ROOM_COLUMNS = (
    _r.tenant,
    _r.room_id,
    _r.next_arrival,
    _r.revision,
    _r.messages,
    _r.created_at,
    _r.last_sent_at,
    _r.settings,
    _r.words,
    _r.linked_by,
    _r.link_walk,
    _r.link_walked,
    _r.calibration,
    _r.kind,
)
MESSAGE_COLUMNS = (
    _m.arrival,
    _m.message_id,
    _m.sender_id,
    _m.sender_name,
    _m.role,
    _m.text,
    _m.sent_at,
    _m.sent_at_estimated,
    _m.reply_to,
    _m.root_id,
    _m.turn_id,
    _m.mentions,
    _m.has_tool_calls,
    _m.metadata,
    _m.tokens,
    _m.edited_at,
)
FEATURE_COLUMNS = (
    _f.message_type,
    _f.mentions,
    _f.addressed,
    _f.mentions_all,
    _f.keywords,
    _f.reply,
    _f.partners,
    _f.link_kind,
    _f.thread,
    _f.parent,
    _f.parent_probability,
    _f.new_probability,
    _f.mates,
)
ENTRY_COLUMNS = (*MESSAGE_COLUMNS, *FEATURE_COLUMNS)
_FEATURES_AT = len(MESSAGE_COLUMNS)


def to_room(row: Sequence[Any]) -> Room:
    return Room(
        tenant=unescape(row[0]),
        room_id=unescape(row[1]),
        next_arrival=row[2],
        revision=row[3],
        messages=row[4],
        created_at=from_micros(row[5]),
        last_sent_at=from_micros_or_none(row[6]),
        settings=read_mapping(row[7]),
        words=row[8],
        linked=_to_linked(row[9:13]),
        kind=RoomKind(row[13]) if row[13] else None,
    )


def _to_linked(row: Sequence[Any]) -> Linked:
    by, walk, walked, calibration = row
    return Linked(by=unescape(by), walk=unescape(walk), walked=walked, calibration=_to_calibration(calibration))


@lru_cache(maxsize=1 << 10)
def _to_calibration(text: str) -> Calibration:
    """Return the calibration; `UNCALIBRATED` if it was stored for other temperatures than today's."""
    replies, asked, *errors = json.loads(text) if text else (0, 0)
    known = len(errors) == len(TEMPERATURES)
    return Calibration(replies, asked, tuple(errors)) if known else UNCALIBRATED


def linked_values(linked: Linked) -> tuple[Any, ...]:
    """Return linked_by, link_walk, link_walked and calibration."""
    shown = linked.calibration
    counts = json.dumps((shown.replies, shown.asked, *shown.errors)) if shown.replies else ""
    return (escape(linked.by), escape(linked.walk), linked.walked, counts)


def to_message(room_id: str, row: Sequence[Any]) -> StoredMessage:
    return StoredMessage(
        id=unescape(row[1]),
        room_id=room_id,
        sender_id=unescape(row[2]),
        text=unescape(row[5]),
        sent_at=from_micros(row[6]),
        sender_name=unescape(row[3]),
        role=_ROLES[row[4]],
        reply_to=unescape_or_none(row[8]),
        root_id=unescape_or_none(row[9]),
        mentions=read_list(row[11]),
        has_tool_calls=bool(row[12]),
        turn_id=unescape_or_none(row[10]),
        metadata=read_mapping(row[13]),
        arrival=row[0],
        sent_at_estimated=bool(row[7]),
        tokens=row[14],
        edited_at=from_micros_or_none(row[15]),
    )


def to_entry(room_id: str, row: Sequence[Any]) -> Entry:
    """Return an entry from `ENTRY_COLUMNS`."""
    features = row[_FEATURES_AT:]
    return Entry(message=to_message(room_id, row), features=_to_features(features), link=_to_link(features))


def _to_features(row: Sequence[Any]) -> MessageFeatures:
    return MessageFeatures(
        message_type=_TYPES[row[0]],
        mentions=read_list(row[1]),
        addressed=read_list(row[2]),
        mentions_all=bool(row[3]),
        keywords=read_list(row[4]),
        reply=None if row[5] is None else _to_reply(row[5]),
        partners=read_list(row[6]),
    )


@lru_cache(maxsize=1 << 12)
def _to_reply(text: str) -> ReplyInfo:
    kind, message_id, sender_id = read_list(text)
    return ReplyInfo(kind=kind, message_id=message_id, sender_id=sender_id)  # type: ignore[arg-type]


def _to_link(row: Sequence[Any]) -> Link:
    return Link(
        kind=_LINKS[row[7]],
        thread=row[8],
        parent=row[9],
        parent_probability=row[10],
        new_probability=row[11],
        thread_candidates=ThreadCandidates(row[12]),
    )


def message_row(room_key: int, tenant: str, message: StoredMessage) -> tuple[Any, ...]:
    """Return the message in the order of the table's columns."""
    return (
        room_key,
        message.arrival,
        tenant,
        escape(message.id),
        escape(message.sender_id),
        escape(message.sender_name),
        message.role.value,
        escape(message.text),
        to_micros(message.at),
        message.sent_at_estimated,
        escape_or_none(message.reply_to),
        escape_or_none(message.root_id),
        escape_or_none(message.turn_id),
        list_text(message.mentions),
        message.has_tool_calls,
        _metadata_text(message),
        message.tokens,
        content_hash(message),
        to_micros_or_none(message.edited_at),
        None,
    )


def _metadata_text(message: StoredMessage) -> str:
    try:
        return mapping_text(message.metadata)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput(f"The metadata of message {message.id!r} is not JSON: {exc}") from exc


def features_row(room_key: int, tenant: str, entry: Entry) -> tuple[Any, ...]:
    """Return the features and the link in the order of the table's columns."""
    features = entry.features
    return (
        room_key,
        entry.message.arrival,
        tenant,
        features.message_type.value,
        list_text(features.mentions),
        list_text(features.addressed),
        features.mentions_all,
        list_text(features.keywords),
        None if features.reply is None else _reply_text(features.reply),
        list_text(features.partners),
        *link_values(entry.link),
    )


def _reply_text(reply: ReplyInfo) -> str:
    return list_text((reply.kind, reply.message_id, reply.sender_id))


def link_values(link: Link) -> tuple[Any, ...]:
    """Return link_kind, thread, parent, parent_probability, new_probability and thread candidates."""
    return (
        link.kind.value,
        link.thread,
        link.parent,
        link.parent_probability,
        link.new_probability,
        link.thread_candidates.pack(),
    )
