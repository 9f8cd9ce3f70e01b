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
from roomlore.core.linking import select
from roomlore.core.models import Candidate, Entry, Target
from roomlore.core.relevance import MAX_HOPS, RelevanceScorer, RoomView, Weights
from roomlore.ports.storage import UnitOfWork


class Gatherer:
    """Gathers for one tenant through one unit of work, and lets the pure functions choose."""

    def __init__(self, *, tenant: str, work: UnitOfWork) -> None:
        self._tenant = tenant
        self._work = work

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
        """Return the messages likely to share the thread of the target."""
        message, found = target.entry.message, target.entry.link
        best = dict(select(found, options.max_context_messages))
        chosen = threaded_picks(found, best, options.max_context_messages)
        entries = await self._work.messages.by_arrival(
            tenant=self._tenant, room_id=message.room_id, arrivals=sorted(chosen)
        )
        view = await self.view(target, entries)
        return choose_threaded(target.entry, entries, chosen, scorer(options), view, options)

    async def view(self, target: Target, pool: Sequence[Entry]) -> RoomView:
        """Only words of messages that share one with the target can count, so only those are looked up."""
        mine = frozenset(target.entry.features.keywords)
        sharing = [entry for entry in pool if not mine.isdisjoint(entry.features.keywords)]
        wanted = mine.union(*(entry.features.keywords for entry in sharing)) if sharing else ()
        counts = await self._work.threads.keyword_counts(
            tenant=self._tenant, room_id=target.room.room_id, keywords=sorted(wanted)
        )
        return RoomView(target=target.entry, pool=pool, messages=target.room.messages, counts=counts)


def _hours_before(at: datetime, hours: float) -> datetime:
    """As far back as time goes: platforms write year 1 where they know no date."""
    return at - min(timedelta(hours=hours), at - datetime.min.replace(tzinfo=UTC))


def scorer(options: ContextOptions) -> RelevanceScorer:
    return _scorer(options.weights, options.half_life_minutes)


@lru_cache(maxsize=256)
def _scorer(weights: Weights, half_life_minutes: float) -> RelevanceScorer:
    return RelevanceScorer(weights, half_life_minutes)
