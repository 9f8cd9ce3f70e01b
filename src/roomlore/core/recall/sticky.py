"""Whether the facts shown before still do, so that a provider's prompt cache of what follows them survives."""

import math
from collections.abc import Sequence

import numpy as np

from roomlore.core.recall.facts import FactSet
from roomlore.core.recall.ranking import Ranking
from roomlore.core.recall.topic import Topic
from roomlore.core.recall.words import amount
from roomlore.core.search import Floats, Ints
from roomlore.core.text import is_question

_SHARPNESS = 4
_LEAST = 0.1
_REACH = 2.0
_ASKED = -1.35
_TOLD = 0.8


def still_does(before: Sequence[int], fresh: Sequence[int], facts: FactSet, ranking: Ranking, topic: Topic) -> bool:
    """Whether to keep `before` (places of facts) rather than show `fresh`.

    It does while nothing that was asked for is missing. What is missing counts by its share of the fresh facts'
    similarity, the strongest above all, and by how much of what was said last its best fact covers; the more was said,
    the less any one fact covers it by right. A question needs little to change the facts; anything else, much. Where
    all facts fit, all are shown.
    """
    shown = np.zeros(len(facts), bool)
    shown[list(before)] = True
    chosen = np.array(fresh, np.int64)
    missing = chosen[~shown[chosen]]
    if not missing.size:
        return True
    if len(fresh) == len(facts):
        return False
    if not topic.asked:
        return True
    share = _share(missing, chosen, ranking.similarity)
    if share < _LEAST:
        return True
    strength = share + _REACH * float(facts.words.reach(topic.asked)[missing].max())
    return strength - math.log1p(amount(topic.asked)) <= (_ASKED if is_question(topic.asked) else _TOLD)


def _share(missing: Ints, chosen: Ints, similarity: Floats) -> float:
    top = float(similarity[chosen].max())
    if top <= 0:
        return 0.0
    strength = (similarity / top) ** _SHARPNESS
    return float(strength[missing].sum() / strength[chosen].sum())
