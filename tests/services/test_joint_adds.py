"""Messages that are added at once, each by a call of its own: they share their work, and each has its own answer."""

import asyncio

import pytest

import roomlore
from roomlore.core.errors import Conflict, QuotaExceeded, StorageUnavailable
from roomlore.services.messages import Ingest


@pytest.fixture
async def lore(tmp_path):
    async with roomlore.open(f"sqlite:///{tmp_path}/a.db", settings=roomlore.Settings(), background=False) as opened:
        yield opened


@pytest.fixture
def tries(monkeypatch):
    """The ids of the messages of each attempt to add a batch."""
    made = []

    def counted(attempt):
        async def attempted(self, batches, **options):
            made.append([message.id for batch in batches.values() for message in batch])
            return await attempt(self, batches, **options)

        return attempted

    for way in ("_try", "_try_locked"):
        monkeypatch.setattr(Ingest, way, counted(getattr(Ingest, way)))
    return made


def said(number, room_id="room", text="谁来部署？ Who deploys?", **other):
    return roomlore.Message(id=f"m{number}", room_id=room_id, sender_id="ann", text=text, **other)


async def at_once(lore, *messages, **options):
    """Add the messages while another transaction keeps the first one waiting."""
    async with lore.storage.writing("default"):
        adds = [asyncio.create_task(lore.messages.add(message, **options)) for message in messages]
        await asyncio.sleep(0.01)
    return await asyncio.gather(*adds, return_exceptions=True)


async def test_they_are_added_together_in_their_order(lore, tries):
    reports = await at_once(lore, *(said(number, f"room-{number % 3}") for number in range(9)))
    assert [report.added for report in reports] == [(f"m{number}",) for number in range(9)]
    assert [sorted(batch) for batch in tries] == [["m0"], [f"m{number}" for number in range(1, 9)]]
    for room in range(3):
        stored = await lore.messages.page(f"room-{room}")
        assert [message.id for message in stored] == [f"m{number}" for number in range(room, 9, 3)]


async def test_a_message_alone_goes_at_once(lore, tries):
    for number in range(3):
        await lore.messages.add(said(number))
    assert tries == [["m0"], ["m1"], ["m2"]]


async def test_many_or_long_ones_make_several_groups(lore, tries):
    long = "word " * 500
    await at_once(lore, *(said(number) for number in range(12)), *(said(number, text=long) for number in range(20, 24)))
    assert sorted(map(len, tries)) == [1, 1, 1, 1, 4, 8]
    assert len(await lore.messages.page("room")) == 16


async def test_those_to_a_room_in_memory_are_planned_under_one_lock(lore, monkeypatch):
    locked, add = [], Ingest._try_locked

    async def counted(self, batches, **options):
        locked.append([message.id for batch in batches.values() for message in batch])
        return await add(self, batches, **options)

    monkeypatch.setattr(Ingest, "_try_locked", counted)
    await lore.messages.add(said(0))
    await at_once(lore, *map(said, range(1, 5)))
    assert locked == [["m1"], ["m2", "m3", "m4"]]
    assert len(await lore.messages.page("room")) == 5


@pytest.mark.parametrize("place", ["room", "other"])
async def test_on_postgresql_those_to_one_room_are_added_together(postgres_url, tries, place):
    async with roomlore.open(postgres_url, settings=roomlore.Settings(), background=False) as lore:
        await at_once(lore, said(0), said(1, place), said(2, place))
        assert sorted(tries) == ([["m0"], ["m1", "m2"]] if place == "room" else [["m0"], ["m1"], ["m2"]])


async def test_one_call_has_made_a_new_room(lore):
    reports = await at_once(lore, said(0, "other"), *(said(number) for number in range(1, 4)))
    assert [list(report.new_rooms) for report in reports] == [["other"], ["room"], [], []]


async def test_a_conflict_is_its_own(lore):
    await lore.messages.add(said(1))
    changed = said(1, text="something else")
    reports = await at_once(lore, said(0), changed, said(1), said(2))
    assert isinstance(reports[1], Conflict)
    assert [(one.added, one.duplicates) for one in (reports[0], reports[2], reports[3])] == [
        (("m0",), ()),
        ((), ("m1",)),
        (("m2",), ()),
    ]
    reports = await at_once(lore, said(3), changed, on_conflict="report")
    assert reports[1].conflicts == ("m1",)


async def test_what_is_begun_later_arrives_later(lore):
    """A regression: a batch overtook the single messages that waited for an addition to end."""
    adds = [lore.messages.add(one) for one in (said(0), said(1), [said(2), said(3)], said(4), [said(5), said(6)])]
    await asyncio.gather(*adds)
    assert [message.id for message in await lore.messages.page("room")] == [f"m{number}" for number in range(7)]


async def test_a_long_message_is_not_overtaken(lore):
    """A regression: it was checked in a thread, and shorter ones went by."""
    reports = await at_once(lore, said(0), said(1, text="word " * 10_000), said(2), said(3))
    assert [report.added for report in reports] == [(f"m{number}",) for number in range(4)]
    assert [message.id for message in await lore.messages.page("room")] == [f"m{number}" for number in range(4)]


async def test_a_group_that_waits_for_one_room_is_not_overtaken_in_another(lore):
    """A regression."""
    async with lore._resources.rooms.turns.take(lore.tenant, ["busy"]):
        messages = [said(0, "other"), said(1, "busy"), *(said(number) for number in range(2, 30))]
        adds = [asyncio.create_task(lore.messages.add(message)) for message in messages]
        await asyncio.sleep(0.1)
    await asyncio.gather(*adds)
    assert [message.id for message in await lore.messages.page("room")] == [f"m{number}" for number in range(2, 30)]


async def test_who_is_refused_is_refused_in_order(tmp_path):
    """A regression: while a group was added one by one, since it exceeded a quota, others went in between."""
    settings = roomlore.Settings(quota_messages_a_day=12)
    async with roomlore.open(f"sqlite:///{tmp_path}/b.db", settings=settings, background=False) as lore:
        reports = await at_once(lore, *(said(number) for number in range(30)))
        assert [isinstance(report, QuotaExceeded) for report in reports] == [False] * 12 + [True] * 18
        stored = await lore.messages.page("room")
    assert [message.id for message in stored] == [f"m{number}" for number in range(12)]


async def test_one_id_twice_is_added_once(lore):
    reports = await at_once(lore, said(0), said(1), said(1), said(1, text="something else"))
    assert [report.added for report in reports[:3]] == [("m0",), ("m1",), ()]
    assert reports[2].duplicates == ("m1",)
    assert isinstance(reports[3], Conflict)


async def test_an_error_of_one_is_not_that_of_the_others(lore, monkeypatch):
    def refusing(attempt):
        async def refused(self, batches, **options):
            if any(message.id == "m2" for batch in batches.values() for message in batch):
                raise QuotaExceeded("m2 is one too many")
            return await attempt(self, batches, **options)

        return refused

    for way in ("_try", "_try_locked"):
        monkeypatch.setattr(Ingest, way, refusing(getattr(Ingest, way)))
    reports = await at_once(lore, *(said(number) for number in range(5)))
    assert isinstance(reports[2], QuotaExceeded)
    assert [report.added for report in reports if not isinstance(report, Exception)] == [
        ("m0",), ("m1",), ("m3",), ("m4",),
    ]  # fmt: skip


async def test_a_database_that_is_down_is_asked_once_for_all(lore, monkeypatch):
    asked = []

    async def down(self, batches, **options):
        asked.append(batches)
        raise StorageUnavailable("down") from OSError("disk is full")

    monkeypatch.setattr(Ingest, "_try", down)
    reports = await at_once(lore, *(said(number) for number in range(5)))
    assert all(isinstance(report, StorageUnavailable) for report in reports)
    assert len({id(report) for report in reports}) == 5
    assert [str(report.__cause__) for report in reports] == ["disk is full"] * 5
    assert len(asked) == 2


async def test_a_call_that_is_cancelled_leaves_the_others(lore, tries):
    adds = [asyncio.create_task(lore.messages.add(said(number))) for number in range(5)]
    await asyncio.sleep(0)
    adds[2].cancel()
    reports = await asyncio.gather(*adds, return_exceptions=True)
    assert isinstance(reports[2], asyncio.CancelledError)
    assert [message.id for message in await lore.messages.page("room")] == ["m0", "m1", "m3", "m4"]
    assert tries == [["m0"], ["m1", "m3", "m4"]]


async def test_when_all_are_cancelled_nothing_goes_on(lore):
    adds = [asyncio.create_task(lore.messages.add(said(number))) for number in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for add in adds:
        add.cancel()
    await asyncio.gather(*adds, return_exceptions=True)
    assert not [task for task in asyncio.all_tasks() if "Joint" in str(task.get_coro())]
    await lore.messages.add(said(9))
    assert (await lore.messages.page("room"))[-1].id == "m9"


@pytest.mark.parametrize("turns", [1, 2, 4])
async def test_a_group_that_is_ended_leaves_nobody_waiting(lore, turns):
    """Who ends a program may cancel its tasks in any order, a group's among them, which may not have begun."""
    adds = [asyncio.create_task(lore.messages.add(said(number))) for number in range(10)]
    for _ in range(turns):
        await asyncio.sleep(0)
    (group,) = [task for task in asyncio.all_tasks() if "Joint" in str(task.get_coro())]
    group.cancel()
    first, *others, last = await asyncio.wait_for(asyncio.gather(*adds, return_exceptions=True), 60)
    assert (first.added, last.added) == (("m0",), ("m9",))
    assert all(isinstance(other, asyncio.CancelledError) for other in others)
    assert [message.id for message in await lore.messages.page("room")] == ["m0", "m9"]


async def test_a_room_that_a_batch_is_written_to_holds_up_no_other(lore):
    """A regression: a message to it joined messages to others, which then waited for the batch too."""
    for room_id in ("busy", "other", "third"):
        await lore.messages.add(said(0, room_id))
    async with lore._resources.rooms.turns.take("default", ["busy"]):
        waiting = [asyncio.create_task(lore.messages.add(said(number, "busy"))) for number in range(1, 4)]
        async with asyncio.timeout(10):
            reports = await at_once(
                lore, *(said(number, room) for number in range(1, 4) for room in ("other", "third"))
            )
        assert [report.added for report in reports] == [(f"m{number}",) for number in (1, 1, 2, 2, 3, 3)]
        assert not any(one.done() for one in waiting)
    await asyncio.gather(*waiting)
    assert [one.id for one in await lore.messages.page("busy")] == ["m0", "m1", "m2", "m3"]


async def test_a_group_does_not_wait_for_a_room_that_a_batch_took_before_it_began(lore):
    for room_id in ("busy", "other"):
        await lore.messages.add(said(0, room_id))
    async with lore.storage.writing("default"):  # keeps the first one waiting, so that those that come now join a group
        first = asyncio.create_task(lore.messages.add(said(1, "other")))
        await asyncio.sleep(0)
        joined = [asyncio.create_task(lore.messages.add(said(2, room_id))) for room_id in ("busy", "other")]
        await asyncio.sleep(0)
        busy = lore._resources.rooms.turns.take("default", ["busy"])
    async with busy:
        async with asyncio.timeout(10):
            await asyncio.gather(first, joined[1])
        later = asyncio.create_task(lore.messages.add(said(3, "busy")))
        await asyncio.sleep(0)
        assert not joined[0].done()
    await asyncio.gather(joined[0], later)
    assert [one.id for one in await lore.messages.page("busy")] == ["m0", "m2", "m3"]
