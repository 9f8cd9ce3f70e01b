"""Seed 004, sections 8 and 10.2: the metrics by name, the dashboard, the alerts."""

import math

import pytest
from group_chat import GROUP, TALK, group, said
from rig import alert_rules, dashboard, served, strategy

NAMES = [
    "avg_context_build_time_ms",
    "context_cache_hit_rate",
    "avg_relevance_score",
    "avg_context_message_count",
    "token_savings_rate",
    "contexts_built_per_hour",
    "unique_groups_served",
    "user_satisfaction_score",
    "context_effectiveness_rate",
]


@pytest.fixture
async def measured():
    """Two contexts of a group and one of another, of which two were judged: the metrics, and the text of /metrics."""
    other = [said(number, "li", f"第{number}句", room_id="group-2") for number in (1, 2)]
    async with group(*TALK, *other, strategy="weighted") as lore, served(lore) as http:
        first = await lore.context.build(GROUP, "m7")
        second = await lore.context.build(GROUP, "m6")
        third = await lore.context.build("group-2", "m2")
        await lore.messages.add(said(8, "ann", "找到了"))
        await lore.context.feedback(first.context_id, score=0.9)
        await lore.context.feedback(second.context_id, score=0.3)
        text = (await http.get("/metrics")).text
        yield (first, second, third), lore.metrics(), text


def sample(text: str, name: str) -> float:
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))


@pytest.mark.parametrize("name", NAMES)
async def test_the_metric_is_named_and_served(measured, name):
    _, metrics, text = measured
    assert isinstance(metrics[name], float | int)
    assert sample(text, f"roomlore_{name}") == pytest.approx(metrics[name])


async def test_the_build_time_is_the_mean_of_the_contexts(measured):
    contexts, metrics, _ = measured
    assert metrics["avg_context_build_time_ms"] == pytest.approx(sum(one.build_ms for one in contexts) / 3)


async def test_the_relevance_is_the_mean_score(measured):
    contexts, metrics, _ = measured
    means = [sum(one.score for one in context.messages) / len(context.messages) for context in contexts]
    assert metrics["avg_relevance_score"] == pytest.approx(sum(means) / 3)


async def test_the_messages_of_a_context_are_counted(measured):
    contexts, metrics, _ = measured
    assert metrics["avg_context_message_count"] == pytest.approx(sum(len(one.messages) for one in contexts) / 3)


async def test_the_savings_are_beside_the_plain_window(measured):
    contexts, metrics, _ = measured
    spent, plain = sum(one.tokens for one in contexts), sum(one.window_tokens for one in contexts)
    assert metrics["token_savings_rate"] == pytest.approx(1 - spent / plain)


async def test_the_contexts_of_the_hour_and_the_groups_are_counted(measured):
    _, metrics, _ = measured
    assert (metrics["contexts_built_per_hour"], metrics["unique_groups_served"]) == (3, 2)


async def test_the_satisfaction_is_the_mean_feedback(measured):
    _, metrics, _ = measured
    assert metrics["user_satisfaction_score"] == pytest.approx(0.6)


async def test_the_effectiveness_is_the_share_of_good_feedback(measured):
    _, metrics, _ = measured
    assert metrics["context_effectiveness_rate"] == 0.5


async def test_the_cache_hit_rate_is_that_of_features_and_links(tmp_path):
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    async with group(*TALK[:3], url=url):
        pass
    async with group(url=url) as lore:
        for message in TALK[3:]:
            await lore.messages.add(message)
        assert lore.metrics()["context_cache_hit_rate"] == 0.75


@pytest.mark.parametrize("name", NAMES)
async def test_what_was_not_measured_yet_is_no_number(name):
    async with group() as lore, served(lore) as http:
        value = sample((await http.get("/metrics")).text, f"roomlore_{name}")
    assert math.isnan(value) is (name not in ("contexts_built_per_hour", "unique_groups_served"))


async def broken(*_more) -> None:
    raise KeyError("评分失败")


async def test_errors_and_degraded_contexts_are_rates():
    async with group(*TALK, strategies={"broken": strategy(broken)}) as lore:
        for name in ("broken", "weighted", "weighted", "weighted"):
            await lore.context.build(GROUP, "m7", strategy=name)
        metrics = lore.metrics()
    assert (metrics["degradation_rate"], metrics["error_rate"]) == (0.25, 0.25)


# 8.2


@pytest.mark.parametrize(
    ("panel", "series"),
    [
        ("Time to build a context", "roomlore_context_build_seconds_bucket"),
        ("Relevance and feedback", "roomlore_context_score_sum"),
        ("Tokens saved", "roomlore_context_tokens_total"),
        ("Context errors", "roomlore_context_errors_total"),
        ("Degraded contexts", "roomlore_degradation_rate"),
    ],
)
def test_the_dashboard_shows(panel, series):
    shown = next(one for one in dashboard() if one["title"] == panel)
    assert series in " ".join(target["expr"] for target in shown["targets"])


# 10.2


@pytest.mark.parametrize(
    ("alert", "series", "threshold"),
    [
        ("RoomloreContextSlow", "roomlore_context_build_seconds_bucket", 'le="5.0"'),
        ("RoomloreContextDegraded", 'roomlore_contexts_total{degraded="yes"}', "> 0.10"),
        ("RoomloreContextErrors", "roomlore_context_errors_total", "> 0.05"),
        ("RoomloreContextScoreLow", "roomlore_context_score_sum", "< 0.2"),
    ],
)
async def test_the_alert_goes_by_a_series_that_is_served(measured, alert, series, threshold):
    expression = alert_rules()[alert]
    assert series in expression
    assert threshold in expression
    _, _, text = measured
    assert (
        f"# TYPE {series.partition('{')[0].removesuffix('_bucket').removesuffix('_sum').removesuffix('_total')}" in text
    )
