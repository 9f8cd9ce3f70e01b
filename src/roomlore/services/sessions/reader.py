"""Reading a session with the messages it needs: from the database, or from the cache and what changed since."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from roomlore.core.errors import NotFound
from roomlore.core.models import StoredMessage
from roomlore.core.sessions.models import Session, SessionMessage
from roomlore.core.sessions.state import Cached
from roomlore.core.sessions.turns import shown
from roomlore.core.sessions.window import Segment
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.sessions.cache import SegmentCache

_PAGE = 1_000
_MESSAGES_A_TURN = 3
_KEPT_TURNS = 16


class SessionReader:
    """Sessions of any tenant. The database is asked each time; the cache spares it the messages."""

    def __init__(self, *, storage: Storage, cache: SegmentCache, clock: Clock, telemetry: Telemetry) -> None:
        self._storage = storage
        self._cache = cache
        self._clock = clock
        self._telemetry = telemetry

    async def load(self, tenant: str, conversation_id: str, *, recent_turns: int) -> Segment:
        """The session, every message that no summary covers, and at least `recent_turns` turns if there are as many.

        Raises `NotFound`, `StorageUnavailable`.
        """
        async with self._storage.reading() as work:
            (session, took), cached = await self._found(work, tenant, conversation_id)
            begun = self._clock.monotonic()
            segment, fresh = await self._segment(work, session, cached, recent_turns)
        took += self._clock.monotonic() - begun
        self._telemetry.observe("roomlore_session_seconds", took, labels={"part": "database"})
        if fresh:
            await self._cache.put(segment)
        return segment

    async def refresh(self, tenant: str, conversation_id: str, *, recent_turns: int) -> None:
        """Brings the cache up to date after a write, so that the next read finds it so."""
        if self._cache.on:
            await self.load(tenant, conversation_id, recent_turns=recent_turns)

    async def _found(
        self, work: UnitOfWork, tenant: str, conversation_id: str
    ) -> tuple[tuple[Session, float], Cached | None]:
        """The session with the seconds that took, and what the cache has of it. Both are asked at once, the cache
        first: it works in another process while this one asks the database."""
        if not self._cache.on:
            return await self._session(work, tenant, conversation_id), None
        finding = asyncio.ensure_future(self._session(work, tenant, conversation_id))
        try:
            cached = await self._cache.get(tenant, conversation_id)
            return await finding, cached
        except BaseException:
            finding.cancel()
            await asyncio.gather(finding, return_exceptions=True)
            raise

    async def _session(self, work: UnitOfWork, tenant: str, conversation_id: str) -> tuple[Session, float]:
        begun = self._clock.monotonic()
        session = await work.sessions.find(tenant=tenant, conversation_id=conversation_id)
        if session is None:
            raise NotFound(f"There is no conversation {conversation_id!r}; create its session, or write a turn to it.")
        return session, self._clock.monotonic() - begun

    async def _segment(
        self, work: UnitOfWork, session: Session, cached: Cached | None, recent_turns: int
    ) -> tuple[Segment, bool]:
        """The segment, and whether the cache does not have it like this."""
        if cached is not None and cached.serves(session):
            segment, known = await self._caught_up(work, session, cached), cached.equals(session)
            self._count("hit" if cached.revision == session.revision else "changed")
        else:
            segment, known = await self._read(work, session, recent_turns), False
            self._count("miss")
        reached = await self._reach_back(work, segment, recent_turns)
        return _trimmed(reached, recent_turns), not known or reached is not segment

    async def _caught_up(self, work: UnitOfWork, session: Session, cached: Cached) -> Segment:
        if cached.revision == session.revision:
            return Segment(session, cached.start, cached.messages)
        changed, gone = await work.messages.changed(
            tenant=session.tenant,
            room_id=session.conversation_id,
            revision=cached.revision,
            after=cached.start,
        )
        by_arrival = {message.arrival: message for message in cached.messages}
        by_arrival |= {message.arrival: shown(message) for message in changed}
        for arrival in gone:
            by_arrival.pop(arrival, None)
        return Segment(session, cached.start, tuple(by_arrival[arrival] for arrival in sorted(by_arrival)))

    async def _read(self, work: UnitOfWork, session: Session, recent_turns: int) -> Segment:
        back = session.next_arrival - 1 - _MESSAGES_A_TURN * recent_turns
        start = max(session.boundary, min(session.covered, back))
        found: list[SessionMessage] = []
        after = start
        while True:
            page = await work.messages.page(
                tenant=session.tenant, room_id=session.conversation_id, after=after, limit=_PAGE
            )
            found += map(shown, page)
            if len(page) < _PAGE:
                return Segment(session, start, tuple(found))
            after = page[-1].arrival

    async def _reach_back(self, work: UnitOfWork, segment: Segment, recent_turns: int) -> Segment:
        """One turn more than asked for is read where there is one: the first that is read may be half a turn."""
        while not segment.whole and (missing := recent_turns + 1 - len(segment.turns)) > 0:
            limit = _MESSAGES_A_TURN * missing + _KEPT_TURNS
            session = segment.session
            earlier = await work.messages.recent(
                tenant=session.tenant, room_id=session.conversation_id, limit=limit, before=segment.start + 1
            )
            segment = _longer(segment, earlier, limit)
        return segment

    def _count(self, result: str) -> None:
        if self._cache.on:
            self._telemetry.count("roomlore_session_cache_total", labels={"result": result})


def _longer(segment: Segment, earlier: Sequence[StoredMessage], limit: int) -> Segment:
    boundary = segment.session.boundary
    inside = [shown(message) for message in earlier if message.arrival > boundary]
    start = earlier[0].arrival - 1 if len(inside) == limit else boundary
    return replace(segment, start=max(start, boundary), messages=(*inside, *segment.messages))


def _trimmed(segment: Segment, recent_turns: int) -> Segment:
    """Without covered turns that hardly anybody asks for, and without what a reset put behind a boundary."""
    turns = segment.turns
    spare = len(turns) - max(recent_turns, _KEPT_TURNS) - 1
    start = max(segment.start, segment.session.boundary)
    if spare > 0:
        start = max(start, min(segment.session.covered, turns[spare].first - 1))
    if start == segment.start:
        return segment
    return Segment(segment.session, start, tuple(m for m in segment.messages if m.arrival > start))
