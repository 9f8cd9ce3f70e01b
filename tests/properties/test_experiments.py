"""Rooms are split between arms by hash, in the shares that are set; figures of an arm are those of its records."""

from datetime import datetime
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.errors import InvalidInput
from roomlore.core.experiments import ArmSums, Experiment, arm_report, training_row
from roomlore_testkit import entry, features, usage_record

_ROOMS = 4_000
shares = st.dictionaries(
    st.text(max_size=3), st.one_of(st.integers(0, 20), st.floats(0, 1e6, allow_nan=False)), min_size=2, max_size=5
).filter(lambda arms: any(arms.values()))


def _count(experiment: Experiment) -> dict[str, int]:
    found = [experiment.arm_of("t", f"room {number} 茶", given={}) for number in range(_ROOMS)]
    return {arm.name: sum(one is arm for one in found) for arm in experiment.arms}


@pytest.mark.parametrize(
    "wanted", [{"a": 1, "b": 1}, {"a": 9, "b": 1}, {"a": 0.5, "b": 0.25, "c": 0.25}, {"a": 0, "b": 3}]
)
def test_rooms_are_split_in_the_shares_that_are_set(wanted):
    counts = _count(Experiment({name: {"share": share} for name, share in wanted.items()}))
    for name, share in wanted.items():
        expected = _ROOMS * share / sum(wanted.values())
        assert counts[name] == pytest.approx(expected, abs=4 * (expected + 1) ** 0.5 if share else 0)


@given(shares, st.text(max_size=5), st.text(max_size=5))
def test_a_room_is_always_in_one_arm_with_a_share(wanted, tenant, room_id):
    experiment = Experiment({name: {"share": share} for name, share in wanted.items()})
    arm = experiment.arm_of(tenant, room_id, given={})
    assert arm is not None
    assert wanted[arm.name] > 0
    again = Experiment({name: {"share": wanted[name]} for name in reversed(wanted)})
    assert again.arm_of(tenant, room_id, given={}) == arm


def test_a_larger_share_keeps_the_rooms_that_an_arm_has():
    before, after = (Experiment({"a": {"share": share}, "b": {"share": 10 - share}}) for share in (1, 3))
    for number in range(500):
        if before.arm_of("t", str(number), given={}).name == "a":
            assert after.arm_of("t", str(number), given={}).name == "a"


def test_without_arms_no_room_is_in_one():
    assert Experiment({}).arm_of("t", "r", given={}) is None


def test_a_call_that_sets_what_is_compared_is_in_no_arm():
    experiment = Experiment({"a": {}, "b": {"strategy": "weighted", "share": 2}})
    assert experiment.arm_of("t", "r", given={"strategy": "recent"}) is None
    assert experiment.arm_of("t", "r", given={"max_context_tokens": 9}) is not None
    assert experiment.arms[1].settings == {"strategy": "weighted"}


@pytest.mark.parametrize("share", [-1, "half", True, None, float("nan"), float("inf"), 1_000_001])
def test_a_bad_share_is_refused(share):
    with pytest.raises(InvalidInput, match="arm 'b': share is"):
        Experiment({"a": {}, "b": {"share": share}})


def test_shares_of_nothing_are_refused():
    with pytest.raises(InvalidInput, match="above 0"):
        Experiment({"a": {"share": 0}, "b": {"share": 0}})


def _sums(**fields) -> ArmSums:
    zeros = dict.fromkeys(
        ("rooms", "tokens", "window_tokens", "build_ms", "scored", "scores", "degraded", "answered", "judged"), 0
    )
    return ArmSums(**{"arm": None, "contexts": 1, "success": 0.0, "success_squares": 0.0, **zeros, **fields})


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_the_margin_is_that_of_the_mean(values):
    report = arm_report(
        _sums(judged=len(values), success=sum(values), success_squares=sum(value * value for value in values))
    )
    assert report.success == pytest.approx(fmean(values))
    assert report.success_margin == pytest.approx(1.96 * stdev(values) / len(values) ** 0.5, abs=1e-6)


def test_the_figures_of_an_arm():
    report = arm_report(
        _sums(
            arm="b", contexts=4, rooms=2, tokens=30, window_tokens=120, build_ms=8.0, scored=2, scores=0.5, degraded=1
        )
    )
    assert (report.arm, report.contexts, report.rooms, report.tokens, report.window_tokens) == ("b", 4, 2, 7.5, 30)
    assert (report.token_savings, report.build_ms, report.mean_score, report.degraded) == (0.75, 2, 0.25, 0.25)
    assert (report.judged, report.success, report.success_margin) == (0, None, None)


def test_an_arm_that_chose_nothing_has_no_score_and_saves_nothing():
    report = arm_report(_sums())
    assert (report.mean_score, report.token_savings) == (None, None)
    assert arm_report(_sums(judged=1, success=1.0, success_squares=1.0)).success_margin is None


def test_a_row_for_training_holds_the_messages_as_they_are_now():
    record = usage_record(arm="b", llm_response="好", success_indicator=1.0)
    asked = entry(3, text="and tea?", features=features(keywords=("tea",)))
    row = training_row(record, [entry(1, text="茶"), asked])
    assert row["message"] | {"text": "and tea?", "keywords": ["tea"]} == row["message"]
    assert [(one["id"], one["text"], one["score"]) for one in row["context"]] == [("m1", "茶", 0.25)]
    assert (row["gone"], row["arm"], row["llm_response"], row["success_indicator"]) == (1, "b", "好", 1.0)
    assert datetime.fromisoformat(row["created_at"]) == record.created_at


def test_a_message_that_is_gone_gives_no_row():
    assert training_row(usage_record(), [entry(1), entry(2)]) is None
