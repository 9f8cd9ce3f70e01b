"""What is measured, where spans go, and who is told of errors."""

from contextlib import AsyncExitStack

from roomlore.adapters.inprocess.telemetry import PrometheusTelemetry
from roomlore.adapters.otel import open_tracer
from roomlore.adapters.sentry import open_reports
from roomlore.ports.coordination import Clock, ErrorReports, Tracer
from roomlore.settings import Settings


def make_telemetry(settings: Settings, *, clock: Clock, closing: AsyncExitStack) -> PrometheusTelemetry:
    """Spans are made only where `otlp_endpoint` is set, errors told only where `sentry_dsn` is."""
    return PrometheusTelemetry(clock, _tracer(settings, clock, closing), _reports(settings, closing))


def _tracer(settings: Settings, clock: Clock, closing: AsyncExitStack) -> Tracer | None:
    if not settings.otlp_endpoint:
        return None
    tracer = open_tracer(settings.otlp_endpoint, clock=clock)
    closing.push_async_callback(tracer.close)
    return tracer


def _reports(settings: Settings, closing: AsyncExitStack) -> ErrorReports | None:
    if not settings.sentry_dsn:
        return None
    reports = open_reports(settings.sentry_dsn)
    closing.push_async_callback(reports.close)
    return reports
