"""What `Rooms` must do."""

from datetime import timedelta

import pytest

from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.models import Room
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry
from roomlore.testing.contracts.filling import ROOM, TENANT, erase, fill


class RoomsContract:
    async def test_an_unknown_room_is_none(self, storage: Storage) -> None:
        async with storage.reading() as work:
            assert await work.rooms.find(tenant=TENANT, room_id=ROOM) is None

    async def test_locking_makes_a_room_once(self, storage: Storage) -> None:
        async with storage.writing() as work:
            made = await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        async with storage.writing() as work:
            again = await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START + timedelta(days=1))
        assert made == again == Room(tenant=TENANT, room_id=ROOM, created_at=START)

    async def test_locking_while_reading_is_refused(self, storage: Storage) -> None:
        async with storage.reading() as work:
            with pytest.raises(InvalidInput):
                await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)

    async def test_counters_follow_the_messages(self, storage: Storage) -> None:
        late, early = START + timedelta(hours=2), START - timedelta(hours=2)
        room = await fill(storage, [entry(1, sent_at=late), entry(2, sent_at=early)])
        assert (room.next_arrival, room.revision, room.messages) == (3, 1, 2)
        assert room.last_sent_at == early, "the time of the last to arrive, not the latest"
        async with storage.reading() as work:
            assert await work.rooms.find(tenant=TENANT, room_id=ROOM) == room

    async def test_rooms_are_paged_by_id(self, storage: Storage) -> None:
        for room_id in ["b", "房间", "a", "Z", "c"]:
            await fill(storage, [], room_id=room_id)
        async with storage.reading() as work:
            first = await work.rooms.page(tenant=TENANT, after=None, limit=2)
            rest = await work.rooms.page(tenant=TENANT, after=first[-1].room_id, limit=10)
        assert [room.room_id for room in first + rest] == ["Z", "a", "b", "c", "房间"]

    async def test_settings_are_replaced_and_raise_the_revision(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        async with storage.writing() as work:
            await work.rooms.configure(tenant=TENANT, room_id=ROOM, settings={"a": 1, "b": [True, None, "词"]})
            room = await work.rooms.configure(tenant=TENANT, room_id=ROOM, settings={"b": 0.5})
        assert (room.settings, room.revision, room.messages) == ({"b": 0.5}, 3, 1)
        async with storage.reading() as work:
            assert await work.rooms.find(tenant=TENANT, room_id=ROOM) == room

    async def test_an_unknown_room_cannot_be_configured(self, storage: Storage) -> None:
        with pytest.raises(NotFound):
            async with storage.writing() as work:
                await work.rooms.configure(tenant=TENANT, room_id=ROOM, settings={})

    async def test_participants_in_order_of_first_speaking(self, storage: Storage) -> None:
        await fill(storage, [entry(1, sender_id="zoe"), entry(2, sender_id="ann", sender_name="Ann")])
        await fill(storage, [entry(3, sender_id="zoe", sender_name="Zoë"), entry(4, sender_id="ann")])
        async with storage.reading() as work:
            people = await work.rooms.participants(tenant=TENANT, room_id=ROOM)
        assert list(people.items()) == [("zoe", "Zoë"), ("ann", "Ann")]

    async def test_the_last_name_given_counts(self, storage: Storage) -> None:
        await fill(storage, [entry(1, sender_name="Old"), entry(2, sender_name="New"), entry(3)])
        async with storage.reading() as work:
            assert await work.rooms.participants(tenant=TENANT, room_id=ROOM) == {"ann": "New"}

    async def test_people_as_they_were_before_a_message(self, storage: Storage) -> None:
        said = [
            entry(1, sender_id="小李", sender_name="李\x00"),
            entry(2, sender_id="bo", sender_name="Bo"),
            entry(3, sender_id="ann"),
            entry(4, sender_id="小李", sender_name="雷"),
            entry(5, sender_id="小李"),
            entry(6, sender_id="ann", sender_name="Ann"),
        ]
        await fill(storage, said)
        await fill(storage, [entry(1)], tenant="other")

        async def before(arrival: int) -> list[tuple[str, str]]:
            async with storage.reading() as work:
                people = await work.rooms.participants_before(tenant=TENANT, room_id=ROOM, arrival=arrival)
            return list(people.items())

        assert await before(1) == []
        assert await before(4) == [("小李", "李\x00"), ("bo", "Bo"), ("ann", "")]
        assert await before(99) == [("小李", "雷"), ("bo", "Bo"), ("ann", "Ann")]
        await erase(storage, 2, 4)
        assert await before(99) == [("小李", "李\x00"), ("ann", "Ann")]

    async def test_the_rooms_of_a_sender(self, storage: Storage) -> None:
        for room_id in ["b", "房间", "a"]:
            await fill(storage, [entry(1), entry(2, sender_id="bo"), entry(3)], room_id=room_id)
        await fill(storage, [entry(1, sender_id="bo")], room_id="c")
        await fill(storage, [entry(1)], room_id="theirs", tenant="other")
        async with storage.reading() as work:
            assert await work.rooms.of_sender(tenant=TENANT, sender_id="ann") == ["a", "b", "房间"]
            assert await work.rooms.of_sender(tenant=TENANT, sender_id="bo") == ["a", "b", "c", "房间"]
            assert await work.rooms.of_sender(tenant=TENANT, sender_id="nobody") == []
            assert await work.rooms.of_sender(tenant="other", sender_id="ann") == ["theirs"]
