"""What `RoomsDue` must do, and the readings that say what is due."""

from datetime import timedelta

from roomlore.core.models import Role
from roomlore.ports.rooms_due import DueRoom
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry
from roomlore.testing.contracts.filling import ROOM, TENANT, erase, fill

OTHER = "other"
WORK = "extraction"


async def note(storage: Storage, room_id: str, *, tenant: str = TENANT, work: str = WORK, minutes: int = 0) -> None:
    async with storage.writing() as uow:
        now = START + timedelta(minutes=minutes)
        await uow.rooms_due.note(tenant=tenant, room_id=room_id, work=work, now=now)


async def claim(storage: Storage, *, minutes: int = 0, limit: int = 10, work: str = WORK) -> list[DueRoom]:
    now = START + timedelta(minutes=minutes)
    async with storage.writing() as uow:
        return list(await uow.rooms_due.claim(work=work, now=now, lease_until=now + timedelta(minutes=1), limit=limit))


async def put_off(storage: Storage, room: DueRoom, *, minutes: int) -> None:
    async with storage.writing() as uow:
        await uow.rooms_due.put_off(room=room, work=WORK, until=START + timedelta(minutes=minutes))


async def done(storage: Storage, room: DueRoom) -> bool:
    async with storage.writing() as uow:
        return await uow.rooms_due.done(room=room, work=WORK)


async def replies(storage: Storage, *, after: int, limit: int, tenant: str = TENANT) -> list[int]:
    """Arrivals of the bot's replies."""
    async with storage.reading() as uow:
        return await uow.messages.replies_of(tenant=tenant, room_id=ROOM, agent_id="bot", after=after, limit=limit)


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
                return await uow.rooms_due.any(work=work)

        assert not await any_left()
        await note(storage, "tea")
        (room,) = await claim(storage)
        assert (await any_left(), await any_left("evolution")) == (True, False)
        await done(storage, room)
        assert not await any_left()

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
        async with storage.writing() as uow:
            for name in ("extraction:a", "extraction:茶", "evolution"):
                await uow.watermarks.move(tenant=TENANT, room_id="tea", name=name, arrival=4, was=0, now=START)
            await uow.watermarks.move(tenant=OTHER, room_id="tea", name="extraction:b", arrival=4, was=0, now=START)
        async with storage.reading() as uow:
            marks = await uow.watermarks.of_room(tenant=TENANT, room_id="tea", prefix="extraction:")
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
