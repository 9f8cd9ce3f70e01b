"""Metrics of this process, in a registry of their own, with output as Prometheus text."""

import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from roomlore.core.errors import RoomloreError
from roomlore.ports.coordination import Attributes, Clock, ErrorReports, Span, Tracer

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_REQUEST_SECONDS = (*_SECONDS, 30.0, 60.0)
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
_LONG_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_PROMPTS = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072)
_COUNTS = (0, 1, 2, 3, 5, 8, 13, 20, 35, 50, 100, 200)


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its description, its labels, and the upper bounds of a histogram's buckets. `spanned`: True if its
    timings become spans; False if the timed code has its own span."""

    kind: Literal["counter", "histogram", "level", "set"]
    description: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    spanned: bool = True


METRICS: Mapping[str, Metric] = {
    "roomlore_http_request_seconds": Metric(
        "histogram",
        (
            "Time until a request over HTTP was answered whole, in seconds: by route as `/context`, and by "
            "`2xx` to `5xx`, or `left` where the caller left before an answer."
        ),
        ("method", "route", "status"),
        _REQUEST_SECONDS,
        spanned=False,
    ),
    "roomlore_context_build_seconds": Metric("histogram", "Time to build a context, in seconds.", (), _SECONDS),
    "roomlore_contexts_total": Metric("counter", "Contexts given to callers.", ("strategy", "degraded")),
    "roomlore_context_errors_total": Metric("counter", "Context builds that failed or ran out of time.", ("kind",)),
    "roomlore_context_score": Metric("histogram", "Mean score of the messages of a context, in [0, 1].", (), _SHARES),
    "roomlore_context_messages": Metric("histogram", "Messages in a context.", (), _COUNTS),
    "roomlore_context_tokens_total": Metric("counter", "Tokens of the messages chosen."),
    "roomlore_window_tokens_total": Metric("counter", "Tokens the plain last-N window would have cost."),
    "roomlore_room_cache_total": Metric(
        "counter",
        "Lookups in the cache of features and links; `followed`: with what other processes added.",
        ("result",),
    ),
    "roomlore_feedback_score": Metric("histogram", "Feedback on contexts, in [0, 1].", (), _SHARES),
    "roomlore_rooms_served": Metric("set", "Distinct rooms a context was built for since the start."),
    "roomlore_messages_added_total": Metric("counter", "Messages added."),
    "roomlore_searches_total": Metric("counter", "Searches of messages answered.", ("mode", "degraded")),
    "roomlore_search_seconds": Metric("histogram", "Time to search messages, in seconds.", (), _SECONDS),
    "roomlore_messages_indexed_total": Metric("counter", "Messages whose vectors were brought up to date."),
    "roomlore_memories_indexed_total": Metric("counter", "Memories whose vectors were brought up to date."),
    "roomlore_memory_search_seconds": Metric(
        "histogram", "Time to search memories, in seconds.", ("mode", "degraded"), _SECONDS
    ),
    "roomlore_checkpoints_total": Metric(
        "counter",
        (
            "Checkpoints of sessions asked for: made by `caller`, `extract` (sentences chosen), `model` or "
            "`auto` (failed ones); `done`, `conflict` or `failed`."
        ),
        ("made_by", "result"),
    ),
    "roomlore_summary_tokens": Metric("histogram", "Length of summaries in force, in tokens.", (), _TOKENS),
    "roomlore_session_token_ratio": Metric(
        "histogram", "Share of the model's window that sessions took, in [0, 1].", (), _SHARES
    ),
    "roomlore_session_seconds": Metric(
        "histogram",
        "Time that reading a session took, `database` or `cache`, and that a write took (`write`), in seconds.",
        ("part",),
        _SECONDS,
    ),
    "roomlore_session_cache_total": Metric(
        "counter",
        (
            "Lookups of sessions in the cache: `hit`, `changed` (brought up to date), `miss`, `rejected` (a miss: not "
            "signed by this database), `bypassed` (Redis is down)."
        ),
        ("result",),
    ),
    "roomlore_sessions_truncated_total": Metric("counter", "Sessions that no longer fit the model's window."),
    "roomlore_model_calls_total": Metric(
        "counter",
        (
            "Calls to providers of language models: `answered`, `unusable`, `abandoned`, or why not: "
            "`unreachable`, `dropped`, `timeout`, `refused`, `limited`, `broken`."
        ),
        ("provider", "result"),
    ),
    "roomlore_model_call_seconds": Metric(
        "histogram", "Time that calls to providers of language models took.", ("provider", "result"), _LONG_SECONDS
    ),
    "roomlore_model_tokens_total": Metric(
        "counter",
        "Tokens that providers of language models say calls took, `input` and `output`.",
        ("provider", "kind"),
    ),
    "roomlore_extractions_total": Metric(
        "counter",
        "Extractions of short memories: `kept`, `nothing` worth keeping, or a `fallback` because no model answered.",
        ("result",),
    ),
    "roomlore_fallbacks_total": Metric(
        "counter",
        (
            "Memories kept without a model that were looked at again: `made` by a model, `nothing` worth "
            "keeping, an `unusable` answer, `sourceless` since its messages were deleted, or `left` alone since "
            "it had changed."
        ),
        ("result",),
    ),
    "roomlore_evolutions_total": Metric(
        "counter",
        (
            "Evolutions of what is remembered of groups and people: `applied`, `nothing` to change, `empty` "
            "since nothing new was said, `failed` since the answer was unusable, `error` or `stopped`; by a "
            "model (`llm`), by rules (`offline`), or as asked for where nobody came to read."
        ),
        ("result", "mode"),
    ),
    "roomlore_evolution_seconds": Metric(
        "histogram", "Time an evolution took, waiting for its turn included, in seconds.", ("mode",), _LONG_SECONDS
    ),
    "roomlore_evolution_doubtful_total": Metric(
        "counter", "Changes of evolutions whose words look doubtful beside the messages that they cite."
    ),
    "roomlore_evolution_rejected_total": Metric("counter", "Operations in models' answers that evolutions refused."),
    "roomlore_langfuse_prompts_total": Metric(
        "counter", "Prompts asked for from Langfuse: `found`, `unreachable` or `unusable`.", ("result",)
    ),
    "roomlore_replies_total": Metric(
        "counter",
        (
            "Replies asked for: why the model stopped (`stop`, `length`, `content_filter`, `tool_calls`), "
            "`repeated`, `refused` (the caller can mend it), `failed` or `abandoned` (the caller left)."
        ),
        ("result",),
    ),
    "roomlore_replies_stored_later_total": Metric(
        "counter",
        "Messages of replies that waited for the database: `stored`, `refused` (changed meanwhile) or `lost`.",
        ("result",),
    ),
    "roomlore_replies_waiting": Metric(
        "level", "Questions and answers of replies that wait in memory until the database is back."
    ),
    "roomlore_reply_first_text_seconds": Metric(
        "histogram", "Time until a reply's first text, in seconds.", (), _LONG_SECONDS
    ),
    "roomlore_reply_seconds": Metric("histogram", "Time a reply took, in seconds.", (), _LONG_SECONDS),
    "roomlore_reply_prompt_tokens": Metric("histogram", "Length of replies' prompts, in tokens.", (), _PROMPTS),
    "roomlore_recalls_total": Metric(
        "counter",
        (
            "Times a reply asked a hook for what it might recall: what came was `used`, there was `nothing`, or "
            "it went without: `too_long`, `failed`, `timeout`."
        ),
        ("recall", "result"),
    ),
    "roomlore_work_total": Metric(
        "counter",
        (
            "Attempts at durable work: `done`, `failed` (three in a row end it) or `stopped` (broken off as the "
            "process ended); and `retried`, what was begun anew after it had failed for good."
        ),
        ("kind", "result"),
    ),
    "roomlore_work_seconds": Metric(
        "histogram", "Time that an attempt at durable work took that was done, in seconds.", ("kind",), _LONG_SECONDS
    ),
    "roomlore_recall_blocks_total": Metric(
        "counter",
        (
            "Blocks of facts given: `new`, or `changed` or `kept` since the one before in the same "
            "conversation; `changed` is what costs prompt caches."
        ),
        ("block", "degraded"),
    ),
    "roomlore_recall_seconds": Metric("histogram", "Time to recall facts, in seconds.", (), _SECONDS),
    "roomlore_recall_tokens": Metric("histogram", "Length of blocks of facts, in tokens.", (), _TOKENS),
    "roomlore_quota_used": Metric(
        "level",
        (
            "How much a tenant used of a limit in its current period, as this process last saw it. Tenants without "
            "limits, and those beyond the first hundred, have none."
        ),
        ("tenant", "limit"),
    ),
    "roomlore_quota_limit": Metric("level", "The limit of a tenant.", ("tenant", "limit")),
    "roomlore_quota_refusals_total": Metric(
        "counter",
        "What was refused since a tenant's limit was reached; tenants beyond the first hundred are `_others`.",
        ("tenant", "limit"),
    ),
    "roomlore_jobs_total": Metric("counter", "Runs of background jobs.", ("job", "result")),
    "roomlore_usage_records_lost_total": Metric("counter", "Usage records that could not be stored."),
}

SUMMARIES: Mapping[str, str] = {
    "avg_context_build_time_ms": "Mean time to build a context, in milliseconds.",
    "context_cache_hit_rate": "Share of room cache lookups that were hits.",
    "avg_relevance_score": "Mean score of the messages chosen.",
    "avg_context_message_count": "Mean number of messages in a context.",
    "token_savings_rate": "Share of the plain window's tokens that was not spent.",
    "contexts_built_per_hour": "Contexts given in the last 60 minutes.",
    "unique_groups_served": "Distinct rooms a context was built for since the start.",
    "user_satisfaction_score": "Mean feedback score.",
    "context_effectiveness_rate": "Share of feedback scores above one half.",
    "degradation_rate": "Share of contexts that were a simpler answer than asked for.",
    "error_rate": "Share of context builds that failed or ran out of time.",
}

_Family = Counter | Histogram | Gauge


class PrometheusTelemetry:
    """The port `Telemetry` on prometheus-client. Thread-safe.

    `tracer`: also receives everything timed in seconds as a span. `reports`: receives unexpected errors.
    """

    def __init__(self, clock: Clock, tracer: Tracer | None = None, reports: ErrorReports | None = None) -> None:
        self._tracer = tracer
        self._reports = reports
        self.registry = CollectorRegistry()
        self._families = {name: _family(name, metric, self.registry) for name, metric in METRICS.items()}
        self._children: dict[str | tuple[object, ...], _Family] = {}
        self._members: dict[str, set[int]] = {name: set() for name, metric in METRICS.items() if metric.kind == "set"}
        self._last_hour = _LastHour(clock)
        self.registry.register(_Summaries(self))

    def count(self, name: str, amount: float = 1, *, labels: Mapping[str, str] | None = None) -> None:
        family = self._child(name, labels)
        assert isinstance(family, Counter)
        family.inc(amount)
        if name == "roomlore_contexts_total":
            self._last_hour.add(amount)

    def observe(self, name: str, value: float, *, labels: Mapping[str, str] | None = None) -> None:
        family = self._child(name, labels)
        assert isinstance(family, Histogram)
        family.observe(value)
        if self._tracer is not None and METRICS[name].spanned and name.endswith("_seconds"):
            span = name.removeprefix("roomlore_").removesuffix("_seconds").replace("_", " ")
            self._tracer.record(span, value, attributes=labels)

    def level(self, name: str, value: float, *, labels: Mapping[str, str] | None = None) -> None:
        family = self._child(name, labels)
        assert isinstance(family, Gauge)
        family.set(value)

    def span(
        self, name: str, *, attributes: Attributes | None = None, headers: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Span]:
        if self._tracer is None:
            return nullcontext(_NO_SPAN)
        return self._tracer.span(name, attributes=attributes, headers=headers)

    def unforeseen(self, error: BaseException, *, attributes: Attributes | None = None) -> None:
        if self._reports is not None and not isinstance(error, RoomloreError):
            self._reports.tell(error, attributes=attributes)

    def see(self, name: str, member: str) -> None:
        members = self._members[name]
        members.add(hash(member))
        family = self._families[name]
        assert isinstance(family, Gauge)
        family.set(len(members))

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def series(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        """Return the series of one name, such as `roomlore_search_seconds_bucket`, as `render` has it, each with its
        labels."""
        return list(self._samples(name))

    def bounds(self, name: str) -> tuple[float, ...]:
        """Return the bounds of a histogram's buckets, without the last bucket, which has none."""
        return METRICS[name].buckets

    def metrics(self) -> dict[str, float | None]:
        """Return the summaries named in `SUMMARIES`, over the life of this process; None for those without
        measurements."""
        contexts = self._total("roomlore_contexts_total")
        errors = self._total("roomlore_context_errors_total")
        return {
            "avg_context_build_time_ms": _scaled(self._mean("roomlore_context_build_seconds"), 1000),
            "context_cache_hit_rate": self._share("roomlore_room_cache_total", "result", "hit"),
            "avg_relevance_score": self._mean("roomlore_context_score"),
            "avg_context_message_count": self._mean("roomlore_context_messages"),
            "token_savings_rate": self._savings(),
            "contexts_built_per_hour": self._last_hour.total(),
            "unique_groups_served": float(len(self._members["roomlore_rooms_served"])),
            "user_satisfaction_score": self._mean("roomlore_feedback_score"),
            "context_effectiveness_rate": self._share_above_half("roomlore_feedback_score"),
            "degradation_rate": self._share("roomlore_contexts_total", "degraded", "yes"),
            "error_rate": _ratio(errors, contexts + errors - self._count("roomlore_contexts_total", "degraded", "yes")),
        }

    def _child(self, name: str, labels: Mapping[str, str] | None) -> _Family:
        key = (name, *labels.items()) if labels else name
        if key not in self._children:
            if set(labels or ()) != set(METRICS[name].labels):
                raise KeyError(f"{name} has the labels {METRICS[name].labels}, not {tuple(labels or ())}")
            family = self._families[name]
            self._children[key] = family.labels(**labels) if labels else family
        return self._children[key]

    def _samples(self, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
        stem = name.removesuffix("_sum").removesuffix("_count").removesuffix("_bucket")
        for family in self._families[stem].collect():
            yield from ((sample.labels, sample.value) for sample in family.samples if sample.name == name)

    def _total(self, name: str) -> float:
        return sum(value for _, value in self._samples(name))

    def _mean(self, name: str) -> float | None:
        return _ratio(self._total(f"{name}_sum"), self._total(f"{name}_count"))

    def _share(self, name: str, label: str, value: str) -> float | None:
        return _ratio(self._count(name, label, value), self._total(name))

    def _count(self, name: str, label: str, value: str) -> float:
        return sum(amount for labels, amount in self._samples(name) if labels[label] == value)

    def _share_above_half(self, name: str) -> float | None:
        low = sum(amount for labels, amount in self._samples(f"{name}_bucket") if labels["le"] == "0.5")
        count = self._total(f"{name}_count")
        return _ratio(count - low, count)

    def _savings(self) -> float | None:
        spent = _ratio(self._total("roomlore_context_tokens_total"), self._total("roomlore_window_tokens_total"))
        return None if spent is None else 1 - spent


class _NoSpan:
    """The port `Span` without tracing."""

    def note(self, name: str, value: str | int | float | bool) -> None:
        """Do nothing."""


_NO_SPAN = _NoSpan()


class _Summaries(Collector):
    """Exports the summaries as gauges; NaN for those without measurements."""

    def __init__(self, telemetry: PrometheusTelemetry) -> None:
        self._telemetry = telemetry

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for name, value in self._telemetry.metrics().items():
            yield GaugeMetricFamily(f"roomlore_{name}", SUMMARIES[name], value=math.nan if value is None else value)


class _LastHour:
    """A count over the last 60 minutes, to the minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._minutes: deque[tuple[int, float]] = deque()

    def add(self, amount: float) -> None:
        minute = self._minute()
        with self._lock:
            if self._minutes and self._minutes[-1][0] == minute:
                amount += self._minutes.pop()[1]
            self._minutes.append((minute, amount))
            self._forget(minute)

    def total(self) -> float:
        with self._lock:
            self._forget(self._minute())
            return sum(amount for _, amount in self._minutes)

    def _minute(self) -> int:
        return int(self._clock.monotonic() // 60)

    def _forget(self, minute: int) -> None:
        while self._minutes and self._minutes[0][0] <= minute - 60:
            self._minutes.popleft()


def _family(name: str, metric: Metric, registry: CollectorRegistry) -> _Family:
    if metric.kind == "counter":
        return Counter(name, metric.description, metric.labels, registry=registry)
    if metric.kind == "histogram":
        return Histogram(name, metric.description, metric.labels, buckets=metric.buckets, registry=registry)
    return Gauge(name, metric.description, metric.labels, registry=registry)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
