"""Looking at a session without a trace, and summaries that nobody waits for."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import roomlore
from roomlore import BudgetTooSmall, InvalidInput, Message, NotFound, Settings
from session_rig import ScriptedSummarizer, open_rig, summarise_all

ROOM = "conv-123"
SECONDS = 60
SMALL = Settings(model_context_window=200, recent_turns=2, auto_checkpoint=True)
SAID = {"en": ("question {}: how long did it take?", "answer {}"), "zh": ("第{}问：花了多久？", "第{}答：很快。")}
both = pytest.mark.parametrize("language", SAID)


async def talk(lore, count: int, language: str = "en", room: str = ROOM) -> None:
    query, answer = SAID[language]
    for n in range(count):
        await lore.sessions.write_turn(room, "ann", "bot", query.format(n), answer.format(n), turn_id=f"t{n}")


def stored(path: Path) -> dict[str, list[tuple]]:
    """Every row of every table, but for those that only index others."""
    with closing(sqlite3.connect(path)) as connection:
        real = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        names = [name for (name,) in connection.execute(real)]
        return {name: list(connection.execute(f'SELECT * FROM "{name}"')) for name in names}


@both
async def test_it_shows_what_query_context_would(tmp_path, language):
    async with open_rig(f"sqlite:///{tmp_path / 'a.db'}", settings=SMALL) as rig:
        for turns, summarised in ((3, False), (12, False), (14, True)):
            await talk(rig.lore, turns, language)
            if summarised:
                await rig.sessions.summarise(ROOM)
            for options in ({}, {"query": "现在呢 and now?"}, {"model_context_window": 90}, {"recent_turns": 5}):
                previewed = await rig.sessions.preview_context(ROOM, **options)
                assert previewed == await rig.sessions.query_context(ROOM, **options)
                assert previewed.messages


async def test_looking_leaves_no_trace(tmp_path):
    path = tmp_path / "a.db"
    async with open_rig(f"sqlite:///{path}", settings=SMALL) as rig:
        await talk(rig.lore, 30)
        await rig.messages.add(Message(id="m", room_id="room", sender_id="ann", text="never a session"))
        before = stored(path)
        assert (await rig.sessions.preview_context(ROOM)).should_checkpoint_summary
        assert (await rig.sessions.preview_context("room")).turns == 1
        assert stored(path) == before
        assert rig.jobs.asked == []
        await rig.sessions.query_context(ROOM)
        assert stored(path) != before, "handing a context out notes that a checkpoint is due"


async def test_a_history_that_was_looked_at_is_not_one_that_was_handed_out():
    async with open_rig(settings=SMALL) as rig:
        await talk(rig.lore, 3)
        await rig.sessions.preview_context(ROOM, token_threshold_ratio=0.01)
        with pytest.raises(InvalidInput, match="covers_through"):
            await rig.sessions.checkpoint(ROOM, "of what was looked at")


async def test_what_cannot_be_looked_at():
    async with open_rig(settings=SMALL) as rig:
        with pytest.raises(NotFound):
            await rig.sessions.preview_context(ROOM)
        with pytest.raises(NotFound):
            await rig.sessions.begin_summary(ROOM)
        await talk(rig.lore, 3)
        with pytest.raises(InvalidInput):
            await rig.sessions.preview_context(ROOM, None)
        with pytest.raises(InvalidInput):
            await rig.sessions.preview_context(ROOM, model_context_window=0)
        await summarise_all(rig.lore, ROOM, "word " * 100)
        with pytest.raises(BudgetTooSmall):
            await rig.sessions.preview_context(ROOM, model_context_window=20)


@both
@pytest.mark.parametrize("kept", [False, True], ids=["memory", "file"])
async def test_a_summary_is_made_behind_the_call(tmp_path, language, kept):
    url = f"sqlite:///{tmp_path / 'a.db'}" if kept else "sqlite://"
    summarizer = ScriptedSummarizer(gate=asyncio.Event())
    async with roomlore.open(url, settings=Settings(), summarizer=summarizer) as lore:
        await talk(lore, 3, language)
        job_id = await lore.sessions.begin_summary(ROOM)
        await asyncio.wait_for(summarizer.asked.wait(), SECONDS)
        assert (await lore.jobs.get(job_id)).status == "running"
        assert await lore.sessions.checkpoints(ROOM) == []
        summarizer.gate.set()
        done = await lore.jobs.wait(job_id, SECONDS)
        assert (done.status, done.kind, done.room_id) == ("done", "summary", ROOM)
        (made,) = await lore.sessions.checkpoints(ROOM)
        assert (made.summary, made.made_by, made.covers_through) == (
            "what was said so far, part 1",
            "scripted",
            "t2-answer",
        )
        again = await lore.jobs.wait(await lore.sessions.begin_summary(ROOM), SECONDS)
        assert (again.status, again.progress) == ("done", "Nothing was said since the last checkpoint.")
        assert len(summarizer.calls) == 1


async def test_a_summary_that_was_broken_off_is_made_when_roomlore_opens_again(tmp_path):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    stuck = ScriptedSummarizer(gate=asyncio.Event())
    async with roomlore.open(url, settings=Settings(durable_work="dbos"), summarizer=stuck) as lore:
        await talk(lore, 3)
        job_id = await lore.sessions.begin_summary(ROOM)
        await asyncio.wait_for(stuck.asked.wait(), SECONDS)
    async with roomlore.open(url, settings=Settings(durable_work="dbos"), summarizer=ScriptedSummarizer()) as lore:
        assert (await lore.jobs.wait(job_id, SECONDS)).status == "done"
        (made,) = await lore.sessions.checkpoints(ROOM)
        assert (made.made_by, made.turns) == ("scripted", 3)


async def test_who_works_by_hand_has_what_was_asked_for_done():
    async with roomlore.open("sqlite://", settings=Settings(), background=False) as lore:
        await talk(lore, 3)
        job_id = await lore.sessions.begin_summary(ROOM)
        await lore.jobs.catch_up()
        assert (await lore.jobs.get(job_id)).status == "done"
        assert len(await lore.sessions.checkpoints(ROOM)) == 1


async def test_the_job_is_seen_by_its_tenant_alone():
    async with roomlore.open("sqlite://", settings=Settings()) as lore:
        await talk(lore, 1)
        job_id = await lore.sessions.begin_summary(ROOM)
        other = lore.for_tenant("other")
        with pytest.raises(NotFound):
            await other.jobs.get(job_id)
        with pytest.raises(NotFound):
            await other.sessions.preview_context(ROOM)
        await lore.jobs.wait(job_id, SECONDS)
