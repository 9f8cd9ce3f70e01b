"""The cache in front of the messages of sessions. Whatever is wrong with it, no caller hears of it."""

import logging
from dataclasses import dataclass

from roomlore.core.errors import CacheUnavailable, describe
from roomlore.core.sessions.state import Cached, from_text, to_text, value_of
from roomlore.core.sessions.window import Segment
from roomlore.ports.coordination import Clock, SessionCache, Telemetry

_PAUSE_SECONDS = 1.0
"""How long a cache that failed is left alone, so that one that hangs does not slow every call."""
_MOST_CHARACTERS = 500_000
"""Of texts. What is longer is not kept: putting it together would take longer than it saves."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the cache has of a session, if anything. `answered`: whether it could be asked."""

    cached: Cached | None
    answered: bool


BYPASSED = Lookup(None, answered=False)


class SegmentCache:
    """Reads and writes segments through the port; `on` is False where no cache is configured."""

    def __init__(
        self, *, cache: SessionCache | None, clock: Clock, telemetry: Telemetry, seconds: int, recent_turns: int
    ) -> None:
        self._cache = cache
        self._clock = clock
        self._telemetry = telemetry
        self._seconds = seconds
        self._recent_turns = recent_turns
        self._failing = False
        self._closed_until = float("-inf")

    @property
    def on(self) -> bool:
        return self._cache is not None

    async def get(self, tenant: str, conversation_id: str) -> Lookup:
        """What is remembered, and whether the cache answered."""
        if self._cache is None or not self._open():
            return BYPASSED
        begun = self._clock.monotonic()
        try:
            text = await self._cache.get(tenant=tenant, conversation_id=conversation_id)
        except CacheUnavailable as error:
            self._bypass(error, begun)
            return BYPASSED
        cached = None if text is None else from_text(text)
        self._took(begun)
        return Lookup(cached, answered=True)

    async def put(self, segment: Segment) -> None:
        """Remembers the segment; what is too large is forgotten instead."""
        if self._cache is None or not self._open():
            return
        named = {"tenant": segment.session.tenant, "conversation_id": segment.session.conversation_id}
        large = sum(len(message.text) for message in segment.messages) > _MOST_CHARACTERS
        text = "" if large else to_text(segment, value_of(segment, recent_turns=self._recent_turns))
        begun = self._clock.monotonic()
        try:
            if large:
                await self._cache.drop(**named)
            else:
                await self._cache.put(**named, value=text, seconds=self._seconds)
        except CacheUnavailable as error:
            self._bypass(error, begun)
        else:
            self._took(begun)

    async def drop(self, *, tenant: str, conversation_id: str) -> None:
        """Forgets what is remembered of a session. Raises `CacheUnavailable`: nobody may take it for forgotten."""
        if self._cache is not None:
            await self._cache.drop(tenant=tenant, conversation_id=conversation_id)

    def _open(self) -> bool:
        """While the cache fails, one call after each pause tries it, and the others still go without."""
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

    def _took(self, begun: float) -> None:
        if self._failing:
            log.info("the session cache answers again")
        self._failing, self._closed_until = False, float("-inf")
        self._observe(begun)

    def _observe(self, begun: float) -> None:
        self._telemetry.observe("roomlore_session_seconds", self._clock.monotonic() - begun, labels={"part": "cache"})
