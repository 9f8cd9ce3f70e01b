"""Session and memory services of Google's Agent Development Kit over roomlore. Need the extra `google-adk`.

A session is a conversation whose room is named after the application, the user and the session. Its events are
messages; the state is kept with the conversation, that of a user and of an application in conversations of their own.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from roomlore import ConversationMessage, InvalidInput, Lore, Message, NotFound, Role, StoredMessage, SyncLore
from roomlore_integrations.agent_memory import AgentMemory, MemoryOptions, ask, check_lore, or_without
from roomlore_integrations.payloads import Readable, call_line, give_back, keep, plain_json

try:
    from google.adk.events import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import BaseSessionService, Session, State
    from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
    from google.genai import types
except ModuleNotFoundError as error:
    raise InvalidInput("google_adk_not_installed", name=error.name) from error

__all__ = ["RoomloreMemoryService", "RoomloreSessionService"]

_KEY = "google_adk"
_ROOMS = "adk:"
_PAGE = 100
_MOST_FOUND = 10
_MAX_TOKENS = 500


def room_of(app_name: str, user_id: str | None = None, session_id: str | None = None) -> str:
    """Return the room of a session; without one, the conversation that keeps the state of a user or an application."""
    names = [name for name in (app_name, user_id, session_id) if name is not None]
    return _ROOMS + json.dumps(names, ensure_ascii=False, separators=(",", ":"))


class RoomloreSessionService(BaseSessionService):  # type: ignore[misc] # ADK is not there when types are checked
    """The sessions of `Runner(session_service=RoomloreSessionService(lore))`.

    Events come back as they were appended; people and agents in them are messages that roomlore searches, links and
    forgets. `lore`: from `roomlore.open` or `roomlore.open_sync`. Raises `InvalidInput` for another `lore`, and for a
    state or an event that is not JSON.
    """

    def __init__(self, lore: Lore | SyncLore) -> None:
        self._lore = check_lore(lore)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
        **_more: Any,
    ) -> Session:
        """Create a session, with an id of its own unless one is given. Raises `InvalidInput` if it exists."""
        name = (session_id or "").strip() or uuid.uuid4().hex
        room_id = room_of(app_name, user_id, name)

        async def work(lore: Lore) -> None:
            kept = await _kept(lore, room_id)
            if kept is not None and not kept.get("deleted"):
                raise InvalidInput("adk_session_exists", session=f"{name!r:.60}")
            made = {"deleted": None, "created_at": lore.now().timestamp()}
            await _keep(lore, room_id, made, user_id=user_id)
            await _keep_state(lore, app_name, user_id, name, state or {})

        await ask(self._lore, work)
        session = await self.get_session(app_name=app_name, user_id=user_id, session_id=name)
        assert session is not None
        return session

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session with its events, None if there is none."""
        room_id = room_of(app_name, user_id, session_id)

        async def work(lore: Lore) -> Session | None:
            kept = await _kept(lore, room_id)
            if kept is None or kept.get("deleted"):
                return None
            read = [_event(message) for message in await _messages(lore, room_id)]
            events = [event for event in read if event is not None]
            session = await _session(lore, app_name, user_id, session_id, kept)
            session.last_update_time = max([session.last_update_time, *(event.timestamp for event in events)])
            session.events = _wanted(events, config)
            return session

        return await ask(self._lore, work)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of a user, or of every user, without their events, the last used last."""
        begins = room_of(app_name, user_id).removesuffix("]") + ","

        async def work(lore: Lore) -> ListSessionsResponse:
            sessions = []
            for room_id in await _rooms(lore, begins):
                names, kept = json.loads(room_id.removeprefix(_ROOMS)), await _kept(lore, room_id)
                if len(names) == len(("app", "user", "session")) and kept is not None and not kept.get("deleted"):
                    session = await _session(lore, names[0], names[1], names[2], kept)
                    last = (await lore.rooms.get(room_id)).last_sent_at
                    session.last_update_time = max(session.last_update_time, last.timestamp() if last else 0.0)
                    sessions.append(session)
            sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
            return ListSessionsResponse(sessions=sessions)

        return await ask(self._lore, work)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete the events of a session and its state. The state of the user and the application stays."""
        room_id = room_of(app_name, user_id, session_id)

        async def work(lore: Lore) -> None:
            if await _kept(lore, room_id) is None:
                return
            await lore.messages.delete(room_id, [message.id for message in await _messages(lore, room_id)])
            await lore.sessions.reset(room_id, viewer=None)
            await _keep(lore, room_id, {"deleted": True, "state": None})

        await ask(self._lore, work)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return what is kept of a user in every session, without the prefix `user:`."""
        kept = await ask(self._lore, lambda lore: _kept(lore, room_of(app_name, user_id)))
        return _state(kept)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Add an event to a session and store it, with what it changes in the state."""
        event = await super().append_event(session=session, event=event)
        if event.partial:
            return event
        delta = {
            name: value
            for name, value in (event.actions.state_delta or {}).items()
            if not name.startswith(State.TEMP_PREFIX)
        }
        event.actions.state_delta = delta
        message = _message(event, session.user_id)
        room_id = room_of(session.app_name, session.user_id, session.id)

        async def work(lore: Lore) -> None:
            kept = await _kept(lore, room_id)
            if kept is None or kept.get("deleted"):
                raise NotFound("adk_session_unknown", session=f"{session.id!r:.60}")
            await lore.sessions.add_messages(room_id, [message], user_id=session.user_id)
            await _keep_state(lore, session.app_name, session.user_id, session.id, delta)

        await ask(self._lore, work)
        session.last_update_time = event.timestamp
        return event


class RoomloreMemoryService(BaseMemoryService):  # type: ignore[misc] # as above
    """The memory of `Runner(memory_service=RoomloreMemoryService(lore))`, which `load_memory` and `PreloadMemoryTool`
    search.

    It finds facts about the user, and messages of every room that the user may see: sessions of this application, and
    group chats. With `viewer`, such as 'room:team', what everybody there may know: give it if the agent answers in a
    group. `max_messages`: the most messages; `max_tokens`: of the facts. If a search fails, a warning is logged and
    nothing is found.
    """

    def __init__(
        self,
        lore: Lore | SyncLore,
        *,
        viewer: str | None = None,
        max_messages: int = _MOST_FOUND,
        max_tokens: int = _MAX_TOKENS,
    ) -> None:
        self._lore = check_lore(lore)
        self._options: MemoryOptions = {"viewer": viewer, "max_messages": max_messages, "max_tokens": max_tokens}
        AgentMemory.of(lore, "user", **self._options)

    async def add_session_to_memory(self, session: Session) -> None:
        """Store what was said in a session. What `RoomloreSessionService` stored already is not stored again."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events as messages of the session's room."""
        del custom_metadata
        messages = [_message(event, user_id) for event in events if not event.partial]
        room_id = room_of(app_name, user_id, session_id or "")
        if messages:
            await ask(self._lore, lambda lore: lore.sessions.add_messages(room_id, messages, user_id=user_id))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add facts about a user, one for each entry with a text."""
        del app_name, custom_metadata
        texts = [text for text in (_text(entry.content) for entry in memories) if text]

        async def work(lore: Lore) -> None:
            for text in texts:
                await lore.memories.add(f"user:{user_id}", text)

        await ask(self._lore, work)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the facts about a user that matter for a query, and messages that answer it."""
        memory = AgentMemory.of(self._lore, user_id, **self._options)
        own = room_of(app_name).removesuffix("]") + ","

        async def work(lore: Lore) -> list[MemoryEntry]:
            conversation = [ConversationMessage("user", query)]
            facts = (await memory.facts(lore, conversation, None)).splitlines()
            messages = await memory.found(lore, None, query, memory.max_messages) if memory.max_messages else []
            of_others = [
                message
                for message in messages
                if message.room_id.startswith(_ROOMS) and not message.room_id.startswith(own)
            ]
            return [*map(_fact_entry, facts), *(_entry(message) for message in messages if message not in of_others)]

        entries = await or_without(ask(self._lore, work), [], "the memory was not searched")
        return SearchMemoryResponse(memories=entries)


async def _kept(lore: Lore, conversation_id: str) -> dict[str, Any] | None:
    """Return what is kept with a conversation, None if there is none."""
    try:
        value = await lore.sessions.get_session(conversation_id, viewer=None)
    except NotFound:
        return None
    kept = value.extra.get(_KEY)
    return dict(kept) if isinstance(kept, Mapping) else None


async def _keep(lore: Lore, conversation_id: str, change: Mapping[str, Any], *, user_id: str = "") -> None:
    """Keep fields with a conversation, and make it if it is new."""
    await lore.sessions.create_session(conversation_id, user_id, viewer=None)
    await lore.sessions.patch_state(conversation_id, {_KEY: dict(change)}, viewer=None)


async def _keep_state(lore: Lore, app_name: str, user_id: str, session_id: str, delta: Mapping[str, Any]) -> None:
    """Keep changes of the state, each where its prefix says. A value is kept as a text, since a merge patch would join
    it with the one before."""
    places: dict[str, dict[str, str]] = {}
    for name, value in delta.items():
        if name.startswith(State.TEMP_PREFIX):
            continue
        if name.startswith(State.APP_PREFIX):
            place, plain = room_of(app_name), name.removeprefix(State.APP_PREFIX)
        elif name.startswith(State.USER_PREFIX):
            place, plain = room_of(app_name, user_id), name.removeprefix(State.USER_PREFIX)
        else:
            place, plain = room_of(app_name, user_id, session_id), name
        places.setdefault(place, {})[plain] = _json(name, value)
    of_all = room_of(app_name)  # nobody's: forgetting whoever came first would take it from everybody
    for place, change in places.items():
        await _keep(lore, place, {"state": change}, user_id="" if place == of_all else user_id)


def _json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("adk_state_not_json", name=f"{name!r:.60}") from None


def _state(kept: Mapping[str, Any] | None, prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}{name}": json.loads(value) for name, value in ((kept or {}).get("state") or {}).items()}


async def _session(lore: Lore, app_name: str, user_id: str, session_id: str, kept: Mapping[str, Any]) -> Session:
    """Return a session with its state, without events."""
    of_app, of_user = await _kept(lore, room_of(app_name)), await _kept(lore, room_of(app_name, user_id))
    return Session(
        id=session_id,
        app_name=app_name,
        user_id=user_id,
        state={**_state(kept), **_state(of_app, State.APP_PREFIX), **_state(of_user, State.USER_PREFIX)},
        last_update_time=float(kept.get("created_at") or 0.0),
    )


async def _messages(lore: Lore, room_id: str) -> list[StoredMessage]:
    try:
        return list(await lore.sessions.messages(room_id, viewer=None))
    except NotFound:
        return []


async def _rooms(lore: Lore, begins: str) -> list[str]:
    """Return the conversations whose ids begin so."""
    rooms: list[str] = []
    after = begins
    while page := await lore.sessions.page(after=after, limit=_PAGE, viewer=None):
        ours = [session.conversation_id for session in page if session.conversation_id.startswith(begins)]
        rooms += ours
        if len(ours) < len(page):
            break
        after = ours[-1]
    return rooms


def _wanted(events: list[Event], config: GetSessionConfig | None) -> list[Event]:
    if config is None:
        return events
    if config.after_timestamp is not None:
        events = [event for event in events if event.timestamp >= config.after_timestamp]
    if config.num_recent_events is not None:
        events = events[-config.num_recent_events :] if config.num_recent_events > 0 else []
    return events


def _message(event: Event, user_id: str) -> Message:
    raw = plain_json(event.model_dump(mode="json", exclude_none=True), "An event of the session")
    readable, role = _readable(raw), _role(event)
    return Message(
        id=event.id,
        room_id="",
        sender_id=user_id if role is Role.USER else event.author,
        role=role,
        text=readable.text,
        sent_at=datetime.fromtimestamp(event.timestamp, UTC),
        has_tool_calls=bool(event.get_function_calls()),
        turn_id=event.invocation_id or event.id,
        metadata={_KEY: keep(raw, readable)},
    )


def _role(event: Event) -> Role:
    if event.get_function_responses():
        return Role.TOOL
    return Role.USER if event.author == "user" else Role.ASSISTANT


def _readable(raw: Mapping[str, Any]) -> Readable:
    """Return the text of an event; that of its tool calls if it has no other. A thought was said to nobody."""
    parts = (raw.get("content") or {}).get("parts") or []
    texts = [(place, part["text"]) for place, part in enumerate(parts) if part.get("text") and not part.get("thought")]
    if len(texts) == 1:
        return Readable(texts[0][1], ("content", "parts", texts[0][0], "text"))
    calls = [part["function_call"] for part in parts if part.get("function_call")]
    lines: Iterable[str] = (text for _, text in texts)
    if not texts:
        lines = (call_line(str(call.get("name")), call.get("args") or {}) for call in calls)
    return Readable("\n".join(lines))


def _event(message: StoredMessage) -> Event | None:
    """Return the event of a message; one of another writer becomes an event of its sender."""
    raw = give_back(message.metadata.get(_KEY), message.text)
    if raw is not None:
        return Event.model_validate(raw)
    if not message.text.strip() or message.role not in (Role.USER, Role.ASSISTANT):
        return None
    author = "user" if message.role is Role.USER else message.sender_id
    return Event(id=message.id, author=author, content=_content(message), timestamp=message.at.timestamp())


def _content(message: StoredMessage) -> types.Content:
    role = "user" if message.role is Role.USER else "model"
    return types.Content(role=role, parts=[types.Part(text=message.text)])


def _text(content: types.Content | None) -> str:
    return "\n".join(part.text for part in (content.parts if content else None) or () if part.text).strip()


def _fact_entry(line: str) -> MemoryEntry:
    return MemoryEntry(content=types.Content(parts=[types.Part(text=line.removeprefix("- "))]))


def _entry(message: StoredMessage) -> MemoryEntry:
    author = message.sender_name or message.sender_id
    return MemoryEntry(content=_content(message), author=author, timestamp=message.at.isoformat())
