"""Seed 000: the models, the chain of providers, the table of errors, the constraints, the configuration."""

import asyncio
import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from agent_room import (
    AGENT,
    GEMMA,
    MODEL,
    QWEN,
    SOON,
    SUMMARY,
    five_turns,
    memories,
    read,
    results,
    summarised,
    talk,
    until,
    warned,
)
from rig import command, setting

import roomlore
from roomlore import Message, Settings
from roomlore_testkit.model_server import Drops, Fails, Hangs, ModelServer, Says, Sends

pytestmark = pytest.mark.usefixtures("two_keys")

SECOND = "小林喜欢吃火锅，不吃香菜。"
UNUSABLE = "a model provider gave no usable answer"
CUT = (
    "a memory holds sentences of its conversation, since no model summarised it;"
    " set up a model, or ignore this if you want none"
)


# 3.1, 3.2


async def test_the_summary_model_has_a_name_for_people_and_is_internal():
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        entry = {one.model_id: one for one in await lore.models.list_available_models(internal=True)}[MODEL]
    assert (entry.display_name, entry.internal) == ("Memory summary", True)


@pytest.mark.parametrize(("without", "asked"), [("OPENROUTER_API_KEY", [0, 1]), ("SILICONFLOW_API_KEY", [1, 0])])
async def test_a_provider_without_a_token_is_passed_over(monkeypatch, without, asked):
    monkeypatch.delenv(without)
    async with ModelServer(default=SUMMARY) as first, ModelServer(default=SUMMARY) as second:
        async with summarised(first, second) as lore:
            await five_turns(lore)
        assert [len(first.requests), len(second.requests)] == asked


async def test_each_provider_is_asked_for_its_own_model_with_its_own_token():
    async with ModelServer(default="") as first, ModelServer(default=SUMMARY) as second:
        async with summarised(first, second) as lore:
            await five_turns(lore)
        (one,), (two,) = first.requests, second.requests
    assert [(one.model, one.key), (two.model, two.key)] == [(GEMMA, "sk-openrouter"), (QWEN, "sk-siliconflow")]


def test_the_list_of_models_hides_the_summary_model_unless_asked_for():
    assert MODEL not in command("models").output
    assert MODEL in command("models", "--internal").output


# 3.3.1

WISHES = ["事实", "偏好", "承诺", "决定", "问候", "第三人称", "单独也能读懂", "无有效记忆", "100 个字"]


@pytest.mark.parametrize("wish", WISHES)
async def test_the_prompt_asks_for(wish):
    async with ModelServer(default=SUMMARY) as server, summarised(server, extract_every=1) as lore:
        await talk(lore, 1)
        await until(lore, 1)
    prompt = server.requests[0].prompt
    assert wish in prompt.split("<conversation>\n[")[0] + prompt.rsplit("</conversation>", 1)[1]


async def test_the_prompt_contains_the_conversation_as_names_and_texts():
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore:
        await five_turns(lore)
    assert read(server.requests[0])[:2] == ["小林: 第1次问：周五几点？", "小助手: 第1次答：七点，老地方。"]


# 3.3.2


async def test_nothing_is_extracted_before_the_fifth_reply():
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore:
        await talk(lore, 1, 2, 3, 4)
        await lore.messages.add([Message(id=f"x{n}", room_id="room-1", sender_id="u2", text="在吗") for n in range(9)])
        await lore.messages.add(Message(id="last", room_id="room-1", sender_id="u2", text="还在吗"))
        await talk(lore, 5)
        await until(lore, 1)
        assert results(lore) == {"kept": 1}
    assert read(server.requests[0])[-1] == "小助手: 第5次答：七点，老地方。"


async def test_agents_are_counted_apart():
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore:
        for number in range(1, 4):
            await lore.sessions.write_turn("room-1", "u1", "agent-7", "问", "答", turn_id=f"a{number}")
            await lore.sessions.write_turn("room-1", "u1", "agent-8", "问", "答", turn_id=f"b{number}")
        for number in (4, 5):
            await lore.sessions.write_turn("room-1", "u1", "agent-7", "问", "答", turn_id=f"a{number}")
        await until(lore, 1)
        assert [len(await memories(lore, agent)) for agent in ("agent-7", "agent-8")] == [1, 0]


# 4


TROUBLES = {
    "an answer of 5 characters": ("周五聚餐吧", "first"),
    "no answer": ("", "second"),
    "an answer of 4 characters": ("周五聚餐", "second"),
    "a blank answer": (" \n ", "second"),
    "a time-out of the provider's own": (Fails(status=504), "second"),
    "an HTTP error": (Fails(status=500), "second"),
    "a rate limit": (Fails(status=429, headers={"retry-after": "60"}), "second"),
    "a refused token": (Fails(status=401), "second"),
    "a broken connection": (Drops(), "second"),
    "no JSON": (Sends(body=b"<html>"), "second"),
    "no content": (Says(content=None), "second"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_the_chain_after_the_first_provider_gives(trouble):
    answer, taken = TROUBLES[trouble]
    async with ModelServer(default=answer) as first, ModelServer(default=SECOND) as second:
        async with summarised(first, second) as lore:
            (memory,) = await five_turns(lore)
        assert len(second.requests) == (taken == "second")
    assert (memory.statement, memory.fallback) == (SECOND if taken == "second" else answer, False)


@pytest.mark.parametrize("trouble", [name for name, (_, taken) in TROUBLES.items() if taken == "second"])
async def test_the_chain_ends_in_the_cut_text_after_both_providers_give(trouble):
    answer, _ = TROUBLES[trouble]
    async with ModelServer(default=answer) as server, summarised(server) as lore:
        (memory,) = await five_turns(lore)
        assert results(lore) == {"fallback": 1}
    assert memory.statement.startswith("对话摘要: 小林: 第1次问")


@pytest.mark.parametrize("answer", ["无有效记忆", "无有效记忆。", "我看过了，这段对话无有效记忆"])
async def test_the_chain_ends_without_a_memory_where_the_first_provider_finds_nothing(answer):
    async with ModelServer(default=answer) as first, ModelServer(default=SECOND) as second:
        async with summarised(first, second) as lore:
            assert await five_turns(lore) == []
            assert results(lore) == {"nothing": 1}
        assert second.requests == []


async def test_the_chain_ends_without_a_memory_where_the_second_provider_finds_nothing():
    first, second = ModelServer(default="嗯"), ModelServer(default="无有效记忆")
    async with first, second, summarised(first, second) as lore:
        assert await five_turns(lore) == []
        assert results(lore) == {"nothing": 1}


async def test_an_answer_is_kept_without_the_space_around_it():
    async with ModelServer(default=f"  {SUMMARY}\n\n") as server, summarised(server) as lore:
        assert [one.statement for one in await five_turns(lore)] == [SUMMARY]


# 6


async def test_error_row_model_not_registered(caplog):
    async with ModelServer(default=SUMMARY) as server, summarised(server, models={MODEL: None}) as lore:
        (memory,) = await five_turns(lore)
    assert (memory.fallback, server.requests, warned(caplog)) == (True, [], [(CUT,)])


async def test_error_row_no_provider_with_a_token(caplog, monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY")
    monkeypatch.setenv("SILICONFLOW_API_KEY", "")
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore:
        (memory,) = await five_turns(lore)
    assert (memory.fallback, server.requests, warned(caplog)) == (True, [], [(CUT,)])


ROWS = {
    "time-out": (Hangs(), "timeout", SOON),
    "network": (Drops(), "dropped", 60),
    "API": (Fails(status=503), "broken", 60),
    "empty": ("", "broken", 60),
    "under 5 characters": ("嗯嗯嗯嗯", "unusable", 60),
}


@pytest.mark.parametrize("row", ROWS)
async def test_error_row_of_one_provider(row, caplog):
    answer, cause, seconds = ROWS[row]
    first, second = ModelServer(default=answer), ModelServer(default=SECOND)
    async with first, second, summarised(first, second, summary_timeout_seconds=seconds) as lore:
        (memory,) = await five_turns(lore)
    assert memory.statement == SECOND
    assert warned(caplog, "provider", "attempt", "cause") == [("openrouter", 1, cause)]
    assert warned(caplog) == [(UNUSABLE,)]


async def test_error_row_nothing_worth_keeping(caplog):
    caplog.set_level(logging.INFO, "roomlore")
    async with ModelServer(default="无有效记忆") as server, summarised(server) as lore:
        assert await five_turns(lore) == []
    told = [(one.levelname, one.getMessage()) for one in caplog.records if "worth keeping" in one.getMessage()]
    assert told == [("INFO", "a model found nothing worth keeping")]
    assert warned(caplog) == []


def refuse_memories(path: Path) -> None:
    """As a disk does that is full."""
    refuse = "BEFORE INSERT ON memories BEGIN SELECT RAISE(ABORT, 'no space'); END"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TRIGGER full_disk {refuse}")


async def test_error_row_memory_cannot_be_saved(caplog, tmp_path):
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    async with ModelServer(default=SUMMARY) as server, summarised(server, url=url) as lore:
        await talk(lore, 1, 2, 3, 4)
        await asyncio.to_thread(refuse_memories, tmp_path / "chat.db")
        await talk(lore, 5)
        async with asyncio.timeout(30):
            while not warned(caplog):  # noqa: ASYNC110 - a log tells nobody
                await asyncio.sleep(0.01)
        await talk(lore, 6)
        assert (await memories(lore), len(await lore.messages.page("room-1"))) == ([], 12)
    assert set(warned(caplog, "kind")) == {("extraction",)}


async def test_error_row_background_task_fails(caplog):
    async with ModelServer(default=Sends(body=b"\xff\xfe[1")) as server, summarised(server) as lore:
        await five_turns(lore)
        await talk(lore, *range(6, 11))
        await until(lore, 2)
        assert len(await memories(lore)) == 2
    assert [one.getMessage() for one in caplog.records if one.levelname not in ("DEBUG", "INFO", "WARNING")] == []


# 7


async def test_a_provider_is_asked_for_two_hundred_tokens_in_one_user_message():
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore:
        await five_turns(lore)
    (asked,) = server.requests
    assert (asked.body["max_tokens"], [one["role"] for one in asked.body["messages"]]) == (200, ["user"])


async def test_a_reply_is_in_the_room_at_once_while_a_summary_is_being_made():
    async with ModelServer(default=Hangs()) as server, summarised(server, extract_every=1) as lore:
        for number in range(1, 8):
            begun = time.monotonic()
            await talk(lore, number)
            assert time.monotonic() - begun < 2
            assert (await lore.messages.page("room-1"))[-1].id == f"a{number}"
        await server.stop()


# 8


@pytest.mark.parametrize(("name", "value"), [("summary_timeout_seconds", "15"), ("extract_every", "5")])
def test_the_configured_default_is(name, value):
    assert setting(name) == value


async def test_the_prompt_is_named_and_its_hash_is_with_what_it_made():
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore:
        (memory,) = await five_turns(lore)
        (made,) = await lore.memories.evolutions(f"agent:{AGENT}")
    assert (made.evolution_id, made.prompt_name) == (memory.evolution_id, "memory_summary")
    assert len(made.prompt_hash) >= 8
