"""Search of messages: by words and by meaning, over facts of rooms that are cached and brought up to date."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, tzinfo
from functools import partial
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from roomlore.core.audience import Viewer, Window
from roomlore.core.dates.spans import time_spans
from roomlore.core.errors import InvalidInput, unknown_room
from roomlore.core.far import Earlier, query_of
from roomlore.core.intake import AHEAD, MAX_QUERY_CHARS, check_query
from roomlore.core.linking.room import pointers, told_alone
from roomlore.core.models import Entry, Room, StoredMessage
from roomlore.core.search.facts import (
    MultiRoom,
    RoomPart,
    allowed,
    before,
    chosen,
    facts_of,
    from_micros,
    is_whole,
    last_of_senders,
    look_up,
    missing_senders,
    part_of,
    renewed,
    to_micros,
)
from roomlore.core.search.facts import conversation as conversation_of
from roomlore.core.search.hits import Dense, Ints, MessageFacts, Postings, SearchAnswer, SearchHit, SearchMode
from roomlore.core.search.query import SearchQuery, read_query
from roomlore.core.search.ranking import Ranked, before_fall, rank
from roomlore.core.search.telling import nothing_then, why_nothing
from roomlore.ports.audience import room_shown, rooms_shown
from roomlore.ports.shared import Backends, Service
from roomlore.ports.vectors import MeaningSearch
from roomlore.services.messages.room_states import RoomCache

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork

_BYTES_A_ROOM = 2_000
_BYTES_A_SENDER = 130
"""The cost of a sender: two strings without their characters, and their references."""
_BYTES_A_TERM = 90
_BYTES_A_WORD = 160
MOST_IN_MEMORY = 2_000
"""The most messages of a room whose words are kept in memory."""
_DERIVED_BYTES = 48
"""What ranking derives of a message."""

_Key = tuple[str, str]
MAX_SENDERS = 1_000
MAX_CONVERSATION = 12
"""Messages shown around each hit, with the hit itself, if conversations are requested."""
_FEW_LATER = 32
_SHORT = 2_000
"""Characters of a query that are read in less than a few milliseconds."""
AskedAt = datetime | Literal["newest"] | None
Among = Callable[[MessageFacts], Ints | None]
"""Return the arrivals of the messages that may be found; None if all may."""


class SearchFilters(TypedDict, total=False):
    """What `lore.messages.search` takes beside the room, the question and the viewer."""

    limit: int
    mode: SearchMode
    sender_ids: Sequence[str] | None
    since: datetime | None
    until: datetime | None
    asked_at: AskedAt
    conversation: bool
    neighbours: bool


class FactsCache:
    """A cache of at most `size_bytes` of facts, those searched last; shared by all tenants of one process. A room that
    is larger is read again for each search."""

    def __init__(self, *, size_bytes: int) -> None:
        self._size = size_bytes
        self._held = 0
        self._rooms: OrderedDict[_Key, tuple[MessageFacts, Room, int]] = OrderedDict()

    def known(self, tenant: str, room_id: str) -> tuple[MessageFacts, Room] | None:
        """Return what was last read of the room, and the room at that time; it may be old."""
        key = (tenant, room_id)
        if key not in self._rooms:
            return None
        self._rooms.move_to_end(key)
        return self._rooms[key][:2]

    async def of(self, work: "UnitOfWork", room: Room, *, words: bool = False) -> MessageFacts:
        """Return the facts of the room, at least as new as `room`; a room that was removed and created again is read
        again. `words`: with the words of a small room."""
        words &= room.messages <= MOST_IN_MEMORY
        known, read = self.known(room.tenant, room.room_id) or (None, room)
        if known is not None and (read.created_at != room.created_at or (words and known.words is None)):
            known = None
        if known is not None and known.revision >= room.revision:
            return known
        facts = await self._read(work, room, known, words=words)
        self._keep(room, facts)
        return facts

    async def _read(self, work: "UnitOfWork", room: Room, known: MessageFacts | None, *, words: bool) -> MessageFacts:
        read = work.messages.facts_with_words if words else work.messages.facts
        if known is not None:
            facts = renewed(known, await read(room_id=room.room_id, since=known.revision), revision=room.revision)
            if facts.words is not None or not words:
                return facts
        return facts_of(await read(room_id=room.room_id, since=0), revision=room.revision)

    def _keep(self, room: Room, facts: MessageFacts) -> None:
        """Drop others to make room, but none for facts that would not fit anyway."""
        key, size = (room.tenant, room.room_id), _bytes_of(facts)
        if key in self._rooms:
            self._held -= self._rooms.pop(key)[2]
        if size > self._size:
            return
        self._rooms[key] = facts, room, size
        self._held += size
        while self._held > self._size:
            _, (_, _, freed) = self._rooms.popitem(last=False)
            self._held -= freed


def _bytes_of(facts: MessageFacts) -> int:
    """Return about how much memory the facts take."""
    values = [getattr(facts, field.name) for field in fields(facts)]
    columns = sum(value.nbytes for value in values if isinstance(value, np.ndarray))
    columns += _DERIVED_BYTES * facts.arrivals.size
    people = sum(map(len, facts.sender_ids)) + sum(map(len, facts.sender_names))
    people += _BYTES_A_SENDER * len(facts.sender_ids)
    if facts.words is not None:
        columns += facts.words.table.nbytes + _BYTES_A_WORD * len(facts.words.numbers)
    tallies = facts.naming.tallies
    return _BYTES_A_ROOM + columns + people + getsizeof(tallies) + _BYTES_A_TERM * len(tallies)


@dataclass(frozen=True, slots=True)
class Filters:
    """The messages that may be found: of these senders, sent in [since, until)."""

    senders: tuple[str, ...] | None
    since: datetime | None
    until: datetime | None

    @classmethod
    def of(cls, senders: Sequence[str] | None, since: datetime | None, until: datetime | None) -> "Filters":
        """Return checked filters. Raise `InvalidInput`."""
        if senders is not None and not _are_names(senders):
            raise InvalidInput("sender_ids_invalid", value=f"{senders!r:.60}", most=MAX_SENDERS)
        for name, value in (("since", since), ("until", until)):
            if value is not None and not isinstance(value, datetime):
                raise InvalidInput("datetime_needed", name=name, value=f"{value!r:.60}")
        if since is not None and until is not None and to_micros(since) >= to_micros(until):
            raise InvalidInput("since_not_before_until", since=since, until=until)
        return cls(None if senders is None else tuple(senders), since, until)

    def among(self, facts: MessageFacts) -> Ints | None:
        """Return the arrivals of the messages that may be found; None if all may."""
        return chosen(facts, senders=self.senders, since=self.since, until=self.until)


class Searching(Service):
    """The parts of a search for one tenant, of one room or of many. `rooms`: those that this process wrote to last.
    `zone`: of the times that a question names."""

    def __init__(
        self,
        backends: Backends,
        *,
        tenant: str,
        rooms: RoomCache,
        facts: FactsCache,
        dense: MeaningSearch,
        zone: tzinfo,
    ) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._rooms = rooms
        self._facts = facts
        self._dense = dense
        self._zone = zone

    def _read(self, text: str, facts: MessageFacts, asked_at: AskedAt) -> SearchQuery:
        """Return the question read as of the time it was asked."""
        now = self._clock.now()
        if isinstance(asked_at, datetime):
            now = asked_at if asked_at.tzinfo else asked_at.replace(tzinfo=UTC)
        elif asked_at == "newest" and (sent := facts.sent_at[facts.sent_at <= to_micros(now + AHEAD)]).size:
            now = from_micros(max(int(sent.max()), 0))
        return read_query(text, facts=facts, spans=time_spans(text, now=now, zone=self._zone), now=now)

    def _hint(
        self, query: SearchQuery, ranked: Sequence[Ranked], facts: MessageFacts, only: Ints | None, filters: Filters
    ) -> str | None:
        """Return what a person should know of an answer with these hits; None if that is nothing."""
        missing, sentence = missing_senders(facts, filters.senders), None
        if query.begun and all(hit.outside for hit in ranked):
            sentence = nothing_then(query, facts, only, self._zone, others=bool(ranked))
        elif not ranked and not missing:
            since, until = filters.since, filters.until
            sentence = why_nothing(query, facts, only, since=since, until=until, zone=self._zone)
        return " ".join(filter(None, (sentence, missing))) or None

    def _measure(self, answer: SearchAnswer) -> None:
        self._telemetry.observe("roomlore_search_seconds", answer.search_ms / 1000)
        labels = {"mode": answer.mode, "degraded": "yes" if answer.degraded else "no"}
        self._telemetry.count("roomlore_searches_total", labels=labels)


@dataclass(frozen=True, slots=True)
class _Found:
    """What words and meaning find in a room, of messages `only` these, None for all, before it is ranked."""

    query: SearchQuery
    postings: Postings
    dense: Dense
    facts: MessageFacts
    only: Ints | None


class MessageSearch(Searching):
    """Search the rooms of one tenant, one at a time."""

    async def search(
        self,
        room_id: str,
        query: str,
        *,
        limit: int,
        mode: SearchMode,
        filters: Filters,
        asked_at: AskedAt,
        conversation: bool = False,
        neighbours: bool = False,
    ) -> SearchAnswer:
        if not isinstance(room_id, str):
            raise InvalidInput("room_id_not_text", value=f"{room_id!r:.60}")
        check_search(query, limit=limit, mode=mode, asked_at=asked_at)
        started = self._clock.monotonic()
        found = await self._found(room_id, query, asked_at, mode, filters.among)
        read, facts, dense, only = found.query, found.facts, found.dense, found.only
        given: Any = {"dense": dense.found, "facts": facts, "limit": limit, "only": only}
        ranked = rank(read, postings=found.postings, neighbours=neighbours, **given)
        ranked = before_fall(ranked, read, by_meaning=dense.used)
        around = conversations(ranked, facts) if conversation else {}
        messages = await self._messages(found, ranked, around)
        answer = SearchAnswer(
            room_id=room_id,
            query=query,
            mode="hybrid" if dense.used else "lexical",
            hits=tuple(hit_of(hit, messages, around) for hit in ranked if hit.arrival in messages),
            times=read.spans,
            degraded=dense.problem,
            hint=self._hint(read, ranked, facts, only, filters),
            search_ms=1000 * (self._clock.monotonic() - started),
        )
        self._measure(answer)
        return answer

    async def before(self, entry: Entry, *, limit: int, by_words: bool = False) -> Earlier:
        """Return the messages before this one that answer it best, as a search for its words ranks them, at most
        `limit`.

        The search uses words and meaning, or words alone if meaning is not available or `by_words` is True. Raise
        `NotFound`, `StorageUnavailable`.
        """
        arrival, text = entry.message.arrival, query_of(entry)[:MAX_QUERY_CHARS]
        mode: SearchMode = "lexical" if by_words else "hybrid"
        early = partial(_early, arrival=arrival)
        found = await self._found(entry.message.room_id, text, entry.message.at, mode, early, moves=False)
        past, dense = before(found.facts, arrival), found.dense
        ranked = rank(found.query, postings=found.postings, dense=dense.found, facts=past, limit=limit, bare=True)
        return Earlier(ranked=tuple(ranked), facts=past, problem=None if by_words else dense.problem)

    async def _found(
        self, room_id: str, text: str, asked_at: AskedAt, mode: SearchMode, among: Among, *, moves: bool = True
    ) -> _Found:
        """Return what is found in the room, of messages `among` its facts. `moves`: what is found by meaning is found
        again if these are others once the words are looked up."""
        room, facts = await self._known_facts(room_id)
        read, only = await self._read_aside(text, facts, asked_at), among(facts)
        if facts.words is not None:
            postings = look_up(facts, room, read.terms)
            return _Found(read, postings, await self._by_meaning(room_id, read, only, mode), facts, only)
        meaning = asyncio.create_task(self._by_meaning(room_id, read, only, mode))
        try:
            postings, now = await self._by_words(room_id, read, facts)
            dense = await meaning
        finally:
            meaning.cancel()
        if now is facts:
            return _Found(read, postings, dense, facts, only)
        read, now_only = await self._read_aside(text, now, asked_at), among(now)
        if moves and only is not None and now_only is not None and not np.array_equal(now_only, only):
            only = now_only
            dense = await self._by_meaning(room_id, read, only, mode)
        return _Found(read, postings, dense, now, only)

    async def _known_facts(self, room_id: str) -> tuple[Room, MessageFacts]:
        """Return the facts of the room, with its words if it is small: then as it is now, else perhaps as it was."""
        known = self._facts.known(self._tenant, room_id)
        if known is not None and known[1].messages > MOST_IN_MEMORY:
            return known[1], known[0]
        async with self._storage.reading(self._tenant) as work:
            room = await self._room(work, room_id, known and known[1])
            return room, await self._facts.of(work, room, words=True)

    async def _room(self, work: "UnitOfWork", room_id: str, searched: Room | None) -> Room:
        """Return the room as it is now. `searched`: as it was when it was searched last."""
        rooms = (self._rooms.newest(self._tenant, room_id), searched)
        newest = max((room for room in rooms if room), key=lambda room: room.revision, default=None)
        if newest is not None and await self._rooms.is_current(work, newest):
            return newest
        return await work.rooms.get(room_id=room_id)

    async def _by_words(self, room_id: str, query: SearchQuery, facts: MessageFacts) -> tuple[Postings, MessageFacts]:
        """Return the postings of the query's words, and facts that are no older."""
        async with self._storage.reading(self._tenant) as work:
            postings = await work.messages.look_up(room_id=room_id, words=query.terms)
            if postings is None:
                raise unknown_room(room_id)
            if facts.revision < postings.room.revision:
                facts = await self._facts.of(work, postings.room)
        return postings, facts

    async def _read_aside(self, text: str, facts: MessageFacts, asked_at: AskedAt) -> SearchQuery:
        """Read a long text in a thread: it may be any user's message."""
        if len(text) <= _SHORT:
            return self._read(text, facts, asked_at)
        return await asyncio.to_thread(self._read, text, facts, asked_at)

    async def _by_meaning(self, room_id: str, query: SearchQuery, only: Ints | None, mode: SearchMode) -> Dense:
        if mode == "lexical" or not query.embed:
            return Dense(problem=await self._dense.problem())
        return await self._dense.near(self._tenant, room_id, query.embed, only)

    async def _messages(
        self, found: _Found, ranked: Sequence[Ranked], around: Mapping[int, Sequence[int]]
    ) -> dict[int, StoredMessage]:
        """Return messages by arrival: those in memory are not read, unless time went by with their search by meaning.
        The metadata of those in memory is shared with the caller, who may change it."""
        room, arrivals = found.postings.room, {hit.arrival for hit in ranked}.union(*around.values())
        state = None if found.dense.used else self._rooms.state(room)
        entries = [] if state is None else [entry for entry in map(state.at, arrivals) if entry is not None]
        messages = {entry.message.arrival: entry.message for entry in entries if not entry.message.metadata}
        if missing := arrivals.difference(messages):
            async with self._storage.reading(self._tenant) as work:
                read = await work.messages.messages_by_arrival(room_id=room.room_id, arrivals=list(missing))
            messages |= {message.arrival: message for message in read}
        return messages


def _early(facts: MessageFacts, arrival: int) -> Ints | None:
    """Return the arrivals before this one; None if so few come later that the nearest in meaning may include them."""
    early = facts.arrivals[: facts.arrivals.searchsorted(arrival)]
    return None if facts.arrivals.size - early.size <= _FEW_LATER else early


def _are_names(senders: object) -> bool:
    if not isinstance(senders, list | tuple | set | frozenset) or len(senders) > MAX_SENDERS:
        return False
    return all(isinstance(sender, str) for sender in senders)


def conversations(ranked: Sequence[Ranked], facts: MessageFacts) -> dict[int, list[int]]:
    """Return the arrivals of the conversation around each message found."""
    return {
        hit.arrival: conversation_of(facts, hit.arrival, limit=MAX_CONVERSATION, besides=hit.question).tolist()
        for hit in ranked
    }


def hit_of(ranked: Ranked, messages: Mapping[int, StoredMessage], around: Mapping[int, Sequence[int]]) -> SearchHit:
    """Return a hit with its message, and the messages around it if there are any."""
    conversation = [messages[arrival] for arrival in around.get(ranked.arrival, ()) if arrival in messages]
    return SearchHit(
        message=messages[ranked.arrival],
        score=ranked.score,
        signals=ranked.signals,
        reason=ranked.reason,
        outside=ranked.outside,
        conversation=tuple(sorted(conversation, key=lambda message: (message.at, message.arrival))),
    )


def check_search(query: str, *, limit: int, mode: str, asked_at: AskedAt) -> None:
    """Raise `InvalidInput` unless a search can be made of this."""
    check_query(query, limit=limit)
    if mode not in ("hybrid", "lexical"):
        raise InvalidInput("search_mode_invalid", value=repr(mode))
    if not (asked_at is None or asked_at == "newest" or isinstance(asked_at, datetime)):
        raise InvalidInput("asked_at_invalid", value=f"{asked_at!r:.60}")


MAX_ROOMS = 200
MAX_MESSAGES = 200_000
_INLINE = 20_000
"""Messages that are joined on the event loop; more use another thread."""


class RoomsSearch(Searching):
    """Search all rooms of one tenant that a viewer may see: at most the 200 used last, and 200,000 messages."""

    async def search(
        self,
        viewer: Viewer | None,
        query: str,
        *,
        limit: int,
        mode: SearchMode,
        filters: Filters,
        asked_at: AskedAt,
        conversation: bool = False,
        neighbours: bool = False,
        room_id: str | None = None,
    ) -> SearchAnswer:
        """Return what the viewer may see, None for all, of the messages that answer the query best. `room_id`: of this
        room alone. Raise `NotFound` if the viewer may see nothing of it."""
        check_search(query, limit=limit, mode=mode, asked_at=asked_at)
        started = self._clock.monotonic()
        parts, left_out = await self._parts(viewer) if room_id is None else await self._part_of(viewer, room_id)
        large = sum(part.facts.arrivals.size for part in parts) > _INLINE
        rooms = await asyncio.to_thread(MultiRoom, parts) if large else MultiRoom(parts)
        facts, only = rooms.facts, rooms.among(filters.among(rooms.facts))
        read = self._read(query, facts, asked_at)
        dense = await self._near(rooms, read, only, mode)
        postings = await self._postings(rooms, read)
        nearest = rooms.nearest([dense_part.found for dense_part in dense])
        given: Any = {"dense": nearest, "facts": facts, "limit": limit, "only": only}
        ranked = rank(read, postings=postings, neighbours=neighbours, **given)
        used = any(dense_part.used for dense_part in dense)
        ranked = before_fall(ranked, read, by_meaning=used)
        around = conversations(ranked, facts) if conversation else {}
        messages = await self._messages(rooms, ranked, around)
        problems = [dense_part.problem for dense_part in dense[:1] if dense_part.problem] + (
            [left_out] if left_out else []
        )
        answer = SearchAnswer(
            room_id=room_id,
            query=query,
            mode="hybrid" if used else "lexical",
            hits=tuple(hit_of(hit, messages, around) for hit in ranked if hit.arrival in messages),
            times=read.spans,
            degraded=" ".join(problems) or None,
            hint=self._hint(read, ranked, facts, only, filters),
            search_ms=1000 * (self._clock.monotonic() - started),
        )
        self._measure(answer)
        return answer

    async def _parts(self, viewer: Viewer | None) -> tuple[list[RoomPart], str | None]:
        """Return what may be shown of each room, the room used last first, and what is said of those left out."""
        async with self._storage.reading(self._tenant) as work:
            shown = await rooms_shown(work, viewer=viewer, now=self._clock.now(), most=MAX_ROOMS)
            parts_read = [await self.part(work, room, windows) for room, windows in shown.rooms]
        parts = sorted((part for part in parts_read if part.facts.arrivals.size), key=_newest_first)
        kept, size = list[RoomPart](), 0
        for part in parts[:MAX_ROOMS]:
            size += part.facts.arrivals.size
            if kept and size > MAX_MESSAGES:
                break
            kept.append(part)
        few = len(kept) < len(parts) or shown.more
        return kept, f"Only the {len(kept)} rooms used last were searched; name a room." if few else None

    async def _part_of(self, viewer: Viewer | None, room_id: str) -> tuple[list[RoomPart], None]:
        async with self._storage.reading(self._tenant) as work:
            room, windows = await room_shown(work, viewer=viewer, room_id=room_id, now=self._clock.now())
            return [await self.part(work, room, windows)], None

    async def part(self, work: "UnitOfWork", room: Room, windows: Sequence[Window]) -> RoomPart:
        """Return what may be shown of a room in these windows."""
        facts = await self._facts.of(work, room)
        if is_whole(windows):
            return RoomPart(room.room_id, facts)
        arrivals = allowed(facts, windows, await work.messages.said(room_id=room.room_id))
        last = await work.messages.messages_by_arrival(room_id=room.room_id, arrivals=last_of_senders(facts, arrivals))
        return part_of(room.room_id, facts, arrivals, {speaker.sender_id: speaker.sender_name for speaker in last})

    async def _postings(self, rooms: MultiRoom, query: SearchQuery) -> Postings:
        async with self._storage.reading(self._tenant) as work:
            postings = [await work.messages.look_up(room_id=part.room_id, words=query.terms) for part in rooms.parts]
        return rooms.postings(query.terms, postings)

    async def _near(self, rooms: MultiRoom, query: SearchQuery, only: Ints, mode: SearchMode) -> list[Dense]:
        """Return the nearest neighbours in each room."""
        if mode == "lexical" or not query.embed or not rooms.parts:
            return [Dense(problem=await self._dense.problem())]
        scopes = {part.room_id: rooms.within(at, only) for at, part in enumerate(rooms.parts)}
        near_by_room = await self._dense.near_each(self._tenant, scopes, query.embed)
        return [near_by_room[part.room_id] for part in rooms.parts]

    async def _messages(
        self, rooms: MultiRoom, ranked: Sequence[Ranked], around: Mapping[int, Sequence[int]]
    ) -> dict[int, StoredMessage]:
        wanted: dict[int, dict[int, int]] = {}
        for number in {hit.arrival for hit in ranked}.union(*around.values()):
            at, arrival = rooms.place(number)
            wanted.setdefault(at, {})[arrival] = number
        messages_by_number: dict[int, StoredMessage] = {}
        async with self._storage.reading(self._tenant) as work:
            for at, numbers in wanted.items():
                its = await self.told(work, rooms.parts[at], sorted(numbers))
                messages_by_number |= {numbers[arrival]: message for arrival, message in its.items()}
        return messages_by_number

    async def told(self, work: "UnitOfWork", part: RoomPart, arrivals: Sequence[int]) -> dict[int, StoredMessage]:
        """Return these messages of a part by arrival, as a viewer is told them who sees no other part of the room."""
        by_arrival = {
            one.arrival: one for one in await work.messages.messages_by_arrival(room_id=part.room_id, arrivals=arrivals)
        }
        if part.whole:
            return by_arrival
        named = await work.messages.by_id(room_id=part.room_id, message_ids=sorted(pointers(list(by_arrival.values()))))
        shown = set(part.facts.arrivals.tolist())
        seen = {entry.message.id for entry in named if entry.message.arrival in shown}
        places = {arrival: place for place, arrival in enumerate(part.facts.arrivals.tolist(), start=1)}
        return {arrival: told_alone(message, places[arrival], seen) for arrival, message in by_arrival.items()}


def _newest_first(part: RoomPart) -> tuple[int, str]:
    return -int(part.facts.sent_at.max()), part.room_id
