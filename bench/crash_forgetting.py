"""Forgetting under kills, beside somebody who speaks in the same rooms: `crash --what forgetting`.

In every round a person says something in rooms of their own and in one that is shared, and is forgotten. Ben writes
into all of these rooms at instants by chance from the moment that the forgetting begins: into the person's own rooms he
is the first to speak beside them. Each of his messages is acknowledged by itself. In the end all of them must be there,
once and word for word, and nothing of the people that were forgotten.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection

import roomlore
from bench.crash_checks import Known
from bench.crash_model import Request
from bench.crash_report import Life, phase
from bench.crash_stored import broken_files
from bench.crash_victim import Task, Victim
from bench.evolution_stored import unsound
from roomlore import Message, StoredMessage
from roomlore.services.indexing import index_state
from roomlore_testkit.embedding import HashEmbedder

FORGET = "forget"
BEN = "ben"
SHARED = "shared"
_OWN_ROOMS = 8
_EACH_ROUND = 3
"""The number of messages that Ben writes in a round, in each of his lanes: twice into the person's own room, once
into the shared one."""
_LONGEST_WAIT_SECONDS = 0.2
_PAGE = 500
_LEASE_SECONDS = 2.0
"""Vectors that a killed process had in hand are taken over soon."""
_WORDS = ("好的，我来", "on my way", "who has the keys?", "周五见")


@dataclass(frozen=True, slots=True)
class Lane:
    """The lanes in which things happen in order: `forget` speaks for the people and forgets them, the others are
    Ben's."""

    name: str


LANES = (Lane(FORGET), *(Lane(f"{BEN}-{place}") for place in range(_OWN_ROOMS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Everything that is checked. `troubles`: what is wrong with the database by itself."""

    messages: Sequence[StoredMessage]
    troubles: Sequence[str] = ()


def person(number: int) -> str:
    return f"person-{number}"


def own_room(number: int, place: int) -> str:
    return f"{person(number)}-{place}"


def theirs(number: int) -> list[Message]:
    """Return what the person of a round says."""
    rooms = [SHARED, *(own_room(number, place) for place in range(_OWN_ROOMS))]
    return [
        Message(id=f"{room}/{number}", room_id=room, sender_id=person(number), text=f"secret {number} of {room} 秘密")
        for room in rooms
    ]


def of_ben(lane: str, number: int) -> Message:
    """Return what Ben says under a number of a lane, and the room."""
    place = int(lane.removeprefix(f"{BEN}-"))
    of_round, turn = divmod(number, _EACH_ROUND)
    room = SHARED if turn == 1 else own_room(of_round, place)
    text = f"{lane}/{number}: {_WORDS[(number + place) % len(_WORDS)]}"
    return Message(id=f"{lane}/{number}", room_id=room, sender_id=BEN, text=text)


def live(pipe: Connection, task: Task) -> None:
    """Until 'end' comes on the pipe, or SIGKILL."""
    Forgetting(pipe, task).live()


class Forgetting(Victim):
    """It forgets one person after the other while Ben writes. A round begins when Ben has written all of the last."""

    rooms = tuple(lane.name for lane in LANES)
    most_pause_seconds = 0.02

    def __init__(self, pipe: Connection, task: Task) -> None:
        super().__init__(pipe, task)
        self._written = {name: first for name, first in task.first.items() if name != FORGET}
        self._forgetting = task.first[FORGET] - 1
        self._moved = asyncio.Condition()

    def opened(self) -> AbstractAsyncContextManager[roomlore.Lore]:
        index_state.LEASE_SECONDS = _LEASE_SECONDS
        return roomlore.open(self._task.url, embedder=HashEmbedder())

    def last(self, room: str) -> int | None:
        """Return where the last life ends: Ben with the round that is forgotten last."""
        if self._task.last is None:
            return None
        ben = max(last for lane, last in self._task.last.items() if lane != FORGET)
        rounds = max(self._task.last[FORGET], -(-ben // _EACH_ROUND))
        return rounds if room == FORGET else rounds * _EACH_ROUND

    async def ready(self, room: str, number: int) -> None:
        if number < self._task.first[room]:
            return
        async with self._moved:
            await self._moved.wait_for(lambda: self._is_due(room, number))

    def _is_due(self, room: str, number: int) -> bool:
        if room == FORGET:
            return min(self._written.values()) >= number * _EACH_ROUND
        return self._forgetting >= number // _EACH_ROUND

    async def hand_in(self, lore: roomlore.Lore, room: str, number: int) -> tuple[str, str] | None:
        if room == FORGET:
            await self._forget(lore, number)
            return None
        return await self._write(lore, room, number)

    async def _forget(self, lore: roomlore.Lore, number: int) -> None:
        if number >= self._task.first[FORGET]:
            await lore.messages.add(theirs(number))
            async with self._moved:
                self._forgetting = number
                self._moved.notify_all()
        await lore.privacy.forget(person(number))

    async def _write(self, lore: roomlore.Lore, lane: str, number: int) -> tuple[str, str]:
        """Return whether it was stored before, where it was acknowledged before."""
        await asyncio.sleep(self._chance.uniform(0, _LONGEST_WAIT_SECONDS))
        report = await lore.messages.add(of_ben(lane, number))
        lost = number < self._task.first[lane] and report.added
        async with self._moved:
            self._written[lane] = max(self._written[lane], number + 1)
            self._moved.notify_all()
        return f"{lane}/{number}", "was lost and stored once more" if lost else "is stored"


async def read(url: str) -> Stored:
    """From a fresh opening that does no work."""
    async with roomlore.open(url, embedder=HashEmbedder(), background=False) as lore:
        rooms = await all_rooms(lore)
        messages = [message for room in rooms async for message in lore.messages.export(room)]
        troubles = await unsound(lore)
    return Stored(messages=messages, troubles=[*troubles, *broken_files(url)])


async def all_rooms(lore: roomlore.Lore) -> list[str]:
    rooms: list[str] = []
    async with lore.storage.reading(lore.tenant) as work:
        while page := await work.rooms.page(after=rooms[-1] if rooms else None, limit=_PAGE):
            rooms += [room.room_id for room in page]
    return rooms


async def is_settled(url: str) -> bool:
    """Return whether every message has its vector."""
    async with roomlore.open(url, embedder=HashEmbedder(), background=False) as lore:
        return (await lore.index.status()).vectors == "whole"


def forgetting(life: Life, _: Sequence[Request], after: float) -> float | None:
    """Return the first instant from then on at which Ben began to write: somebody is being forgotten by then."""
    return min(
        (at for lane, begun in life.begun.items() if lane != FORGET for at in begun if at >= after), default=None
    )


def violations(known: Known, stored: Stored) -> list[str]:
    """A line for everything that must not be."""
    return [*known.wrong, *stored.troubles, *_lost(known, stored), *_remembered(known, stored)]


def _lost(known: Known, stored: Stored) -> Iterator[str]:
    of_bens = [message for message in stored.messages if message.sender_id == BEN]
    there = Counter((message.room_id, message.id, message.text) for message in of_bens)
    expected = [of_ben(lane, number) for lane, count in _bens(known).items() for number in range(count)]
    for message in expected:
        count = there.pop((message.room_id, message.id, message.text), 0)
        if count != 1:
            yield f"{message.id} of Ben's in {message.room_id} is stored {count} times"
    yield from (f"{lost[1]} in {lost[0]} is nothing that Ben said" for lost in there)


def _remembered(known: Known, stored: Stored) -> Iterator[str]:
    """Everybody was forgotten in the end."""
    yield from (
        f"{message.id} in {message.room_id} is left of {message.sender_id}"
        for message in stored.messages
        if message.sender_id != BEN or "secret" in message.text
    )


def _bens(known: Known) -> Mapping[str, int]:
    return {lane: count for lane, count in known.handed_in.items() if lane != FORGET}


def where(life: Life, _: Sequence[Request]) -> Iterator[str]:
    """Return what a life was doing when it was killed, which may be several things."""
    yield phase(life)
    under_way = {lane for lane, _ in life.under_way}
    if FORGET in under_way:
        yield "- forgetting"
    if under_way - {FORGET}:
        yield "- Ben writing"
    if FORGET in under_way and under_way - {FORGET}:
        yield "- both"


def report(lives: Sequence[Life], known: Known, stored: Stored) -> None:
    """Return what was done."""
    forgotten = sum(lane == FORGET for lane, _ in known.acknowledged)
    bens = len(known.acknowledged) - forgotten
    lost = sum("of Ben's" in line for line in _lost(known, stored))
    begun = sum(len(life.begun[FORGET]) for life in lives if life.killed)
    print(
        f"people forgotten: {forgotten:,}, in rooms of their own and one that all share; begun before kills: {begun:,}"
    )
    print(f"messages of Ben's acknowledged: {bens:,}, each while somebody was forgotten; lost: {lost}")
    print(f"acknowledged ones handed in once more: {sum(life.again for life in lives):,}")
