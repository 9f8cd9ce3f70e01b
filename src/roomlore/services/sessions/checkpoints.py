"""Putting checkpoints in force, with a record of the histories handed out, so that one without `covers_through` never
covers more than its author saw."""

from collections import OrderedDict
from dataclasses import dataclass, replace

from roomlore.core.errors import Conflict, InvalidInput, NotFound
from roomlore.core.models import Role
from roomlore.core.sessions.session import CALLER, EXTRACT, Checkpoint, Language, Session, SessionMessage
from roomlore.core.sessions.window import Segment, language_of, turns_of
from roomlore.core.summary import without_label
from roomlore.ports.coordination import Clock, Ids, Telemetry
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.sessions.reading import changed_since

_MAX = 10_000
_MAX_ASKED = 100
_OFFER_SECONDS = 600.0
_LATE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class _History:
    """A history that was handed out. `covers`: the arrival of its last message. `boundary`: that of the session then.
    `asked`: True if it requested a checkpoint. `until`: the time until which its summary may come although another
    checkpoint is in force by then."""

    covers: int
    boundary: int
    asked: bool
    until: float


@dataclass(frozen=True, slots=True)
class _Offer:
    """The histories handed out under one checkpoint. `ends`: the first and the newest of them. `asked`: those that
    requested a checkpoint, the first `at` this time. `late`: those of earlier checkpoints without a summary yet."""

    checkpoint_id: str
    boundary: int
    at: float
    ends: tuple[_History, ...] = ()
    asked: tuple[_History, ...] = ()
    late: tuple[_History, ...] = ()

    def stands(self, session: Session) -> bool:
        return (self.checkpoint_id, self.boundary) == (session.checkpoint_id, session.boundary)

    def of(self, session: Session, now: float) -> "_Offer":
        """Return the offer under the session's checkpoint: summaries of histories from before it can only come late."""
        if self.stands(session):
            return replace(self, late=_open(self.late, now))
        late = _open((*self.late, *(self.asked or self.ends)), now)[-_MAX_ASKED:]
        return _Offer(session.checkpoint_id, session.boundary, now, late=late)


def _open(histories: tuple[_History, ...], now: float) -> tuple[_History, ...]:
    return tuple(one for one in histories if now < one.until)


class Offers:
    """The histories that each conversation's callers were given, in this process.

    A summary without `covers_through` is one of the first history that requested a checkpoint: it may be in progress
    while later ones are handed out. After ten minutes a later request replaces it. If several were requested and one
    came into force, the others may still come, for two minutes. If none was requested, any history may be meant, so
    there must be only one.
    """

    def __init__(self) -> None:
        self._offers: OrderedDict[tuple[str, str], _Offer] = OrderedDict()

    def note(self, session: Session, *, covers: int, asked: bool, now: float) -> None:
        """Note that a history up to the arrival `covers` was handed out. `now`: monotonic seconds."""
        offer = self._of(session, now)
        history = _History(covers, session.boundary, asked, now + _LATE_SECONDS)
        offer = replace(offer, ends=(*offer.ends[:1], history))
        if asked and (not offer.asked or now - offer.at >= _OFFER_SECONDS):
            offer = replace(offer, at=now, asked=(history,))
        elif asked:
            offer = replace(offer, asked=(*offer.asked, history)[:_MAX_ASKED])
        self._keep(session, offer)

    def used(self, session: Session, covers: int) -> None:
        """Note that a summary up to `covers` came into force without `covers_through`. `session`: its state before."""
        offer = self._offers.get((session.tenant, session.conversation_id))
        if offer is None:
            return
        used = next((one for one in (*offer.late, *offer.asked) if one.asked and one.covers == covers), None)
        late = tuple(one for one in offer.late if one is not used)
        asked = tuple(one for one in offer.asked if one is not used)
        self._keep(session, replace(offer, ends=(), late=late, asked=asked))

    def summarised(self, session: Session, *, sure: bool, now: float) -> _History | None:
        """Return the history that a summary without `covers_through` surely covers; None if that cannot be told.
        `sure`: it was made under the current checkpoint; else raise `Conflict` if it may be a late one."""
        offer = self._of(session, now)
        late = () if sure else offer.late
        requested = [one for one in late if one.asked]
        if offer.asked and all(one.boundary == session.boundary and one.covers >= session.covered for one in requested):
            return min((offer.asked[0], *requested), key=lambda one: one.covers)
        if late:
            raise Conflict(
                "The conversation has moved on since a context was returned, and this may be its summary. Pass "
                "covers_through, as the context that was summarised names it."
            )
        return offer.ends[0] if len({one.covers for one in offer.ends}) == 1 else None

    def _of(self, session: Session, now: float) -> _Offer:
        offer = self._offers.get((session.tenant, session.conversation_id))
        return offer.of(session, now) if offer else _Offer(session.checkpoint_id, session.boundary, now)

    def _keep(self, session: Session, offer: _Offer) -> None:
        named = (session.tenant, session.conversation_id)
        self._offers[named] = offer
        self._offers.move_to_end(named)
        if len(self._offers) > _MAX:
            self._offers.popitem(last=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A requested checkpoint.

    `covers_through`: the id of the last message the summary covers, None if the caller does not say; `covers`: its
    arrival, if known. `expected`: the checkpoint that must be in force, '' for none, None for the current one.
    """

    summary: str
    recent_turns: int
    covers_through: str | None = None
    covers: int | None = None
    expected: str | None = None
    made_by: str = CALLER


class Checkpointer:
    """Checkpoints of any tenant's conversations."""

    def __init__(
        self,
        *,
        storage: Storage,
        tokens: TokenCounter,
        offers: Offers,
        clock: Clock,
        ids: Ids,
        telemetry: Telemetry,
        summary_chars: int,
    ) -> None:
        self._storage = storage
        self._tokens = tokens
        self._offers = offers
        self._clock = clock
        self._ids = ids
        self._telemetry = telemetry
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
        covers = await self._covers(segment, wanted)
        if covers < seen.covered:
            raise Conflict(
                "The checkpoint in force covers more than this summary; read the context and summarise anew."
            )
        checkpoint = self._checkpoint(segment, wanted, summary, covers)
        async with self._storage.writing() as work:
            await self._swap(work, segment, checkpoint)
        if wanted.covers is None and wanted.covers_through is None and not wanted.expected:
            self._offers.used(seen, covers)
        return checkpoint

    def _checked(self, summary: str) -> str:
        if not isinstance(summary, str) or not (bare := without_label(summary)):
            raise InvalidInput("A checkpoint needs a summary: a text that is not blank.")
        if len(bare) > self._summary_chars:
            raise InvalidInput(
                f"The summary has {len(bare)} characters; the limit is {self._summary_chars} (setting max_text_chars)."
            )
        return bare

    async def _covers(self, segment: Segment, wanted: Wanted) -> int:
        if wanted.covers is not None:
            return wanted.covers
        if wanted.covers_through is None:
            return self._inferred(segment, wanted)
        arrival = await self._arrival(segment, wanted.covers_through)
        if arrival <= segment.session.boundary:
            raise Conflict("The conversation was reset after what this summary covers; it stands for nothing any more.")
        return arrival

    def _inferred(self, segment: Segment, wanted: Wanted) -> int:
        """Return what a summary without `covers_through` surely covers. If no summary was requested, the last turns
        stay verbatim beside it. Raise `InvalidInput` if it could cover messages that its author never saw."""
        session = segment.session
        history = self._offers.summarised(session, sure=bool(wanted.expected), now=self._clock.monotonic())
        if history is not None:
            recent = _before_recent(segment, wanted.recent_turns)
            return history.covers if history.asked else max(session.covered, min(history.covers, recent))
        if segment.uncovered():
            raise InvalidInput(
                "It is not known what this summary covers: since the current checkpoint this process returned no "
                "context of the conversation, or several of which none requested a checkpoint. Pass covers_through, "
                "as the context that was summarised names it."
            )
        return session.covered

    async def _arrival(self, segment: Segment, message_id: str) -> int:
        for message in reversed(segment.messages):
            if message.id == message_id:
                return message.arrival
        session = segment.session
        async with self._storage.reading() as work:
            found = await work.messages.arrival_of(
                tenant=session.tenant, room_id=session.conversation_id, message_id=message_id
            )
        if found is None:
            raise NotFound(
                f"Conversation {session.conversation_id!r} has no message {message_id!r}; covers_through is the id of "
                "the last message the summary stands for."
            )
        return found

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

    async def _swap(self, work: UnitOfWork, segment: Segment, checkpoint: Checkpoint) -> None:
        seen = segment.session
        named = {"tenant": seen.tenant, "conversation_id": seen.conversation_id}
        room = await work.rooms.lock_known(tenant=seen.tenant, room_id=seen.conversation_id)
        stored = await work.sessions.find(**named)
        if room is None or stored is None:
            raise NotFound(f"There is no conversation {seen.conversation_id!r}.")
        if _basis(stored) != _basis(seen):
            raise _overtaken(stored)
        covered = range(seen.covered + 1, checkpoint.covers_arrival + 1)
        if stored.revision != seen.revision and any(at in covered for at in await changed_since(work, segment)):
            raise _moved_on("messages that the summary covers were edited or deleted")
        checkpoint = replace(checkpoint, number=stored.marks + 1)
        await work.sessions.mark(tenant=seen.tenant, checkpoint=checkpoint)
        await work.sessions.save(session=_with(stored, checkpoint))
        if stored.due:
            await work.sessions.schedule(**named, due=None, was=stored.due.at)

    def _count(self, wanted: Wanted, result: str) -> None:
        maker = wanted.made_by if wanted.made_by in (CALLER, EXTRACT) else "model"
        self._telemetry.count("roomlore_checkpoints_total", labels={"made_by": maker, "result": result})


def _basis(session: Session) -> tuple[object, ...]:
    """Return what a summary rests on, besides the messages that it covers."""
    return session.created_at, session.checkpoint_id, session.boundary


def _with(session: Session, checkpoint: Checkpoint) -> Session:
    return replace(
        session,
        checkpoint=checkpoint,
        marks=checkpoint.number,
        version=session.version + 1,
        updated_at=checkpoint.created_at,
    )


def _overtaken(session: Session) -> Conflict:
    now = f"checkpoint {session.checkpoint_id!r} is in force" if session.checkpoint else "no checkpoint is in force"
    return _moved_on(now)


def _moved_on(why: str) -> Conflict:
    return Conflict(f"The conversation has moved on ({why}); read the context again and summarise what it shows.")


def _before_recent(segment: Segment, recent_turns: int) -> int:
    """Return all but the last turns: what was said while a summary was made stays verbatim."""
    turns, covered = turns_of(segment.messages), segment.session.covered
    if not recent_turns and segment.messages:
        return max(segment.messages[-1].arrival, covered)
    return max(turns[-recent_turns].first - 1, covered) if len(turns) > recent_turns else covered


def _language(segment: Segment, summary: str) -> Language:
    """Return the conversation's language so far, else that of the new messages, else the summary's."""
    new, before = segment.uncovered(), segment.session.checkpoint
    if before:
        return before.language
    return language_of(new or [SessionMessage(arrival=0, id="", role=Role.USER, name="", text=summary)])
