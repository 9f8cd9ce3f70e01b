"""Score a message by its neighbours: an answer seldom repeats the words of its question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from roomlore.core.dates import closeness
from roomlore.core.search.facts import from_micros, to_micros
from roomlore.core.search.hits import WEIGHTS, Floats, Ints, MessageFacts, Nearest, Postings, SearchWeights
from roomlore.core.search.query import Matches, Near, SearchQuery, agent_messages, matches, nearness, rows_of
from roomlore.core.search.telling import reason

T = TypeVar("T")
Column = TypeVar("Column", Ints, Floats)
REACH = 2
_HOUR = 3_600_000_000


def around(rows: Ints, size: int) -> Ints:
    """Return these rows and those up to `REACH` away, ascending, of a room of `size` messages."""
    near = np.zeros(size, dtype=np.bool_)
    for distance in range(-REACH, REACH + 1):
        near[np.clip(rows + distance, 0, size - 1)] = True
    return np.flatnonzero(near)


def once(make: Callable[[MessageFacts, SearchWeights], T], facts: MessageFacts, weights: SearchWeights) -> T:
    """Return `make(facts, weights)`, made once for these facts: no question changes it."""
    key = make, weights
    if key not in facts.derived:
        facts.derived[key] = make(facts, weights)
    made: T = facts.derived[key]
    return made


class _Pairs(NamedTuple):
    """Messages a few places apart, one row a pair: which of some rows they are, and the share of the earlier message
    that counts for the later one (`back`) and the reverse (`forth`), 0 across a pause."""

    later: Ints | slice
    earlier: Ints | slice
    back: Floats
    forth: Floats


def _all_pairs(facts: MessageFacts, weights: SearchWeights) -> Sequence[_Pairs]:
    return _pairs(np.arange(facts.arrivals.size), facts, weights)


def _pairs(rows: Ints, facts: MessageFacts, weights: SearchWeights) -> Sequence[_Pairs]:
    """Return the pairs of these rows, which ascend, at each distance up to `REACH`."""
    pairs = []
    for distance in range(1, REACH + 1):
        later, earlier = _at(rows, distance)
        now, then = rows[later], rows[earlier]
        together = np.abs(facts.sent_at[now] - facts.sent_at[then]) < weights.pause_hours * distance * _HOUR
        if distance > 1:
            back = forth = weights.beyond * together
        else:
            answers = facts.questions[then] & (facts.senders[now] != facts.senders[then])
            back, forth = weights.asked * answers * together, weights.after * together
        pairs.append(_Pairs(later, earlier, back, forth))
    return pairs


def _at(rows: Ints, distance: int) -> tuple[Ints | slice, Ints | slice]:
    """Return the places of the rows that have one at this distance before them, and the places of those."""
    if rows.size and rows[-1] - rows[0] + 1 == rows.size:
        return slice(distance, None), slice(None, max(rows.size - distance, 0))
    earlier = np.searchsorted(rows, rows - distance)
    later = np.flatnonzero(rows[earlier] == rows - distance)
    return later, earlier[later]


def gained(table: Floats, worth: Floats, own: Floats, pairs: Sequence[_Pairs]) -> Floats:
    """Return the value that the neighbours of each row add to its own words.

    `table` has a row for each message and a column for each term, and `own` the worth of each row. A neighbour
    contributes the words that the message lacks, weighted by its position.
    """
    total = np.zeros(own.size)
    if not own.any():
        return total
    for later, earlier, back, forth in pairs:
        more = table[earlier] - table[later]
        # Of two messages, the terms the first has in excess minus the reverse equals the difference of their own words.
        lacking = np.maximum(more, 0.0, out=more) @ worth
        total[later] += back * lacking
        total[earlier] += forth * np.maximum(lacking + own[later] - own[earlier], 0.0)
    return total


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
    """Answers to echoes, one row a pair: `questions` and `rows` (indices into the room's facts), and `shares`, the
    part of the question's relevance that the answer gets, in [0, 1]."""

    questions: Ints
    rows: Ints
    shares: Floats

    def among(self, rows: Ints, size: int) -> "Answers":
        """Return the pairs of these rows of a room of `size` messages, as places in `rows`."""
        if not self.rows.size or rows.size == size:
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


def answers(word_matches: Matches, facts: MessageFacts, weights: SearchWeights) -> Answers:
    """Return the answers to the room's echoes of a query with these matches."""
    shares = word_matches.shares(facts.arrivals.size)
    asking_rows, likeness = _echoes(word_matches, shares, facts, weights)
    if not asking_rows.size or not weights.answer:
        return NO_ANSWERS
    linked = _linked(asking_rows, facts, weights)
    near = _near(asking_rows, linked, facts, weights)
    questions, rows, odds = (np.concatenate(columns) for columns in zip(linked, near, strict=True))
    others = facts.senders[rows] != facts.senders[questions]
    questions, rows, odds = questions[others], rows[others], odds[others]
    lengths = facts.lengths[rows]
    about = np.minimum(shares[rows] / _ENOUGH_WORDS, 1.0)
    asks = np.where(facts.questions[rows], _ANOTHER_QUESTION + (1 - _ANOTHER_QUESTION) * about, 1.0)
    odds = odds * asks * (1 + about) * lengths / (lengths + facts.lengths.mean())
    best = np.zeros(facts.arrivals.size)
    np.maximum.at(best, questions, odds)
    kept = odds > 0
    questions, rows, odds = questions[kept], rows[kept], odds[kept]
    likeness = likeness[np.searchsorted(asking_rows, questions)]
    return Answers(questions=questions, rows=rows, shares=likeness * odds / best[questions])


def _most(rows: Ints, worth: Floats) -> Ints:
    """Return the rows with the highest worth, ascending; of equal ones, the later."""
    if rows.size <= _MAX:
        return rows
    return np.sort(rows[::-1][np.argsort(-worth[::-1], kind="stable")[:_MAX]])


def _echoes(word_matches: Matches, shares: Floats, facts: MessageFacts, weights: SearchWeights) -> tuple[Ints, Floats]:
    """Return the questions that only repeat the query, and the degree to which each does, in (0, 1].

    Likeness is the share of the query's worth that the message matches, times the share of the message's words that the
    query has; the sender's name counts as one of the words. It counts 0 below `echo_from` and 1 above `echo_to`.
    """
    asking = facts.questions[word_matches.rows]
    counts = np.bincount(word_matches.rows[asking], minlength=facts.arrivals.size)
    rows = np.flatnonzero(counts)
    shared = np.minimum(counts[rows] / np.maximum(facts.lengths[rows] - 1, 1), 1.0)
    likeness = shares[rows] * shared
    likeness = np.minimum((likeness - weights.echo_from) / (weights.echo_to - weights.echo_from), 1.0)
    alike = likeness > 0
    rows, likeness = rows[alike], likeness[alike]
    most = _most(rows, likeness)
    return most, likeness if most is rows else likeness[np.searchsorted(rows, most)]


def _parents(facts: MessageFacts, _: SearchWeights) -> Ints:
    """Return the row of each message's parent; the number of rows if there is none."""
    rows = rows_of(facts, facts.parents)
    return np.where(rows >= 0, rows, facts.arrivals.size)


def _linked(question_rows: Ints, facts: MessageFacts, weights: SearchWeights) -> tuple[Ints, Ints, Floats]:
    """Return questions, the rows whose links lead to them within a few hops, and the probability of those links."""
    parents = once(_parents, facts, weights)
    questions, answers_linked, odds = [question_rows[:0]], [question_rows[:0]], [np.zeros(0)]
    above, roots, odds_above = question_rows, question_rows, np.ones(question_rows.size)
    for _ in range(_HOPS):
        is_above = np.zeros(parents.size + 1, np.bool_)
        is_above[above] = True
        rows = np.flatnonzero(is_above[parents])
        if not rows.size:
            break
        rows = _most(rows, facts.parent_odds[rows])
        place = np.searchsorted(above, parents[rows])
        roots, odds_above, above = roots[place], odds_above[place] * facts.parent_odds[rows], rows
        questions.append(roots)
        answers_linked.append(rows)
        odds.append(odds_above)
    return np.concatenate(questions), np.concatenate(answers_linked), np.concatenate(odds)


def _are_in(values: Ints, few: Ints) -> NDArray[np.bool_]:
    """Return True for values that are among these few, which ascend. `np.isin` prepares for more and takes longer."""
    if not few.size:
        return np.zeros(values.size, np.bool_)
    places = np.searchsorted(few, values)
    places[places == few.size] = 0
    same: NDArray[np.bool_] = few[places] == values
    return same


def _near(
    question_rows: Ints, linked: tuple[Ints, Ints, Floats], facts: MessageFacts, weights: SearchWeights
) -> tuple[Ints, Ints, Floats]:
    """Return questions, the rows right after them, and the probability that these answer; lower if a link points
    elsewhere."""
    size = facts.arrivals.size
    after = question_rows[:, None] + _NEXT
    there = np.minimum(after, size - 1)
    together = np.abs(facts.sent_at[there] - facts.sent_at[question_rows][:, None]) < weights.pause_hours * _HOUR
    places, steps = (together & (after < size)).nonzero()
    questions, rows = question_rows[places], after[places, steps]
    elsewhere = ~_are_in(questions * size + rows, np.sort(linked[0] * size + linked[1]))
    odds = weights.next_answers * weights.next_fades**steps
    return questions, rows, odds * (1 - np.where(elsewhere, facts.parent_odds[rows] ** 2, 0.0))


ALL_RANKED = 1_024
"""Rooms up to this size are ranked entirely; of larger ones the messages that match best, with their neighbours."""
_CENTRES = 256
_SHORTNESS = np.exp(-np.arange(1_024) / 4)
"""By number of words; the store counts up to 1,023."""
_MIN = 0.01
_TINIEST = np.nextafter(0.0, 1.0)
_DIGITS = 12
"""Rounding digits, so that equal evidence gives equal scores in any order of summation."""
_SHARE_BY_WORDS, _SHARE_BY_MEANING = 0.2, 0.3
_NEAR = 0.5
"""From this nearness on a message without the words of the question is found for its meaning."""
_NEAREST_IN_TIME = 3
"""Messages that are shown if none is from the time that alone was asked for."""
_SIGNALS = ("words", "neighbours", "meaning", "answers", "speaker", "voice", "time", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A search hit. `score` in [0, 1] falls along the list. `signals`, each in [0, 1]: `words` (the share of the
    question's worth that the message matches), `neighbours` (the words its neighbours add), `meaning` (the vectors'
    similarity), `answers` (the match of the similar question that it answers), `speaker`, `voice`, `time`, and `kind`,
    the factor of questions and of messages of a few words, 1 for others. `question`: the arrival of that similar
    question, if any. `outside`: the message is from another time than the question asks for."""

    arrival: int
    score: float
    signals: Mapping[str, float]
    reason: str
    question: int | None = None
    outside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signals:
    """One value per row; None if it is 0 for all. `table`: how well each row matches each term. `asked`: the
    row stands shortly after a question by somebody else that has words of the query."""

    table: Floats
    asked: NDArray[np.bool_]
    words: Floats
    neighbours: Floats
    meaning: Floats | None
    answers: Floats | None
    speaker: Floats | None
    voice: Floats | None
    time: Floats | None
    kind: Floats


def rank(
    query: SearchQuery,
    *,
    postings: Postings,
    dense: Sequence[Nearest],
    facts: MessageFacts,
    limit: int,
    only: Ints | None = None,
    weights: SearchWeights = WEIGHTS,
    bare: bool = False,
    neighbours: bool = True,
) -> list[Ranked]:
    """Return the messages that answer a question best, best first, at most `limit`; without `dense`, by words alone.
    `bare`: with their scores alone, without signals, reasons and questions. `neighbours`: also messages that are found
    only for the words of those around them; without them, those that hold the words of a literal query come first.

    `postings` are those of `query.terms`; `dense` has one list for each of `query.embed`; `only` (ascending arrivals)
    restricts the results, not the statistics. If the query asks for nothing but a time, the most informative messages
    come first. Messages that match by neither words nor meaning nor time are left out.
    """
    size = facts.arrivals.size
    if not size or limit < 1:
        return []
    word_matches = matches(query, postings, facts, weights)
    near = nearness(dense, facts) if dense else None
    passed = answers(word_matches, facts, weights)
    if query.only_then:
        rows = _sent_then(query, facts, only, others=0 if bare else _NEAREST_IN_TIME)
    else:
        rows = _candidates(word_matches, near, passed, query, facts, only)
    if not rows.size:
        return []
    passed = passed.among(rows, size)
    signals = _signals(query, word_matches, near, passed, rows, facts, weights)
    nearby = _of(near.nearness, rows) if near else None
    fused = signals.kind if query.only_then else _fused(signals, passed, nearby, weights)
    fused = fused.round(_DIGITS)
    arrivals = _of(facts.arrivals, rows)
    if only is not None:
        fused = np.where(np.isin(arrivals, only), fused, 0.0)
    if not (neighbours or query.only_then):
        fused = _by_themselves(fused, query, signals, nearby, postings)
    order = _best(fused, limit)
    if not order.size:
        return []
    scores = _scores(order, fused, signals, least=1.0 if query.only_then and _is_then(signals) else _MIN)
    if bare:
        return [
            Ranked(arrival=arrival, score=score, signals={}, reason="")
            for arrival, score in zip(arrivals[order].tolist(), scores, strict=True)
        ]
    best = passed.best()
    questions = [best.get(place) for place in order.tolist()]
    talks = _talks(order, rows, questions, signals.words, facts)
    return _listed(order, scores, signals, query, postings, _of(facts.sent_at, rows), arrivals, questions, talks)


def _talks(
    order: Ints, rows: Ints, questions: Sequence[int | None], words: Floats, facts: MessageFacts
) -> Sequence[tuple[bool, bool]]:
    """Return for each hit if it stands in one talk with the question that it answers, and with a message that has words
    of the query: both are of one thread, or sent within an hour. `questions`: places in `rows`, as `order` has them."""
    hits, size = rows[order], facts.arrivals.size
    has_words = np.zeros(size, np.bool_)
    has_words[rows] = words > 0

    def together(others: Ints, its: Ints) -> Any:
        soon = np.abs(facts.sent_at[others] - facts.sent_at[its]) <= _HOUR
        return soon | (facts.threads[others] == facts.threads[its])

    asked = rows[[place if question is None else question for place, question in zip(order, questions, strict=True)]]
    beside = np.clip(hits[:, None] + np.arange(-REACH, REACH + 1), 0, size - 1)
    held = has_words[beside] & (beside != hits[:, None]) & together(beside, hits[:, None])
    return list(zip(together(asked, hits).tolist(), held.any(axis=1).tolist(), strict=True))


def _is_then(signals: _Signals) -> bool:
    """Return True if a message is from the times asked for."""
    return signals.time is not None and bool((signals.time >= 1).any())


def _by_themselves(
    fused: Floats, query: SearchQuery, signals: _Signals, near: Floats | None, postings: Postings
) -> Floats:
    """Return the scores with 0 for messages that are found only for those around them. If some hold all words of a
    literal query, these come first, and others need one of the words."""
    if query.literal:
        holds = np.array([held & (fused > 0) for held in _holding(query, postings, signals.table)])
        whole = holds.all(axis=0)
        if whole.any():
            return np.where(holds.any(axis=0), fused + whole * fused.max(), 0.0)
    own = signals.asked | (signals.words > 0)
    if signals.answers is not None:
        own |= signals.answers > 0
    if near is not None:
        own |= near >= _NEAR
    return np.where(own, fused, 0.0)


def _holding(query: SearchQuery, postings: Postings, table: Floats) -> list[NDArray[np.bool_]]:
    """Return for each word of the query which rows of a table of its terms hold it."""
    column = {term: place for place, term in enumerate(postings.words)}
    places = [[column[term] for term in word.terms if term in column] for word in query.words]
    return [np.logical_and((table[:, its] > 0).all(axis=1), bool(its)) for its in places]


def before_fall(ranked: list[Ranked], query: SearchQuery, *, by_meaning: bool) -> list[Ranked]:
    """Return the hits before the score falls off; all if the query asks for nothing but a time."""
    return ranked if query.only_then else ranked[: near_best([hit.score for hit in ranked], by_meaning=by_meaning)]


def near_best(scores: Sequence[float], *, by_meaning: bool) -> int:
    """Return how many of these scores, highest first, are at least a share of the best one. The share is larger if
    meaning counts, as it gives something to each message."""
    share = _SHARE_BY_MEANING if by_meaning else _SHARE_BY_WORDS
    return sum(score >= share * scores[0] for score in scores)


def _sent_then(query: SearchQuery, facts: MessageFacts, only: Ints | None, *, others: int) -> Ints:
    """Return the rows of messages from the times asked for, of `only` if given; if there are none, those of `others`
    that are nearest."""
    rows = np.arange(facts.arrivals.size) if only is None else np.flatnonzero(np.isin(facts.arrivals, only))
    at = facts.sent_at[rows]
    away = [np.maximum(to_micros(span.start) - at, at - to_micros(span.end) + 1) for span in query.spans]
    distance = np.maximum(reduce(np.minimum, away), 0)
    then = rows[distance == 0]
    return then if then.size else np.sort(rows[np.argsort(distance, kind="stable")[:others]])


def _best(values: Floats, limit: int) -> Ints:
    """Return the indices of the highest values above 0, at most `limit`, highest first; ties in order."""
    positive = values[values > 0]  # `np.partition` is slow where many values are equal, as those without a match are
    least = np.partition(positive, positive.size - limit)[positive.size - limit] if limit < positive.size else _TINIEST
    places = np.flatnonzero(values >= least)
    return places[(-values[places]).argsort(kind="stable")][:limit]


def _candidates(
    word_matches: Matches,
    near: Near | None,
    passed: Answers,
    query: SearchQuery,
    facts: MessageFacts,
    only: Ints | None,
) -> Ints:
    size = facts.arrivals.size
    if size <= ALL_RANKED:
        return np.arange(size)
    scores = word_matches.scores(size)
    best = np.argpartition(-scores, _CENTRES)[:_CENTRES]
    centres = [best[scores[best] > 0], passed.questions, passed.rows]
    if near is not None:
        centres.append(np.flatnonzero(near.nearness))
    fits = np.arange(size)
    if only is not None:
        fits = rows_of(facts, only)
        fits = fits[fits >= 0]
        # Results and their neighbours have separate centres, so that neither crowds out the other.
        near_fits = around(fits, size)
        centres += [fits[_best(scores[fits], _CENTRES)], near_fits[_best(scores[near_fits], _CENTRES)]]
    if query.spans:
        inside = fits[closeness(query.spans, facts.sent_at[fits].astype(float)) >= 1]
        best = _best(scores[inside], _CENTRES)
        others = np.flatnonzero(scores[inside] <= 0)[: _CENTRES - best.size]
        centres += [inside[best], inside[others]]
    return around(np.concatenate(centres), size)


def _signals(
    query: SearchQuery,
    word_matches: Matches,
    near: Near | None,
    passed: Answers,
    rows: Ints,
    facts: MessageFacts,
    weights: SearchWeights,
) -> _Signals:
    size = facts.arrivals.size
    table = word_matches.table(rows, size)
    total = max(float(word_matches.worth.sum()), 1e-9)
    own = table @ word_matches.worth
    words = own / total
    pairs = once(_all_pairs, facts, weights) if rows.size == size else _pairs(rows, facts, weights)
    return _Signals(
        table=table,
        asked=_asked(own, pairs, rows, facts),
        words=words,
        neighbours=gained(table, word_matches.worth, own, pairs) / total,
        meaning=_of(near.similarity, rows) if near else None,
        answers=passed.passed(words) if passed.rows.size else None,
        speaker=_are_of(_of(facts.senders, rows), query.people, len(facts.sender_ids)) if query.people else None,
        voice=_of(_voice(query, facts), rows) if query.voice else None,
        time=closeness(query.spans, _of(facts.sent_at, rows).astype(float)) if query.spans else None,
        kind=_of(once(_kinds, facts, weights), rows),
    )


def _asked(own: Floats, pairs: Sequence[_Pairs], rows: Ints, facts: MessageFacts) -> NDArray[np.bool_]:
    """Return which rows stand shortly after a question by somebody else that has words of the query."""
    asks, who = (own > 0) & facts.questions[rows], facts.senders[rows]
    asked = np.zeros(own.size, np.bool_)
    for later, earlier, _, forth in pairs:
        asked[later] |= asks[earlier] & (forth > 0) & (who[later] != who[earlier])
    return asked


def _of(column: Column, rows: Ints) -> Column:
    """Return the values of these rows, which ascend; the column itself if they are all."""
    return column if rows.size == column.size else column[rows]


def _are_of(senders: Ints, people: Sequence[int], known: int) -> Floats:
    """Return 1 for messages of these senders, of as many as are known."""
    named = np.zeros(known)
    named[list(people)] = 1.0
    return named[senders]


def _voice(query: SearchQuery, facts: MessageFacts) -> Floats:
    """Return 1 for messages of the side meant, in a room with an agent."""
    agents = agent_messages(facts)
    wanted = agents if query.voice == "agent" else ~agents
    return wanted.astype(float) if agents.any() else np.zeros(agents.size)


def _kinds(facts: MessageFacts, w: SearchWeights) -> Floats:
    """Lower questions and messages of a few words."""
    shortness = _SHORTNESS[np.minimum(facts.lengths, _SHORTNESS.size - 1)]
    kinds: Floats = (1 - w.question * facts.questions) * (1 - w.short * shortness)
    return kinds


def _fused(signals: _Signals, passed: Answers, near: Floats | None, w: SearchWeights) -> Floats:
    words = signals.words + signals.neighbours
    best = float(words.max())
    fused = words / best if best > 0 else words
    if near is not None and near.any():
        fused = (1 - w.meaning) * fused + w.meaning * near
    if signals.answers is not None:
        fused = np.maximum(fused, w.answer * passed.passed(fused))
    weighed = ((w.speaker, signals.speaker), (w.voice, signals.voice), (w.time, signals.time))
    factors = [1 + weight * signal for weight, signal in weighed if signal is not None]
    if factors:
        fused = fused * reduce(np.multiply, factors)
    fused = fused * signals.kind
    return fused if signals.time is None else fused + w.time_alone * signals.time


def _scores(order: Ints, fused: Floats, signals: _Signals, *, least: float) -> list[float]:
    """Return the scores of the rows in this order: the first is the best of its kinds of evidence, at least `least`;
    the others fall with the fused score."""
    kinds = (signals.words, signals.neighbours, signals.meaning, signals.answers)
    words, neighbours, meaning, answering = (_shown(signal, order[:1])[0] for signal in kinds)
    evidence = min(1.0, max(words + neighbours, meaning, answering, least))
    scores: list[float] = (evidence * fused[order] / fused[order[0]]).tolist()
    return scores


def _listed(
    order: Ints,
    scores: Sequence[float],
    signals: _Signals,
    query: SearchQuery,
    postings: Postings,
    sent_at: Ints,
    arrivals: Ints,
    questions: Sequence[int | None],
    talks: Sequence[tuple[bool, bool]],
) -> list[Ranked]:
    """Return the rows in this order, each with its score and the question that it answers."""
    columns = [_shown(getattr(signals, name), order) for name in _SIGNALS]
    holds = _holding(query, postings, signals.table[order])
    listed = []
    for place, (row, question) in enumerate(zip(order.tolist(), questions, strict=True)):
        its = {name: column[place] for name, column in zip(_SIGNALS, columns, strict=True)}
        held = [
            word.text
            for word, rows in zip(query.words, holds, strict=True)
            if rows[place] and not (word.is_name and its["speaker"])
        ]
        listed.append(
            Ranked(
                arrival=int(arrivals[row]),
                score=scores[place],
                signals=its,
                reason=reason(query, its, held, from_micros(int(sent_at[row])), talks[place]),
                question=None if question is None else int(arrivals[question]),
                outside=bool(query.begun) and its["time"] < 1,
            )
        )
    return listed


def _shown(signal: Floats | None, order: Ints) -> list[float]:
    """Return the values of a signal in this order, at most 1."""
    return [0.0] * order.size if signal is None else [min(value, 1.0) for value in signal[order].tolist()]
