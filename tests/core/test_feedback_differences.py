"""Whether the feedback of two arms differs by more than their common margin."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from roomlore.core.experiments import ArmSums, UsageReport, arm_report, feedback_differences

SOME = ArmSums(
    arm="a", contexts=100, rooms=4, tokens=900, window_tokens=1000, build_ms=10, scored=0, scores=0, degraded=0,
    answered=0, judged=0, success=0, success_squares=0,
)  # fmt: skip


def arm(name: str | None, judged: int, good: int):
    """Return an arm whose feedback is 1 `good` times and else 0."""
    return arm_report(replace(SOME, arm=name, judged=judged, success=good, success_squares=good))


def report(*arms) -> UsageReport:
    moment = datetime(2026, 1, 5, tzinfo=UTC)
    return UsageReport(since=moment, until=moment, arms=arms)


def test_a_large_difference_is_clear_and_a_small_one_is_not():
    plain, soft, other = arm("plain", 100, 50), arm("soft", 100, 80), arm("软", 100, 53)
    clear, unclear = feedback_differences(report(plain, soft, other))
    assert (clear.arm, clear.base, clear.by, clear.is_clear) == (soft, plain, pytest.approx(0.3), True)
    assert (unclear.arm.arm, unclear.by, unclear.is_clear) == ("软", pytest.approx(0.03), False)
    assert clear.margin == pytest.approx((plain.success_margin**2 + soft.success_margin**2) ** 0.5)


def test_the_base_can_be_named():
    found = feedback_differences(report(arm("a", 50, 10), arm("b", 50, 40)), base="b")
    assert [(one.arm.arm, one.base.arm, one.by < 0, one.is_clear) for one in found] == [("a", "b", True, True)]


@pytest.mark.parametrize(
    "arms", [(), (arm("a", 9, 3),), (arm("a", 9, 3), arm("b", 1, 1)), (arm(None, 9, 1), arm("b", 9, 9))]
)
def test_without_two_arms_with_feedback_there_is_nothing_to_compare(arms):
    assert feedback_differences(report(*arms)) == []
