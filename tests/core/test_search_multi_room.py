"""Rooms ranked as one: one room alone is ranked as always, and hidden messages change nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.audience import ALWAYS, Window
from roomlore.core.models import Room
from roomlore.core.search.facts import (
    MultiRoom,
    RoomPart,
    allowed,
    facts_of,
    from_micros,
    is_whole,
    last_of_senders,
    part_of,
    to_micros,
)
from roomlore.core.search.hits import FactRows, MessageFacts, Nearest, Postings
from roomlore.core.search.query import read_query
from roomlore.core.search.ranking import rank

START = datetime(2024, 5, 6, 9, tzinfo=UTC)
WORDS = ("deploy", "script", "tea", "部署")
QUERY = "who mended the deploy script? 部署"
SENDERS = ("ann", "bo", "小李")


messages = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.sampled_from(SENDERS),
        st.lists(st.sampled_from(WORDS), max_size=4).map(tuple),
        st.booleans(),
        st.integers(0, 4),
    ),
    max_size=12,
)
Said = tuple[int, str, tuple[str, ...], bool, int]


def room(said: Sequence[Said]) -> tuple[MessageFacts, Postings]:
    """The facts of a room in which this was said, and the postings of the query."""
    size = len(said)
    arrivals = np.arange(1, size + 1)
    parents = np.array([max(place - back, 0) for place, (*_, back) in zip(arrivals, said, strict=True)], np.int64)
    facts = facts_of(
        FactRows(
            arrivals=arrivals,
            sent_at=np.array([to_micros(START + timedelta(hours=hour)) for hour, *_ in said], np.int64),
            sender_ids=[who for _, who, *_ in said],
            sender_names=["" for _ in said],
            roles=np.zeros(size, np.int64),
            lengths=np.array([len(words) + 1 for _, _, words, *_ in said], np.int64),
            questions=np.array([asks for *_, asks, _ in said], np.bool_),
            parents=np.where(parents == arrivals, 0, parents),
            parent_odds=np.where(parents == arrivals, 0.0, 0.6),
            threads=np.maximum(arrivals - 3, 1),
            deleted=np.zeros(size, np.bool_),
        ),
        revision=1,
    )
    terms = read_query(QUERY, facts=facts).terms
    rows = [
        [(place, words.count(term)) for place, (_, _, words, *_) in enumerate(said, 1) if term in words]
        for term in terms
    ]
    flat = np.array([row for its in rows for row in its], np.int64).reshape(-1, 2)
    own = Room(tenant="t", room_id="r", messages=size, words=int(facts.lengths.sum()), created_at=START)
    ends = np.cumsum([len(its) for its in rows]).astype(np.int64)
    return facts, Postings(room=own, words=terms, ends=ends, arrivals=flat[:, 0], counts=flat[:, 1])


def ranked(parts: Sequence[RoomPart], postings: Sequence[Postings]) -> list[tuple[str, int, float, dict[str, float]]]:
    rooms = MultiRoom(parts)
    query = read_query(QUERY, facts=rooms.facts)
    found = rank(
        query,
        postings=rooms.postings(query.terms, list(postings)),
        dense=[],
        facts=rooms.facts,
        limit=50,
        only=rooms.among(None),
    )
    places = [rooms.place(one.arrival) for one in found]
    return [
        (parts[at].room_id, arrival, one.score, dict(one.signals))
        for (at, arrival), one in zip(places, found, strict=True)
    ]


@given(messages)
def test_one_room_is_ranked_as_it_is_alone(said: list[Said]) -> None:
    facts, postings = room(said)
    alone = rank(read_query(QUERY, facts=facts), postings=postings, dense=[], facts=facts, limit=50)
    together = ranked([RoomPart("r", facts)], [postings])
    assert sorted(arrival for _, arrival, *_ in together) == sorted(one.arrival for one in alone)
    words = {one.arrival: one.signals["words"] for one in alone}
    assert all(abs(signals["words"] - words[arrival]) < 1e-9 for _, arrival, _, signals in together)


@given(messages)
def test_scores_follow_from_the_parts_that_are_shown(said: list[Said]) -> None:
    """Of hits that answer no other question: their scores are as the products of their parts."""
    facts, postings = room(said)
    found = rank(read_query(QUERY, facts=facts), postings=postings, dense=[], facts=facts, limit=50)
    worth = []
    for one in found:
        shown = one.signals
        if one.question is None and shown["neighbours"] < 1:
            boosts = (1 + shown["speaker"]) * (1 + shown["voice"]) * (1 + shown["time"])
            worth.append((one.score, (shown["words"] + shown["neighbours"]) * boosts * shown["kind"]))
    assert all(abs(score * worth[0][1] - worth[0][0] * product) < 1e-9 for score, product in worth)


@given(messages, messages, st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted))
def test_hidden_messages_change_nothing(said: list[Said], other: list[Said], bounds: list[int]) -> None:
    """The same with those that are hidden, and as if they had never been said."""
    start, end = (START + timedelta(hours=hour) for hour in bounds)
    windows = (Window(start, end),)
    seen = [place for place, (hour, *_) in enumerate(said, 1) if bounds[0] <= hour <= bounds[1]]
    both = []
    for some in (said, [said[place - 1] for place in seen]):
        facts, postings = room(some)
        part = part_of("r", facts, allowed(facts, windows, {}), {})
        both.append(ranked([part, RoomPart("open", room(other)[0])], [postings, room(other)[1]]))
    renumbered = [
        (name, seen.index(arrival) + 1 if name == "r" else arrival, *rest) for name, arrival, *rest in both[0]
    ]
    assert renumbered == both[1]


@given(messages, messages)
def test_messages_of_two_rooms_are_no_neighbours(one: list[Said], other: list[Said]) -> None:
    """A room that says no word of the query gains nothing from the room before it."""
    silent = [(hour, who, (), False, back) for hour, who, _, _, back in other]
    (first, found), (second, none) = room(one), room(silent)
    assert {name for name, *_ in ranked([RoomPart("a", first), RoomPart("b", second)], [found, none])} <= {"a"}


@given(messages, st.lists(st.integers(1, 12), max_size=3, unique=True), st.integers(0, 30))
def test_an_edit_outside_of_the_windows_hides(said: list[Said], edited: list[int], hour: int) -> None:
    facts, _ = room(said)
    window = Window(START, START + timedelta(hours=hour))
    sent = dict(zip(facts.arrivals.tolist(), map(from_micros, facts.sent_at.tolist()), strict=True))
    after = window.end + timedelta(seconds=1)
    late = {one: Window(min(sent.get(one, START), after), max(sent.get(one, START), after)) for one in edited}
    kept = allowed(facts, [window], late).tolist()
    assert not set(kept) & set(edited)
    assert set(kept) == {
        arrival
        for arrival, at in zip(facts.arrivals.tolist(), facts.sent_at.tolist(), strict=True)
        if arrival not in late and window.start <= from_micros(at) <= window.end
    }
    assert allowed(facts, ALWAYS, late).tolist() == facts.arrivals.tolist()
    two = [window, Window(after, after + timedelta(days=400))]
    assert not {one for one in edited if sent.get(one, after) <= window.end} & set(allowed(facts, two, late).tolist())
    assert is_whole(ALWAYS)
    assert not is_whole([window])


@given(messages, messages)
def test_numbers_lead_back_to_room_and_arrival(one: list[Said], other: list[Said]) -> None:
    parts = [RoomPart("a", room(one)[0]), RoomPart("b", room(other)[0])]
    rooms = MultiRoom(parts)
    assert rooms.numbers.size == len(one) + len(other)
    for at, part in enumerate(parts):
        numbers = rooms.numbered(at, part.facts.arrivals)
        assert [rooms.place(number) for number in numbers.tolist()] == [(at, one) for one in part.facts.arrivals]
        assert rooms.within(at, rooms.numbers) is None
        assert rooms.within(at, numbers[:1]) is None or rooms.within(at, numbers[:1]).tolist() == [1]  # type: ignore[union-attr]
    assert rooms.facts.arrivals.tolist() == list(range(1, rooms.facts.arrivals.size + 1))


def test_the_nearest_of_all_rooms_and_the_names_of_what_is_shown() -> None:
    said: list[Said] = [(1, "ann", (), False, 0), (2, "bo", (), False, 0), (3, "ann", (), False, 0)]
    facts, _ = room(said)
    assert last_of_senders(facts, np.array([1, 2])) == [1, 2]
    assert last_of_senders(facts, facts.arrivals) == [3, 2]
    part = part_of("b", facts, np.array([2, 3]), {"ann": "Ann"})
    assert dict(zip(part.facts.sender_ids, part.facts.sender_names, strict=True)) == {"bo": "", "ann": "Ann"}
    rooms = MultiRoom([RoomPart("a", facts), part])
    near = [
        [Nearest(numbers=np.array([3, 9]), similarities=np.array([0.7, 0.6]))],
        [Nearest(numbers=np.array([2, 1]), similarities=np.array([0.8, 0.75]))],
    ]
    (found,) = rooms.nearest(near)
    assert [rooms.place(number) for number in found.numbers.tolist()] == [(1, 2), (0, 3)]
    assert found.similarities.tolist() == [0.8, 0.7]
    assert MultiRoom([]).nearest([]) == []
