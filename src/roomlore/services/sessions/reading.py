"""Reading sessions: the database, and a cache in front of its messages. No error of the cache reaches a caller.

Every text is signed with a key that the database keeps, so that no one else with write access to the cache can put
words into a session. An older entry of the same session is trusted up to its revision.
"""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from roomlore.core.errors import CacheUnavailable, RoomloreError, describe, unknown_conversation
from roomlore.core.models import StoredMessage
from roomlore.core.sessions.session import Session, SessionMessage
from roomlore.core.sessions.window import (
    LINE_TOKENS,
    LONG_TOKEN,
    Cached,
    Segment,
    from_text,
    shown,
    signed,
    to_text,
    value_of,
    verified,
)
from roomlore.ports.coordination import Clock, OnceAMinute, SessionCache, Telemetry
from roomlore.ports.shared import Backends, Service
from roomlore.storage import Storage, UnitOfWork

log = logging.getLogger(__name__)


_PAUSE_SECONDS = 1.0
"""Seconds for which a failed cache is not asked, so that one that hangs does not slow every call."""
_MAX_CHARACTERS = 500_000
"""The limit of texts. Longer ones are not cached: assembling them would take longer than it saves."""

_TTL_SECONDS = 1800
"""Time the cache keeps a session: half an hour, after which few conversations go on."""
_KEY_NAME = "session-cache"

_PAGE = 1_000
_LONG = 2_000
"""If no summary covers more messages than this, not all of them need be read."""
_END_PAGE = 500
_MESSAGES_A_TURN = 3
_KEPT_TURNS = 16
_MARGIN = 2 * _MESSAGES_A_TURN
"""The largest distance, in arrivals, of the messages of one turn if others come between."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The result of a cache lookup. `result`: the label under which a lookup without an entry is counted."""

    cached: Cached | None
    result: Literal["miss", "rejected", "bypassed"] = "miss"


BYPASSED = Lookup(None, "bypassed")


async def signing_key(storage: Storage) -> bytes:
    """Return the key that signs cache entries, the same for all processes on this database. Create it if there is none.
    Raise `StorageUnavailable`."""
    async with storage.reading() as work:
        known = await work.keys.signing_key(name=_KEY_NAME)
    if known is None:
        async with storage.writing() as work:
            known = await work.keys.keep_signing_key(name=_KEY_NAME, secret=secrets.token_hex(32))
    return bytes.fromhex(known)


@dataclass(frozen=True, slots=True)
class _Needed:
    """The least that is read of a session: the last `recent_turns` turns, and covered ones of so many `characters`."""

    recent_turns: int
    characters: int

    def turns(self, segment: Segment) -> int:
        """Return how many of the last turns of the segment that is; more than it has if older ones must be read."""
        if not self.characters:
            return self.recent_turns
        missing = self.characters
        for count, turn in enumerate(reversed(segment.turns), 1):
            missing -= sum(len(message.text) for message in turn.messages if message.arrival <= segment.session.covered)
            if missing < 0:
                return max(count, self.recent_turns)
        return max(len(segment.turns) + (not segment.whole), self.recent_turns)


class SegmentCache:
    """Read and write segments through the port; `on` is False if no cache is configured. `key`: signs them, not needed
    without a cache."""

    def __init__(
        self,
        *,
        cache: SessionCache | None,
        key: bytes,
        clock: Clock,
        telemetry: Telemetry,
        recent_turns: int,
    ) -> None:
        self._cache = cache
        self._key = key
        self._clock = clock
        self._telemetry = telemetry
        self._recent_turns = recent_turns
        self._failing = False
        self._closed_until = float("-inf")
        self._warnings = OnceAMinute(clock.monotonic)

    @property
    def on(self) -> bool:
        return self._cache is not None

    async def get(self, tenant: str, conversation_id: str) -> Lookup:
        """Return the cached entry, or why there is none."""
        if self._cache is None or not self._open():
            return BYPASSED
        begun = self._clock.monotonic()
        try:
            text = await self._cache.get(tenant=tenant, conversation_id=conversation_id)
        except CacheUnavailable as error:
            self._bypass(error, begun)
            return BYPASSED
        lookup = Lookup(None) if text is None else self._read(text, tenant, conversation_id)
        self._answered(begun)
        return lookup

    def _read(self, text: str, tenant: str, conversation_id: str) -> Lookup:
        whole = verified(text, key=self._key, tenant=tenant, conversation_id=conversation_id)
        if whole is not None:
            return Lookup(from_text(whole))
        if self._warnings.is_due():
            log.warning(
                "a cached session was not believed: it is unsigned, or signed for another session or database; "
                "check who writes to Redis unless roomlore was just upgraded"
            )
        return Lookup(None, "rejected")

    async def put(self, segment: Segment) -> bool:
        """Cache the segment; one that is too large is dropped instead. Return True if it is cached."""
        if self._cache is None or not self._open():
            return False
        named = {"tenant": segment.session.tenant, "conversation_id": segment.session.conversation_id}
        large = sum(len(message.text) for message in segment.messages) > _MAX_CHARACTERS
        text = "" if large else to_text(segment, value_of(segment, recent_turns=self._recent_turns))
        begun = self._clock.monotonic()
        try:
            if large:
                await self._cache.drop(**named)
            else:
                await self._cache.put(**named, value=signed(text, key=self._key, **named), seconds=_TTL_SECONDS)
        except CacheUnavailable as error:
            self._bypass(error, begun)
            return False
        self._answered(begun)
        return not large

    async def drop(self, *, tenant: str, conversation_id: str) -> None:
        """Drop the entry of a session. Raise `CacheUnavailable`: the caller must know that it may still be there."""
        if self._cache is not None:
            await self._cache.drop(tenant=tenant, conversation_id=conversation_id)

    def _open(self) -> bool:
        """Return True if the cache may be asked: while it fails, one call after each pause tries it."""
        now = self._clock.monotonic()
        if now >= self._closed_until:
            if self._failing:
                self._closed_until = now + _PAUSE_SECONDS
            return True
        return False

    def _bypass(self, error: CacheUnavailable, begun: float) -> None:
        self._observe(begun)
        self._failing = True
        self._closed_until = self._clock.monotonic() + _PAUSE_SECONDS
        log.warning("the session cache is bypassed", extra={"why": describe(error)})

    def _answered(self, begun: float) -> None:
        if self._failing:
            log.info("the session cache answers again")
        self._failing, self._closed_until = False, float("-inf")
        self._observe(begun)

    def _observe(self, begun: float) -> None:
        self._telemetry.observe("roomlore_session_seconds", self._clock.monotonic() - begun, labels={"part": "cache"})


class SessionReader(Service):
    """Read sessions of any tenant. The database is asked each time; the cache spares it the messages."""

    def __init__(self, backends: Backends, *, cache: SegmentCache) -> None:
        super().__init__(backends)
        self._cache = cache

    async def load(
        self,
        tenant: str,
        conversation_id: str,
        *,
        recent_turns: int,
        kept: int = 0,
        characters: int | None = None,
    ) -> Segment:
        """Return the session, every message that no summary covers, and at least `recent_turns` turns if there are as
        many. `kept`: while coverage is assumed, covered turns of so many tokens too. `characters`: of a long session
        that is not cached, only about so many of the newest are needed.

        Raise `NotFound`, `StorageUnavailable`.
        """
        async with self._storage.reading(tenant) as work:
            (session, took), lookup = await self._session_and_lookup(work, conversation_id)
            begun = self._clock.monotonic()
            needed = _Needed(recent_turns, LONG_TOKEN * kept if session.coverage_assumed else 0)
            end = await self._end(work, session, lookup, characters) if characters else None
            segment, fresh, turns = (
                (end, False, recent_turns) if end else await self._segment(work, session, lookup, needed)
            )
            partial = segment.partial or await self._archived(work, segment)
        took += self._clock.monotonic() - begun
        self._telemetry.observe("roomlore_session_seconds", took, labels={"part": "database"})
        if fresh and await self._cache.put(_trimmed(segment, turns)):
            await self._drop_if_changed(segment)
        segment = _trimmed(segment, needed.turns(segment))
        return replace(segment, partial=True) if partial else segment

    async def _drop_if_changed(self, segment: Segment) -> None:
        """Drop the entry if what it holds was changed after it was read: it may have words of a person who was
        forgotten meanwhile, and whose sessions were dropped before it was written."""
        named = {"tenant": segment.session.tenant, "conversation_id": segment.session.conversation_id}
        try:
            async with self._storage.reading(segment.session.tenant) as work:
                changed = await _is_changed(work, segment)
            if changed:
                await self._cache.drop(**named)
        except RoomloreError as error:
            log.warning("a session may stay cached as it was before a change", extra={"why": describe(error)})

    async def refresh(self, tenant: str, conversation_id: str, *, recent_turns: int, kept: int) -> None:
        """Update the cache after a write, so that the next read finds it current. An error does not undo the write."""
        if not self._cache.on:
            return
        try:
            await self.load(tenant, conversation_id, recent_turns=recent_turns, kept=kept)
        except RoomloreError as error:
            log.warning("the session cache was not refreshed", extra={"why": describe(error)})

    async def _session_and_lookup(self, work: UnitOfWork, conversation_id: str) -> tuple[tuple[Session, float], Lookup]:
        """Return the session with the seconds that took, and the cache entry, requested at once."""
        if not self._cache.on:
            return await self._session(work, conversation_id), BYPASSED
        asking = asyncio.ensure_future(self._cache.get(work.tenant, conversation_id))
        try:
            return await self._session(work, conversation_id), await asking
        except BaseException:
            asking.cancel()
            raise

    async def _session(self, work: UnitOfWork, conversation_id: str) -> tuple[Session, float]:
        begun = self._clock.monotonic()
        session = await work.sessions.find(conversation_id=conversation_id)
        if session is None:
            raise unknown_conversation(conversation_id)
        return session, self._clock.monotonic() - begun

    async def _segment(
        self, work: UnitOfWork, session: Session, lookup: Lookup, needed: "_Needed"
    ) -> tuple[Segment, bool, int]:
        """Return the segment, True if the cache needs it, and how many of its turns are whole. A cached segment begins
        with a turn; one that was read may begin within one."""
        cached = lookup.cached
        if cached is not None and cached.serves(session):
            segment, known = await self._caught_up(work, session, cached), cached.equals(session)
            self._count("hit" if cached.revision == session.revision else "changed")
        else:
            segment, known = await self._read(work, session, needed.recent_turns), False
            self._count(lookup.result)
        enough = _first_needed(segment, needed.turns(segment)) >= 0
        remembered = cached is not None and cached.serves(session) and enough
        reached = segment if remembered else await self._reach_back(work, segment, needed)
        turns = needed.turns(reached)
        wide = max(turns, _KEPT_TURNS)
        sure = remembered or reached.whole or _reaches(reached, wide)
        return reached, not known or reached is not segment, wide if sure else turns

    async def _caught_up(self, work: UnitOfWork, session: Session, cached: Cached) -> Segment:
        if cached.revision == session.revision:
            return _above(Segment(session, cached.start, cached.messages), session.boundary)
        changed, gone = await _changes(work, session, revision=cached.revision, after=cached.start)
        by_arrival = {message.arrival: message for message in (*cached.messages, *changed)}
        for arrival in gone:
            by_arrival.pop(arrival, None)
        messages = tuple(by_arrival[arrival] for arrival in sorted(by_arrival))
        return _above(Segment(session, cached.start, messages), session.boundary)

    async def _read(self, work: UnitOfWork, session: Session, recent_turns: int) -> Segment:
        back = session.next_arrival - 1 - _MESSAGES_A_TURN * recent_turns
        start = max(session.boundary, min(session.covered - _MARGIN, back))
        session_messages: list[SessionMessage] = []
        after = start
        while True:
            page = await work.messages.page(room_id=session.conversation_id, after=after, limit=_PAGE)
            session_messages += map(shown, page)
            if len(page) < _PAGE:
                return Segment(session, start, tuple(session_messages))
            after = page[-1].arrival

    async def _reach_back(self, work: UnitOfWork, segment: Segment, needed: "_Needed") -> Segment:
        """Read further back until no requested turn depends on older messages; twice as much each time, as a turn may
        be long."""
        while not segment.whole and not _reaches(segment, turns := needed.turns(segment)):
            missing = max(turns + 1 - len(segment.turns), 1)
            limit = max(_MESSAGES_A_TURN * missing + _KEPT_TURNS, len(segment.messages))
            session = segment.session
            earlier = await work.messages.recent(room_id=session.conversation_id, limit=limit, before=segment.start + 1)
            segment = _longer(segment, earlier, limit)
        return segment

    async def _end(self, work: UnitOfWork, session: Session, lookup: Lookup, characters: int) -> Segment | None:
        """Return the newest messages of a long session, up to about so many characters; None if it has no more, or if
        it is cached."""
        first = max(session.covered, session.boundary)
        if lookup.cached is not None or session.next_arrival - 1 - first <= _LONG:
            return None
        session_messages: list[SessionMessage] = []
        start, missing = session.next_arrival - 1, characters
        while missing > 0:
            page = await work.messages.recent(room_id=session.conversation_id, limit=_END_PAGE, before=start + 1)
            if len(page) < _END_PAGE or page[0].arrival <= first + 1:
                return None
            start = page[0].arrival - 1
            session_messages = [*map(shown, page), *session_messages]
            missing -= sum(len(message.text) + LONG_TOKEN * LINE_TOKENS for message in page)
        self._count(lookup.result)
        return Segment(session, start, tuple(session_messages), partial=True)

    async def _archived(self, work: UnitOfWork, segment: Segment) -> bool:
        """Return True if messages that no summary covers are archived. The database is asked only if some are gone."""
        session = segment.session
        covered = max(session.covered, session.boundary)
        if covered + len(segment.uncovered()) == session.next_arrival - 1:
            return False
        return await work.archives.holds(room_id=session.conversation_id, after=covered)

    def _count(self, result: str) -> None:
        if self._cache.on:
            self._telemetry.count("roomlore_session_cache_total", labels={"result": result})


def _longer(segment: Segment, earlier: Sequence[StoredMessage], limit: int) -> Segment:
    boundary = segment.session.boundary
    inside = [shown(message) for message in earlier if message.arrival > boundary]
    start = earlier[0].arrival - 1 if len(inside) == limit else boundary
    return replace(segment, start=max(start, boundary), messages=(*inside, *segment.messages))


def _reaches(segment: Segment, recent_turns: int) -> bool:
    """Return True if all needed turns are there and whole, although the first turn that was read may be partial."""
    first = _first_needed(segment, recent_turns)
    return first > 0 and segment.turns[first].first - segment.start > _MARGIN


def _first_needed(segment: Segment, recent_turns: int) -> int:
    """Return the index of the first turn that is requested, not covered or may continue there, or that continues among
    those; below 0 if more are needed than there are."""
    turns = segment.turns
    began_covered = sum(turn.first <= segment.session.covered for turn in turns)
    first = min(len(turns) - recent_turns, began_covered - 1)
    for place in range(first - 1, -1, -1):
        if turns[place].last > turns[first].first:
            first = place
    return first


async def changed_since(work: UnitOfWork, segment: Segment) -> list[int]:
    """Return the arrivals of messages that were edited or deleted since the segment was read."""
    changed, gone = await _changes(work, segment.session, revision=segment.session.revision, after=segment.start)
    known = {message.arrival: message for message in segment.messages}
    return [*gone, *(message.arrival for message in changed if known.get(message.arrival, message) != message)]


async def _changes(
    work: UnitOfWork, session: Session, *, revision: int, after: int
) -> tuple[list[SessionMessage], list[int]]:
    """Return the messages with arrival > `after` that were added or changed since the revision, and the arrivals of
    those that were deleted."""
    changed, gone = await work.messages.changed(room_id=session.conversation_id, revision=revision, after=after)
    return [shown(message) for message in changed], gone


async def _is_changed(work: UnitOfWork, segment: Segment) -> bool:
    """Return True if something of the segment is no longer as it was read; messages that came since change nothing."""
    seen = segment.session
    now = await work.sessions.find(conversation_id=seen.conversation_id)
    if now is None or _own(now) != _own(seen):
        return True
    return now.revision != seen.revision and bool(await changed_since(work, segment))


def _own(session: Session) -> tuple[object, ...]:
    """Return what a session is made of, without what messages that come change."""
    people = session.user_id, session.enterprise_id, session.patient_id, session.agent_key
    return session.created_at, session.boundary, session.checkpoint, session.state, *people


def _trimmed(segment: Segment, recent_turns: int) -> Segment:
    """Return only the needed turns, so that the result does not depend on what was read or cached before them."""
    first = _first_needed(segment, recent_turns)
    return _above(segment, segment.turns[first].first - 1) if first > 0 else segment


def _above(segment: Segment, start: int) -> Segment:
    if start <= segment.start:
        return segment
    return Segment(segment.session, start, tuple(message for message in segment.messages if message.arrival > start))
