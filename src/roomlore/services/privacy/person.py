"""A person as they stand in what is stored: where they spoke, and what they said."""

from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from roomlore.core.memory.models import Source
from roomlore.core.models import StoredMessage
from roomlore.core.privacy.traces import SURE, Traces, passages, weight
from roomlore.ports.privacy import RoomOfPerson
from roomlore.ports.storage import Storage, UnitOfWork

_PAGE = 500
_ASKED_AT_ONCE = 50_000


@dataclass(slots=True)
class Said:
    """What the person said in one room, by message id; `edited`: when what they changed was changed; `arrivals`:
    ascending; `first`: when, and at which arrival, each passage was first said."""

    texts: dict[str, str] = field(default_factory=dict)
    edited: dict[str, datetime] = field(default_factory=dict)
    arrivals: list[int] = field(default_factory=list)
    turns: dict[str, list[str]] = field(default_factory=dict)
    first: dict[str, tuple[datetime, int]] = field(default_factory=dict)

    def add(self, message: StoredMessage) -> None:
        self.texts[message.id] = message.text
        for passage in passages(message.text):
            at = (message.at, message.arrival)
            self.first[passage] = min(at, self.first.get(passage, at))
        self.arrivals.append(message.arrival)
        if message.edited_at is not None:
            self.edited[message.id] = message.edited_at
        if message.turn_id is not None:
            self.turns.setdefault(message.turn_id, []).append(message.text)

    def linked(self, message: StoredMessage, answered: Iterable[str | None] = ()) -> list[str]:
        """What of it the platform, a turn or a quotation links a message of somebody else to."""
        named = dict.fromkeys((message.reply_to, message.root_id, *answered))
        texts = [self.texts[one] for one in named if one is not None and one in self.texts]
        return texts + (self.turns.get(message.turn_id, []) if message.turn_id is not None else [])

    def within(self, first: int, last: int) -> bool:
        """Whether any of it arrived between the two."""
        return bisect_left(self.arrivals, first) < bisect_right(self.arrivals, last)

    def and_also(self, more: "Said") -> "Said":
        """With what was said later."""
        turns = {turn: self.turns.get(turn, []) + more.turns.get(turn, []) for turn in {**self.turns, **more.turns}}
        return Said(
            self.texts | more.texts, self.edited | more.edited, self.arrivals + more.arrivals, turns,
            more.first | self.first,
        )  # fmt: skip

    def before(self, passage: str, message: StoredMessage) -> bool:
        """Whether the person had said the passage here before this message."""
        return passage in self.first and self.first[passage] < (message.at, message.arrival)


NOTHING_SAID = Said()


@dataclass(frozen=True, slots=True)
class Person:
    """`removed`: rooms in which nobody else spoke but assistants, which go as a whole; `goes` takes those out in which
    somebody else speaks meanwhile. `words`: every passage of the person's, those that others say by themselves too.
    `same_words`: whether the same words alone are taken out of what others said, in rooms that they shared."""

    tenant: str
    user_id: str
    said: Mapping[str, Said]
    removed: set[str]
    traces: Traces
    words: Traces
    same_words: bool = False

    def in_room(self, room_id: str) -> Said:
        return self.said.get(room_id, NOTHING_SAID)

    def said_in(self, source: Source) -> str | None:
        """What the person said in the message, None for another's; every message of a room that goes is theirs."""
        text = self.in_room(source.room_id).texts.get(source.message_id)
        return "" if text is None and source.room_id in self.removed else text

    def before(self, passage: str, message: StoredMessage) -> bool:
        """Whether the person had said the passage anywhere before this message."""
        if self.in_room(message.room_id).before(passage, message):
            return True
        others = (said for room_id, said in self.said.items() if room_id != message.room_id)
        return any(passage in said.first and said.first[passage][0] <= message.at for said in others)

    def edited_at(self, source: Source) -> datetime | None:
        """When the person last changed the message, None where they did not."""
        return self.in_room(source.room_id).edited.get(source.message_id)

    @property
    def messages(self) -> int:
        """How many they wrote."""
        return sum(len(said.arrivals) for said in self.said.values())

    def and_also(self, more: "Person") -> "Person":
        """With what they said later."""
        rooms = {**self.said, **more.said}
        return replace(
            self,
            said={room_id: self.in_room(room_id).and_also(more.in_room(room_id)) for room_id in rooms},
            removed=(self.removed - more.said.keys()) | more.removed,
            traces=self.traces.and_also(more.traces),
            words=self.words.and_also(more.words),
        )

    def owns(self, scope: str) -> bool:
        """Whether all that is remembered in the scope is of the person."""
        kind, _, name = scope.partition(":")
        return scope == f"user:{self.user_id}" or (kind == "group" and name in self.removed)


async def goes(work: UnitOfWork, person: Person, room_id: str) -> bool:
    """Whether the room goes as a whole. From the moment that somebody else has spoken there it stays; ask after what
    may be theirs is read, or under the room's lock."""
    asked = {"tenant": person.tenant, "room_id": room_id, "user_id": person.user_id}
    if room_id in person.removed and await work.people.others_in(**asked):
        person.removed.discard(room_id)
    return room_id in person.removed


async def gather(storage: Storage, *, tenant: str, user_id: str, same_words: bool = False) -> Person:
    """Reads what the person said, and finds out what of it others say too."""
    async with storage.reading() as work:
        rooms = await work.people.rooms_of(tenant=tenant, user_id=user_id)
        said, names = await _all_said(work, tenant, user_id, rooms)
        known = {passage for room in said.values() for passage in room.first}
        common = await _common(work, tenant, user_id, known)
    traces = Traces(user_id, known - common, names)
    return Person(
        tenant=tenant,
        user_id=user_id,
        said=said,
        removed={room.room_id for room in rooms if not room.others},
        traces=traces,
        words=Traces(user_id, known, names) if common else traces,
        same_words=same_words,
    )


async def _all_said(
    work: UnitOfWork, tenant: str, user_id: str, rooms: Sequence[RoomOfPerson]
) -> tuple[dict[str, Said], set[str]]:
    said: dict[str, Said] = {}
    names: set[str] = set()
    for room in rooms:
        here = said[room.room_id] = Said()
        async for message in messages_of(work, tenant, room.room_id, sender_id=user_id):
            here.add(message)
            names.add(message.sender_name)
    return said, names


async def messages_of(
    work: UnitOfWork, tenant: str, room_id: str, *, sender_id: str | None = None
) -> AsyncIterator[StoredMessage]:
    """The messages of a room, or of one sender there, in order of arrival."""
    after = 0
    while True:
        page = await work.messages.page(tenant=tenant, room_id=room_id, after=after, limit=_PAGE, sender_id=sender_id)
        for message in page:
            yield message
        if len(page) < _PAGE:
            return
        after = page[-1].arrival


async def _common(work: UnitOfWork, tenant: str, user_id: str, known: Iterable[str]) -> set[str]:
    doubtful = sorted(one for one in known if weight(one) < SURE)
    common: set[str] = set()
    for start in range(0, len(doubtful), _ASKED_AT_ONCE):
        asked = doubtful[start : start + _ASKED_AT_ONCE]
        common |= await work.people.said_by_others(tenant=tenant, user_id=user_id, texts=asked)
    return common
