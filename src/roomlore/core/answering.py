"""Questions that only repeat what is asked, and who answered them.

Whoever searches with a question wants the answer, not those who asked the same before. A message is an echo where it is
a question and shares most of its words with the query. Its relevance goes to the messages that answer it: those that
the links name, and the next few by others. Likelier and longer ones get more, and the best of them comes before the
echo.
"""

from dataclasses import dataclass

import numpy as np

from roomlore.core.lexical import Matches
from roomlore.core.search import Floats, Ints, RoomFacts
from roomlore.core.search_weights import SearchWeights

_HOPS = 3
_MOST = 256
"""Echoes that are looked at, and what is linked to them at each hop: somebody may ask the same ten thousand times."""
_NEXT = np.arange(1, 6)
"""How many of the messages right after an echo may answer it, whatever their links say."""
_HOUR = 3_600_000_000
_ANOTHER_QUESTION = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Answers to echoes, one line a pair: `questions` and `rows` (places in the room's facts), and the share of the
    question's relevance that the answer gets, in [0, 1]."""

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
        """Return what each row gets of its questions' relevance, the best where it answers several."""
        gets = np.zeros(relevance.size)
        np.maximum.at(gets, self.rows, relevance[self.questions] * self.shares)
        return gets

    def best(self) -> dict[int, int]:
        """Return of each row the question that it answers best."""
        order = np.argsort(self.shares, kind="stable")
        return dict(zip(self.rows[order].tolist(), self.questions[order].tolist(), strict=True))


_NONE = np.zeros(0, np.int64)
NO_ANSWERS = Answers(questions=_NONE, rows=_NONE, shares=np.zeros(0))


def answers(found: Matches, facts: RoomFacts, weights: SearchWeights) -> Answers:
    """Return what answers the room's echoes of a query with these matches."""
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
    odds = odds * np.where(facts.questions[rows], _ANOTHER_QUESTION, 1.0) * lengths / (lengths + facts.lengths.mean())
    best = np.zeros(facts.arrivals.size)
    np.maximum.at(best, questions, odds)
    kept = odds > 0
    questions, rows, odds = questions[kept], rows[kept], odds[kept]
    return Answers(questions=questions, rows=rows, shares=echo[questions] * odds / best[questions])


def _most(rows: Ints, worth: Floats) -> Ints:
    """Return, ascending, the rows that are worth most, the later ones among equals."""
    if rows.size <= _MOST:
        return rows
    return np.sort(rows[::-1][np.argsort(-worth[rows[::-1]], kind="stable")[:_MOST]])


def _echoes(found: Matches, facts: RoomFacts, weights: SearchWeights) -> Floats:
    """Return how far each message only repeats the query, in [0, 1].

    Likeness is the share of the query's worth that stands in the message, times the share of the message's words that
    the query has; the sender's name is one of the words of a message. Below `echo_from` nothing counts, above
    `echo_to` all.
    """
    size = facts.arrivals.size
    worth = np.bincount(found.rows, found.worth[found.terms], minlength=size) / max(float(found.worth.sum()), 1e-9)
    shared = np.bincount(found.rows, minlength=size) / np.maximum(facts.lengths - 1, 1)
    likeness = worth * np.minimum(shared, 1.0) * facts.questions
    likeness -= weights.echo_from
    likeness /= weights.echo_to - weights.echo_from
    return np.clip(likeness, 0.0, 1.0, out=likeness)


def _linked(asked: Ints, facts: RoomFacts) -> tuple[Ints, Ints, Floats]:
    """Return questions, the rows whose links lead to them within a few hops, and how likely those links are."""
    questions, found, odds = [asked[:0]], [asked[:0]], [np.zeros(0)]
    above, roots, odds_above = asked, asked, np.ones(asked.size)
    for _ in range(_HOPS):
        rows = _most(np.flatnonzero(np.isin(facts.parents, facts.arrivals[above])), facts.parent_odds)
        if not rows.size:
            break
        place = np.searchsorted(facts.arrivals[above], facts.parents[rows])
        roots, odds_above, above = roots[place], odds_above[place] * facts.parent_odds[rows], rows
        questions.append(roots)
        found.append(rows)
        odds.append(odds_above)
    return np.concatenate(questions), np.concatenate(found), np.concatenate(odds)


def _near(
    asked: Ints, linked: tuple[Ints, Ints, Floats], facts: RoomFacts, weights: SearchWeights
) -> tuple[Ints, Ints, Floats]:
    """Return questions, the rows right after them, and how likely these answer: less where a link says otherwise."""
    size = facts.arrivals.size
    questions, steps = np.repeat(asked, _NEXT.size), np.tile(_NEXT, asked.size)
    rows = questions + steps
    there = rows < size
    questions, rows, steps = questions[there], rows[there], steps[there]
    together = np.abs(facts.sent_at[rows] - facts.sent_at[questions]) < weights.pause_hours * _HOUR
    questions, rows, steps = questions[together], rows[together], steps[together]
    elsewhere = ~np.isin(questions * size + rows, linked[0] * size + linked[1])
    odds = weights.next_answers * weights.next_fades ** (steps - 1)
    return questions, rows, odds * (1 - np.where(elsewhere, facts.parent_odds[rows] ** 2, 0.0))
