"""What `IndexStates` must do."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.linked import UNLINKED, Linked
from roomlore.core.search import EmbeddingModel, IndexState
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry
from roomlore.testing.contracts.filling import fill

STATE = IndexState(
    name="vectors",
    model=EmbeddingModel(name="an/embedder-小\x00", dimensions=384),
    generation="g1",
    cursor=("acme", 'room "\x00\ud800', 7),
    updated_at=START,
)


async def find(storage: Storage, name: str = STATE.name) -> IndexState | None:
    async with storage.reading() as work:
        return await work.index_states.find(name=name)


async def save(storage: Storage, state: IndexState, *, expected: str | None) -> bool:
    async with storage.writing() as work:
        return await work.index_states.save(state=state, expected=expected)


async def rooms_after(storage: Storage, tenant: str, room_id: str, limit: int = 99) -> list[tuple[str, str]]:
    async with storage.reading() as work:
        rooms = await work.index_states.rooms_after(tenant=tenant, room_id=room_id, limit=limit)
    return [(room.tenant, room.room_id) for room in rooms]


class IndexStatesContract:
    async def test_a_state_comes_back_as_it_was_saved(self, storage: Storage) -> None:
        assert await find(storage) is None
        assert await save(storage, STATE, expected=None)
        assert await find(storage) == STATE
        assert await find(storage, "another") is None

    async def test_a_later_state_takes_its_place(self, storage: Storage) -> None:
        await save(storage, STATE, expected=None)
        await save(storage, replace(STATE, name="another"), expected=None)
        whole = replace(STATE, cursor=None, generation="g2", updated_at=START + timedelta(days=1))
        assert await save(storage, whole, expected="g1")
        assert await find(storage) == whole
        assert await find(storage, "another") == replace(STATE, name="another")

    async def test_whoever_expects_another_generation_changes_nothing(self, storage: Storage) -> None:
        assert not await save(storage, STATE, expected="g0")
        assert await find(storage) is None
        await save(storage, STATE, expected=None)
        assert not await save(storage, replace(STATE, generation="g2"), expected="g0")
        assert not await save(storage, replace(STATE, generation="g2"), expected=None)
        assert await find(storage) == STATE

    async def test_saving_needs_a_writing_unit_of_work(self, storage: Storage) -> None:
        async with storage.reading() as work:
            with pytest.raises(InvalidInput):
                await work.index_states.save(state=STATE, expected=None)

    async def test_rooms_of_another_link_model_are_found(self, storage: Storage) -> None:
        made = {
            "today": Linked(by="m5"),
            "before": Linked(by="m4"),
            "after": Linked(by="m6"),
            "unknown": UNLINKED,
            "walked": Linked(walk="m5", walked=2),
            "walked by another": Linked(walk="m6", walked=2),
        }
        for room_id, linked in made.items():
            async with storage.writing() as work:
                await work.rooms.lock(tenant="a", room_id=room_id, now=START)
                said = [entry(n) for n in (1, 2, 3)]
                await work.writer.append(tenant="a", room_id=room_id, entries=said, linked=linked)
        async with storage.writing() as work:
            await work.rooms.lock(tenant="b", room_id="empty", now=START)
        async with storage.reading() as work:
            waiting = await work.index_states.rooms_to_link(model="m5", limit=9)
            assert len(await work.index_states.rooms_to_link(model="m5", limit=2)) == 2
            assert await work.index_states.left_to_link(model="m5") == (5, 4 * 3 + 1)
            assert await work.index_states.left_to_link(model="m4") == (5, 5 * 3)
        assert {room.room_id: room.linked for room in waiting} == {
            room_id: linked for room_id, linked in made.items() if room_id != "today"
        }

    async def test_rooms_of_all_tenants_in_one_order(self, storage: Storage) -> None:
        places = [("a", "1"), ("a", "z"), ("b", "0"), ("b", "房间"), ("租户", "a")]
        for tenant, room_id in reversed(places):
            await fill(storage, [entry(1)], tenant=tenant, room_id=room_id)
        assert await rooms_after(storage, "", "") == places
        for at, (tenant, room_id) in enumerate(places):
            assert await rooms_after(storage, tenant, room_id) == places[at + 1 :]
        assert await rooms_after(storage, "a", "5", limit=2) == places[1:3]
        assert await rooms_after(storage, "aa", "") == places[2:]
