"""Facts renewed row by row are the facts read anew."""

from datetime import UTC, datetime
from time import thread_time
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roomlore.core.mentions import naming_of
from roomlore.core.search.facts import chosen, facts_of, places, renewed, to_micros
from roomlore.core.search.hits import ROLES, FactRows
from roomlore.core.text import terms

COLUMNS = ("arrivals", "sent_at", "roles", "lengths", "questions", "parents", "parent_odds", "threads")


class Line(NamedTuple):
    arrival: int
    sender: str = "ann"
    name: str = ""
    deleted: bool = False
    at: int = 0


def rows(*lines: Line) -> FactRows:
    arrivals = np.array([line.arrival for line in lines], np.int64)
    return FactRows(
        arrivals=arrivals,
        sent_at=np.array([line.at or line.arrival * 1_000_000 for line in lines], np.int64),
        sender_ids=[line.sender for line in lines],
        sender_names=[line.name for line in lines],
        roles=np.array([ROLES.index("assistant" if line.sender == "bot" else "user") for line in lines], np.int64),
        lengths=arrivals % 7,
        questions=arrivals % 2 == 0,
        parents=np.maximum(0, arrivals - 1),
        parent_odds=np.full(len(lines), 0.5),
        threads=np.ones(len(lines), np.int64),
        deleted=np.array([line.deleted for line in lines], np.bool_),
    )


people = st.sampled_from(["ann", "bob", "bot", "小明"])


@settings(max_examples=60)
@given(st.lists(st.lists(st.tuples(st.integers(1, 12), people, st.booleans()), max_size=6), max_size=6))
def test_any_series_of_changes_gives_what_reading_all_gives(batches):
    standing: dict[int, Line] = {}
    facts = facts_of(rows(), revision=0)
    for revision, batch in enumerate(batches, start=1):
        lines = {arrival: Line(arrival, sender, deleted=gone) for arrival, sender, gone in batch}
        standing |= lines
        facts = renewed(facts, rows(*(lines[arrival] for arrival in sorted(lines))), revision=revision)
    alive = [standing[arrival] for arrival in sorted(standing) if not standing[arrival].deleted]
    anew = facts_of(rows(*alive), revision=len(batches))
    assert facts.revision == anew.revision
    for name in COLUMNS:
        assert getattr(facts, name).tolist() == getattr(anew, name).tolist()
    assert [facts.sender_ids[code] for code in facts.senders] == [one.sender for one in alive]


def test_the_last_known_name_of_a_sender_counts():
    facts = facts_of(rows(Line(1, name="Anna"), Line(2), Line(3, "bob")), revision=1)
    assert dict(zip(facts.sender_ids, facts.sender_names, strict=True)) == {"ann": "Anna", "bob": ""}
    facts = renewed(facts, rows(Line(4, name="Anne")), revision=2)
    assert facts.sender_names[0] == "Anne"


names = st.sampled_from(["", "Ann Lee", "Bob Lee", "小明", "明", "helpbot", "Ann", "of"])


@settings(max_examples=60)
@given(st.lists(st.lists(st.tuples(st.sampled_from("abcd"), names), max_size=4), max_size=5))
def test_the_naming_renewed_is_the_naming_made_anew(batches):
    facts = facts_of(rows(), revision=0)
    arrival = 0
    for batch in batches:
        lines = [Line(arrival + at, sender, name) for at, (sender, name) in enumerate(batch, start=1)]
        arrival += len(lines)
        facts = renewed(facts, rows(*lines), revision=facts.revision + 1)
    called = [name or sender for sender, name in zip(facts.sender_ids, facts.sender_names, strict=True)]
    assert facts.naming == naming_of(called)
    assert facts.naming.agents == tuple(place for place, name in enumerate(called) if name == "helpbot")
    for term in ("ann", "lee", "小明", "helpbot", "b", "明"):
        holders = [place for place, name in enumerate(called) if term in terms(name) and term != "明"]
        assert facts.naming.owner(term) == (holders[0] if len(holders) == 1 else None)


def test_one_new_sender_in_a_room_of_very_many_is_soon_known():
    facts = facts_of(rows(*(Line(at, f"s{at}", f"Person Number {at}") for at in range(1, 20_001))), revision=1)
    late = rows(Line(20_001, "new", "Somebody New"))
    started = thread_time()
    later = renewed(facts, late, revision=2)
    assert thread_time() - started < 0.05
    assert (later.naming.owner("somebodi"), facts.naming.owner("somebodi")) == (20_000, None)
    assert later.naming.owner("person") is None


def test_places_of_arrivals_and_of_those_not_there():
    facts = facts_of(rows(Line(2), Line(5), Line(9)), revision=1)
    assert places(facts, np.array([9, 1, 5, 7, 12])).tolist() == [2, -1, 1, -1, -1]
    assert places(facts_of(rows(), revision=0), np.array([1])).tolist() == [-1]


def test_filters_narrow_by_sender_and_time():
    facts = facts_of(rows(Line(1), Line(2, "bob"), Line(3)), revision=1)
    at = datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)
    assert chosen(facts, senders=None, since=None, until=None) is None
    assert chosen(facts, senders=["ann"], since=None, until=None).tolist() == [1, 3]
    assert chosen(facts, senders=None, since=at, until=None).tolist() == [2, 3]
    assert chosen(facts, senders=None, since=None, until=at).tolist() == [1]
    assert chosen(facts, senders=[], since=None, until=None).tolist() == []
    assert chosen(facts, senders=["nobody"], since=None, until=None).tolist() == []


def test_many_senders_in_a_room_of_many_are_chosen_in_time():
    facts = facts_of(rows(*(Line(number, f"s{number}") for number in range(1, 5001))), revision=1)
    started = thread_time()
    assert chosen(facts, senders=facts.sender_ids[::2], since=None, until=None).size == 2500
    assert thread_time() - started < 0.1


def test_a_naive_time_is_utc():
    assert to_micros(datetime(1970, 1, 1, 0, 0, 1)) == 1_000_000
    assert facts_of(rows(Line(1, at=-5)), revision=1).sent_at.tolist() == [-5]
