"""Language models: which there are, their keys, and what asks them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from roomlore.adapters.chat import can_chat, open_chat
from roomlore.adapters.inprocess.clock import SystemClock
from roomlore.adapters.inprocess.telemetry import PrometheusTelemetry
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.core.chat.registry import SUMMARY_MODEL, ModelRegistry
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import Summarizer
from roomlore.services.models import ChainSummarizer, ModelService
from roomlore.settings import Settings


def make_models(settings: Settings, *, clock: Clock, telemetry: Telemetry, closing: AsyncExitStack) -> ModelService:
    """The chain of the settings' models, with the keys that are in the environment now. Nothing is asked of any yet."""
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
    """What writes summaries of sessions; None where no provider of the model for it can be asked."""
    if await models.has_provider(SUMMARY_MODEL):
        return ChainSummarizer(
            models=models, prompts=PackagedPrompts(), timeout_seconds=settings.summary_timeout_seconds
        )
    return None


@asynccontextmanager
async def open_models(settings: Settings) -> AsyncIterator[ModelService]:
    """The chain alone, for whoever needs no database."""
    clock = SystemClock()
    async with AsyncExitStack() as closing:
        yield make_models(settings, clock=clock, telemetry=PrometheusTelemetry(clock), closing=closing)
