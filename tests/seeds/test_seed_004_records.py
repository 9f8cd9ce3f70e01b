"""Seed 004, sections 4.1 and 4.2: the record of a context used, feedback on it, and the tables."""

import json
import sqlite3
from contextlib import closing

import pytest
from group_chat import GROUP, TALK, group, ids
from rig import served

from roomlore import InvalidInput, NotFound

FIELDS = [
    "context_id",
    "user_id",
    "trigger_message_id",
    "context_message_ids",
    "llm_response",
    "user_feedback",
    "success_indicator",
    "created_at",
]


@pytest.fixture
async def used(tmp_path):
    """A context over HTTP that was answered with and judged: its id, the record, and the database."""
    async with group(*TALK, url=f"sqlite:///{tmp_path / 'chat.db'}") as lore, served(lore) as http:
        context = (await http.post("/context", json={"group_id": GROUP, "message_id": "m7", "max_messages": 3})).json()
        path = f"/context/{context['context_id']}"
        assert (await http.post(f"{path}/response", json={"text": "看贴纸"})).status_code == 204
        assert (await http.post(f"{path}/feedback", json={"text": "有用", "score": 0.9})).status_code == 204
        with closing(sqlite3.connect(tmp_path / "chat.db")) as database:
            database.row_factory = sqlite3.Row
            yield context, (await http.get(path)).json(), database


# ConversationContext


async def test_a_context_names_its_message_its_group_and_its_messages(used):
    context, _, _ = used
    assert (context["message_id"], context["room_id"]) == ("m7", GROUP)
    assert [one["message"]["id"] for one in context["messages"]] == ["m1", "m3", "m5"]


async def test_a_context_has_the_score_of_each_message(used):
    context, record, _ = used
    assert record["relevance_scores"] == {one["message"]["id"]: one["score"] for one in context["messages"]}
    assert all(0 <= score <= 1 for score in record["relevance_scores"].values())


async def test_a_context_has_a_summary(used):
    context, _, _ = used
    (line,) = context["context_summary"].splitlines()
    assert "ann" in line
    assert "bob" in line


# ContextUsageRecord


@pytest.mark.parametrize("field", FIELDS)
async def test_a_record_has_the_field(used, field):
    context, record, _ = used
    expected = {
        "context_id": context["context_id"],
        "user_id": "bob",
        "trigger_message_id": "m7",
        "context_message_ids": [one["message"]["id"] for one in context["messages"]],
        "llm_response": "看贴纸",
        "user_feedback": "有用",
        "success_indicator": 0.9,
        "created_at": record["created_at"],
    }
    assert record[field] == expected[field]


async def test_a_record_without_an_answer_and_feedback_has_none():
    async with group(*TALK) as lore:
        record = await lore.context.usage((await lore.context.build(GROUP, "m7")).context_id)
    assert (record.llm_response, record.user_feedback, record.success_indicator) == (None, None, None)


async def test_feedback_may_be_a_text_or_a_number_alone():
    async with group(*TALK) as lore:
        for given in ({"text": "答非所问"}, {"score": 0.0}):
            context_id = (await lore.context.build(GROUP, "m7")).context_id
            await lore.context.feedback(context_id, **given)
            record = await lore.context.usage(context_id)
            assert (record.user_feedback, record.success_indicator) == (given.get("text"), given.get("score"))


async def test_feedback_is_a_number_from_nought_to_one_on_a_context_that_is_there():
    async with group(*TALK) as lore, served(lore) as http:
        context_id = (await lore.context.build(GROUP, "m7")).context_id
        with pytest.raises(InvalidInput, match=r"\[0, 1\]"):
            await lore.context.feedback(context_id, score=1.1)
        with pytest.raises(NotFound):
            await lore.context.feedback("nothing", score=1)
        assert (await http.post(f"/context/{context_id}/feedback", json={})).status_code == 422


async def test_records_are_listed_and_exported_for_training():
    async with group(*TALK) as lore, served(lore) as http:
        context = await lore.context.build(GROUP, "m7")
        await lore.context.feedback(context.context_id, score=0.8)
        listed = (await http.get("/usage")).json()
        exported = [json.loads(line) for line in (await http.get("/usage/export")).text.splitlines()]
    assert context.context_id in json.dumps(listed)
    (one,) = exported
    assert [message["id"] for message in one["context"]] == ids(context)
    assert (one["message"]["message_type"], one["success_indicator"]) == ("answer", 0.8)


# 4.2 context_usage_records

COLUMNS = [*FIELDS, "relevance_scores"]


@pytest.mark.parametrize("column", COLUMNS)
async def test_the_table_of_records_has_the_column(used, column):
    _, record, database = used
    (row,) = database.execute("SELECT * FROM context_usage_records").fetchall()
    value = row[column]
    if column in ("context_message_ids", "relevance_scores"):
        value = json.loads(value)
    if column != "created_at":  # microseconds; the view has it as a time
        assert value == record[column]
    else:
        assert value > 1_700_000_000_000_000


async def test_the_view_of_records_has_the_group_and_readable_times(used):
    _, record, database = used
    (row,) = database.execute("SELECT * FROM context_usage_record").fetchall()
    assert (row["group_id"], row["user_id"]) == (GROUP, "bob")
    assert row["created_at"][:19] == record["created_at"][:19].replace("T", " ")


async def test_records_are_indexed_by_group(used):
    _, _, database = used
    plan = "EXPLAIN QUERY PLAN SELECT * FROM context_usage_records WHERE tenant = 'default' AND room_id = 'group-1'"
    assert "USING INDEX" in database.execute(plan).fetchone()["detail"]


# 4.2 message_features_cache


async def test_the_features_of_every_message_are_stored(used):
    _, _, database = used
    rows = database.execute("SELECT message_type, keywords FROM message_features ORDER BY arrival").fetchall()
    assert [row["message_type"] for row in rows][:2] == ["question", "question"]
    assert (len(rows), "路由器" in json.loads(rows[0]["keywords"])) == (len(TALK), True)


async def test_features_are_stored_when_the_message_is_and_not_computed_again():
    async with group(*TALK) as lore:
        first = (await lore.messages.get(GROUP, "m1")).features
        await lore.messages.edit(GROUP, "m1", text="火锅可以")
        edited = (await lore.messages.get(GROUP, "m1")).features
    assert ("路由器" in first.keywords, "路由器" in edited.keywords, "火锅" in edited.keywords) == (True, False, True)
