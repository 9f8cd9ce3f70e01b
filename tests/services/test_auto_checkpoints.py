"""Checkpoints that roomlore makes by itself: with a model or without, once, later, never in anybody's way."""

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

import roomlore
from engines import ENGINES
from roomlore import BadModelOutput, Conflict, ModelUnavailable, Settings
from roomlore.ports.coordination import SESSIONS
from roomlore.services.sessions import automatic
from roomlore_testkit import FrozenClock
from session_rig import Rig, ScriptedSummarizer, beside, open_rig
from tuned import tuned

AUTO = Settings(auto_checkpoint=True, model_context_window=200, recent_turns=2)
ROOM = "talk"
LONG = "the backup of node {} failed again at night because its disk was full"


@pytest.fixture(autouse=True)
def _tuned():
    with tuned(summary_max_tokens=60):
        yield


async def talk(rig: Rig, first: int, count: int, *, room: str = ROOM) -> None:
    for number in range(first, first + count):
        await rig.sessions.write_turn(room, "ann", "bot", LONG.format(number), f"noted, {number}")


async def until_due(rig: Rig, *, room: str = ROOM) -> None:
    """A conversation that has just asked for a checkpoint."""
    await talk(rig, 0, 7, room=room)
    assert (await rig.sessions.query_context(room)).should_checkpoint_summary


async def due(rig: Rig, room: str = ROOM):
    async with rig.storage.reading(rig.lore.tenant) as work:
        session = await work.sessions.find(conversation_id=room)
    assert session is not None
    return session.due


async def test_what_a_model_says_is_put_in_force_with_its_name():
    model = ScriptedSummarizer(answer="node 3 and six others had a full disk")
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        await until_due(rig)
        assert rig.jobs.asked == [SESSIONS]
        assert await rig.sessions.catch_up() == 1
        context = await rig.sessions.query_context(ROOM)
        made = (await rig.sessions.checkpoints(ROOM))[0]
        assert (context.mode, made.made_by) == ("SUMMARY_N", "scripted")
        assert context.history.startswith("Summary: node 3 and six others had a full disk\n")
        assert context.turns == 2
        assert made.turns == 7
        assert await due(rig) is None
        assert await rig.sessions.catch_up() == 0
    call = model.calls[0]
    assert (call["previous"], call["language"]) == ("", "en")
    assert call["max_tokens"] == AUTO.model_context_window // 4 < automatic.SUMMARY_TOKENS
    assert str(call["conversation"]).count("User: ") == 7


async def test_the_next_summary_is_made_of_the_last_one_and_what_came_after():
    model = ScriptedSummarizer(answer="第{}次：磁盘满了")
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        for number in range(12):
            await rig.sessions.write_turn(ROOM, "小李", "bot", f"节点{number}的备份昨晚又失败了，磁盘满了", "知道了")
        first = await rig.sessions.summarise(ROOM)
        await rig.sessions.write_turn(ROOM, "小李", "bot", "已经清理好了", "谢谢")
        second = await rig.sessions.summarise(ROOM)
        assert first is not None
        assert second is not None
        assert (second.summary, second.turns) == ("第2次：磁盘满了", 13)
        assert (await rig.sessions.query_context(ROOM)).history.startswith("历史摘要: 第2次：磁盘满了\n")
        assert await rig.sessions.summarise(ROOM) is None
    assert model.calls[1]["previous"] == "第1次：磁盘满了"
    assert model.calls[1]["conversation"] == "用户: 已经清理好了\n助手: 谢谢"
    assert model.calls[1]["language"] == "zh"


@pytest.mark.parametrize("error", [ModelUnavailable(), BadModelOutput()])
async def test_without_an_answer_sentences_are_chosen(error):
    async with open_rig(settings=AUTO, summarizer=ScriptedSummarizer(error=error)) as rig:
        await until_due(rig)
        assert await rig.sessions.catch_up() == 1
        made = (await rig.sessions.checkpoints(ROOM))[0]
        assert made.made_by == "extract"
        assert 0 < made.tokens <= 60
        assert "disk" in made.summary


async def test_the_log_says_once_that_no_model_answers_and_once_that_one_does_again(caplog):
    caplog.set_level(logging.INFO, "roomlore.services.sessions.automatic")
    model = ScriptedSummarizer(error=ModelUnavailable())
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        for number, error in enumerate((model.error, model.error, None, None)):
            model.error = error
            await until_due(rig, room=f"talk {number}")
            assert await rig.sessions.catch_up() == 1
    told = [record.message for record in caplog.records if "model summarise" in record.message]
    assert told == [
        "no model summarised a conversation, sentences are chosen",
        "a model summarises conversations again",
    ]


async def test_without_a_model_sentences_are_chosen():
    async with open_rig(settings=AUTO) as rig:
        await until_due(rig)
        assert await rig.sessions.catch_up() == 1
        assert (await rig.sessions.checkpoints(ROOM))[0].made_by == "extract"


async def test_a_model_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(automatic, "_MODEL_SECONDS", 0.05)
    async with open_rig(settings=AUTO, summarizer=ScriptedSummarizer(gate=asyncio.Event())) as rig:
        await until_due(rig)
        async with asyncio.timeout(60):
            assert await rig.sessions.catch_up() == 1
        assert (await rig.sessions.checkpoints(ROOM))[0].made_by == "extract"


async def test_one_conversation_does_not_wait_for_the_summary_of_another():
    model = ScriptedSummarizer(gate=asyncio.Event())
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        for room in ("one", "two", "three"):
            await until_due(rig, room=room)
        work = asyncio.create_task(rig.sessions.catch_up())
        async with asyncio.timeout(60):
            while len(model.calls) < 3:  # noqa: ASYNC110 - the three begin when they like
                await asyncio.sleep(0.01)
        model.gate.set()
        assert await work == 3


async def test_turns_written_while_a_slow_model_works_stay_verbatim():
    model = ScriptedSummarizer(gate=asyncio.Event())
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        await until_due(rig)
        work = asyncio.create_task(rig.sessions.catch_up())
        await model.asked.wait()
        await talk(rig, 100, 3)
        model.gate.set()
        assert await work == 1
        context = await rig.sessions.query_context(ROOM)
        assert [text for number in (100, 101, 102) if (text := LONG.format(number)) in context.history] == [
            LONG.format(number) for number in (100, 101, 102)
        ]
        assert context.turns == 3
        assert not context.truncated


async def test_a_hanging_model_keeps_nobody_waiting():
    model = ScriptedSummarizer(gate=asyncio.Event())
    async with roomlore.open("sqlite://", settings=AUTO, summarizer=model) as lore:
        for number in range(7):
            await lore.sessions.write_turn(ROOM, "ann", "bot", LONG.format(number), "noted")
        assert (await lore.sessions.query_context(ROOM)).should_checkpoint_summary
        async with asyncio.timeout(60):
            await model.asked.wait()
        begun = time.perf_counter()
        for number in range(10):
            await lore.sessions.write_turn(ROOM, "ann", "bot", "and now?", f"still {number}")
            await lore.sessions.query_context(ROOM, "why?")
        assert time.perf_counter() - begun < 20
        assert (await lore.sessions.get_session(ROOM)).message_context.mode == "FULL_HISTORY"


async def test_done_behind_the_calls():
    async with roomlore.open("sqlite://", settings=AUTO, summarizer=ScriptedSummarizer()) as lore:
        for number in range(7):
            await lore.sessions.write_turn(ROOM, "ann", "bot", LONG.format(number), "noted")
        await lore.sessions.query_context(ROOM)
        async with asyncio.timeout(60):
            while (await lore.sessions.query_context(ROOM)).mode == "FULL_HISTORY":  # noqa: ASYNC110 - by itself
                await asyncio.sleep(0.01)


async def test_a_caller_who_is_faster_wins():
    model = ScriptedSummarizer(gate=asyncio.Event())
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        await until_due(rig)
        work = asyncio.create_task(rig.sessions.catch_up())
        await model.asked.wait()
        own = await rig.sessions.checkpoint(ROOM, "the caller's own words")
        model.gate.set()
        assert await work == 0
        assert (await rig.sessions.checkpoints(ROOM)) == [own]
        assert await due(rig) is None


async def test_a_reset_meanwhile_wins_too():
    model = ScriptedSummarizer(gate=asyncio.Event())
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        await until_due(rig)
        work = asyncio.create_task(rig.sessions.catch_up())
        await model.asked.wait()
        await rig.sessions.reset(ROOM)
        model.gate.set()
        assert await work == 0
        context = await rig.sessions.query_context(ROOM)
        assert (context.mode, context.history) == ("FULL_HISTORY", "")
        with pytest.raises(Conflict):
            await rig.sessions.checkpoint(ROOM, "late")


@pytest.mark.parametrize("name", ["sessions.mark", "sessions.save", "messages.page"])
async def test_three_tries_with_pauses_that_grow_then_the_session_stays_as_it_is(name):
    model = ScriptedSummarizer()
    async with open_rig(settings=AUTO, summarizer=model) as rig:
        await until_due(rig)
        rig.storage.fail(name)
        pauses = []
        for tries in (1, 2):
            assert await rig.sessions.catch_up() == 0
            again = await due(rig)
            assert again is not None
            assert again.tries == tries
            pauses.append((again.at - rig.clock.now()).total_seconds())
            assert await rig.sessions.catch_up() == 0, "tried again before the pause was over"
            rig.clock.advance(pauses[-1])
        assert await rig.sessions.catch_up() == 0
        assert await due(rig) is None
        rig.storage.heal()
        assert 0 < pauses[0] < pauses[1]
        context = await rig.sessions.query_context(ROOM)
        assert (context.mode, context.turns) == ("FULL_HISTORY", 7)
        assert await rig.sessions.checkpoints(ROOM) == []
        rig.clock.advance(1)
        assert await rig.sessions.catch_up() == 1, "asked for again, it is tried again"


async def test_with_the_store_down_nothing_is_forgotten():
    async with open_rig(settings=AUTO) as rig:
        await until_due(rig)
        rig.storage.fail("*")
        for _ in range(5):
            with pytest.raises(roomlore.StorageUnavailable):
                await rig.sessions.catch_up()
        rig.storage.heal()
        assert await rig.sessions.catch_up() == 1


async def test_an_answer_does_not_fail_because_what_is_due_cannot_be_noted():
    async with open_rig(settings=AUTO) as rig:
        await talk(rig, 0, 7)
        rig.storage.fail("sessions.schedule")
        assert (await rig.sessions.query_context(ROOM)).should_checkpoint_summary
        rig.storage.heal()
        assert await due(rig) is None
        await rig.sessions.query_context(ROOM)
        assert await due(rig) is not None


async def test_what_is_due_survives_a_restart(sqlite_url):
    async with open_rig(sqlite_url, settings=AUTO) as rig:
        await until_due(rig)
    async with open_rig(sqlite_url, settings=AUTO, summarizer=ScriptedSummarizer()) as rig:
        assert await rig.sessions.catch_up() == 1


async def test_what_a_killed_process_had_taken_is_taken_again(sqlite_url):
    clock = FrozenClock()
    async with open_rig(sqlite_url, settings=AUTO, clock=clock) as rig:
        await until_due(rig)
        async with rig.storage.writing() as work:
            lease = datetime(2024, 5, 1, 9, 3, tzinfo=UTC)
            assert await work.sessions.due(now=clock.now(), lease_until=lease, limit=8)
        assert await rig.sessions.catch_up() == 0
        clock.advance(200)
        assert await rig.sessions.catch_up() == 1


@pytest.fixture(params=ENGINES)
def shared_url(request) -> str:
    return str(request.getfixturevalue(request.param))


async def test_two_stores_on_one_database_make_one_checkpoint(shared_url):
    async with AsyncExitStack() as stack:
        models = [ScriptedSummarizer(), ScriptedSummarizer()]
        rigs = [
            await stack.enter_async_context(open_rig(shared_url, settings=AUTO, summarizer=model)) for model in models
        ]
        for number in range(6):
            await until_due(rigs[number % 2], room=f"talk {number}")
        made = await asyncio.gather(*(rig.sessions.catch_up() for rig in rigs))
        assert sum(made) == 6
        assert len(models[0].calls) + len(models[1].calls) == 6
        for number in range(6):
            assert len(await rigs[0].sessions.checkpoints(f"talk {number}")) == 1


async def test_every_tenant_gets_its_own():
    async with AsyncExitStack() as stack:
        lore = await stack.enter_async_context(roomlore.open("sqlite://", settings=AUTO, background=False))
        rig = await beside(lore, stack, summarizer=ScriptedSummarizer())
        other = rig.lore.for_tenant("acme")
        await until_due(rig)
        for number in range(7):
            await other.sessions.write_turn(ROOM, "eve", "bot", f"secret {number} " + LONG, "noted")
        await other.sessions.query_context(ROOM)
        assert await rig.sessions.catch_up() == 2
        assert len(await rig.sessions.checkpoints(ROOM)) == len(await other.sessions.checkpoints(ROOM)) == 1
        assert "secret" not in (await rig.sessions.query_context(ROOM)).full_history


async def test_no_checkpoint_a_turn_where_recent_turns_alone_fill_the_window():
    """Half of the turns that are kept verbatim must be new, or messages would be lost."""
    tight = AUTO.changed(recent_turns=8, model_context_window=220)
    async with open_rig(settings=tight, summarizer=ScriptedSummarizer(answer="short")) as rig:
        for number in range(40):
            await talk(rig, number, 1)
            context = await rig.sessions.query_context(ROOM, "next?")
            assert context.should_checkpoint_summary or number < 8
            await rig.sessions.catch_up()
        made = await rig.sessions.checkpoints(ROOM)
        assert 5 <= len(made) <= 12


async def test_off_unless_asked_for():
    async with open_rig(settings=AUTO.changed(auto_checkpoint=False)) as rig:
        await until_due(rig)
        assert rig.jobs.asked == []
        assert await due(rig) is None
        assert await rig.sessions.catch_up() == 0


async def test_a_room_that_never_was_a_session_is_summarised_too():
    async with open_rig(settings=AUTO) as rig:
        await rig.messages.add(
            [roomlore.Message(id=str(n), room_id=ROOM, sender_id="ann", text=LONG.format(n)) for n in range(9)]
        )
        assert (await rig.sessions.query_context(ROOM)).should_checkpoint_summary
        assert await rig.sessions.catch_up() == 1
        assert (await rig.sessions.query_context(ROOM)).mode == "SUMMARY_N"
