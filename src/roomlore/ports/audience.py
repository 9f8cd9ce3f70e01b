"""Read from storage who heard what, and decide with core what a viewer may know. All services share this."""

from collections.abc import Iterable
from datetime import datetime

from roomlore.core.audience import Known, View, Viewer, audience_of, rooms_named, view_of
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
