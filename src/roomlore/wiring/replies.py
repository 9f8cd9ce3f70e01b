"""The reply loop: what the replies of all tenants share."""

from contextlib import AsyncExitStack

from roomlore.adapters.prompts import PackagedPrompts
from roomlore.core.intake import Limits
from roomlore.ports.coordination import Clock, Ids, Telemetry
from roomlore.ports.language import TokenCounter
from roomlore.ports.recall import Recall
from roomlore.ports.storage import Storage
from roomlore.services.models import ModelService
from roomlore.services.recall import KnownForReplies, RecallParts
from roomlore.services.replies import Background, ReplyOptions, ReplyParts
from roomlore.settings import Settings

_SHARE_OF_VECTORS = 0.5
"""Of the time recalling may take, so that a slow embedder costs a reply no facts."""


def make_replies(
    settings: Settings,
    storage: Storage,
    models: ModelService,
    *,
    tokens: TokenCounter,
    clock: Clock,
    ids: Ids,
    telemetry: Telemetry,
    limits: Limits,
    closing: AsyncExitStack,
) -> ReplyParts:
    """Closed before what it uses: replies that are being stored come to their end."""
    background = Background()
    closing.push_async_callback(background.close)
    return ReplyParts(
        storage=storage,
        models=models,
        prompts=PackagedPrompts(),
        tokens=tokens,
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        background=background,
        limits=limits,
        options=reply_options(settings),
    )


def make_recalls(settings: Settings, recall: RecallParts) -> tuple[Recall, ...]:
    """What replies ask for memories; nothing where recall is off."""
    wait = settings.recall_timeout_seconds * _SHARE_OF_VECTORS
    return (KnownForReplies(recall, wait_seconds=wait),) if settings.enabled else ()


def reply_options(settings: Settings) -> ReplyOptions:
    """What the settings say about replies."""
    return ReplyOptions(
        model=settings.reply_model,
        max_tokens=settings.reply_max_tokens,
        window=settings.model_context_window,
        max_tool_iterations=settings.max_tool_iterations,
        content_filter_text=settings.content_filter_text,
        length_text=settings.length_text,
        recall_max_tokens=settings.recall_max_tokens,
        recall_timeout_seconds=settings.recall_timeout_seconds,
    )
