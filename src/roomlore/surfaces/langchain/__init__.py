"""Faces for LangChain. Needs the extra `langchain`."""

from roomlore.surfaces.langchain.history import RoomloreChatMessageHistory

__all__ = ["RoomloreChatMessageHistory"]
