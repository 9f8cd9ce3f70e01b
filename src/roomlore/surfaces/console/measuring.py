"""The counters of this process, read every ten seconds and kept for an hour, so that a page can draw how they went."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from math import inf

from roomlore.core.errors import describe
from roomlore.core.measured import Reading, kept
from roomlore.wiring import Lore

EVERY_SECONDS = 10.0
_WITHIN = timedelta(hours=1)
_MOST = 361

COUNTERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "requests": ("roomlore_http_request_seconds_count", {}),
    "requests_failed": ("roomlore_http_request_seconds_count", {"status": "5xx"}),
    "messages": ("roomlore_messages_added_total", {}),
    "contexts": ("roomlore_contexts_total", {}),
    "contexts_degraded": ("roomlore_contexts_total", {"degraded": "yes"}),
    "context_tokens": ("roomlore_context_tokens_total", {}),
    "window_tokens": ("roomlore_window_tokens_total", {}),
    "cache": ("roomlore_room_cache_total", {}),
    "cache_hits": ("roomlore_room_cache_total", {"result": "hit"}),
    "searches": ("roomlore_searches_total", {}),
    "searches_degraded": ("roomlore_searches_total", {"degraded": "yes"}),
    "model_calls": ("roomlore_model_calls_total", {}),
    "model_answers": ("roomlore_model_calls_total", {"result": "answered"}),
    "work_done": ("roomlore_work_total", {"result": "done"}),
    "work_failed": ("roomlore_work_total", {"result": "failed"}),
}
"""By name: a series, and the labels that its parts must have to be added up."""

HISTOGRAMS: Mapping[str, str] = {
    "request_time": "roomlore_http_request_seconds",
    "context_time": "roomlore_context_build_seconds",
    "search_time": "roomlore_search_seconds",
    "memory_search_time": "roomlore_memory_search_seconds",
    "first_text_time": "roomlore_reply_first_text_seconds",
}

log = logging.getLogger(__name__)


class Watch:
    """What was read so far, in memory that does not grow: at most 361 readings of a fixed number of counters."""

    def __init__(self) -> None:
        self._readings: tuple[Reading, ...] = ()
        self.begun: datetime | None = None

    async def look(self, lore: Lore) -> tuple[Reading, ...]:
        """What is kept, and how the counters stand now."""
        return kept(self._readings, await _read(lore), within=_WITHIN, most=_MOST)

    @asynccontextmanager
    async def watching(self, lore: Lore, *, every_seconds: float = EVERY_SECONDS) -> AsyncIterator[None]:
        """Reads again and again inside the block."""
        self.begun = lore.now()
        task = asyncio.create_task(self._go_on(lore, every_seconds))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _go_on(self, lore: Lore, seconds: float) -> None:
        while True:
            try:
                self._readings = await self.look(lore)
            except Exception as error:  # noqa: BLE001 - a reading that fails is missing from a chart, no more
                log.warning("counters could not be read", extra={"why": describe(error)})
            await asyncio.sleep(seconds)


async def _read(lore: Lore) -> Reading:
    return Reading(lore.now(), await asyncio.to_thread(_counters, lore))


def _counters(lore: Lore) -> dict[str, tuple[float, ...]]:
    told = {name: (_sum(lore, *which),) for name, which in COUNTERS.items()}
    return told | {name: _buckets(lore, series) for name, series in HISTOGRAMS.items()}


def _sum(lore: Lore, series: str, wanted: Mapping[str, str]) -> float:
    return sum(value for labels, value in lore.series(series) if wanted.items() <= labels.items())


def _buckets(lore: Lore, histogram: str) -> tuple[float, ...]:
    """How much lies at or below each bound, and in all."""
    found = dict.fromkeys((*lore.bounds(histogram), inf), 0.0)
    for labels, value in lore.series(f"{histogram}_bucket"):
        found[float(labels["le"])] += value
    return tuple(found.values())
