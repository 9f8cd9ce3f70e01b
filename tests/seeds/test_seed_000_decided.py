"""Seed 000: what roomlore does otherwise, by decision (see differences.py)."""

import asyncio
from datetime import UTC, datetime

import pytest
from agent_room import (
    AGENT,
    MODEL,
    SUMMARY,
    five_turns,
    memories,
    read,
    summarised,
    talk,
    until,
)
from rig import held_clock, setting

import roomlore
from roomlore import Message, Role, Settings
from roomlore_testkit import START
from roomlore_testkit.model_server import Fails, ModelServer

pytestmark = pytest.mark.usefixtures("two_keys")


async def test_a_cut_text_is_flagged_as_a_fallback():
    async with ModelServer(default=Fails()) as server, summarised(server) as lore:
        (memory,) = await five_turns(lore)
    assert (memory.fallback, memory.made_by) == (True, "fallback")


async def test_a_cut_text_is_summarised_again_when_a_provider_is_back(tmp_path):
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    with held_clock(START) as clock:
        async with ModelServer(default=Fails()) as server, summarised(server, url=url) as lore:
            await five_turns(lore)
        clock.advance(3600)
        async with ModelServer(default=SUMMARY) as server, summarised(server, url=url) as lore:
            async with asyncio.timeout(30):
                while (await memories(lore))[0].fallback:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.01)
            (memory,) = await memories(lore)
    assert (memory.statement, memory.version) == (SUMMARY, 2)


async def test_everything_since_the_last_extraction_is_read():
    async with ModelServer(default=SUMMARY) as server, summarised(server) as lore:
        await five_turns(lore)
        await talk(lore, *range(6, 11))
        await until(lore, 2)
    first, second = [read(asked) for asked in server.requests]
    assert [len(first), len(second)] == [10, 10]
    assert (first[0], second[0]) == ("小林: 第1次问：周五几点？", "小林: 第6次问：周五几点？")


async def test_the_count_of_replies_survives_a_restart(tmp_path):
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    async with ModelServer(default=SUMMARY) as server:
        async with summarised(server, url=url) as lore:
            await talk(lore, 1, 2, 3)
        async with summarised(server, url=url) as lore:
            await talk(lore, 4, 5)
            await until(lore, 1)
            assert len(await memories(lore)) == 1
        assert len(read(server.requests[0])) == 10


async def test_further_providers_ship_after_the_two_and_are_asked_only_with_a_token():
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        entry = {one.model_id: one for one in await lore.models.list_available_models(internal=True)}[MODEL]
    usable = {one.name: one.usable for one in entry.providers}
    assert [name for name, can in usable.items() if can] == ["openrouter", "siliconflow"]
    assert len(usable) > 2


async def test_a_hundred_characters_are_counted_as_people_see_them():
    async with ModelServer(default="👩‍👩‍👧‍👦" * 120) as server, summarised(server) as lore:
        (memory,) = await five_turns(lore)
    assert memory.statement == "👩‍👩‍👧‍👦" * 100


def test_what_the_document_hard_codes_is_a_setting(monkeypatch):
    monkeypatch.setenv("MEMORY_SUMMARY_TIMEOUT_SECONDS", "7.5")
    monkeypatch.setenv("MEMORY_EXTRACT_EVERY", "3")
    assert [setting(name) for name in ("summary_timeout_seconds", "extract_every")] == ["7.5", "3"]


async def test_each_line_has_its_time_and_an_english_talk_an_english_prompt():
    sent = {"sent_at": datetime(2026, 5, 8, 9, 30, tzinfo=UTC), "room_id": "room-1"}
    async with ModelServer(default="Ann dines on Friday.") as server, summarised(server, extract_every=1) as lore:
        await lore.messages.add(Message(id="q", sender_id="u1", sender_name="Ann", text="Dinner on Friday?", **sent))
        await lore.messages.add(Message(id="a", sender_id=AGENT, role=Role.ASSISTANT, text="At seven.", **sent))
        await until(lore, 1)
    prompt = server.requests[0].prompt
    assert "[Fri 2026-05-08 09:30] Ann: Dinner on Friday?\n" in prompt
    assert "NO_MEMORY" in prompt
