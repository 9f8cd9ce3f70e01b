"""Where prompts come from."""

from contextlib import AsyncExitStack

from roomlore.adapters.langfuse import open_langfuse
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import Prompts
from roomlore.settings import Settings

KEPT_ELSEWHERE = ("memory_evolve", "user_facts")
"""The prompts that may be kept in Langfuse."""


def make_prompts(settings: Settings, *, clock: Clock, telemetry: Telemetry, closing: AsyncExitStack) -> Prompts:
    """Those that ship, or with `langfuse_host` set a Langfuse's before them. Nothing is asked of it yet."""
    packaged = PackagedPrompts()
    if not settings.langfuse_host:
        return packaged
    prompts = open_langfuse(
        settings.langfuse_host,
        public_key=settings.langfuse_public_key,
        secret_key=settings.langfuse_secret_key,
        names=KEPT_ELSEWHERE,
        packaged=packaged,
        clock=clock,
        telemetry=telemetry,
        label=settings.langfuse_label,
        cache_seconds=settings.langfuse_cache_seconds,
        timeout_seconds=settings.langfuse_timeout_seconds,
    )
    closing.push_async_callback(prompts.close)
    return prompts
