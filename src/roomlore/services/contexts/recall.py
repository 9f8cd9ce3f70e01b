"""Searching the room's past for a message that may need it."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

from roomlore.core.context import ContextOptions
from roomlore.core.errors import describe
from roomlore.core.far import LEAST_NEED, MOST_HITS, NOTHING_FAR, Earlier, Past, need, weigh
from roomlore.core.models import Entry, Target

_SHARE = 0.5
"""Of the time that a context may take; the rest is for a context without."""

log = logging.getLogger(__name__)


class PastSearch(Protocol):
    """What searches a room."""

    async def before(self, entry: Entry, *, limit: int) -> Earlier:
        """The messages before this one that answer it best, at most `limit`."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """`problem`: None, or why less was searched than there is."""

    past: Past
    problem: str | None = None


def needs(target: Target, options: ContextOptions) -> float:
    """P(the message needs something that was said long ago); 0 where so little that nothing is searched for, and where
    the settings do not let it be."""
    if not (options.context_recall and options.enable_intelligent_memory and options.strategy == "threaded"):
        return 0.0
    needed = need(target)
    return needed if needed >= LEAST_NEED else 0.0


class Recall:
    """Recalls what a message needs, as far as that can be had in time."""

    def __init__(self, search: PastSearch) -> None:
        self._search = search

    async def of(self, target: Target, needed: float, options: ContextOptions) -> Recalled:
        """What was weighed; nothing where nothing is needed. An error or a search that takes too long is the `problem`
        where `fallback_on_error` is on, else it is raised."""
        if not needed:
            return Recalled(NOTHING_FAR)
        limit = max(MOST_HITS, options.max_context_messages)
        if not options.fallback_on_error:
            earlier = await self._search.before(target.entry, limit=limit)
            return Recalled(weigh(target.entry.link, earlier, needed), earlier.problem)
        try:
            async with asyncio.timeout(_SHARE * options.context_build_timeout_seconds):
                earlier = await self._search.before(target.entry, limit=limit)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the search, the thread is there
            why = "timeout" if isinstance(error, TimeoutError) else describe(error)
            log.warning("context without the past", extra={"room_id": target.room.room_id, "why": why})
            return Recalled(NOTHING_FAR, f"nothing was searched for ({why})")
        return Recalled(weigh(target.entry.link, earlier, needed), earlier.problem)
