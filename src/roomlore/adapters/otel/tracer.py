"""The port `Tracer` on OpenTelemetry's SDK, with its own provider: spans of other libraries are not exported."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from roomlore.ports.coordination import Attributes, Clock

_CLOSE_SECONDS = 5.0
_SEND_SECONDS = 2.0
_W3C = TraceContextTextMapPropagator()


def exporting_to(endpoint: str) -> SpanProcessor:
    """Return a processor that exports spans in batches. A span that cannot be sent is dropped with a warning in the
    log."""
    return BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=_SEND_SECONDS))


class OtelTracer:
    """The port `Tracer`. `processor`: receives the finished spans."""

    def __init__(self, processor: SpanProcessor, *, clock: Clock) -> None:
        self._clock = clock
        self._provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("roomlore", version("roomlore"))

    @contextmanager
    def span(
        self, name: str, *, attributes: Attributes | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator["_OtelSpan"]:
        with self._tracer.start_as_current_span(
            name,
            context=_W3C.extract(headers) if headers else None,
            kind=trace.SpanKind.INTERNAL if headers is None else trace.SpanKind.SERVER,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield _OtelSpan(span)
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(trace.StatusCode.ERROR)
                raise

    def record(self, name: str, seconds: float, *, attributes: Attributes | None = None) -> None:
        end = int(self._clock.now().timestamp() * 1e9)
        span = self._tracer.start_span(name, attributes=attributes, start_time=end - int(seconds * 1e9))
        span.end(end)

    async def close(self) -> None:
        await asyncio.to_thread(self._provider.force_flush, int(_CLOSE_SECONDS * 1000))
        await asyncio.to_thread(self._provider.shutdown)


class _OtelSpan:
    """The port `Span`."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def note(self, name: str, value: str | int | float | bool) -> None:
        self._span.set_attribute(name, value)


def _resource() -> Resource:
    """Return the resource. The environment overrides it; nothing else about the machine is included."""
    resource = OTELResourceDetector().detect()
    return Resource({SERVICE_NAME: "roomlore", "service.version": version("roomlore"), **resource.attributes})
