"""Putting checkpoints in force, and noting which context asked for one, so that it is known what a summary covers, or
said that it is assumed."""

import logging
from dataclasses import dataclass, replace
from datetime import timedelta

from roomlore.core.errors import Conflict, InvalidInput, NotFound, RoomloreError, describe
from roomlore.core.models import Role
from roomlore.core.sessions.session import (
    CALLER,
    EXTRACT,
    Checkpoint,
    CheckpointRequest,
    Language,
    Session,
    SessionMessage,
)
from roomlore.core.sessions.window import Mark, Segment, language_of, turns_of
from roomlore.core.summary import without_label
from roomlore.core.texts import Phrase
from roomlore.ports.shared import Backends, Service
from roomlore.services.sessions.reading import changed_since
from roomlore.storage import UnitOfWork

log = logging.getLogger(__name__)

_STALE_SECONDS = 600.0
"""How long the summary of a context may come. A context whose messages have changed is then replaced by another."""
_RESET = "conversation_was_reset"
_MAY_BE_STALE = "summary_may_be_stale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A requested checkpoint.

    `covers_through`: the id of the last message the summary covers, None if the caller does not say; `covers`: its
    arrival, if known. `mark`: that of the context it was made from, if the caller says. `expected`: the checkpoint that
    must be in force, '' for none, None for the current one.
    """

    summary: str
    recent_turns: int
    covers_through: str | None = None
    covers: int | None = None
    mark: Mark | None = None
    expected: str | None = None
    made_by: str = CALLER


class Checkpointer(Service):
    """Checkpoints of any tenant's conversations."""

    def __init__(self, backends: Backends, *, summary_chars: int) -> None:
        super().__init__(backends)
        self._summary_chars = summary_chars

    async def put(self, segment: Segment, wanted: Wanted) -> Checkpoint:
        """Put the checkpoint in force for the conversation as the segment shows it.

        Raise `Conflict` if another was faster or the conversation was reset, `InvalidInput`, `NotFound`.
        """
        try:
            checkpoint = await self._put(segment, wanted)
        except Conflict:
            self._count(wanted, "conflict")
            raise
        self._count(wanted, "done")
        self._telemetry.observe("roomlore_summary_tokens", checkpoint.tokens)
        return checkpoint

    async def _put(self, segment: Segment, wanted: Wanted) -> Checkpoint:
        summary = self._checked(wanted.summary)
        seen = segment.session
        if wanted.expected is not None and wanted.expected != seen.checkpoint_id:
            raise _overtaken(seen)
        covers, assumed = await self._covers(segment, wanted)
        if covers < seen.covered:
            raise Conflict("checkpoint_covers_more")
        checkpoint = replace(self._checkpoint(segment, wanted, summary, covers), coverage_assumed=assumed)
        async with self._storage.writing(segment.session.tenant) as work:
            await self._swap(work, segment, checkpoint, through=max(covers, wanted.mark.covers if wanted.mark else 0))
        return checkpoint

    def _checked(self, summary: str) -> str:
        if not isinstance(summary, str) or not (bare := without_label(summary)):
            raise InvalidInput("checkpoint_summary_missing")
        if len(bare) > self._summary_chars:
            raise InvalidInput("checkpoint_summary_too_long", count=len(bare), most=self._summary_chars)
        return bare

    async def _covers(self, segment: Segment, wanted: Wanted) -> tuple[int, bool]:
        """Return the arrival of the last message that the summary covers, and True if that is assumed."""
        mark, session = wanted.mark, segment.session
        if wanted.covers is not None:
            return wanted.covers, False
        if mark is not None and not mark.holds(segment):
            raise _no_longer(mark, session)
        if wanted.covers_through is None:
            return (_whole(mark), False) if mark else self._assumed(segment)
        arrival = await self._arrival(segment, wanted.covers_through)
        if arrival <= session.boundary:
            raise Conflict(_RESET)
        if mark is None and arrival > session.covered and session.asked and not _holds(session.asked, segment):
            raise Conflict(_MAY_BE_STALE)
        if mark is not None and arrival > mark.covers:
            raise InvalidInput("covers_through_after_context")
        return arrival, False

    def _assumed(self, segment: Segment) -> tuple[int, bool]:
        """Return what a summary covers whose maker does not say: what the first context did that asked for one."""
        session = segment.session
        if session.asked is None:
            if session.next_arrival == 1 and not session.marks:
                return session.covered, False
            raise (Conflict if session.marks else InvalidInput)("summary_cover_unknown")
        mark = Mark.read(session.asked.token)
        if mark is None or not mark.holds(segment):
            raise Conflict(_MAY_BE_STALE)
        return _whole(mark), True

    async def note_asked(self, segment: Segment, token: str) -> None:
        """Note that the context with this token asked for a checkpoint, unless one did before it. An error does not
        take the context from its caller."""
        session, now = segment.session, self._clock.now()
        if (earlier_request := session.asked) and (
            now - earlier_request.at < timedelta(seconds=_STALE_SECONDS) or _holds(earlier_request, segment)
        ):
            return
        try:
            async with self._storage.writing(session.tenant) as work:
                if await work.rooms.lock_known(room_id=session.conversation_id) is None:
                    return
                stored = await work.sessions.find(conversation_id=session.conversation_id)
                if stored and stored.asked == earlier_request and _basis(stored) == _basis(session):
                    noted = replace(stored, asked=CheckpointRequest(token, now), version=stored.version + 1)
                    await work.sessions.save(session=noted)
        except RoomloreError as error:
            log.warning("a context that asked for a checkpoint could not be noted", extra={"why": describe(error)})

    async def _arrival(self, segment: Segment, message_id: str) -> int:
        for message in reversed(segment.messages):
            if message.id == message_id:
                return message.arrival
        session = segment.session
        async with self._storage.reading(session.tenant) as work:
            arrival = await work.messages.arrival_of(room_id=session.conversation_id, message_id=message_id)
        if arrival is None:
            raise NotFound(
                "covers_through_unknown", conversation=repr(session.conversation_id), message=repr(message_id)
            )
        if not segment.partial and session.covered < arrival < session.next_arrival:
            raise _moved_on(Phrase("summarised_messages_changed"))
        return arrival

    def _checkpoint(self, segment: Segment, wanted: Wanted, summary: str, covers: int) -> Checkpoint:
        session, now = segment.session, self._clock.now()
        covered = [message for message in segment.messages if session.boundary < message.arrival <= covers]
        before = session.checkpoint
        turns = sum(session.covered < turn.first <= covers for turn in turns_of(segment.messages))
        last = covered[-1].id if covered else None
        return Checkpoint(
            checkpoint_id=self._ids.new(),
            conversation_id=session.conversation_id,
            number=session.marks + 1,
            summary=summary,
            covers_arrival=max(covers, session.boundary),
            covers_through=last or (before.covers_through if before else None),
            turns=turns + (before.turns if before else 0),
            tokens=self._tokens.count([summary])[0],
            recent_turns=wanted.recent_turns,
            language=_language(segment, summary),
            made_by=wanted.made_by,
            created_at=now,
        )

    async def _swap(self, work: UnitOfWork, segment: Segment, checkpoint: Checkpoint, *, through: int) -> None:
        """Put the checkpoint in force if what it rests on, up to the arrival `through`, is as the segment shows it."""
        seen = segment.session
        room = await work.rooms.lock_known(room_id=seen.conversation_id)
        stored = await work.sessions.find(conversation_id=seen.conversation_id)
        if room is None or stored is None:
            raise NotFound("conversation_gone", conversation=repr(seen.conversation_id))
        if _basis(stored) != _basis(seen):
            raise _overtaken(stored)
        covered = range(seen.covered + 1, through + 1)
        if stored.revision != seen.revision and any(at in covered for at in await changed_since(work, segment)):
            raise _moved_on(Phrase("summarised_messages_changed"))
        checkpoint = replace(checkpoint, number=stored.marks + 1)
        await work.sessions.mark(checkpoint=checkpoint)
        await work.sessions.save(session=_with(stored, checkpoint))
        if stored.due:
            await work.sessions.schedule(conversation_id=seen.conversation_id, due=None, was=stored.due.at)

    def _count(self, wanted: Wanted, result: str) -> None:
        maker = wanted.made_by if wanted.made_by in (CALLER, EXTRACT) else "model"
        self._telemetry.count("roomlore_checkpoints_total", labels={"made_by": maker, "result": result})


def _basis(session: Session) -> tuple[object, ...]:
    """Return what a summary rests on, besides the messages that it covers."""
    return session.created_at, session.checkpoint, session.boundary


def _with(session: Session, checkpoint: Checkpoint) -> Session:
    return replace(
        session,
        checkpoint=checkpoint,
        asked=None,
        marks=checkpoint.number,
        version=session.version + 1,
        updated_at=checkpoint.created_at,
    )


def _overtaken(session: Session) -> Conflict:
    now = (
        Phrase("checkpoint_in_force", checkpoint=repr(session.checkpoint_id))
        if session.checkpoint
        else Phrase("checkpoint_none")
    )
    return _moved_on(now)


def _moved_on(why: str) -> Conflict:
    return Conflict("conversation_moved_on", why=why)


def _whole(mark: Mark) -> int:
    """Return what a context covers. Raise `InvalidInput` if its history was truncated."""
    if mark.cut:
        raise InvalidInput("summary_of_truncated_context")
    return mark.covers


def _holds(request: CheckpointRequest, segment: Segment) -> bool:
    mark = Mark.read(request.token)
    return mark is not None and mark.holds(segment)


def _no_longer(mark: Mark, session: Session) -> Conflict:
    """Return why a context cannot be summarised any more."""
    if mark.checkpoint_id != session.checkpoint_id:
        return _overtaken(session)
    return Conflict(_RESET) if mark.covers <= session.boundary else _moved_on(Phrase("summarised_messages_changed"))


def _language(segment: Segment, summary: str) -> Language:
    """Return the conversation's language so far, else that of the new messages, else the summary's."""
    new, before = segment.uncovered(), segment.session.checkpoint
    if before:
        return before.language
    return language_of(new or [SessionMessage(arrival=0, id="", role=Role.USER, name="", text=summary)])
