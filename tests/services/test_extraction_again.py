"""Memories that were kept without a model are made again when one is back, each paid for once."""

import asyncio
from datetime import timedelta

import pytest

import roomlore
from extraction_rig import (
    CHINESE,
    ENGLISH,
    MODEL,
    both,
    conversations,
    extracted,
    memories,
    opened,
    records,
    replies,
    reply,
    settings,
    until,
)
from roomlore import Settings
from roomlore.core.memory.extraction import attempt_at
from roomlore.core.memory.memory import Action, Change, MemoryStatus
from roomlore.services.extraction import EXTRACTION_RETRY
from roomlore_testkit.model_server import Fails, ModelServer, Says


@pytest.fixture(params=["process", "dbos"])
def kept_by(request, sqlite_url) -> dict:
    """Return the settings of an engine that keeps the work."""
    return {"url": sqlite_url, "durable_work": request.param}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch) -> None:
    """A provider that failed is left alone for a moment only, however often it failed; work begins at once."""
    monkeypatch.setattr("roomlore.core.chat.FIRST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr("roomlore.core.chat.LONGEST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr("roomlore.wiring.work._TOGETHER_SECONDS", 0)


async def flagged(lore) -> int:
    async with lore.storage.reading() as work:
        return len(await work.memories.fallbacks(after=None, limit=1000))


async def made_again(lore) -> None:
    """Sweeps as often as the job would in a long time, until nothing waits for a model."""

    async def none_left() -> bool:
        await sweep(lore)
        await asyncio.sleep(0.05)
        return not await flagged(lore)

    await until(none_left, seconds=300)


async def sweep(lore) -> list[str]:
    return await lore._resources.sweeps[EXTRACTION_RETRY]()


async def settled(lore) -> None:
    """Waits until nothing of this kind is under way."""

    async def ended() -> bool:
        found = await lore._resources.durable.page(names=[EXTRACTION_RETRY])
        return not [state for state in found if state.status in ("waiting", "running")]

    await until(ended)


def counted(lore, result: str) -> bool:
    return f'roomlore_fallbacks_total{{result="{result}"}}' in lore.prometheus().decode()


async def fallbacks(server, lore, said, count: int = 1) -> None:
    """So many memories of as many rooms, made while the only provider was down."""
    await server.stop()
    for n in range(count):
        await replies(lore, said, 5, room=f"r{n}")
    await extracted(lore)
    assert await flagged(lore) == count


@both
async def test_twelve_are_made_again_once_the_provider_is_back(said, kept_by):
    async with ModelServer(default=said.summary) as server, opened(server, **kept_by) as lore:
        await fallbacks(server, lore, said, 12)
        assert server.requests == []
        await server.start()
        await made_again(lore)
        await settled(lore)
        assert len(server.requests) == 12
        now = await memories(lore)
        assert {memory.statement for memory in now} == {said.summary}
        assert {(memory.fallback, memory.made_by, memory.version) for memory in now} == {(False, "first/tiny", 2)}


@both
async def test_what_is_made_again_says_of_what_by_what_and_why(said):
    async with ModelServer(default=said.summary) as server, opened(server) as lore:
        await fallbacks(server, lore, said)
        (before,) = await memories(lore)
        await server.start()
        await asyncio.sleep(0.01)
        await made_again(lore)
        (after,), made = await memories(lore), await records(lore)
        assert (after.lineage_id, after.parents, after.sources) == (
            before.memory_id,
            (before.memory_id,),
            before.sources,
        )
        assert (after.kind, after.scope, after.created_at) == (before.kind, before.scope, before.created_at)
        assert after.change_summary
        record = next(record for record in made if record.evolution_id == after.evolution_id)
        assert (record.status, record.room_id, record.first_arrival, record.last_arrival) == ("applied", "r0", 1, 10)
        assert (record.model, record.raw_answer, record.usage.output_tokens) == ("first/tiny", said.summary, 3)
        assert record.prompt_hash
        assert record.facts == {"again": before.memory_id}
        async with lore.storage.reading("default") as work:
            changes = await work.memories.changes(scope="agent:bot", after=1, limit=9)
            (old,) = await work.memories.by_id(memory_ids=[before.memory_id])
        assert [(change.action, change.closes, change.actor) for change in changes] == [
            (Action.UPDATE, (before.memory_id,), "first/tiny")
        ]
        assert (changes[0].old_statement, changes[0].reason) == (before.statement, after.change_summary)
        assert old.status is MemoryStatus.DEPRECATED
        assert counted(lore, "made")


async def test_the_model_reads_what_it_would_have_read():
    async with ModelServer(default=Fails(status=400)) as server, opened(server) as lore:
        await replies(lore, CHINESE, 5)
        await extracted(lore)
        server.default = CHINESE.summary
        await made_again(lore)
        first, second = conversations(server)
        assert first == second


@pytest.mark.parametrize("answer", ["NO_MEMORY", "无有效记忆"])
async def test_one_that_is_not_worth_keeping_is_deleted(answer):
    async with ModelServer(default=answer) as server, opened(server) as lore:
        await fallbacks(server, lore, ENGLISH)
        await server.start()
        await made_again(lore)
        assert await memories(lore) == []
        (gone,) = await lore.memories.page("agent:bot", status="deprecated")
        assert (gone.fallback, gone.version) == (False, 1)
        assert gone.change_summary
        assert {record.status for record in await records(lore)} == {"applied", "nothing"}
        assert counted(lore, "nothing")


async def test_messages_that_were_deleted_meanwhile_are_left_out():
    async with ModelServer(default=ENGLISH.summary) as server, opened(server) as lore:
        await fallbacks(server, lore, ENGLISH)
        await lore.messages.delete("r0", ["a3-bot", "q5-bot"])
        await server.start()
        await made_again(lore)
        assert [line.split(":")[0] for line in conversations(server)[0].splitlines()] == [
            "Lin", "bot", "Lin", "bot", "Lin", "Lin", "bot", "bot"
        ]  # fmt: skip
        (memory,) = await memories(lore)
        assert [source.message_id for source in memory.sources] == [
            "q1-bot", "a1-bot", "q2-bot", "a2-bot", "q3-bot", "q4-bot", "a4-bot", "a5-bot"
        ]  # fmt: skip


async def test_the_new_words_of_a_message_count_as_said_when_it_was_edited():
    async with ModelServer(default=ENGLISH.summary) as server, opened(server) as lore:
        await fallbacks(server, lore, ENGLISH)
        (before,) = await memories(lore)
        await lore.memories.share(before.memory_id, "everyone")
        edited = await lore.messages.edit("r0", "q1-bot", text="At eight, and do not tell Bo.")
        await server.start()
        await made_again(lore)
        (after,) = await memories(lore)
        assert after.evidence[0].last == edited.edited_at > before.evidence[0].last
        assert after.shared_with == ()


async def test_with_none_of_its_messages_left_it_is_deleted_and_no_model_asked():
    async with ModelServer(default=ENGLISH.summary) as server, opened(server) as lore:
        await fallbacks(server, lore, ENGLISH)
        await lore.messages.delete("r0", [f"{kind}{n}-bot" for n in range(1, 6) for kind in "qa"])
        await server.start()
        await made_again(lore)
        assert (server.requests, await memories(lore)) == ([], [])
        assert counted(lore, "sourceless")


async def edited(lore, memory) -> None:
    """A person writes something better."""
    from dataclasses import replace

    now = memory.updated_at + timedelta(seconds=1)
    new = replace(memory, memory_id="mine", version=2, parents=(memory.memory_id,), statement="mine", fallback=False,
                  made_by="caller", updated_at=now)  # fmt: skip
    async with lore.storage.writing("default") as work:
        scope = await work.memories.lock(scope=memory.scope, now=now)
        change = Change(number=scope.changes + 1, scope=memory.scope, action=Action.UPDATE, memory=new,
                        closes=(memory.memory_id,), old_statement=memory.statement, at=now)  # fmt: skip
        await work.memories.apply(scope=memory.scope, changes=[change])


async def test_one_that_is_edited_while_the_model_thinks_is_left_alone():
    async with ModelServer(default=Says(text=ENGLISH.summary, after=0.3)) as server, opened(server, seconds=5) as lore:
        await fallbacks(server, lore, ENGLISH)
        await server.start()
        assert len(await sweep(lore)) == 1

        async def asked() -> bool:
            return bool(server.requests)

        await until(asked)
        await edited(lore, (await memories(lore))[0])
        await settled(lore)
        assert [memory.statement for memory in await memories(lore)] == ["mine"]
        assert (await sweep(lore), len(server.requests)) == ([], 1)
        assert counted(lore, "left")


@pytest.mark.parametrize("change", ["a message is deleted", "a message is edited", "the memory is weakened"])
async def test_what_changes_while_the_model_thinks_is_left_for_the_next_time(sqlite_url, change):
    """A regression: the memory was made of messages that were deleted meanwhile, and what was done to it undone."""
    async with ModelServer(default=ENGLISH.summary) as server, opened(server, url=sqlite_url) as lore:
        await fallbacks(server, lore, ENGLISH)
        (before,) = await memories(lore)

        async def answer(_: object) -> str:
            if len(server.requests) == 1:
                if change == "a message is deleted":
                    await other.messages.delete("r0", "q1-bot")
                elif change == "a message is edited":
                    await other.messages.edit("r0", "q1-bot", text="Is it at eight?")
                else:
                    await other.memories.strength(before.memory_id, 0.1)
            return ENGLISH.summary

        server.answer = answer
        await server.start()
        async with roomlore.open(sqlite_url, settings=settings(server), background=False) as other:
            await sweep(lore)
            await settled(lore)
        (after,) = await memories(lore)
        assert (after.statement, after.fallback, len(server.requests)) == (before.statement, True, 1)
        assert after.strength == (0.1 if change == "the memory is weakened" else before.strength)
        assert counted(lore, "left")


async def test_a_provider_that_is_still_down_is_asked_seldom(monkeypatch):
    monkeypatch.setattr("roomlore.core.chat.FIRST_PAUSE_SECONDS", 15)
    monkeypatch.setattr("roomlore.core.chat.LONGEST_PAUSE_SECONDS", 15)
    async with ModelServer(default=Fails(status=503)) as server, opened(server) as lore:
        for n in range(12):
            await replies(lore, ENGLISH, 5, room=f"r{n}")
        await extracted(lore)
        assert await flagged(lore) == 12
        asked = len(server.requests)
        assert asked <= 6
        handed_in = [await sweep(lore) for _ in range(20)]
        assert [work for works in handed_in for work in works] == []
        assert len(server.requests) == asked


async def test_one_goes_first_and_the_rest_follows():
    slow = Says(text=ENGLISH.summary, after=0.3)
    async with ModelServer(default=slow) as server, opened(server, seconds=5, work_at_once=4) as lore:
        await fallbacks(server, lore, ENGLISH, 6)
        await server.start()
        await until(lambda: lore.models.can_ask(MODEL))
        assert len(await sweep(lore)) == 1
        assert await sweep(lore) == []
        await made_again(lore)
        assert len(server.requests) == 6


async def test_while_none_can_be_asked_nothing_is_handed_in():
    given = Settings(models={"memory-summary-model": None}, durable_work="process")
    async with roomlore.open("sqlite://", settings=given) as lore:
        await replies(lore, ENGLISH, 5)
        await extracted(lore)
        assert (await flagged(lore), await sweep(lore)) == (1, [])


async def test_one_that_no_model_makes_sense_of_does_not_keep_the_others_back(monkeypatch):
    """It is asked about again when it is twice as old."""
    async with ModelServer(default=lambda: None) as server, opened(server) as lore:
        await fallbacks(server, lore, ENGLISH, 3)
        await lore.messages.add([reply(n, "poison") for n in range(1, 6)])
        await extracted(lore)
        server.answer = lambda asked: Says(text="?" if "poison" in asked.prompt else ENGLISH.summary)
        await server.start()

        async def one_left() -> bool:
            await sweep(lore)
            await asyncio.sleep(0.02)
            return await flagged(lore) == 1

        await until(one_left)
        await settled(lore)
        for _ in range(5):
            await sweep(lore)
            await asyncio.sleep(0.02)
        await settled(lore)
        assert sum("poison" in text for text in conversations(server)) == 1
        assert counted(lore, "unusable")
        failed = [record for record in await records(lore) if record.status == "failed"]
        assert "shorter" in failed[0].error
        monkeypatch.setattr("roomlore.services.extraction.retry.attempt_at", lambda age: 9)
        await sweep(lore)
        await settled(lore)
        assert sum("poison" in text for text in conversations(server)) == 2


def test_attempts_come_later_each_time():
    minutes = [next(m for m in range(10_000) if attempt_at(m * 60) >= n) for n in range(1, 12)]
    assert minutes == [1, 2, 4, 8, 16, 32, 64, 124, 184, 244, 304]
    assert attempt_at(-5) == attempt_at(59) == 0
    assert [attempt_at(s) for s in range(0, 400_000, 30)] == sorted(attempt_at(s) for s in range(0, 400_000, 30))
