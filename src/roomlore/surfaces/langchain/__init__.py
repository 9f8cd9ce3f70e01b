"""Integrations with LangChain. Need the extra `langchain`."""

from typing import TYPE_CHECKING, Any

from roomlore.surfaces.langchain.history import RoomloreChatMessageHistory

if TYPE_CHECKING:
    from roomlore.surfaces.langchain.middleware import MemoryMiddleware
    from roomlore.surfaces.langchain.recording import RecordingMiddleware

__all__ = ["MemoryMiddleware", "RecordingMiddleware", "RoomloreChatMessageHistory"]


def __getattr__(name: str) -> Any:
    """Load a middleware at its first use: it imports LangGraph, which a history does not need."""
    if name == "MemoryMiddleware":
        from roomlore.surfaces.langchain.middleware import MemoryMiddleware

        return MemoryMiddleware
    if name == "RecordingMiddleware":
        from roomlore.surfaces.langchain.recording import RecordingMiddleware

        return RecordingMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
