"""Walking every message of every room in pages, in an order that can be taken up again anywhere."""

from dataclasses import dataclass

from roomlore.core.models import StoredMessage
from roomlore.ports.storage import UnitOfWork

Cursor = tuple[str, str, int]
START: Cursor = ("", "", 0)


@dataclass(frozen=True, slots=True)
class Page:
    """Messages of one room after a cursor, and the cursor after them (None: that was all)."""

    tenant: str
    room_id: str
    messages: tuple[StoredMessage, ...]
    cursor: Cursor | None


async def page_after(work: UnitOfWork, cursor: Cursor, *, limit: int) -> Page:
    """The next messages; a page without messages moves on to the next room."""
    tenant, room_id, arrival = cursor
    messages = await work.messages.page(tenant=tenant, room_id=room_id, after=arrival, limit=limit) if tenant else []
    if messages:
        return Page(tenant, room_id, tuple(messages), (tenant, room_id, messages[-1].arrival))
    rooms = await work.index_states.rooms_after(tenant=tenant, room_id=room_id, limit=1)
    return Page(tenant, room_id, (), (rooms[0].tenant, rooms[0].room_id, 0) if rooms else None)


async def messages_in_all(work: UnitOfWork) -> int:
    """How many messages all rooms of all tenants have."""
    total, place = 0, ("", "")
    while rooms := await work.index_states.rooms_after(tenant=place[0], room_id=place[1], limit=1000):
        total += sum(room.messages for room in rooms)
        place = (rooms[-1].tenant, rooms[-1].room_id)
    return total
