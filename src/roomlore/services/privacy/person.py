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
    ascending."""

    texts: dict[str, str] = field(default_factory=dict)
    edited: dict[str, datetime] = field(default_factory=dict)
    arrivals: list[int] = field(default_factory=list)
    turns: dict[str, list[str]] = field(default_factory=dict)

    def add(self, message: StoredMessage) -> None:
        self.texts[message.id] = message.text
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
        return Said(self.texts | more.texts, self.edited | more.edited, self.arrivals + more.arrivals, turns)


NOTHING_SAID = Said()


@dataclass(frozen=True, slots=True)
class Person:
    """`removed`: rooms in which nobody else spoke but assistants, which go as a whole."""

    tenant: str
    user_id: str
    said: Mapping[str, Said]
    removed: frozenset[str]
    traces: Traces

    def in_room(self, room_id: str) -> Said:
        return self.said.get(room_id, NOTHING_SAID)

    def said_in(self, source: Source) -> str | None:
        """What the person said in the message, None for another's; every message of a room that goes is theirs."""
        text = self.in_room(source.room_id).texts.get(source.message_id)
        return "" if text is None and source.room_id in self.removed else text

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
            removed=self.removed | more.removed,
            traces=self.traces.and_also(more.traces),
        )

    def owns(self, scope: str) -> bool:
        """Whether all that is remembered in the scope is of the person."""
        kind, _, name = scope.partition(":")
        return scope == f"user:{self.user_id}" or (kind == "group" and name in self.removed)


async def gather(storage: Storage, *, tenant: str, user_id: str) -> Person:
    """Reads what the person said, and finds out what of it others say too."""
    async with storage.reading() as work:
        rooms = await work.people.rooms_of(tenant=tenant, user_id=user_id)
        said, names = await _all_said(work, tenant, user_id, rooms)
        known = {one for room in said.values() for text in room.texts.values() for one in passages(text)}
        common = await _common(work, tenant, user_id, known)
    return Person(
        tenant=tenant,
        user_id=user_id,
        said=said,
        removed=frozenset(room.room_id for room in rooms if not room.others),
        traces=Traces(user_id, known - common, names),
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
