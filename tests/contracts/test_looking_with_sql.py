"""Reading the store with SQL: the views, and how empty a deleted message is."""

import json
import re
import sqlite3
from dataclasses import replace as replaced
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from roomlore.core.memory.memory import Action, MemoryStatus, Source
from roomlore.core.models import Role
from roomlore.storage import connect
from roomlore_testkit import START, change, checkpoint, entry, features, memory, session, usage_record
from roomlore_testkit.case_table import all_cases
from storage_contracts.memory_log import apply
from storage_contracts.sessions import save
from storage_contracts.texts import ROOM, TENANT, erase, fill, replace

_MARK = "[MEMORY_CHECKPOINT]"
_TURNS = (
    "SELECT message_id, query, answer, create_by, update_by, tenant, conversation_id FROM ai_message "
    "ORDER BY create_time"
)


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def opened(request: pytest.FixtureRequest):
    """A storage and a function that runs SQL on its database."""
    url = str(request.getfixturevalue(request.param))
    storage = await connect(url)
    connection = _plain_connection(url)
    yield storage, lambda sql: [tuple(row) for row in connection.execute(sql).fetchall()]
    connection.close()
    await storage.close()


def _plain_connection(url: str):
    if url.startswith("sqlite"):
        return sqlite3.connect(make_url(url).database, isolation_level=None)
    return psycopg.connect(url, autocommit=True)


def _said(arrival: int, role: Role, turn_id: str | None, **fields):
    return entry(arrival, role=role, turn_id=turn_id, sender_id=role.value, **fields)


async def test_a_turn_is_one_row(opened):
    storage, sql = opened
    entries = [
        _said(1, Role.USER, "t1", text="how?"),
        _said(2, Role.ASSISTANT, "t1", text="let me look", has_tool_calls=True),
        _said(3, Role.TOOL, "t1", text="{}"),
        _said(4, Role.ASSISTANT, "t1", text="like this"),
        _said(5, Role.USER, None, text="thanks"),
        _said(6, Role.ASSISTANT, None, text="welcome"),
        _said(7, Role.USER, "t2", text="and?"),
        _said(8, Role.ASSISTANT, "t3", text="by the way"),
    ]
    await fill(storage, entries)
    assert sql(_TURNS) == [
        ("m1", "how?", "like this", "user", "assistant", TENANT, ROOM),
        ("m5", "thanks", None, "user", None, TENANT, ROOM),
        ("m6", None, "welcome", "assistant", None, TENANT, ROOM),
        ("m7", "and?", None, "user", None, TENANT, ROOM),
        ("m8", None, "by the way", "assistant", None, TENANT, ROOM),
    ]


async def test_turns_of_two_rooms_do_not_mix(opened):
    storage, sql = opened
    for room_id in ("a", "b"):
        entries = [_said(1, Role.USER, "t", text=f"in {room_id}"), _said(2, Role.ASSISTANT, "t", text=f"to {room_id}")]
        await fill(storage, entries, room_id=room_id)
    assert sorted(row[1:3] for row in sql(_TURNS)) == [("in a", "to a"), ("in b", "to b")]


async def test_times_are_readable_to_the_microsecond(opened):
    storage, sql = opened
    asked = START + timedelta(microseconds=123456)
    early = START.replace(year=1969) + timedelta(microseconds=7)
    await fill(
        storage,
        [
            _said(1, Role.USER, "t", sent_at=asked),
            _said(2, Role.ASSISTANT, "t"),
            _said(3, Role.USER, None, sent_at=early),
        ],
    )
    await replace(storage, _said(3, Role.USER, None, sent_at=early, edited_at=START))
    rows = sql("SELECT create_time, update_time, update_by FROM ai_message ORDER BY message_id")
    assert [tuple(map(str, row)) for row in rows] == [
        (_readable(sql, asked), _readable(sql, START + timedelta(minutes=2)), "assistant"),
        (_readable(sql, early), _readable(sql, START), "user"),
    ]


def _readable(sql, at) -> str:
    """SQLite gives text, PostgreSQL an aware time."""
    (kind,) = sql("SELECT min(create_time) FROM ai_message")[0]
    return _as_shown(at, kind)


def _as_shown(at, kind) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S.%f}" if isinstance(kind, str) else str(at.astimezone(kind.tzinfo))


async def test_deleted_messages_are_no_turns(opened):
    storage, sql = opened
    await fill(storage, [_said(1, Role.USER, "t", text="q"), _said(2, Role.ASSISTANT, "t", text="a")])
    await erase(storage, 1)
    assert [row[:3] for row in sql(_TURNS)] == [("m2", None, "a")]


async def test_the_checkpoints_of_a_conversation_in_order(opened):
    storage, sql = opened
    marks = [
        checkpoint(1, summary="they deploy\non Friday"),
        checkpoint(2, kind="reset", summary=""),
        checkpoint(3, summary="周五部署", language="zh", made_by="a model"),
    ]
    await save(storage, session(1), *marks)
    await save(storage, session(1, conversation_id="b"), checkpoint(1, conversation_id="b"))
    found = sql(
        "SELECT message_id, conversation_id, answer, create_time FROM ai_message "
        f"WHERE conversation_id = '{ROOM}' AND query = '{_MARK}' ORDER BY create_time ASC"
    )
    assert [row[:3] for row in found] == [
        ("c1", ROOM, "Summary: they deploy\non Friday"),
        ("c3", ROOM, "历史摘要: 周五部署"),
    ]
    made = [_readable(sql, START + timedelta(hours=n)) for n in (1, 3)]
    assert [str(row[3]) for row in found] == made
    written = "SELECT create_by, update_time, update_by, tenant FROM ai_message ORDER BY create_time DESC LIMIT 1"
    assert sql(written) == [("a model", None, None, TENANT)]


async def test_the_turns_after_a_checkpoint(opened):
    storage, sql = opened
    said = [
        _said(1, Role.USER, "t1", text="before"),
        _said(2, Role.ASSISTANT, "t1", text="yes, before"),
        _said(3, Role.USER, "t2", text="after", sent_at=START + timedelta(hours=1, microseconds=1)),
        _said(4, Role.ASSISTANT, "t2", text="yes, after", sent_at=START + timedelta(hours=2)),
        _said(5, Role.USER, "t3", text="later", sent_at=START + timedelta(hours=3)),
    ]
    await fill(storage, said)
    summary = checkpoint(1, covers_arrival=2, covers_through="m2")
    await save(storage, session(1, checkpoint=summary), summary)
    assert sql(
        "SELECT message_id, conversation_id, query, answer FROM ai_message "
        f"WHERE conversation_id = '{ROOM}' AND create_time > "
        "(SELECT create_time FROM ai_message WHERE message_id = 'c1') ORDER BY create_time ASC"
    ) == [("m3", ROOM, "after", "yes, after"), ("m5", ROOM, "later", None)]


async def test_nothing_of_a_deleted_message_is_left(opened):
    storage, sql = opened
    secret = "secret"
    said = entry(
        1,
        text=secret,
        sender_id=secret,
        sender_name=secret,
        reply_to=secret,
        root_id=secret,
        topic_id=secret,
        turn_id=secret,
        mentions=(secret,),
        metadata={secret: secret},
        features=features(keywords=(secret,), mentions=(secret,), addressed=(secret,), partners=(secret,)),
    )
    await fill(storage, [said, entry(2)])
    await erase(storage, 1)
    for table in ("messages", "message_features", "participants", "keyword_counts", "rooms", "ai_message"):
        assert secret not in str(sql(f"SELECT * FROM {table}"))
    assert sql("SELECT message_id, arrival, content_hash FROM messages WHERE deleted_at IS NOT NULL") == [("m1", 1, "")]


def _read(value):
    """A value of JSON: SQLite gives text, PostgreSQL the value."""
    return json.loads(value) if isinstance(value, str) else value


async def test_every_change_of_a_memory_is_a_row(opened):
    storage, sql = opened
    sources = (Source("room", "m1"), Source("r\x1a", "m2"))
    first = memory("f1", scope="group:茶", statement="周五部署", tags=("a", "b\x00"), sources=sources)
    second = memory(
        "f2", scope="group:茶", lineage_id="f1", version=2, statement="部署在周四", parents=("f1",), doubtful="no day"
    )
    gone = replaced(second, status=MemoryStatus.DEPRECATED)
    at = START + timedelta(microseconds=7)
    await apply(storage, change(1, first, at=at, reason="first", evolution_id="e1"), scope="group:茶")
    await apply(
        storage,
        change(2, second, action=Action.UPDATE, closes=("f1",), old_statement="周五部署", at=at, reason=""),
        change(3, gone, action=Action.DELETE, old_statement="部署在周四", at=at, undoes="e1"),
        scope="group:茶",
    )
    rows = sql(
        "SELECT number, memory_id, lineage_id, group_id, action, old_statement, new_statement, version, doubtful, "
        "evolution_id, undoes, actor, tenant FROM memory_change_log ORDER BY number"
    )
    assert rows == [
        (1, "f1", "f1", "茶", "create", None, "周五部署", 1, "", "e1", None, "caller", TENANT),
        (2, "f2", "f1", "茶", "update", "周五部署", "部署在周四", 2, "no day", None, None, "caller", TENANT),
        (3, "f2", "f1", "茶", "delete", "部署在周四", None, 2, "no day", None, "e1", "caller", TENANT),
    ]
    told = sql("SELECT tags, sources, closes, created_at, strength FROM memory_change_log ORDER BY number")
    assert _read(told[0][0])[0] == "a"
    assert _read(told[0][1])[0] == ["room", "m1"]
    assert [_read(row[2]) for row in told] == [[], ["f1"], []]
    assert {_as_shown(at, row[3]) for row in told} == {str(told[0][3])}
    assert told[0][4] == first.strength


async def test_the_json_of_the_views_is_json_whatever_an_id_holds(opened):
    storage, sql = opened
    with all_cases() as case:
        for place, hard in enumerate(("\x00", "\x00\x00\\", "\\u0000", "\\\x00", "\x1a", "\ud800", '"', "\n")):
            with case(repr(hard)):
                own = f"m{hard}1"
                scores = {"m0": 0.25, own: 0.75}
                record = usage_record(f"c{place}", context_message_ids=("m0", own), relevance_scores=scores)
                async with storage.writing(TENANT) as work:
                    await work.usage.record(records=[record])
                ((ids, shown),) = sql(
                    "SELECT context_message_ids, relevance_scores FROM context_usage_record "
                    f"WHERE context_id = 'c{place}'"
                )
                assert (_read(ids)[0], len(_read(ids))) == ("m0", 2)
                assert _read(shown)[_read(ids)[1]] == 0.75
                if hard in ('"', "\n", "\\u0000"):
                    assert _read(ids)[1] == own


async def test_every_context_is_a_row(opened):
    storage, sql = opened
    judged = usage_record(
        "c2", arm="b", llm_response="好", user_feedback="good", success_indicator=0.5, degraded="empty", room_id="茶"
    )
    empty = usage_record("c3", context_message_ids=(), relevance_scores={})
    async with storage.writing(TENANT) as work:
        await work.usage.record(records=[usage_record("c1"), judged, empty])
    assert sql(
        "SELECT context_id, group_id, user_id, trigger_message_id, strategy, arm, mean_score, tokens, window_tokens, "
        "build_ms, degraded, llm_response, user_feedback, success_indicator, tenant "
        "FROM context_usage_record ORDER BY context_id"
    ) == [
        ("c1", "room", "ann", "m3", "threaded", None, 0.375, 6, 60, 1.5, None, None, None, None, TENANT),
        ("c2", "茶", "ann", "m3", "threaded", "b", 0.375, 6, 60, 1.5, "empty", "好", "good", 0.5, TENANT),
        ("c3", "room", "ann", "m3", "threaded", None, None, 6, 60, 1.5, None, None, None, None, TENANT),
    ]
    (made,) = sql("SELECT min(created_at) FROM context_usage_record")[0]
    assert str(made) == _as_shown(START, made)


_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sql.md"


@pytest.mark.parametrize("view", ["ai_message", "memory_change_log", "context_usage_record"])
async def test_every_column_of_a_view_is_documented(opened, view):
    _, sql = opened
    part = _PAGE.read_text(encoding="utf-8").split(f"## {view}\n")[1].split("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)
    try:
        columns = [row[1] for row in sql(f"SELECT * FROM pragma_table_info('{view}')")]
    except psycopg.Error:
        columns = [
            name
            for (name,) in sql(
                "SELECT column_name FROM information_schema.columns "
                f"WHERE table_name = '{view}' ORDER BY ordinal_position"
            )
        ]
    assert columns == documented
