"""Ranks the messages of a room for a question: words, neighbours, meaning, people and time, each by its signal.

    score = ((1 - meaning) * words / best words + meaning * nearness) * speaker * voice * time * kind

Words: BM25 with the room's statistics, to which the messages around add what the message itself lacks (an answer seldom
repeats its question). Nearness: how far the vectors' similarity lies above the farthest one found, in quarters of the
spread, so that models with narrow and wide cosines count alike. The factors raise messages by people whom the question
names, by the side it means ("I", "you"), in the time it asks for, and lower questions and messages of a few words.
A question that only repeats the query passes what it scored on to the messages that answer it (`core/answering.py`).
Everything is a function of the arguments; ties go to the earlier message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roomlore.core.answering import Answers, answers
from roomlore.core.lexical import Matches, matches, rows_of
from roomlore.core.nearness import Near, nearness
from roomlore.core.neighbours import around, gained
from roomlore.core.query import SearchQuery, agent_messages
from roomlore.core.search import Floats, Ints, Nearest, Postings, RoomFacts
from roomlore.core.search_weights import WEIGHTS, SearchWeights
from roomlore.core.when import closeness

ALL_RANKED = 1_024
"""A room up to this size is ranked as a whole; of a larger one the messages that match best, with their neighbours."""
_CENTRES = 256
_SHORTNESS = np.exp(-np.arange(1_024) / 4)
"""Of a message of so many words; the store counts up to 1,023."""
_LEAST = 0.01
_DIGITS = 12
"""Equal evidence is to come out equal, in whatever order it was added up."""
_WORTH_SAYING = 0.05
_SHOWN = {
    "words": "words match %.2f",
    "neighbours": "the messages around it match %.2f",
    "meaning": "near in meaning %.2f",
    "answers": "answers a question like it %.2f",
    "speaker": "by a person named",
    "voice": "by the side asked about",
    "time": "fits the time asked for %.2f",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A message found. `score` in [0, 1] falls along the list. `signals`, each in [0, 1]: `words` (the share of the
    question's worth that the message matches), `neighbours` (what those around it add), `meaning` (the vectors'
    similarity), `answers` (what the like question that it answers matches), `speaker`, `voice`, `time`.
    `question`: the arrival of that like question, if any."""

    arrival: int
    score: float
    signals: Mapping[str, float]
    reason: str
    question: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signals:
    """One value a row."""

    words: Floats
    neighbours: Floats
    meaning: Floats
    answers: Floats
    speaker: Floats
    voice: Floats
    time: Floats


def rank(
    query: SearchQuery,
    *,
    postings: Postings,
    dense: Sequence[Nearest],
    facts: RoomFacts,
    limit: int,
    only: Ints | None = None,
    weights: SearchWeights = WEIGHTS,
) -> list[Ranked]:
    """The messages that answer a question best, best first, at most `limit`; without `dense`, by words alone.

    `postings` are those of `query.terms`; `dense` has one list for each of `query.embed`; `only` (ascending arrivals)
    restricts what is found, not the statistics. Where nothing but a time is asked for, the messages that say most come
    first. Messages for which neither words nor meaning nor time speak are left
    out.
    """
    size = facts.arrivals.size
    if not size or limit < 1:
        return []
    found = matches(query, postings, facts, weights)
    near = nearness(dense, facts)
    passed = answers(found, facts, weights)
    if query.only_then:
        only = _sent_then(query, facts, only)
        rows = rows_of(facts, only)
    else:
        rows = _candidates(found, near, passed, query, facts, only)
    if not rows.size:
        return []
    passed = passed.among(rows, facts.arrivals.size)
    signals = _signals(query, found, near, passed, rows, facts, weights)
    kinds = _kinds(facts.lengths[rows], facts.questions[rows], weights)
    fused = kinds if query.only_then else _fused(signals, passed, near.nearness[rows], kinds, weights)
    fused = np.round(fused, _DIGITS)
    fits = fused > 0 if only is None else (fused > 0) & np.isin(facts.arrivals[rows], only)
    order = _best(np.where(fits, fused, -np.inf), min(limit, int(np.count_nonzero(fits))))
    listed = _listed(order, fused, signals, facts.arrivals[rows], least=1.0 if query.only_then else _LEAST)
    asked = passed.best()
    return [
        replace(one, question=int(facts.arrivals[rows[asked[place]]])) if place in asked else one
        for place, one in zip(order.tolist(), listed, strict=True)
    ]


def _sent_then(query: SearchQuery, facts: RoomFacts, only: Ints | None) -> Ints:
    """Return the arrivals in the times asked for, of `only` where given."""
    then = facts.arrivals[closeness(query.spans, facts.sent_at.astype(float)) >= 1]
    return then if only is None else np.intersect1d(then, only)


def _best(fused: Floats, limit: int) -> Ints:
    """Places of the `limit` highest values, highest first; ties in order."""
    if limit < fused.size:
        least = np.partition(fused, fused.size - limit)[fused.size - limit] if limit else np.inf
        places = np.flatnonzero(fused >= least)
    else:
        places = np.arange(fused.size)
    return places[np.argsort(-fused[places], kind="stable")][:limit]


def _candidates(
    found: Matches, near: Near, passed: Answers, query: SearchQuery, facts: RoomFacts, only: Ints | None
) -> Ints:
    size = facts.arrivals.size
    if size <= ALL_RANKED:
        return np.arange(size)
    scores = found.scores(size)
    best = np.argpartition(-scores, _CENTRES)[:_CENTRES]
    centres = [best[scores[best] > 0], near.rows, passed.questions, passed.rows]
    fits = np.arange(size)
    if only is not None:
        fits = rows_of(facts, only)
        fits = fits[fits >= 0]
        # What may be found, and what stands beside it, each has its own centres: neither is to crowd out the other.
        centres += [_strongest(scores, fits), _strongest(scores, around(fits, size))]
    if query.spans:
        inside = fits[closeness(query.spans, facts.sent_at[fits].astype(float)) >= 1]
        centres.append(inside[_best(scores[inside], _CENTRES)])
    return around(np.concatenate(centres), size)


def _strongest(scores: Floats, among: Ints) -> Ints:
    """Of these rows the centres, by their words."""
    best = among[_best(scores[among], _CENTRES)]
    return best[scores[best] > 0]


def _signals(
    query: SearchQuery,
    found: Matches,
    near: Near,
    passed: Answers,
    rows: Ints,
    facts: RoomFacts,
    weights: SearchWeights,
) -> _Signals:
    table = found.table(rows, facts.arrivals.size)
    total = max(float(found.worth.sum()), 1e-9)
    words = table @ found.worth / total
    nothing = np.zeros(rows.size)
    return _Signals(
        words=words,
        neighbours=gained(table, found.worth, rows, facts, weights) / total,
        meaning=near.similarity[rows],
        answers=passed.passed(words) if passed.rows.size else nothing,
        speaker=np.isin(facts.senders[rows], query.people).astype(float) if query.people else nothing,
        voice=_voice(query, facts)[rows] if query.voice else nothing,
        time=closeness(query.spans, facts.sent_at[rows].astype(float)) if query.spans else nothing,
    )


def _voice(query: SearchQuery, facts: RoomFacts) -> Floats:
    """1 for messages of the side meant, in a room where people talk with an agent."""
    agents = agent_messages(facts)
    wanted = agents if query.voice == "agent" else ~agents
    return wanted.astype(float) if agents.any() else np.zeros(agents.size)


def _kinds(lengths: Ints, questions: NDArray[np.bool_], w: SearchWeights) -> Floats:
    """Lower questions and messages of a few words."""
    kinds: Floats = (1 - w.question * questions) * (1 - w.short * _SHORTNESS[np.minimum(lengths, _SHORTNESS.size - 1)])
    return kinds


def _fused(signals: _Signals, passed: Answers, nearness: Floats, kinds: Floats, w: SearchWeights) -> Floats:
    words = signals.words + signals.neighbours
    best = float(words.max())
    fused = words / best if best > 0 else words
    if nearness.any():
        fused = (1 - w.meaning) * fused + w.meaning * nearness
    if passed.rows.size:
        fused = np.maximum(fused, w.answer * passed.passed(fused))
    fused *= (1 + w.speaker * signals.speaker) * (1 + w.voice * signals.voice) * (1 + w.time * signals.time)
    return fused * kinds + w.time_alone * signals.time


def _listed(order: Ints, fused: Floats, signals: _Signals, arrivals: Ints, *, least: float) -> list[Ranked]:
    """Return the rows in this order; the first one's score is the best of its kinds of evidence, the others' fall with
    the fused score."""
    if not order.size:
        return []
    first = order[0]
    kinds = (signals.words[first] + signals.neighbours[first], signals.meaning[first], signals.answers[first], least)
    evidence = min(1.0, float(max(kinds)))
    scores = (evidence * fused[order] / fused[first]).tolist()
    named = {name: np.minimum(getattr(signals, name)[order], 1.0).tolist() for name in _SHOWN}
    found = []
    for place, arrival in enumerate(arrivals[order].tolist()):
        shown = {name: values[place] for name, values in named.items()}
        found.append(Ranked(arrival=arrival, score=scores[place], signals=shown, reason=_reason(shown)))
    return found


def _reason(shown: Mapping[str, float]) -> str:
    said = [
        words % value if "%" in words else words
        for (_, words), value in zip(_SHOWN.items(), shown.values(), strict=True)
        if value >= _WORTH_SAYING
    ]
    return ", ".join(said) or "little but its place"
