"""Weighing the earlier messages of a message, those that are left too, for people to look at."""

from collections.abc import Iterable, Mapping

from roomlore.core.context import ContextOptions, choose_threaded, choose_weighted
from roomlore.core.explained import Left, Weighed
from roomlore.core.far import NOTHING_FAR, Past
from roomlore.core.models import Candidate, Entry, Signals, Target
from roomlore.core.relevance import precedes
from roomlore.ports.storage import UnitOfWork
from roomlore.services.contexts.gather import Gatherer, picks, scorer

_MOST_MATES = 30
"""Of those that were left: the likeliest."""


class Explainer:
    """Weighs for one tenant through one unit of work."""

    def __init__(self, *, tenant: str, work: UnitOfWork, past: Past = NOTHING_FAR) -> None:
        self._tenant = tenant
        self._work = work
        self._past = past
        self.gatherer = Gatherer(tenant=tenant, work=work, past=past)

    async def weighted(self, target: Target, options: ContextOptions) -> list[Weighed]:
        """Weigh the candidate pool by the sum of the signals."""
        pool, view = await self.gatherer.weighted_view(target, options)
        weigher = scorer(options)
        taken = _by_arrival(choose_weighted(target.entry, pool, weigher, view, options))
        found = []
        for entry in (one for one in pool if precedes(one.message, target.entry.message)):
            score, signals = weigher.score(view, entry)
            left: Left = "below" if score < options.relevance_threshold else "crowded"
            found.append(_weighed(entry, score, taken, left, signals=signals))
        return found

    async def threaded(self, target: Target, options: ContextOptions) -> list[Weighed]:
        """Weigh the messages near by how likely they share the thread of the target."""
        most, link = options.max_context_messages, target.entry.link
        chosen = picks(link, self._past, options)
        chances = {**link.mates.by_arrival(), **self._past.chances, **chosen}
        likeliest = sorted(chances, key=lambda arrival: -chances[arrival])[:_MOST_MATES]
        window = [one.message.arrival for one in await self.gatherer.recent(target, most)]
        entries = await self._work.messages.by_arrival(
            tenant=self._tenant,
            room_id=target.entry.message.room_id,
            arrivals=sorted({*chosen, *likeliest, *window}),
        )
        view = await self.gatherer.view(target, entries)
        weigher = scorer(options)
        taken = _by_arrival(choose_threaded(target.entry, entries, chosen, weigher, view, options, self._past.reasons))
        full: Left = "crowded" if len(taken) >= most else "unlikely"
        return [
            _weighed(
                entry,
                chances.get(entry.message.arrival, 0.0),
                taken,
                full if entry.message.arrival in chances else "unseen",
                signals=weigher.signals(view, entry),
            )
            for entry in entries
            if precedes(entry.message, target.entry.message)
        ]


def _by_arrival(chosen: Iterable[Candidate]) -> dict[int, Candidate]:
    return {one.message.arrival: one for one in chosen}


def _weighed(entry: Entry, score: float, taken: Mapping[int, Candidate], left: Left, *, signals: Signals) -> Weighed:
    known = taken.get(entry.message.arrival)
    if known is not None:
        return Weighed(message=entry.message, score=known.score, signals=known.signals, reason=known.reason)
    return Weighed(message=entry.message, score=score, left=left, signals=signals)
