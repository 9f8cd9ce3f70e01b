"""A corrected link of a long chain: what follows moves to its thread in pieces, as durable work."""

from datetime import timedelta

import pytest

import roomlore
from engines import ENGINES
from relink_rig import ROOM, START, stored
from roomlore import Conflict, LinkKind, Message, Settings, StorageUnavailable
from roomlore.adapters.inprocess import SystemClock
from roomlore.core.linking.corrections import FOLLOWING
from roomlore.ports import noted
from roomlore.services import links
from roomlore.storage.writer import MessageWriting
from roomlore_testkit import FrozenClock

PIECE, CHAIN = 100, 1500


@pytest.fixture(params=ENGINES)
def url(request) -> str:
    return request.getfixturevalue(request.param)


@pytest.fixture
async def lore(url, monkeypatch):
    monkeypatch.setattr(links, "_PIECE", PIECE)
    async with roomlore.open(url, background=False) as opened:
        yield opened


def replies(count: int, first: int = 1) -> list[Message]:
    """A chain of platform replies, where some answer one earlier and some one that comes later."""
    return [
        Message(
            id=f"m{number}",
            room_id=ROOM,
            sender_id=("ann", "bob", "小李")[number % 3],
            text=f"word {number % 17} 话题",
            sent_at=START + timedelta(seconds=40 * number),
            reply_to=f"m{_answered(number)}" if number > 1 else None,
        )
        for number in range(first, first + count)
    ]


def said(name: str, answered: str) -> Message:
    return Message(id=name, room_id=ROOM, sender_id="eve", text="old", reply_to=answered)


def _answered(number: int) -> int:
    if number > 10 and number % 97 == 0:
        return number + 1
    return number - 2 if (number > 10 and number % 97 == 1) or number % 10 == 0 else number - 1


async def in_one_transaction(url: str, messages: list[Message], corrected: dict[str, str | None], monkeypatch):
    """What is stored where corrections move everything at once."""
    monkeypatch.setattr(links, "_PIECE", 10**6)
    async with roomlore.open(url, background=False) as other:
        await other.messages.add(messages)
        for name, answers in corrected.items():
            assert (await other.links.correct(ROOM, name, answers=answers)).left == 0
        return await stored(other)


@pytest.fixture
def sizes(monkeypatch) -> list[int]:
    """How many messages each transaction linked anew or moved."""
    found: list[int] = []
    relink, follow = MessageWriting.relink, MessageWriting.follow

    async def counted_relink(self, **given):
        relinked = await relink(self, **given)
        found.append(relinked.changed)
        return relinked

    async def counted_follow(self, **given):
        found.append(await follow(self, **given))
        return found[-1]

    monkeypatch.setattr(MessageWriting, "relink", counted_relink)
    monkeypatch.setattr(MessageWriting, "follow", counted_follow)
    return found


async def test_it_moves_in_pieces_and_ends_as_in_one_transaction(lore, sizes, monkeypatch):
    await lore.messages.add(replies(CHAIN))
    sizes.clear()
    entry = await lore.links.correct(ROOM, "m5", answers=None)
    assert (entry.link.kind, entry.link.thread) == (LinkKind.CORRECTED, 5)
    assert sizes == [entry.relinked + 1]
    assert entry.relinked <= FOLLOWING + PIECE
    below = CHAIN - 4
    assert entry.left == below - sizes[0], "those that answer m5 through others are all but m1 to m4"
    assert await lore.jobs.catch_up() == 1
    assert sum(sizes) == below
    assert max(sizes[1:]) == PIECE
    assert len(sizes) == 1 + -(-entry.left // PIECE)
    (job,) = await lore.jobs.page()
    assert (job.kind, job.room_id, job.status) == ("threads", ROOM, "done")
    assert job.progress == f"{entry.left} messages moved to their threads, 0 left"
    assert (await lore.links.correct(ROOM, "m5", answers=None)).left == 0
    assert (await lore.privacy.verify()).sound
    once = await in_one_transaction("sqlite://", replies(CHAIN), {"m5": None}, monkeypatch)
    assert await stored(lore) == once


async def test_a_caller_may_wait_for_the_end(lore):
    await lore.messages.add(replies(700))
    entry = await lore.links.correct(ROOM, "m5", answers=None)
    assert entry.left > 0
    whole = await lore.links.catch_up(entry)
    assert (whole.relinked, whole.left) == (695, 0)
    assert {one.link.thread for one in (await stored(lore))[0].values()} == {1, 5}
    assert await lore.links.catch_up(whole) == whole
    assert await lore.jobs.catch_up() == 0


async def test_what_comes_meanwhile_is_in_its_thread(lore):
    """Messages, a second correction and one that is taken back, between two pieces."""
    moves = lore.links._moves
    await lore.messages.add(replies(CHAIN))
    await lore.links.correct(ROOM, "m5", answers=None)
    (noted_work,) = await moves.claim()
    pieces = [count async for count in moves._moved(noted_work.room) if await meanwhile(lore)]
    assert len(pieces) > 5
    assert await lore.jobs.catch_up() == 1, "the second correction noted the room again"
    entries, _ = await stored(lore)
    arrivals = {one.message.arrival: one for one in entries.values()}
    for one in entries.values():
        above = arrivals.get(one.link.parent) if one.link.kind is not LinkKind.NEW else None
        assert one.link.thread == (above.link.thread if above else one.message.arrival), one.message.id
    assert entries["m1560"].link.thread == entries["x"].link.thread == 700
    assert (await lore.links.correct(ROOM, "m5", answers=None)).left == 0
    assert (await lore.privacy.verify()).sound


async def meanwhile(lore) -> bool:
    if not await lore.messages.page(ROOM, after=CHAIN):
        await lore.messages.add(replies(60, first=CHAIN + 1))
        await lore.messages.add([said("x", "m1400")])
        assert (await lore.links.correct(ROOM, "m700", answers=None)).left > 0
        await lore.links.correct(ROOM, "m20", answers="m2")
        await lore.links.undo(ROOM, "m20")
    return True


async def test_a_circle_is_refused_while_threads_move(lore):
    """y is below z, which came after it, and neither has moved yet."""
    late = [
        Message(id=name, room_id=ROOM, sender_id="eve", text=name, reply_to=to) for name, to in ("yz", ("z", "m900"))
    ]
    await lore.messages.add([*replies(900), *late])
    assert (await lore.links.correct(ROOM, "m5", answers=None)).left > 0
    with pytest.raises(Conflict, match="itself"):
        await lore.links.correct(ROOM, "z", answers="y")


async def test_a_room_that_a_killed_process_left_is_found(lore, monkeypatch):
    """The correction notes the room in its own transaction, and the claim of a process that is gone ends."""
    await lore.messages.add(replies(900))
    await lore.links.correct(ROOM, "m5", answers=None)
    with monkeypatch.context() as patch:
        patch.setattr(noted, "NOTED_LEASE", timedelta(0))
        assert len(await lore.links._moves.claim()) == 1
    assert await lore.jobs.catch_up() == 1
    assert {one.link.thread for one in (await stored(lore))[0].values()} == {1, 5}


def with_frozen_clock(lore) -> FrozenClock:
    """The clock that work on threads reads from now on."""
    moves = lore.links._moves
    moves._clock = FrozenClock(SystemClock().now())
    return moves._clock


async def test_a_move_that_fails_stays_one_job_and_is_tried_again_after_growing_pauses(sqlite_url, monkeypatch):
    tries = []

    async def fails(*_: object, **__: object) -> None:
        tries.append(1)
        raise StorageUnavailable("The disk is full; make room.")

    monkeypatch.setattr(links, "_PIECE", PIECE)
    async with roomlore.open(sqlite_url, settings=Settings(durable_work="process"), background=False) as lore:
        frozen, sweep = with_frozen_clock(lore), lore.links._moves.sweep
        await lore.jobs.begin()
        work = lore._resources.durable._opened
        work._clock, work._pauses = frozen, (0.0, 0.0)
        await lore.messages.add(replies(700))
        await lore.links.correct(ROOM, "m5", answers=None)
        with monkeypatch.context() as patch:
            patch.setattr(MessageWriting, "follow", fails)
            assert await lore.jobs.catch_up() == 0
            for seconds, tried in ((60, 3), (90, 6), (180, 6), (90, 9), (400, 9)):
                frozen.advance(seconds)
                assert len(await sweep()) == 1
                await lore.jobs.catch_up()
                (job,) = await lore.jobs.page()
                assert (job.status, job.attempts, len(tries)) == ("failed", tried, tried), seconds
            async with lore._resources.storage.writing("default") as writing:
                await lore.links._moves.note(writing, ROOM)
            assert len(await sweep()) == 1, "what is noted since belongs to the same job"
        frozen.advance(600)
        assert await lore.jobs.catch_up() == 1
        assert [(one.job_id, one.status) for one in await lore.jobs.page()] == [(job.job_id, "done")]
        assert {one.link.thread for one in (await stored(lore))[0].values()} == {1, 5}


async def test_a_move_that_nobody_takes_is_begun_once(lore):
    frozen = with_frozen_clock(lore)
    await lore.messages.add(replies(700))
    await lore.links.correct(ROOM, "m5", answers=None)
    assert len({work_id for _ in range(3) for work_id in await swept_later(lore, frozen)}) == 1
    assert [job.status for job in await lore.jobs.page()] == ["waiting"]
    assert await lore.jobs.catch_up() == 1
    assert [job.status for job in await lore.jobs.page()] == ["done"]


async def swept_later(lore, frozen: FrozenClock) -> list[str]:
    frozen.advance(31)
    return await lore.links._moves.sweep()


async def test_a_room_moves_again_after_it_was_done_even_at_the_same_instant(lore):
    with_frozen_clock(lore)
    await lore.messages.add(replies(700))
    for name in ("m5", "m8"):
        assert (await lore.links.correct(ROOM, name, answers=None)).left > 0
        assert await lore.jobs.catch_up() == 1
    assert [job.status for job in await lore.jobs.page()] == ["done", "done"]
    assert {one.link.thread for one in (await stored(lore))[0].values()} == {1, 5, 8}


async def test_what_is_noted_while_a_job_runs_is_done_by_it(lore, monkeypatch):
    """A second job would find nothing to move."""
    moves, moved = lore.links._moves, lore.links._moves._moved

    async def twice_noted(room):
        async for piece in moved(room):
            if len(await lore.links.corrections(ROOM)) == 1:
                assert (await lore.links.correct(ROOM, "m8", answers=None)).left > 0
            yield piece

    monkeypatch.setattr(moves, "_moved", twice_noted)
    await lore.messages.add(replies(CHAIN))
    await lore.links.correct(ROOM, "m5", answers=None)
    assert await lore.jobs.catch_up() == 1
    assert [job.status for job in await lore.jobs.page()] == ["done"]
    assert {one.link.thread for one in (await stored(lore))[0].values()} == {1, 5, 8}
