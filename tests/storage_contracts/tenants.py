"""The contracts of `Tenants` and `Archives`."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.models import ApiKey
from roomlore.storage import Storage
from roomlore.storage.values import Archive
from roomlore_testkit.builders import START, entry
from storage_contracts.texts import ROOM, TENANT, digest, erase, fill

_DAY = timedelta(days=1)
_ODD = "租户 \x00 \ud800"


async def _count(storage: Storage, amount: int, *, tenant: str = TENANT, at: datetime = START) -> int:
    async with storage.writing(tenant) as work:
        return await work.tenants.count(name="messages_a_day", period=at, amount=amount)


class TenantLimitsContract:
    async def test_a_tenant_has_the_limits_that_were_set_last(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            await work.tenants.set_limits(limits={"messages_a_day": 5}, now=START)
            await work.tenants.set_limits(limits={"messages_kept": None}, now=START)
            await work.of(_ODD).tenants.set_limits(limits={"messages_kept": 7}, now=START)
        async with storage.reading() as work:
            assert await work.tenants.limits() == {TENANT: {"messages_kept": None}, _ODD: {"messages_kept": 7}}

    async def test_a_tenant_without_limits_of_its_own_is_not_told(self, storage: Storage) -> None:
        async with storage.writing(TENANT) as work:
            await work.tenants.set_limits(limits={"messages_a_day": 5}, now=START)
            await work.tenants.set_limits(limits={}, now=START)
        async with storage.reading() as work:
            assert await work.tenants.limits() == {}

    async def test_limits_that_are_changed_at_once_are_all_kept(self, storage: Storage) -> None:
        names = [f"limit_{number}" for number in range(8)]

        async def change(name: str | None) -> None:
            async with storage.writing(TENANT) as work:
                own = await work.tenants.limits_to_change(now=START)
                await asyncio.sleep(0.01)
                changed = {} if name is None else {**own, name: 1}
                await work.tenants.set_limits(limits=changed, now=START)

        await asyncio.gather(*map(change, names))
        async with storage.reading() as work:
            assert await work.tenants.limits() == {TENANT: dict.fromkeys(names, 1)}
        await change(None)
        async with storage.reading() as work:
            assert await work.tenants.limits() == {}

    async def test_what_is_counted_adds_up_within_a_period(self, storage: Storage) -> None:
        assert [await _count(storage, amount) for amount in (3, 4, -2)] == [3, 7, 5]
        async with storage.reading(TENANT) as work:
            assert await work.tenants.counted() == {"messages_a_day": (START, 5)}
            assert await work.of("other").tenants.counted() == {}

    async def test_a_later_period_begins_anew_and_takes_what_comes_late(self, storage: Storage) -> None:
        await _count(storage, 3)
        assert await _count(storage, 4, at=START + _DAY) == 4
        assert await _count(storage, 1, at=START) == 5, "from a process with a slow clock"
        async with storage.reading(TENANT) as work:
            assert await work.tenants.counted() == {"messages_a_day": (START + _DAY, 5)}

    async def test_nothing_that_is_counted_at_once_is_lost(self, storage: Storage) -> None:
        counted = await asyncio.gather(*(_count(storage, 1) for _ in range(20)))
        assert sorted(counted) == list(range(1, 21))

    async def test_what_is_rolled_back_is_not_counted(self, storage: Storage) -> None:
        async def fail() -> None:
            async with storage.writing(TENANT) as work:
                await work.tenants.count(name="messages_a_day", period=START, amount=3)
                raise InvalidInput("no")

        with pytest.raises(InvalidInput):
            await fail()
        assert await _count(storage, 1) == 1

    async def test_messages_are_kept_until_they_are_deleted(self, storage: Storage) -> None:
        await fill(storage, [entry(1), entry(2)])
        await fill(storage, [entry(1)], room_id="another")
        await fill(storage, [entry(1)], tenant="other")
        await erase(storage, 2)
        async with storage.reading(TENANT) as work:
            assert await work.tenants.messages_kept() == 2
            assert await work.of("nobody").tenants.messages_kept() == 0

    async def test_every_tenant_is_told_once(self, storage: Storage) -> None:
        await fill(storage, [entry(1)])
        await fill(storage, [entry(1)], room_id="another")
        key = ApiKey(key_id="k1", tenant="keys", name="", scopes=("read",), created_at=START)
        async with storage.writing() as work:
            await work.keys.add(key=key, secret_hash=digest("k1"))
            for tenant in (TENANT, _ODD):
                await work.of(tenant).tenants.set_limits(limits={"messages_kept": 1}, now=START)
        async with storage.reading() as work:
            assert await work.tenants.all() == sorted([TENANT, "keys", _ODD])

    async def test_writing_while_reading_is_refused(self, storage: Storage) -> None:
        async with storage.reading(TENANT) as work:
            with pytest.raises(InvalidInput):
                await work.tenants.set_limits(limits={"messages_kept": 1}, now=START)
            with pytest.raises(InvalidInput):
                await work.tenants.limits_to_change(now=START)
            with pytest.raises(InvalidInput):
                await work.tenants.count(name="messages_a_day", period=START, amount=1)


_ARCHIVE = Archive(
    archive_id="a1",
    room_id=ROOM,
    phase="kept",
    file="file 一.jsonl.gz",
    first_arrival=1,
    last_arrival=2,
    messages=2,
    bytes=10,
    checksum="sum",
    archived_at=START,
)


async def _add(storage: Storage, *archives: Archive, tenant: str = TENANT) -> None:
    async with storage.writing(tenant) as work:
        for archive in archives:
            await work.archives.add(archive=archive)


class ArchivesContract:
    async def test_an_archive_takes_a_phase_only_from_the_one_before(self, storage: Storage) -> None:
        await _add(storage, replace(_ARCHIVE, phase="writing"))
        async with storage.writing(TENANT) as work:
            turn = work.archives.turn
            assert not await turn(archive_id="a1", phase="gone", was="kept")
            assert not await work.of("other").archives.turn(archive_id="a1", phase="kept", was="writing")
            assert await turn(archive_id="a1", phase="kept", was="writing")
            assert not await turn(archive_id="a1", phase="kept", was="writing")
        async with storage.reading(TENANT) as work:
            assert await work.archives.page(room_id=None, after="", limit=9) == [_ARCHIVE]
            assert await work.of("other").archives.page(room_id=None, after="", limit=9) == []

    async def test_archives_are_paged_by_id_in_all_rooms_or_one(self, storage: Storage) -> None:
        archives = [
            replace(_ARCHIVE, archive_id=f"a{number}", room_id=_ODD if number % 2 else ROOM) for number in range(5)
        ]
        await _add(storage, *reversed(archives))
        async with storage.reading(TENANT) as work:
            assert await work.archives.page(room_id=None, after="a1", limit=2) == archives[2:4]
            assert await work.archives.page(room_id=_ODD, after="", limit=9) == archives[1::2]

    async def test_a_dropped_archive_is_gone(self, storage: Storage) -> None:
        await _add(storage, _ARCHIVE)
        await _add(storage, _ARCHIVE, tenant="other")
        async with storage.writing(TENANT) as work:
            await work.archives.drop(archive_id="a1")
            await work.archives.drop(archive_id="unknown")
        async with storage.reading(TENANT) as work:
            assert await work.archives.page(room_id=None, after="", limit=9) == []
            assert await work.of("other").archives.page(room_id=None, after="", limit=9) == [_ARCHIVE]

    async def test_rooms_are_due_that_have_an_old_message(self, storage: Storage) -> None:
        for room_id, age in (("a", _DAY), ("b", timedelta()), ("c", _DAY), ("d", _DAY)):
            await fill(storage, [entry(1, sent_at=START - age)], room_id=room_id)
        await fill(storage, [entry(1, sent_at=START - _DAY)])
        await fill(storage, [entry(1, sent_at=START - _DAY)], tenant="other", room_id="e")
        await erase(storage, 1)
        async with storage.reading(TENANT) as work:
            assert await work.archives.rooms_due(before=START, after="", limit=9) == ["a", "c", "d"]
            assert await work.archives.rooms_due(before=START, after="a", limit=1) == ["c"]

    async def test_what_was_heard_decides_if_a_message_is_old(self, storage: Storage) -> None:
        """One of the future is as old as its arrival; an estimated one may be as young as its latest time."""
        far, old, new = START.replace(year=2099), START - _DAY, START + _DAY
        for room_id, at, until in (("a", far, old), ("b", far, new), ("c", old, new), ("d", old, old)):
            heard: dict[str, Any] = {"sent_at_estimated": True, "heard_from": old, "heard_until": until}
            await fill(storage, [entry(1, sent_at=at, **heard), entry(2, sent_at=new)], room_id=room_id)
        async with storage.reading(TENANT) as work:
            assert await work.archives.rooms_due(before=START, after="", limit=9) == ["a", "d"]
            due = {name: await work.archives.due(before=START, room_id=name, limit=9) for name in "abcd"}
        assert {name: [one.arrival for one in its] for name, its in due.items()} == {
            "a": [1],
            "b": [],
            "c": [],
            "d": [1],
        }

    async def test_the_oldest_messages_are_due_in_order_of_arrival(self, storage: Storage) -> None:
        ages = (1, 4, 0, 3, 2)
        entries = [entry(number, sent_at=START - age * _DAY) for number, age in enumerate(ages, start=1)]
        await fill(storage, entries)
        await fill(storage, [entry(1, sent_at=START - 9 * _DAY)], tenant="other")
        asked: dict[str, Any] = {"room_id": ROOM, "before": START}
        async with storage.reading(TENANT) as work:
            due = await work.archives.due(**asked, limit=3)
            assert due == [entries[1].message, entries[3].message, entries[4].message]
            assert [one.arrival for one in await work.archives.due(**asked, limit=9)] == [1, 2, 4, 5]
        await erase(storage, 2)
        async with storage.reading(TENANT) as work:
            assert [one.arrival for one in await work.archives.due(**asked, limit=9)] == [1, 4, 5]

    async def test_an_archive_has_the_messages_that_it_took_over(self, storage: Storage) -> None:
        """A message that was erased at another time, or lies outside, is in no archive."""
        await fill(storage, [entry(number) for number in range(1, 6)])
        await self._erase(storage, 2, at=START + _DAY)
        await self._erase(storage, 1, 3, 5, at=START)
        archive = replace(_ARCHIVE, last_arrival=4)
        await _add(storage, archive)
        names = [f"m{number}" for number in range(1, 6)]
        async with storage.reading(TENANT) as work:
            assert await work.archives.erased(room_id=ROOM, archive=archive) == {"m1": 1, "m3": 3}
            assert await work.archives.of_messages(room_id=ROOM, message_ids=names) == {"m1": "a1", "m3": "a1"}
            assert await work.archives.of_messages(room_id=ROOM, message_ids=["m1"]) == {"m1": "a1"}
            assert await work.archives.of_messages(room_id=ROOM, message_ids=[]) == {}
            assert await work.of("other").archives.of_messages(room_id=ROOM, message_ids=names) == {}
            held = [await work.archives.holds(room_id=ROOM, after=arrival) for arrival in (0, 2, 3)]
            assert held == [True, True, False]
            assert not await work.of("other").archives.holds(room_id=ROOM, after=0)

    async def test_writing_while_reading_is_refused(self, storage: Storage) -> None:
        async with storage.reading(TENANT) as work:
            with pytest.raises(InvalidInput):
                await work.archives.add(archive=_ARCHIVE)
            with pytest.raises(InvalidInput):
                await work.archives.drop(archive_id="a1")

    async def _erase(self, storage: Storage, *arrivals: int, at: datetime) -> None:
        async with storage.writing(TENANT) as work:
            await work.rooms.lock(room_id=ROOM, now=START)
            await work.messages.erase(room_id=ROOM, arrivals=arrivals, now=at)
