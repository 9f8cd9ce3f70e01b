"""Rooms, what was said in one with its threads apart, and one thread by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from roomlore.core.models import Entry
from roomlore.surfaces.console.frame import Page
from roomlore.surfaces.console.lanes import Row, lanes

_ROOMS = 50
_MESSAGES = 60
_THREAD = 200


@dataclass(frozen=True, slots=True)
class Said:
    """A message and where it stands among the threads of its page. `answers`: the id of what it most likely answers,
    where that is on the page."""

    entry: Entry
    row: Row
    answers: str | None


async def listed(page: Page) -> Response:
    after = page.asked("after") or None
    found = await page.lore.rooms.page(after=after, limit=_ROOMS)
    following = found[-1].room_id if len(found) == _ROOMS else None
    return page.show("rooms.html", rooms=found, next=following, after=after)


async def room(page: Page) -> Response:
    """The newest messages, or those before an arrival, in order of arrival."""
    lore, room_id, before = page.lore, page.needed("id"), page.number("before")
    known = await lore.rooms.get(room_id)
    async with lore.storage.reading() as work:
        entries = await work.messages.tail(tenant=lore.tenant, room_id=room_id, limit=_MESSAGES, before=before)
        session = await work.sessions.find(tenant=lore.tenant, conversation_id=room_id)
    first = entries[0].message.arrival if entries else 0
    last = entries[-1].message.arrival if entries else 0
    later = last + _MESSAGES + 1
    return page.show(
        "room.html",
        room=known,
        is_session=bool(session and session.version),
        said=said(entries),
        older=first if first > 1 else None,
        newer=later if before is not None and later < known.next_arrival else None,
        newest=before is None or last + 1 >= known.next_arrival,
        last=last,
        before=before,
    )


async def news(page: Page) -> Response:
    """How many messages came since an arrival: a piece of a page."""
    lore, room_id = page.lore, page.needed("id")
    known = await lore.rooms.get(room_id)
    count = max(0, known.next_arrival - 1 - (page.number("after") or 0))
    return page.show("news.html", room=known, count=count)


async def thread(page: Page) -> Response:
    room_id, message_id = page.needed("id"), page.needed("message")
    entries = await page.lore.rooms.thread(room_id, message_id, limit=_THREAD)
    return page.show("thread.html", room_id=room_id, said=said(entries), most=_THREAD)


def said(entries: Sequence[Entry]) -> list[Said]:
    ids = {entry.message.arrival: entry.message.id for entry in entries}
    rows = lanes([(entry.message.arrival, entry.link.thread) for entry in entries])
    return [Said(entry, row, _answered(entry, ids)) for entry, row in zip(entries, rows, strict=True)]


def _answered(entry: Entry, ids: dict[int, str]) -> str | None:
    return None if entry.link.kind == "new" or entry.link.parent is None else ids.get(entry.link.parent)
