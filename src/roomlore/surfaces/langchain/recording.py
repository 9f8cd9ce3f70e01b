"""A middleware that stores what an agent heard and said as messages of a room."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from roomlore import InvalidInput, Lore, Message, Role, SyncLore
from roomlore.core.errors import describe
from roomlore.surfaces.langchain.middleware import role_of, thread_id_of_call

_NEWEST = 200
"""The most messages of a state that are looked at."""

log = logging.getLogger(__name__)

Named = str | Callable[[AgentState[Any], Runtime[Any]], str]
"""An id, or a function of the agent's state and its runtime."""


class RecordingMiddleware(AgentMiddleware[AgentState[Any], Any]):
    """Stores the messages of people and of the agent after each run of the agent, once each.

    `lore`: from `roomlore.open_sync`, for every method of the agent; or from `roomlore.open`, for its async methods
    only. `room_id`: the room, by default the `thread_id` that the agent is called with. `user_id`: who speaks, for
    messages without a name of their own. `agent_id`: who answers. `room_id` and `user_id` may be functions `(state,
    runtime)`. Calls of tools and their results are not stored. If storing fails, a warning is logged and the agent goes
    on. Raises `InvalidInput` for invalid arguments.
    """

    def __init__(
        self,
        lore: Lore | SyncLore,
        *,
        room_id: Named | None = None,
        user_id: Named = "user",
        agent_id: str = "assistant",
    ) -> None:
        super().__init__()
        if not isinstance(lore, Lore | SyncLore):
            raise InvalidInput(f"lore is a {type(lore).__name__}; give what roomlore.open_sync or roomlore.open opens.")
        self._lore = lore
        self._room_id = room_id
        self._user_id = user_id
        self._agent_id = agent_id

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Store what was said. Raises `InvalidInput` over an async roomlore."""
        if not isinstance(self._lore, SyncLore):
            raise InvalidInput(
                "This middleware is over an async roomlore: use the agent's async methods (ainvoke, astream), or give "
                "it what roomlore.open_sync opens."
            )
        try:
            if said := self._said(state, runtime, self._lore.now()):
                self._lore.messages.add(said, on_conflict="report")
        except Exception as error:  # noqa: BLE001 - whatever befalls the memory, the agent goes on
            _warn(error)

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Store what was said."""
        if isinstance(self._lore, SyncLore):
            await asyncio.to_thread(self.after_agent, state, runtime)
            return
        try:
            if said := self._said(state, runtime, self._lore.now()):
                await self._lore.messages.add(said, on_conflict="report")
        except Exception as error:  # noqa: BLE001 - as above
            _warn(error)

    def _said(self, state: AgentState[Any], runtime: Runtime[Any], now: datetime) -> list[Message]:
        room_id = thread_id_of_call() if self._room_id is None else _named(self._room_id, state, runtime)
        if not room_id:
            raise InvalidInput("the agent was called without a thread_id; give room_id.")
        user_id = _named(self._user_id, state, runtime)
        return list(self._messages(state["messages"][-_NEWEST:], room_id, user_id, now))

    def _messages(
        self, messages: Sequence[BaseMessage], room_id: str, user_id: str, now: datetime
    ) -> Iterator[Message]:
        asked: str | None = None
        for message in messages:
            role = role_of(message)
            if role not in ("user", "assistant") or not message.text.strip() or not message.id:
                continue
            is_own = role == "assistant"
            yield Message(
                id=message.id,
                room_id=room_id,
                sender_id=self._agent_id if is_own else message.name or user_id,
                sender_name=message.name or "",
                role=Role.ASSISTANT if is_own else Role.USER,
                text=message.text,
                sent_at=now,
                reply_to=asked if is_own else None,
            )
            asked = asked if is_own else message.id


def _named(given: Named, state: AgentState[Any], runtime: Runtime[Any]) -> str:
    return str(given(state, runtime)) if callable(given) else given


def _warn(error: Exception) -> None:
    log.warning("what the agent heard and said was not stored: %s", describe(error))
