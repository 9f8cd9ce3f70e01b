"""Messages of replies that wait while the database is down: kept in memory, and stored in order when it is back."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, fields
from typing import Any

from roomlore.core.errors import RoomloreError, StorageUnavailable, describe
from roomlore.core.models import Message, StoredMessage
from roomlore.ports.coordination import Telemetry

log = logging.getLogger(__name__)

MAX_WAITING = 1_000
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 5.0

Write = Callable[[Sequence[Message]], Awaitable[None]]
Start = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


@dataclass(frozen=True, slots=True)
class _Waiting:
    tenant: str
    messages: tuple[Message, ...]
    shown: tuple[StoredMessage, ...]
    write: Write

    @property
    def room(self) -> tuple[str, str]:
        return self.tenant, self.messages[0].room_id


class DeferredMessages:
    """The messages that wait for the database, of all tenants, at most 1,000 batches: the oldest are dropped for new
    ones. They are lost if the process ends first. `start`: runs work in the background."""

    def __init__(self, *, start: Start, telemetry: Telemetry) -> None:
        self._start = start
        self._telemetry = telemetry
        self._waiting: deque[_Waiting] = deque()
        self._storing: asyncio.Task[None] | None = None
        self._count_of_all = 0

    def add(self, tenant: str, messages: Sequence[Message], write: Write) -> None:
        """Store the messages later, in order, after what waits already. Each has its time."""
        if len(self._waiting) >= MAX_WAITING:
            lost = self._waiting.popleft()
            self._count("lost", lost)
            log.error("messages of a reply are lost: the database is down for too long", extra={"room": lost.room[1]})
        self._waiting.append(_Waiting(tenant, tuple(messages), tuple(map(self.shown, messages)), write))
        if self._storing is None or self._storing.done():
            self._storing = self._start(self._store())

    def shown(self, message: Message) -> StoredMessage:
        """Return the message as one that was stored after all that waits. Its arrival is not one of its room."""
        self._count_of_all += 1
        return StoredMessage(
            **{one.name: getattr(message, one.name) for one in fields(Message)}, arrival=self._count_of_all
        )

    def of_room(self, tenant: str, room_id: str) -> list[StoredMessage]:
        """Return what waits for a room, the oldest first."""
        return [message for one in self._waiting if one.room == (tenant, room_id) for message in one.shown]

    async def _store(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while self._waiting:
            first = self._waiting[0]
            try:
                await first.write(first.messages)
            except StorageUnavailable:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                continue
            except RoomloreError as error:
                log.error(
                    "messages of a reply could not be stored", extra={"room": first.room[1], "why": describe(error)}
                )
                self._count("refused", first)
            else:
                self._count("stored", first)
            pause = _FIRST_PAUSE_SECONDS
            if self._waiting and self._waiting[0] is first:
                self._waiting.popleft()

    def _count(self, result: str, one: _Waiting) -> None:
        labels = {"result": result}
        self._telemetry.count("roomlore_replies_stored_later_total", len(one.messages), labels=labels)
