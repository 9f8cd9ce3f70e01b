"""From facts and a topic to the block that is shown."""

from collections.abc import Sequence

from roomlore.core.recall.facts import Count, FactSet
from roomlore.core.recall.models import Recalled, RecallOptions, Recollection
from roomlore.core.recall.ranking import Ranking, fill, rank
from roomlore.core.recall.rendering import block_of
from roomlore.core.recall.sticky import still_does
from roomlore.core.recall.topic import Topic
from roomlore.core.search import Floats


def recollect(
    facts: FactSet,
    topic: Topic,
    options: RecallOptions,
    *,
    count: Count,
    cosines: Floats | None = None,
    confidence: Floats | None = None,
    previous: Sequence[str] = (),
    degraded: str | None = None,
) -> Recollection:
    """The facts worth their tokens. `confidence`: as it is now. `previous`: the ids of those shown before, in their
    order, () for none."""
    ranking = rank(facts, topic, options, cosines, confidence)
    fresh = fill(ranking.order, facts.tokens, options.max_tokens - facts.frame)
    chosen, text, tokens = _fitting(facts, fresh, options.max_tokens, count)
    kept = _kept(facts, previous) if options.sticky else None
    if kept is not None and still_does(kept, chosen, facts, ranking, topic):
        old, old_text, old_tokens = _fitting(facts, kept, options.max_tokens, count)
        if old == kept:
            return _recollection(facts, ranking, old, old_text, old_tokens, kept=True, degraded=degraded)
    return _recollection(facts, ranking, chosen, text, tokens, kept=False, degraded=degraded)


def _kept(facts: FactSet, previous: Sequence[str]) -> list[int] | None:
    """Where the facts shown before stand; None where there were none or one of them is gone."""
    places = [facts.places.get(memory_id, -1) for memory_id in previous]
    return places if places and min(places) >= 0 and len(set(places)) == len(places) else None


def _fitting(facts: FactSet, places: Sequence[int], max_tokens: int, count: Count) -> tuple[list[int], str, int]:
    """As many of these facts as fit when the block is counted as a whole, with the block and its tokens."""
    kept = list(places)
    while kept:
        text = block_of([facts.lines[place] for place in kept])
        tokens = count([text])[0]
        if tokens <= max_tokens:
            return kept, text, tokens
        kept.pop()
    return [], "", 0


def _recollection(
    facts: FactSet,
    ranking: Ranking,
    places: Sequence[int],
    text: str,
    tokens: int,
    *,
    kept: bool,
    degraded: str | None,
) -> Recollection:
    recalled = tuple(
        Recalled(
            memory=facts.memories[place],
            similarity=float(ranking.similarity[place]),
            relevance=float(ranking.relevance[place]),
            confidence=float(ranking.confidence[place]),
            score=float(ranking.score[place]),
        )
        for place in places
    )
    return Recollection(facts=recalled, text=text, tokens=tokens, considered=len(facts), kept=kept, degraded=degraded)
