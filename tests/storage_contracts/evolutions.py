"""The contract of `Evolutions` and `Watermarks`."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from roomlore.core.chat import Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import Evolution
from roomlore.core.models import Role
from roomlore.storage import Storage
from roomlore.storage.values import OF_PEOPLE, DueRoom, RoomBehind
from roomlore_testkit.builders import START, entry, evolution
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.contracts.hard_texts import HARD_TEXTS
from storage_contracts.memory_log import SCOPE
from storage_contracts.texts import ROOM, TENANT, erase, fill


async def add(storage: Storage, given: Evolution, *, tenant: str = TENANT) -> bool:
    async with storage.writing(tenant) as work:
        return await work.memories.add_evolution(evolution=given)


async def stored(storage: Storage, *evolution_ids: str, tenant: str = TENANT) -> list[Evolution]:
    async with storage.reading(tenant) as work:
        found = await work.memories.evolutions_by_id(evolution_ids=evolution_ids)
    return sorted(found, key=lambda one: one.evolution_id)


async def ids(
    storage: Storage, *, before: str | None = None, limit: int = 99, tenant: str = TENANT, scope: str = SCOPE
) -> list[str]:
    async with storage.reading(tenant) as work:
        found = await work.memories.evolutions(scope=scope, before=before, limit=limit)
    return [one.evolution_id for one in found]


async def move(
    storage: Storage, arrival: int, was: int, *, name: str = "extraction", tenant: str = TENANT, room_id: str = ROOM
) -> bool:
    async with storage.writing(tenant) as work:
        return await work.progress.move_mark(room_id=room_id, name=name, arrival=arrival, was=was, now=START)


async def marks(
    storage: Storage, names: Sequence[str] = ("extraction",), *, tenant: str = TENANT, room_id: str = ROOM
) -> dict[str, int]:
    async with storage.reading(tenant) as work:
        return await work.progress.marks(room_id=room_id, names=names)


async def behind(storage: Storage, least: int, *, name: str = "extraction") -> list[tuple[str, int]]:
    """Return room and mark of those that are behind, all of the one tenant."""
    async with storage.reading() as work:
        found = await work.progress.rooms_behind(name=name, least=least, after=("", ""), limit=99)
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
            async with storage.reading(TENANT) as work:
                assert await work.memories.evolution_ids_like(part=part, limit=9) == expected

    async def test_reading_adds_nothing(self, storage: Storage) -> None:
        async with storage.reading(TENANT) as work:
            with pytest.raises(InvalidInput):
                await work.memories.add_evolution(evolution=evolution())
            with pytest.raises(InvalidInput):
                await work.progress.move_mark(room_id=ROOM, name="x", arrival=1, was=0, now=START)


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
                walked += await work.progress.rooms_behind(name="extraction", least=1, after=after, limit=2)
            assert await work.progress.rooms_behind(name="extraction", least=1, after=("", ""), limit=0) == []
        assert walked == [RoomBehind(tenant, room_id, 0) for tenant, room_id in names]

    async def test_a_tenants_mark_is_not_anothers(self, storage: Storage) -> None:
        for tenant in (TENANT, "other"):
            await fill(storage, [entry(1), entry(2)], tenant=tenant)
        await move(storage, 2, 0, tenant="other")
        async with storage.reading() as work:
            found = await work.progress.rooms_behind(name="extraction", least=1, after=("", ""), limit=9)
        assert found == [RoomBehind(TENANT, ROOM, 0)]


class EvolutionTextsContract:
    async def test_in_evolutions_and_watermarks(self, storage: Storage) -> None:
        with all_cases() as case:
            for text in HARD_TEXTS:
                with case(text):
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
                        found = await work.progress.rooms_behind(name=text, least=2, after=("", ""), limit=99)
                        rest = await work.progress.rooms_behind(name=text, least=2, after=(text, text), limit=99)
                    assert [one for one in found if one.tenant == text] == [RoomBehind(text, text, 7)]
                    assert [one for one in rest if one.tenant == text] == []


NAME = "evolution group:tea"
MINUTES_HELD = 10


async def take(
    storage: Storage, holder: str, *, minutes: int = 0, held: int = MINUTES_HELD, name: str = NAME, tenant: str = TENANT
) -> bool:
    """Take the lease. `minutes`: the time of taking it, after START. `held`: minutes from then."""
    now = START + timedelta(minutes=minutes)
    until = now + timedelta(minutes=held)
    async with storage.writing(tenant) as work:
        return await work.progress.take_lease(name=name, holder=holder, now=now, until=until)


async def free(storage: Storage, holder: str, *, name: str = NAME, tenant: str = TENANT) -> None:
    async with storage.writing(tenant) as work:
        await work.progress.free_lease(name=name, holder=holder)


class LeasesContract:
    async def test_what_one_holds_nobody_else_takes(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert not await take(storage, "b")
        assert not await take(storage, "b", minutes=MINUTES_HELD - 1)

    async def test_a_lease_that_ran_out_is_free(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert await take(storage, "b", minutes=MINUTES_HELD)
        assert not await take(storage, "a", minutes=MINUTES_HELD), "it is b's now"

    async def test_its_holder_holds_it_for_longer(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert await take(storage, "a", minutes=9)
        assert not await take(storage, "b", minutes=18)
        assert await take(storage, "b", minutes=19)

    async def test_its_holder_may_hold_it_for_less(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert await take(storage, "a", held=2)
        assert await take(storage, "b", minutes=2)

    async def test_what_is_given_back_is_free(self, storage: Storage) -> None:
        assert await take(storage, "a")
        await free(storage, "a")
        assert await take(storage, "b")

    async def test_nobody_gives_back_what_another_has(self, storage: Storage) -> None:
        assert await take(storage, "a")
        await free(storage, "b")
        await free(storage, "a", name="another")
        await free(storage, "a", tenant="other")
        assert not await take(storage, "b")
        await free(storage, "a", name="never taken")

    async def test_leases_of_other_names_and_tenants(self, storage: Storage) -> None:
        assert await take(storage, "a")
        assert await take(storage, "b", name="evolution group:茶")
        assert await take(storage, "b", tenant="other")
        assert not await take(storage, "a", tenant="other")

    @pytest.mark.parametrize("ran_out", [False, True], ids=["new", "ran out"])
    async def test_of_many_at_once_one_takes_it(self, storage: Storage, ran_out: bool) -> None:
        if ran_out:
            assert await take(storage, "earlier")
        outcomes = await asyncio.gather(*(take(storage, holder, minutes=MINUTES_HELD) for holder in "abcd"))
        assert sorted(outcomes) == [False, False, False, True]

    async def test_what_is_rolled_back_was_not_taken(self, storage: Storage) -> None:
        with pytest.raises(StopError):
            await _take_and_stop(storage)
        assert await take(storage, "b")

    async def test_they_are_taken_and_freed_only_while_writing(self, storage: Storage) -> None:
        until = START + timedelta(minutes=1)
        async with storage.reading(TENANT) as work:
            with pytest.raises(InvalidInput):
                await work.progress.take_lease(name=NAME, holder="a", now=START, until=until)
            with pytest.raises(InvalidInput):
                await work.progress.free_lease(name=NAME, holder="a")

    async def test_odd_names_are_told_apart(self, storage: Storage) -> None:
        for text in HARD_TEXTS:
            assert await take(storage, text, name=text, tenant=text)
        for text in HARD_TEXTS:
            assert not await take(storage, text + "x", name=text, tenant=text)
            await free(storage, text, name=text, tenant=text)
            assert await take(storage, "b", name=text, tenant=text)


class StopError(Exception):
    """Raised inside a unit of work."""


async def _take_and_stop(storage: Storage) -> None:
    until = START + timedelta(minutes=1)
    async with storage.writing(TENANT) as work:
        assert await work.progress.take_lease(name=NAME, holder="a", now=START, until=until)
        raise StopError


OTHER = "other"
WORK = "extraction"


async def note(storage: Storage, room_id: str, *, tenant: str = TENANT, work: str = WORK, minutes: int = 0) -> None:
    async with storage.writing(tenant) as uow:
        now = START + timedelta(minutes=minutes)
        await uow.progress.note_room(room_id=room_id, work=work, now=now)


async def claim(storage: Storage, *, minutes: int = 0, limit: int = 10, work: str = WORK) -> list[DueRoom]:
    now = START + timedelta(minutes=minutes)
    async with storage.writing() as uow:
        return list(
            await uow.progress.claim_rooms(work=work, now=now, lease_until=now + timedelta(minutes=1), limit=limit)
        )


async def put_off(storage: Storage, room: DueRoom, *, minutes: int) -> None:
    async with storage.writing() as uow:
        await uow.progress.put_off(room=room, work=WORK, until=START + timedelta(minutes=minutes))


async def done(storage: Storage, room: DueRoom) -> bool:
    async with storage.writing() as uow:
        return await uow.progress.done(room=room, work=WORK)


async def replies(storage: Storage, *, after: int, limit: int, tenant: str = TENANT) -> list[int]:
    """Return the arrivals of the bot's replies."""
    async with storage.reading(tenant) as uow:
        return await uow.messages.replies_of(room_id=ROOM, agent_id="bot", after=after, limit=limit)


class RoomsDueContract:
    async def test_what_is_noted_is_claimed_once(self, storage: Storage) -> None:
        await note(storage, "tea")
        await note(storage, "tea")
        assert await claim(storage) == [DueRoom(TENANT, "tea", 2)]
        assert await claim(storage) == []

    async def test_the_longest_waiting_comes_first_whoever_owns_it(self, storage: Storage) -> None:
        await note(storage, "late", minutes=2)
        await note(storage, "early", tenant=OTHER, minutes=1)
        await note(storage, "early", tenant=OTHER, minutes=3)
        first = await claim(storage, minutes=4, limit=1)
        assert [(room.tenant, room.room_id) for room in first] == [(OTHER, "early")]
        assert [room.room_id for room in await claim(storage, minutes=4)] == ["late"]

    async def test_other_work_is_not_taken(self, storage: Storage) -> None:
        await note(storage, "tea", work="evolution")
        assert await claim(storage) == []
        assert [room.room_id for room in await claim(storage, work="evolution")] == ["tea"]

    async def test_a_lease_that_ran_out_is_free_again(self, storage: Storage) -> None:
        await note(storage, "tea")
        taken = await claim(storage)
        assert await claim(storage, minutes=2) == taken

    async def test_what_is_done_is_gone(self, storage: Storage) -> None:
        await note(storage, "tea")
        (room,) = await claim(storage)
        assert await done(storage, room)
        assert await claim(storage, minutes=5) == []
        assert not await done(storage, room)

    async def test_what_is_noted_is_there_until_it_is_done(self, storage: Storage) -> None:
        async def any_left(work: str = WORK) -> bool:
            async with storage.reading() as uow:
                return await uow.progress.any_noted(work=work)

        assert not await any_left()
        await note(storage, "tea")
        (room,) = await claim(storage)
        assert (await any_left(), await any_left("evolution")) == (True, False)
        await done(storage, room)
        assert not await any_left()

    async def test_what_is_noted_of_a_tenant_is_listed_claimed_or_not(self, storage: Storage) -> None:
        async def noted(room_id: str | None = None) -> list[tuple[DueRoom, datetime | None]]:
            async with storage.reading(TENANT) as uow:
                found = await uow.progress.noted(work=WORK, room_id=room_id)
            return [(room, room.noted_at) for room in found]

        assert await noted() == []
        await note(storage, "late", minutes=2)
        await note(storage, "early", minutes=1)
        await note(storage, "early", minutes=3)
        await note(storage, "tea", tenant=OTHER)
        await note(storage, "tea", work="evolution")
        early = (DueRoom(TENANT, "early", 2), START + timedelta(minutes=1))
        late = (DueRoom(TENANT, "late", 1), START + timedelta(minutes=2))
        assert (await noted(), await noted("late"), await noted("tea")) == ([early, late], [late], [])
        assert [(room, room.noted_at) for room in await claim(storage, minutes=4) if room.tenant == TENANT] == [
            early,
            late,
        ]
        assert await noted() == [early, late]

    async def test_what_is_noted_for_a_person_stays_when_a_room_of_that_id_is_removed(self, storage: Storage) -> None:
        for work in (WORK, *OF_PEOPLE):
            await note(storage, ROOM, work=work)
        async with storage.writing(TENANT) as uow:
            await uow.rooms.lock(room_id=ROOM, now=START)
            while await uow.maintenance.remove_room(room_id=ROOM, limit=10) >= 0:
                pass
        async with storage.reading() as uow:
            assert [await uow.progress.any_noted(work=work) for work in (WORK, *OF_PEOPLE)] == [False, True, True]

    async def test_what_was_noted_meanwhile_is_free_at_once(self, storage: Storage) -> None:
        await note(storage, "tea")
        (room,) = await claim(storage)
        await note(storage, "tea")
        assert not await done(storage, room)
        assert await claim(storage) == [DueRoom(TENANT, "tea", 2)]

    async def test_what_is_under_way_is_put_off(self, storage: Storage) -> None:
        await note(storage, "tea")
        (room,) = await claim(storage)
        await put_off(storage, room, minutes=5)
        assert await claim(storage, minutes=4) == []
        assert await claim(storage, minutes=5) == [room]

    async def test_what_is_noted_again_waits_for_nothing(self, storage: Storage) -> None:
        await note(storage, "tea")
        (room,) = await claim(storage)
        await put_off(storage, room, minutes=5)
        await note(storage, "tea")
        assert await claim(storage) == [DueRoom(TENANT, "tea", 2)]
        await note(storage, "tea")
        await put_off(storage, DueRoom(TENANT, "tea", 2), minutes=5)
        assert await claim(storage) == [DueRoom(TENANT, "tea", 3)]

    async def test_odd_names_come_back(self, storage: Storage) -> None:
        odd = "a\x00b\ud800\x1a 茶"
        await note(storage, odd, tenant=odd)
        (room,) = await claim(storage)
        assert (room.tenant, room.room_id) == (odd, odd)
        assert await done(storage, room)

    async def test_marks_of_a_room_by_their_beginning(self, storage: Storage) -> None:
        async with storage.writing(OTHER) as uow:
            for name in ("extraction:a", "extraction:茶", "evolution"):
                await uow.of(TENANT).progress.move_mark(room_id="tea", name=name, arrival=4, was=0, now=START)
            await uow.progress.move_mark(room_id="tea", name="extraction:b", arrival=4, was=0, now=START)
        async with storage.reading(TENANT) as uow:
            marks = await uow.progress.marks_of_room(room_id="tea", prefix="extraction:")
        assert marks == {"extraction:a": 4, "extraction:茶": 4}

    async def test_replies_are_what_an_agent_said_without_calling_tools(self, storage: Storage) -> None:
        roles = {2: Role.ASSISTANT, 3: Role.USER, 4: Role.ASSISTANT, 5: Role.ASSISTANT, 6: Role.ASSISTANT}
        said = [entry(at, sender_id="bot", role=role) for at, role in roles.items()]
        calls = entry(7, sender_id="bot", role=Role.ASSISTANT, has_tool_calls=True)
        other = entry(8, sender_id="other", role=Role.ASSISTANT)
        await fill(storage, [entry(1), *said, calls, other])
        await erase(storage, 5)
        assert await replies(storage, after=2, limit=9) == [4, 6]
        assert await replies(storage, after=0, limit=2) == [2, 4]
        assert await replies(storage, tenant=OTHER, after=0, limit=9) == []
