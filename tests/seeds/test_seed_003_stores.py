"""Seed 003, where a session lies: Redis before the database, the view for SQL, the questions, and the figures."""

import json
import sqlite3
import time
from typing import Any

import pytest
from clinic import CONVERSATION, USER, due, numbers, speak, told
from redis.asyncio import Redis
from rig import served

import roomlore
from roomlore import Settings

KEY = "short_term_memory:session:conv-123"
FILE = "sqlite:///clinic.db"
WINDOW: dict[str, Any] = {"model_context_window": 400, "recent_turns": 2}


@pytest.fixture
async def redis(redis_url):
    client = Redis.from_url(redis_url, decode_responses=True)
    yield client
    await client.aclose()


@pytest.fixture
async def lore(redis_url):
    async with roomlore.open("sqlite://", settings=Settings(redis_url=redis_url, **WINDOW)) as opened:
        yield opened


def rows(query: str, *values: str) -> list[dict[str, Any]]:
    """What the database file answers to plain SQL."""
    with sqlite3.connect("clinic.db") as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(query, values)]


# 性能优化: Redis缓存


async def test_a_session_lies_in_redis_under_its_key_for_thirty_minutes(lore, redis):
    await speak(lore, 1)
    await lore.sessions.query_context(CONVERSATION)
    assert await redis.keys("*") == [KEY]
    assert 1700 < await redis.ttl(KEY) <= 1800


async def test_the_key_of_another_tenant_begins_with_its_name(lore, redis):
    await speak(lore.for_tenant("acme"), 1)
    await lore.for_tenant("acme").sessions.query_context(CONVERSATION)
    assert await redis.keys("*") == [f"acme:{KEY}"]


async def test_the_value_in_redis_is_the_json_of_the_session(lore, redis):
    await told(lore, await due(lore), "用户咨询了头晕")
    await lore.sessions.query_context(CONVERSATION)
    kept = json.loads(await redis.get(KEY))
    assert (kept["meta"]["conversation_id"], kept["meta"]["user_id"]) == (CONVERSATION, USER)
    assert (kept["message_context"]["mode"], kept["message_context"]["summary"]) == ("SUMMARY_N", "用户咨询了头晕")
    assert kept["message_context"]["checkpoint_message_id"]
    assert {"flow_context", "global_state", "user_snapshot"} <= kept.keys()


async def test_a_deleted_key_is_rebuilt_from_the_database(lore, redis):
    await told(lore, await due(lore), "用户咨询了头晕")
    before = await lore.sessions.query_context(CONVERSATION)
    await redis.delete(KEY)
    assert await lore.sessions.query_context(CONVERSATION) == before
    assert await redis.keys("*") == [KEY]


async def test_an_old_value_in_redis_without_a_checkpoint_id_is_not_believed(lore, redis):
    await speak(lore, 1, 2)
    old = {"meta": {"conversation_id": CONVERSATION}, "message_context": {"summary": "旧摘要", "mode": "SUMMARY_N"}}
    await redis.set(KEY, json.dumps(old))
    context = await lore.sessions.query_context(CONVERSATION)
    assert (context.mode, numbers(context)) == ("FULL_HISTORY", [1, 2])


async def test_with_redis_down_the_same_calls_answer_and_it_is_counted(redis_server):
    async with roomlore.open("sqlite://", settings=Settings(redis_url=redis_server.url, **WINDOW)) as lore:
        await speak(lore, 1)
        redis_server.kill()
        await speak(lore, 2)
        assert numbers(await lore.sessions.query_context(CONVERSATION)) == [1, 2]
        assert b'roomlore_session_cache_total{result="bypassed"}' in lore.prometheus()


async def test_without_redis_the_same_calls_answer():
    async with roomlore.open("sqlite://", settings=Settings(**WINDOW)) as lore:
        await told(lore, await due(lore), "用户咨询了头晕")
        assert (await lore.sessions.query_context(CONVERSATION)).mode == "SUMMARY_N"


async def test_a_session_and_a_segment_are_read_within_the_figures_of_the_document(lore):
    await speak(lore, *range(100))
    await lore.sessions.query_context(CONVERSATION)
    began = time.monotonic()
    for _ in range(10):
        await lore.sessions.query_context(CONVERSATION, model_context_window=16_000)
    assert (time.monotonic() - began) / 10 < 0.5


# 监控指标

METRICS = {
    "checkpoint创建频率": 'roomlore_checkpoints_total{made_by="caller",result="done"} 1.0',
    "摘要长度分布": "roomlore_summary_tokens_count 1.0",
    "token占用率分布": "roomlore_session_token_ratio_bucket",
    "DB查询耗时": 'roomlore_session_seconds_bucket{le="0.005",part="database"}',
    "Redis读取耗时": 'roomlore_session_seconds_bucket{le="0.005",part="cache"}',
}


@pytest.mark.parametrize("figure", METRICS)
async def test_this_figure_is_measured(lore, figure):
    await told(lore, await due(lore), "用户咨询了头晕")
    await lore.sessions.query_context(CONVERSATION)
    async with served(lore) as http:
        assert METRICS[figure] in (await http.get("/metrics")).text


# 数据库表结构, Q3


@pytest.fixture
async def filed():
    """A conversation in a file: turns, a checkpoint that covers them all, and two turns after it."""
    async with roomlore.open(FILE, settings=Settings(**WINDOW)) as opened:
        context = await due(opened)
        await told(opened, context, "用户咨询了头晕")
        last = numbers(context)[-1]
        await speak(opened, last + 1, last + 2)
        yield opened, last


COLUMNS = ["message_id", "conversation_id", "query", "answer", "create_time", "create_by", "update_time", "update_by"]


@pytest.mark.parametrize("column", COLUMNS)
async def test_the_view_has_this_column(filed, column):
    assert column in rows("SELECT * FROM ai_message LIMIT 1")[0]


async def test_a_turn_is_a_row_with_query_answer_and_its_people(filed):
    (row,) = rows("SELECT * FROM ai_message WHERE query LIKE '第1问%'")
    assert (row["conversation_id"], row["answer"]) == (CONVERSATION, "第1答：先坐下休息，多喝水，注意测量血压")
    assert (row["create_by"], row["update_by"], row["tenant"]) == (USER, "triage_agent", "default")


async def test_the_checkpoints_of_a_conversation_are_found_with_sql(filed):
    found = rows(
        """
        SELECT message_id, conversation_id, answer, create_time
        FROM ai_message
        WHERE conversation_id = 'conv-123'
          AND query = '[MEMORY_CHECKPOINT]'
        ORDER BY create_time ASC;
        """
    )
    (made,) = await filed[0].sessions.checkpoints(CONVERSATION)
    assert [(one["message_id"], one["answer"]) for one in found] == [(made.checkpoint_id, "历史摘要: 用户咨询了头晕")]


async def test_the_current_segment_is_found_with_sql(filed):
    opened, last = filed
    session = await opened.sessions.get_session(CONVERSATION)
    found = rows(
        """
        SELECT message_id, conversation_id, query, answer, create_time
        FROM ai_message
        WHERE conversation_id = 'conv-123'
          AND create_time > (
            SELECT create_time FROM ai_message
            WHERE message_id = ?
          )
        ORDER BY create_time ASC;
        """,
        session.message_context.checkpoint_message_id,
    )
    assert [one["query"][:3] for one in found] == [f"第{number}问"[:3] for number in (last + 1, last + 2)]


# 常见问题


async def test_q1_a_session_that_lies_in_redis_is_read_from_there(lore):
    await speak(lore, 1)
    for _ in range(3):
        await lore.sessions.query_context(CONVERSATION)
    assert b'roomlore_session_cache_total{result="hit"}' in lore.prometheus()


async def test_q2_the_summary_of_a_checkpoint_lies_in_redis_too(lore, redis):
    await told(lore, await due(lore), "用户咨询了头晕")
    await lore.sessions.query_context(CONVERSATION)
    assert "用户咨询了头晕" in json.loads(await redis.get(KEY))["message_context"]["summary"]


async def test_q4_the_threshold_of_a_call_decides(lore):
    context = await due(lore)
    raised = await lore.sessions.query_context(CONVERSATION, token_threshold_ratio=context.token_ratio + 0.05)
    assert (context.should_checkpoint_summary, raised.should_checkpoint_summary) == (True, False)


async def test_q5_a_session_with_a_summary_asks_for_the_next_one(lore):
    context = await due(lore)
    await told(lore, context, "用户咨询了头晕", 0)
    for number in range(100, 120):
        await speak(lore, number)
        again = await lore.sessions.query_context(CONVERSATION, recent_turns=0)
        if again.should_checkpoint_summary:
            break
    assert (again.mode, again.should_checkpoint_summary, again.token_ratio >= 0.75) == ("SUMMARY_N", True, True)
    await told(lore, again, "用户咨询了头晕和高血压", 0)
    assert (await lore.sessions.query_context(CONVERSATION, recent_turns=0)).history.startswith(
        "历史摘要: 用户咨询了头晕和高血压"
    )


async def test_q6_a_summary_by_hand_tells_what_it_covers(lore):
    await speak(lore, 1, 2, 3)
    context = await lore.sessions.query_context(CONVERSATION)
    made = await lore.sessions.checkpoint(CONVERSATION, "这是手动生成的摘要", 8, context.covers_through)
    assert (made.summary, made.turns, made.made_by) == ("这是手动生成的摘要", 3, "caller")


async def test_q7_reset_begins_anew_and_deletes_nothing(lore):
    await told(lore, await due(lore), "用户咨询了头晕")
    stored = len(await lore.messages.page(CONVERSATION))
    session = await lore.sessions.reset(CONVERSATION)
    assert (session.message_context.mode, session.message_context.summary) == ("FULL_HISTORY", "")
    assert (await lore.sessions.query_context(CONVERSATION)).history == ""
    assert len(await lore.messages.page(CONVERSATION)) == stored


async def test_q7_neither_a_deleted_key_nor_a_second_create_resets(lore, redis):
    await speak(lore, 1, 2)
    await lore.sessions.query_context(CONVERSATION)
    await redis.delete(KEY)
    await lore.sessions.create_session(CONVERSATION, USER)
    assert numbers(await lore.sessions.query_context(CONVERSATION)) == [1, 2]
