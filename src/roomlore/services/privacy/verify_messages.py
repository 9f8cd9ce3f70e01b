"""Checking that what is derived of messages is there and theirs: features, words, counters, vectors."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from roomlore.core.indexed import passage
from roomlore.core.models import Room
from roomlore.core.soundness.report import Fault, Findings
from roomlore.ports.audit import ReadMessage, Stray, WordsAstray
from roomlore.ports.storage import Storage
from roomlore.services.privacy.verify_indexes import Holds, IndexChecks

_PAGE = 1000
_SHOWN = 20


@dataclass(slots=True)
class _Counted:
    """What was met in a room. `messages`: that were not deleted; `unreadable`: those of them that cannot be read;
    `speaking`: that there is something to embed of."""

    messages: int = 0
    words: int = 0
    speaking: int = 0
    unreadable: int = 0

    def add(self, one: ReadMessage) -> None:
        self.words += one.length
        self.unreadable += bool(one.why)
        self.messages += one.message is not None or bool(one.why)
        self.speaking += one.message is not None and bool(passage(one.message))


class MessageChecks:
    """Reads the messages of a tenant, room by room and page by page."""

    def __init__(self, *, storage: Storage, indexes: IndexChecks) -> None:
        self._storage = storage
        self._indexes = indexes

    async def check(self, tenant: str, holds: Holds, findings: Findings, progress: Callable[[], None]) -> None:
        """`progress`: is told after each page."""
        await self._check_strays(tenant, findings)
        after: str | None = None
        while True:
            async with self._storage.reading() as work:
                rooms = await work.rooms.page(tenant=tenant, after=after, limit=_PAGE)
            for room in rooms:
                await self._check_room(room, holds, findings, progress)
            if len(rooms) < _PAGE:
                return
            after = rooms[-1].room_id

    async def _check_strays(self, tenant: str, findings: Findings) -> None:
        page: Sequence[Stray] = ()
        while True:
            async with self._storage.reading() as work:
                page = await work.audit.strays(tenant=tenant, after=page[-1] if page else None, limit=_PAGE)
            findings.add(
                Fault("strays", f"table {one.table}", f"Room {one.room_key} has no message at arrival {one.arrival}.")
                for one in page
            )
            if len(page) < _PAGE:
                return

    async def _check_room(self, named: Room, holds: Holds, findings: Findings, progress: Callable[[], None]) -> None:
        """What is counted is compared where nobody wrote meanwhile."""
        room = await self._room(named)
        if room is None:
            return
        findings.saw("rooms", 1)
        counted = await self._walk(room, holds, findings, progress)
        if holds.words:
            await self._check_index(room, findings)
        now = await self._room(room)
        if now is not None and now.revision == room.revision:
            findings.add(_miscounted(room, counted, holds))
        if holds.messages and not counted.unreadable:
            await self._indexes.check_room(room, counted.speaking, holds, findings)

    async def _room(self, room: Room) -> Room | None:
        async with self._storage.reading() as work:
            return await work.rooms.find(tenant=room.tenant, room_id=room.room_id)

    async def _walk(self, room: Room, holds: Holds, findings: Findings, progress: Callable[[], None]) -> _Counted:
        """No further than to the first page that is not full and has the last message that the room had: what grows as
        fast as it is read has no end."""
        counted, after = _Counted(), 0
        while page := await self._page(room, after):
            for one in page:
                counted.add(one)
                findings.add(_faults(room.room_id, one, holds))
            findings.saw("messages", len(page))
            progress()
            after = page[-1].number
            if len(page) < _PAGE and after >= room.next_arrival - 1:
                break
        return counted

    async def _page(self, room: Room, after: int) -> Sequence[ReadMessage]:
        """A unit of work is not held while messages are read and their words spelled."""
        async with self._storage.reading() as work:
            read = await work.audit.messages(tenant=room.tenant, room_id=room.room_id, after=after, limit=_PAGE)
        return await asyncio.to_thread(read)

    async def _check_index(self, room: Room, findings: Findings) -> None:
        async with self._storage.reading() as work:
            astray = await work.audit.words_astray(tenant=room.tenant, room_id=room.room_id)
        if astray is not None:
            findings.add([Fault("word index", f"room {room.room_id}", _told(astray))])


def _faults(room_id: str, one: ReadMessage, holds: Holds) -> Iterator[Fault]:
    where = f"room {room_id}, message {one.message_id}"
    if one.why:
        yield Fault("unreadable", where, one.why)
    if not one.features:
        yield Fault("message features", where, "Its row in `message_features` is not there.")
    if holds.words and one.words == "missing":
        yield Fault("message words", where, "Its row in `message_words` is not there.")
    if holds.words and one.words == "other":
        yield Fault("message words", where, "Its row in `message_words` has other words than it says.")


def _miscounted(room: Room, counted: _Counted, holds: Holds) -> Iterator[Fault]:
    where, rows = f"room {room.room_id}", "The room's row says"
    if room.messages != counted.messages:
        yield Fault("room counters", where, f"{rows} {room.messages} messages; there are {counted.messages}.")
    if holds.words and room.words != counted.words:
        yield Fault("room counters", where, f"{rows} {room.words} words; there are {counted.words}.")


def _told(astray: WordsAstray) -> str:
    counts = f"The index has {astray.indexed} words; the rows of its messages have {astray.kept}."
    missing = f" Not indexed are arrivals {_shown(astray.missing)}." if astray.missing else ""
    surplus = f" Indexed without such a message are arrivals {_shown(astray.surplus)}." if astray.surplus else ""
    return counts + missing + surplus


def _shown(arrivals: tuple[int, ...]) -> str:
    return ", ".join(map(str, arrivals[:_SHOWN])) + (" ..." if len(arrivals) > _SHOWN else "")
