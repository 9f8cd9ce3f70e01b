"""Reading from the store what each strategy decides on."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from roomlore.core.context import (
    ContextOptions,
    choose_recent,
    choose_threaded,
    choose_weighted,
    threaded_picks,
    weighted_pool,
)
from roomlore.core.far import NOTHING_FAR, Past
from roomlore.core.linking import select
from roomlore.core.models import Candidate, Entry, Link, Target
from roomlore.core.relevance import MAX_HOPS, RelevanceScorer, RoomView, Weights
from roomlore.ports.storage import UnitOfWork


class Gatherer:
    """Gathers for one tenant through one unit of work, and lets the pure functions choose.

    `past`: what `threaded` may show from long ago.
    """

    def __init__(self, *, tenant: str, work: UnitOfWork, past: Past = NOTHING_FAR) -> None:
        self._tenant = tenant
        self._work = work
        self._past = past

    async def plain(self, target: Target, options: ContextOptions) -> list[Candidate]:
        """Return the plain window, where nothing better is wanted or to be had."""
        return await self.recent(target, min(options.recent_messages, options.max_context_messages))

    async def recent(self, target: Target, limit: int) -> list[Candidate]:
        """Return the last `limit` messages."""
        message = target.entry.message
        before = await self._work.messages.recent(
            tenant=self._tenant, room_id=message.room_id, limit=limit, before=message.arrival
        )
        return choose_recent(before, limit, before=message)

    async def weighted_view(self, target: Target, options: ContextOptions) -> tuple[list[Entry], RoomView]:
        """The candidate pool of `weighted`, and what is known of the room to score it with."""
        message = target.entry.message
        near = await self._work.messages.tail(
            tenant=self._tenant,
            room_id=message.room_id,
            limit=options.candidate_limit,
            before=message.arrival,
            since=_hours_before(message.at, options.time_window_hours),
        )
        chain = await self._work.threads.related(
            tenant=self._tenant,
            room_id=message.room_id,
            entry=target.entry,
            hops=MAX_HOPS,
            limit=options.chain_limit,
            before=message.arrival,
        )
        pool = weighted_pool(target.entry, near, chain, options)
        return pool, await self.view(target, pool)

    async def weighted(self, target: Target, options: ContextOptions) -> list[Candidate]:
        """Return the best of the candidate pool by the weighted sum of the signals."""
        pool, view = await self.weighted_view(target, options)
        return choose_weighted(target.entry, pool, scorer(options), view, options)

    async def threaded(self, target: Target, options: ContextOptions) -> list[Candidate]:
        """Return the messages likely to share the thread of the target, and what it needs from long ago."""
        chosen = picks(target.entry.link, self._past, options)
        entries = await self._work.messages.by_arrival(
            tenant=self._tenant, room_id=target.entry.message.room_id, arrivals=sorted(chosen)
        )
        view = await self.view(target, entries)
        return choose_threaded(target.entry, entries, chosen, scorer(options), view, options, self._past.reasons)

    async def view(self, target: Target, pool: Sequence[Entry]) -> RoomView:
        """Only words of messages that share one with the target can count, so only those are looked up."""
        mine = frozenset(target.entry.features.keywords)
        sharing = [entry for entry in pool if not mine.isdisjoint(entry.features.keywords)]
        wanted = mine.union(*(entry.features.keywords for entry in sharing)) if sharing else ()
        counts = await self._work.threads.keyword_counts(
            tenant=self._tenant, room_id=target.room.room_id, keywords=sorted(wanted)
        )
        return RoomView(target=target.entry, pool=pool, messages=target.room.messages, counts=counts)


def picks(link: Link, past: Past, options: ContextOptions) -> dict[int, float]:
    """Arrival to probability of what `threaded` shows."""
    most = options.max_context_messages
    chosen = past.choose(most) if past.needed else dict(select(link, most))
    return threaded_picks(link, chosen, most)


def _hours_before(at: datetime, hours: float) -> datetime:
    """As far back as time goes: platforms write year 1 where they know no date."""
    return at - min(timedelta(hours=hours), at - datetime.min.replace(tzinfo=UTC))


def scorer(options: ContextOptions) -> RelevanceScorer:
    return _scorer(options.weights, options.half_life_minutes)


@lru_cache(maxsize=256)
def _scorer(weights: Weights, half_life_minutes: float) -> RelevanceScorer:
    return RelevanceScorer(weights, half_life_minutes)
