"""Seed 000, section 9: its unit tests and system tests, by their names."""

import asyncio
import time

import pytest
from agent_room import GEMMA, MODEL, QWEN, SOON, SUMMARY, five_turns, memories, read, results, summarised, talk, until
from rig import served

import roomlore
from roomlore import MemoryKind, Settings
from roomlore_testkit.model_server import Fails, Hangs, ModelServer

pytestmark = pytest.mark.usefixtures("two_keys")

SECOND = "小林喜欢吃火锅，不吃香菜。"


# 9.1 单元测试


async def test_llm_summarize_success():
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore:
        (memory,) = await five_turns(lore)
    assert (memory.statement, memory.fallback) == (SUMMARY, False)
    assert not memory.statement.startswith("对话摘要:")
    assert len(memory.statement) <= 100


async def test_llm_summarize_respects_100_char_limit():
    async with ModelServer(default="记" * 150) as server, summarised(server) as lore:
        (memory,) = await five_turns(lore)
    assert memory.statement == "记" * 100


async def test_llm_summarize_no_useful_memory():
    async with ModelServer(default="无有效记忆") as server, summarised(server) as lore:
        assert await five_turns(lore) == []
        assert results(lore) == {"nothing": 1}


async def test_llm_summarize_primary_timeout_fallback_to_secondary():
    async with (
        ModelServer(default=Hangs()) as first,
        ModelServer(default=SECOND) as second,
        summarised(first, second, summary_timeout_seconds=SOON) as lore,
    ):
        (memory,) = await five_turns(lore)
    assert (memory.statement, memory.made_by) == (SECOND, f"siliconflow/{QWEN}")


async def test_llm_summarize_all_providers_fail_truncation_fallback():
    async with ModelServer(default=Fails(status=500)) as server, summarised(server) as lore:
        (memory,) = await five_turns(lore, asked="记" * 300)
        assert len(server.requests) == 2
    assert memory.statement.startswith("对话摘要: 小林: 记记记")
    assert len(memory.statement) == len("对话摘要: ") + 200


async def test_llm_summarize_validation_fail_tries_next():
    async with ModelServer(default="") as first, ModelServer(default=SECOND) as second:
        async with summarised(first, second) as lore:
            (memory,) = await five_turns(lore)
        assert (len(first.requests), len(second.requests)) == (1, 1)
    assert (memory.statement, memory.made_by) == (SECOND, f"siliconflow/{QWEN}")


async def test_llm_summarize_validation_fail_short_text():
    async with ModelServer(default="嗯") as first, ModelServer(default=SECOND) as second:
        async with summarised(first, second) as lore:
            (memory,) = await five_turns(lore)
        assert (len(first.requests), len(second.requests)) == (1, 1)
    assert memory.statement == SECOND


async def test_llm_summarize_model_not_registered():
    async with ModelServer(default=SUMMARY) as server, summarised(server, models={MODEL: None}) as lore:
        (memory,) = await five_turns(lore)
        assert server.requests == []
    assert memory.statement.startswith("对话摘要: 小林: 第1次问：周五几点？\n小助手: 第1次答")


async def test_extract_memory_calls_llm_summarize():
    async with ModelServer(default="测试摘要内容") as server, summarised(server) as lore:
        (memory,) = await five_turns(lore)
        assert len(server.requests) == 1
    assert (memory.statement, memory.kind, memory.scope) == ("测试摘要内容", MemoryKind.SHORT, "agent:agent-7")


async def test_extract_memory_skips_when_none():
    async with ModelServer(default="无有效记忆") as server, summarised(server) as lore:
        await talk(lore, *range(1, 11))
        await until(lore, 2)
        assert (await memories(lore), len(server.requests), results(lore)) == ([], 2, {"nothing": 2})


async def test_extract_memory_frequency_unchanged():
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore:
        asked = []
        for number in range(1, 11):
            await talk(lore, number)
            await until(lore, number // 5)
            asked.append(len(server.requests))
    assert asked == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2]


async def test_truncation_fallback_format():
    async with ModelServer(default=Fails()) as server, summarised(server, extract_every=1) as lore:
        await talk(lore, 1, asked="茶" * 300)
        await until(lore, 1)
        (memory,) = await memories(lore)
    assert memory.statement == f"对话摘要: {('小林: ' + '茶' * 300)[:200]}"


async def test_truncation_fallback_short_text():
    async with ModelServer(default=Fails()) as server, summarised(server, extract_every=1) as lore:
        await talk(lore, 1, asked="茶" * 20, said="好" * 20)
        await until(lore, 1)
        (memory,) = await memories(lore)
    assert memory.statement.split() == ["对话摘要:", "小林:", "茶" * 20, "小助手:", "好" * 20]


# 9.2 系统测试


async def test_st_memory_content_is_llm_generated():
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore, served(lore) as http:
        for number in range(1, 6):
            body = {"user_id": "u1", "agent_code": "agent-7", "user_query": f"问{number}", "agent_response": "七点。"}
            assert (await http.post("/sessions/room-1/turns", json=body)).status_code == 200
        await until(lore, 1)
        (memory,) = (await http.get("/facts?scope=agent:agent-7&kind=short")).json()["facts"]
    assert memory["statement"] == SUMMARY
    assert len(memory["statement"]) <= 100


async def test_st_fallback_chain_no_error_no_block(caplog):
    async with (
        ModelServer([Hangs()], default=Fails()) as first,
        ModelServer([SECOND], default=Fails()) as second,
        summarised(first, second, summary_timeout_seconds=SOON) as lore,
    ):
        for extraction, numbers in enumerate((range(1, 6), range(6, 11)), 1):
            begun = time.monotonic()
            await talk(lore, *numbers)
            assert time.monotonic() - begun < SOON
            await until(lore, extraction)
        switched, cut = await memories(lore)
        assert len(await lore.messages.page("room-1")) == 20
    assert (switched.statement, cut.statement[:6]) == (SECOND, "对话摘要: ")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_st_model_registry_has_memory_summary():
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        entry = {one.model_id: one for one in await lore.models.list_available_models(internal=True)}[MODEL]
    offers = [(one.name, one.model_id) for one in entry.providers]
    assert offers[:2] == [("openrouter", GEMMA), ("siliconflow", QWEN)]


async def test_st_memory_summary_model_hidden_from_frontend():
    chat = {"chat": {"providers": [{"name": "openai", "model_id": "gpt-5.4-mini"}]}}
    async with roomlore.open("sqlite://", settings=Settings(models=chat)) as lore, served(lore) as http:
        assert [one.model_id for one in await lore.models.list_available_models()] == ["chat"]
        assert [one["model_id"] for one in (await http.get("/models")).json()["models"]] == ["chat"]


async def test_st_delayed_send_not_blocked_by_memory():
    async with ModelServer(default=Hangs()) as server, summarised(server, summary_timeout_seconds=600) as lore:
        await talk(lore, *range(1, 5))
        begun = time.monotonic()
        await talk(lore, 5)
        assert time.monotonic() - begun < 2
        async with asyncio.timeout(30):
            while not server.requests:  # noqa: ASYNC110 - a server tells nobody
                await asyncio.sleep(0.01)
        assert read(server.requests[0])[-1] == "小助手: 第5次答：七点，老地方。"
        assert server.requests[0].left_at is None
        await server.stop()
