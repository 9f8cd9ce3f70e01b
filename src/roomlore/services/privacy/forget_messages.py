"""Remove a person from messages: find what they said and where, redact what others took over, delete the rest."""

import asyncio
import logging
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime

from roomlore.core.analysis import Participants, analyse
from roomlore.core.errors import VectorsUnavailable, describe
from roomlore.core.json_values import texts_in
from roomlore.core.memory.memory import Source
from roomlore.core.models import Entry, Role, StoredMessage
from roomlore.core.privacy import SURE, Left, Taken, Traces, features_without, passages, weight, without_person
from roomlore.ports.shared import Backends, Service
from roomlore.ports.vectors import MEMORIES, MESSAGES, VectorIndex
from roomlore.services.privacy.requests import remove_requests
from roomlore.storage import Storage, UnitOfWork
from roomlore.storage.values import (
    EMPTIED,
    MEMORY_VECTORS,
    OF_EMPTIED,
    VACANT,
    VECTORS,
    ReferencedIds,
    RoomOfPerson,
    Sought,
)

log = logging.getLogger(__name__)


_AT_ONCE = 1_000
_STATES = {MESSAGES: VECTORS, MEMORIES: MEMORY_VECTORS}
_PAGE = 500
_ASKED_AT_ONCE = 10_000
_FOUND_AT_ONCE = 20_000
"""The most arrivals of messages that one query finds. Each query is given the ids of all messages of the person."""
_REWRITTEN_AT_ONCE = 50
_ERASED_AT_ONCE = 200
_ROUNDS = 3
"""The most rounds in which messages that arrive meanwhile in a removed room are erased."""
_LOOK_SECONDS = 0.05
_LOOKS = 200
"""The most waits for a worker that makes vectors: ten seconds in all."""
_Own = Mapping[str, AbstractSet[str]]
"""By sender, the passages of the person that the sender said before the person did."""
EMPTIED_LEFT = "Emptied rooms stay until their vectors could be removed; roomlore tries again."
_WRITTEN_THERE = "Somebody writes there just now; roomlore tries again."
VECTORS_LEFT = "Vectors of messages could not be removed; the index removes them when their store answers."


@dataclass(slots=True)
class ForgetTally:
    """The counts of a run. `dry`: nothing is changed, only counted."""

    dry: bool
    places: Counter[str] = field(default_factory=Counter)
    rooms_removed: list[str] = field(default_factory=list)
    same_words: Counter[str] = field(default_factory=Counter)
    retired: dict[str, None] = field(default_factory=dict)
    rewritten: dict[str, None] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)

    def leave(self, place: str, count: int, why: str) -> None:
        before = self.left.get(place)
        self.left[place] = Left(place, count + (before.count if before else 0), why)


class VectorEraser(Service):
    """Remove vectors. `index`: None if this process keeps no vectors."""

    def __init__(self, backends: Backends, *, index: VectorIndex | None) -> None:
        super().__init__(backends)
        self._index = index

    async def remove_for_good(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> bool:
        """Remove the vectors of texts that nobody can read any more, after waiting for workers that read them before.
        Return False if some may be left: a worker has not ended, or the store is down."""
        for _ in range(_LOOKS):
            async with self._storage.reading(tenant) as work:
                due = work.progress.outbox if collection == MESSAGES else work.progress.memory_outbox
                held = await due.held(scope=scope, now=self._clock.now())
            if not held:
                return await self.remove(collection=collection, tenant=tenant, scope=scope, numbers=numbers)
            await asyncio.sleep(_LOOK_SECONDS)
        return False

    async def remove(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> bool:
        """Return True if none of them is left. If some are, the outbox of the index removes them later."""
        if not numbers:
            return True
        if self._index is None:
            return not await self._kept_by_others(collection)
        try:
            for start in range(0, len(numbers), _AT_ONCE):
                await self._index.remove(
                    collection=collection, tenant=tenant, scope=scope, numbers=numbers[start : start + _AT_ONCE]
                )
        except VectorsUnavailable as error:
            log.warning("vectors of a forgotten person are left for later", extra={"why": describe(error)})
            return False
        return True

    async def _kept_by_others(self, collection: str) -> bool:
        async with self._storage.reading() as work:
            return await work.progress.index_state(name=_STATES[collection]) is not None


@dataclass(slots=True)
class PersonTexts:
    """The person's texts in one room, by message id. `edited`: when a message they edited was changed; `arrivals`:
    ascending; `first`: the time, and the arrival, at which each passage was first said."""

    texts: dict[str, str] = field(default_factory=dict)
    edited: dict[str, datetime] = field(default_factory=dict)
    arrivals: list[int] = field(default_factory=list)
    turns: dict[str, list[str]] = field(default_factory=dict)
    first: dict[str, tuple[datetime, int]] = field(default_factory=dict)

    def add_all(self, messages: Iterable[StoredMessage]) -> None:
        for message in messages:
            self._add(message)

    def _add(self, message: StoredMessage) -> None:
        self.texts[message.id] = message.text
        for passage in passages(message.text):
            at = (message.dated_at, message.arrival)
            self.first[passage] = min(at, self.first.get(passage, at))
        self.arrivals.append(message.arrival)
        if message.edited_at is not None:
            self.edited[message.id] = message.edited_at
        if message.turn_id is not None:
            self.turns.setdefault(message.turn_id, []).append(message.text)

    def linked(self, message: StoredMessage, answered: Iterable[str | None] = ()) -> list[str]:
        """Return the messages of the person that the platform, a turn or a quotation links another's message to."""
        named = dict.fromkeys((message.reply_to, message.root_id, *answered))
        texts = [self.texts[name] for name in named if name is not None and name in self.texts]
        return texts + (self.turns.get(message.turn_id, []) if message.turn_id is not None else [])

    def linkable(self) -> ReferencedIds:
        """Return the ids to which messages of others may refer."""
        return ReferencedIds(frozenset(self.texts), frozenset(self.texts) | frozenset(self.turns))

    def within(self, first: int, last: int) -> bool:
        """Return True if any of it arrived between the two."""
        return bisect_left(self.arrivals, first) < bisect_right(self.arrivals, last)

    def and_also(self, more: "PersonTexts") -> "PersonTexts":
        """Return this with what was said later."""
        turns = {turn: self.turns.get(turn, []) + more.turns.get(turn, []) for turn in {**self.turns, **more.turns}}
        return PersonTexts(
            self.texts | more.texts, self.edited | more.edited, self.arrivals + more.arrivals, turns,
            more.first | self.first,
        )  # fmt: skip

    def before(self, passage: str, message: StoredMessage) -> bool:
        """Return True if the person had said the passage here before this message."""
        return passage in self.first and self.first[passage] < (message.dated_at, message.arrival)


NO_TEXTS = PersonTexts()


@dataclass(frozen=True, slots=True)
class Person:
    """The person to forget.

    `removed`: rooms without other speakers than assistants, which are removed as a whole; `goes` excludes those in
    which another person speaks meanwhile. `words`: every passage of the person, those that others say independently
    included. `same_words`: True if equal words of others are redacted too, in rooms that they shared.
    """

    tenant: str
    user_id: str
    said: Mapping[str, PersonTexts]
    removed: set[str]
    traces: Traces
    words: Traces
    same_words: bool = False

    def in_room(self, room_id: str) -> PersonTexts:
        return self.said.get(room_id, NO_TEXTS)

    def said_in(self, source: Source) -> str | None:
        """Return what the person said in the message, None for another's; every message of a removed room is theirs."""
        text = self.in_room(source.room_id).texts.get(source.message_id)
        return "" if text is None and source.room_id in self.removed else text

    def before(self, passage: str, message: StoredMessage) -> bool:
        """Return True if the person had said the passage anywhere before this message."""
        if self.in_room(message.room_id).before(passage, message):
            return True
        others = (texts for room_id, texts in self.said.items() if room_id != message.room_id)
        return any(passage in texts.first and texts.first[passage][0] <= message.dated_at for texts in others)

    def edited_at(self, source: Source) -> datetime | None:
        """Return when the person last changed the message, None if they did not."""
        return self.in_room(source.room_id).edited.get(source.message_id)

    @property
    def messages(self) -> int:
        """The number of messages they wrote."""
        return sum(len(texts.arrivals) for texts in self.said.values())

    def and_also(self, more: "Person") -> "Person":
        """Return the person with what they said later."""
        rooms = {**self.said, **more.said}
        return replace(
            self,
            said={room_id: self.in_room(room_id).and_also(more.in_room(room_id)) for room_id in rooms},
            removed=(self.removed - more.said.keys()) | more.removed,
            traces=self.traces.and_also(more.traces),
            words=self.words.and_also(more.words),
        )

    @property
    def sought(self) -> Sought:
        """Return the search for rows that may tell of them."""
        return Sought(frozenset({self.user_id}), self.words.said)

    def owns(self, scope: str) -> bool:
        """Return True if all that is remembered in the scope is of the person."""
        kind, _, name = scope.partition(":")
        return scope == f"user:{self.user_id}" or (kind == "group" and name in self.removed)


async def is_removed_room(work: UnitOfWork, person: Person, room_id: str) -> bool:
    """Return True if the room is removed as a whole. Once another person has spoken there it stays; call this after
    reading what may be the person's, or under the room's lock."""
    where = {"room_id": room_id, "user_id": person.user_id}
    if room_id in person.removed and await work.maintenance.others_in(**where):
        person.removed.discard(room_id)
    return room_id in person.removed


async def gather(storage: Storage, *, tenant: str, user_id: str, same_words: bool = False) -> Person:
    """Read what the person said, and find out which parts others say too."""
    async with storage.reading(tenant) as work:
        rooms = await work.maintenance.rooms_of(user_id=user_id)
        texts_by_room, names = await _all_said(work, user_id, rooms)
        known, doubtful = await asyncio.to_thread(_known, texts_by_room.values())
        common: set[str] = set()
        for start in range(0, len(doubtful), _ASKED_AT_ONCE):
            batch = doubtful[start : start + _ASKED_AT_ONCE]
            common |= await work.maintenance.said_by_others(user_id=user_id, texts=batch)
    traces, words = await asyncio.to_thread(_traces, user_id, known, common, names)
    return Person(
        tenant=tenant,
        user_id=user_id,
        said=texts_by_room,
        removed={room.room_id for room in rooms if not room.others},
        traces=traces,
        words=words,
        same_words=same_words,
    )


async def _all_said(
    work: UnitOfWork, user_id: str, rooms: Sequence[RoomOfPerson]
) -> tuple[dict[str, PersonTexts], set[str]]:
    texts_by_room: dict[str, PersonTexts] = {}
    names: set[str] = set()
    for room in rooms:
        here = texts_by_room[room.room_id] = PersonTexts()
        its, after = {"room_id": room.room_id, "sender_id": user_id}, 0
        while page := await work.messages.page(**its, after=after, limit=_PAGE):
            await asyncio.to_thread(here.add_all, page)
            names |= {message.sender_name for message in page}
            after = page[-1].arrival
    return texts_by_room, names


def _known(texts_of_rooms: Iterable[PersonTexts]) -> tuple[set[str], list[str]]:
    """Return all passages, and those that are the person's unless somebody else wrote the same."""
    known = {passage for room in texts_of_rooms for passage in room.first}
    return known, sorted(passage for passage in known if weight(passage) < SURE)


def _traces(user_id: str, known: set[str], common: set[str], names: set[str]) -> tuple[Traces, Traces]:
    traces = Traces(user_id, known - common, names)
    return traces, Traces(user_id, known, names) if common else traces


class MessageEraser(Service):
    """Remove a person from messages. Each room is locked for a few hundred messages at a time."""

    def __init__(self, backends: Backends, *, vectors: VectorEraser, embedding: bool) -> None:
        super().__init__(backends)
        self._vectors = vectors
        self._embedding = embedding

    async def rewrite_others(self, person: Person, tally: ForgetTally) -> None:
        """Redact what others said, in every room that stays."""
        alike = 0
        async with self._storage.reading(person.tenant) as work:
            telling = await work.maintenance.rooms_telling(user_id=person.user_id, sought=person.sought)
        for room_id in sorted({*telling, *person.said}):
            async with self._storage.reading(person.tenant) as work:
                removed = await is_removed_room(work, person, room_id)
            if not removed:
                alike += await self._rewrite_room(person, room_id, tally)
        tally.same_words["messages of others"] = alike

    async def erase(self, person: Person, tally: ForgetTally) -> None:
        """Erase the person's own messages, with their sessions; and whole rooms."""
        for room_id, texts in person.said.items():
            tally.places["messages"] += len(texts.arrivals)
            if tally.dry:
                tally.rooms_removed += [room_id] if room_id in person.removed else []
            elif room_id not in person.removed:
                await self._erase_said(person, room_id, texts.arrivals, tally)
            else:
                await self._remove_room(person, room_id, tally)
        if not tally.dry:
            await self._remove_emptied(person, tally)

    async def _remove_emptied(self, person: Person, tally: ForgetTally) -> None:
        """Remove the rooms of which this or an earlier run erased the messages and could not delete the rest: the
        person is no longer found in them. The request that left them stays until they are gone."""
        tally.left.pop("rooms", None)
        vacant = await self.vacant_rooms(person.tenant)
        async with self._storage.reading(person.tenant) as work:
            emptied = await work.progress.noted(work=EMPTIED)
        for room in emptied:
            person.removed.add(room.room_id)
            await self._remove_room(person, room.room_id, tally)
        person.removed.update(vacant)
        await self.remove_vacant(person, vacant, tally)

    async def vacant_rooms(self, tenant: str) -> list[str]:
        """Return the vacant rooms. One in which somebody has written since stays, and is no longer noted."""
        async with self._storage.reading(tenant) as work:
            noted = await work.progress.noted(work=VACANT)
        return [room.room_id for room in noted if await self._is_vacant(tenant, room.room_id)]

    async def remove_vacant(self, person: Person, room_ids: Iterable[str], tally: ForgetTally) -> None:
        for room_id in room_ids:
            async with self._storage.writing(person.tenant) as work:
                room = await work.rooms.lock_known(room_id=room_id)
            its = {"collection": MESSAGES, "tenant": person.tenant, "scope": room_id}
            if room and not await self._vectors.remove_for_good(**its, numbers=range(1, room.next_arrival)):
                tally.leave("rooms", 1, EMPTIED_LEFT)
            elif await self._delete_rows(person.tenant, room_id):
                tally.rooms_removed.append(room_id)

    async def _is_vacant(self, tenant: str, room_id: str) -> bool:
        """Note whether the room, of which all messages were erased, is vacant."""
        async with self._storage.writing(tenant) as work:
            there = await work.rooms.lock_known(room_id=room_id) is not None
            vacant = there and not await work.messages.page(room_id=room_id, after=0, limit=1)
            await remove_requests(work, room_id, *(OF_EMPTIED if vacant else (VACANT,)))
            if vacant:
                await work.progress.note_room(room_id=room_id, work=VACANT, now=self._clock.now())
        return vacant

    async def _rewrite_room(self, person: Person, room_id: str, tally: ForgetTally) -> int:
        """Return how many messages merely have the same words, and keep them."""
        arrivals, alike, own = await self._telling(person, room_id)
        tally.places["messages of others"] += len(arrivals)
        for start in range(0, 0 if tally.dry else len(arrivals), _REWRITTEN_AT_ONCE):
            await self._rewrite(person, room_id, arrivals[start : start + _REWRITTEN_AT_ONCE], tally, own)
        return alike

    async def _telling(self, person: Person, room_id: str) -> tuple[list[int], int, _Own]:
        """Return the arrivals of the messages to rewrite, how many messages have the same words afterwards, and what
        the senders said on their own. Features count in rooms of the person: elsewhere they do not refer to them."""
        arrivals: list[int] = []
        own: dict[str, set[str]] = {}
        alike, after = 0, 0
        linked = await asyncio.to_thread(person.said[room_id].linkable) if room_id in person.said else None
        while True:
            async with self._storage.reading(person.tenant) as work:
                candidates = await work.maintenance.messages_telling(
                    room_id=room_id,
                    user_id=person.user_id,
                    sought=person.sought,
                    linked=linked,
                    after=after,
                    limit=_FOUND_AT_ONCE,
                )
            for start in range(0, len(candidates), _PAGE):
                async with self._storage.reading(person.tenant) as work:
                    entries = await work.messages.by_arrival(
                        room_id=room_id, arrivals=candidates[start : start + _PAGE]
                    )
                some, same = await asyncio.to_thread(_told_in, entries, person, own, linked=linked is not None)
                arrivals += some
                alike += same
            if len(candidates) < _FOUND_AT_ONCE:
                return arrivals, alike, own
            after = candidates[-1]

    async def _rewrite(
        self, person: Person, room_id: str, arrivals: Sequence[int], tally: ForgetTally, own: _Own
    ) -> None:
        tenant = person.tenant
        async with self._storage.writing(tenant) as work:
            if await work.rooms.lock_known(room_id=room_id) is None:
                return
            people = await work.rooms.participants(room_id=room_id)
            people.pop(person.user_id, None)
            known = Participants.of(people)
            entries_there = await work.messages.by_arrival(room_id=room_id, arrivals=arrivals)
            entries = await asyncio.to_thread(
                lambda: [self._entry(entry, person, known, own) for entry in entries_there]
            )
            await work.messages.replace(room_id=room_id, entries=entries)
            await self._owe_vectors(work, room_id, arrivals)
        await self._remove_vectors(person, room_id, arrivals, tally)

    def _entry(self, entry: Entry, person: Person, people: Participants, own: _Own) -> Entry:
        message = _without(entry.message, person, own, entry)
        features = features_without(entry.features, person.traces, gone=person.in_room(message.room_id).texts)
        if message.text != entry.message.text:
            message = replace(message, tokens=self._tokens.count([message.text])[0])
            read = analyse(message, people)
            features = replace(read, partners=features.partners, reply=read.reply or features.reply)
        return replace(entry, message=message, features=features)

    async def _erase_said(self, person: Person, room_id: str, arrivals: Sequence[int], tally: ForgetTally) -> None:
        """Erase the messages and replace their ids, which may name the person; what remains is that a message
        existed."""
        await self._forget_session(person, room_id, first=arrivals[0] if arrivals else 0, tally=tally)
        for start in range(0, len(arrivals), _ERASED_AT_ONCE):
            some = arrivals[start : start + _ERASED_AT_ONCE]
            async with self._storage.writing(person.tenant) as work:
                if await work.rooms.lock_known(room_id=room_id) is None:
                    return
                await work.messages.erase(room_id=room_id, arrivals=some, now=self._clock.now())
                names = {arrival: f"forgotten-{self._ids.new()}" for arrival in some}
                await work.maintenance.rename_messages(room_id=room_id, ids=names)
                await self._owe_vectors(work, room_id, some)
            await self._remove_vectors(person, room_id, some, tally)

    async def _forget_session(self, person: Person, room_id: str, *, first: int, tally: ForgetTally) -> None:
        """Forget the session. The empty erasure raises the room's revision, so that no cached state counts as
        current."""
        async with self._storage.writing(person.tenant) as work:
            if await work.rooms.lock_known(room_id=room_id) is None:
                return
            tally.places["sessions"] += await work.maintenance.forget_session(
                room_id=room_id, user_id=person.user_id, first=first
            )
            await work.messages.erase(room_id=room_id, arrivals=[], now=self._clock.now())

    async def _remove_room(self, person: Person, room_id: str, tally: ForgetTally) -> None:
        """Remove the room, in three steps: its messages are erased, their vectors are removed, their rows are deleted.
        As long as the rows are there, the outbox of the index removes what a kill left of their vectors."""
        erased: list[int] = []
        for _ in range(_ROUNDS):
            last = await self._erase_all(person, room_id, erased)
            if last is None:
                await self._rewrite_room(person, room_id, tally)
                await self._erase_said(person, room_id, person.in_room(room_id).arrivals, tally)
                async with self._storage.writing(person.tenant) as work:
                    await remove_requests(work, room_id, *OF_EMPTIED)
                return
            its = {"collection": MESSAGES, "tenant": person.tenant, "scope": room_id}
            if not await self._vectors.remove_for_good(**its, numbers=range(1, last + 1)):
                await self._erase_said(person, room_id, erased, tally)
                vacant = await self._is_vacant(person.tenant, room_id)
                tally.leave("rooms", 1, EMPTIED_LEFT if vacant else _WRITTEN_THERE)
                return
            if await self._delete_rows(person.tenant, room_id):
                tally.rooms_removed.append(room_id)
                return
        tally.leave("rooms", 1, _WRITTEN_THERE)

    async def _erase_all(self, person: Person, room_id: str, erased: list[int]) -> int | None:
        """Erase every message and add its arrival to `erased`. Return the last arrival, those of messages deleted long
        ago included; None, at whatever point, if another person has spoken meanwhile, and the room stays, or if the
        room is no longer there."""
        while True:
            async with self._storage.writing(person.tenant) as work:
                room = await work.rooms.lock_known(room_id=room_id)
                if room is None or not await is_removed_room(work, person, room_id):
                    return None
                page = [
                    one.arrival for one in await work.messages.page(room_id=room_id, after=0, limit=_ERASED_AT_ONCE)
                ]
                if not page:
                    return room.next_arrival - 1
                if not erased:
                    await work.progress.note_room(room_id=room_id, work=EMPTIED, now=self._clock.now())
                await work.messages.erase(room_id=room_id, arrivals=page, now=self._clock.now())
                await self._owe_vectors(work, room_id, page)
            erased += page

    async def _delete_rows(self, tenant: str, room_id: str) -> bool:
        """Delete the room with everything stored under its id. Return False, at whatever point, if something was said
        meanwhile."""
        left = 0
        while left >= 0:
            async with self._storage.writing(tenant) as work:
                if await work.rooms.lock_known(room_id=room_id) is None:
                    return True
                if await work.messages.page(room_id=room_id, after=0, limit=1):
                    return False
                left = await work.maintenance.remove_room(room_id=room_id, limit=_ERASED_AT_ONCE)
        return True

    async def _owe_vectors(self, work: UnitOfWork, room_id: str, arrivals: Sequence[int]) -> None:
        await work.progress.outbox.add(scope=room_id, numbers=arrivals, only_if_kept=not self._embedding)

    async def _remove_vectors(self, person: Person, room_id: str, arrivals: Sequence[int], tally: ForgetTally) -> None:
        if not await self._vectors.remove(collection=MESSAGES, tenant=person.tenant, scope=room_id, numbers=arrivals):
            tally.leave("vectors of messages", len(arrivals), VECTORS_LEFT)


def _told_in(
    entries: Sequence[Entry], person: Person, own: dict[str, set[str]], *, linked: bool
) -> tuple[list[int], int]:
    """Return the arrivals of the messages to rewrite, and how many have the same words afterwards. Add to `own` what
    their senders said on their own."""
    arrivals: list[int] = []
    alike = 0
    for entry_there in entries:
        message, entry = entry_there.message, entry_there if linked else None
        repeats = any(map(person.words.repeated, _texts(message)))
        if repeats and (first := _said_first(message, person)):
            own.setdefault(message.sender_id, set()).update(first)
        left = _without(message, person, own, entry)
        arrivals += [message.arrival] if left != message or (entry and _features_tell(entry, person)) else []
        alike += repeats and any(map(person.words.repeated, _texts(left)))
    return arrivals, alike


def _said_first(message: StoredMessage, person: Person) -> set[str]:
    """Return the passages of the person that the message contains before the person said them."""
    known = person.words.said.intersection(passages(message.text))
    return {passage for passage in known if not person.before(passage, message)}


def _without(message: StoredMessage, person: Person, own: _Own, entry: Entry | None) -> StoredMessage:
    """Return the message without the person. `entry`: if its features are known, what it quotes counts as answered
    too."""
    gone = person.in_room(message.room_id).texts
    without = without_person(
        message, person.traces, taken=_taken(message, person, own.get(message.sender_id, frozenset()), entry), gone=gone
    )
    if not person.same_words or message.room_id not in person.said:
        return without
    repeated = Taken(counts=lambda passage: person.in_room(message.room_id).before(passage, message), linked=True)
    return without_person(without, person.words, taken=repeated, gone=gone)


def _taken(message: StoredMessage, person: Person, own: AbstractSet[str], entry: Entry | None) -> Taken:
    """Return what the message has taken over. `own`: passages that its sender said before the person did."""
    texts = person.in_room(message.room_id)
    reply = entry.features.reply if entry else None
    mentioned = {*message.mentions, *(entry.features.mentions if entry else ()), reply.sender_id if reply else None}
    called = person.user_id in mentioned
    answered = texts.linked(message, [reply.message_id] if reply else [])
    return Taken(
        answered=[_not_own(text, own) for text in answered],
        counts=lambda passage: passage not in own and person.before(passage, message),
        linked=called or _echoes(message, person) or any(map(person.traces.names_them, _texts(message))),
        called=called,
        named=_is_named(message, person, entry),
    )


def _is_named(message: StoredMessage, person: Person, entry: Entry | None) -> bool:
    """Return True if the mentions or the reply link name the person; a bare word in the text, which is read as a
    mention too, does not."""
    named = {*message.mentions, *(entry.features.addressed if entry else ())}
    reply = entry.features.reply if entry else None
    theirs = person.in_room(message.room_id).texts
    return person.user_id in named or message.reply_to in theirs or bool(reply and reply.sender_id == person.user_id)


def _not_own(text: str, own: AbstractSet[str]) -> str:
    """Return the person's text without the passages that another person said first."""
    known = own & set(passages(text)) if own else frozenset()
    kept, at = [], 0
    for start, end in Traces("-", known).repeats(text) if known else ():
        kept.append(text[at:start])
        at = end
    return "\n".join([*kept, text[at:]])


def _echoes(message: StoredMessage, person: Person) -> bool:
    """Return True if an assistant said it in a room of the person, and neither the platform nor a turn tells whom it
    answers: it has no words of its own."""
    unbound = message.reply_to is None and message.turn_id is None
    return message.role is Role.ASSISTANT and unbound and message.room_id in person.said


def _texts(message: StoredMessage) -> list[str]:
    return [message.text, *texts_in(message.metadata)]


def _features_tell(entry: Entry, person: Person) -> bool:
    gone = person.in_room(entry.message.room_id).texts
    return features_without(entry.features, person.traces, gone=gone) != entry.features
