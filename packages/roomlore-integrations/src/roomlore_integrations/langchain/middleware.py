"""Middlewares of an agent: one shows the model recalled facts, the other stores what the agent heard and said.

`MemoryMiddleware`: `before_model` makes the block once for each message of the user. `wrap_model_call` adds it to the
model's input only, never to the agent's state: no history, stream, summary or checkpoint contains it, and every call
has exactly one. A private key of the state holds the facts that were shown, so that they stay from turn to turn.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, NotRequired, Unpack, cast

from roomlore import ConversationMessage, InvalidInput, Lore, Message, Recollection, Role, SyncLore
from roomlore.core.audience import check_viewer
from roomlore.core.errors import describe
from roomlore.core.memory.reading import INJECTED_NAME
from roomlore.core.memory.writing import check_kinds
from roomlore.core.recall import recollection
from roomlore.core.recall.recollection import (
    OverriddenRecall,
    Placement,
    RecallOptions,
    RecallOverrides,
    check_placement,
    otherwise,
    place_among,
    scopes_of,
)
from roomlore_integrations.agent_memory import check_lore

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelCallResult,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
    from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
    from langgraph.config import get_config
    from langgraph.runtime import Runtime
    from typing_extensions import TypedDict
except ModuleNotFoundError as error:
    raise InvalidInput("langchain_not_installed", name=error.name) from error

_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_SUMMARY, _NOT_SAID = "summarization", "system"
_LONGEST = 300
_AT_ONCE = 8
"""Concurrent calls over a synchronous roomlore; a blocked one does not delay the others."""

_TURNS = 1_000
"""Turns whose blocks are kept. A turn that continues after more turns than that, or in another process, is recalled
again."""

log = logging.getLogger("roomlore.langchain")


class ShownFacts(TypedDict):
    """`turn`: the turn of the last block. `shown`: the ids of its facts."""

    turn: str
    shown: list[str]


class MemoryState(AgentState[Any]):
    """An agent's state with the facts shown last, which are neither input nor output."""

    memory_context: NotRequired[Annotated[ShownFacts, PrivateStateAttr]]


Scopes = Sequence[str] | Callable[[MemoryState, Runtime[Any]], Sequence[str]]
"""The scopes of facts: a list, or a function of the agent's state and its runtime."""

ShownTo = str | Callable[[MemoryState, Runtime[Any]], str]
"""The viewer of the agent's answers, or a function as for `Scopes`: an agent may answer in several rooms."""


class MemoryMiddleware(AgentMiddleware[MemoryState, Any]):
    """Puts the facts that matter before the model, as one message named `memory_context`.

    `lore`: from `roomlore.open_sync`, for every method of the agent; or from `roomlore.open`, for its async methods
    only. `scopes`: such as `["user:ann"]`, or a function `(state, runtime)` that returns them. `placement`: 'system',
    after the system prompt, or 'trailing', just before the user's last message, so that the part before it never
    changes. `timeout_seconds`: how long recalling may take before the model is called without facts. `viewer`: who
    sees the agent's answers, 'room:team' or 'user:anna', or a function `(state, runtime)` that returns it; without one
    everything is recalled, and the caller decides who sees it. `options`: see `RecallOverrides`; the settings apply to
    those that are not given. The
    block is the same for every model call of a turn; in the next turn it stays unless relevance has clearly changed.
    If recalling fails or is slow, the block is left out and a warning is logged. Raises `InvalidInput` for invalid
    arguments.
    """

    state_schema = MemoryState

    def __init__(
        self,
        lore: Lore | SyncLore,
        scopes: Scopes,
        *,
        placement: Placement = "system",
        timeout_seconds: float | None = None,
        viewer: ShownTo | None = None,
        **options: Unpack[RecallOverrides],
    ) -> None:
        super().__init__()
        self._lore = check_lore(lore, "lore_invalid_for_framework")
        self._scopes = scopes if callable(scopes) else scopes_of(scopes)
        self._placement: Placement = check_placement(placement)
        overridden = OverriddenRecall(**options)
        otherwise(RecallOptions(), overridden)
        self._options: RecallOverrides = {**options, "kinds": check_kinds(overridden.kinds)}
        self._viewer = viewer if viewer is None or callable(viewer) else str(check_viewer(viewer))
        self._seconds = _seconds(recollection.RECALL_SECONDS if timeout_seconds is None else timeout_seconds)
        self._blocks: OrderedDict[str, str] = OrderedDict()
        self._threads = ThreadPoolExecutor(_AT_ONCE, "roomlore-memory") if isinstance(lore, SyncLore) else None

    def before_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Make the block of a turn that has none yet. Raises `InvalidInput` over an async roomlore."""
        if self._threads is None:
            raise InvalidInput("middleware_is_async")
        request = self._request_of(state, runtime)
        if request is None:
            return None
        call = self._threads.submit(self._building(request))
        try:
            return self._answered(request, call.result(self._seconds))
        except Exception as error:  # noqa: BLE001 - whatever befalls the memory, the agent goes on
            call.cancel()
            return self._without(request, error)

    async def abefore_model(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Make the block of a turn that has none yet."""
        request = self._request_of(state, runtime)
        if request is None:
            return None
        try:
            async with asyncio.timeout(self._seconds):
                return self._answered(request, await self._abuild(request))
        except Exception as error:  # noqa: BLE001 - whatever befalls the memory, the agent goes on
            return self._without(request, error)

    def wrap_model_call(
        self, request: "ModelRequest[Any]", handler: "Callable[[ModelRequest[Any]], ModelResponse[Any]]"
    ) -> "ModelCallResult[Any]":
        """Call the model with the turn's block."""
        return handler(self._with_block(request))

    async def awrap_model_call(
        self, request: "ModelRequest[Any]", handler: "Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]"
    ) -> "ModelCallResult[Any]":
        """Call the model with the turn's block."""
        return await handler(self._with_block(request))

    def _request_of(self, state: MemoryState, runtime: Runtime[Any]) -> "_Asked | None":
        """Return the request for recall; None if the turn has its block."""
        before, asking, thread_id = state.get("memory_context"), _last_of_user(state["messages"]), thread_id_of_call()
        made = before["turn"] if before and before["turn"] in self._blocks else None
        if made and asking is None:
            return None
        scopes, viewer = self._whose(state, runtime)
        turn = _turn(asking, scopes, thread_id, viewer)
        if made == turn:
            return None
        arguments: dict[str, Any] = {
            "scopes": scopes,
            "viewer": viewer,
            "messages": [_conversation_message(message) for message in state["messages"]],
            "conversation_id": thread_id,
            "previous": before["shown"] if before else None,
        }
        return _Asked(turn, arguments)

    def _whose(self, state: MemoryState, runtime: Runtime[Any]) -> tuple[list[str], str | None]:
        """Return the scopes and the viewer; no scope if one of the functions fails."""
        failing = "scopes"
        try:
            scopes = scopes_of(self._scopes(state, runtime)) if callable(self._scopes) else self._scopes
            failing = "viewer"
            viewer = str(check_viewer(self._viewer(state, runtime))) if callable(self._viewer) else self._viewer
        except Exception as error:  # noqa: BLE001 - as above, and the function is somebody else's
            _warn(f"{failing} failed: {describe(error)}")
            return [], None
        return scopes, viewer

    def _building(self, request: "_Asked") -> Callable[[], Any]:
        return partial(self._lore.recall.build, **request.arguments, **self._options)

    async def _abuild(self, request: "_Asked") -> Recollection:
        build = self._building(request)
        if self._threads is None:
            return cast(Recollection, await build())
        return cast(Recollection, await asyncio.get_running_loop().run_in_executor(self._threads, build))

    def _answered(self, request: "_Asked", recollection: Recollection) -> dict[str, Any]:
        return self._made(request, recollection.text, [fact.memory.memory_id for fact in recollection.facts])

    def _without(self, request: "_Asked", error: Exception) -> dict[str, Any]:
        _warn("it took too long" if isinstance(error, TimeoutError) else describe(error))
        return self._made(request, "", [])

    def _made(self, request: "_Asked", text: str, shown: list[str]) -> dict[str, Any]:
        """Return the update of the state. A turn without a block keeps the facts shown before."""
        self._blocks[request.turn] = text
        while len(self._blocks) > _TURNS:
            self._blocks.popitem(last=False)
        return {"memory_context": ShownFacts(turn=request.turn, shown=shown or request.arguments["previous"] or [])}

    def _with_block(self, request: "ModelRequest[Any]") -> "ModelRequest[Any]":
        shown = cast(MemoryState, request.state).get("memory_context")
        text = self._blocks.get(shown["turn"], "") if shown else ""
        others = [message for message in request.messages if not _is_block(message)]
        if text:
            kind = SystemMessage if self._placement == "system" else HumanMessage
            block = kind(text, name=INJECTED_NAME, id=INJECTED_NAME)
            others.insert(place_among([role_of(message) for message in others], self._placement), block)
        return request.override(messages=others)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A turn, and its request for recall."""

    turn: str
    arguments: dict[str, Any]


def _warn(why: str) -> None:
    log.warning("the model is called without memory: %s", why)


def _turn(asking: BaseMessage | None, scopes: Sequence[str], thread_id: str | None, viewer: str | None) -> str:
    question = (asking.id, asking.text) if asking else None
    return sha256(repr((question, scopes, thread_id, viewer)).encode("utf-8", "surrogatepass")).hexdigest()


def _last_of_user(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    return next((message for message in reversed(messages) if role_of(message) == "user"), None)


def _conversation_message(message: BaseMessage) -> ConversationMessage:
    calls = getattr(message, "tool_calls", None) or getattr(message, "invalid_tool_calls", None)
    role = role_of(message)
    return ConversationMessage(_NOT_SAID if role == _SUMMARY else role, message.text, bool(calls))


def role_of(message: BaseMessage) -> str:
    """Return the role of a message. A summary has the user's role but is not the user's text."""
    if _is_block(message) or message.additional_kwargs.get("lc_source") == _SUMMARY:
        return _SUMMARY
    return _ROLES.get(getattr(message, "role", message.type), _SUMMARY)


def _is_block(message: BaseMessage) -> bool:
    """Return True if the message is a block. Agents and tools may have that name, too."""
    return message.name == INJECTED_NAME and message.type in ("system", "human")


def thread_id_of_call() -> str | None:
    """Return the conversation's id, if the agent is called with one."""
    try:
        thread_id = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
    return None if thread_id in (None, "") else str(thread_id)


def _seconds(given: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= _LONGEST:
        raise InvalidInput("timeout_invalid", value=f"{given!r:.40}", most=_LONGEST)
    return float(given)


_NEWEST = 200
"""The most messages of a state that are looked at."""


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
        self._lore = check_lore(lore, "lore_invalid_for_framework")
        self._room_id = room_id
        self._user_id = user_id
        self._agent_id = agent_id

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Store what was said. Raises `InvalidInput` over an async roomlore."""
        if not isinstance(self._lore, SyncLore):
            raise InvalidInput("middleware_is_async")
        try:
            if messages := self._new_messages(state, runtime, self._lore.now()):
                self._lore.messages.add(messages, on_conflict="report")
        except Exception as error:  # noqa: BLE001 - whatever befalls the memory, the agent goes on
            _warn_unstored(error)

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Store what was said."""
        if isinstance(self._lore, SyncLore):
            await asyncio.to_thread(self.after_agent, state, runtime)
            return
        try:
            if messages := self._new_messages(state, runtime, self._lore.now()):
                await self._lore.messages.add(messages, on_conflict="report")
        except Exception as error:  # noqa: BLE001 - as above
            _warn_unstored(error)

    def _new_messages(self, state: AgentState[Any], runtime: Runtime[Any], now: datetime) -> list[Message]:
        room_id = thread_id_of_call() if self._room_id is None else _named(self._room_id, state, runtime)
        if not room_id:
            raise InvalidInput("agent_thread_missing")
        user_id = _named(self._user_id, state, runtime)
        return list(self._messages(state["messages"][-_NEWEST:], room_id, user_id, now))

    def _messages(
        self, messages: Sequence[BaseMessage], room_id: str, user_id: str, now: datetime
    ) -> Iterator[Message]:
        question: str | None = None
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
                reply_to=question if is_own else None,
            )
            question = question if is_own else message.id


def _named(given: Named, state: AgentState[Any], runtime: Runtime[Any]) -> str:
    return str(given(state, runtime)) if callable(given) else given


def _warn_unstored(error: Exception) -> None:
    log.warning("what the agent heard and said was not stored: %s", describe(error))
