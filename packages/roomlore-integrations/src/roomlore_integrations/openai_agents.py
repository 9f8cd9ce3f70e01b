"""A session of the OpenAI Agents SDK, stored as the messages of a conversation. Needs the extra `openai-agents`."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, cast

from roomlore import InvalidInput, Lore, Message, NotFound, Role, StoredMessage
from roomlore.core.sessions.window import as_chat, shown
from roomlore.sync import SyncLore
from roomlore_integrations.payloads import Readable, call_line, give_back, keep, plain_json, readable

try:
    from agents import SessionSettings, TResponseInputItem
except ModuleNotFoundError as error:
    raise InvalidInput("openai_agents_not_installed", name=error.name) from error

__all__ = ["RoomloreSession"]

T = TypeVar("T")

_KEY = "openai_agents"
_ROLES = {"user": Role.USER, "system": Role.SYSTEM, "developer": Role.SYSTEM, "tool": Role.TOOL}
_ARGUMENTS = ("arguments", "input", "code", "action", "operation")
_MEANWHILE = 20
"""The most messages by others since the context was read before all are read again."""


class RoomloreSession:
    """The memory of `Runner.run(agent, input, session=...)`.

    Items are returned as they were added, in order. Messages that others wrote into the conversation are returned as
    `{"role", "content"}`. `lore`: an open `roomlore.Lore`, or a client from `roomlore.open_sync`, which works on any
    event loop, as `Runner.run_sync` needs. `user_id`, `agent_code`: the speakers. `session_settings.limit`, or a dict
    with a `limit`: the default limit of `get_items`. `fit_window`: without any limit, return what
    `lore.sessions.query_context` shows, a summary and the turns after it, within `model_context_window` tokens and with
    at least `recent_turns` turns (by default from the settings). Raises `InvalidInput` if `lore` is neither.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        conversation_id: str,
        lore: Lore | SyncLore,
        *,
        user_id: str = "",
        agent_code: str = "",
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
        fit_window: bool = False,
        recent_turns: int | None = None,
        model_context_window: int | None = None,
    ) -> None:
        if not isinstance(lore, Lore | SyncLore):
            raise InvalidInput("lore_invalid_for_openai_agents", kind=type(lore).__name__)
        self.session_id = conversation_id
        self.session_settings = _settings(session_settings)
        self._lore = lore
        self._user_id = user_id
        self._agent_code = agent_code
        self._fit_window = fit_window
        self._recent_turns = recent_turns
        self._model_context_window = model_context_window
        self._turn = ""

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items since the session was last cleared, the newest `limit` of them if given.

        With `fit_window` and no limit: those that fit the window. Raises `BudgetTooSmall` if the summary does not fit,
        and `StorageUnavailable`.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        try:
            if limit is None and self._fit_window:
                return _typed(await self._inside_window())
            return _typed([_item(message) for message in await self._messages(limit)])
        except NotFound:
            return []

    async def add_items(self, items: Sequence[TResponseInputItem]) -> None:
        """Store the items, all or none. Raises `InvalidInput` for items that are too large or no JSON."""
        if not items:
            return
        messages = [_message(item) for item in items]
        stored = await self._ask(
            lambda lore: lore.sessions.add_messages(
                self.session_id, messages, user_id=self._user_id, agent_code=self._agent_code, turn_id=self._turn
            )
        )
        self._turn = stored.turn_id

    async def pop_item(self) -> TResponseInputItem | None:
        """Delete the newest item and return it, None if there is none. Concurrent callers never get the same item."""
        try:
            while newest := await self._messages(1):
                if await self._delete(newest[0].id):
                    return _typed([_item(newest[0])])[0]
        except NotFound:
            pass
        return None

    async def clear_session(self) -> None:
        """Reset the session: earlier items are no longer returned. They stay stored, before a reset of the session."""
        self._turn = ""
        try:
            await self._ask(lambda lore: lore.sessions.reset(self.session_id, viewer=None))
        except NotFound:
            return

    async def _messages(self, limit: int | None) -> list[StoredMessage]:
        return await self._ask(lambda lore: lore.sessions.messages(self.session_id, limit=limit, viewer=None))

    async def _delete(self, message_id: str) -> int:
        return await self._ask(lambda lore: lore.messages.delete(self.session_id, message_id))

    async def _ask(self, work: Callable[[Lore], Coroutine[Any, Any, T]]) -> T:
        """Run it on the event loop to which roomlore belongs."""
        if isinstance(self._lore, SyncLore):
            return await asyncio.to_thread(self._lore.wait, work)
        return await work(self._lore)

    async def _inside_window(self) -> list[dict[str, Any]]:
        """Return the summary and the items after it."""
        context = await self._ask(
            lambda lore: lore.sessions.query_context(
                self.session_id,
                recent_turns=self._recent_turns,
                model_context_window=self._model_context_window,
                viewer=None,
            )
        )
        summary = [dict(message) for message in context.messages[: 1 if context.checkpoint_id else 0]]
        wanted = set(context.message_ids)
        stored = await self._messages(len(wanted) + _MEANWHILE) if wanted else []
        if not wanted <= {message.id for message in stored}:
            stored = await self._messages(None)
        return [*summary, *_answered(_item(message) for message in stored if message.id in wanted)]


def _settings(given: SessionSettings | Mapping[str, Any] | None) -> SessionSettings | None:
    if not isinstance(given, Mapping):
        return given
    refused = InvalidInput("session_settings_invalid", value=f"{dict(given)!r:.80}")
    if not given.keys() <= {field.name for field in fields(SessionSettings)}:
        raise refused
    try:
        return SessionSettings(**given)
    except (TypeError, ValueError) as error:
        raise refused from error


def _answered(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the items without outputs whose calls are before the window: model servers refuse those."""
    called: set[str] = set()
    for item in items:
        if _calls(item):
            called.add(str(item.get("call_id")))
        if not _kind(item).endswith("_call_output") or str(item.get("call_id")) in called:
            yield item


def _typed(items: list[dict[str, Any]]) -> list[TResponseInputItem]:
    return cast("list[TResponseInputItem]", items)


def _message(item: object) -> Message:
    raw = plain_json(item, "An item of the session")
    role, readable_message = _read(raw)
    return Message(
        id="",
        room_id="",
        sender_id="",
        role=role,
        text=readable_message.text,
        has_tool_calls=_calls(raw),
        metadata={_KEY: keep(raw, readable_message)},
    )


def _item(message: StoredMessage) -> dict[str, Any]:
    raw = give_back(message.metadata.get(_KEY), message.text)
    if raw is None or (_kind(raw) == "message" and _read(raw)[1].text != message.text):
        return dict(as_chat("", [shown(message)], "en")[0])
    return raw


def _kind(raw: Mapping[str, Any]) -> str:
    """Return the item's type; a message need not name it."""
    kind = raw.get("type")
    return kind if isinstance(kind, str) else "message"


def _calls(raw: Mapping[str, Any]) -> bool:
    return _kind(raw).endswith(("_call", "_approval_request"))


def _read(raw: Mapping[str, Any]) -> tuple[Role, Readable]:
    """Return the role and the text. Reasoning has no text, as it was not said to anybody."""
    kind = _kind(raw)
    if kind == "message":
        return _ROLES.get(str(raw.get("role")), Role.ASSISTANT), readable(raw.get("content"), ("content",))
    if kind.endswith(("_output", "_approval_response")):
        return Role.TOOL, readable(raw.get("output"), ("output",))
    if _calls(raw):
        return Role.ASSISTANT, _read_call(raw, kind)
    return _ROLES.get(str(raw.get("role")), Role.ASSISTANT), Readable("")


def _read_call(raw: Mapping[str, Any], kind: str) -> Readable:
    given = next((raw[name] for name in _ARGUMENTS if raw.get(name)), "")
    return Readable(call_line(str(raw.get("name") or kind.removesuffix("_call")), given))
