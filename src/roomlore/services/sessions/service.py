"""The verbs of `lore.sessions`."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from roomlore.core.errors import BudgetTooSmall, Conflict, InvalidInput, NotFound
from roomlore.core.intake import Limits, check
from roomlore.core.models import Message, StoredMessage
from roomlore.core.paging import check_page
from roomlore.core.sessions.batch import Batch, joins_a_turn
from roomlore.core.sessions.intake import Turn, as_value, begun, check_id, check_ids, filled, ids_of, patched
from roomlore.core.sessions.models import Checkpoint, Session, SessionContext, TurnResult
from roomlore.core.sessions.state import value_of
from roomlore.core.sessions.value import SessionValue
from roomlore.core.sessions.window import Segment, Shown, WindowOptions, context_of, show
from roomlore.ports.coordination import Clock, Ids, Telemetry
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage
from roomlore.services.sessions.automatic import AutoCheckpoints
from roomlore.services.sessions.cache import SegmentCache
from roomlore.services.sessions.checkpoints import Checkpointer, Wanted
from roomlore.services.sessions.keeper import SessionKeeper
from roomlore.services.sessions.later import LaterSummaries
from roomlore.services.sessions.offers import Offers
from roomlore.services.sessions.reader import SessionReader
from roomlore.services.sessions.writer import Writer

_INLINE_CHARACTERS = 150_000
"""What is turned into text and counted on the event loop; more goes to another thread."""
_LINE = 100
"""What a message costs beside its text, in characters."""
_REFRESHED = 200
"""Messages that a session shows up to which the cache is brought up to date with every turn."""


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What the sessions of all tenants share."""

    storage: Storage
    cache: SegmentCache
    reader: SessionReader
    checkpointer: Checkpointer
    automatic: AutoCheckpoints
    offers: Offers
    tokens: TokenCounter
    clock: Clock
    ids: Ids
    telemetry: Telemetry
    limits: Limits
    options: WindowOptions


class SessionService:
    """The sessions of one tenant. A conversation is a room: what is said in it are the room's messages."""

    def __init__(self, *, tenant: str, parts: SessionParts, writer: Writer, later: LaterSummaries) -> None:
        self._tenant = tenant
        self._parts = parts
        self._later = later
        self._storage = parts.storage
        self._keeper = SessionKeeper(
            tenant=tenant,
            storage=parts.storage,
            writer=writer,
            clock=parts.clock,
            ids=parts.ids,
            telemetry=parts.telemetry,
        )

    async def create_session(
        self,
        conversation_id: str,
        user_id: str = "",
        *,
        enterprise_id: str | None = None,
        patient_id: str | None = None,
        session: SessionValue | Mapping[str, Any] | None = None,
    ) -> SessionValue:
        """Makes the session, and its room where there is none. One that is there stays as it is, and missing ids are
        filled in. `session`: a session of another system or version, as JSON; its state is taken over.

        Raises `InvalidInput`, `StorageUnavailable`.
        """
        check_id("conversation_id", conversation_id)
        brought = as_value(session)
        ids = check_ids({"user_id": user_id, "enterprise_id": enterprise_id, "patient_id": patient_id})

        def make(stored: Session) -> Session:
            made = stored if stored.version else begun(stored, brought, self._parts.limits)
            return filled(made, {**ids_of(brought), **ids})

        await self._keeper.change(conversation_id, make, make=True)
        return await self._refreshed(conversation_id)

    async def get_session(self, conversation_id: str) -> SessionValue:
        """The session as JSON-like values; `NotFound` where there is no such conversation."""
        return self._value(await self._load(conversation_id))

    async def page(self, *, after: str | None = None, limit: int = 100) -> list[Session]:
        """Up to `limit` sessions with a conversation id above `after`, by id."""
        check_page(limit=limit)
        async with self._storage.reading() as work:
            return await work.sessions.page(tenant=self._tenant, after=after, limit=limit)

    async def patch_state(self, conversation_id: str, patch: Mapping[str, Any]) -> SessionValue:
        """Merges a patch into what is kept with the session (RFC 7396: objects merge, null removes).

        `global_state`, `user_snapshot`, `flow_context.current_agent_key` and fields of your own can be set; what
        follows from the messages cannot. Patches of two callers are both kept. Raises `InvalidInput`, `NotFound`.
        """
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
    ) -> SessionContext:
        """What was said, inside the model's window: everything until the first checkpoint, then the summary, the turns
        after it and never fewer than the last `recent_turns`.

        What is left out here is taken from the settings: 0.75, 8 turns, 16,000 tokens. `query` is counted and not
        returned. Raises `NotFound`, `InvalidInput`, and `BudgetTooSmall` where summary and query alone are too long.
        """
        options = self._options(token_threshold_ratio, recent_turns, model_context_window)
        ids = check_ids({"enterprise_id": enterprise_id, "patient_id": patient_id})
        segment = await self._asked(conversation_id, query, options)
        if any(getattr(segment.session, name) != value for name, value in ids.items()):
            await self._keeper.change(conversation_id, lambda stored: replace(stored, **ids))  # type: ignore[arg-type]
            segment = replace(segment, session=replace(segment.session, **ids))  # type: ignore[arg-type]
        try:
            context, shown = await self._inside(segment, query, options)
        except BudgetTooSmall:
            if segment.session.checkpoint:
                await self._parts.automatic.note(segment, window=options.window, shown=None)
            raise
        await self._handed_out(segment, context, shown, options)
        return context

    async def preview_context(
        self,
        conversation_id: str,
        query: str = "",
        token_threshold_ratio: float | None = None,
        recent_turns: int | None = None,
        model_context_window: int | None = None,
    ) -> SessionContext:
        """What `query_context` would answer now, for people who look: the database stays as it is, no checkpoint comes
        due, and a later `checkpoint` does not take it for a history that was handed out. Raises as that does."""
        options = self._options(token_threshold_ratio, recent_turns, model_context_window)
        segment = await self._asked(conversation_id, query, options)
        return (await self._inside(segment, query, options))[0]

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
        """Stores a turn: the user's query and the agent's answer, or one of them, in one transaction.

        Makes the session where there is none. `turn_id`: one of your own makes the call safe to repeat; the same turn
        again changes nothing. Raises `InvalidInput`, `Conflict` for the same id with other content,
        `StorageUnavailable`.
        """
        check_id("conversation_id", conversation_id)
        check_ids({"user_id": user_id, "agent_code": agent_code, "turn_id": turn_id})
        for name, text in (("user_query", user_query), ("agent_response", agent_response)):
            if not isinstance(text, str | None):
                raise InvalidInput(f"{name} is {text!r:.60}; it must be a text.")
        if not user_query and not agent_response:
            raise InvalidInput("A turn needs user_query, agent_response or both.")
        turn = Turn(
            conversation_id=conversation_id,
            turn_id=turn_id or self._parts.ids.new(),
            user_id=user_id,
            agent_code=agent_code,
            query=user_query,
            answer=agent_response,
            sent_at=sent_at,
        )
        messages = await self._told(turn, new=not turn_id)
        try:
            return await self._write(messages, turn.turn_id, conversation_id, user_id, agent_code)
        except Conflict:
            again = await self._told(turn, new=False)
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
        """Stores messages of any role in one transaction, and makes the session where there is none.

        What a message lacks is filled in: an empty id, room or sender, its time (now) and its turn. A user's message
        begins a turn, and what follows belongs to it. `turn_id`: the turn that goes on until a user speaks; left out,
        the newest message's. The answer names the turn that the last message belongs to, '' for none. Ids, times and
        turns of your own make the call safe to repeat.
        Raises `InvalidInput`, `Conflict` for the same id with other content, `StorageUnavailable`.
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
            now=self._parts.clock.now(),
            new_id=self._parts.ids.new,
        )
        completed = batch.completed()
        return await self._write(completed, completed[-1].turn_id or "", conversation_id, user_id, agent_code)

    async def checkpoint(
        self,
        conversation_id: str,
        summary: str,
        recent_turns: int | None = None,
        covers_through: str | None = None,
        expected_checkpoint: str | None = None,
    ) -> Checkpoint:
        """Puts a summary in the place of what it stands for; the conversation is shown as SUMMARY_N from then on.

        `covers_through`: the id of the last message it stands for, as the context it was made from says. Left out, it
        is where the history ended that this process handed out, the first one where it asked for a checkpoint, else
        what lies before the last `recent_turns` turns; and where this may be a summary that was asked for before the
        checkpoint in force or a reset, and comes late, it is a `Conflict` or covers no more than that one saw.
        `expected_checkpoint`: the checkpoint that must be in force, '' for none; left out, the one that is in force
        when the call begins. Raises `Conflict` where another checkpoint or a reset was faster.
        """
        options = self._options(None, recent_turns, None)
        for name, given in (("covers_through", covers_through), ("expected_checkpoint", expected_checkpoint)):
            if not isinstance(given, str | None):
                raise InvalidInput(f"{name} is {given!r:.60}; it must be an id.")
        segment = await self._load(conversation_id, recent_turns=options.recent_turns)
        wanted = Wanted(
            summary=summary,
            recent_turns=options.recent_turns,
            covers_through=covers_through,
            expected=expected_checkpoint,
        )
        checkpoint = await self._parts.checkpointer.put(segment, wanted)
        await self._refresh(conversation_id)
        return checkpoint

    async def summarise(self, conversation_id: str) -> Checkpoint | None:
        """Makes the summary itself, with a model where one is configured, else by choosing sentences, and puts it in
        force; None where nothing was said since the last checkpoint. Raises `Conflict`, `NotFound`."""
        checkpoint = await self._parts.automatic.summarise(self._tenant, conversation_id)
        await self._refresh(conversation_id)
        return checkpoint

    async def begin_summary(self, conversation_id: str) -> str:
        """As `summarise`, as durable work: gives the id of the job at once. `lore.jobs.wait` waits for it, and
        `checkpoints` has what it made. Raises `NotFound`, `StorageUnavailable`."""
        async with self._storage.reading() as work:
            await self._keeper.require(work, conversation_id)
        return await self._later.begin(self._tenant, conversation_id)

    async def reset(self, conversation_id: str) -> SessionValue:
        """Begins the conversation anew: what was said before is not shown any more and stays stored."""
        await self._keeper.reset(conversation_id)
        return await self._refreshed(conversation_id)

    async def checkpoints(
        self, conversation_id: str, *, before: int | None = None, limit: int = 100
    ) -> list[Checkpoint]:
        """The conversation's checkpoints and resets, newest first, those with a number below `before`."""
        check_page(limit=limit, after=before or 0)
        async with self._storage.reading() as work:
            await self._keeper.require(work, conversation_id)
            return await work.sessions.history(
                tenant=self._tenant, conversation_id=conversation_id, before=before, limit=limit
            )

    async def messages(self, conversation_id: str, *, limit: int | None = None) -> list[StoredMessage]:
        """Every message since the last reset in order of arrival, or the newest `limit` of them."""
        check_page(limit=1 if limit is None else limit)
        async with self._storage.reading() as work:
            session = await self._keeper.require(work, conversation_id)
            count = session.next_arrival if limit is None else limit
            found = await work.messages.recent(tenant=self._tenant, room_id=conversation_id, limit=count)
        return [message for message in found if message.arrival > session.boundary]

    async def catch_up(self) -> int:
        """Makes the checkpoints that are due, of all tenants, and says how many; done behind the calls where
        `auto_checkpoint` is on."""
        return await self._parts.automatic.catch_up()

    def _options(self, threshold: float | None, recent_turns: int | None, window: int | None) -> WindowOptions:
        default = self._parts.options
        return WindowOptions(
            threshold=default.threshold if threshold is None else threshold,
            recent_turns=default.recent_turns if recent_turns is None else recent_turns,
            window=default.window if window is None else window,
        )

    async def _inside(self, segment: Segment, query: str, options: WindowOptions) -> tuple[SessionContext, Shown]:
        """On another thread where there is much to count, so that the loop breathes."""
        if len(query) + sum(len(message.text) + _LINE for message in segment.messages) <= _INLINE_CHARACTERS:
            return self._shown(segment, query, options)
        return await asyncio.to_thread(self._shown, segment, query, options)

    def _shown(self, segment: Segment, query: str, options: WindowOptions) -> tuple[SessionContext, Shown]:
        shown = show(segment, query, options, self._parts.tokens.count)
        return context_of(segment, shown, options, self._value(segment)), shown

    async def _handed_out(
        self, segment: Segment, context: SessionContext, shown: Shown, options: WindowOptions
    ) -> None:
        parts, asked = self._parts, context.should_checkpoint_summary
        new = segment.uncovered()
        covers = new[-1].arrival if new else segment.session.covered
        parts.offers.note(segment.session, covers=covers, asked=asked, now=parts.clock.monotonic())
        parts.telemetry.observe("roomlore_session_token_ratio", context.token_ratio)
        if context.truncated:
            parts.telemetry.count("roomlore_sessions_truncated_total")
        if asked:
            await parts.automatic.note(segment, window=options.window, shown=shown)

    async def _told(self, turn: Turn, *, new: bool) -> list[Message]:
        """The turn's messages. `new`: nobody else can have handed it in."""
        before = {} if new else await self._keeper.stored(turn.conversation_id, turn.ids())
        user = turn.user_id or await self._known_user(turn.conversation_id)
        return turn.messages(now=self._parts.clock.now(), user=user, before=before)

    async def _write(
        self, messages: Sequence[Message], turn_id: str, conversation_id: str, user_id: str, agent_code: str
    ) -> TurnResult:
        check(messages, self._parts.limits)
        session, new = await self._keeper.write(conversation_id, messages, user_id=user_id, agent_key=agent_code)
        if new:
            self._parts.telemetry.count("roomlore_messages_added_total", len(messages))
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
        """The turn of the newest message, None where it has none; a new one where nothing was said yet."""
        try:
            newest = await self.messages(conversation_id, limit=1)
        except NotFound:
            newest = []
        return newest[0].turn_id if newest else self._parts.ids.new()

    async def _known_user(self, conversation_id: str) -> str:
        session = await self._keeper.find(conversation_id)
        return (session.user_id if session else "") or "user"

    async def _asked(self, conversation_id: str, query: str, options: WindowOptions) -> Segment:
        if not isinstance(query, str):
            raise InvalidInput(f"query is {query!r:.60}; it must be a text.")
        return await self._load(conversation_id, recent_turns=options.recent_turns)

    async def _load(self, conversation_id: str, *, recent_turns: int | None = None) -> Segment:
        turns = max(self._parts.options.recent_turns, recent_turns or 0)
        return await self._parts.reader.load(self._tenant, conversation_id, recent_turns=turns)

    async def _refresh(self, conversation_id: str) -> None:
        turns = self._parts.options.recent_turns
        await self._parts.reader.refresh(self._tenant, conversation_id, recent_turns=turns)

    async def _refreshed(self, conversation_id: str) -> SessionValue:
        return self._value(await self._load(conversation_id))

    def _value(self, segment: Segment) -> SessionValue:
        return value_of(segment, recent_turns=self._parts.options.recent_turns)
