"""Rows to values and back, by position: the hot path of every read and every write."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.values import (
    escape,
    escape_or_none,
    from_micros,
    from_micros_or_none,
    list_text,
    mapping_text,
    read_list,
    read_mapping,
    to_micros,
    to_micros_or_none,
    unescape,
    unescape_or_none,
)
from roomlore.core.calibration import TEMPERATURES, UNCALIBRATED, Calibration
from roomlore.core.errors import InvalidInput
from roomlore.core.identity import content_hash
from roomlore.core.linked import Linked
from roomlore.core.mates import Mates
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
    )


def _to_linked(row: Sequence[Any]) -> Linked:
    by, walk, walked, calibration = row
    return Linked(by=unescape(by), walk=unescape(walk), walked=walked, calibration=_to_calibration(calibration))


@lru_cache(maxsize=1 << 10)
def _to_calibration(text: str) -> Calibration:
    """Of other temperatures than those of today nothing is taken over."""
    replies, asked, *errors = json.loads(text) if text else (0, 0)
    known = len(errors) == len(TEMPERATURES)
    return Calibration(replies, asked, tuple(errors)) if known else UNCALIBRATED


def linked_values(linked: Linked) -> tuple[Any, ...]:
    """linked_by, link_walk, link_walked, calibration."""
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
    """An entry from `ENTRY_COLUMNS`."""
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
        mates=Mates(row[12]),
    )


def message_row(room_key: int, tenant: str, message: StoredMessage) -> tuple[Any, ...]:
    """The message in the order of the table's columns."""
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
    """The features and the link in the order of the table's columns."""
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
    return list_text((reply.kind, reply.message_id, reply.sender_id))  # type: ignore[arg-type]


def link_values(link: Link) -> tuple[Any, ...]:
    """link_kind, thread, parent, parent_probability, new_probability, mates."""
    return (
        link.kind.value,
        link.thread,
        link.parent,
        link.parent_probability,
        link.new_probability,
        link.mates.pack(),
    )
