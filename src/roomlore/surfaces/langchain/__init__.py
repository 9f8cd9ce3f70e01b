"""Faces for LangChain. Needs the extra `langchain`."""

from typing import TYPE_CHECKING, Any

from roomlore.surfaces.langchain.history import RoomloreChatMessageHistory

if TYPE_CHECKING:
    from roomlore.surfaces.langchain.middleware import MemoryMiddleware

__all__ = ["MemoryMiddleware", "RoomloreChatMessageHistory"]


def __getattr__(name: str) -> Any:
    """The middleware is loaded when it is first asked for: it brings LangGraph, which a history does without."""
    if name == "MemoryMiddleware":
        from roomlore.surfaces.langchain.middleware import MemoryMiddleware

        return MemoryMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
