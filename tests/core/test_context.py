"""The strategies: what is chosen, in which order, and why."""

import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from relevance_rooms import BEGIN, entry

from roomlore.core.context import (
    Context,
    ContextOptions,
    choose_recent,
    choose_threaded,
    choose_weighted,
    threaded_picks,
    weighted_pool,
    within_tokens,
)
from roomlore.core.errors import InvalidInput
from roomlore.core.models import Candidate, Link, LinkKind
from roomlore.core.relevance import RelevanceScorer, RoomView, Weights
from roomlore_testkit import builders
from roomlore_testkit.case_table import all_cases

OPTIONS = ContextOptions()


def arrivals(candidates):
    return [candidate.message.arrival for candidate in candidates]


def weighted(target, pool, options=OPTIONS):
    scorer = RelevanceScorer(options.weights, options.half_life_minutes)
    return choose_weighted(target, pool, scorer, RoomView(target=target, pool=pool), options)


def threaded(target, pool, chosen, options=OPTIONS):
    view = RoomView(target=target, pool=pool)
    picks = threaded_picks(target.link, chosen, options.max_context_messages)
    return choose_threaded(view, picks, RelevanceScorer())


def guess(parent, probability=0.7, kind=LinkKind.GUESS):
    return Link(kind=kind, thread=1, parent=parent, parent_probability=probability, new_probability=1 - probability)


BAD_VALUES = [
    ("strategy", "magic", "one of threaded, weighted, recent"),
    ("strategy", ["threaded"], "one of threaded, weighted, recent"),
    ("max_context_tokens", 0, "a whole number from 1 to 1000000"),
    ("max_context_tokens", 1_000_001, "a whole number from 1 to 1000000"),
    ("max_context_tokens", True, "a whole number from 1 to 1000000"),
    ("max_context_messages", 0, "a whole number from 1 to 200"),
    ("max_context_messages", 2.5, "a whole number from 1 to 200"),
    ("max_context_messages", True, "a whole number from 1 to 200"),
    ("recent_messages", "10", "a whole number from 1 to 200"),
    ("relevance_threshold", 1.01, "a number from 0 to 1"),
    ("relevance_threshold", float("nan"), "a number from 0 to 1"),
    ("time_window_hours", 0, "a number above 0 and up to 8760"),
    ("half_life_minutes", -3, "a number above 0 and up to 525600"),
    ("candidate_limit", 401, "a whole number from 1 to 400"),
    ("chain_limit", -1, "a whole number from 0 to 100"),
    ("enable_intelligent_memory", "yes", "true or false"),
    ("reply_chain_weight", -1, "a number from 0 up"),
]


class TestOptions:
    def test_the_defaults_are_those_of_the_specification(self):
        assert dataclasses.asdict(OPTIONS) == {
            "strategy": "threaded",
            "enable_intelligent_memory": True,
            "fallback_on_error": True,
            "context_recall": True,
            "max_context_messages": 20,
            "min_context_messages": 8,
            "max_context_tokens": None,
            "recent_messages": 10,
            "time_window_hours": 24,
            "relevance_threshold": 0.3,
            "weights": {
                "reply_chain": 0.40,
                "user_continuity": 0.15,
                "time_decay": 0.20,
                "mention_relation": 0.15,
                "keyword_overlap": 0.10,
            },
            "half_life_minutes": 10,
            "candidate_limit": 50,
            "chain_limit": 15,
            "context_build_timeout_seconds": 5.0,
            "strategies": None,
        }

    def test_a_room_may_have_its_own(self):
        found = OPTIONS.overridden({"strategy": "weighted", "time_decay_weight": 0.7, "half_life_minutes": 30})
        assert found == ContextOptions(strategy="weighted", weights=Weights(time_decay=0.7), half_life_minutes=30)
        assert OPTIONS.overridden({}) == OPTIONS

    def test_flat_is_what_can_be_overridden(self):
        assert OPTIONS.overridden(OPTIONS.flat()) == OPTIONS
        assert "reply_chain_weight" in OPTIONS.flat()

    def test_a_bad_value_is_named_with_its_range(self):
        with all_cases() as case:
            for name, value, allowed in BAD_VALUES:
                with case(name, value):
                    with pytest.raises(InvalidInput) as error:
                        dataclasses.replace(OPTIONS, strategies=("threaded", "weighted", "recent")).overridden(
                            {name: value}
                        )
                    assert str(error.value) == f"{name} is {value!r}; it must be {allowed}."

    @pytest.mark.parametrize("name", ["weights", "context_build_timeout_seconds", "colour"])
    def test_an_unknown_name_is_named(self, name):
        with pytest.raises(InvalidInput, match=name):
            OPTIONS.overridden({name: 1})


class TestRecent:
    def test_the_last_by_arrival_in_peoples_order(self):
        messages = [entry(1).message, entry(2, minute=9).message, entry(4, minute=3).message, entry(3).message]
        found = choose_recent(messages, 3)
        assert arrivals(found) == [3, 4, 2]
        assert {candidate.reason for candidate in found} == {"recent"}

    def test_nothing_of_or_after_the_target(self):
        messages = [entry(n).message for n in range(1, 9)]
        assert arrivals(choose_recent(messages, 3, before=messages[4])) == [2, 3, 4]
        assert choose_recent(messages, 0) == []


class TestWeighted:
    def test_takes_what_reaches_the_threshold_in_time_order(self):
        target = entry(60, reply_to=2, keywords=["proxy"])
        pool = [
            entry(59, "bob"),
            entry(2, "bob", minute=59),
            entry(1, "cid", keywords=["proxy"]),
            entry(58),
        ]
        found = weighted(target, pool)
        assert arrivals(found) == [58, 2]
        assert found[1].score == pytest.approx(0.4 + 0.2 * 0.5**0.1)
        assert found[0].score == pytest.approx(0.15 + 0.2 * 0.5**0.2)

    def test_below_the_threshold_nothing(self):
        assert weighted(entry(99), [entry(n, "bob") for n in range(1, 50)]) == []

    def test_a_score_equal_to_the_threshold_is_taken(self):
        options = ContextOptions(relevance_threshold=0.2, weights=Weights(time_decay=0.25))
        weights = Weights(
            reply_chain=0.0, user_continuity=0.0, time_decay=1.0, mention_relation=0.0, keyword_overlap=0.0
        )
        options = dataclasses.replace(options, weights=weights, relevance_threshold=0.5)
        assert arrivals(weighted(entry(20), [entry(10, "bob"), entry(9, "bob")], options)) == [10]

    def test_the_best_where_there_are_more_than_fit(self):
        options = ContextOptions(max_context_messages=2)
        assert arrivals(weighted(entry(9), [entry(n) for n in range(1, 9)], options)) == [7, 8]

    @pytest.mark.parametrize(
        ("target", "candidate", "reason"),
        [
            (entry(9, reply_to=8), entry(8, "bob"), "directly answered (platform reply), less than a minute apart"),
            (entry(9, minute=12, reply_to=3), entry(8, "bob", reply_to=3), "2 replies away, 4 min apart"),
            (entry(9, addressed=["bob"]), entry(8, "bob"), "its sender is addressed, 1 min apart"),
            (entry(9, minute=40), entry(8, minute=8, mentions=["ann"]), "same sender, one mentions the other's sender"),
            (
                entry(9, keywords=["proxy", "代理"]),
                entry(8, "bob", keywords=["代理", "proxy"], minute=-99, reply_to=9),
                "a direct reply, shared words: proxy, 代理",
            ),
        ],
    )
    def test_reasons_name_what_counted_most(self, target, candidate, reason):
        if "less than" in reason:
            candidate = dataclasses.replace(
                candidate, message=dataclasses.replace(candidate.message, sent_at=target.message.at)
            )
        assert [c.reason for c in weighted(target, [candidate], ContextOptions(relevance_threshold=0))] == [reason]

    def test_the_pool_is_the_chain_and_the_newest_of_the_window(self):
        options = ContextOptions(chain_limit=2, candidate_limit=3, time_window_hours=0.1)
        near = [entry(n) for n in range(80, 100)]
        chain = [entry(3), entry(98), entry(2), entry(101)]
        assert [e.message.arrival for e in weighted_pool(entry(100), near, chain, options)] == [3, 97, 98, 99]
        assert [e.message.arrival for e in weighted_pool(entry(100, minute=105), near, [], options)] == [99]


class TestThreaded:
    def test_scores_are_the_probabilities_and_reasons_say_so(self):
        pool = [entry(n, minute=10 - n) for n in range(1, 8)]
        found = threaded(entry(9, link=guess(4)), pool, {2: 0.9, 4: 0.8, 6: 0.3})
        assert [(c.message.arrival, c.score, c.reason) for c in found] == [
            (6, 0.3, "possibly the same thread (0.30)"),
            (4, 0.8, "direct parent, 0.70 likely"),
            (2, 0.9, "likely the same thread (0.90)"),
        ]
        assert found[0].signals.user_continuity == 1

    def test_a_platform_reply_says_so(self):
        target = entry(9, reply_to=4, root=1, link=guess(4, 1.0, LinkKind.PLATFORM))
        found = threaded(target, [entry(4, "bob"), entry(5, root=1)], {4: 1.0, 5: 0.96})
        assert [c.reason for c in found] == ["directly answered (platform reply)", "same platform thread (0.96)"]

    def test_the_likeliest_parent_is_always_among_them(self):
        assert threaded_picks(guess(4), {2: 0.9, 3: 0.4}, 20) == {2: 0.9, 4: 0.7, 3: 0.4}
        assert threaded_picks(guess(4, 0.2), {2: 0.9, 3: 0.8}, 2) == {2: 0.9, 4: 0.2}
        assert threaded_picks(guess(4, 0.2), {2: 0.9, 3: 0.8}, 1) == {4: 0.2}

    def test_but_not_where_something_new_is_likelier(self):
        assert threaded_picks(guess(4, 0.3, LinkKind.NEW), {2: 0.3}, 20) == {2: 0.3}
        assert threaded(entry(9, link=guess(4, 0.3, LinkKind.NEW)), [entry(4)], {}) == []

    def test_the_parent_that_arrived_late_is_shown(self):
        target = entry(9, reply_to=12, link=guess(12, 1.0, LinkKind.PLATFORM))
        assert arrivals(threaded(target, [entry(12, minute=8)], {})) == [12]
        assert arrivals(threaded(target, [entry(12, minute=10)], {})) == []

    def test_what_was_deleted_is_left_out(self):
        assert arrivals(threaded(entry(9, link=guess(4)), [entry(2)], {2: 0.9, 3: 0.8})) == [2]


ROOMS = st.lists(
    st.builds(
        entry,
        st.integers(1, 30),
        st.sampled_from(["ann", "bob"]),
        minute=st.integers(-3000, 3000),
        reply_to=st.none() | st.integers(1, 30),
        link=st.builds(guess, st.integers(1, 30), st.floats(0, 1), st.sampled_from(LinkKind)),
    ),
    min_size=1,
    max_size=30,
    unique_by=lambda e: e.message.arrival,
)


@given(ROOMS, st.dictionaries(st.integers(1, 30), st.floats(0, 1)), st.integers(1, 8), st.floats(0, 1))
def test_every_selection_is_small_ordered_and_never_reads_ahead(room, chosen, k, threshold):
    target, *pool = room
    options = ContextOptions(max_context_messages=k, relevance_threshold=threshold)
    messages = [e.message for e in room]
    for found in (
        choose_recent(messages, k, before=target.message),
        weighted(target, room, options),
        threaded(target, room, chosen, options),
    ):
        shown = [candidate.message for candidate in found]
        assert len(shown) <= k
        assert shown == sorted(shown, key=lambda m: (m.at, m.arrival))
        assert len({m.arrival for m in shown}) == len(shown)
        for message in shown:
            assert message.id != target.message.id
            late_parent = message.id == target.message.reply_to and message.at <= target.message.at
            assert message.arrival < target.message.arrival or late_parent
        assert all(0 <= candidate.score <= 1 for candidate in found)
    assert all(candidate.score >= threshold for candidate in weighted(target, pool, options))


def test_a_target_at_the_edge_of_time():
    target = entry(2, minute=-(BEGIN - BEGIN.min.replace(tzinfo=BEGIN.tzinfo)) / timedelta(minutes=1))
    assert [e.message.arrival for e in weighted_pool(target, [entry(1)], [], OPTIONS)] == [1]


CANDIDATES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 60)), max_size=12).map(
    lambda rows: [
        Candidate(message=builders.message(n, tokens=tokens), score=score, signals=None, reason="x")
        for n, (score, tokens) in enumerate(rows, 1)
    ]
)


def framed(candidates):
    """The tokens of the texts, with four for the frame of each."""
    return sum(one.message.tokens + 4 for one in candidates)


@given(CANDIDATES, st.integers(1, 300))
def test_no_more_tokens_are_taken_than_there_may_be_and_the_likeliest_stay(candidates, most):
    kept = within_tokens(candidates, most, framed)
    assert framed(kept) <= most
    assert kept == [one for one in candidates if one in kept]
    for left in (one for one in candidates if one not in kept):
        better = [one for one in kept if (one.score, one.message.arrival) > (left.score, left.message.arrival)]
        assert framed([left]) > most - framed(better)


def test_any_number_of_tokens_is_no_bound_and_of_equals_the_newer_ones_stay():
    four = [
        Candidate(message=builders.message(n, tokens=5), score=0.0, signals=None, reason="recent") for n in range(1, 5)
    ]
    assert within_tokens(four, None, framed) == four
    assert arrivals(within_tokens(four, 19, framed)) == [3, 4]


class TestAnswers:
    def test_a_platform_reply_and_a_likely_parent_are_told(self):
        said = [
            entry(1, "ann"),
            entry(2, "bob", link=guess(1, 0.5)),
            entry(3, "eve", link=guess(1, 0.49)),
            entry(4, "eve", link=guess(1, 0.9, LinkKind.NEW)),
            entry(5, "ann", reply_to=1, link=guess(1, 1.0, LinkKind.PLATFORM)),
            entry(6, "bob", link=guess(99, 0.9)),
        ]
        target = entry(9, "ann")
        found = threaded(target, said, dict.fromkeys(range(1, 7), 0.9))
        assert [one.answers for one in found] == [None, "m1", None, None, "m1", None]
        assert {one.answers for one in weighted(target, said, ContextOptions(relevance_threshold=0))} == {None, "m1"}

    def test_the_plain_window_knows_platform_replies(self):
        messages = [builders.message(1), builders.message(2, reply_to="m1")]
        assert [one.answers for one in choose_recent(messages, 5)] == [None, "m1"]


def test_pydantic_makes_a_schema_of_a_context_as_frameworks_do():
    assert TypeAdapter(Context).core_schema["type"]
