"""Facts of rooms in memory: which stay, which go, and what they take."""

import gc
import tracemalloc
from datetime import UTC, datetime

import numpy as np
import pytest

import roomlore
from roomlore.core.models import Room
from roomlore.core.search.facts import look_up
from roomlore.core.search.hits import FactRows
from roomlore.services.messages.search import FactsCache


class Rooms:
    """The port `UnitOfWork` as far as facts are read: rooms of so many messages, all by other senders."""

    def __init__(self, **messages: int) -> None:
        self.sizes = messages
        self.read: list[str] = []

    @property
    def messages(self) -> "Rooms":
        return self

    async def facts(self, *, room_id: str, since: int) -> FactRows:
        self.read.append(room_id)
        arrivals = np.arange(since + 1, self.sizes[room_id] + 1)
        people = [f"{room_id}-{arrival}" for arrival in arrivals.tolist()]
        return FactRows(
            arrivals=arrivals,
            sent_at=arrivals + 0,
            sender_ids=people,
            sender_names=[f"Somebody {person}" for person in people],
            roles=arrivals * 0,
            lengths=arrivals * 0,
            questions=arrivals < 0,
            parents=arrivals * 0,
            parent_odds=np.zeros(arrivals.size),
            threads=arrivals * 0,
            deleted=arrivals < 0,
        )

    def room(self, room_id: str) -> Room:
        messages = self.sizes[room_id]
        born = datetime(2024, 1, 1, tzinfo=UTC)
        return Room(tenant="t", room_id=room_id, created_at=born, messages=messages, revision=messages)


async def search(cache: FactsCache, rooms: Rooms, *names: str) -> list[str]:
    """The rooms that were read for it."""
    rooms.read.clear()
    for name in names:
        if cache.known("t", name) is None:
            await cache.of(rooms, rooms.room(name))
    return list(rooms.read)


def held(cache: FactsCache, rooms: Rooms) -> set[str]:
    return {name for name in rooms.sizes if cache.known("t", name) is not None}


async def test_the_room_not_searched_longest_goes_first():
    rooms = Rooms(a=100, b=100, c=100)
    cache = FactsCache(size_bytes=100_000)
    assert await search(cache, rooms, "a", "b", "a", "c", "a", "b") == ["a", "b", "c", "b"]
    assert held(cache, rooms) == {"a", "b"}


async def test_a_room_too_large_is_read_each_time_and_drives_no_other_out():
    rooms = Rooms(small=10, large=5_000)
    cache = FactsCache(size_bytes=100_000)
    assert await search(cache, rooms, "small", "large", "large", "small") == ["small", "large", "large"]


async def test_a_room_grown_too_large_is_let_go():
    rooms = Rooms(one=10, other=10)
    cache = FactsCache(size_bytes=100_000)
    await search(cache, rooms, "one", "other")
    rooms.sizes["one"] = 5_000
    facts = await cache.of(rooms, rooms.room("one"))
    assert facts.arrivals.size == 5_000
    assert held(cache, rooms) == {"other"}


async def test_rooms_without_messages_count_too():
    rooms = Rooms(**{f"r{number}": 0 for number in range(200)})
    cache = FactsCache(size_bytes=160_000)
    await search(cache, rooms, *rooms.sizes)
    assert 50 < len(held(cache, rooms)) <= 100


async def test_what_is_up_to_date_is_not_read_again():
    rooms = Rooms(a=3)
    cache = FactsCache(size_bytes=100_000)
    first = await cache.of(rooms, rooms.room("a"))
    assert await cache.of(rooms, rooms.room("a")) is first
    assert rooms.read == ["a"]


@pytest.mark.parametrize(("count", "messages"), [(1_000, 1), (400, 20), (8, 1_000)])
async def test_what_is_held_keeps_to_the_bounds(count, messages):
    rooms = Rooms(**{f"r{number}": messages for number in range(count)})
    size = 1_000_000
    await search(FactsCache(size_bytes=size), rooms, *rooms.sizes)
    gc.collect()
    tracemalloc.start()
    try:
        cache = FactsCache(size_bytes=size)
        await search(cache, rooms, *rooms.sizes)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.4 * size < taken < 1.2 * size


async def test_words_kept_with_facts_are_found_as_in_the_index(storage_url):
    """After a first reading, after messages that follow, and after a change of one that was read."""
    said = ["deploy deploy deploy", "谁来部署？ c++ x_y", "it's o'neil: 100% \\ done", "", "deploy " * 300]
    words = ["deploy", "部署", "c++", "x_y", "o'neil", "100", "done", "absent", "", "a" * 129, "ann"]
    async with roomlore.open(storage_url, settings=roomlore.Settings(), background=False) as lore:
        cache = FactsCache(size_bytes=1_000_000)
        for turn in range(3):
            if turn < 2:
                messages = [f"{turn} {number}" for number in range(len(said))]
                texts = zip(messages, said, strict=True)
                await lore.messages.add(
                    [roomlore.Message(id=name, room_id="r", sender_id="ann", text=text) for name, text in texts]
                )
            else:
                await lore.messages.edit("r", "0 0", text="nothing to see")
            async with lore.storage.reading("default") as work:
                room = await work.rooms.find(room_id="r")
                facts = await cache.of(work, room, words=True)
                stored = await work.messages.look_up(room_id="r", words=words)
            kept = look_up(facts, room, words)
            for name in ("ends", "arrivals", "counts"):
                assert getattr(kept, name).tolist() == getattr(stored, name).tolist(), (turn, name)
            assert kept.arrivals.size
