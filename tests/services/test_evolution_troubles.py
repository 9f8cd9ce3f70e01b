"""Evolutions where something goes wrong or in between: models, other writers, other evolutions, durable work."""

import asyncio
import logging
from datetime import timedelta

import pytest

from engines import ENGINES
from evolution_rig import (
    CHINESE,
    ENGLISH,
    MODEL,
    active,
    block,
    both,
    create,
    delete,
    elsewhere,
    keep,
    lines,
    mark,
    opened,
    remember,
    talk,
    update,
)
from extraction_rig import until
from roomlore import Message
from roomlore.adapters.inprocess import SystemClock
from roomlore.core.errors import Conflict, ModelUnavailable, NotFound, StorageUnavailable
from roomlore.core.memory.memory import Action, Source
from roomlore.services.evolution.piece import DirectSteps
from roomlore.storage.memories import EvolutionRecords
from roomlore_testkit.model_server import Drops, Fails, Hangs, ModelServer, Says


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


# Models.


async def test_without_a_provider_the_mode_llm_is_a_clear_error(monkeypatch):
    for name in ("OPENROUTER_API_KEY", "SILICONFLOW_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with opened() as lore:
        await talk(lore, CHINESE, range(1, 4))
        for verb in (lore.memories.evolve, lore.memories.begin_evolution):
            with pytest.raises(ModelUnavailable, match=MODEL):
                await verb("g", mode="llm")
        assert (await mark(lore), await lore.memories.evolutions("group:g")) == (None, [])
        assert await lore.jobs.page() == []


TROUBLES = {
    "down": Fails(status=503),
    "no key": Fails(status=401),
    "time-out": Hangs(),
    "cut": Drops(),
    "empty": Says(text=""),
    "blank": Says(text=" \n　"),
    "null": Says(content=None),
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_provider_that_gives_no_answer_changes_nothing(trouble):
    said = ENGLISH
    async with ModelServer(default=TROUBLES[trouble]) as server, opened(server, seconds=0.8) as lore:
        await remember(lore, said.known)
        await talk(lore, said, range(1, 4))
        with pytest.raises(ModelUnavailable):
            await lore.memories.evolve("g", mode="llm")
        assert server.requests
        assert (await mark(lore), await lore.memories.evolutions("group:g")) == (None, [])
        assert await active(lore) == list(said.known)


async def test_the_next_provider_is_asked_where_the_first_one_fails():
    said = ENGLISH
    servers = ModelServer(default=Fails(status=500)), ModelServer(default=lines(create(said.new[0], "c1")))
    async with servers[0], servers[1], opened(*servers) as lore:
        await talk(lore, said, range(1, 4))
        result = await lore.memories.evolve("g", mode="llm")
        assert (result.model, result.stats.created) == ("second/tiny", 1)


@both
async def test_what_a_provider_that_is_down_would_have_read_is_left_for_when_it_is_back(said):
    async with ModelServer(default=Fails(status=500)) as server, opened(server) as lore:
        await talk(lore, said, range(1, 4))
        for scope, name in (("g", "evolution"), ("user:u1", "facts:u1")):
            with pytest.raises(ModelUnavailable):
                await lore.memories.evolve(scope)
            assert not await mark(lore, name=name)
        server.default = lines(create(said.new[0], "c1"))
        await until(lambda: lore.models.can_ask(MODEL))
        result = await lore.memories.evolve("g")
        assert (result.mode, result.messages, result.stats.created) == ("llm", 3, 1)


@both
async def test_without_a_provider_a_group_goes_by_rules_and_a_person_does_not(said):
    async with opened() as lore:
        await talk(lore, said, range(1, 4))
        result = await lore.memories.evolve("g")
        assert (result.mode, result.model, await mark(lore)) == ("offline", "", 3)
        record = await lore.memories.evolution(result.evolution_id)
        assert (record.model, record.prompt_name, record.raw_answer, record.facts["mode"]) == ("", "", "", "offline")
        with pytest.raises(ModelUnavailable) as caught:
            await lore.memories.evolve("user:u1")
        assert "give one a key" in str(caught.value)
        assert "offline" not in str(caught.value), "rules find nothing about one person"
        assert await mark(lore, name="facts:u1") is None


async def test_rules_ask_nobody():
    async with ModelServer() as server, opened(server) as lore:
        await talk(lore, CHINESE, range(1, 4))
        result = await lore.memories.evolve("g", mode="offline")
        assert (result.mode, result.messages, server.requests) == ("offline", 3, [])


# Others change things while the model thinks. That they can shows that nothing is locked meanwhile.


async def test_a_memory_edited_while_the_model_thinks_is_read_anew(url):
    said = ENGLISH
    edited = "Edited by a person meanwhile"

    async def script(asked):
        if len(server.requests) == 1:
            await elsewhere(url, lambda other: other.memories.update(old.memory_id, statement=edited))
            return lines(update("m1", said.better[0], "c1"))
        return lines(update("m1", f"{edited}, and {said.better[0]}", "c1"))

    async with ModelServer(script) as server, opened(server, url=url) as lore:
        (old,) = await remember(lore, said.known[:1])
        await talk(lore, said, range(1, 4))
        result = await lore.memories.evolve("g")
        assert [block(asked, "memories")[0].split("]: ")[1] for asked in server.requests] == [said.known[0], edited]
        assert (result.stats.updated, await active(lore)) == (1, [f"{edited}, and {said.better[0]}"])
        assert [one.version for one in await lore.memories.history(old.memory_id)] == [1, 2, 3]
        assert len(await lore.memories.evolutions("group:g")) == 1


async def test_what_the_answer_does_not_speak_of_may_change_meanwhile(url):
    said = CHINESE

    async def script(asked):
        await elsewhere(url, lambda other: other.memories.update(old[1].memory_id, statement=said.better[1]))
        await elsewhere(url, lambda other: other.memories.add("group:g", said.new[1]))
        return lines(update("m1", said.better[0], "c1"), create(said.new[0], "c2"))

    async with ModelServer(script) as server, opened(server, url=url) as lore:
        old = await remember(lore, said.known[:2])
        await talk(lore, said, range(1, 4))
        result = await lore.memories.evolve("g")
        assert (len(server.requests), result.stats.updated, result.stats.created) == (1, 1, 1)
        assert sorted(await active(lore)) == sorted([*said.better, said.new[0], said.new[1]])
        numbers = [change.number for change in await lore.memories.changes("group:g")]
        assert numbers == list(range(1, 7))


async def test_a_strength_set_meanwhile_is_not_written_over(url):
    said = ENGLISH

    async def script(asked):
        if len(server.requests) == 1:
            await elsewhere(url, lambda other: other.memories.strength(old.memory_id, 0.25))
        return lines(update("m1", said.known[0], "c1"))

    async with ModelServer(script) as server, opened(server, url=url) as lore:
        (old,) = await remember(lore, said.known[:1])
        await talk(lore, said, range(1, 4))
        result = await lore.memories.evolve("g")
        assert [change.action for change in result.changes] == [Action.STRENGTH]
        assert result.changes[0].memory.strength == pytest.approx(0.25 + 0.1 * 0.75, abs=0.001)


async def test_three_times_overtaken_is_a_conflict_and_changes_nothing(url):
    said = ENGLISH
    edits = [f"{said.known[0]}, edit {letter}" for letter in "abc"]

    async def script(asked):
        edit = edits[len(server.requests) - 1]
        await elsewhere(url, lambda other: other.memories.update(old.memory_id, statement=edit))
        return lines(update("m1", said.better[0], "c1"))

    async with ModelServer(script) as server, opened(server, url=url) as lore:
        (old,) = await remember(lore, said.known[:1])
        await talk(lore, said, range(1, 4))
        with pytest.raises(Conflict, match="evolve it again"):
            await lore.memories.evolve("g")
        assert (len(server.requests), await active(lore), await mark(lore)) == (3, edits[2:], None)
        assert await lore.memories.evolutions("group:g") == []
        assert b'roomlore_evolutions_total{mode="auto",result="error"} 1.0' in lore.prometheus()


async def test_messages_that_others_read_meanwhile_are_not_read_twice(url):
    """As where a lease ran out: the watermark is what counts."""
    said = ENGLISH

    async def move(other):
        async with other.storage.writing("default") as work:
            now = SystemClock().now()
            assert await work.progress.move_mark(room_id="g", name="evolution", arrival=3, was=0, now=now)

    async def script(asked):
        await elsewhere(url, move)
        return lines(create(said.new[0], "c1"))

    async with ModelServer(script) as server, opened(server, url=url) as lore:
        await talk(lore, said, range(1, 4))
        assert (await lore.memories.evolve("g")).message == "There are no new messages."
        assert (len(server.requests), await active(lore)) == (1, [])


# One at a time.


async def test_two_evolutions_of_a_group_come_one_after_the_other(url):
    said = ENGLISH
    answer = Says(text=lines(create(said.new[0], "c1")), after=0.3)
    async with ModelServer([answer], default=lines(keep("m1"))) as server, opened(server, url=url) as lore:
        await talk(lore, said, range(1, 4))
        results = await asyncio.gather(*(lore.memories.evolve("g") for _ in range(3)))
        assert sorted(result.stats.created for result in results) == [0, 0, 1]
        assert len(server.requests) == 1


async def test_groups_do_not_wait_for_each_other():
    said = ENGLISH

    def script(asked):
        return Says(text=lines(create(said.new[0], "c1")), after=1.5)

    async with ModelServer(script) as server, opened(server) as lore:
        for room in ("a", "b"):
            await talk(lore, said, range(1, 4), room=room)
        first = asyncio.create_task(lore.memories.evolve("a"))
        second = asyncio.create_task(lore.memories.evolve("b"))
        await asyncio.gather(first, second)
        ends = min(asked.answered_at for asked in server.requests)
        assert max(asked.at for asked in server.requests) < ends


async def test_a_lease_is_kept_up_while_the_model_thinks_and_given_back(url):
    said = ENGLISH
    answer = Says(text=lines(create(said.new[0], "c1")), after=1.2)
    async with (
        ModelServer([answer], default=lines(keep("m1"))) as server,
        opened(server, url=url, evolve_lease_seconds=0.3) as lore,
    ):
        await talk(lore, said, range(1, 4))
        results = await asyncio.gather(*(lore.memories.evolve("g") for _ in range(2)))
        assert (sorted(result.stats.created for result in results), len(server.requests)) == ([0, 1], 1)
        await talk(lore, said, range(4, 6))
        assert (await lore.memories.evolve("g")).messages == 2


async def test_a_lease_of_a_process_that_is_gone_runs_out(url):
    said = ENGLISH
    async with (
        ModelServer(default=lines(create(said.new[0], "c1"))) as server,
        opened(server, url=url) as lore,
    ):
        await talk(lore, said, range(1, 4))
        now = SystemClock().now()
        async with lore.storage.writing("default") as work:
            held = {"name": "evolution:group:g", "holder": "gone"}
            assert await work.progress.take_lease(**held, now=now, until=now + timedelta(seconds=0.5))
        result = await lore.memories.evolve("g")
        assert result.at >= now + timedelta(seconds=0.5)
        assert result.stats.created == 1


# As durable work.


@both
async def test_it_is_done_as_durable_work(said, url):
    async with (
        ModelServer(default=lines(create(said.new[0], "c1"))) as server,
        opened(server, url=url, durable_work="dbos", background=False) as lore,
    ):
        await talk(lore, said, range(1, 4))
        begun = await lore.memories.begin_evolution("g", mode="llm")
        with pytest.raises(NotFound):
            await lore.memories.evolved(begun.evolution_id)
        await lore.jobs.catch_up(seconds=60)
        job = await lore.jobs.get(begun.job_id)
        assert (job.status, job.kind, job.room_id) == ("done", "evolution", "g")
        result = await lore.memories.evolved(begun.evolution_id)
        assert (result.stats.created, await active(lore)) == (1, [said.new[0]])
        empty = await lore.memories.begin_evolution("g")
        job = await lore.jobs.wait(empty.job_id)
        assert (job.status, job.progress) == ("done", "There are no new messages.")
        with pytest.raises(NotFound):
            await lore.memories.evolved(empty.evolution_id)


async def test_work_that_failed_is_tried_again_and_done_once(caplog):
    caplog.set_level(logging.CRITICAL, "roomlore")
    said = ENGLISH
    script = [Fails(status=400), lines(create(said.new[0], "c1"))]
    async with ModelServer(script, default=lines(keep("m1"))) as server, opened(server) as lore:
        await talk(lore, said, range(1, 4))
        begun = await lore.memories.begin_evolution("g", mode="llm")
        job = await lore.jobs.wait(begun.job_id)
        assert (job.status, job.attempts, len(server.requests)) == ("done", 2, 2)
        assert await active(lore) == [said.new[0]]


async def test_an_answer_is_paid_for_once_where_it_cannot_be_stored_at_first(sqlite_url, monkeypatch):
    """An answer is stored at last as the model gave it at first."""
    said, failures = CHINESE, [1]
    add = EvolutionRecords.add_evolution

    async def fails_once(self, **given):
        if failures:
            failures.pop()
            raise StorageUnavailable("The disk is full.")
        return await add(self, **given)

    monkeypatch.setattr(EvolutionRecords, "add_evolution", fails_once)
    async with ModelServer(default=lines(create(said.new[0], "c1"))) as server, opened(server, url=sqlite_url) as lore:
        await talk(lore, said, range(1, 4))
        begun = await lore.memories.begin_evolution("g")
        job = await lore.jobs.wait(begun.job_id)
        assert (job.status, job.attempts, len(server.requests)) == ("done", 2, 1)
        assert await active(lore) == [said.new[0]]


async def test_work_that_is_done_again_does_nothing_twice():
    said = ENGLISH
    async with ModelServer(default=lines(create(said.new[0], "c1"))) as server, opened(server) as lore:
        await talk(lore, said, range(1, 4))
        begun = await lore.memories.begin_evolution("g")
        await lore.jobs.wait(begun.job_id)
        await talk(lore, said, range(4, 6))
        evolver = lore._resources.evolver
        arguments = {
            "tenant": "default", "scope": "group:g", "days": 1, "mode": "auto",
            "evolution_id": begun.evolution_id, "room_id": "g",
        }  # fmt: skip
        await evolver.work(DirectSteps(), arguments)
        assert (len(server.requests), await mark(lore), await active(lore)) == (1, 3, [said.new[0]])


async def test_a_message_deleted_while_the_model_thinks_leaves_no_trace(url):
    said = ENGLISH
    secret = "My number is 555 0100"

    async def script(asked):
        if len(server.requests) == 1:
            await elsewhere(url, lambda other: other.messages.delete("g", ["x"]))
            return lines(create(secret, "c1"))
        return lines(create(said.new[0], "c1"))

    async with ModelServer(script) as server, opened(server, url=url) as lore:
        await lore.messages.add(Message(id="x", room_id="g", sender_id="u", text=secret))
        await talk(lore, said, range(1, 4))
        await lore.memories.evolve("g")
        first, second = server.requests
        assert (secret in first.prompt, secret in second.prompt) == (True, False)
        (memory,) = await lore.memories.page("group:g")
        assert (memory.statement, memory.sources) == (said.new[0], (Source("g", "c1"),))


async def test_a_message_edited_while_the_model_thinks_is_read_again(url):
    said = CHINESE

    async def script(asked):
        if len(server.requests) == 1:
            await elsewhere(url, lambda other: other.messages.edit("g", "c1", text="改成下周六了"))
        return lines(create(said.new[0], "c1"))

    async with ModelServer(script) as server, opened(server, url=url) as lore:
        await talk(lore, said, range(1, 4))
        await lore.memories.evolve("g")
        assert "改成下周六了" in block(server.requests[-1], "messages")[0]
        assert len(server.requests) == 2


async def test_deletions_are_counted_against_what_is_active_when_they_are_done(url):
    said = ENGLISH

    async def script(asked):
        for memory in old[3:]:
            await elsewhere(url, lambda other, memory=memory: other.memories.delete(memory.memory_id))
        return lines(delete("m1"), delete("m2"))

    async with (
        ModelServer(script) as server,
        opened(server, url=url, evolve_delete_share=0.4, strength_floor=1.0) as lore,
    ):
        old = await remember(lore, said.known)
        await talk(lore, said, range(1, 4))
        result = await lore.memories.evolve("g")
        assert (result.stats.deleted, len(result.rejected)) == (1, 1)


@pytest.mark.parametrize("work", ["dbos", "process"])
async def test_odd_characters_of_an_answer_hurt_nothing(url, work):
    said = CHINESE
    odd = '{"action": "delete", "old_id": "m\x009\ud800"}\n\x00\ud800' + lines(create(said.new[0], "c1"))
    async with (
        ModelServer(default=odd) as server,
        opened(server, url=url, durable_work=work) as lore,
    ):
        await talk(lore, said, range(1, 4))
        begun = await lore.memories.begin_evolution("g", mode="llm")
        job = await lore.jobs.wait(begun.job_id, 60)
        assert job.status == "done", job
        assert await active(lore) == [said.new[0]]
        record = await lore.memories.evolution(begun.evolution_id)
        assert said.new[0] in record.raw_answer
        assert len(server.requests) == 2
