"""The codecs of all tables. What does not follow from a dataclass and its table is said here, and nowhere else."""

import json
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.codec import Codec, Form
from roomlore.adapters.sql.rows import escape, from_micros, list_text, read_list, read_pairs, to_micros, unescape
from roomlore.core.audience import PastKind, RoomKind
from roomlore.core.chat import Usage
from roomlore.core.intake import content_hash
from roomlore.core.linking.calibration import TEMPERATURES, UNCALIBRATED, Calibration, Linked
from roomlore.core.linking.candidates import ThreadCandidates
from roomlore.core.memory.memory import Change, Evolution, Memory, Scope, Source
from roomlore.core.models import (
    ApiKey,
    ContextUsageRecord,
    Entry,
    Link,
    MessageFeatures,
    ReplyInfo,
    Room,
    StoredMessage,
)
from roomlore.core.search.hits import EmbeddingModel, IndexState
from roomlore.core.sessions.session import Checkpoint, Due, Session

Row = Sequence[Any]

_r, _m, _f = schema.rooms.c, schema.messages.c, schema.features.c


@lru_cache(maxsize=1 << 10)
def _to_calibration(text: str) -> Calibration:
    """Return the calibration; `UNCALIBRATED` if it was stored for other temperatures than today's."""
    replies, asked, *errors = json.loads(text) if text else (0, 0)
    known = len(errors) == len(TEMPERATURES)
    return Calibration(replies, asked, tuple(errors)) if known else UNCALIBRATED


def _calibration_text(shown: Calibration) -> str:
    return json.dumps((shown.replies, shown.asked, *shown.errors)) if shown.replies else ""


@lru_cache(maxsize=1 << 12)
def _to_reply(text: str) -> ReplyInfo:
    kind, message_id, sender_id = read_list(text)
    return ReplyInfo(kind=kind, message_id=message_id, sender_id=sender_id)  # type: ignore[arg-type]


def _reply_text(reply: ReplyInfo) -> str:
    return list_text((reply.kind, reply.message_id, reply.sender_id))


def past_kinds_text(past: Sequence[PastKind]) -> str:
    """Return the column of the kinds that a room had before."""
    return json.dumps([(one.kind or "", to_micros(one.until)) for one in past]) if past else ""


def read_past_kinds(text: str) -> tuple[PastKind, ...]:
    """Return the kinds that a room had before, from their column."""
    if not text:
        return ()
    return tuple(PastKind(RoomKind(kind) if kind else None, from_micros(until)) for kind, until in json.loads(text))


LINKED = Codec(
    Linked,
    schema.rooms,
    columns={"by": _r.linked_by, "walk": _r.link_walk, "walked": _r.link_walked},
    forms={"calibration": Form(_calibration_text, _to_calibration)},
)
ROOM = Codec(
    Room,
    schema.rooms,
    columns={"name": _r.room_name},
    parts={"linked": LINKED},
    forms={
        "kind": Form(None, lambda kind: RoomKind(kind) if kind else None),
        "past_kinds": Form(past_kinds_text, read_past_kinds),
    },
)
MESSAGE = Codec(StoredMessage, schema.messages, columns={"id": _m.message_id}, given=("room_id",))
FEATURES = Codec(MessageFeatures, schema.features, forms={"reply": Form(_reply_text, _to_reply)})
LINK = Codec(
    Link,
    schema.features,
    columns={"kind": _f.link_kind},
    forms={"thread_candidates": Form(ThreadCandidates.pack, ThreadCandidates)},
)
ARRIVAL_AT = MESSAGE.place(_m.arrival)
"""The place of the arrival in rows of messages and of entries."""
ID_AT = MESSAGE.place(_m.message_id)

ENTRY = Codec(
    Entry, schema.features, parts={"message": MESSAGE, "features": FEATURES, "link": LINK}, given=("room_id",)
)

SCOPE = Codec(Scope, schema.scopes, given=("tenant",))
MEMORY = Codec(Memory, schema.memories, columns={"scope": schema.scopes.c.scope})
LOGGED = Codec(Memory, schema.memories, given=("scope",))
"""The whole version as JSON, as the log stores it."""
CHANGE = Codec(Change, schema.changes, given=("scope", "memory"))
CHANGE_COLUMNS = (*CHANGE.columns, schema.changes.c.memory)
EVOLUTION = Codec(Evolution, schema.evolutions, parts={"usage": Codec(Usage, schema.evolutions)})

CHECKPOINT = Codec(Checkpoint, schema.checkpoints, given=("conversation_id",))
SESSION = Codec(
    Session,
    schema.sessions,
    given=("tenant",),
    columns={"conversation_id": _r.room_id, "revision": _r.revision, "next_arrival": _r.next_arrival},
    parts={
        "checkpoint": Codec(Checkpoint, schema.checkpoints, columns={"conversation_id": _r.room_id}),
        "due": Codec(
            Due,
            schema.sessions,
            columns={
                "at": schema.sessions.c.due_at,
                "tries": schema.sessions.c.due_tries,
                "window": schema.sessions.c.due_window,
            },
        ),
    },
)
"""`due` is written by other calls than the rest, and the checkpoint by its number."""
SESSION_COLUMNS = (*SESSION.columns, _r.created_at)

USAGE = Codec(ContextUsageRecord, schema.usage_records)
KEY = Codec(ApiKey, schema.api_keys)
INDEX_STATE = Codec(
    IndexState,
    schema.index_states,
    parts={"model": Codec(EmbeddingModel, schema.index_states, columns={"name": schema.index_states.c.model})},
    forms={"cursor": Form(json.dumps, lambda text: tuple(json.loads(text)))},
)

_IDENTITY = ("memory_id", "lineage_id", "version", "scope", "status")
CONTENT = tuple(one.name for one in fields(Memory) if one.name not in _IDENTITY)
"""The columns that may change in the row of a version, except its status."""

_message_row = MESSAGE.whole_row("room_key", "tenant", "content_hash", "deleted_at")
_features_row = ENTRY.whole_row("room_key", "tenant", "arrival")


def message_row(room_key: int, tenant: str, message: StoredMessage) -> tuple[Any, ...]:
    """Return the message in the order of the table's columns."""
    return _message_row(message, room_key, tenant, content_hash(message), None)


def features_row(room_key: int, tenant: str, entry: Entry) -> tuple[Any, ...]:
    """Return the features and the link in the order of the table's columns."""
    return _features_row(entry, room_key, tenant, entry.message.arrival)


def read_sources(text: str) -> tuple[Source, ...]:
    """Return the sources in the column of a memory."""
    return tuple([Source(*pair) for pair in read_pairs(text)])


def content_values(memory: Memory) -> dict[str, Any]:
    """Return the content of a version by column."""
    values = MEMORY.values(memory)
    return {name: values[name] for name in CONTENT}


def change_values(change: Change) -> dict[str, Any]:
    """Return an entry of a log by column."""
    memory = {"memory_id": escape(change.memory.memory_id), "memory": LOGGED.text(change.memory)}
    return CHANGE.values(change) | memory


def to_change(scope: str, row: Row) -> Change:
    """Return the entry of a log from `CHANGE_COLUMNS`."""
    return CHANGE.read(row, scope, LOGGED.read_text(row[len(CHANGE.columns)], scope))


def session_values(session: Session) -> dict[str, Any]:
    """Return what `save` writes of a session, by column."""
    return SESSION.values(session) | {"checkpoint": session.checkpoint.number if session.checkpoint else None}


def to_session(tenant: str, row: Row) -> Session:
    """Return a session from `SESSION_COLUMNS`. A room without a session has one of version 0 and of its own age."""
    if row[_VERSION_AT] is not None:
        return SESSION.read(row, tenant)
    conversation_id, revision, next_arrival = row[:_VERSION_AT]
    made = from_micros(row[-1])
    return Session(
        tenant=tenant,
        conversation_id=unescape(conversation_id),
        revision=revision,
        next_arrival=next_arrival,
        created_at=made,
        updated_at=made,
    )


_VERSION_AT = SESSION.place(schema.sessions.c.version)
