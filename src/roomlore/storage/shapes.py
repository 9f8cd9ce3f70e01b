"""One codec for all rows: derived from the fields of a dataclass, their types, and the columns of a table; and the
codecs of all tables. What does not follow from a dataclass and its table is said here, and nowhere else.

A codec compiles its functions from the fields, as `dataclasses` compiles `__init__`, since rooms and logs are long.
Reading a row costs a call of the constructor, and one for each column that is stored in another form.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sqlalchemy import String, Table

from roomlore.core.audience import PastKind, RoomKind
from roomlore.core.chat import Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import content_hash
from roomlore.core.linking.calibration import COUNTED, UNCALIBRATED, Calibration, Linked
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
from roomlore.core.sessions.session import Checkpoint, CheckpointRequest, DueCheckpoint, Session
from roomlore.storage import schema
from roomlore.storage.rows import (
    from_micros,
    hash_text,
    list_text,
    mapping_text,
    pairs_text,
    read_list,
    read_mapping,
    read_pairs,
    to_micros,
)

T = TypeVar("T")
Row = tuple[Any, ...]
Function = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a type in a column (`write`, `read`) and in JSON (`pack`, `unpack`). None: it is stored as it is."""

    write: Function | None = None
    read: Function | None = None
    pack: Function | None = None
    unpack: Function | None = None


_FORMS: Mapping[Any, Form] = {
    str: Form(),
    int: Form(),
    float: Form(float),
    bool: Form(None, bool),
    datetime: Form(to_micros, from_micros, to_micros, from_micros),
    tuple[str, ...]: Form(list_text, read_list, None, tuple),
    tuple[tuple[str, str], ...]: Form(pairs_text, read_pairs, None, lambda pairs: tuple(map(tuple, pairs))),
}


_NONE: Mapping[str, Any] = {}


class Codec(Generic[T]):
    """Rows of a table to values of a dataclass and back.

    `columns`: the column of a field whose column has another name or is in another table. `given`: fields that the
    reader of a row knows already. `parts`: the codec of a field that is a dataclass itself and has columns of its own.
    `forms`: of fields whose form does not follow from their type.
    """

    def __init__(
        self,
        kind: type[T],
        table: Table,
        *,
        columns: Mapping[str, Any] = _NONE,
        given: Sequence[str] = (),
        parts: Mapping[str, "Codec[Any]"] = _NONE,
        forms: Mapping[str, Form] = _NONE,
    ) -> None:
        self.kind = kind
        self.table = table
        self.given = tuple(given)
        self.parts = parts
        self._hints = get_type_hints(kind)
        self._columns = {name: columns[name] if name in columns else table.c[name] for name in self._own()}
        self._forms = {name: forms.get(name) or form_of(self._hints[name], name) for name in self._columns}
        self.columns: tuple[Any, ...] = tuple(self._selected())
        self.read: Callable[..., T] = _compiled(["row", *self.given], lambda env: self.construct(env, 0))
        self.unpack: Callable[..., T] = _compiled(["told", *self.given], self._unpacked)
        self._values: Callable[[T], dict[str, Any]] = _compiled(
            ["value"], lambda env: f"{{{', '.join(f'{k!r}: {v}' for k, v in self.written(env, 'value', table))}}}"
        )
        self._packed: Callable[[T], dict[str, Any]] = _compiled(["value"], self._packing)

    def read_checked(self, row: Row, *given: Any) -> T:
        """Return what `read` does; raise TypeError also for another value in the place of a text, as SQLite takes."""
        for column, value in zip(self.columns, row, strict=False):
            if (
                isinstance(column.type, String)
                and not isinstance(value, str)
                and (value is not None or not column.nullable)
            ):
                raise TypeError(f"The column {column.name} holds {value!r:.60}, which is no text.")
        return self.read(row, *given)

    def values(self, value: T) -> dict[str, Any]:
        """Return what is stored of the value, by the names of the table's columns."""
        return self._values(value)

    def whole_row(self, *others: str) -> Callable[..., tuple[Any, ...]]:
        """Return a function that makes whole rows, in the order of the table's columns, of a value and the columns that
        are named here."""

        def row(env: dict[str, Any]) -> str:
            sources = dict(self.written(env, "value", self.table)) | {name: name for name in others}
            return f"({', '.join(sources[column.name] for column in self.table.c)})"

        return _compiled(["value", *others], row)  # type: ignore[no-any-return]

    def text(self, value: T) -> str:
        """Return the value as JSON, without the given fields."""
        return mapping_text(self._packed(value))

    def read_text(self, text: str, *given: Any) -> T:
        """Return the value that `text` wrote. A field added since then has its default."""
        values = read_mapping(text)
        try:
            return self.unpack(values, *given)
        except KeyError:
            return self.unpack(self._defaults() | values, *given)

    def place(self, column: Any) -> int:
        """Return the place of a column in a row."""
        return next(place for place, own_column in enumerate(self.columns) if own_column is column)

    def _own(self) -> list[str]:
        """Return the fields with one column each."""
        return [field.name for field in self._fields() if field.name not in self.parts and field.name not in self.given]

    def _fields(self) -> tuple[Field[Any], ...]:
        return fields(self.kind)  # type: ignore[arg-type]

    def _selected(self) -> Iterable[Any]:
        for field in self._fields():
            if field.name in self.parts:
                yield from self.parts[field.name].columns
            elif field.name not in self.given:
                yield self._columns[field.name]

    def construct(self, env: dict[str, Any], at: int) -> str:
        """Return the source of the call of the constructor for a row whose columns begin at this place."""
        arguments = []
        for field in self._fields():
            name = field.name
            if name in self.parts:
                part = self.parts[name]
                made = part.construct(env, at)
                arguments.append(
                    f"{name}=None if row[{at}] is None else {made}" if self._may_lack(name) else f"{name}={made}"
                )
                at += len(part.columns)
            elif name in self.given:
                arguments.append(f"{name}={name}")
            else:
                arguments.append(f"{name}={self._through(env, name, 'read', f'row[{at}]')}")
                at += 1
        return f"{_named(env, self.kind)}({', '.join(arguments)})"

    def written(self, env: dict[str, Any], value: str, table: Table) -> Iterable[tuple[str, str]]:
        """Yield the columns of a table, each with the source of what is stored in it."""
        for name, column in self._columns.items():
            if column.table is table:
                yield column.name, self._through(env, name, "write", f"{value}.{name}")
        for name, part in self.parts.items():
            if not self._may_lack(name):
                yield from part.written(env, f"{value}.{name}", table)

    def _packing(self, env: dict[str, Any]) -> str:
        pairs = [f"{name!r}: {self._through(env, name, 'pack', f'value.{name}')}" for name in self._own()]
        return f"{{{', '.join(pairs)}}}"

    def _unpacked(self, env: dict[str, Any]) -> str:
        pairs = [f"{name}={self._through(env, name, 'unpack', f'told[{name!r}]')}" for name in self._own()]
        return f"{_named(env, self.kind)}({', '.join([*pairs, *(f'{name}={name}' for name in self.given)])})"

    def _through(self, env: dict[str, Any], name: str, way: str, value: str) -> str:
        """Return the source of a value in another form. None stays None if the type allows it."""
        function = getattr(self._forms[name], way)
        if function is not None and self._may_lack(name):
            return f"(None if (one := {value}) is None else {_named(env, function)}(one))"
        return _call(env, function, value)

    def _may_lack(self, name: str) -> bool:
        return NoneType in get_args(self._hints[name])

    def _defaults(self) -> dict[str, Any]:
        """Return the defaults of the fields, in JSON."""
        with_default = [
            field_ for field_ in self._fields() if field_.default is not MISSING and field_.name in self._columns
        ]
        return {field_.name: _packed(self._forms[field_.name], field_.default) for field_ in with_default}


def _packed(form: Form, value: Any) -> Any:
    return value if value is None or form.pack is None else form.pack(value)


def _compiled(arguments: Sequence[str], body: Callable[[dict[str, Any]], str]) -> Any:
    environment: dict[str, Any] = {}
    source = f"lambda {', '.join(arguments)}: {body(environment)}"
    return eval(source, environment)  # noqa: S307  # the source consists of the names of fields and columns


def form_of(hint: Any, name: str) -> Form:
    """Return the form of a type. `name`: of the field, for errors. Raises TypeError if the type has none."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = [member_hint for member_hint in get_args(hint) if member_hint is not NoneType]
    if hint in _FORMS:
        return _FORMS[hint]
    origin, members = get_origin(hint), get_args(hint)
    if origin is Literal:
        return Form()
    if origin is Mapping:
        return Form(lambda value: _object_text(value, name), read_mapping, dict)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        member = {member_.value: member_ for member_ in hint}.__getitem__
        return Form(attrgetter("value"), member, attrgetter("value"), member)
    if origin is tuple and is_dataclass(members[0]) and members[1:] == (...,):
        return _lists(members[0])
    raise TypeError(f"The field {name} of the type {hint} has no stored form: give one in `forms`.")


def _object_text(value: Mapping[str, Any], name: str) -> str:
    try:
        return mapping_text(value)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput("field_not_json", name=name, why=exc) from exc


def _lists(kind: Any) -> Form:
    """Return the form of a tuple of dataclasses: a list of the fields of each."""
    forms = {name: form_of(hint, name) for name, hint in get_type_hints(kind).items()}

    def packing(env: dict[str, Any]) -> str:
        calls = [_call(env, form.pack, f"one.{name}") for name, form in forms.items()]
        return f"[({', '.join(calls)},) for one in values]"

    def unpacking(env: dict[str, Any]) -> str:
        calls = [_call(env, form.unpack, name) for name, form in forms.items()]
        return f"tuple([{_named(env, kind)}({', '.join(calls)}) for {', '.join(forms)} in values])"

    pack, unpack = _compiled(["values"], packing), _compiled(["values"], unpacking)

    def read(text: str) -> Any:
        return () if text == "[]" else unpack(json.loads(text))

    return Form(lambda values: pairs_text(pack(values)), read, pack, unpack)


def _call(env: dict[str, Any], function: Function | None, value: str) -> str:
    return value if function is None else f"{_named(env, function)}({value})"


def _named(env: dict[str, Any], thing: Any) -> str:
    """Return the name of an object in the environment of the source."""
    for name, there in env.items():
        if there is thing:
            return name
    name = f"_{len(env)}_{getattr(thing, '__name__', 'form').strip('<>')}"
    env[name] = thing
    return name


_r, _m, _f = schema.rooms.c, schema.messages.c, schema.features.c


@lru_cache(maxsize=1 << 10)
def _to_calibration(text: str) -> Calibration:
    """Return the calibration; `UNCALIBRATED` if other errors than today's were counted."""
    replies, questions, *errors = json.loads(text) if text else (0, 0)
    known = len(errors) == COUNTED
    return Calibration(replies, questions, tuple(errors)) if known else UNCALIBRATED


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
    return json.dumps([(past_kind.kind or "", to_micros(past_kind.until)) for past_kind in past]) if past else ""


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

_MAKER = schema.checkpoints.c.made_by
_ASSUMED = " (coverage assumed)"
"""Follows the maker in its column, which people read with SQL."""
_CHECKPOINT_FORMS = {
    "coverage_assumed": Form(read=lambda maker: maker.endswith(_ASSUMED)),
    "made_by": Form(None, lambda maker: maker.removesuffix(_ASSUMED)),
}
CHECKPOINT = Codec(
    Checkpoint,
    schema.checkpoints,
    given=("conversation_id",),
    columns={"coverage_assumed": _MAKER},
    forms=_CHECKPOINT_FORMS,
)
_ASKED = "roomlore_asked"
"""The name, among the callers' state, of the context that asked for a checkpoint."""


def _state(text: str) -> dict[str, Any]:
    state = read_mapping(text)
    state.pop(_ASKED, None)
    return state


def _session_request(text: str) -> CheckpointRequest | None:
    """Return the context that is noted in the column; None also if the note was damaged, so that the next is noted."""
    if _ASKED not in text:
        return None
    match read_mapping(text).get(_ASKED):
        case [str() as token, int() as at]:
            return CheckpointRequest(token, from_micros(at))
    return None


SESSION = Codec(
    Session,
    schema.sessions,
    given=("tenant",),
    columns={
        "conversation_id": _r.room_id,
        "revision": _r.revision,
        "next_arrival": _r.next_arrival,
        "asked": schema.sessions.c.state,
    },
    forms={
        "asked": Form(read=_session_request),
        "state": Form(lambda state: _object_text(state, "state"), _state),
    },
    parts={
        "checkpoint": Codec(
            Checkpoint,
            schema.checkpoints,
            columns={"conversation_id": _r.room_id, "coverage_assumed": _MAKER},
            forms=_CHECKPOINT_FORMS,
        ),
        "due": Codec(
            DueCheckpoint,
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
CONTENT = tuple(field.name for field in fields(Memory) if field.name not in _IDENTITY)
"""The columns that may change in the row of a version, except its status."""

_message_row = MESSAGE.whole_row("room_key", "tenant", "content_hash", "deleted_at")
_features_row = ENTRY.whole_row("room_key", "tenant", "arrival")


def message_row(room_key: int, tenant: str, message: StoredMessage) -> tuple[Any, ...]:
    """Return the message in the order of the table's columns."""
    return _message_row(message, room_key, tenant, hash_text(content_hash(message)), None)


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
    memory = {"memory_id": change.memory.memory_id, "memory": LOGGED.text(change.memory)}
    return CHANGE.values(change) | memory


def to_change(scope: str, row: Row) -> Change:
    """Return the entry of a log from `CHANGE_COLUMNS`."""
    return CHANGE.read(row, scope, LOGGED.read_text(row[len(CHANGE.columns)], scope))


def session_values(session: Session) -> dict[str, Any]:
    """Return what `save` writes of a session, by column."""
    pending_state = {_ASKED: [session.asked.token, to_micros(session.asked.at)]} if session.asked else {}
    own = {name: value for name, value in session.state.items() if name != _ASKED}  # a caller's value of that name
    stored = replace(session, state=own | pending_state)
    return SESSION.values(stored) | {"checkpoint": session.checkpoint.number if session.checkpoint else None}


def checkpoint_values(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return what is stored of a checkpoint, by column."""
    maker = checkpoint.made_by + _ASSUMED if checkpoint.coverage_assumed else checkpoint.made_by
    return CHECKPOINT.values(replace(checkpoint, made_by=maker))


def to_session(tenant: str, row: Row) -> Session:
    """Return a session from `SESSION_COLUMNS`. A room without a session has one of version 0 and of its own age."""
    if row[_VERSION_AT] is not None:
        return SESSION.read(row, tenant)
    conversation_id, revision, next_arrival = row[:_VERSION_AT]
    made = from_micros(row[-1])
    return Session(
        tenant=tenant,
        conversation_id=conversation_id,
        revision=revision,
        next_arrival=next_arrival,
        created_at=made,
        updated_at=made,
    )


_VERSION_AT = SESSION.place(schema.sessions.c.version)
