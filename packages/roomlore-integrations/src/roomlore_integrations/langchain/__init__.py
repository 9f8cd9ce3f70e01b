"""Integrations with LangChain. Need the extra `langchain`."""

from typing import TYPE_CHECKING, Any

from roomlore_integrations.langchain.history import RoomloreChatMessageHistory

if TYPE_CHECKING:
    from roomlore_integrations.langchain.middleware import MemoryMiddleware, RecordingMiddleware

__all__ = ["MemoryMiddleware", "RecordingMiddleware", "RoomloreChatMessageHistory"]


def __getattr__(name: str) -> Any:
    """Load a middleware at its first use: it imports LangGraph, which a history does not need."""
    if name in {"MemoryMiddleware", "RecordingMiddleware"}:
        from roomlore_integrations.langchain import middleware

        return getattr(middleware, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
