"""The measurements: what is declared, what it adds up to, and how it reads as Prometheus text."""

from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from roomlore.adapters.telemetry import METRICS, SUMMARIES, PrometheusTelemetry


class StillClock:
    seconds = 0.0

    def now(self) -> datetime:
        return datetime(2024, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
def telemetry(clock):
    return PrometheusTelemetry(clock)


def give_context(telemetry, *, degraded="no", tokens=25, window=100):
    telemetry.count("roomlore_contexts_total", labels={"strategy": "threaded", "degraded": degraded})
    telemetry.count("roomlore_context_tokens_total", tokens)
    telemetry.count("roomlore_window_tokens_total", window)


def test_nothing_measured_is_none_not_zero(telemetry):
    metrics = telemetry.metrics()
    assert metrics.keys() == SUMMARIES.keys()
    unknown = {name for name, value in metrics.items() if value is None}
    assert unknown == SUMMARIES.keys() - {"contexts_built_per_hour", "unique_groups_served"}


def test_errors_are_a_share_of_all_builds_whether_a_simpler_answer_was_given_or_none(telemetry):
    give_context(telemetry)
    telemetry.count("roomlore_context_errors_total", labels={"kind": "timeout"})
    assert telemetry.metrics()["error_rate"] == 0.5
    give_context(telemetry, degraded="yes")
    telemetry.count("roomlore_context_errors_total", labels={"kind": "timeout"})
    assert telemetry.metrics()["error_rate"] == pytest.approx(2 / 3)


def test_summaries_add_up(telemetry):
    give_context(telemetry)
    give_context(telemetry, degraded="yes")
    telemetry.count("roomlore_context_errors_total", labels={"kind": "timeout"})
    telemetry.observe("roomlore_context_build_seconds", 0.010)
    telemetry.observe("roomlore_context_build_seconds", 0.030)
    telemetry.observe("roomlore_context_score", 0.75)
    telemetry.observe("roomlore_context_messages", 4)
    for result in ("hit", "hit", "hit", "miss"):
        telemetry.count("roomlore_room_cache_total", labels={"result": result})
    for score in (0.5, 0.51, 1.0, 0.0):
        telemetry.observe("roomlore_feedback_score", score)
    for room in ("a", "b", "a"):
        telemetry.see("roomlore_rooms_served", room)
    assert telemetry.metrics() == pytest.approx(
        {
            "avg_context_build_time_ms": 20.0,
            "context_cache_hit_rate": 0.75,
            "avg_relevance_score": 0.75,
            "avg_context_message_count": 4.0,
            "token_savings_rate": 0.75,
            "contexts_built_per_hour": 2.0,
            "unique_groups_served": 2.0,
            "user_satisfaction_score": 0.5025,
            "context_effectiveness_rate": 0.5,
            "degradation_rate": 0.5,
            "error_rate": 0.5,
        }
    )


def test_an_hour_forgets(telemetry, clock):
    give_context(telemetry)
    clock.seconds = 59 * 60
    give_context(telemetry)
    assert telemetry.metrics()["contexts_built_per_hour"] == 2
    clock.seconds = 60 * 60
    assert telemetry.metrics()["contexts_built_per_hour"] == 1
    clock.seconds = 3 * 3600
    assert telemetry.metrics()["contexts_built_per_hour"] == 0


def test_errors_alone_are_a_rate_of_one(telemetry):
    telemetry.count("roomlore_context_errors_total", labels={"kind": "error"})
    assert telemetry.metrics()["error_rate"] == 1.0


@pytest.mark.parametrize("labels", [None, {"strategy": "x"}, {"strategy": "x", "degraded": "no", "room": "y"}])
def test_an_undeclared_label_is_a_mistake(telemetry, labels):
    with pytest.raises(KeyError):
        telemetry.count("roomlore_contexts_total", labels=labels)


def test_an_undeclared_name_is_a_mistake(telemetry):
    with pytest.raises(KeyError):
        telemetry.observe("roomlore_nonsense", 1)


def test_text_has_every_metric_and_summary(telemetry):
    give_context(telemetry)
    families = {family.name for family in text_string_to_metric_families(telemetry.render().decode())}
    assert {name.removesuffix("_total") for name in METRICS} <= families
    assert {f"roomlore_{name}" for name in SUMMARIES} <= families


def test_two_of_them_do_not_mix(clock):
    one, other = PrometheusTelemetry(clock), PrometheusTelemetry(clock)
    give_context(one)
    assert other.metrics()["contexts_built_per_hour"] == 0
