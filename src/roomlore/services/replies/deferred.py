"""Messages of replies that wait in memory while the database is down, stored in order when it is back."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

from roomlore.core.errors import StorageUnavailable, describe
from roomlore.core.models import Message, StoredMessage
from roomlore.ports.coordination import Telemetry

log = logging.getLogger(__name__)

MAX_WAITING = 1_000
_ROOMS_AT_ONCE = 4
"""Rooms whose messages are stored at a time, so that these leave connections to other calls."""
_MOST_AT_ONCE = 100
"""What is stored of one room at a time, each a question or what answers it."""
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 5.0
_SETTLE_SECONDS = 2.0

Start = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


@dataclass(frozen=True, slots=True, eq=False)
class Deferred:
    """Messages that wait for the database. `asked`: the question that the agent answers, as it was given. `messages`:
    the question with a time, or what answers it."""

    asked: Message
    agent_id: str
    messages: Sequence[Message]

    @property
    def is_question(self) -> bool:
        return self.messages[0].id == self.asked.id


Write = Callable[[Sequence[Deferred]], Awaitable[None]]
"""Store what waits for one room, in order. It may be called again with what it has stored in part."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    deferred: Deferred
    shown: tuple[StoredMessage, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Queue:
    """Hold what waits for a room, the oldest first. `back`: set if the database answers. `storing`: the task that
    stores it."""

    waiting: deque[_Waiting]
    back: asyncio.Event
    storing: "asyncio.Task[None]"


class DeferredMessages:
    """The messages that wait for the database, of all tenants: at most 1,000 questions and answers. The oldest are
    dropped for new ones. They are lost if the process ends first. `start`: runs work in the background."""

    def __init__(self, *, start: Start, telemetry: Telemetry) -> None:
        self._start = start
        self._telemetry = telemetry
        self._rooms: dict[tuple[str, str], _Queue] = {}
        self._turns = asyncio.Semaphore(_ROOMS_AT_ONCE)
        self._last_arrival = 0

    def add(self, tenant: str, deferred: Deferred, write: Write) -> None:
        """Store the messages later, after what waits already for their room. Each has its time. `write`: the same for
        all that waits for a room."""
        if self._waiting() >= MAX_WAITING:
            self._drop_oldest()
        room = tenant, deferred.asked.room_id
        if room not in self._rooms:
            waiting, back = deque[_Waiting](), asyncio.Event()
            self._rooms[room] = _Queue(waiting, back, self._start(self._store(room, waiting, back, write)))
        self._rooms[room].waiting.append(_Waiting(deferred, tuple(map(self._shown, deferred.messages))))
        self._show_level()

    def of_room(self, tenant: str, room_id: str) -> list[StoredMessage]:
        """Return what waits for a room, the oldest first, as if it were stored. The arrivals are not those of the
        room."""
        queue = self._rooms.get((tenant, room_id))
        return [message for waiting in queue.waiting for message in waiting.shown] if queue else []

    async def settle(self, tenant: str, room_id: str) -> None:
        """Store what waits for a room at once, since the database answers. Wait for it, two seconds at most."""
        queue = self._rooms.get((tenant, room_id))
        if queue:
            queue.back.set()
            await asyncio.wait({queue.storing}, timeout=_SETTLE_SECONDS)

    def _shown(self, message: Message) -> StoredMessage:
        self._last_arrival += 1
        return StoredMessage(
            **{field.name: getattr(message, field.name) for field in fields(Message)}, arrival=self._last_arrival
        )

    def _drop_oldest(self) -> None:
        room, queue = min(self._rooms.items(), key=lambda room_queue: room_queue[1].waiting[0].shown[0].arrival)
        self._count("lost", queue.waiting.popleft())
        log.error("messages of a reply are lost: the database is down for too long", extra={"room": room[1]})
        if not queue.waiting:
            del self._rooms[room]
            queue.storing.cancel()

    async def _store(self, room: tuple[str, str], waiting: deque[_Waiting], back: asyncio.Event, write: Write) -> None:
        """Store what waits for a room until nothing is left. If cancelled, count the rest as lost."""
        try:
            await self._empty(room, waiting, back, write)
        except asyncio.CancelledError:
            if waiting:
                log.error(
                    "messages of replies are lost: roomlore was closed before they could be stored",
                    extra={"room": room[1], "waiting": len(waiting)},
                )
            while waiting:
                self._count("lost", waiting.popleft())
            raise
        finally:
            if room in self._rooms and self._rooms[room].waiting is waiting:
                del self._rooms[room]
            self._show_level()

    async def _empty(self, room: tuple[str, str], waiting: deque[_Waiting], back: asyncio.Event, write: Write) -> None:
        """Store many messages at a time: one by one, new ones could come faster than they are stored. Rooms do not wait
        for each other. If a batch is refused, its messages are stored one by one."""
        pause, most = _FIRST_PAUSE_SECONDS, _MOST_AT_ONCE
        while waiting:
            batch = list[_Waiting]()
            try:
                async with self._turns:
                    batch = list(islice(waiting, most))
                    await write([deferred.deferred for deferred in batch])
            except StorageUnavailable:
                back.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(back.wait(), pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                continue
            except Exception as error:  # noqa: BLE001 - a message that nobody foresaw holds up no other
                most = 1
                if len(batch) > 1:
                    continue
                log.error("messages of a reply could not be stored", extra={"room": room[1], "why": describe(error)})
                result = "refused"
            else:
                result = "stored"
            pause, most = _FIRST_PAUSE_SECONDS, min(2 * most, _MOST_AT_ONCE)
            for deferred in batch:
                if deferred in waiting:  # else it was dropped meanwhile, and is counted
                    waiting.remove(deferred)
                    self._count(result, deferred)
            self._show_level()

    def _waiting(self) -> int:
        return sum(len(queue.waiting) for queue in self._rooms.values())

    def _show_level(self) -> None:
        self._telemetry.level("roomlore_replies_waiting", self._waiting())

    def _count(self, result: str, waiting: _Waiting) -> None:
        self._telemetry.count("roomlore_replies_stored_later_total", len(waiting.shown), labels={"result": result})
