"""Language models, prompts, telemetry, and the dependencies that every part of roomlore shares."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from roomlore.adapters.chat import can_chat, open_chat
from roomlore.adapters.inprocess.clock import SystemClock
from roomlore.adapters.inprocess.telemetry import PrometheusTelemetry
from roomlore.adapters.langfuse import open_langfuse
from roomlore.adapters.otel import open_tracer
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.adapters.sentry import open_reports
from roomlore.core.chat import SUMMARY_MODEL, ModelRegistry
from roomlore.core.intake import Limits
from roomlore.ports.coordination import Clock, ErrorReports, Ids, Jobs, Telemetry, Tracer
from roomlore.ports.language import Prompts, Summarizer, TokenCounter
from roomlore.ports.storage import Storage
from roomlore.services.models import ChainSummarizer, ModelService
from roomlore.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The dependencies of every part of one process. `closing`: is closed with it. `background`: jobs run here."""

    settings: Settings
    storage: Storage
    tokens: TokenCounter
    clock: Clock
    ids: Ids
    telemetry: PrometheusTelemetry
    jobs: Jobs
    limits: Limits
    closing: AsyncExitStack
    background: bool


KEPT_ELSEWHERE = ("memory_evolve", "user_facts")
"""The prompts that may be stored in Langfuse."""


def make_prompts(common: Common) -> Prompts:
    """Return the built-in prompts, or with `langfuse_host` set those of Langfuse first. No request is sent yet."""
    packaged = PackagedPrompts()
    if not common.settings.langfuse_host:
        return packaged
    prompts = open_langfuse(
        common.settings.langfuse_host,
        public_key=common.settings.langfuse_public_key,
        secret_key=common.settings.langfuse_secret_key,
        names=KEPT_ELSEWHERE,
        packaged=packaged,
        clock=common.clock,
        telemetry=common.telemetry,
        label=common.settings.langfuse_label,
        cache_seconds=common.settings.langfuse_cache_seconds,
        timeout_seconds=common.settings.langfuse_timeout_seconds,
    )
    common.closing.push_async_callback(prompts.close)
    return prompts


def make_models(settings: Settings, *, clock: Clock, telemetry: Telemetry, closing: AsyncExitStack) -> ModelService:
    """Return the chain of the configured models, with the keys in the environment now. No request is sent yet."""
    registry = ModelRegistry.read(settings.models, settings.providers)
    client = open_chat(clock=clock) if can_chat() else None
    if client is not None:
        closing.push_async_callback(client.close)
    return ModelService(
        registry=registry,
        client=client,
        keys=settings.environment_keys(registry.key_variables()),
        clock=clock,
        telemetry=telemetry,
        timeout_seconds=settings.model_timeout_seconds,
    )


async def summarizer_of(models: ModelService, settings: Settings) -> Summarizer | None:
    """Return the summarizer of sessions; None if no provider of its model can be asked."""
    if await models.has_provider(SUMMARY_MODEL):
        return ChainSummarizer(
            models=models, prompts=PackagedPrompts(), timeout_seconds=settings.summary_timeout_seconds
        )
    return None


@asynccontextmanager
async def open_models(settings: Settings) -> AsyncIterator[ModelService]:
    """Open the model chain alone, for callers without a database."""
    clock = SystemClock()
    async with AsyncExitStack() as closing:
        yield make_models(settings, clock=clock, telemetry=PrometheusTelemetry(clock), closing=closing)


def make_telemetry(settings: Settings, *, clock: Clock, closing: AsyncExitStack) -> PrometheusTelemetry:
    """Return the telemetry. Spans are made only if `otlp_endpoint` is set, errors are sent only if `sentry_dsn` is."""
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
