"""Reading the input of an evolution: new messages, existing memories, and the position of the watermark."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from roomlore.core.audience import RoomPeople, View, Viewer, may_see, rooms_named, shown
from roomlore.core.evolution.prompt import ShownMessages, chosen, comparison_form, handles_of, show_messages
from roomlore.core.evolution.requests import SILENCE, ScopeState, is_silent_in, last_evolutions
from roomlore.core.evolution.wording import ParsedMessage
from roomlore.core.memory.memory import Memory, MemoryStatus
from roomlore.core.memory.reading import name_of
from roomlore.core.models import StoredMessage
from roomlore.core.text import language
from roomlore.core.texts import Phrase
from roomlore.ports.audience import view_for
from roomlore.ports.shared import Backends, Service
from roomlore.services.evolution.piece import CurrentScope, Piece, PieceSpan, Read
from roomlore.storage import UnitOfWork

NO_ROOM = ""
"""The room of a person's watermark, which is a time in seconds: messages after it are new in every room."""
_ALL = 2**31 - 1
_SUPPORTS, _LONGEST_UTTERANCE = 3, 400
"""The last messages that support a memory, and the characters of each, that a repetition is recognised by."""
MOST_MESSAGES = 200
"""New messages that one evolution reads: more than a model still weighs one by one."""
MOST_MEMORIES = 50
"""Memories that one evolution is shown: a group has up to 30, and a person's are chosen by the messages."""
_NOTHING_NEW = "There are no new messages."


@dataclass(frozen=True, slots=True)
class _Position:
    """The position to read on from: in a room, above arrival `after`; the watermark is at `was`, 0 if there is none."""

    room_id: str
    was: int
    after: int


@dataclass(frozen=True, slots=True)
class EarlierMessages:
    """The messages of a room before the new ones, with the hashes of their content, and the statements that were
    deleted."""

    messages: Sequence[StoredMessage]
    fingerprints: Mapping[str, str]
    deleted: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Page:
    """New messages of a room with the hashes of their content, and the names of the people there."""

    messages: Sequence[StoredMessage]
    fingerprints: Mapping[str, str]
    people: Mapping[str, str]


class PieceReader(Service):
    """Read for all tenants. `zone`: the time zone in which the times of messages are shown."""

    def __init__(self, backends: Backends, *, zone: tzinfo) -> None:
        super().__init__(backends)
        self._zone = zone

    async def read(self, piece: Piece, span: PieceSpan | None = None) -> Read | None:
        """Return the new input; None if there is none. Messages without content of their own are passed over for good.

        `span`: read no more than that, and offer the same memories if all of them are still active.
        """
        while True:
            async with self._storage.reading(piece.tenant) as work:
                since = await self._since(work, piece)
                position = await self._position(work, piece, since)
                page = await self._page(work, piece, position, span) if position else None
                if not position or not page or not page.messages:
                    return None
                shown = await self._shown(work, piece, position.room_id, page)
                if shown.handles:
                    return await self._all(work, piece, position, page, shown, span, since)
            await self._skip(piece, position, page.messages[-1].arrival)

    async def why_nothing(self, piece: Piece) -> str:
        """Return the text for a `read` that found nothing: a mistyped group and one that was never read have reasons of
        their own."""
        if piece.user_id is not None:
            return _NOTHING_NEW
        async with self._storage.reading(piece.tenant) as work:
            room = await work.rooms.find(room_id=piece.room_id)
            marks = await work.progress.marks(room_id=piece.room_id, names=[piece.watermark])
        if room is None:
            return Phrase("room_not_there_yet", room=f"{piece.room_id!r:.80}")
        if not marks and room.messages:
            last = "day" if piece.days == 1 else f"{piece.days:g} days"
            return f"There are no messages of the last {last}. Older ones are there: ask for more days."
        return _NOTHING_NEW

    async def current(self, piece: Piece, read: Read) -> CurrentScope:
        """Return the current state of the scope. Its number is read first: a later change is noticed when the plan is
        applied."""
        async with self._storage.reading(piece.tenant) as work:
            scope = await work.memories.scope(scope=piece.scope)
            active, _ = await self._active(work, piece, read.room_id)
            lineages = list({memory.lineage_id for memory in read.offered.values()})
            latest = await work.memories.latest_versions(lineage_ids=lineages)
        offered = {memory.memory_id for memory in read.offered.values()}
        return CurrentScope(
            state=ScopeState(
                scope=piece.scope, number=scope.changes if scope else 0, active=len(active), latest=latest
            ),
            other_statements=frozenset(
                comparison_form(memory.statement) for memory in active if memory.memory_id not in offered
            ),
        )

    async def before(self, piece: Piece, read: Read, *, limit: int) -> EarlierMessages:
        """Return at most `limit` messages, and as many deleted statements."""
        async with self._storage.reading(piece.tenant) as work:
            page = await work.messages.recent_with_hashes(room_id=read.room_id, limit=limit, before=read.first)
            gone = await work.memories.page(
                scopes=[piece.scope], kinds=[piece.kind], status=MemoryStatus.DEPRECATED, limit=_ALL
            )
            view = await self._view(work, piece, read.room_id, gone)
        deleted = [memory.statement for memory in gone if may_see(memory, view)]
        return EarlierMessages(_messages(page), _fingerprints(page), deleted[:limit])

    async def heard(self, piece: Piece, read: Read) -> dict[str, list[ParsedMessage]]:
        """Return, by the id of each offered memory, what the last messages of this room say that support it."""
        latest = {
            memory.memory_id: [source.message_id for source in memory.sources if source.room_id == read.room_id][
                -_SUPPORTS:
            ]
            for memory in read.offered.values()
        }
        wanted = list({message_id for message_ids in latest.values() for message_id in message_ids})
        async with self._storage.reading(piece.tenant) as work:
            entries = await work.messages.by_id(room_id=read.room_id, message_ids=wanted)
        utterances = {entry.message.id: utterance_of(entry.message, read.people) for entry in entries}
        return {
            memory_id: [utterances[message_id] for message_id in message_ids if message_id in utterances]
            for memory_id, message_ids in latest.items()
        }

    async def _since(self, work: UnitOfWork, piece: Piece) -> datetime:
        """Return the time from which messages never read are new. For a person it is, in every room, when the first
        evolution began to read."""
        since = self._clock.now() - timedelta(days=piece.days)
        if piece.user_id is None:
            return since
        marks = await work.progress.marks(room_id=NO_ROOM, names=[piece.watermark])
        return min([since, *(datetime.fromtimestamp(begun, UTC) for begun in marks.values())])

    async def _position(self, work: UnitOfWork, piece: Piece, since: datetime) -> _Position | None:
        """Return a position with new messages; of a person's rooms the one that has waited longest."""
        if piece.user_id is None:
            return await _position_in(work, piece, piece.room_id, since)
        waiting: list[tuple[datetime, str, _Position]] = []
        for room_id in await work.rooms.of_sender(sender_id=piece.user_id):
            position = await _position_in(work, piece, room_id, since)
            first = await _first(work, piece, position) if position else []
            if position and first:
                waiting.append((first[0].at, room_id, position))
        return min(waiting, key=lambda place: place[:2])[2] if waiting else None

    async def _page(self, work: UnitOfWork, piece: Piece, position: _Position, span: PieceSpan | None) -> _Page:
        page = await work.messages.page_with_hashes(
            room_id=position.room_id, after=position.after, limit=MOST_MESSAGES, sender_id=piece.user_id
        )
        if span is not None and span.room_id == position.room_id:
            page = [(message, known) for message, known in page if message.arrival <= span.last]
        return _Page(
            _messages(page),
            _fingerprints(page),
            await work.rooms.participants(room_id=position.room_id) if page else {},
        )

    async def _shown(self, work: UnitOfWork, piece: Piece, room_id: str, page: _Page) -> ShownMessages:
        replied = [message.reply_to for message in page.messages if message.reply_to]
        entries = await work.messages.by_id(room_id=room_id, message_ids=replied)
        quoted = {entry.message.id: entry.message for entry in entries}
        return show_messages(page.messages, room_id=room_id, quoted=quoted, people=page.people, zone=self._zone)

    async def _all(
        self,
        work: UnitOfWork,
        piece: Piece,
        position: _Position,
        page: _Page,
        shown: ShownMessages,
        span: PieceSpan | None,
        since: datetime,
    ) -> Read:
        messages = page.messages
        active, replaced = await self._active(work, piece, position.room_id)
        memories = _same(active, span) or chosen(active, shown.text, most=MOST_MEMORIES)
        rooms = await work.rooms.people(room_ids=[position.room_id, *(rooms_named(memories) - {position.room_id})])
        offered = handles_of(memories, shown=[shown.text, *(memory.statement for memory in memories)])
        last, now = messages[-1].arrival, self._clock.now()
        return Read(
            room_id=position.room_id,
            was=position.was,
            first=messages[0].arrival,
            last=last,
            remaining=await self._remaining(work, piece, position.room_id, last, since),
            since=since,
            messages=messages,
            fingerprints=page.fingerprints,
            shown=shown.text,
            handles=shown.handles,
            people=page.people,
            offered=offered,
            language=language("\n".join(message.text for message in messages)),
            basis=_basis(position, shown, list(offered.values())),
            at=now,
            room=rooms.pop(position.room_id, RoomPeople(position.room_id)),
            others=rooms,
            replaced=replaced,
            silent=await _silent(work, piece, position.room_id, memories, messages, now),
        )

    async def _active(self, work: UnitOfWork, piece: Piece, room_id: str) -> tuple[list[Memory], frozenset[str]]:
        """Return the active memories that hold and that the room may know, and the ids of those that are left out since
        another one replaces them there. An evolution of a room is shown, and counts, only what the room may know."""
        active = await work.memories.page(
            scopes=[piece.scope], kinds=[piece.kind], status=MemoryStatus.ACTIVE, limit=_ALL, held_at=self._clock.now()
        )
        return shown(active, await self._view(work, piece, room_id, active))

    async def _view(self, work: UnitOfWork, piece: Piece, room_id: str, memories: Sequence[Memory]) -> View:
        return await view_for(work, viewer=Viewer("room", room_id), memories=memories, now=self._clock.now())

    async def _remaining(self, work: UnitOfWork, piece: Piece, room_id: str, last: int, since: datetime) -> int:
        """Count the remaining messages, of a person in the other rooms too."""
        left = await _count(work, piece, room_id, last)
        if piece.user_id is None:
            return left
        for other in await work.rooms.of_sender(sender_id=piece.user_id):
            position = await _position_in(work, piece, other, since) if other != room_id else None
            left += await _count(work, piece, other, position.after) if position else 0
        return left

    async def _skip(self, piece: Piece, position: _Position, last: int) -> None:
        async with self._storage.writing(piece.tenant) as work:
            await work.progress.move_mark(
                room_id=position.room_id, name=piece.watermark, arrival=last, was=position.was, now=self._clock.now()
            )


async def fingerprints_of(work: UnitOfWork, piece: Piece, room_id: str, message_ids: Sequence[str]) -> dict[str, str]:
    """Return the hashes that tell if messages were edited or deleted since."""
    return await work.messages.fingerprints(room_id=room_id, message_ids=message_ids)


def utterance_of(message: StoredMessage, people: Mapping[str, str]) -> ParsedMessage:
    """Return a message as support of a statement."""
    return ParsedMessage(name_of(message, people), message.text[:_LONGEST_UTTERANCE])


def _messages(pairs: Sequence[tuple[StoredMessage, str]]) -> list[StoredMessage]:
    return [message for message, _ in pairs]


def _fingerprints(pairs: Sequence[tuple[StoredMessage, str]]) -> dict[str, str]:
    return {message.id: known for message, known in pairs}


async def _position_in(work: UnitOfWork, piece: Piece, room_id: str, since: datetime) -> _Position | None:
    marks = await work.progress.marks(room_id=room_id, names=[piece.watermark])
    if piece.watermark in marks:
        return _Position(room_id, marks[piece.watermark], marks[piece.watermark])
    first = await work.messages.first_since(room_id=room_id, since=since)
    return None if first is None else _Position(room_id, 0, first - 1)


async def _first(work: UnitOfWork, piece: Piece, position: _Position) -> list[StoredMessage]:
    return await work.messages.page(room_id=position.room_id, after=position.after, limit=1, sender_id=piece.user_id)


async def _silent(
    work: UnitOfWork,
    piece: Piece,
    room_id: str,
    memories: Sequence[Memory],
    messages: Sequence[StoredMessage],
    now: datetime,
) -> frozenset[str]:
    """Return the ids of the memories that are silent by the times of the room's messages.

    The silence begins with the end of what the evolution read that made or last changed a memory: messages there may
    speak of it without being its sources. What somebody changed by hand since is not silent.
    """
    newest = max((message.at for message in messages if message.at <= now), default=None)
    old = [memory.memory_id for memory in memories if newest and is_silent_in(memory, room_id, newest)]
    if newest is None or not old:
        return frozenset()
    made = last_evolutions(await work.memories.changes_of_memories(memory_ids=old))
    records = await work.memories.evolutions_by_id(evolution_ids=sorted(set(made.values())))
    recent = await work.messages.first_since(room_id=room_id, since=newest - SILENCE)
    before = {
        record.evolution_id for record in records if record.room_id == room_id and record.last_arrival < (recent or 0)
    }
    return frozenset(memory_id for memory_id in old if made.get(memory_id) in before)


async def _count(work: UnitOfWork, piece: Piece, room_id: str, after: int) -> int:
    return await work.messages.count(room_id=room_id, after=after, sender_id=piece.user_id)


def _same(active: Sequence[Memory], span: PieceSpan | None) -> list[Memory]:
    """Return the memories that were offered before; none if one of them is no longer active."""
    by_id = {memory.memory_id: memory for memory in active}
    wanted = span.memories if span else ()
    return [by_id[message_id] for message_id in wanted] if by_id.keys() >= set(wanted) else []


def _basis(position: _Position, shown: ShownMessages, offered: Sequence[Memory]) -> str:
    read = [position.room_id, str(position.was), shown.text, *(memory.memory_id for memory in offered)]
    return hashlib.sha256("\0".join(read).encode("utf-8", "surrogatepass")).hexdigest()[:24]
