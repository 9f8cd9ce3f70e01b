"""The table of signals, row by row."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from relevance_rooms import entry

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Signals
from roomlore.core.relevance import RelevanceScorer, RoomView, Weights, partners

SCORER = RelevanceScorer()


def talking(target, before):
    """The target with the partners that the messages before it give it."""
    senders = {one.message.id: one.message.sender_id for one in before}
    known = partners(target.message, [(one.message, one.features) for one in before], senders.get)
    return replace(target, features=replace(target.features, partners=known))


def signals(target, candidate, *others, before=(), messages=0, counts=None):
    view = RoomView(target=talking(target, before), pool=[candidate, *others], messages=messages, counts=counts or {})
    return SCORER.signals(view, candidate)


class TestReplyChain:
    def chain(self, *arrivals):
        """Messages each of which replies to the one before it."""
        return [entry(here, reply_to=there) for here, there in zip(arrivals, (None, *arrivals[:-1]), strict=True)]

    @pytest.mark.parametrize(("hops", "value"), [(1, 1), (2, 0.5), (3, 0.25), (4, 0.125), (5, 0.0625), (6, 0), (7, 0)])
    def test_halves_with_each_hop_up_to_five(self, hops, value):
        *others, target = self.chain(*range(1, 9))
        candidate = others[-hops]
        assert signals(target, candidate, *others).reply_chain == value

    def test_a_reply_to_the_late_target_counts_like_its_parent(self):
        target = entry(5, minute=1)
        assert signals(target, entry(3, "bob", reply_to=5)).reply_chain == 1

    def test_siblings_are_two_hops_apart_even_where_their_parent_is_unknown(self):
        assert signals(entry(5, reply_to=1), entry(4, reply_to=1)).reply_chain == 0.5

    def test_nieces_are_three(self):
        assert signals(entry(5, reply_to=1), entry(4, reply_to=3), entry(3, reply_to=1)).reply_chain == 0.25

    def test_the_same_root_without_a_path(self):
        assert signals(entry(5, root=1), entry(4, root=1)).reply_chain == 0.0625
        assert signals(entry(5, root=1), entry(1)).reply_chain == 0.0625
        assert signals(entry(5, root=1), entry(1, root=1)).reply_chain == 0.0625
        assert signals(entry(5, root=1), entry(4, root=2)).reply_chain == 0
        assert signals(entry(5), entry(4)).reply_chain == 0

    def test_a_path_beats_the_same_root(self):
        assert signals(entry(5, root=1, reply_to=4), entry(4, root=1)).reply_chain == 1

    def test_the_same_root_beyond_five_hops(self):
        entries = [entry(here, root=1, reply_to=here - 1 or None) for here in range(1, 9)]
        assert signals(entries[-1], entries[0], *entries[1:]).reply_chain == 0.0625

    def test_a_cycle_of_replies_ends(self):
        target, candidate = entry(3, reply_to=2), entry(2, reply_to=1)
        assert signals(target, candidate, entry(1, reply_to=2)).reply_chain == 1
        assert signals(entry(3, reply_to=3), candidate).reply_chain == 0

    def test_a_leading_name_counts_half(self):
        assert signals(entry(5, addressed=["bob"]), entry(4, "bob")).reply_chain == 0.5
        assert signals(entry(5, addressed=["bob"]), entry(4, "cid")).reply_chain == 0

    def test_a_leading_name_written_before_its_owner_spoke(self):
        assert signals(entry(5, addressed=["bob lee"]), entry(4, "U7", name="Bob Lee")).reply_chain == 0.5

    def test_a_leading_name_in_the_candidate_does_not(self):
        assert signals(entry(5), entry(4, "bob", addressed=["ann"])).reply_chain == 0

    def test_a_mention_elsewhere_does_not(self):
        assert signals(entry(5, mentions=["bob"]), entry(4, "bob")).reply_chain == 0

    @pytest.mark.parametrize(
        ("target", "candidate"),
        [
            (entry(5, addressed=["bob"], reply_to=1), entry(4, "bob")),
            (entry(5, addressed=["bob"], root=1), entry(4, "bob")),
            (entry(5, addressed=["bob"]), entry(4, "bob", reply_to=1)),
        ],
    )
    def test_a_leading_name_gives_way_to_platform_data(self, target, candidate):
        assert signals(target, candidate).reply_chain == 0

    def test_nothing_later_is_a_step_on_the_way(self):
        """Were message 6 read, it would join 5 and 4."""
        later = entry(6, reply_to=4)
        assert signals(entry(5, reply_to=6), entry(4), later).reply_chain == 0

    def test_the_late_parent_is_a_step_on_the_way(self):
        late = entry(6, minute=4, reply_to=4)
        assert signals(entry(5, reply_to=6), late).reply_chain == 1
        assert signals(entry(5, reply_to=6), entry(4), late).reply_chain == 0.5


class TestUserContinuity:
    def test_the_same_sender(self):
        assert signals(entry(5), entry(4)).user_continuity == 1

    def test_somebody_else(self):
        assert signals(entry(5), entry(4, "bob")).user_continuity == 0

    @pytest.mark.parametrize(
        "said", [{"addressed": ["bob"]}, {"reply_to": 1}, {"quotes": "bob"}], ids=["addressed", "answered", "quoted"]
    )
    def test_somebody_the_sender_talked_with(self, said):
        before = [entry(1, "bob"), entry(2, "ann", **said)]
        assert signals(entry(5), entry(4, "bob"), before=before).user_continuity == 0.5

    def test_somebody_another_talked_with(self):
        before = [entry(1, "bob"), entry(2, "cid", addressed=["bob"])]
        assert signals(entry(5), entry(4, "bob"), before=before).user_continuity == 0

    def test_somebody_who_addressed_the_sender(self):
        before = [entry(1, "bob", addressed=["ann"])]
        assert signals(entry(5), entry(4, "bob"), before=before).user_continuity == 0

    @pytest.mark.parametrize(("between", "value"), [(9, 0.5), (10, 0)])
    def test_only_the_last_ten_messages_count(self, between, value):
        before = [entry(1, addressed=["bob"]), *(entry(2 + n, "cid") for n in range(between))]
        assert signals(entry(90), entry(80, "bob"), before=before).user_continuity == value

    def test_the_target_itself_does_not_count(self):
        assert signals(entry(5, addressed=["bob"]), entry(4, "bob")).user_continuity == 0


class TestTimeDecay:
    @pytest.mark.parametrize(("gap", "value"), [(0, 1), (10, 0.5), (20, 0.25), (5, 0.5**0.5), (60, 0.5**6)])
    def test_halves_every_ten_minutes(self, gap, value):
        assert signals(entry(90, minute=90), entry(80, minute=90 - gap)).time_decay == pytest.approx(value)

    def test_counts_a_clock_that_ran_backwards_alike(self):
        assert signals(entry(90, minute=80), entry(80, minute=90)).time_decay == pytest.approx(0.5)

    def test_half_life(self):
        found = RelevanceScorer(half_life_minutes=60).signals(RoomView(target=entry(90)), entry(30))
        assert found.time_decay == pytest.approx(0.5)

    @pytest.mark.parametrize("value", [0, -1, math.inf, math.nan])
    def test_bad_half_life(self, value):
        with pytest.raises(InvalidInput, match="half_life_minutes"):
            RelevanceScorer(half_life_minutes=value)


class TestMentionRelation:
    @pytest.mark.parametrize(
        ("mine", "theirs", "value"),
        [
            (["bob"], [], 1),
            ([], ["ann"], 1),
            (["bob", "cid"], ["cid"], 1),
            (["cid"], ["dan", "cid"], 0.5),
            (["cid"], ["dan"], 0),
            (["cid"], [], 0),
            ([], [], 0),
        ],
    )
    def test_row(self, mine, theirs, value):
        assert signals(entry(5, mentions=mine), entry(4, "bob", mentions=theirs)).mention_relation == value

    def test_names_written_before_their_owner_spoke(self):
        assert signals(entry(5, mentions=["bob"]), entry(4, "U7", name="Bob")).mention_relation == 1


class TestKeywordOverlap:
    def test_rarity_of_the_shared_over_the_smaller_side(self):
        def rarity(df, n=100):
            return math.log(1 + (n - df + 0.5) / (df + 0.5))

        found = signals(
            entry(5, keywords=["proxy", "kernel", "log"]),
            entry(4, keywords=["log", "coffee"]),
            messages=100,
            counts={"proxy": 2, "kernel": 9, "log": 40, "coffee": 1},
        )
        mine, theirs = rarity(2) + rarity(9) + rarity(40), rarity(40) + rarity(1)
        assert found.keyword_overlap == pytest.approx(rarity(40) / min(mine, theirs))

    def test_all_of_the_smaller_side(self):
        found = signals(entry(5, keywords=["a1", "b1"]), entry(4, keywords=["b1"]), messages=9, counts={"b1": 9})
        assert found.keyword_overlap == 1

    @pytest.mark.parametrize(("mine", "theirs"), [([], ["log"]), (["log"], []), ([], []), (["log"], ["代理"])])
    def test_nothing_shared(self, mine, theirs):
        assert signals(entry(5, keywords=mine), entry(4, keywords=theirs), messages=9).keyword_overlap == 0

    def test_without_counts_all_words_are_equally_rare(self):
        found = signals(entry(5, keywords=["代理", "日志", "端口"]), entry(4, keywords=["代理", "咖啡"]))
        assert found.keyword_overlap == pytest.approx(0.5)


class TestTotal:
    @pytest.mark.parametrize(
        ("name", "weight"),
        [
            ("reply_chain", 0.40),
            ("user_continuity", 0.15),
            ("time_decay", 0.20),
            ("mention_relation", 0.15),
            ("keyword_overlap", 0.10),
        ],
    )
    def test_default_weights(self, name, weight):
        zero = dict.fromkeys(
            ("reply_chain", "user_continuity", "time_decay", "mention_relation", "keyword_overlap"), 0.0
        )
        assert SCORER.total(Signals(**(zero | {name: 1.0}))) == pytest.approx(weight)

    def test_a_whole_example(self):
        """Parent by another sender, ten minutes before, mentioned, sharing one of two equally rare words."""
        target = entry(20, reply_to=10, mentions=["bob"], keywords=["log", "proxy"])
        parent = entry(10, "bob", keywords=["log", "kernel"])
        score, found = SCORER.score(RoomView(target=target, pool=[parent]), parent)
        assert found == Signals(
            reply_chain=1, user_continuity=0, time_decay=0.5, mention_relation=1, keyword_overlap=pytest.approx(0.5)
        )
        assert score == pytest.approx(0.40 + 0.10 + 0.15 + 0.05)

    def test_weights_are_normalised(self):
        twice = RelevanceScorer(
            Weights(reply_chain=0.8, user_continuity=0.3, time_decay=0.4, mention_relation=0.3, keyword_overlap=0.2)
        )
        some = Signals(reply_chain=1, user_continuity=0.5, time_decay=0.3, mention_relation=0, keyword_overlap=0.2)
        assert twice.total(some) == pytest.approx(SCORER.total(some))

    def test_the_weights_of_the_table_are_used_to_the_last_bit(self):
        assert Weights().normalised() == (0.40, 0.15, 0.20, 0.15, 0.10)
        same_sender_mentioned = Signals(
            reply_chain=0, user_continuity=1, time_decay=0, mention_relation=1, keyword_overlap=0
        )
        assert SCORER.total(same_sender_mentioned) == 0.3

    @pytest.mark.parametrize("size", [5e-324, 1e-300, 1e308])
    def test_weights_of_any_size_are_normalised(self, size):
        assert Weights.of([size] * 5).normalised() == pytest.approx([0.2] * 5)

    @pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "0.4", None, True])
    def test_bad_weights(self, value):
        with pytest.raises(InvalidInput, match="time_decay_weight"):
            Weights(time_decay=value)

    def test_no_weight_at_all(self):
        with pytest.raises(InvalidInput, match="All weights are 0"):
            Weights.of([0, 0, 0, 0, 0])


PEOPLE = st.sampled_from(["ann", "bob", "cid"])
ENTRIES = st.builds(
    entry,
    st.integers(1, 12),
    PEOPLE,
    minute=st.floats(-2000, 2000),
    reply_to=st.none() | st.integers(1, 14),
    root=st.none() | st.integers(1, 3),
    mentions=st.lists(PEOPLE, max_size=2),
    addressed=st.lists(PEOPLE, max_size=2),
    keywords=st.lists(st.sampled_from(["log", "代理", "kernel"]), max_size=3),
)
AMOUNTS = st.floats(0, 1e300) | st.sampled_from([0.0, 5e-324])


@given(
    st.lists(ENTRIES, min_size=2, max_size=8),
    st.lists(AMOUNTS, min_size=5, max_size=5).filter(any),
    st.integers(0, 20),
    st.dictionaries(st.sampled_from(["log", "代理"]), st.integers(0, 30)),
    st.floats(0.001, 1e5),
)
def test_scores_and_signals_lie_between_0_and_1(entries, weights, messages, counts, half_life):
    target, *pool = entries
    view = RoomView(target=talking(target, pool), pool=pool, messages=messages, counts=counts)
    scorer = RelevanceScorer(Weights.of(weights), half_life)
    for candidate in pool:
        score, found = scorer.score(view, candidate)
        values = (
            found.reply_chain,
            found.user_continuity,
            found.time_decay,
            found.mention_relation,
            found.keyword_overlap,
        )
        assert all(0 <= value <= 1 for value in (score, *values))


def test_a_gap_of_centuries_is_no_error():
    old = entry(1, minute=-timedelta(days=700_000).total_seconds() / 60)
    assert signals(entry(5), old).time_decay == 0
