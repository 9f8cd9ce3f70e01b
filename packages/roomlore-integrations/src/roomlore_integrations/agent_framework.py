"""A context provider and a history for Microsoft Agent Framework. Need the extra `agent-framework`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from typing import Any, Unpack

from roomlore import ConversationMessage, InvalidInput, Lore, NotFound, Role, StoredMessage, SyncLore
from roomlore import Message as OwnMessage
from roomlore.core.sessions.window import shown
from roomlore_integrations.agent_memory import AgentMemory, MemoryOptions, ask, check_lore, or_without
from roomlore_integrations.payloads import Readable, call_line, give_back, keep, plain_json

try:
    from agent_framework import ContextProvider, HistoryProvider, Message
except ModuleNotFoundError as error:
    raise InvalidInput("agent_framework_not_installed", name=error.name) from error

__all__ = ["RoomloreContextProvider", "RoomloreHistoryProvider"]

_KEY = "agent_framework"
_ROLES = {"user": Role.USER, "system": Role.SYSTEM, "developer": Role.SYSTEM, "tool": Role.TOOL}
_SPOKEN = (Role.USER, Role.ASSISTANT)
_Store = Callable[[str, Sequence[OwnMessage]], Awaitable[None]]


class RoomloreHistoryProvider(HistoryProvider):  # type: ignore[misc] # it is not there when types are checked
    """The history of `Agent(context_providers=[RoomloreHistoryProvider(lore)])`.

    Messages come back as they were saved, and those that others wrote into the conversation as plain ones. The
    conversation is the session's id. `user_id`, `agent_id`: the speakers. `options`: as of Agent Framework's
    `HistoryProvider`, such as `load_messages`. `lore`: from `roomlore.open` or `roomlore.open_sync`. Raises
    `InvalidInput` for another `lore`, for a session without an id, and for messages that are no JSON.
    """

    def __init__(
        self,
        lore: Lore | SyncLore,
        *,
        user_id: str = "",
        agent_id: str = "",
        source_id: str = "roomlore_history",
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self._lore = check_lore(lore)
        self._user_id = user_id
        self._agent_id = agent_id

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **_more: Any
    ) -> list[Message]:
        """Return the messages of a session, oldest first."""
        if not session_id:
            return []
        try:
            stored = await ask(self._lore, lambda lore: lore.sessions.messages(session_id, viewer=None))
        except NotFound:
            return []
        return list(map(_given_back, stored))

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **_more: Any,
    ) -> None:
        """Store messages of a session, all or none."""
        if not messages:
            return
        if not session_id:
            raise InvalidInput("agent_framework_session_missing")
        batch = [_message(message, self._agent_id) for message in messages]
        await ask(
            self._lore,
            lambda lore: lore.sessions.add_messages(
                session_id, batch, user_id=self._user_id, agent_code=self._agent_id
            ),
        )

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Load the history, and store what is asked, so that it stays if the model fails. A history that ends with the
        same question has it from a run that failed: it is then neither stored nor shown again."""
        await super().before_run(agent=agent, session=session, context=context, state=state)
        asked = context.input_messages
        if not self.store_inputs or not asked:
            return
        history = context.context_messages.get(self.source_id, [])
        if self.store_outputs and list(map(_contents, history[-len(asked) :])) == list(map(_contents, asked)):
            context.context_messages[self.source_id] = history[: -len(asked)]
        else:
            await self.save_messages(context.session_id, asked, state=state)
        context.metadata[self._is_stored] = True

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Store what is not stored yet."""
        if context.metadata.get(self._is_stored):
            context = copy(context)
            context.input_messages = []
        await super().after_run(agent=agent, session=session, context=context, state=state)

    @property
    def _is_stored(self) -> str:
        """The key of a run's metadata that says that its question is stored."""
        return f"{self.source_id}:stored"


class RoomloreContextProvider(ContextProvider):  # type: ignore[misc] # as above
    """The memory of `Agent(context_providers=[RoomloreContextProvider(lore, "ann")])`.

    Before each run it adds the facts that matter to the instructions, and earlier messages of the conversation that
    answer the last question and are not shown. It stores the question before the run and the answer after it, unless a
    `RoomloreHistoryProvider` of the same agent does. `user_id`: who speaks, `agent_id`: who answers. `room_id`: the
    conversation, by default the session's id. `scopes`: of the facts, by default `user:<user_id>`. `viewer`: to whom
    the answers are shown, 'room:team' or 'user:ann'; by default the user, so give the room if the agent answers in a
    group. It decides what is recalled. `max_tokens`: of the facts; the setting by default. `max_messages`: the most
    earlier messages. If recalling or storing fails, a warning is logged and the agent goes on. Raises `InvalidInput`
    for invalid arguments.
    """

    def __init__(
        self,
        lore: Lore | SyncLore,
        user_id: str,
        *,
        source_id: str = "roomlore",
        room_id: str | None = None,
        **options: Unpack[MemoryOptions],
    ) -> None:
        super().__init__(source_id)
        self._room_id = room_id
        self._memory = AgentMemory.of(lore, user_id, **options)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Add what is recalled to the instructions, and store what is asked, so that it stays if the model fails."""
        messages = context.get_messages(include_input=True)
        conversation = [
            ConversationMessage(_role(message).value, message.text, bool(_calls(message))) for message in messages
        ]
        if text := await self._memory.recalled(conversation, self._room_of(context)):
            context.extend_instructions(self.source_id, f"<memory>\n{text}\n</memory>")
        await self._store(agent, context, context.input_messages, self._memory.store_question)

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Store what the agent answered."""
        answered = context.response.messages if context.response else ()
        await self._store(agent, context, answered, self._memory.store)

    async def _store(self, agent: Any, context: Any, given: Sequence[Message], store: _Store) -> None:
        room_id, beside = self._room_of(context), getattr(agent, "context_providers", None) or ()
        if not room_id or any(isinstance(provider, RoomloreHistoryProvider) for provider in beside):
            return
        messages = [
            _message(message, self._memory.agent_id)
            for message in given
            if _role(message) in _SPOKEN and message.text.strip()
        ]
        await or_without(store(room_id, messages), None, "what the agent heard and said was not stored")

    def _room_of(self, context: Any) -> str | None:
        room: str | None = self._room_id or context.session_id
        return room


def _contents(message: Message) -> tuple[Role, str | None, Any]:
    return _role(message), message.author_name, message.to_dict().get("contents")


def _role(message: Message) -> Role:
    return _ROLES.get(str(getattr(message.role, "value", message.role)), Role.ASSISTANT)


def _calls(message: Message) -> list[Any]:
    return [content for content in message.contents if content.type == "function_call"]


def _message(given: Message, agent_id: str) -> OwnMessage:
    raw = plain_json(given.to_dict(), "A message of the session")
    readable, role = _readable(given, raw), _role(given)
    return OwnMessage(
        id="",
        room_id="",
        sender_id=agent_id if role in (Role.ASSISTANT, Role.TOOL) else "",
        sender_name=given.author_name or "",
        role=role,
        text=readable.text,
        has_tool_calls=bool(_calls(given)),
        metadata={_KEY: keep(raw, readable)},
    )


def _readable(given: Message, raw: Mapping[str, Any]) -> Readable:
    """Return the text of a message; that of its tool calls and their results if it has no other."""
    parts = raw.get("contents") or []
    texts = [
        (place, part["text"]) for place, part in enumerate(parts) if part.get("type") == "text" and part.get("text")
    ]
    if len(texts) == 1:
        return Readable(texts[0][1], ("contents", texts[0][0], "text"))
    if texts:
        return Readable("\n".join(text for _, text in texts))
    calls = [call_line(str(call.name), call.arguments or {}) for call in _calls(given)]
    results = [str(content.result) for content in given.contents if content.type == "function_result"]
    return Readable("\n".join([*calls, *results]))


def _given_back(message: StoredMessage) -> Message:
    raw = give_back(message.metadata.get(_KEY), message.text)
    if raw is not None:
        restored: Message = Message.from_dict(raw)
        return restored
    return Message(role=message.role.value, contents=[shown(message).text], author_name=message.sender_name or None)
