"""The rooms kept in memory: how many bytes of them, and which go first."""

import asyncio
import contextlib
import random
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

import roomlore
from meddling import Meddled
from roomlore import Message
from roomlore.adapters.inprocess import SystemClock
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.adapters.weights import load_link_model
from roomlore.core.linking.room import WINDOW, RoomState
from roomlore.core.models import Entry, Room
from roomlore.services.messages.room_states import RoomCache
from roomlore.wiring import resources
from roomlore_server.http.answers import encoded
from roomlore_testkit.doubles import FrozenClock

NOW = datetime(2024, 5, 1, tzinfo=UTC)
MODEL = load_link_model()


def state(room: Room, messages: int) -> RoomState:
    made = RoomState(model=MODEL, room=room, participants={}, entries=())
    arrivals = made.begin((), ())
    for number in range(messages):
        said = Message(id=str(number), room_id=room.room_id, sender_id="ann", text=f"word {number}")
        arrivals.absorb([said], tokens=[2], now=NOW)
    return made


def room(name: str) -> Room:
    return Room(tenant="t", room_id=name, created_at=NOW)


def cache(size_bytes: int) -> RoomCache:
    return RoomCache(size_bytes=size_bytes, telemetry=PrometheusTelemetry(SystemClock()))


def kept(rooms: RoomCache, names: str) -> str:
    return "".join(name for name in names if rooms.take(room(name)) is not None)


def test_bytes_bound_the_cache_and_the_oldest_go_first():
    size = state(room("a"), 20).size_bytes()
    assert size > 800_000
    rooms = cache(2 * size + size // 2)
    for name in "abcd":
        rooms.keep(room(name), state(room(name), 20))
    assert kept(rooms, "abcd") == "cd"
    assert kept(rooms, "abcd") == ""


def test_links_that_change_later_leave_the_count_of_bytes_right():
    made = state(room("a"), 0)
    arrivals = made.begin((), ())
    for number in range(0, 600, 2):
        for name, more in ((number + 1, {"reply_to": str(number), "root_id": f"none {number}"}), (number, {})):
            said = Message(id=str(name), room_id="a", sender_id=f"p{name % 7}", text="the same words again", **more)
            arrivals.absorb([said], tokens=[2], now=NOW)
    counted = made.woken().size_bytes()
    again = RoomState(model=MODEL, room=room("a"), participants={}, entries=made.entries).woken()
    people = len(made.participants) - len(again.participants)
    assert abs(counted - again.size_bytes()) <= 1_000 * (people + 1)


def test_a_room_kept_again_counts_once():
    size = state(room("a"), 20).size_bytes()
    rooms = cache(2 * size + size // 2)
    for name in ("a", "b", "b", "b", "b"):
        rooms.keep(room(name), state(room(name), 20))
    assert kept(rooms, "ab") == "ab"


def test_small_rooms_of_a_batch_keep_no_window_and_large_ones_are_bounded():
    held = cache(20_000_000).hold()
    for number in range(100):
        held.add(room(str(number)), state(room(str(number)), 2))
    assert len(list(held)) == 100
    for number in range(20):
        held.add(room(f"large {number}"), state(room(f"large {number}"), 101))
    assert 2 <= len(list(held)) < 10
    assert [one.room_id for one, _ in held][-1] == "large 19"


def test_small_rooms_that_were_not_used_lately_keep_no_window():
    rooms = cache(200_000_000)
    larger = state(room("larger"), 17)
    rooms.keep(room("larger"), larger)
    states = [state(room(str(number)), 2) for number in range(136)]
    for number, one in enumerate(states):
        rooms.keep(room(str(number)), one)
    assert [one.rests for one in (larger, *states)] == [False] + [True] * 8 + [False] * 128
    assert rooms._bytes == sum(one.size_bytes() for one in (larger, *states))


def test_a_window_made_anew_links_as_the_one_that_was_let_go():
    going_on, resting = state(room("a"), 12), state(room("a"), 12)
    resting.rest(most=16)
    said = Message(id="x", room_id="a", sender_id="ben", text="which word?")
    entries = []
    for one in (going_on, resting):
        arrivals = one.begin((), ())
        arrivals.absorb([said], tokens=[2], now=NOW)
        entries.append(arrivals.entries)
    assert entries[0] == entries[1]


@pytest.mark.parametrize(("settings", "megabytes"), [({}, 192), ({"room_cache_mb": 5}, 5)])
async def test_the_settings_name_the_size(settings, megabytes):
    async with roomlore.open("sqlite://", settings=roomlore.Settings(**settings)) as lore:
        assert lore._resources.rooms.size_bytes == megabytes * 1024 * 1024


async def turn(rooms: RoomCache, names: str, log: list[str], told: str) -> None:
    async with rooms.turns.take("t", names):
        log.append(f"{told} begins")
        await asyncio.sleep(0.01)
        log.append(f"{told} ends")


async def test_who_writes_to_the_same_rooms_queues():
    rooms, log = cache(0), []
    await asyncio.gather(turn(rooms, "ba", log, "1"), turn(rooms, "bc", log, "2"), turn(rooms, "cab", log, "3"))
    assert log == [f"{told} {what}" for told in "123" for what in ("begins", "ends")]


async def test_who_gives_up_waiting_holds_nobody_off():
    rooms, log = cache(0), []
    first = asyncio.ensure_future(turn(rooms, "a", log, "1"))
    given_up = asyncio.ensure_future(turn(rooms, "ab", log, "2"))
    third = asyncio.ensure_future(turn(rooms, "ab", log, "3"))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait_for(asyncio.gather(first, third), 60)
    assert log == ["1 begins", "1 ends", "3 begins", "3 ends"]


async def test_who_gives_up_as_the_turn_comes_passes_it_on():
    rooms, log, hold = cache(0), [], asyncio.Event()

    async def holds() -> None:
        async with rooms.turns.take("t", "a"):
            await hold.wait()
        given_up.cancel()

    first = asyncio.ensure_future(holds())
    await asyncio.sleep(0)
    given_up = asyncio.ensure_future(turn(rooms, "a", log, "2"))
    third = asyncio.ensure_future(turn(rooms, "a", log, "3"))
    await asyncio.sleep(0)
    hold.set()
    await asyncio.wait_for(asyncio.gather(first, third), 60)
    assert log == ["3 begins", "3 ends"]


async def test_turns_in_very_many_rooms_hold_nobody_up():
    """A regression: 10,000 rooms in a batch held everybody up for most of a second. The quickest of three runs counts,
    since garbage of other tests may be collected during one."""
    rooms, took = cache(0), []
    for _ in range(3):
        begun = time.thread_time()
        async with rooms.turns.take("t", map(str, range(10_000))):
            pass
        took.append(time.thread_time() - begun)
    assert min(took) < 0.1


async def test_who_comes_later_writes_first_to_none_of_the_rooms():
    """A regression: who waited for one room had no place yet in the queues of the next ones."""
    rooms, log = cache(0), []
    await asyncio.gather(turn(rooms, "a", log, "1"), turn(rooms, "ab", log, "2"), turn(rooms, "b", log, "3"))
    assert log == [f"{told} {what}" for told in "123" for what in ("begins", "ends")]


async def test_a_turn_that_is_given_up_is_passed_on():
    rooms = cache(0)
    first, given_up, third = (rooms.turns.take("t", names) for names in ("a", "ab", "ab"))
    given_up.leave()
    given_up.leave()
    async with first:
        third_begins = asyncio.ensure_future(third.__aenter__())
        await asyncio.sleep(0)
        assert not third_begins.done()
    await asyncio.wait_for(third_begins, 60)
    third.leave()
    async with rooms.turns.take("t", "ab"):
        pass


async def stored(lore: roomlore.Lore) -> list[Entry]:
    async with lore._resources.storage.reading("default") as work:
        return await work.messages.tail(room_id="a", limit=1_000)


def lookups(result: str, *processes: roomlore.Lore) -> float:
    found = [lore._resources.telemetry.series("roomlore_room_cache_total") for lore in processes]
    return sum(value for series in found for labels, value in series if labels == {"result": result})


def some_change(rng: random.Random, number: int):
    """Something that happens to a room: most often a message, which may answer one that comes later."""
    which, old = rng.random(), str(rng.randrange(number))
    at = NOW + timedelta(minutes=number)
    if which < 0.06:
        return lambda lore: lore.messages.edit("a", old, text="the disk is full, after all")
    if which < 0.1:
        return lambda lore: lore.messages.delete("a", old)
    if which < 0.14:
        return lambda lore: lore.links.correct("a", str(number - 1), answers=str(number - 3))
    if which < 0.17:
        return lambda lore: lore.rooms.rename("a", f"name {number}")
    texts = ["who has the key?", "the disk is full", "", "谁有钥匙？", f"p{rng.randrange(5)}: it is here"]
    said = [
        Message(
            id=f"{number}" if part == 0 else f"{number}.{part}",
            room_id="a",
            sender_id=f"p{rng.randrange(5)}",
            sender_name=rng.choice(["", "Ann", "小明"]),
            text=rng.choice(texts),
            sent_at=at,
            reply_to=str(max(0, number + rng.randrange(-6, 4))) if rng.random() < 0.3 else None,
            metadata={"shown": [1, 2.5]} if rng.random() < 0.2 else {},
        )
        for part in range(rng.choice([1, 1, 1, 3]))
    ]
    return lambda lore: lore.messages.add(said)


@pytest.mark.parametrize("seed", [1, 2])
async def test_two_processes_that_write_to_a_room_store_what_one_does_that_reads_it_each_time(
    storage_url, tmp_path, monkeypatch, seed
):
    monkeypatch.setattr(resources, "SystemClock", lambda: FrozenClock(NOW))
    rng, settings = random.Random(seed), roomlore.Settings()
    cold = roomlore.Settings(room_cache_mb=0)
    async with (
        roomlore.open(storage_url, settings=settings, background=False) as one,
        roomlore.open(storage_url, settings=settings, background=False) as other,
        roomlore.open(f"sqlite:///{tmp_path}/cold.db", settings=cold, background=False) as alone,
    ):
        for number in range(3):
            for lore in (one, alone):
                await lore.messages.add(Message(id=str(number), room_id="a", sender_id="p0", text="hi", sent_at=NOW))
        for number in range(3, 90):
            change = some_change(rng, number)
            for lore in (rng.choice([one, other]), alone):
                with contextlib.suppress(roomlore.NotFound, roomlore.Conflict):  # of a message that is gone, a circle
                    await change(lore)
        assert await stored(one) == await stored(alone)
        assert lookups("followed", one, other) > 10


async def newest(lore: roomlore.Lore) -> tuple[bool, object, bytes]:
    """Return True if entries of the room are in memory, then the messages of its newest context, and as JSON."""
    async with lore._resources.storage.reading("default") as work:
        room = await work.rooms.find(room_id="a")
    context = await lore.context.build("a")
    return lore._resources.rooms.state(room) is not None, context.messages, encoded(context.messages)


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_context_of_what_is_in_memory_is_as_one_that_is_read(storage_url, monkeypatch, seed):
    monkeypatch.setattr(resources, "SystemClock", lambda: FrozenClock(NOW))
    rng, settings, held = random.Random(seed), roomlore.Settings(fallback_on_error=False), []
    async with (
        roomlore.open(storage_url, settings=settings, background=False) as one,
        roomlore.open(storage_url, settings=settings, background=False) as other,
        roomlore.open(
            storage_url, settings=roomlore.Settings(fallback_on_error=False, room_cache_mb=0), background=False
        ) as cold,
    ):
        for number in range(3):
            await one.messages.add(Message(id=str(number), room_id="a", sender_id="p0", text="hi", sent_at=NOW))
        for number in range(3, 60):
            with contextlib.suppress(roomlore.NotFound, roomlore.Conflict):
                await some_change(rng, number)(rng.choice([one, one, other]))
            read = await newest(cold)
            assert not read[0]
            for lore in (one, other):
                in_memory, *shown = await newest(lore)
                assert shown == list(read[1:])
                held.append(in_memory)
        assert 20 < sum(held) < len(held)


@pytest.mark.parametrize("change", [lambda told: told.update(file="b.png"), dict.clear])
async def test_what_a_caller_does_to_its_metadata_later_is_not_in_contexts(storage_url, change):
    told = {"file": "a.png"}
    async with roomlore.open(storage_url, settings=roomlore.Settings(), background=False) as lore:
        await lore.messages.add(Message(id="1", room_id="a", sender_id="p0", text="here it is", metadata=told))
        await lore.messages.add(Message(id="2", room_id="a", sender_id="p1", text="thanks", reply_to="1"))
        change(told)
        (shown,) = (await lore.context.build("a")).messages
    assert shown.message.metadata == {"file": "a.png"}


async def test_a_thread_that_moves_further_than_memory_reaches_is_read_again(storage_url):
    """A regression: the end of a thread whose middle was no longer in memory stayed in the old thread there, and so did
    what answered it."""
    said = partial(Message, room_id="a", sender_id="p0", text="so it is")
    async with roomlore.open(storage_url, settings=roomlore.Settings(), background=False) as lore:
        await lore.messages.add([said(id="begins", reply_to="later"), said(id="middle", reply_to="begins")])
        await lore.messages.add([said(id=str(number), root_id="elsewhere") for number in range(WINDOW)])
        await lore.messages.add(said(id="ends", reply_to="middle"))
        await lore.messages.add(said(id="later", root_id="another"))
        await lore.messages.add(said(id="answer", reply_to="ends"))
        threads = {entry.message.id: entry.link.thread for entry in await stored(lore)}
    assert threads["answer"] == threads["ends"] == threads["later"]


async def test_what_another_process_adds_while_a_room_is_read_is_taken_in_once(storage_url, tmp_path, monkeypatch):
    """A regression: the room was kept at its old revision with the new messages, which were then taken in again."""
    monkeypatch.setattr(resources, "SystemClock", lambda: FrozenClock(NOW))
    settings = roomlore.Settings()
    said = partial(Message, room_id="a", sender_id="ann", text="the disk of the server is full", sent_at=NOW)
    async with (
        roomlore.open(storage_url, settings=settings, background=False) as one,
        roomlore.open(storage_url, settings=settings, background=False) as other,
        roomlore.open(f"sqlite:///{tmp_path}/alone.db", settings=settings, background=False) as alone,
    ):
        await other.messages.add(said(id="1"))
        more = [said(id="2"), said(id="3", sender_id="bob")]
        meddled = Meddled(one.storage, "messages.tail", partial(other.messages.add, more))
        one.messages._ingest._planner._storage = meddled
        assert (await one.messages.add(said(id="1"))).duplicates == ("1",)
        assert meddled.happened, "the other process added to the room while it was read"
        for lore in (one, alone):
            await lore.messages.add([said(id="1"), *more])
            await lore.messages.add([said(id="4"), said(id="5", sender_id="bob")])
        assert await stored(one) == await stored(alone)


async def test_two_processes_that_write_to_a_room_at_once_plan_little_in_vain(storage_url):
    settings = roomlore.Settings()
    async with (
        roomlore.open(storage_url, settings=settings, background=False) as one,
        roomlore.open(storage_url, settings=settings, background=False) as other,
    ):
        said = [Message(id=str(number), room_id="a", sender_id="ann", text="hi", sent_at=NOW) for number in range(64)]
        await asyncio.gather(*((one, other)[number % 2].messages.add(said[number]) for number in range(64)))
        assert (await one.rooms.get("a")).messages == 64
        planned = sum(lookups(result, one, other) for result in ("hit", "followed", "miss"))
        assert planned <= 70, "nearly each message is planned once"
