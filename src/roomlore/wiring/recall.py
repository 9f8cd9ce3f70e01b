"""Recall: what the recall of all tenants shares."""

from roomlore.core.recall.models import RecallOptions
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import Embedder, TokenCounter
from roomlore.ports.storage import Storage
from roomlore.services.recall import FactShelf, FactVectors, RecallParts, ShownBefore
from roomlore.settings import Settings


def make_recall(
    settings: Settings,
    storage: Storage,
    embedder: Embedder | None,
    *,
    tokens: TokenCounter,
    clock: Clock,
    telemetry: Telemetry,
) -> RecallParts:
    """Nothing is read yet. `embedder`: closed by whoever made it."""
    return RecallParts(
        enabled=settings.enabled,
        options=recall_options(settings),
        shelf=FactShelf(storage=storage, tokens=tokens),
        vectors=FactVectors(embedder, timeout_seconds=settings.recall_timeout_seconds),
        shown=ShownBefore(),
        tokens=tokens,
        clock=clock,
        telemetry=telemetry,
    )


def recall_options(settings: Settings) -> RecallOptions:
    """What the settings say about recall."""
    return RecallOptions(
        max_tokens=settings.max_injection_tokens,
        max_context_turns=settings.max_context_turns,
        similarity_weight=settings.similarity_weight,
        confidence_weight=settings.confidence_weight,
        similarity=settings.similarity,
        scale=settings.similarity_scale,
        sticky=settings.sticky_facts,
        half_life_days=settings.strength_half_life_days,
    )
