"""The verbs of `lore.sessions`, and the changes of stored sessions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from roomlore.core.audience import ALWAYS, check_viewer
from roomlore.core.errors import BudgetTooSmall, Conflict, InvalidInput, NotFound, unknown_conversation
from roomlore.core.intake import Limits, check, check_page
from roomlore.core.models import Message, StoredMessage
from roomlore.core.sessions.session import (
    Batch,
    Checkpoint,
    Session,
    SessionContext,
    SessionValue,
    SessionWindow,
    Turn,
    TurnResult,
    as_value,
    begun,
    check_id,
    check_ids,
    filled,
    ids_of,
    joins_a_turn,
    patched,
)
from roomlore.core.sessions.window import (
    LONG_TOKEN,
    Segment,
    ShownWindow,
    WindowOptions,
    context_of,
    mark_in,
    show,
    value_of,
)
from roomlore.ports.audience import check_shown, view_for
from roomlore.ports.shared import Backends, Service
from roomlore.services.sessions.automatic import AutoCheckpoints, DeferredSummaries
from roomlore.services.sessions.checkpoints import Checkpointer, Wanted
from roomlore.services.sessions.reading import SegmentCache, SessionReader
from roomlore.storage import UnitOfWork

Along = Callable[[UnitOfWork], Awaitable[None]]
Change = Callable[[Session], Session]
T = TypeVar("T")
_INLINE_CHARACTERS = 150_000
"""Characters that are rendered and counted on the event loop; more use another thread."""
_LINE = 100
"""The cost of a message beside its text, in characters."""
_REFRESHED = 200
"""The number of messages a session shows up to which the cache is updated with every turn."""


Writer = Callable[..., Awaitable[Sequence[object]]]
"""Stores messages by room, and something else in the same transaction: called with them, `strict` and `along`, which is
called after the messages are written and before they are committed, again if the transaction is retried, and not at all
if every message existed already."""


class SessionKeeper(Service):
    """The stored sessions of one tenant; every change is made under the lock of the room's row."""

    def __init__(self, backends: Backends, *, tenant: str, writer: Writer) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._writer = writer

    async def find(self, conversation_id: str) -> Session | None:
        async with self._storage.reading(self._tenant) as work:
            return await work.sessions.find(conversation_id=conversation_id)

    async def require(self, work: UnitOfWork, conversation_id: str) -> Session:
        """Return the session. Raise `NotFound` if there is no such conversation."""
        session = await work.sessions.find(conversation_id=conversation_id)
        if session is None:
            raise unknown_conversation(conversation_id)
        return session

    async def stored(self, conversation_id: str, message_ids: Sequence[str]) -> dict[str, StoredMessage]:
        """Return those of these messages that exist, by id."""
        async with self._storage.reading(self._tenant) as work:
            entries = await work.messages.by_id(room_id=conversation_id, message_ids=list(message_ids))
        return {entry.message.id: entry.message for entry in entries}

    async def change(self, conversation_id: str, change: Change, *, make: bool = False) -> Session:
        """Change the session as it is stored now. `make`: create room and session if they are missing."""
        with self._timed():
            return await self._change(conversation_id, change, make=make)

    async def _change(self, conversation_id: str, change: Change, *, make: bool) -> Session:
        async with self._storage.writing(self._tenant) as work:
            stored = await self._locked(work, conversation_id, make=make)
            changed = change(stored)
            return stored if changed == stored and stored.version else await self._save(work, changed)

    async def write(
        self, conversation_id: str, messages: Sequence[Message], *, user_id: str, agent_key: str
    ) -> tuple[Session, bool]:
        """Store messages and the session's changes in one transaction. Return the session, and True if the messages
        were new."""
        kept: list[Session] = []

        async def keep(work: UnitOfWork) -> None:
            stored = filled(await self.require(work, conversation_id), {"user_id": user_id})
            kept.append(await self._save(work, replace(stored, agent_key=agent_key or stored.agent_key)))

        try:
            with self._timed():
                await self._writer({conversation_id: messages}, strict=True, along=keep)
        except Conflict as error:
            raise Conflict("turn_stored_differently", turn=repr(messages[-1].turn_id)) from error
        if kept:
            return kept[-1], True
        async with self._storage.reading(self._tenant) as work:
            return await self.require(work, conversation_id), False

    async def reset(self, conversation_id: str) -> None:
        """Put everything said so far behind a boundary, with no checkpoint in force."""
        async with self._storage.writing(self._tenant) as work:
            stored = await self._locked(work, conversation_id, make=False)
            mark = Checkpoint(
                checkpoint_id=self._ids.new(),
                conversation_id=conversation_id,
                number=stored.marks + 1,
                kind="reset",
                covers_arrival=stored.next_arrival - 1,
                created_at=self._clock.now(),
            )
            await work.sessions.mark(checkpoint=mark)
            await self._save(
                work, replace(stored, boundary=mark.covers_arrival, checkpoint=None, asked=None, marks=mark.number)
            )
            if stored.due:
                await work.sessions.schedule(conversation_id=conversation_id, due=None, was=stored.due.at)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = self._clock.monotonic()
        yield
        self._telemetry.observe("roomlore_session_seconds", self._clock.monotonic() - begun, labels={"part": "write"})

    async def _locked(self, work: UnitOfWork, conversation_id: str, *, make: bool) -> Session:
        if make:
            await work.rooms.lock(room_id=conversation_id, now=self._clock.now())
        elif await work.rooms.lock_known(room_id=conversation_id) is None:
            raise unknown_conversation(conversation_id)
        return await self.require(work, conversation_id)

    async def _save(self, work: UnitOfWork, session: Session) -> Session:
        saved = replace(session, version=session.version + 1, updated_at=self._clock.now())
        await work.sessions.save(session=saved)
        return saved


@dataclass(frozen=True, slots=True)
class SessionParts:
    """The parts that sessions share over all tenants."""

    backends: Backends
    cache: SegmentCache
    reader: SessionReader
    checkpointer: Checkpointer
    automatic: AutoCheckpoints
    limits: Limits
    options: WindowOptions


class SessionService(Service):
    """The sessions of one tenant. A conversation is a room: its messages are the room's messages.

    `viewer` of a call: 'room:team' or 'user:anna'; a room of which it may not see all is unknown. Without one the
    caller decides who is shown the answer.
    """

    def __init__(self, *, tenant: str, parts: SessionParts, writer: Writer, later: DeferredSummaries) -> None:
        super().__init__(parts.backends)
        self._tenant = tenant
        self._parts = parts
        self._later = later
        self._keeper = SessionKeeper(parts.backends, tenant=tenant, writer=writer)

    async def create_session(
        self,
        conversation_id: str,
        user_id: str = "",
        *,
        enterprise_id: str | None = None,
        patient_id: str | None = None,
        session: SessionValue | Mapping[str, Any] | None = None,
        viewer: str | None = None,
    ) -> SessionValue:
        """Create the session, and its room if there is none. An existing one stays as it is, and missing ids are filled
        in. `session`: a session of another system or version, as JSON; its state is taken over.

        Raise `InvalidInput`, `NotFound` for the viewer, `StorageUnavailable`.
        """
        check_id("conversation_id", conversation_id)
        await self._check_shown(conversation_id, viewer)
        brought = as_value(session)
        ids = check_ids({"user_id": user_id, "enterprise_id": enterprise_id, "patient_id": patient_id})

        def make(stored: Session) -> Session:
            made = stored if stored.version else begun(stored, brought, self._parts.limits)
            return filled(made, {**ids_of(brought), **ids})

        await self._keeper.change(conversation_id, make, make=True)
        return await self._refreshed(conversation_id)

    async def get_session(self, conversation_id: str, *, viewer: str | None = None) -> SessionValue:
        """Return the session as JSON-like values. Raise `NotFound` if there is no such conversation."""
        await self._check_shown(conversation_id, viewer)
        return self._value(await self._load(conversation_id))

    async def find(self, conversation_id: str, *, viewer: str | None = None) -> Session:
        """Return the session as it is stored. Raise `NotFound` if there is no such conversation."""
        await self._check_shown(conversation_id, viewer)
        async with self._storage.reading(self._tenant) as work:
            return await self._keeper.require(work, conversation_id)

    async def page(self, *, after: str | None = None, limit: int = 100, viewer: str | None = None) -> list[Session]:
        """Return up to `limit` sessions with a conversation id above `after`, by id; for a viewer, those of rooms that
        it may see all of."""
        check_page(limit=limit)
        shown_to = None if viewer is None else check_viewer(viewer)
        sessions: list[Session] = []
        async with self._storage.reading(self._tenant) as work:
            while len(sessions) < limit and (page := await work.sessions.page(after=after, limit=limit)):
                if shown_to is None:
                    return page
                after, names = page[-1].conversation_id, [session.conversation_id for session in page]
                view = await view_for(work, viewer=shown_to, rooms=names, now=self._clock.now())
                sessions += [session for session in page if view.windows.get(session.conversation_id) == ALWAYS]
        return sessions[:limit]

    async def patch_state(
        self, conversation_id: str, patch: Mapping[str, Any], *, viewer: str | None = None
    ) -> SessionValue:
        """Merge a patch into the session's state (RFC 7396: objects merge, null removes).

        `global_state`, `user_snapshot`, `flow_context.current_agent_key` and fields of your own can be set; values that
        follow from the messages cannot. Patches of two callers are both kept. Raise `InvalidInput`, `NotFound`.
        """
        await self._check_shown(conversation_id, viewer)
        await self._keeper.change(conversation_id, lambda stored: patched(stored, patch, self._parts.limits))
        return await self._refreshed(conversation_id)

    async def query_context(
        self,
        conversation_id: str,
        query: str = "",
        token_threshold_ratio: float | None = None,
        recent_turns: int | None = None,
        model_context_window: int | None = None,
        *,
        enterprise_id: str | None = None,
        patient_id: str | None = None,
        viewer: str | None = None,
    ) -> SessionContext:
        """Return the conversation within the model's window: everything until the first checkpoint, then the summary
        and the turns after it, never fewer than the last `recent_turns`.

        Arguments left out come from the settings: 0.75, 8 turns, 16,000 tokens. `query` is counted and not returned.
        Raise `NotFound`, `InvalidInput`, and `BudgetTooSmall` if summary and query alone are too long.
        """
        options = self._options(token_threshold_ratio, recent_turns, model_context_window)
        ids = check_ids({"enterprise_id": enterprise_id, "patient_id": patient_id})
        await self._check_shown(conversation_id, viewer)
        segment = await self._segment_of(conversation_id, query, options)
        if any(getattr(segment.session, name) != value for name, value in ids.items()):
            await self._keeper.change(conversation_id, lambda stored: replace(stored, **ids))  # type: ignore[arg-type]
            segment = replace(segment, session=replace(segment.session, **ids))  # type: ignore[arg-type]
        shown = await self._handed_out(segment, query, options)
        context = await self._context(segment, shown, query, options)
        if context.should_checkpoint_summary:
            await self._parts.checkpointer.note_asked(segment, context.checkpoint_token)
        return context

    async def preview_context(
        self,
        conversation_id: str,
        query: str = "",
        token_threshold_ratio: float | None = None,
        recent_turns: int | None = None,
        model_context_window: int | None = None,
        *,
        viewer: str | None = None,
    ) -> SessionContext:
        """Return what `query_context` would answer now, without effects: the database stays as it is, no checkpoint
        becomes due, and a later `checkpoint` that does not tell what it covers is not taken for its summary. Raise the
        same errors."""
        options = self._options(token_threshold_ratio, recent_turns, model_context_window)
        await self._check_shown(conversation_id, viewer)
        segment = await self._segment_of(conversation_id, query, options)
        return await self._context(segment, await self._show(segment, query, options), query, options)

    async def query_window(
        self, conversation_id: str, model_context_window: int | None = None, *, viewer: str | None = None
    ) -> SessionWindow:
        """Return the ids of the messages that `query_context` would show, and the summary before them, without texts. A
        very long session is read only as far back as can fit. If its text has more than eight characters per token, as
        tables and rulers may, fewer messages are returned.

        Like `query_context`, this may make a checkpoint due with `auto_checkpoint`. It has no text to summarise, so it
        is not a context that a later `checkpoint` may be of. Raise the same errors.
        """
        options = self._options(None, None, model_context_window)
        await self._check_shown(conversation_id, viewer)
        segment = await self._load(conversation_id, options, characters=LONG_TOKEN * options.window)
        shown = await self._handed_out(segment, "", options)
        return SessionWindow(
            message_ids=shown.message_ids,
            summary=segment.session.summary,
            truncated=shown.truncated or segment.partial,
        )

    async def write_turn(
        self,
        conversation_id: str,
        user_id: str = "",
        agent_code: str = "",
        user_query: str | None = None,
        agent_response: str | None = None,
        *,
        turn_id: str | None = None,
        sent_at: datetime | None = None,
    ) -> TurnResult:
        """Store a turn: the user's query and the agent's answer, or one of them, in one transaction.

        The session is created if there is none. `turn_id`: one of your own makes the call safe to repeat; the same turn
        again changes nothing. Raise `InvalidInput`, `Conflict` for the same id with other content,
        `StorageUnavailable`.
        """
        check_id("conversation_id", conversation_id)
        check_ids({"user_id": user_id, "agent_code": agent_code, "turn_id": turn_id})
        for name, text in (("user_query", user_query), ("agent_response", agent_response)):
            if not isinstance(text, str | None):
                raise InvalidInput("text_needed", name=name, value=f"{text!r:.60}")
        if not user_query and not agent_response:
            raise InvalidInput("turn_empty")
        turn = Turn(
            conversation_id=conversation_id,
            turn_id=turn_id or self._ids.new(),
            user_id=user_id,
            agent_code=agent_code,
            query=user_query,
            answer=agent_response,
            sent_at=sent_at,
        )
        messages = await self._new_messages(turn, new=not turn_id)
        try:
            return await self._write(messages, turn.turn_id, conversation_id, user_id, agent_code)
        except Conflict:
            again = await self._new_messages(turn, new=False)
            if again == messages:
                raise
            return await self._write(again, turn.turn_id, conversation_id, user_id, agent_code)

    async def add_messages(
        self,
        conversation_id: str,
        messages: Sequence[Message],
        *,
        user_id: str = "",
        agent_code: str = "",
        turn_id: str = "",
    ) -> TurnResult:
        """Store messages of any role in one transaction, and create the session if there is none.

        Missing fields are filled in: an empty id, room or sender, the time (now) and the turn. A user's message begins
        a turn, and what follows belongs to it. `turn_id`: the turn that continues until a user speaks; by default that
        of the newest message. The answer names the turn of the last message, '' for none. Ids, times and turns of your
        own make the call safe to repeat. Raise `InvalidInput`, `Conflict` for the same id with other content,
        `StorageUnavailable`.
        """
        check_id("conversation_id", conversation_id)
        check_ids({"user_id": user_id, "agent_code": agent_code})
        goes_on = joins_a_turn(messages)
        batch = Batch(
            conversation_id=conversation_id,
            messages=messages,
            user_id=user_id or await self._known_user(conversation_id),
            agent_code=agent_code,
            turn_id=turn_id or (await self._last_turn(conversation_id) if goes_on else None),
            now=self._clock.now(),
            new_id=self._ids.new,
        )
        completed = batch.completed()
        return await self._write(completed, completed[-1].turn_id or "", conversation_id, user_id, agent_code)

    async def checkpoint(
        self,
        conversation_id: str,
        summary: str,
        recent_turns: int | None = None,
        covers_through: str | None = None,
        context: SessionContext | str | None = None,
        expected_checkpoint: str | None = None,
        *,
        viewer: str | None = None,
    ) -> Checkpoint:
        """Replace messages by a summary of them; the conversation is shown as SUMMARY_N from then on.

        Tell what the summary covers: by `context`, the context that was summarised or its `checkpoint_token`; by
        `covers_through`, the id of the last message; or by both, if the beginning of the context's `full_history` was
        summarised. Raise `Conflict` if another checkpoint was put in force since the context, or if messages of it were
        edited or deleted or somebody in it was forgotten. Raise `InvalidInput` if the context was truncated and
        `covers_through` does not tell that not its `history` was summarised.
        With `covers_through` alone, the first context from `query_context` that asked for a checkpoint counts as that
        context, until another one asks ten minutes after it.

        If neither is given, the summary is taken for one of the first context from `query_context` since the last
        checkpoint that asked for one, and the checkpoint and every context say `coverage_assumed` until the next one
        that is told. If none asked, raise `InvalidInput`, or `Conflict` if a checkpoint or a reset may have been
        faster. `expected_checkpoint`: the checkpoint that must be in force, '' for none; by default that of `context`
        or the one that is in force when the call begins. Raise `Conflict` if another one or a reset was faster.
        """
        options = self._options(None, recent_turns, None)
        for name, given in (("covers_through", covers_through), ("expected_checkpoint", expected_checkpoint)):
            if not isinstance(given, str | None):
                raise InvalidInput("id_needed", name=name, value=f"{given!r:.60}")
        mark = mark_in(context, conversation_id)
        await self._check_shown(conversation_id, viewer)
        segment = await self._load(conversation_id, options)
        wanted = Wanted(
            summary=summary,
            recent_turns=options.recent_turns,
            covers_through=covers_through,
            mark=mark,
            expected=expected_checkpoint,
        )
        checkpoint = await self._parts.checkpointer.put(segment, wanted)
        await self._refresh(conversation_id)
        return checkpoint

    async def summarise(self, conversation_id: str, *, viewer: str | None = None) -> Checkpoint | None:
        """Make the summary, with a model if one is configured, else by choosing sentences, and put it in force. Return
        None if there are no messages since the last checkpoint. Raise `Conflict` if another checkpoint or a reset was
        faster, or if a message that it covers was edited or deleted meanwhile: call it again. Raise `NotFound`."""
        await self._check_shown(conversation_id, viewer)
        checkpoint = await self._parts.automatic.summarise(self._tenant, conversation_id)
        await self._refresh(conversation_id)
        return checkpoint

    async def begin_summary(self, conversation_id: str, *, viewer: str | None = None) -> str:
        """Start `summarise` as durable work and return the id of the job at once. `lore.jobs.wait` waits for it, and
        `checkpoints` lists the result. Raise `NotFound`, `StorageUnavailable`."""
        await self.find(conversation_id, viewer=viewer)
        return await self._later.begin(self._tenant, conversation_id)

    async def reset(self, conversation_id: str, *, viewer: str | None = None) -> SessionValue:
        """Begin the conversation anew: earlier messages are no longer shown and stay stored."""
        await self._check_shown(conversation_id, viewer)
        await self._keeper.reset(conversation_id)
        return await self._refreshed(conversation_id)

    async def checkpoints(
        self, conversation_id: str, *, before: int | None = None, limit: int = 100, viewer: str | None = None
    ) -> list[Checkpoint]:
        """Return the conversation's checkpoints and resets, newest first, those with a number below `before`."""
        check_page(limit=limit, after=before or 0)
        await self._check_shown(conversation_id, viewer)
        async with self._storage.reading(self._tenant) as work:
            await self._keeper.require(work, conversation_id)
            return await work.sessions.history(conversation_id=conversation_id, before=before, limit=limit)

    async def messages(
        self, conversation_id: str, *, limit: int | None = None, viewer: str | None = None
    ) -> list[StoredMessage]:
        """Return every message since the last reset in order of arrival, or the newest `limit` of them."""
        check_page(limit=1 if limit is None else limit)
        await self._check_shown(conversation_id, viewer)
        async with self._storage.reading(self._tenant) as work:
            session = await self._keeper.require(work, conversation_id)
            count = session.next_arrival if limit is None else limit
            messages = await work.messages.recent(room_id=conversation_id, limit=count)
        return [message for message in messages if message.arrival > session.boundary]

    async def catch_up(self) -> int:
        """Make the checkpoints that are due, of all tenants, and return how many were made. With `auto_checkpoint` this
        happens in the background."""
        return await self._parts.automatic.catch_up()

    async def _check_shown(self, conversation_id: str, viewer: str | None) -> None:
        now = self._clock.now()
        await check_shown(self._storage, tenant=self._tenant, viewer=viewer, room_id=conversation_id, now=now)

    def _options(self, threshold: float | None, recent_turns: int | None, window: int | None) -> WindowOptions:
        default = self._parts.options
        return WindowOptions(
            threshold=default.threshold if threshold is None else threshold,
            recent_turns=default.recent_turns if recent_turns is None else recent_turns,
            window=default.window if window is None else window,
        )

    async def _handed_out(self, segment: Segment, query: str, options: WindowOptions) -> ShownWindow:
        """Return what fits, count it, and note a checkpoint that is due."""
        parts = self._parts
        try:
            shown = await self._show(segment, query, options)
        except BudgetTooSmall:
            if segment.session.checkpoint:
                await parts.automatic.note(segment, window=options.window, shown=None)
            raise
        self._telemetry.observe("roomlore_session_token_ratio", shown.ratio(options))
        if shown.truncated or segment.partial:
            self._telemetry.count("roomlore_sessions_truncated_total")
        if shown.asks(options):
            await parts.automatic.note(segment, window=options.window, shown=shown)
        return shown

    async def _show(self, segment: Segment, query: str, options: WindowOptions) -> ShownWindow:
        return await _aside(segment, query, lambda: show(segment, query, options, self._tokens.count))

    async def _context(
        self, segment: Segment, shown: ShownWindow, query: str, options: WindowOptions
    ) -> SessionContext:
        return await _aside(segment, query, lambda: context_of(segment, shown, options, self._value(segment)))

    async def _new_messages(self, turn: Turn, *, new: bool) -> list[Message]:
        """Return the turn's messages. `new`: its ids are new, so that no other call can have the same turn."""
        before = {} if new else await self._keeper.stored(turn.conversation_id, turn.ids())
        user = turn.user_id or await self._known_user(turn.conversation_id)
        return turn.messages(now=self._clock.now(), user=user, before=before)

    async def _write(
        self, messages: Sequence[Message], turn_id: str, conversation_id: str, user_id: str, agent_code: str
    ) -> TurnResult:
        check(messages, self._parts.limits)
        session, new = await self._keeper.write(conversation_id, messages, user_id=user_id, agent_key=agent_code)
        if new:
            self._telemetry.count("roomlore_messages_added_total", len(messages))
            if session.next_arrival - session.covered <= _REFRESHED:
                await self._refresh(conversation_id)
        return TurnResult(
            conversation_id=conversation_id,
            mode=session.mode,
            updated_at=int(session.updated_at.timestamp()),
            turn_id=turn_id,
            message_ids=tuple(message.id for message in messages),
        )

    async def _last_turn(self, conversation_id: str) -> str | None:
        """Return the turn of the newest message, None if it has none; a new one if there are no messages yet."""
        try:
            newest = await self.messages(conversation_id, limit=1)
        except NotFound:
            newest = []
        return newest[0].turn_id if newest else self._ids.new()

    async def _known_user(self, conversation_id: str) -> str:
        session = await self._keeper.find(conversation_id)
        return (session.user_id if session else "") or "user"

    async def _segment_of(self, conversation_id: str, query: str, options: WindowOptions) -> Segment:
        if not isinstance(query, str):
            raise InvalidInput("text_needed", name="query", value=f"{query!r:.60}")
        return await self._load(conversation_id, options)

    async def _load(
        self, conversation_id: str, options: WindowOptions | None = None, *, characters: int | None = None
    ) -> Segment:
        default = self._parts.options
        wanted = options or default
        return await self._parts.reader.load(
            self._tenant,
            conversation_id,
            recent_turns=max(default.recent_turns, wanted.recent_turns),
            kept=max(default.kept, wanted.kept),
            characters=characters,
        )

    async def _refresh(self, conversation_id: str) -> None:
        default = self._parts.options
        await self._parts.reader.refresh(
            self._tenant, conversation_id, recent_turns=default.recent_turns, kept=default.kept
        )

    async def _refreshed(self, conversation_id: str) -> SessionValue:
        return self._value(await self._load(conversation_id))

    def _value(self, segment: Segment) -> SessionValue:
        return value_of(segment, recent_turns=self._parts.options.recent_turns)


async def _aside(segment: Segment, query: str, work: Callable[[], T]) -> T:
    """Return the result of the work. If there is much to render and count, it runs in a thread, so that the event loop
    stays responsive."""
    if len(query) + sum(len(message.text) + _LINE for message in segment.messages) <= _INLINE_CHARACTERS:
        return work()
    return await asyncio.to_thread(work)
