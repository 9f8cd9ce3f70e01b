"""Rows and logged JSON of every shape come back as the values they were made of."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Column, MetaData, Table, Text

from roomlore.core.audience import EvidenceRoom, RoomKind
from roomlore.core.chat import Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.linking.calibration import COUNTED, Calibration, Linked
from roomlore.core.linking.candidates import NO_THREAD_CANDIDATES
from roomlore.core.memory.memory import Action, Change, Evolution, Memory, MemoryKind, Source
from roomlore.core.models import ContextUsageRecord, Link, MessageFeatures, ReplyInfo, Room, StoredMessage
from roomlore.core.search.hits import EmbeddingModel, IndexState
from roomlore.core.sessions.session import Checkpoint
from roomlore.storage import shapes
from roomlore.storage.shapes import Codec, form_of

TEXT = st.text(st.characters(codec=None)) | st.text(st.sampled_from("\x00\x1a0u4\ud800a词👩‍👩‍👧"))
TEXTS = st.lists(TEXT).map(tuple)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
JSON = st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | TEXT | st.lists(TEXT))
NUMBERS = st.integers(0, 2**62)
FORMS = {
    str: TEXT,
    int: st.integers(0, 2**62),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    datetime: TIMES,
    tuple[str, ...]: TEXTS,
    tuple[tuple[str, str], ...]: st.lists(st.tuples(TEXT, TEXT)).map(tuple),
    tuple[Source, ...]: st.lists(st.builds(Source, TEXT, TEXT)).map(tuple),
    tuple[EvidenceRoom, ...]: st.lists(st.builds(EvidenceRoom, TEXT, TIMES, TIMES)).map(tuple),
    Mapping[str, Any]: JSON,
    Mapping[str, float]: st.dictionaries(TEXT, st.floats(allow_nan=False, allow_infinity=False)),
    Usage: st.builds(Usage, NUMBERS, NUMBERS),
}


def _any_of(hint):
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if NoneType in get_args(hint):
        return st.none() | _any_of(get_args(hint)[0])
    return FORMS[hint] if hint in FORMS else st.sampled_from(hint)


def any_value(kind, **own):
    """Draw values of a dataclass, with any value of the type in each field."""
    return st.builds(
        kind, **{name: _any_of(hint) for name, hint in get_type_hints(kind).items() if name not in own} | own
    )


MEMORIES = any_value(Memory)
MESSAGES = any_value(StoredMessage, sent_at=TIMES)


def _row(codec, value):
    """Return the row that the values make, as one SELECT of the codec's columns gives it."""
    values = codec.values(value)
    return tuple(values[column.name] for column in codec.columns if column.table is codec.table)


@given(MESSAGES)
def test_messages_come_back(message):
    assert shapes.MESSAGE.read(_row(shapes.MESSAGE, message), message.room_id) == message


@given(MEMORIES)
def test_memories_come_back_from_the_log(memory):
    text = shapes.LOGGED.text(memory)
    assert shapes.LOGGED.read_text(text, memory.scope) == memory


@given(MEMORIES)
def test_memories_come_back_from_their_row(memory):
    values = shapes.MEMORY.values(memory) | {"scope": memory.scope}
    assert shapes.MEMORY.read(tuple(values[column.name] for column in shapes.MEMORY.columns)) == memory


def test_a_version_of_an_earlier_roomlore_has_the_defaults_of_newer_fields():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    times = {"created_at": now, "updated_at": now, "supported_at": now}
    memory = Memory(memory_id="m", lineage_id="m", scope="group:tea", kind=MemoryKind.FACT, statement="绿茶", **times)
    told = json.loads(shapes.LOGGED.text(memory))
    for name in ("tags", "confidence", "status", "sources", "made_by"):
        del told[name]
    assert shapes.LOGGED.read_text(json.dumps(told), "group:tea") == memory
    del told["statement"]
    with pytest.raises(KeyError):
        shapes.LOGGED.read_text(json.dumps(told), "group:tea")


@given(any_value(Link, thread_candidates=st.just(NO_THREAD_CANDIDATES)), st.none() | any_value(ReplyInfo), TEXTS)
def test_links_and_features_come_back(link, reply, words):
    features = MessageFeatures(reply=reply, keywords=words, mentions=words, addressed=words, partners=words)
    assert shapes.LINK.read(_row(shapes.LINK, link)) == link
    assert shapes.FEATURES.read(_row(shapes.FEATURES, features)) == features


@given(any_value(Linked, calibration=st.just(Calibration(3, 2, tuple(range(COUNTED))))), st.none() | TIMES, JSON)
def test_rooms_come_back_with_how_they_are_linked(linked, last, settings):
    when = datetime(2026, 1, 1, tzinfo=UTC)
    values = {"tenant": "a", "room_id": "茶", "created_at": when, "last_sent_at": last, "settings": settings}
    for kind in (None, *RoomKind):
        room = Room(**values, linked=linked, kind=kind)
        stored = shapes.ROOM.values(room) | {"kind": kind.value if kind else ""}
        assert shapes.ROOM.read(tuple(stored[column.name] for column in shapes.ROOM.columns)) == room


@given(any_value(ContextUsageRecord))
def test_usage_records_come_back(record):
    assert shapes.USAGE.read(_row(shapes.USAGE, record)) == record


@given(any_value(Evolution))
def test_evolutions_come_back(evolution):
    assert shapes.EVOLUTION.read(_row(shapes.EVOLUTION, evolution)) == evolution


@given(any_value(Checkpoint))
def test_checkpoints_come_back(checkpoint):
    values = shapes.checkpoint_values(checkpoint)
    row = tuple(values[column.name] for column in shapes.CHECKPOINT.columns)
    assert shapes.CHECKPOINT.read(row, checkpoint.conversation_id) == checkpoint


@given(MEMORIES, TEXTS, TIMES, st.sampled_from(Action))
def test_changes_come_back(memory, closes, at, action):
    change = Change(number=1, scope=memory.scope, action=action, memory=memory, closes=closes, at=at)
    values = shapes.change_values(change)
    row = tuple(values[column.name] for column in shapes.CHANGE_COLUMNS)
    assert shapes.to_change(memory.scope, row) == change


@given(st.none() | st.tuples(TEXT, TEXT, NUMBERS), TIMES)
def test_index_states_come_back(cursor, at):
    state = IndexState(
        name="words", model=EmbeddingModel(name="e5", dimensions=384), generation="g1", cursor=cursor, updated_at=at
    )
    assert shapes.INDEX_STATE.read(_row(shapes.INDEX_STATE, state)) == state


@pytest.mark.parametrize(
    "codec", [shapes.ROOM, shapes.MESSAGE, shapes.MEMORY, shapes.CHANGE, shapes.EVOLUTION, shapes.USAGE, shapes.KEY]
)
def test_every_field_has_a_column_or_is_given(codec):
    covered = len(codec.columns) - sum(len(part.columns) - 1 for part in codec.parts.values())
    assert covered + len(codec.given) == len(fields(codec.kind))


def test_a_type_without_a_form_is_refused_when_the_codec_is_made():
    @dataclass(frozen=True)
    class Odd:
        one: complex

    with pytest.raises(TypeError, match="no stored form"):
        Codec(Odd, Table("odd", MetaData(), Column("one", Text)))


def test_a_field_without_a_column_is_refused_when_the_codec_is_made():
    with pytest.raises(KeyError, match="output_tokens"):
        Codec(Usage, Table("usage", MetaData(), Column("input_tokens", BigInteger)))


def test_what_json_cannot_hold_names_the_field():
    with pytest.raises(InvalidInput, match="metadata must be plain JSON"):
        form_of(Mapping[str, Any], "metadata").write({"a": object()})
