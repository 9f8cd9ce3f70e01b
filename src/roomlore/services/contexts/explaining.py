"""Weighing the earlier messages of a message by each strategy, for people to look at: nothing is recorded."""

from collections.abc import Iterable, Mapping

from roomlore.core.context import STRATEGIES, ContextOptions, choose_threaded, choose_weighted
from roomlore.core.explained import Explanation, Left, Weighed
from roomlore.core.far import Past
from roomlore.core.models import Candidate, Entry, Signals, Target
from roomlore.core.relevance import precedes
from roomlore.ports.storage import UnitOfWork
from roomlore.services.contexts.gather import Gatherer, picks, scorer

_MOST_MATES = 30
"""Of those that were left: the likeliest."""


class Explainer:
    """Explains for one tenant through one unit of work."""

    def __init__(self, *, tenant: str, work: UnitOfWork) -> None:
        self._tenant = tenant
        self._work = work
        self._gatherer = Gatherer(tenant=tenant, work=work)

    async def explain(self, target: Target, options: ContextOptions, past: Past) -> list[Explanation]:
        """One for each strategy, in the order of `STRATEGIES`. `past`: what `threaded` may show from long ago."""
        found = {
            "threaded": await self._threaded(target, options, past),
            "weighted": await self._weighted(target, options),
            "recent": await self._recent(target, options),
        }
        return [_explanation(target, options, name, found[name]) for name in STRATEGIES]

    async def _recent(self, target: Target, options: ContextOptions) -> list[Weighed]:
        chosen = await self._gatherer.recent(target, options.max_context_messages)
        return [Weighed(message=one.message, reason=one.reason) for one in chosen]

    async def _weighted(self, target: Target, options: ContextOptions) -> list[Weighed]:
        pool, view = await self._gatherer.weighted_view(target, options)
        weigher = scorer(options)
        taken = _by_arrival(choose_weighted(target.entry, pool, weigher, view, options))
        found = []
        for entry in (one for one in pool if precedes(one.message, target.entry.message)):
            score, signals = weigher.score(view, entry)
            left: Left = "below" if score < options.relevance_threshold else "crowded"
            found.append(_weighed(entry, score, taken, left, signals=signals))
        return found

    async def _threaded(self, target: Target, options: ContextOptions, past: Past) -> list[Weighed]:
        most, link = options.max_context_messages, target.entry.link
        chosen = picks(link, past, options)
        mates = dict(zip(link.mates.arrivals.tolist(), link.mates.probabilities.tolist(), strict=True))
        chances = {**mates, **past.chances, **chosen}
        likeliest = sorted(chances, key=lambda arrival: -chances[arrival])[:_MOST_MATES]
        window = [one.message.arrival for one in await self._gatherer.recent(target, most)]
        entries = await self._work.messages.by_arrival(
            tenant=self._tenant,
            room_id=target.entry.message.room_id,
            arrivals=sorted({*chosen, *likeliest, *window}),
        )
        view = await self._gatherer.view(target, entries)
        weigher = scorer(options)
        taken = _by_arrival(choose_threaded(target.entry, entries, chosen, weigher, view, options, past.reasons))
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


def _explanation(target: Target, options: ContextOptions, name: str, weighed: list[Weighed]) -> Explanation:
    return Explanation(
        target=target.entry,
        strategy=name,
        in_force=name == (options.strategy if options.enable_intelligent_memory else "recent"),
        weighed=tuple(sorted(weighed, key=lambda one: (one.message.at, one.message.arrival))),
        tokens=sum(one.message.tokens for one in weighed if one.taken),
        window_tokens=target.window_tokens,
        window_messages=target.window_messages,
        threshold=options.relevance_threshold if name == "weighted" else None,
    )
