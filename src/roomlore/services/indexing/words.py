"""Making the word index anew where the words of messages are read differently than when it was made.

Day by day the store keeps it in step by itself, in the transaction that writes the message.
"""

from dataclasses import replace

from roomlore.core.indexed import WORDS_MODEL
from roomlore.core.search import IndexState
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.indexing import WORDS
from roomlore.ports.storage import Storage
from roomlore.services.indexing.walk import START, page_after

_PAGE = 500


class WordIndexing:
    """The word index of all rooms of all tenants."""

    def __init__(self, *, storage: Storage, clock: Clock, ids: Ids) -> None:
        self._storage = storage
        self._clock = clock
        self._ids = ids

    async def begin(self) -> None:
        """Starts a rebuild from the first message, whatever state the index is in."""
        async with self._storage.writing() as work:
            stored = await work.index_states.find(name=WORDS)
            expected = stored.generation if stored else None
            await work.index_states.save(state=self._state(START), expected=expected)

    async def step(self) -> int:
        """Indexes the next page of a rebuild; how many messages it had. -1 where nothing is left to do."""
        state = await self._current()
        if state.cursor is None:
            return -1
        async with self._storage.reading() as work:
            page = await page_after(work, state.cursor, limit=_PAGE)
        async with self._storage.writing() as work:
            if page.messages:
                await work.rooms.lock(tenant=page.tenant, room_id=page.room_id, now=self._clock.now())
                arrivals = [message.arrival for message in page.messages]
                fresh = await work.messages.plain(tenant=page.tenant, room_id=page.room_id, arrivals=arrivals)
                await work.lexical.reword(tenant=page.tenant, room_id=page.room_id, messages=fresh)
            moved = replace(state, cursor=page.cursor, updated_at=self._clock.now())
            await work.index_states.save(state=moved, expected=state.generation)
        return len(page.messages)

    async def _current(self) -> IndexState:
        """The state; made where there is none, and begun anew where it is of other words."""
        async with self._storage.reading() as work:
            stored = await work.index_states.find(name=WORDS)
        if stored is not None and stored.model == WORDS_MODEL:
            return stored
        made = self._state(None if stored is None else START)
        async with self._storage.writing() as work:
            expected = stored.generation if stored else None
            kept = await work.index_states.save(state=made, expected=expected)
        return made if kept else await self._current()

    def _state(self, cursor: tuple[str, str, int] | None) -> IndexState:
        return IndexState(
            name=WORDS, model=WORDS_MODEL, generation=self._ids.new(), cursor=cursor, updated_at=self._clock.now()
        )
