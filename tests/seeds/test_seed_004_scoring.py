"""Seed 004, sections 3.2 and 3.3: the five signals and their weights, the pool of candidates, the choice."""

import pytest
from group_chat import EVERYTHING, GROUP, TALK, candidates, group, ids, said, signals

from roomlore import Settings

WEIGHTS = {
    "reply_chain": 0.4,
    "user_continuity": 0.15,
    "time_decay": 0.2,
    "mention_relation": 0.15,
    "keyword_overlap": 0.1,
}
ALONE = dict.fromkeys((f"{name}_weight" for name in WEIGHTS), 0.0)


# 3.2


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_weight_is(name):
    assert getattr(Settings(), f"{name}_weight") == WEIGHTS[name]


async def test_a_score_is_the_weighted_sum_of_its_signals():
    found = await candidates(*TALK)
    assert set(found) == {f"m{number}" for number in range(1, 7)}
    for one in found.values():
        expected = sum(weight * getattr(one.signals, name) for name, weight in WEIGHTS.items())
        assert one.score == pytest.approx(expected)
        assert 0 <= one.score <= 1


@pytest.mark.parametrize("name", WEIGHTS)
async def test_with_one_weight_alone_the_score_is_that_signal(name):
    found = await candidates(*TALK, **{**ALONE, f"{name}_weight": 1.0})
    assert {one.score for one in found.values()} == {getattr(one.signals, name) for one in found.values()}


@pytest.mark.parametrize(("hops", "value"), [(1, 1.0), (2, 0.5), (3, 0.25)])
async def test_reply_chain_halves_with_each_hop(hops, value):
    chain = [said(n, f"u{n}", "嗯", reply_to=f"m{n - 1}" if n > 1 else None) for n in range(1, hops + 2)]
    assert (await signals(*chain)).reply_chain == value


async def test_reply_chain_is_nothing_without_a_reply():
    assert (await signals(said(1, "ann", "几点？"), said(2, "bob", "火锅吧"))).reply_chain == 0


@pytest.mark.parametrize(("sender", "value"), [("ann", 1.0), ("bob", 0.0)])
async def test_user_continuity_is_for_the_same_sender(sender, value):
    assert (await signals(said(1, sender, "几点？"), said(2, "ann", "七点"))).user_continuity == value


async def test_user_continuity_is_half_for_somebody_the_sender_just_answered():
    asked, answer = said(1, "bob", "几点？"), said(2, "ann", "七点", reply_to="m1")
    assert (await signals(asked, answer, said(3, "ann", "我订位"))).user_continuity == 0.5


@pytest.mark.parametrize(("minutes", "value"), [(0, 1.0), (10, 0.5), (20, 0.25), (60, 0.5**6)])
async def test_time_decay_halves_every_ten_minutes(minutes, value):
    found = await signals(said(1, "bob", "几点？", minute=0), said(2, "ann", "七点", minute=minutes))
    assert found.time_decay == pytest.approx(value)


@pytest.mark.parametrize(
    ("before", "now", "value"),
    [
        ("几点？", "@bob 七点", 1.0),
        ("@ann 几点？", "七点", 1.0),
        ("@li 几点？", "@li 七点", 0.5),
        ("几点？", "七点", 0.0),
    ],
)
async def test_mention_relation(before, now, value):
    known = [said(8, "li", "在"), said(9, "ann", "在")]
    found = await candidates(*known, said(10, "bob", before), said(11, "ann", now))
    assert found["m10"].signals.mention_relation == value


@pytest.mark.parametrize(("now", "overlaps"), [("路由器的密码是什么", True), ("周五吃火锅", False)])
async def test_keyword_overlap_is_for_shared_words(now, overlaps):
    found = await signals(said(1, "bob", "路由器的密码"), said(2, "ann", now))
    assert (found.keyword_overlap > 0) is overlaps


async def test_all_words_shared_is_an_overlap_of_one():
    assert (await signals(said(1, "bob", "路由器密码"), said(2, "ann", "路由器密码"))).keyword_overlap == 1


# 3.3


async def test_the_pool_has_the_fifty_newest_messages():
    found = await candidates(*[said(n, f"u{n}", f"第{n}句", minute=n / 10) for n in range(1, 82)])
    assert sorted(found) == sorted(f"m{n}" for n in range(31, 81))


@pytest.mark.parametrize(("hours", "within"), [(23.9, True), (24.1, False)])
async def test_the_pool_goes_back_a_day(hours, within):
    found = await candidates(said(1, "bob", "几点？", minute=-60 * hours), said(2, "ann", "七点", minute=0))
    assert ("m1" in found) is within


async def test_the_pool_has_the_reply_chain_however_old_it_is():
    old = said(1, "bob", "周五几点？", minute=-3 * 24 * 60)
    found = await candidates(old, said(2, "li", "嗯", minute=-1), said(3, "ann", "七点", minute=0, reply_to="m1"))
    assert set(found) == {"m1", "m2"}


async def test_the_pool_has_fifteen_messages_of_the_chain():
    old = [said(1, "bob", "周五几点？", minute=-4000)]
    old += [said(n, f"u{n}", "七点吧", minute=-4000 + n, reply_to="m1") for n in range(2, 32)]
    assert len(await candidates(*old, said(99, "ann", "好", minute=0, reply_to="m1"))) == 15


async def test_a_message_of_the_chain_and_of_the_day_is_there_once():
    async with group(*TALK, **EVERYTHING) as lore:
        found = ids(await lore.context.build(GROUP, "m7"))
    assert found == ["m1", "m2", "m3", "m4", "m5", "m6"]


async def test_the_message_itself_is_not_in_its_context():
    for strategy in ("threaded", "weighted", "recent"):
        async with group(*TALK) as lore:
            assert "m7" not in ids(await lore.context.build(GROUP, "m7", strategy=strategy))


async def test_what_was_said_later_is_not_in_the_context():
    assert set(await candidates(*TALK[:4])) == {"m1", "m2", "m3"}
    async with group(*TALK, **EVERYTHING) as lore:
        assert ids(await lore.context.build(GROUP, "m4")) == ["m1", "m2", "m3"]


async def test_nothing_below_the_threshold_is_taken():
    everything = await candidates(*TALK)
    async with group(*TALK, strategy="weighted") as lore:
        context = await lore.context.build(GROUP, "m7")
    assert ids(context) == [name for name, one in everything.items() if one.score >= 0.3]
    assert 0 < len(context.messages) < 6


@pytest.mark.parametrize("strategy", ["threaded", "weighted", "recent"])
async def test_at_most_twenty_messages_are_chosen(strategy):
    flood = [said(n, "ann", "路由器的密码", minute=n / 60) for n in range(1, 60)]
    async with group(*flood) as lore:
        assert len((await lore.context.build(GROUP, "m59", strategy=strategy)).messages) == 20


async def test_the_best_are_chosen_and_shown_in_time_order():
    async with group(*TALK, strategy="weighted", max_context_messages=2) as lore:
        assert ids(await lore.context.build(GROUP, "m7")) == ["m3", "m5"]


async def test_topics_that_are_mixed_are_kept_apart():
    """Without one word in common, as replies alone tell."""
    async with group(*TALK) as lore:
        context = await lore.context.build(GROUP, "m7", max_messages=3)
    assert (ids(context), context.parent) == (["m1", "m3", "m5"], "m5")


async def test_fewer_tokens_are_spent_than_by_the_plain_window():
    async with group(*TALK, strategy="weighted") as lore:
        context = await lore.context.build(GROUP, "m7")
    assert 0 < context.tokens < context.window_tokens


# Differences


async def test_threaded_chooses_unless_another_strategy_is_set():
    async with group(*TALK) as lore:
        assert (await lore.context.build(GROUP, "m7")).strategy == "threaded"
        assert (await lore.context.build(GROUP, "m7", strategy="weighted")).strategy == "weighted"


async def test_weights_count_in_proportion_to_their_sum():
    doubled = await candidates(*TALK, **{f"{name}_weight": 2 * weight for name, weight in WEIGHTS.items()})
    plain = await candidates(*TALK)
    assert {name: one.score for name, one in doubled.items()} == pytest.approx(
        {name: one.score for name, one in plain.items()}
    )


async def test_every_message_says_why_it_was_taken():
    async with group(*TALK) as lore:
        context = await lore.context.build(GROUP, "m7", strategy="weighted")
    reasons = {one.message.id: one.reason for one in context.messages}
    assert reasons["m5"].startswith("directly answered (platform reply)")
    assert all(reasons.values())
