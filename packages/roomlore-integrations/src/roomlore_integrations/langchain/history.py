"""A chat-message history of LangChain, stored as the messages of a conversation."""

import asyncio
from collections.abc import Sequence
from typing import Any

from roomlore import InvalidInput, Lore, Message, NotFound, Role, StoredMessage, SyncLore
from roomlore.core.sessions.window import shown
from roomlore_integrations.agent_memory import check_lore
from roomlore_integrations.payloads import Readable, call_line, give_back, keep, plain_json, readable, with_value

try:
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
        message_to_dict,
        messages_from_dict,
    )
except ModuleNotFoundError as error:
    raise InvalidInput("langchain_not_installed", name=error.name) from error

_KEY = "langchain"
_CONTENT = ("data", "content")
_ROLES = {
    "human": Role.USER,
    "user": Role.USER,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}


class RoomloreChatMessageHistory(BaseChatMessageHistory):
    """The messages of a conversation since it was last cleared, oldest first.

    Messages are returned as they were added. Messages that others wrote into the conversation are returned as human,
    AI, system and tool messages. `lore`: from `roomlore.open_sync`, for every method; or from `roomlore.open`, for the
    async methods only. `user_id`, `agent_code`: the speakers. Raises `InvalidInput` for a `lore` that is neither.
    """

    def __init__(self, conversation_id: str, lore: Lore | SyncLore, *, user_id: str = "", agent_code: str = "") -> None:
        super().__init__()
        self.conversation_id = conversation_id
        self._lore = check_lore(lore, "lore_invalid_for_framework")
        self._user_id = user_id
        self._agent_code = agent_code
        self._turn = ""

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Every message. Raises `InvalidInput` on an async `lore`, and `StorageUnavailable`."""
        sync = self._sync()
        try:
            return list(map(_given_back, sync.sessions.messages(self.conversation_id, viewer=None)))
        except NotFound:
            return []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store the messages, all or none. Raises `InvalidInput` also for messages that are too large or no JSON."""
        batch, sync = _batch(messages), self._sync()
        if batch:
            self._turn = sync.sessions.add_messages(self.conversation_id, batch, **self._speakers()).turn_id

    def clear(self) -> None:
        """Reset the conversation: earlier messages are no longer returned. They stay stored, before a reset of the
        session."""
        sync, self._turn = self._sync(), ""
        try:
            sync.sessions.reset(self.conversation_id, viewer=None)
        except NotFound:
            return

    async def aget_messages(self) -> list[BaseMessage]:
        """Return every message; see `messages`."""
        if isinstance(self._lore, SyncLore):
            return await asyncio.to_thread(lambda: self.messages)
        try:
            stored = await self._lore.sessions.messages(self.conversation_id, viewer=None)
        except NotFound:
            return []
        return list(map(_given_back, stored))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store the messages; see `add_messages`."""
        if isinstance(self._lore, SyncLore):
            await asyncio.to_thread(self.add_messages, messages)
        elif batch := _batch(messages):
            stored = await self._lore.sessions.add_messages(self.conversation_id, batch, **self._speakers())
            self._turn = stored.turn_id

    async def aclear(self) -> None:
        """Reset the conversation; see `clear`."""
        if isinstance(self._lore, SyncLore):
            await asyncio.to_thread(self.clear)
            return
        self._turn = ""
        try:
            await self._lore.sessions.reset(self.conversation_id, viewer=None)
        except NotFound:
            return

    def _sync(self) -> SyncLore:
        if isinstance(self._lore, SyncLore):
            return self._lore
        raise InvalidInput("history_is_async")

    def _speakers(self) -> dict[str, str]:
        return {"user_id": self._user_id, "agent_code": self._agent_code, "turn_id": self._turn}


def _batch(messages: Sequence[BaseMessage]) -> list[Message]:
    return list(map(_message, messages))


def _message(given: BaseMessage) -> Message:
    if not isinstance(given, BaseMessage):
        raise InvalidInput("history_message_invalid", kind=type(given).__name__)
    raw = plain_json(message_to_dict(given), f"A {type(given).__name__} of the history")
    readable_message = _read(raw)
    return Message(
        id="",
        room_id="",
        sender_id="",
        sender_name=given.name or "",
        role=_ROLES.get(raw["data"].get("role") or raw["type"], Role.ASSISTANT),
        text=readable_message.text,
        has_tool_calls=bool(raw["data"].get("tool_calls")),
        metadata={_KEY: keep(raw, readable_message)},
    )


def _read(raw: dict[str, Any]) -> Readable:
    """Return the text of a message; that of its tool calls if it has no other."""
    readable_message = readable(raw["data"]["content"], _CONTENT)
    calls = raw["data"].get("tool_calls")
    if readable_message.text or not calls:
        return readable_message
    return Readable("\n".join(call_line(call["name"], call["args"]) for call in calls))


def _given_back(message: StoredMessage) -> BaseMessage:
    raw = give_back(message.metadata.get(_KEY), message.text)
    if raw is None:
        return _plain(message)
    try:
        if _read(raw).text != message.text:
            raw = with_value(raw, _CONTENT, message.text)
        return messages_from_dict([raw])[0]
    except (LookupError, TypeError, ValueError):
        return _plain(message)


def _plain(message: StoredMessage) -> BaseMessage:
    """Return a message of another writer. A tool's output names no call; its own id is used instead."""
    text = shown(message).text
    if message.role is Role.TOOL:
        return ToolMessage(text, id=message.id, tool_call_id=message.reply_to or message.id)
    kinds: dict[Role, type[HumanMessage | AIMessage | SystemMessage]] = {
        Role.USER: HumanMessage,
        Role.ASSISTANT: AIMessage,
        Role.SYSTEM: SystemMessage,
    }
    return kinds[message.role](content=text, id=message.id)
