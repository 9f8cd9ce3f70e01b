"""Filling rooms for the suites."""

from collections.abc import Mapping, Sequence

from roomlore.core.models import Entry, Link, Room
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START, entry, features, link

TENANT = "acme"
ROOM = "room"


async def fill(storage: Storage, entries: Sequence[Entry], *, tenant: str = TENANT, room_id: str = ROOM) -> Room:
    """Appends the entries in one unit of work."""
    async with storage.writing() as work:
        await work.rooms.lock(tenant=tenant, room_id=room_id, now=START)
        return await work.writer.append(tenant=tenant, room_id=room_id, entries=entries)


def digest(name: str) -> str:
    """What stands for the hash of a key's secret."""
    return f"hash of {name}"


async def erase(storage: Storage, *arrivals: int) -> Room:
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        return await work.writer.erase(tenant=TENANT, room_id=ROOM, arrivals=arrivals, now=START)


async def replace(storage: Storage, *new: Entry, room_id: str = ROOM) -> Room:
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=room_id, now=START)
        return await work.writer.replace(tenant=TENANT, room_id=room_id, entries=new)


async def relink(storage: Storage, links: Mapping[int, Link]) -> Room:
    async with storage.writing() as work:
        await work.rooms.lock(tenant=TENANT, room_id=ROOM, now=START)
        return await work.writer.relink(tenant=TENANT, room_id=ROOM, links=links)


async def everything(storage: Storage, *, tenant: str = TENANT, room_id: str = ROOM) -> list[Entry]:
    async with storage.reading() as work:
        return await work.messages.tail(tenant=tenant, room_id=room_id, limit=1000)


async def threads_of(storage: Storage) -> dict[int, int]:
    """Arrival to thread."""
    return {found.message.arrival: found.link.thread for found in await everything(storage)}


def conversation() -> list[Entry]:
    """Four messages of two people in one thread, with keywords, a reply and a root."""
    return [
        entry(1, features=features(keywords=("deploy", "部署"))),
        entry(2, sender_id="bo", sender_name="Bo", reply_to="m1", root_id="m1", link=link(1, 1)),
        entry(3, features=features(keywords=("deploy",)), link=link(1, 2)),
        entry(4, sender_id="bo", reply_to="m3", root_id="m1", link=link(1, 3)),
    ]
