"""Requests to forget somebody outlive their process: they are recorded first, listed, and done by the next process."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

import roomlore
from forget_rig import CHINESE, ENGLISH, Figure, fill, in_files, replays
from roomlore import Lore, NotFound, Settings, StorageUnavailable
from roomlore.adapters.inprocess import SystemClock
from roomlore.core.errors import CacheUnavailable
from roomlore.services.privacy import Forgetter, MessageEraser, VectorEraser
from roomlore_testkit import FrozenClock


@pytest.fixture
def frozen() -> FrozenClock:
    return FrozenClock(SystemClock().now())


both = pytest.mark.parametrize("engine", ["process", "dbos"])
WHO = ENGLISH.user_id


def opened(url: str, engine: str, *, background: bool = True):
    return roomlore.open(url, settings=Settings(durable_work=engine), background=background)


async def fill_first(url: str, who: Figure) -> None:
    """Fill the store, without the work in it that no process knows."""
    async with opened(url, "process", background=False) as lore:
        await fill(lore, who)


async def listed(lore: Lore) -> list[tuple[str, str]]:
    return [(job.kind, job.status) for job in await lore.jobs.page(kind="forgetting")]


@asynccontextmanager
async def held(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Event]:
    """Forgetting stops before it erases the person's messages. Yields what is set when it is there."""
    there = asyncio.Event()

    async def erase(*_: object) -> None:
        there.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patch:
        patch.setattr(MessageEraser, "erase", erase)
        yield there


@both
async def test_a_request_goes_on_after_a_restart_and_is_listed_until_it_is_done(
    sqlite_url, tmp_path: Path, monkeypatch, engine
):
    await fill_first(sqlite_url, ENGLISH)
    async with held(monkeypatch) as there, opened(sqlite_url, engine) as lore:
        job = await lore.privacy.begin_forgetting(WHO)
        await there.wait()
        assert await listed(lore) == [("forgetting", "running")]
        assert await lore.privacy.begin_forgetting(WHO, is_id=True) == job, "one request, one job"
    async with opened(sqlite_url, engine, background=False) as lore:
        assert await lore.privacy.is_being_forgotten(WHO)
        assert await lore.privacy.begin_forgetting(WHO, is_id=True) == job
        assert await lore.jobs.catch_up(seconds=60) == 1
        report = await lore.privacy.forgotten(job, WHO)
        assert (report.left, report.places["messages"]) == ((), 5)
        assert not await lore.privacy.is_being_forgotten(WHO)
        assert await listed(lore) == [("forgetting", "done")]
        assert await replays(lore)
    assert in_files(tmp_path, ENGLISH) == []


@both
async def test_nobody_has_to_ask_again(sqlite_url, tmp_path: Path, monkeypatch, engine):
    """The sweep of the next process finds the request, even if the database of the durable work was lost."""
    await fill_first(sqlite_url, CHINESE)
    async with held(monkeypatch) as there, opened(sqlite_url, engine) as lore:
        await lore.privacy.begin_forgetting(CHINESE.user_id)
        await there.wait()
    for file in sorted(tmp_path.glob("*.dbos.db*")):  # noqa: ASYNC240 - a moment
        file.unlink()
    async with opened(sqlite_url, engine, background=False) as lore:
        assert await lore.jobs.catch_up(seconds=60) == 1
        assert await listed(lore) == [("forgetting", "done")]
    assert in_files(tmp_path, CHINESE) == []


@both
async def test_nothing_that_stays_of_the_work_names_the_person(sqlite_url, tmp_path: Path, engine):
    await fill_first(sqlite_url, ENGLISH)
    async with opened(sqlite_url, engine) as lore:
        job = await lore.privacy.begin_forgetting(WHO)
        report = await lore.privacy.forgotten(job, WHO)
        assert report.rooms_removed == (f"dm:{WHO}", WHO)
        state = await lore._resources.durable.find(f"default:{job}")
        assert state.result["unlisted"] == report.counts == {"rooms_removed": 2, "retired": 3, "rewritten": 2}
        assert not any(memory_id in str(state) for memory_id in (WHO, *report.retired, *report.rewritten))
        later = await lore.privacy.forgotten(job, WHO)
        assert (later.user_id, later.places, later.checked) == (WHO, report.places, report.checked)
        assert (later.counts, later.found, later.retired) == (report.counts, True, ())
    assert in_files(tmp_path, ENGLISH) == []


async def test_what_a_call_left_undone_is_continued_in_the_background(sqlite_url, tmp_path: Path, monkeypatch, frozen):
    async with opened(sqlite_url, "process", background=False) as lore:
        await fill(lore, ENGLISH)
        lore._resources.forgettings._clock = frozen
        async with held(monkeypatch) as there:
            call = asyncio.create_task(lore.privacy.forget(WHO))
            await there.wait()
            assert await lore._resources.forgettings.sweep() == [], "a call is at it"
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        frozen.advance(120)
        assert await lore.jobs.catch_up(seconds=60) == 1
    assert in_files(tmp_path, ENGLISH) == []


async def test_a_request_that_failed_says_why_and_is_tried_again_with_growing_pauses(sqlite_url, monkeypatch, frozen):
    tries = []

    async def fails(*_: object, **__: object) -> None:
        tries.append(1)
        raise StorageUnavailable("The disk is full; make room.")

    async with opened(sqlite_url, "process") as lore:
        await fill(lore, ENGLISH)
        lore._resources.forgettings._clock = frozen
        lore._resources.durable._opened._pauses = (0.0, 0.0)
        with monkeypatch.context() as patch:
            patch.setattr(Forgetter, "forget", fails)
            job = await lore.privacy.begin_forgetting(WHO)
            with pytest.raises(StorageUnavailable, match=r"tried again later.*The disk is full; make room"):
                await lore.privacy.forgotten(job, WHO)
        (failed,) = await lore.jobs.page(kind="forgetting")
        assert (failed.status, len(tries)) == ("failed", 3)
        assert failed.error == "StorageUnavailable: The disk is full; make room."
        sweep = lore._resources.forgettings.sweep
        for minutes, status in ((1, "failed"), (2, "done")):
            frozen.advance(60 * minutes)
            assert len(await sweep()) == 1
            assert (await lore.jobs.wait(job, seconds=0.5 if status == "failed" else 60)).status == status
        assert not await lore.privacy.is_being_forgotten(WHO)


async def test_a_sweep_leaves_the_compaction_to_the_job_that_is_about_to_do_it(sqlite_url, monkeypatch):
    compact, swept = Forgetter.compact, []

    async with opened(sqlite_url, "process") as lore:

        async def swept_first(forgetter: Forgetter) -> None:
            swept.append(await lore._resources.forgettings.sweep())
            await compact(forgetter)

        await fill(lore, ENGLISH)
        monkeypatch.setattr(Forgetter, "compact", swept_first)
        await lore.privacy.forgotten(await lore.privacy.begin_forgetting(WHO), WHO)
        assert (swept, await listed(lore)) == ([[]], [("forgetting", "done")])


async def test_a_kill_before_the_database_is_compacted_leaves_a_record_of_nobody(
    sqlite_url, tmp_path, monkeypatch, frozen
):
    async def fails(_: Forgetter, tally: object) -> None:
        raise KilledError

    async with opened(sqlite_url, "process", background=False) as lore:
        await fill(lore, ENGLISH)
        lore._resources.forgettings._clock = frozen
        with monkeypatch.context() as patch:
            patch.setattr(Forgetter, "_compact", fails)
            with pytest.raises(KilledError):
                await lore.privacy.forget(WHO)
        assert not await lore.privacy.is_being_forgotten(WHO)
        assert in_files(tmp_path, ENGLISH) != []
        frozen.advance(60)
        assert await lore.jobs.catch_up(seconds=60) == 1
        assert await lore.jobs.catch_up(seconds=60) == 0
    assert in_files(tmp_path, ENGLISH) == []


async def test_a_database_that_cannot_be_compacted_is_compacted_later(sqlite_url, tmp_path, monkeypatch):
    async def fails(_: Forgetter) -> None:
        raise StorageUnavailable("The disk is full; make room.")

    async with opened(sqlite_url, "process", background=False) as lore:
        await fill(lore, ENGLISH)
        with monkeypatch.context() as patch:
            patch.setattr(Forgetter, "compact", fails)
            report = await lore.privacy.forget(WHO)
        assert [one.place for one in report.left] == ["free pages"]
        assert in_files(tmp_path, ENGLISH) != []
        assert await lore.jobs.catch_up(seconds=60) == 1
        assert await lore.jobs.catch_up(seconds=60) == 0
    assert in_files(tmp_path, ENGLISH) == []


async def test_a_request_that_an_older_state_of_the_database_holds_is_done_again(sqlite_url, tmp_path: Path):
    """Its work is done already in the newer database of durable work."""
    path, kept = tmp_path / "roomlore.db", tmp_path / "kept"
    await fill_first(sqlite_url, ENGLISH)
    async with opened(sqlite_url, "dbos", background=False) as lore:
        await lore.privacy.begin_forgetting(WHO)
    shutil.copy(path, kept)
    for _ in range(2):
        async with opened(sqlite_url, "dbos", background=False) as lore:
            assert await lore.privacy.is_being_forgotten(WHO)
            assert await lore.jobs.catch_up(seconds=60) == 1
            assert not await lore.privacy.is_being_forgotten(WHO)
        if kept.exists():
            shutil.move(kept, path)
    assert in_files(tmp_path, ENGLISH) == []


async def test_where_no_other_process_can_do_it_and_this_one_does_no_work_who_waits_does_it(sqlite_url, tmp_path: Path):
    async with opened(sqlite_url, "process", background=False) as lore:
        await fill(lore, ENGLISH)
        job = await lore.privacy.begin_forgetting(WHO)
        assert (await lore.privacy.forgotten(job, WHO)).places["messages"] == 5
        assert await listed(lore) == []
    assert in_files(tmp_path, ENGLISH) == []


async def test_a_job_whose_request_somebody_else_did_says_that_it_did_nothing(sqlite_url):
    async with opened(sqlite_url, "dbos", background=False) as lore:
        await fill(lore, ENGLISH)
        job = await lore.privacy.begin_forgetting(WHO)
        assert (await lore.privacy.forget(WHO)).places["messages"] == 5
        assert await lore.jobs.catch_up(seconds=60) == 1
        await lore.messages.add([roomlore.Message(id="new", room_id="tea", sender_id=WHO, text="back again")])
        report = await lore.privacy.forgotten(job, WHO)
        assert (report.dry_run, report.found, report.complete) == (False, False, True)
        assert await lore.privacy.forgetting_job(WHO) is None


@both
async def test_a_job_that_is_unknown_or_somebody_elses_reports_nothing_of_a_person(sqlite_url, engine):
    await fill_first(sqlite_url, ENGLISH)
    async with opened(sqlite_url, engine, background=False) as lore:
        job = await lore.privacy.begin_forgetting(WHO)
        refused = pytest.raises(NotFound, match="that forgets this person; begin one, or give the id that it has")
        with refused:
            await lore.privacy.forgotten(job, "ben")
        assert await lore.privacy.is_being_forgotten(WHO), "it is not begun in the name of another"
        await lore.jobs.catch_up(seconds=60)
        assert (await lore.privacy.forgotten(job, WHO)).found
        for job_id, who in ((job, "ben"), ("nope", "ben"), ("forgetting:123", "ben"), ("", WHO)):
            with refused:
                await lore.privacy.forgotten(job_id, who)
        assert not (await lore.privacy.forgotten("forgetting:123", WHO)).found, "nothing of them is stored"


@pytest.mark.parametrize("done_before", [False, True])
async def test_what_is_kept_of_a_job_tells_of_one_person_alone(sqlite_url, done_before):
    async with opened(sqlite_url, "dbos", background=False) as lore:
        await lore.messages.add([said("1", "team"), said("2", "team", "ben")])
        job = await lore.privacy.begin_forgetting(WHO)
        if done_before:
            await lore.privacy.forget(WHO)
        assert await lore.jobs.catch_up(seconds=60) == 1
        with pytest.raises(NotFound):
            await lore.privacy.forgotten(job, "ben")
        assert (await lore.privacy.forgotten(job, WHO)).found is not done_before


@contextmanager
def store_of_vectors_down(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    async def fails(*_: object, **__: object) -> bool:
        return False

    with monkeypatch.context() as patch:
        patch.setattr(VectorEraser, "remove", fails)
        yield


async def test_a_job_that_left_something_is_not_done_until_nothing_is_left(sqlite_url, tmp_path, monkeypatch, frozen):
    async with opened(sqlite_url, "process") as lore:
        await fill(lore, ENGLISH)
        lore._resources.forgettings._clock = frozen
        lore._resources.durable._opened._pauses = (0.0, 0.0)
        with store_of_vectors_down(monkeypatch):
            job = await lore.privacy.begin_forgetting(WHO)
            report = await lore.privacy.forgotten(job, WHO)
            assert {one.place for one in report.left} == {"rooms", "memory_scopes"}
            assert (report.places["messages"], report.rooms_removed) == (5, ()), "of all three attempts"
            (failed,) = await lore.jobs.page(kind="forgetting")
            assert (failed.status, failed.attempts, WHO in str(failed)) == ("failed", 3, False)
            assert re.match(r"StorageUnavailable: Something of a person is left.*rooms \(2\): Emptied", failed.error)
            assert failed.progress.endswith("left: memory_scopes, rooms")
            frozen.advance(60)
            assert len(await lore._resources.forgettings.sweep()) == 1
            assert (await lore.jobs.wait(job, seconds=0.1)).attempts == 3, "the pause is longer"
        assert await lore.privacy.is_being_forgotten(WHO)
        frozen.advance(120)
        await lore._resources.forgettings.sweep()
        assert (await lore.jobs.wait(job, seconds=60)).status == "done"
        assert not await lore.privacy.is_being_forgotten(WHO)
        kept = await lore.privacy.forgotten(job, WHO)
        assert (kept.left, kept.places["messages"], kept.counts["rooms_removed"]) == ((), 5, 2)
    assert in_files(tmp_path, ENGLISH) == []


@both
async def test_what_a_call_left_is_tried_again_in_the_background(sqlite_url, tmp_path, monkeypatch, frozen, engine):
    await fill_first(sqlite_url, CHINESE)
    who = CHINESE.user_id
    async with opened(sqlite_url, engine, background=False) as lore:
        lore._resources.forgettings._clock = frozen
        with store_of_vectors_down(monkeypatch):
            left = (await lore.privacy.forget(who)).left
        assert {one.place for one in left} >= {"rooms", "memory_scopes"}
        frozen.advance(61)
        assert await lore.jobs.catch_up(seconds=60) == 1
        assert await listed(lore) == [("forgetting", "done")]
        assert not await lore.privacy.is_being_forgotten(who)
    assert in_files(tmp_path, CHINESE) == []


def said(message_id: str, room_id: str, sender_id: str = WHO) -> roomlore.Message:
    return roomlore.Message(id=message_id, room_id=room_id, sender_id=sender_id, text=f"{message_id} in {room_id}")


async def test_what_they_write_after_a_request_was_answered_stays_when_it_is_tried_again(
    sqlite_url, monkeypatch, frozen
):
    """Also in a room that waits for its vectors, and when somebody else is forgotten meanwhile."""
    async with opened(sqlite_url, "process", background=False) as lore:
        forgettings = lore._resources.forgettings
        assert await listed(lore) == []
        lore._resources.durable._opened._pauses = (0.0,)
        forgettings._clock = frozen
        await lore.messages.add(
            [said("1", "dm"), said("2", "attic"), said("3", "team", "ben"), said("4", "team", "cy")]
        )
        await lore.memories.add(f"user:{WHO}", "They like green tea.")
        with store_of_vectors_down(monkeypatch):
            left = (await lore.privacy.forget(WHO)).left
            assert {("rooms", 2), ("memory_scopes", 1)} <= {(one.place, one.count) for one in left}
            await lore.messages.add([said("later", "team"), said("again", "dm")])
            new = await lore.memories.add(f"user:{WHO}", "They like coffee now.")
            frozen.advance(3600)
            assert len(await forgettings.sweep()) == 1
            await lore.jobs.catch_up(seconds=60)
            assert [status for _, status in await listed(lore)] == ["failed"]
            (failed,) = await lore.jobs.page(kind="forgetting")
            assert "rooms (1): Emptied rooms stay" in failed.error
            assert (await lore.privacy.forget("cy")).left
        for _ in range(2):
            frozen.advance(7200)
            await forgettings.sweep()
            await lore.jobs.catch_up(seconds=60)
        assert {status for _, status in await listed(lore)} == {"done"}
        assert not await lore.privacy.is_being_forgotten(WHO)
        rooms = {room.room_id for room in await lore.rooms.page()}
        assert rooms == {"dm", "team"}, "the room that nobody writes in is gone"
        for room_id, message_id in (("team", "later"), ("dm", "again")):
            assert (await lore.messages.get(room_id, message_id)).message.sender_id == WHO
        assert (await lore.memories.get(new.memory_id)).statement == "They like coffee now."


async def test_a_request_that_somebody_asks_for_again_removes_what_they_wrote_since(sqlite_url, monkeypatch):
    async with opened(sqlite_url, "process", background=False) as lore:
        await lore.messages.add([said("1", "dm"), said("2", "team", "ben")])
        with store_of_vectors_down(monkeypatch):
            await lore.privacy.forget(WHO)
        await lore.messages.add([said("later", "team"), said("again", "dm")])
        report = await lore.privacy.forget(WHO)
        assert (report.left, report.places["messages"], report.rooms_removed) == ((), 2, ("dm",))


async def test_a_call_that_leaves_nothing_ends_the_job_that_left_something(sqlite_url, monkeypatch):
    async with opened(sqlite_url, "process") as lore:
        await fill(lore, ENGLISH)
        lore._resources.durable._opened._pauses = ()
        with store_of_vectors_down(monkeypatch):
            job = await lore.privacy.begin_forgetting(WHO)
            assert (await lore.jobs.wait(job, seconds=60)).status == "failed"
        assert (await lore.privacy.forget(WHO)).left == ()
        assert (await lore.jobs.wait(job, seconds=60)).status == "done"


async def test_what_goes_by_itself_or_only_by_a_caller_keeps_no_request(sqlite_url, monkeypatch):
    """What the person writes later would be removed with each try."""

    async def fails(*_: object, **__: object) -> None:
        raise CacheUnavailable("Redis does not answer; start it.")

    async with opened(sqlite_url, "process", background=False) as lore:
        monkeypatch.setattr(lore._resources.forgetter, "_drop_session", fails)
        await lore.messages.add(
            [
                roomlore.Message(id="1", room_id="tea", sender_id=WHO, text="hello there"),
                roomlore.Message(id=f"re:{WHO}", room_id="tea", sender_id="ben", text="hello"),
            ]
        )
        assert {one.place for one in (await lore.privacy.forget(WHO)).left} == {"session cache", "messages"}
        assert not await lore.privacy.is_being_forgotten(WHO)


class KilledError(Exception):
    """Stands for the end of the process."""
