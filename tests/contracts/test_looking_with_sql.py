"""What people see who look with SQL: the view of turns, and how empty a deleted message is."""

import sqlite3
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import make_url

from roomlore.adapters.sql import connect
from roomlore.core.models import Role
from roomlore.testing import START, checkpoint, entry, features, session
from roomlore.testing.contracts.sessions import save
from roomlore.testing.contracts.texts import ROOM, TENANT, erase, fill, replace

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
