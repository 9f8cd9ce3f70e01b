"""Spans on OpenTelemetry's SDK, kept in memory."""

import asyncio

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from roomlore.adapters.otel.tracer import OtelTracer
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore_testkit import FrozenClock

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def ended():
    return InMemorySpanExporter()


@pytest.fixture
async def telemetry(ended):
    clock = FrozenClock()
    tracer = OtelTracer(SimpleSpanProcessor(ended), clock=clock)
    yield PrometheusTelemetry(clock, tracer)
    await tracer.close()


async def test_what_is_timed_is_a_child_of_the_work_around_it(telemetry, ended):
    async def inside() -> None:
        telemetry.observe("roomlore_session_seconds", 0.25, labels={"part": "cache"})

    with telemetry.span("work 提取", attributes={"kind": "extraction"}) as span:
        await asyncio.create_task(inside())
        span.note("messages", 3)
    child, parent = ended.get_finished_spans()
    assert (child.name, dict(child.attributes)) == ("session", {"part": "cache"})
    assert child.end_time - child.start_time == 250_000_000
    assert child.parent.span_id == parent.context.span_id
    assert (parent.name, dict(parent.attributes)) == ("work 提取", {"kind": "extraction", "messages": 3})


async def test_only_what_is_timed_is_a_span(telemetry, ended):
    telemetry.observe("roomlore_context_score", 0.5)
    telemetry.count("roomlore_messages_added_total")
    telemetry.observe("roomlore_context_build_seconds", 0.001)
    assert [span.name for span in ended.get_finished_spans()] == ["context build"]


async def test_an_error_is_told_by_its_type_alone(telemetry, ended):
    with pytest.raises(ValueError, match="secret"), telemetry.span("work"):
        raise ValueError("a secret 秘密")
    (span,) = ended.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "ValueError"
    assert span.events == ()
    assert "secret" not in span.to_json()


async def test_a_request_goes_on_from_its_traceparent(telemetry, ended):
    with telemetry.span("GET", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"}):
        pass
    with telemetry.span("GET", headers={"traceparent": "rubbish 垃圾", "cookie": "secret"}):
        pass
    known, unknown = ended.get_finished_spans()
    assert (f"{known.context.trace_id:032x}", f"{known.parent.span_id:016x}") == (TRACE, PARENT)
    assert (known.kind, unknown.parent) == (SpanKind.SERVER, None)
    assert "secret" not in unknown.to_json()


async def test_the_environment_names_the_service(monkeypatch, ended):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "茶室")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    tracer = OtelTracer(SimpleSpanProcessor(ended), clock=FrozenClock())
    tracer.record("context", 0.1)
    await tracer.close()
    told = dict(ended.get_finished_spans()[0].resource.attributes)
    assert (told["service.name"], told["deployment.environment"]) == ("茶室", "test")
    assert set(told) <= {"service.name", "service.version", "deployment.environment"}


def test_without_a_tracer_nothing_happens():
    telemetry = PrometheusTelemetry(FrozenClock())
    with telemetry.span("work") as span:
        span.note("messages", 3)
