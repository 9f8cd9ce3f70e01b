"""The rooms kept in memory: how many bytes of them, and which go first."""

import asyncio
from datetime import UTC, datetime

import pytest

import roomlore
from roomlore import Message
from roomlore.adapters.inprocess import SystemClock
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.adapters.weights import load_link_model
from roomlore.core.linking.room import RoomState
from roomlore.core.models import Room
from roomlore.services.messages.ingest import RoomCache

NOW = datetime(2024, 5, 1, tzinfo=UTC)
MODEL = load_link_model()


def state(room: Room, messages: int) -> RoomState:
    made = RoomState(model=MODEL, room=room, participants={}, entries=())
    arrivals = made.begin((), ())
    for number in range(messages):
        said = Message(id=str(number), room_id=room.room_id, sender_id="ann", text=f"word {number}")
        arrivals.absorb(said, tokens=2, now=NOW)
    return made


def room(name: str) -> Room:
    return Room(tenant="t", room_id=name, created_at=NOW)


def cache(size_bytes: int) -> RoomCache:
    return RoomCache(size_bytes=size_bytes, telemetry=PrometheusTelemetry(SystemClock()))


def kept(rooms: RoomCache, names: str) -> str:
    return "".join(name for name in names if rooms.take(room(name)) is not None)


def test_bytes_bound_the_cache_and_the_oldest_go_first():
    size = state(room("a"), 20).size_bytes()
    assert size > 1_000_000
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
            arrivals.absorb(said, tokens=2, now=NOW)
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
    for number in range(300):
        held.add(room(str(number)), state(room(str(number)), 2))
    assert len(list(held)) == 300
    for number in range(20):
        held.add(room(f"large {number}"), state(room(f"large {number}"), 40))
    assert 2 <= len(list(held)) < 10
    assert [one.room_id for one, _ in held][-1] == "large 19"


def test_a_window_made_anew_links_as_the_one_that_was_let_go():
    going_on, resting = state(room("a"), 12), state(room("a"), 12)
    resting.rest()
    said = Message(id="x", room_id="a", sender_id="ben", text="which word?")
    entries = []
    for one in (going_on, resting):
        arrivals = one.begin((), ())
        arrivals.absorb(said, tokens=2, now=NOW)
        entries.append(arrivals.entries)
    assert entries[0] == entries[1]


@pytest.mark.parametrize(("settings", "megabytes"), [({}, 192), ({"room_cache_mb": 5}, 5)])
async def test_the_settings_name_the_size(settings, megabytes):
    async with roomlore.open("sqlite://", settings=roomlore.Settings(**settings)) as lore:
        assert lore._resources.rooms.size_bytes == megabytes * 1024 * 1024


async def turn(rooms: RoomCache, names: str, log: list[str], told: str) -> None:
    async with rooms.alone("t", names):
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
        async with rooms.alone("t", "a"):
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


async def test_others_go_on_while_turns_in_very_many_rooms_begin():
    """A regression: 10,000 rooms in a batch held everybody up for most of a second."""
    rooms, others = cache(0), 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    async with rooms.alone("t", map(str, range(10_000))):
        assert others >= 5
    beside.cancel()
