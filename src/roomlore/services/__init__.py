"""The use cases. Each service is imported when it is first named, so that a command loads what it uses."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roomlore.services import (
        archives,
        attachments,
        contexts,
        digest,
        evaluation,
        evolution,
        extraction,
        health,
        imports,
        indexing,
        jobs,
        keys,
        links,
        memories,
        memory_search,
        messages,
        models,
        privacy,
        quotas,
        recall,
        replies,
        rooms,
        sessions,
    )

__all__ = [
    "archives",
    "attachments",
    "contexts",
    "digest",
    "evaluation",
    "evolution",
    "extraction",
    "health",
    "imports",
    "indexing",
    "jobs",
    "keys",
    "links",
    "memories",
    "memory_search",
    "messages",
    "models",
    "privacy",
    "quotas",
    "recall",
    "replies",
    "rooms",
    "sessions",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
