"""Read from storage who heard what, and decide with core what a viewer may know. All services share this."""

from collections.abc import Iterable
from datetime import datetime

from roomlore.core.audience import ALWAYS, Known, View, Viewer, audience_of, check_viewer, rooms_named, view_of
from roomlore.ports.storage import UnitOfWork


async def view_for(
    work: UnitOfWork,
    *,
    tenant: str,
    viewer: Viewer,
    memories: Iterable[Known] = (),
    rooms: Iterable[str] = (),
    now: datetime,
) -> View:
    """Return what the viewer may know of these memories, and of what was said in these rooms."""
    named = rooms_named(memories) | set(rooms)
    own = None
    people: frozenset[str] | None = frozenset({viewer.id})
    if viewer.kind == "room":
        named -= {viewer.id}
        own = (await work.rooms.people(tenant=tenant, room_ids=[viewer.id])).get(viewer.id)
        people = audience_of(own, now) if own else None
    found = await work.rooms.people(tenant=tenant, room_ids=named, persons=people or ()) if named else {}
    return view_of(viewer, own, found.values(), now=now)


async def sees_all_of(work: UnitOfWork, *, tenant: str, viewer: str | None, room_id: str, now: datetime) -> bool:
    """Return True if the viewer, 'room:team' or 'user:anna', may see all that was ever said in the room: it is that
    room, or the room is public, or the person's own with agents. None may see every room."""
    whom = None if viewer is None else check_viewer(viewer)
    if whom is None or whom == Viewer("room", room_id):
        return True
    view = await view_for(work, tenant=tenant, viewer=whom, rooms=[room_id], now=now)
    return view.windows.get(room_id) == ALWAYS
