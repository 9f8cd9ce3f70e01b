"""Tell which memories a viewer is shown and why, and in which rooms a memory is shown."""

from datetime import datetime

from roomlore.core.audience import Viewer, may_see, people_of, public_windows, rooms_named, view_of, windows_of
from roomlore.core.memory.memory import Memory, MemoryKind, MemoryStatus
from roomlore.core.visibility import SeenIn, Visibility, is_for_all, visibilities
from roomlore.ports.audience import view_for
from roomlore.ports.storage import UnitOfWork

_PAGE = 200
_ALL = 2**31 - 1


async def scopes_of(work: UnitOfWork, *, tenant: str, viewer: Viewer) -> list[str]:
    """Return whom a viewer is shown memories about: a room its own and those of everybody who is or was there, a person
    their own."""
    if viewer.kind == "user":
        return [f"user:{viewer.id}"]
    found = await work.rooms.people(tenant=tenant, room_ids=[viewer.id])
    people = found[viewer.id].people if viewer.id in found else {}
    senders = await work.rooms.participants(tenant=tenant, room_id=viewer.id)
    agents = [f"agent:{sender}" for sender in sorted(senders.keys() - people.keys())]
    return [f"group:{viewer.id}", *(f"user:{person}" for person in sorted(people)), *agents]


async def visible_to(
    work: UnitOfWork, *, tenant: str, viewer: Viewer, scopes: list[str], now: datetime
) -> list[Visibility]:
    """Return every memory of these scopes that is in force with the reasons why the viewer is shown it or not."""
    kinds = list(MemoryKind)
    found = await work.memories.page(tenant=tenant, scopes=scopes, kinds=kinds, status=MemoryStatus.ACTIVE, limit=_ALL)
    view = await view_for(work, tenant=tenant, viewer=viewer, memories=found, now=now)
    named = await work.rooms.people(tenant=tenant, room_ids=rooms_named(found), persons=[])
    public = {room_id: public_windows(room) for room_id, room in named.items()}
    return [one for one in visibilities(found, viewer, view, public) if one.memory.holds(now)]


async def seen_in(work: UnitOfWork, *, tenant: str, memory: Memory, now: datetime) -> SeenIn:
    """Return in which rooms a memory may be shown now. All rooms of the tenant are read, some at a time."""
    sources = await work.rooms.people(tenant=tenant, room_ids=rooms_named([memory]))
    if is_for_all(memory, {room_id: public_windows(room) for room_id, room in sources.items()}):
        return SeenIn(True)
    rooms: list[str] = []
    hidden, after = 0, None
    while page := await work.rooms.page(tenant=tenant, after=after, limit=_PAGE):
        after = page[-1].room_id
        people = await work.rooms.people(tenant=tenant, room_ids=[room.room_id for room in page])
        for room_id, own in people.items():
            viewer = Viewer("room", room_id)
            audience = people_of(viewer, own, now)
            view = view_of(viewer, {name: windows_of(room, audience) for name, room in sources.items()}, now)
            if may_see(memory, view):
                rooms.append(room_id)
            else:
                hidden += 1
    return SeenIn(False, tuple(sorted(rooms)), hidden)
