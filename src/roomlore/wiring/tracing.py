"""What is measured, and where spans go."""

from contextlib import AsyncExitStack

from roomlore.adapters.inprocess.telemetry import PrometheusTelemetry
from roomlore.adapters.otel import open_tracer
from roomlore.ports.coordination import Clock
from roomlore.settings import Settings


def make_telemetry(settings: Settings, *, clock: Clock, closing: AsyncExitStack) -> PrometheusTelemetry:
    """Spans are made only where `otlp_endpoint` is set."""
    if not settings.otlp_endpoint:
        return PrometheusTelemetry(clock)
    tracer = open_tracer(settings.otlp_endpoint, clock=clock)
    closing.push_async_callback(tracer.close)
    return PrometheusTelemetry(clock, tracer)
