"""Reading a session with the messages it needs: from the database, or from the cache and what changed since."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from roomlore.core.errors import NotFound, RoomloreError, describe
from roomlore.core.models import StoredMessage
from roomlore.core.sessions.models import Session, SessionMessage
from roomlore.core.sessions.state import Cached
from roomlore.core.sessions.turns import shown
from roomlore.core.sessions.window import Segment
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.sessions.cache import BYPASSED, Lookup, SegmentCache

_PAGE = 1_000
_MESSAGES_A_TURN = 3
_KEPT_TURNS = 16
_MARGIN = 2 * _MESSAGES_A_TURN
"""How far the messages of a turn lie apart at most, in arrivals, that others come between."""

log = logging.getLogger(__name__)


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
            (session, took), lookup = await self._found(work, tenant, conversation_id)
            begun = self._clock.monotonic()
            segment, fresh, turns = await self._segment(work, session, lookup, recent_turns)
        took += self._clock.monotonic() - begun
        self._telemetry.observe("roomlore_session_seconds", took, labels={"part": "database"})
        if fresh:
            await self._cache.put(_trimmed(segment, turns))
        return _trimmed(segment, recent_turns)

    async def refresh(self, tenant: str, conversation_id: str, *, recent_turns: int) -> None:
        """Brings the cache up to date after a write, so that the next read finds it so. What was written stays written
        where that fails."""
        if not self._cache.on:
            return
        try:
            await self.load(tenant, conversation_id, recent_turns=recent_turns)
        except RoomloreError as error:
            log.warning("the session cache was not refreshed", extra={"why": describe(error)})

    async def _found(self, work: UnitOfWork, tenant: str, conversation_id: str) -> tuple[tuple[Session, float], Lookup]:
        """The session with the seconds that took, and what the cache has of it, asked for at once."""
        if not self._cache.on:
            return await self._session(work, tenant, conversation_id), BYPASSED
        asking = asyncio.ensure_future(self._cache.get(tenant, conversation_id))
        try:
            return await self._session(work, tenant, conversation_id), await asking
        except BaseException:
            asking.cancel()
            raise

    async def _session(self, work: UnitOfWork, tenant: str, conversation_id: str) -> tuple[Session, float]:
        begun = self._clock.monotonic()
        session = await work.sessions.find(tenant=tenant, conversation_id=conversation_id)
        if session is None:
            raise NotFound(f"There is no conversation {conversation_id!r}; create its session, or write a turn to it.")
        return session, self._clock.monotonic() - begun

    async def _segment(
        self, work: UnitOfWork, session: Session, lookup: Lookup, recent_turns: int
    ) -> tuple[Segment, bool, int]:
        """The segment, whether the cache does not have it like this, and how many turns of it are whole. What is
        remembered begins with a turn, what is read may begin amid one."""
        cached = lookup.cached
        if cached is not None and cached.serves(session):
            segment, known = await self._caught_up(work, session, cached), cached.equals(session)
            self._count("hit" if cached.revision == session.revision else "changed")
        else:
            segment, known = await self._read(work, session, recent_turns), False
            self._count("miss" if lookup.answered else "bypassed")
        remembered = cached is not None and cached.serves(session) and _first_needed(segment, recent_turns) >= 0
        reached = segment if remembered else await self._reach_back(work, segment, recent_turns)
        wide = max(recent_turns, _KEPT_TURNS)
        sure = remembered or reached.whole or _reaches(reached, wide)
        return reached, not known or reached is not segment, wide if sure else recent_turns

    async def _caught_up(self, work: UnitOfWork, session: Session, cached: Cached) -> Segment:
        if cached.revision == session.revision:
            return _above(Segment(session, cached.start, cached.messages), session.boundary)
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
        messages = tuple(by_arrival[arrival] for arrival in sorted(by_arrival))
        return _above(Segment(session, cached.start, messages), session.boundary)

    async def _read(self, work: UnitOfWork, session: Session, recent_turns: int) -> Segment:
        back = session.next_arrival - 1 - _MESSAGES_A_TURN * recent_turns
        start = max(session.boundary, min(session.covered - _MARGIN, back))
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
        """Reads on until nothing that is asked for hangs on what lies further back; twice as much each time, as a turn
        may be long."""
        while not segment.whole and not _reaches(segment, recent_turns):
            missing = max(recent_turns + 1 - len(segment.turns), 1)
            limit = max(_MESSAGES_A_TURN * missing + _KEPT_TURNS, len(segment.messages))
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


def _reaches(segment: Segment, recent_turns: int) -> bool:
    """Whether all that is needed is there and whole, though the first turn that was read may be half of one."""
    first = _first_needed(segment, recent_turns)
    return first > 0 and segment.turns[first].first - segment.start > _MARGIN


def _first_needed(segment: Segment, recent_turns: int) -> int:
    """The place of the first turn that is asked for, not covered or may go on there, or that goes on among those; below
    0 where more are needed than there are."""
    turns = segment.turns
    began_covered = sum(turn.first <= segment.session.covered for turn in turns)
    first = min(len(turns) - recent_turns, began_covered - 1)
    for place in range(first - 1, -1, -1):
        if turns[place].last > turns[first].first:
            first = place
    return first


def _trimmed(segment: Segment, recent_turns: int) -> Segment:
    """The turns that are needed: the same whatever was read or remembered before them."""
    first = _first_needed(segment, recent_turns)
    return _above(segment, segment.turns[first].first - 1) if first > 0 else segment


def _above(segment: Segment, start: int) -> Segment:
    if start <= segment.start:
        return segment
    return Segment(segment.session, start, tuple(message for message in segment.messages if message.arrival > start))
