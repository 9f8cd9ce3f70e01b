"""Spans exported by OpenTelemetry. The SDK is loaded when a tracer is opened."""

from importlib.util import find_spec
from typing import ClassVar

from roomlore.core.errors import InvalidInput
from roomlore.ports.backends import TRACERS, Backend, Extra, Section, WebAddress, setting
from roomlore.ports.coordination import Clock, Tracer


def open_tracer(endpoint: str, *, clock: Clock) -> Tracer:
    """Return a tracer that exports to `endpoint` by OTLP over HTTP (`{endpoint}/v1/traces`), within a few seconds, on
    its own thread. OpenTelemetry's environment variables (OTEL_SERVICE_NAME, OTEL_EXPORTER_OTLP_HEADERS,
    OTEL_TRACES_SAMPLER, ...) apply.

    Raises `InvalidInput` if the extra is not installed.
    """
    # Other packages install a part of the extra.
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        raise InvalidInput("otel_not_installed")
    from roomlore.adapters.otel.tracer import OtelTracer, exporting_to

    return OtelTracer(exporting_to(endpoint), clock=clock)


class OtelSettings(Section):
    """Spans for OpenTelemetry."""

    section: ClassVar[str] = "opentelemetry"
    otlp_endpoint: WebAddress = setting(
        "",
        "Where OpenTelemetry spans are sent, without texts; empty: nowhere.",
        form="an http or https URL such as http://localhost:4318",
    )


OTEL = Backend(
    kind=TRACERS,
    name="otel",
    open=lambda settings, host: open_tracer(settings.otlp_endpoint, clock=host.clock),
    settings=OtelSettings,
    lacks=lambda settings: "" if settings.otlp_endpoint else "otlp_endpoint is not set; give the receiver's address.",
    extra=Extra("otel", "opentelemetry.exporter"),
)
