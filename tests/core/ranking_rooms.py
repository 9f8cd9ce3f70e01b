"""Small rooms as ranking sees them: postings and facts made in memory from lines of chat."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np

from roomlore.core.mentions import naming_of
from roomlore.core.models import Role, Room
from roomlore.core.search.hits import ROLES, MessageFacts, Nearest, Postings
from roomlore.core.search.query import read_query
from roomlore.core.search.ranking import rank
from roomlore.core.text import is_question, terms

BEGIN = datetime(2024, 5, 1, 12, tzinfo=UTC)


def nearest(similarities):
    """From {arrival: similarity}."""
    found = sorted(similarities.items(), key=lambda one: (-one[1], one[0]))
    return Nearest(
        numbers=np.array([number for number, _ in found], np.int64),
        similarities=np.array([similarity for _, similarity in found], np.float64),
    )


def _ints(values):
    return np.array(list(values), np.int64)


class MadeRoom:
    """Lines are (sender, text) or (sender, text, minutes since the beginning); arrivals count from 1, left ones out
    are deleted. `links`: from arrival to (parent's arrival, probability)."""

    def __init__(self, *lines, roles=None, deleted=(), links=None):
        kept = [(at, *line) for at, line in enumerate(lines, 1) if at not in deleted]
        self.counts = {at: Counter(terms(sender) + terms(text)) for at, sender, text, *_ in kept}
        self.lengths = {at: min(count.total(), 1023) for at, count in self.counts.items()}
        people = list(dict.fromkeys(line[1] for line in kept))
        times = [BEGIN + timedelta(minutes=line[3] if len(line) > 3 else line[0]) for line in kept]
        self.facts = MessageFacts(
            revision=1,
            sender_ids=tuple(people),
            sender_names=tuple(people),
            naming=naming_of(people),
            arrivals=_ints(self.counts),
            sent_at=_ints(time.timestamp() * 1_000_000 for time in times),
            senders=_ints(people.index(line[1]) for line in kept),
            roles=_ints(ROLES.index((roles or {}).get(line[1], Role.USER)) for line in kept),
            lengths=_ints(self.lengths.values()),
            questions=np.array([is_question(line[2]) for line in kept], np.bool_),
            parents=_ints((links or {}).get(line[0], (0, 0))[0] for line in kept),
            parent_odds=np.array([(links or {}).get(line[0], (0, 0.0))[1] for line in kept], np.float64),
            threads=_ints((links or {}).get(at, (at, 0))[0] for at in self.counts),
        )
        self.room = Room(
            tenant="t", room_id="r", created_at=BEGIN, messages=len(kept), words=sum(self.lengths.values())
        )

    def postings(self, words):
        rows = [[(at, count[word]) for at, count in self.counts.items() if word in count] for word in words]
        flat = np.array([row for found in rows for row in found], np.int64).reshape(-1, 2)
        ends = np.cumsum([len(found) for found in rows], dtype=np.int64)
        return Postings(room=self.room, words=tuple(words), ends=ends, arrivals=flat[:, 0], counts=flat[:, 1])

    def search(self, text, *, dense=(), spans=(), limit=50, only=None):
        query = read_query(text, facts=self.facts, spans=spans)
        only = None if only is None else np.array(only, np.int64)
        return rank(
            query,
            postings=self.postings(query.terms),
            dense=[nearest(dense)] if dense else [],
            facts=self.facts,
            limit=limit,
            only=only,
        )

    def found(self, text, **options):
        return [one.arrival for one in self.search(text, **options)]
