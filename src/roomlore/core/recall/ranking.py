"""Which facts matter for a topic, and which of them fit."""

from dataclasses import dataclass

import numpy as np

from roomlore.core.recall.facts import FactSet
from roomlore.core.recall.models import RecallOptions
from roomlore.core.recall.topic import Topic
from roomlore.core.search import Floats, Ints

_STEEPNESS = 8
_STEP = 0.7
_FAR = 1e3
_PRICE = 0.25
_LINE = 60
_NEARNESS = 0.05


@dataclass(frozen=True, slots=True)
class Ranking:
    """A value for each fact; `order`: the best first, equal ones as the facts stand."""

    similarity: Floats
    relevance: Floats
    confidence: Floats
    score: Floats
    order: Ints


def rank(
    facts: FactSet,
    topic: Topic,
    options: RecallOptions,
    cosines: Floats | None = None,
    confidence: Floats | None = None,
) -> Ranking:
    """Scores by similarity and confidence; where there is no topic, by confidence alone.

    `cosines`: of the facts' vectors with the topic's, for the similarities 'embedding' and 'hybrid'. `confidence`: as
    it is now, where it is another one than when the facts were made ready.
    """
    sure = facts.confidence if confidence is None else confidence
    if not topic.parts:
        nothing = np.zeros(len(facts))
        return Ranking(nothing, nothing, sure, sure, _descending(sure))
    similarity = _similarity(facts, topic, options, cosines)
    relevance = similarity if options.scale == "literal" else _scaled(similarity, facts, options.max_tokens)
    score = options.similarity_weight * relevance + options.confidence_weight * sure
    return Ranking(similarity, relevance, sure, score, _descending(score))


def fill(order: Ints, tokens: Ints, budget: int) -> list[int]:
    """Whole facts in their order, as many as fit; one that does not is passed over for smaller ones after it."""
    costs = tokens[order]
    taken: list[int] = []
    start = 0
    while start < order.size and budget > 0:
        fits = int(np.searchsorted(np.cumsum(costs[start : start + budget + 1]), budget, side="right"))
        taken += order[start : start + fits].tolist()
        budget -= int(costs[start : start + fits].sum())
        start += fits
        smaller = np.flatnonzero(costs[start:] <= budget)
        if not smaller.size:
            break
        start += int(smaller[0])
    return taken


def _similarity(facts: FactSet, topic: Topic, options: RecallOptions, cosines: Floats | None) -> Floats:
    if options.similarity == "embedding" and cosines is not None:
        return _NEARNESS * _nearness(cosines)
    words = facts.words.similarities(topic.parts)
    if options.similarity == "hybrid" and cosines is not None:
        return words + _NEARNESS * _nearness(cosines)
    return words


def _nearness(cosines: Floats) -> Floats:
    """How far each cosine lies above their mean, in standard deviations: models differ in where their cosines lie."""
    deviation = float(cosines.std()) if cosines.size else 0.0
    if deviation < 1e-9:
        return np.zeros(cosines.size)
    nearness: Floats = np.maximum((cosines - cosines.mean()) / deviation, 0.0)
    return nearness


def _scaled(similarity: Floats, facts: FactSet, max_tokens: int) -> Floats:
    """Similarities on [0, 1]: most of the step lies where the budget ends, so that confidence decides between facts
    that are about equally relevant, and not against relevance. A longer fact must be a little more similar."""
    value = similarity / (facts.tokens + _LINE) ** _PRICE
    top = float(value.max()) if value.size else 0.0
    if top <= 0:
        return np.zeros(value.size)
    ratio = np.minimum(value / _margin(value, facts, max_tokens), _FAR) ** _STEEPNESS
    step = ratio / (1 + ratio)
    relevance: Floats = _STEP * step + (1 - _STEP) * value / top
    return relevance


def _margin(value: Floats, facts: FactSet, max_tokens: int) -> float:
    """The value half-way between the last fact that would fit by value alone and the first that would not."""
    order = _best(value, max_tokens // int(facts.tokens.min()) + 2)
    fit = int(np.searchsorted(np.cumsum(facts.tokens[order]), max_tokens - facts.frame, side="right"))
    if fit >= value.size:
        fit = (value.size + 1) // 2
    last, next_one = value[order[max(fit, 1) - 1]], value[order[min(max(fit, 1), value.size - 1)]]
    margin = float(last + next_one) / 2
    return margin if margin > 0 else float(value[value > 0].min()) / 2


def _best(values: Floats, most: int) -> Ints:
    """Where the largest values stand, the largest first; many more are not even sorted."""
    if most >= values.size:
        return _descending(values)
    places = np.sort(np.argpartition(-values, most)[:most])
    return places[_descending(values[places])]


def _descending(values: Floats) -> Ints:
    return np.argsort(-values, kind="stable")
