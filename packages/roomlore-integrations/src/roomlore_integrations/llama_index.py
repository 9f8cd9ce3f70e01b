"""A memory block of LlamaIndex, which recalls from roomlore. Needs the extra `llama-index`."""

from collections.abc import Iterable
from typing import Any, Unpack

from roomlore import ConversationMessage, InvalidInput, Lore, Message, Role, SyncLore
from roomlore_integrations.agent_memory import AgentMemory, MemoryOptions, or_without

try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock
except ModuleNotFoundError as error:
    raise InvalidInput("llama_index_not_installed", name=error.name) from error
except ImportError as error:
    raise InvalidInput("llama_index_too_old") from error

__all__ = ["RoomloreMemoryBlock"]

_ROLES = {
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "chatbot": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_SPOKEN = (Role.USER, Role.ASSISTANT)


class RoomloreMemoryBlock(BaseMemoryBlock[str]):  # type: ignore[misc] # LlamaIndex is not there when types are checked
    """A block of `Memory.from_defaults(memory_blocks=[...])`: facts about a person, and what was said before.

    It gives the facts that matter for the conversation, and messages that have left LlamaIndex's window and answer the
    last question. Messages that leave the window are stored in a room. `lore`: from `roomlore.open` or
    `roomlore.open_sync`. `user_id`: who speaks, `agent_id`: who answers. `room_id`: the room, by default the
    `session_id` of the memory. `scopes`: of the facts, by default `user:<user_id>`. `viewer`: to whom the answers are
    shown, 'room:team' or 'user:ann'; by default the user, so give the room if the agent answers in a group. It decides
    what is recalled. `max_tokens`: of the facts; the setting by default. `max_messages`: the most earlier messages; 0
    for none. `priority`: as LlamaIndex has it; 0 is never cut. If recalling or storing fails, a warning is logged and
    the agent goes on. Raises `InvalidInput` for invalid arguments.
    """

    _memory: AgentMemory = PrivateAttr()
    _room_id: str | None = PrivateAttr(default=None)

    def __init__(
        self,
        lore: Lore | SyncLore,
        user_id: str,
        *,
        name: str = "roomlore",
        priority: int = 0,
        room_id: str | None = None,
        **options: Unpack[MemoryOptions],
    ) -> None:
        about = "Facts about the user, and what was said before."
        super().__init__(name=name, description=about, priority=priority)
        self._room_id = room_id
        self._memory = AgentMemory.of(lore, user_id, **options)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """Return what is recalled for these messages, '' for nothing."""
        conversation = [
            ConversationMessage(
                _role(message).value, message.content or "", bool(message.additional_kwargs.get("tool_calls"))
            )
            for message in messages or ()
        ]
        return await self._memory.recalled(conversation, self._room_id or block_kwargs.get("session_id"))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store what people and the agent said. Raises `InvalidInput` if neither `room_id` nor a session names a
        room."""
        for room_id, of_room in _by_room(messages, self._room_id):
            await or_without(self._memory.store(room_id, of_room), None, "what left the window was not stored")


def _by_room(messages: Iterable[ChatMessage], room_id: str | None) -> list[tuple[str, list[Message]]]:
    rooms: dict[str, list[Message]] = {}
    for message in messages:
        room = room_id or message.additional_kwargs.get("session_id")
        if not room:
            raise InvalidInput("llama_index_room_missing")
        role, text = _role(message), (message.content or "").strip()
        if role in _SPOKEN and text:
            rooms.setdefault(room, []).append(Message(id="", room_id="", sender_id="", role=role, text=text))
    return list(rooms.items())


def _role(message: ChatMessage) -> Role:
    return _ROLES.get(str(getattr(message.role, "value", message.role)), Role.SYSTEM)
