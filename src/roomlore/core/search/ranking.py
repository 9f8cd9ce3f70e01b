"""Score a message by its neighbours: an answer seldom repeats the words of its question."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roomlore.core.dates import closeness
from roomlore.core.search.hits import WEIGHTS, Floats, Ints, Nearest, Postings, RoomFacts, SearchWeights
from roomlore.core.search.query import Matches, Near, SearchQuery, agent_messages, matches, nearness, rows_of

REACH = 2
_HOUR = 3_600_000_000


def around(rows: Ints, size: int) -> Ints:
    """Return these rows and those up to `REACH` away, ascending, of a room of `size` messages."""
    near = np.zeros(size, dtype=np.bool_)
    for distance in range(-REACH, REACH + 1):
        near[np.clip(rows + distance, 0, size - 1)] = True
    return np.flatnonzero(near)


def gained(table: Floats, worth: Floats, rows: Ints, facts: RoomFacts, weights: SearchWeights) -> Floats:
    """Return the value that the neighbours of each row add to its own words.

    `table` has a row for each of `rows`, which ascend, and a column for each term. A neighbour contributes the words
    that the message lacks, weighted by its position.
    """
    total = np.zeros(rows.size)
    own = table @ worth
    for distance in range(1, REACH + 1):
        later, earlier = _pairs(rows, distance)
        if not own[earlier].any() and not own[later].any():
            continue
        together = _together(rows[later], rows[earlier], facts, weights.pause_hours * distance)
        back, forth = _shares(rows[later], rows[earlier], distance, facts, weights)
        # Of two messages, the terms the first has in excess minus the reverse equals the difference of their own words.
        lacking = np.maximum(table[earlier] - table[later], 0.0) @ worth
        total[later] += back * together * lacking
        total[earlier] += forth * together * np.maximum(lacking + own[later] - own[earlier], 0.0)
    return total


def _pairs(rows: Ints, distance: int) -> tuple[Ints | slice, Ints | slice]:
    """Return the pairs of rows at this distance: the later ones, and the earlier one of each."""
    if rows.size and rows[-1] - rows[0] + 1 == rows.size:
        return slice(distance, None), slice(None, max(rows.size - distance, 0))
    earlier = np.searchsorted(rows, rows - distance)
    later = np.flatnonzero(rows[earlier] == rows - distance)
    return later, earlier[later]


def _together(now: Ints, then: Ints, facts: RoomFacts, hours: float) -> NDArray[np.bool_]:
    """Return True for pairs of messages without a pause of `hours` between them."""
    together: NDArray[np.bool_] = np.abs(facts.sent_at[now] - facts.sent_at[then]) < hours * _HOUR
    return together


def _shares(
    now: Ints, then: Ints, distance: int, facts: RoomFacts, weights: SearchWeights
) -> tuple[Floats | float, float]:
    """Return the share of an earlier message that counts for the later one, and the reverse."""
    if distance > 1:
        return weights.beyond, weights.beyond
    answers = facts.questions[then] & (facts.senders[now] != facts.senders[then])
    return weights.asked * answers, weights.after


_HOPS = 3
_MAX = 256
"""The most echoes that are examined, and the most messages linked to them at each hop. Bounds the work if a question is
repeated many times."""
_NEXT = np.arange(1, 6)
"""Offsets of the messages right after an echo that may answer it, whatever their links say."""
_ANOTHER_QUESTION = 0.3
_ENOUGH_WORDS = 0.4
"""The share of the query's worth from which a message that may answer counts as one about the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Answers to echoes, one row a pair: `questions` and `rows` (indices into the room's facts), and `share`, the part
    of the question's relevance that the answer gets, in [0, 1]."""

    questions: Ints
    rows: Ints
    shares: Floats

    def among(self, rows: Ints, size: int) -> "Answers":
        """Return the pairs of these rows of a room of `size` messages, as places in `rows`."""
        if not self.rows.size:
            return self
        place = np.full(size, -1)
        place[rows] = np.arange(rows.size)
        questions, answering = place[self.questions], place[self.rows]
        kept = (questions >= 0) & (answering >= 0)
        return Answers(questions=questions[kept], rows=answering[kept], shares=self.shares[kept])

    def passed(self, relevance: Floats) -> Floats:
        """Return the relevance that each row gets from its questions, the largest if it answers several."""
        gets = np.zeros(relevance.size)
        np.maximum.at(gets, self.rows, relevance[self.questions] * self.shares)
        return gets

    def best(self) -> dict[int, int]:
        """Return the question that each row answers best, by row."""
        order = np.argsort(self.shares, kind="stable")
        return dict(zip(self.rows[order].tolist(), self.questions[order].tolist(), strict=True))


_NONE = np.zeros(0, np.int64)
NO_ANSWERS = Answers(questions=_NONE, rows=_NONE, shares=np.zeros(0))


def answers(found: Matches, facts: RoomFacts, weights: SearchWeights) -> Answers:
    """Return the answers to the room's echoes of a query with these matches."""
    echo = _echoes(found, facts, weights)
    asked = _most(np.flatnonzero(echo), echo)
    if not asked.size or not weights.answer:
        return NO_ANSWERS
    linked = _linked(asked, facts)
    near = _near(asked, linked, facts, weights)
    questions, rows, odds = (np.concatenate(columns) for columns in zip(linked, near, strict=True))
    others = facts.senders[rows] != facts.senders[questions]
    questions, rows, odds = questions[others], rows[others], odds[others]
    lengths = facts.lengths[rows]
    about = np.minimum(_matched(found, facts.arrivals.size)[rows] / _ENOUGH_WORDS, 1.0)
    asks = np.where(facts.questions[rows], _ANOTHER_QUESTION + (1 - _ANOTHER_QUESTION) * about, 1.0)
    odds = odds * asks * (1 + about) * lengths / (lengths + facts.lengths.mean())
    best = np.zeros(facts.arrivals.size)
    np.maximum.at(best, questions, odds)
    kept = odds > 0
    questions, rows, odds = questions[kept], rows[kept], odds[kept]
    return Answers(questions=questions, rows=rows, shares=echo[questions] * odds / best[questions])


def _most(rows: Ints, worth: Floats) -> Ints:
    """Return the rows with the highest worth, ascending; of equal ones, the later."""
    if rows.size <= _MAX:
        return rows
    return np.sort(rows[::-1][np.argsort(-worth[rows[::-1]], kind="stable")[:_MAX]])


def _matched(found: Matches, size: int) -> Floats:
    """Return the share of the query's worth that each message matches."""
    worth = np.bincount(found.rows, found.worth[found.terms], minlength=size)
    share: Floats = worth / max(float(found.worth.sum()), 1e-9)
    return share


def _echoes(found: Matches, facts: RoomFacts, weights: SearchWeights) -> Floats:
    """Return the degree to which each message only repeats the query, in [0, 1].

    Likeness is the share of the query's worth that the message matches, times the share of the message's words that the
    query has; the sender's name counts as one of the words. It counts 0 below `echo_from` and 1 above `echo_to`.
    """
    size = facts.arrivals.size
    shared = np.bincount(found.rows, minlength=size) / np.maximum(facts.lengths - 1, 1)
    likeness = _matched(found, size) * np.minimum(shared, 1.0) * facts.questions
    likeness -= weights.echo_from
    likeness /= weights.echo_to - weights.echo_from
    return np.clip(likeness, 0.0, 1.0, out=likeness)


def _linked(asked: Ints, facts: RoomFacts) -> tuple[Ints, Ints, Floats]:
    """Return questions, the rows whose links lead to them within a few hops, and the probability of those links."""
    questions, found, odds = [asked[:0]], [asked[:0]], [np.zeros(0)]
    above, roots, odds_above = asked, asked, np.ones(asked.size)
    for _ in range(_HOPS):
        rows = _most(np.flatnonzero(_are_in(facts.parents, facts.arrivals[above])), facts.parent_odds)
        if not rows.size:
            break
        place = np.searchsorted(facts.arrivals[above], facts.parents[rows])
        roots, odds_above, above = roots[place], odds_above[place] * facts.parent_odds[rows], rows
        questions.append(roots)
        found.append(rows)
        odds.append(odds_above)
    return np.concatenate(questions), np.concatenate(found), np.concatenate(odds)


def _are_in(values: Ints, few: Ints) -> NDArray[np.bool_]:
    """Return True for values that are among these few, which ascend. `np.isin` prepares for more and takes longer."""
    if not few.size:
        return np.zeros(values.size, np.bool_)
    places = np.searchsorted(few, values)
    places[places == few.size] = 0
    same: NDArray[np.bool_] = few[places] == values
    return same


def _near(
    asked: Ints, linked: tuple[Ints, Ints, Floats], facts: RoomFacts, weights: SearchWeights
) -> tuple[Ints, Ints, Floats]:
    """Return questions, the rows right after them, and the probability that these answer; lower if a link points
    elsewhere."""
    size = facts.arrivals.size
    questions, steps = np.repeat(asked, _NEXT.size), np.tile(_NEXT, asked.size)
    rows = questions + steps
    there = rows < size
    questions, rows, steps = questions[there], rows[there], steps[there]
    together = np.abs(facts.sent_at[rows] - facts.sent_at[questions]) < weights.pause_hours * _HOUR
    questions, rows, steps = questions[together], rows[together], steps[together]
    elsewhere = ~_are_in(questions * size + rows, np.sort(linked[0] * size + linked[1]))
    odds = weights.next_answers * weights.next_fades ** (steps - 1)
    return questions, rows, odds * (1 - np.where(elsewhere, facts.parent_odds[rows] ** 2, 0.0))


ALL_RANKED = 1_024
"""Rooms up to this size are ranked entirely; of larger ones the messages that match best, with their neighbours."""
_CENTRES = 256
_SHORTNESS = np.exp(-np.arange(1_024) / 4)
"""By number of words; the store counts up to 1,023."""
_MIN = 0.01
_DIGITS = 12
"""Rounding digits, so that equal evidence gives equal scores in any order of summation."""
_WORTH_SAYING = 0.05
LOWERED = 0.75
"""At or below this factor, lists without scores mention that the kind of a message lowered it."""
_WHOLE = 0.995
"""Factors from here on round to 1.00, and are not said."""
_SHOWN = {
    "words": "words match %.2f",
    "neighbours": "the messages around it match %.2f",
    "meaning": "near in meaning %.2f",
    "answers": "answers a question like it %.2f",
    "speaker": "by a person named",
    "voice": "by the side asked about",
    "time": "fits the time asked for %.2f",
    "kind": "a question or few words: times %.2f",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A search hit. `score` in [0, 1] falls along the list. `signals`, each in [0, 1]: `words` (the share of the
    question's worth that the message matches), `neighbours` (the words its neighbours add), `meaning` (the vectors'
    similarity), `answers` (the match of the similar question that it answers), `speaker`, `voice`, `time`, and `kind`,
    the factor of questions and of messages of a few words, 1 for others. `question`: the arrival of that similar
    question, if any."""

    arrival: int
    score: float
    signals: Mapping[str, float]
    reason: str
    question: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signals:
    """One value per row."""

    words: Floats
    neighbours: Floats
    meaning: Floats
    answers: Floats
    speaker: Floats
    voice: Floats
    time: Floats
    kind: Floats


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
    """Return the messages that answer a question best, best first, at most `limit`; without `dense`, by words alone.

    `postings` are those of `query.terms`; `dense` has one list for each of `query.embed`; `only` (ascending arrivals)
    restricts the results, not the statistics. If the query asks for nothing but a time, the most informative messages
    come first. Messages that match by neither words nor meaning nor time are left out.
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
    fused = signals.kind if query.only_then else _fused(signals, passed, near.nearness[rows], weights)
    fused = np.round(fused, _DIGITS)
    fits = fused > 0 if only is None else (fused > 0) & np.isin(facts.arrivals[rows], only)
    order = _best(np.where(fits, fused, -np.inf), min(limit, int(np.count_nonzero(fits))))
    best = passed.best()
    asked = [int(facts.arrivals[rows[best[place]]]) if place in best else None for place in order.tolist()]
    least = 1.0 if query.only_then else _MIN
    return _listed(order, fused, signals, facts.arrivals[rows], asked, least=least)


def _sent_then(query: SearchQuery, facts: RoomFacts, only: Ints | None) -> Ints:
    """Return the arrivals in the times asked for, of `only` if given."""
    then = facts.arrivals[closeness(query.spans, facts.sent_at.astype(float)) >= 1]
    return then if only is None else np.intersect1d(then, only)


def _best(fused: Floats, limit: int) -> Ints:
    """Return the indices of the `limit` highest values, highest first; ties in order."""
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
        # Results and their neighbours have separate centres, so that neither crowds out the other.
        centres += [_strongest(scores, fits), _strongest(scores, around(fits, size))]
    if query.spans:
        inside = fits[closeness(query.spans, facts.sent_at[fits].astype(float)) >= 1]
        centres.append(inside[_best(scores[inside], _CENTRES)])
    return around(np.concatenate(centres), size)


def _strongest(scores: Floats, among: Ints) -> Ints:
    """Return the centres of these rows, by their words."""
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
        kind=_kinds(facts.lengths[rows], facts.questions[rows], weights),
    )


def _voice(query: SearchQuery, facts: RoomFacts) -> Floats:
    """Return 1 for messages of the side meant, in a room with an agent."""
    agents = agent_messages(facts)
    wanted = agents if query.voice == "agent" else ~agents
    return wanted.astype(float) if agents.any() else np.zeros(agents.size)


def _kinds(lengths: Ints, questions: NDArray[np.bool_], w: SearchWeights) -> Floats:
    """Lower questions and messages of a few words."""
    kinds: Floats = (1 - w.question * questions) * (1 - w.short * _SHORTNESS[np.minimum(lengths, _SHORTNESS.size - 1)])
    return kinds


def _fused(signals: _Signals, passed: Answers, nearness: Floats, w: SearchWeights) -> Floats:
    words = signals.words + signals.neighbours
    best = float(words.max())
    fused = words / best if best > 0 else words
    if nearness.any():
        fused = (1 - w.meaning) * fused + w.meaning * nearness
    if passed.rows.size:
        fused = np.maximum(fused, w.answer * passed.passed(fused))
    fused *= (1 + w.speaker * signals.speaker) * (1 + w.voice * signals.voice) * (1 + w.time * signals.time)
    return fused * signals.kind + w.time_alone * signals.time


def _listed(
    order: Ints, fused: Floats, signals: _Signals, arrivals: Ints, asked: Sequence[int | None], *, least: float
) -> list[Ranked]:
    """Return the rows in this order, each with the question that it answers. The first score is the best of its kinds
    of evidence; the others fall with the fused score."""
    if not order.size:
        return []
    first = order[0]
    kinds = (signals.words[first] + signals.neighbours[first], signals.meaning[first], signals.answers[first], least)
    evidence = min(1.0, float(max(kinds)))
    scores = (evidence * fused[order] / fused[first]).tolist()
    values = np.minimum([getattr(signals, name)[order] for name in _SHOWN], 1.0).T.tolist()
    return [
        Ranked(
            arrival=arrival, score=score, signals=dict(zip(_SHOWN, row, strict=True)), reason=_reason(row), question=one
        )
        for arrival, score, row, one in zip(arrivals[order].tolist(), scores, values, asked, strict=True)
    ]


def _reason(values: Sequence[float]) -> str:
    *found, kind = zip(_SHOWN.values(), values, strict=True)
    said = [words % value if "%" in words else words for words, value in found if value >= _WORTH_SAYING]
    lowered = [kind[0] % kind[1]] if kind[1] < _WHOLE else []
    return ", ".join([*(said or ["little but its place"]), *lowered])
