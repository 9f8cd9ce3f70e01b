"""What was said in rooms, without a person: what others took over from them, and then their own messages."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from roomlore.core.analysis import Participants, analyse
from roomlore.core.models import Entry, Role, StoredMessage
from roomlore.core.plain import texts_in
from roomlore.core.privacy.messages import Taken, features_without, without_person
from roomlore.core.privacy.traces import Traces, passages
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.ports.vectors import MESSAGES
from roomlore.services.privacy.person import Person, goes, messages_of
from roomlore.services.privacy.tally import Tally
from roomlore.services.privacy.vectors import VectorsGone

_PAGE = 500
_REWRITTEN_AT_ONCE = 50
_ERASED_AT_ONCE = 200
_Own = Mapping[str, AbstractSet[str]]
"""By sender, the passages of the person's that the sender said before the person did."""
_VECTORS_LEFT = "Vectors of messages could not be removed; the index removes them when their store answers."


class MessagesWithout:
    """Each room is locked for a few hundred messages at a time."""

    def __init__(
        self, *, storage: Storage, vectors: VectorsGone, tokens: TokenCounter, clock: Clock, ids: Ids, embedding: bool
    ) -> None:
        self._storage = storage
        self._vectors = vectors
        self._tokens = tokens
        self._clock = clock
        self._ids = ids
        self._embedding = embedding

    async def rewrite_others(self, person: Person, tally: Tally) -> None:
        """What others said, in every room that stays."""
        alike = 0
        for room_id in await self.rooms(person.tenant):
            async with self._storage.reading() as work:
                removed = await goes(work, person, room_id)
            if not removed:
                alike += await self._rewrite_room(person, room_id, tally)
        tally.same_words["messages of others"] = alike

    async def erase(self, person: Person, tally: Tally) -> None:
        """The person's own messages, with their sessions; and whole rooms."""
        for room_id, said in person.said.items():
            tally.places["messages"] += len(said.arrivals)
            if tally.dry:
                tally.rooms_removed += [room_id] if room_id in person.removed else []
            elif room_id not in person.removed:
                await self._erase_said(person, room_id, said.arrivals, tally)
            elif await self._clear_vectors(person, room_id, tally):
                await self._remove_room(person, room_id, tally)

    async def rooms(self, tenant: str) -> list[str]:
        """All there are."""
        rooms: list[str] = []
        async with self._storage.reading() as work:
            while page := await work.rooms.page(tenant=tenant, after=rooms[-1] if rooms else None, limit=_PAGE):
                rooms += [room.room_id for room in page]
        return rooms

    async def _rewrite_room(self, person: Person, room_id: str, tally: Tally) -> int:
        """Return how many messages merely have the same words, and keep them."""
        told, alike, own = await self._telling(person, room_id)
        tally.places["messages of others"] += len(told)
        for start in range(0, 0 if tally.dry else len(told), _REWRITTEN_AT_ONCE):
            await self._rewrite(person, room_id, told[start : start + _REWRITTEN_AT_ONCE], tally, own)
        return alike

    async def _telling(self, person: Person, room_id: str) -> tuple[list[int], int, _Own]:
        """Return the arrivals of what has to be rewritten, how many messages have the same words afterwards, and what
        the senders said by themselves."""
        told: list[int] = []
        own: dict[str, set[str]] = {}
        alike, after = 0, 0
        while True:
            async with self._storage.reading() as work:
                page = await work.messages.page(tenant=person.tenant, room_id=room_id, after=after, limit=_PAGE)
                read = await self._read(work, person, room_id, page)
            for message, entry in read:
                repeats = any(map(person.words.repeated, _texts(message)))
                if repeats and (first := _said_first(message, person)):
                    own.setdefault(message.sender_id, set()).update(first)
                left = _without(message, person, own, entry)
                told += [message.arrival] if left != message or (entry and _features_tell(entry, person)) else []
                alike += repeats and any(map(person.words.repeated, _texts(left)))
            if len(page) < _PAGE:
                return told, alike, own
            after = page[-1].arrival

    async def _read(
        self, work: UnitOfWork, person: Person, room_id: str, page: Sequence[StoredMessage]
    ) -> list[tuple[StoredMessage, Entry | None]]:
        """Others' messages; with their features where the person has spoken, as elsewhere these do not tell of them."""
        others = [message for message in page if message.sender_id != person.user_id]
        if room_id not in person.said:
            return [(message, None) for message in others]
        entries = await work.messages.by_arrival(
            tenant=person.tenant, room_id=room_id, arrivals=[message.arrival for message in others]
        )
        return [(entry.message, entry) for entry in entries]

    async def _rewrite(self, person: Person, room_id: str, arrivals: Sequence[int], tally: Tally, own: _Own) -> None:
        tenant = person.tenant
        async with self._storage.writing() as work:
            await work.rooms.lock(tenant=tenant, room_id=room_id, now=self._clock.now())
            people = await work.rooms.participants(tenant=tenant, room_id=room_id)
            people.pop(person.user_id, None)
            known = Participants.of(people)
            found = await work.messages.by_arrival(tenant=tenant, room_id=room_id, arrivals=arrivals)
            entries = [self._entry(entry, person, known, own) for entry in found]
            await work.writer.replace(tenant=tenant, room_id=room_id, entries=entries)
            await self._owe_vectors(work, tenant, room_id, arrivals)
        await self._remove_vectors(person, room_id, arrivals, tally)

    def _entry(self, entry: Entry, person: Person, people: Participants, own: _Own) -> Entry:
        message = _without(entry.message, person, own, entry)
        features = features_without(entry.features, person.traces, gone=person.in_room(message.room_id).texts)
        if message.text != entry.message.text:
            message = replace(message, tokens=self._tokens.count([message.text])[0])
            read = analyse(message, people)
            features = replace(read, partners=features.partners, reply=read.reply or features.reply)
        return replace(entry, message=message, features=features)

    async def _erase_said(self, person: Person, room_id: str, arrivals: Sequence[int], tally: Tally) -> None:
        """With their ids, which may name the person; what remains is that somebody said something."""
        await self._forget_session(person, room_id, first=arrivals[0] if arrivals else 0, tally=tally)
        for start in range(0, len(arrivals), _ERASED_AT_ONCE):
            some = arrivals[start : start + _ERASED_AT_ONCE]
            here = {"tenant": person.tenant, "room_id": room_id}
            async with self._storage.writing() as work:
                await work.rooms.lock(**here, now=self._clock.now())
                await work.writer.erase(**here, arrivals=some, now=self._clock.now())
                names = {arrival: f"forgotten-{self._ids.new()}" for arrival in some}
                await work.people.rename_messages(**here, ids=names)
                await self._owe_vectors(work, person.tenant, room_id, some)
            await self._remove_vectors(person, room_id, some, tally)

    async def _forget_session(self, person: Person, room_id: str, *, first: int, tally: Tally) -> None:
        """The empty erasure raises the room's revision, so that no cache is taken for current."""
        here = {"tenant": person.tenant, "room_id": room_id}
        async with self._storage.writing() as work:
            await work.rooms.lock(**here, now=self._clock.now())
            tally.places["sessions"] += await work.people.forget_session(**here, user_id=person.user_id, first=first)
            await work.writer.erase(**here, arrivals=[], now=self._clock.now())

    async def _remove_room(self, person: Person, room_id: str, tally: Tally) -> None:
        """Look before each part, under the room's lock, whether somebody else has spoken meanwhile: then it stays. What
        goes is erased first, so that the people and the keywords of what stays are counted right."""
        here = {"tenant": person.tenant, "room_id": room_id}
        left = 0
        while left >= 0:
            async with self._storage.writing() as work:
                await work.rooms.lock(**here, now=self._clock.now())
                if not await goes(work, person, room_id):
                    break
                first = await work.messages.page(**here, after=0, limit=_ERASED_AT_ONCE)
                await work.writer.erase(**here, arrivals=[one.arrival for one in first], now=self._clock.now())
                left = await work.people.remove_room(**here, limit=_ERASED_AT_ONCE)
        else:
            tally.rooms_removed.append(room_id)
            return
        await self._keep_room(person, room_id, tally)

    async def _keep_room(self, person: Person, room_id: str, tally: Tally) -> None:
        """Do what is done in a room of several people. Its vectors are gone already, so all that is left owes one."""
        async with self._storage.writing() as work:
            await work.rooms.lock(tenant=person.tenant, room_id=room_id, now=self._clock.now())
            arrivals = [one.arrival async for one in messages_of(work, person.tenant, room_id)]
            await self._owe_vectors(work, person.tenant, room_id, arrivals)
        await self._rewrite_room(person, room_id, tally)
        await self._erase_said(person, room_id, person.in_room(room_id).arrivals, tally)

    async def _clear_vectors(self, person: Person, room_id: str, tally: Tally) -> bool:
        """Whether none is left, of messages deleted long ago either. Else the room is emptied, and stays until its
        vectors are gone."""
        async with self._storage.reading() as work:
            room = await work.rooms.find(tenant=person.tenant, room_id=room_id)
            arrivals = [one.arrival async for one in messages_of(work, person.tenant, room_id)]
            if not await goes(work, person, room_id):
                arrivals = person.in_room(room_id).arrivals
        every = range(1, room.next_arrival if room else 1)
        if await self._vectors.remove(collection=MESSAGES, tenant=person.tenant, scope=room_id, numbers=every):
            return True
        await self._erase_said(person, room_id, arrivals, tally)
        tally.leave("rooms", 1, "Emptied rooms stay until their vectors could be removed; forget again then.")
        return False

    async def _owe_vectors(self, work: UnitOfWork, tenant: str, room_id: str, arrivals: Sequence[int]) -> None:
        await work.outbox.add(tenant=tenant, scope=room_id, numbers=arrivals, only_if_kept=not self._embedding)

    async def _remove_vectors(self, person: Person, room_id: str, arrivals: Sequence[int], tally: Tally) -> None:
        if not await self._vectors.remove(collection=MESSAGES, tenant=person.tenant, scope=room_id, numbers=arrivals):
            tally.leave("vectors of messages", len(arrivals), _VECTORS_LEFT)


def _said_first(message: StoredMessage, person: Person) -> set[str]:
    """Return the passages of the person's that the message has before the person said them."""
    known = person.words.said.intersection(passages(message.text))
    return {passage for passage in known if not person.before(passage, message)}


def _without(message: StoredMessage, person: Person, own: _Own, entry: Entry | None) -> StoredMessage:
    """Return the message without the person. `entry`: where its features are known, what it quotes counts as answered
    too."""
    gone = person.in_room(message.room_id).texts
    without = without_person(
        message, person.traces, taken=_taken(message, person, own.get(message.sender_id, frozenset()), entry), gone=gone
    )
    if not person.same_words or message.room_id not in person.said:
        return without
    repeated = Taken(counts=lambda one: person.in_room(message.room_id).before(one, message), linked=True)
    return without_person(without, person.words, taken=repeated, gone=gone)


def _taken(message: StoredMessage, person: Person, own: AbstractSet[str], entry: Entry | None) -> Taken:
    """Return what the message has taken over. `own`: passages that its sender said before the person did."""
    said = person.in_room(message.room_id)
    reply = entry.features.reply if entry else None
    mentioned = {*message.mentions, *(entry.features.mentions if entry else ()), reply.sender_id if reply else None}
    called = person.user_id in mentioned
    answered = said.linked(message, [reply.message_id] if reply else [])
    return Taken(
        answered=[_not_own(text, own) for text in answered],
        counts=lambda passage: passage not in own and person.before(passage, message),
        linked=called or _echoes(message, person) or any(map(person.traces.names_them, _texts(message))),
        called=called,
        named=_is_named(message, person, entry),
    )


def _is_named(message: StoredMessage, person: Person, entry: Entry | None) -> bool:
    """Return whether the mentions or the reply link name the person; a bare word in the text, which is read as a
    mention too, does not."""
    named = {*message.mentions, *(entry.features.addressed if entry else ())}
    reply = entry.features.reply if entry else None
    theirs = person.in_room(message.room_id).texts
    return person.user_id in named or message.reply_to in theirs or bool(reply and reply.sender_id == person.user_id)


def _not_own(text: str, own: AbstractSet[str]) -> str:
    """Return the text of the person's without the passages that somebody else said first."""
    known = own & set(passages(text)) if own else frozenset()
    kept, at = [], 0
    for start, end in Traces("-", known).repeats(text) if known else ():
        kept.append(text[at:start])
        at = end
    return "\n".join([*kept, text[at:]])


def _echoes(message: StoredMessage, person: Person) -> bool:
    """Whether an assistant said it in a room of the person's, and neither the platform nor a turn tells whom it
    answers: it has no words of its own."""
    unbound = message.reply_to is None and message.turn_id is None
    return message.role is Role.ASSISTANT and unbound and message.room_id in person.said


def _texts(message: StoredMessage) -> list[str]:
    return [message.text, *texts_in(message.metadata)]


def _features_tell(entry: Entry, person: Person) -> bool:
    gone = person.in_room(entry.message.room_id).texts
    return features_without(entry.features, person.traces, gone=gone) != entry.features
