"""What `Evolutions` and `Watermarks` must do."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from roomlore.core.chat.models import Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.models import Evolution
from roomlore.ports.memories import RoomBehind
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry, evolution
from roomlore.testing.contracts.filling import ROOM, TENANT, erase, fill
from roomlore.testing.contracts.memory_log import SCOPE
from roomlore.testing.contracts.texts import HARD_TEXTS


async def add(storage: Storage, given: Evolution, *, tenant: str = TENANT) -> bool:
    async with storage.writing() as work:
        return await work.evolutions.add(tenant=tenant, evolution=given)


async def stored(storage: Storage, *evolution_ids: str, tenant: str = TENANT) -> list[Evolution]:
    async with storage.reading() as work:
        found = await work.evolutions.by_id(tenant=tenant, evolution_ids=evolution_ids)
    return sorted(found, key=lambda one: one.evolution_id)


async def ids(
    storage: Storage, *, before: str | None = None, limit: int = 99, tenant: str = TENANT, scope: str = SCOPE
) -> list[str]:
    async with storage.reading() as work:
        found = await work.evolutions.page(tenant=tenant, scope=scope, before=before, limit=limit)
    return [one.evolution_id for one in found]


async def move(
    storage: Storage, arrival: int, was: int, *, name: str = "extraction", tenant: str = TENANT, room_id: str = ROOM
) -> bool:
    async with storage.writing() as work:
        return await work.watermarks.move(
            tenant=tenant, room_id=room_id, name=name, arrival=arrival, was=was, now=START
        )


async def marks(
    storage: Storage, names: Sequence[str] = ("extraction",), *, tenant: str = TENANT, room_id: str = ROOM
) -> dict[str, int]:
    async with storage.reading() as work:
        return await work.watermarks.find(tenant=tenant, room_id=room_id, names=names)


async def behind(storage: Storage, least: int, *, name: str = "extraction") -> list[tuple[str, int]]:
    """Room and mark of those that are, all of the one tenant there is."""
    async with storage.reading() as work:
        found = await work.watermarks.behind(name=name, least=least, after=("", ""), limit=99)
    assert {one.tenant for one in found} <= {TENANT}
    return [(one.room_id, one.mark) for one in found]


class EvolutionsContract:
    async def test_an_evolution_comes_back_as_it_went_in(self, storage: Storage) -> None:
        full = evolution(
            kind="evolution",
            status="failed",
            first_arrival=2**40,
            last_arrival=2**41,
            messages=200,
            prompt_name="memory_evolve",
            prompt_hash="0" * 64,
            model="a model",
            usage=Usage(2**40, 7),
            raw_answer='{"action": "keep"}\n保留 👋🏽',
            quarantined=(("not json", "no JSON"), ("{'a': \"b\"}", "handle m9 was not offered"), ("", "")),
            facts={"kept": 3, "from the future": {"x": [None, 1.5, True, "药"]}, "": {}},
            error="the model said no",
            started_at=START + timedelta(microseconds=1),
            finished_at=START + timedelta(days=1, microseconds=999999),
        )
        assert await add(storage, full)
        assert await add(storage, evolution("e2"))
        assert await stored(storage, "e1", "e2", "nowhere") == [full, evolution("e2")]
        assert await stored(storage) == []

    async def test_the_first_one_with_an_id_stays(self, storage: Storage) -> None:
        assert await add(storage, evolution())
        assert not await add(storage, evolution(raw_answer="again"))
        assert not await add(storage, evolution(scope="group:g"))
        assert await add(storage, evolution(raw_answer="theirs"), tenant="other")
        assert await stored(storage, "e1") == [evolution()]
        assert await stored(storage, "e1", tenant="other") == [evolution(raw_answer="theirs")]

    @pytest.mark.parametrize("facts", [{"a": object()}, {("a",): 1}], ids=["object", "tuple"])
    async def test_facts_that_are_no_json_are_refused(self, storage: Storage, facts: Any) -> None:
        with pytest.raises(InvalidInput):
            await add(storage, evolution(facts=facts))

    async def test_pages_come_newest_first(self, storage: Storage) -> None:
        for n in (2, 5, 1, 4, 3):
            await add(storage, evolution(f"e{n}"))
        await add(storage, evolution("e6", scope="group:g"))
        assert await ids(storage) == ["e5", "e4", "e3", "e2", "e1"]
        assert await ids(storage, limit=2) == ["e5", "e4"]
        assert await ids(storage, before="e4", limit=2) == ["e3", "e2"]
        assert await ids(storage, before="e1") == []
        assert await ids(storage, limit=0) == []
        assert await ids(storage, scope="group:g") == ["e6"]
        assert await ids(storage, tenant="other") == []

    async def test_ids_of_which_a_part_is_known(self, storage: Storage) -> None:
        for name in ("0189-茶-a1b2", "0189-茶-c3d4", "a1b2-e"):
            await add(storage, evolution(name))
        await add(storage, evolution("theirs-a1b2"), tenant="other")
        for part, expected in {
            "a1b2": ["0189-茶-a1b2", "a1b2-e"],
            "0189": ["0189-茶-a1b2", "0189-茶-c3d4"],
            "茶": [],
        }.items():
            async with storage.reading() as work:
                assert await work.evolutions.ids_like(tenant=TENANT, part=part, limit=9) == expected

    async def test_reading_adds_nothing(self, storage: Storage) -> None:
        async with storage.reading() as work:
            with pytest.raises(InvalidInput):
                await work.evolutions.add(tenant=TENANT, evolution=evolution())
            with pytest.raises(InvalidInput):
                await work.watermarks.move(tenant=TENANT, room_id=ROOM, name="x", arrival=1, was=0, now=START)


class WatermarksContract:
    async def test_work_that_never_began_has_no_mark(self, storage: Storage) -> None:
        assert await marks(storage) == {}
        assert not await move(storage, 5, 3)
        assert await marks(storage) == {}

    async def test_a_mark_moves_from_where_it_is(self, storage: Storage) -> None:
        assert await move(storage, 5, 0)
        assert not await move(storage, 7, 0)
        assert not await move(storage, 7, 4)
        assert await move(storage, 2**40, 5)
        assert await marks(storage) == {"extraction": 2**40}
        assert await move(storage, 0, 2**40)
        assert await marks(storage) == {"extraction": 0}
        assert await move(storage, 3, 0), "at 0 is where it begins"
        assert await marks(storage) == {"extraction": 3}

    async def test_marks_of_other_work_rooms_and_tenants(self, storage: Storage) -> None:
        assert await move(storage, 1, 0)
        assert await move(storage, 2, 0, name="evolution")
        assert await move(storage, 3, 0, room_id="b")
        assert await move(storage, 4, 0, tenant="other")
        assert await marks(storage, ["extraction", "evolution", "none"]) == {"extraction": 1, "evolution": 2}
        assert await marks(storage, []) == {}
        assert await marks(storage, room_id="b") == {"extraction": 3}
        assert await marks(storage, tenant="other") == {"extraction": 4}

    @pytest.mark.parametrize("was", [0, 3])
    async def test_of_two_writers_one_moves_it(self, storage: Storage, was: int) -> None:
        if was:
            assert await move(storage, was, 0)
        outcomes = await asyncio.gather(*(move(storage, arrival, was) for arrival in (11, 12, 13)))
        assert sorted(outcomes) == [False, False, True]
        assert await marks(storage) == {"extraction": 11 + outcomes.index(True)}

    async def test_rooms_that_have_grown_since(self, storage: Storage) -> None:
        for room_id, messages in {"a": 3, "b": 5, "房": 4, "empty": 0}.items():
            await fill(storage, [entry(n) for n in range(1, messages + 1)], room_id=room_id)
        await move(storage, 3, 0, room_id="b")
        await move(storage, 4, 0, room_id="房")
        await move(storage, 3, 0, room_id="a", name="evolution")
        assert await behind(storage, 1) == [("a", 0), ("b", 3)]
        assert await behind(storage, 2) == [("a", 0), ("b", 3)]
        assert await behind(storage, 3) == [("a", 0)]
        assert await behind(storage, 4) == []
        assert await behind(storage, 1, name="evolution") == [("b", 0), ("房", 0)]
        assert await behind(storage, 0) == [("a", 0), ("b", 3), ("empty", 0), ("房", 4)]

    async def test_the_deleted_count_and_a_mark_may_be_ahead(self, storage: Storage) -> None:
        await fill(storage, [entry(n) for n in range(1, 5)])
        await erase(storage, 2, 3, 4)
        assert await behind(storage, 4) == [(ROOM, 0)]
        await move(storage, 9, 0)
        assert await behind(storage, 0) == []

    async def test_rooms_behind_are_walked_in_the_order_of_their_names(self, storage: Storage) -> None:
        names = [("acme", "z"), ("acme", "茶"), ("bee", ""), ("bee", "a"), ("茶", "a"), ("茶", "z")]
        for tenant, room_id in reversed(names):
            await fill(storage, [entry(1)], tenant=tenant, room_id=room_id)
        async with storage.reading() as work:
            walked: list[RoomBehind] = []
            for _ in range(4):
                after = (walked[-1].tenant, walked[-1].room_id) if walked else ("", "")
                walked += await work.watermarks.behind(name="extraction", least=1, after=after, limit=2)
            assert await work.watermarks.behind(name="extraction", least=1, after=("", ""), limit=0) == []
        assert walked == [RoomBehind(tenant, room_id, 0) for tenant, room_id in names]

    async def test_a_tenants_mark_is_not_anothers(self, storage: Storage) -> None:
        for tenant in (TENANT, "other"):
            await fill(storage, [entry(1), entry(2)], tenant=tenant)
        await move(storage, 2, 0, tenant="other")
        async with storage.reading() as work:
            found = await work.watermarks.behind(name="extraction", least=1, after=("", ""), limit=9)
        assert found == [RoomBehind(TENANT, ROOM, 0)]


@pytest.mark.parametrize("text", HARD_TEXTS, ids=ascii)
class EvolutionTextsContract:
    async def test_in_evolutions_and_watermarks(self, storage: Storage, text: str) -> None:
        names = ("scope", "room_id", "prompt_name", "prompt_hash", "model", "raw_answer", "error")
        bare = evolution(text, **dict.fromkeys(names, text))
        full = replace(bare, quarantined=((text, text), (text, "")), facts={text: {text: [text]}})
        assert await add(storage, full, tenant=text)
        assert await stored(storage, text, tenant=text) == [full]
        assert await ids(storage, tenant=text, scope=text) == [text]
        assert await move(storage, 7, 0, tenant=text, room_id=text, name=text)
        assert await marks(storage, [text], tenant=text, room_id=text) == {text: 7}
        await fill(storage, [entry(n) for n in range(1, 10)], tenant=text, room_id=text)
        async with storage.reading() as work:
            found = await work.watermarks.behind(name=text, least=2, after=("", ""), limit=9)
            assert await work.watermarks.behind(name=text, least=2, after=(text, text), limit=9) == []
        assert found == [RoomBehind(text, text, 7)]
