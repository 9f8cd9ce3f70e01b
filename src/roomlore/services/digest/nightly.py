"""Digests by a schedule, as durable work, sent to a webhook."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from roomlore.core.audience import RoomKind
from roomlore.core.digest.digest import Digest
from roomlore.core.errors import NotFound, Unavailable
from roomlore.ports.coordination import Webhook
from roomlore.ports.durable import DurableWork, Json, Steps, Ticks, Times, rooms_behind, work_name
from roomlore.ports.shared import Backends, Service
from roomlore.services.digest.digest_service import DigestService
from roomlore.storage.values import RoomBehind

DIGEST = "digest"
"""The work that sends a digest, the background job that enqueues it, and the watermark of a room up to which it was
sent."""
_MARK = "schedule:digest"
_FIRST = timedelta(days=1)
_LONGEST = timedelta(days=7)
"""How far back the first digest of a room goes, and later ones."""
EVERY_ROOM = "*"


LEAST_MESSAGES = 10
"""New messages from which a room's digest is sent: fewer are read sooner than a digest of them."""
NIGHTLY_TOKENS = 2000
"""The limit of a digest that is sent: two pages of text."""


class NightlyDigests(Service):
    """The scheduled digests of all tenants. `times`, `webhook`: None if nothing is sent. `digests`: the digests of a
    tenant. `rooms`: the ids of the rooms, or '*' for every room; if empty, rooms that are public."""

    def __init__(
        self,
        backends: Backends,
        *,
        durable: DurableWork,
        times: Times | None,
        webhook: Webhook | None,
        digests: Callable[[str], DigestService],
        rooms: frozenset[str],
    ) -> None:
        super().__init__(backends)
        self._durable = durable
        self._ticks = Ticks(storage=backends.storage, clock=backends.clock, times=times, mark=_MARK)
        self._webhook = webhook
        self._digests = digests
        self._wanted = rooms

    async def sweep(self) -> list[str]:
        """Enqueue the digests of the last scheduled time, unless that was done, and return the ids of the work."""
        due = await self._ticks.due()
        if due is None:
            return []
        enqueued = [await self._enqueue(room, due.tick) async for room in self._rooms()]
        await self._ticks.handled(due)
        return enqueued

    async def _rooms(self) -> AsyncIterator[RoomBehind]:
        async for room in rooms_behind(self._storage, DIGEST, LEAST_MESSAGES):
            if await self._is_wanted(room):
                yield room

    async def _is_wanted(self, room: RoomBehind) -> bool:
        if self._wanted:
            return bool(self._wanted & {room.room_id, EVERY_ROOM})
        async with self._storage.reading(room.tenant) as work:
            stored_room = await work.rooms.find(room_id=room.room_id)
        return stored_room is not None and stored_room.kind is RoomKind.PUBLIC

    async def _enqueue(self, room: RoomBehind, tick: int) -> str:
        own = hashlib.sha256(room.room_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]
        work_id = work_name(room.tenant, DIGEST, f"{tick:011d}-{own}")
        arguments = {"tenant": room.tenant, "room_id": room.room_id, "tick": tick, "work_id": work_id}
        await self._durable.start(
            DIGEST, work_id=work_id, partition=work_name(room.tenant, DIGEST, own), arguments=arguments
        )
        return work_id

    async def work(self, steps: Steps, arguments: Json) -> None:
        """Make the digest of a room and send it, as durable work. A digest is made once, and sent until it is accepted;
        a receiver drops repeats by their id."""
        tenant, room_id, tick = str(arguments["tenant"]), str(arguments["room_id"]), int(arguments["tick"])
        webhook = self._webhook
        if webhook is None:
            raise Unavailable("digest_webhook_missing")

        async def make() -> Json:
            return await self._made(tenant, room_id, tick)

        async def send() -> Json:
            body = json.dumps(made["body"], ensure_ascii=False, separators=(",", ":"))
            await webhook(body.encode("utf-8"), message_id=str(arguments["work_id"]))
            return {}

        made = await steps.once("digest", make)
        if made["body"]:
            await steps.once("send", send)
        await self._read_up_to(tenant, room_id, int(made["last"]))
        await steps.report(f"sent {made['messages']} messages of {room_id!r:.80}" if made["body"] else "nothing new")

    async def _made(self, tenant: str, room_id: str, tick: int) -> Json:
        """Return the body to send, empty if nothing was said, and the last message that it covers."""
        at = datetime.fromtimestamp(tick, UTC)
        async with self._storage.reading(tenant) as work:
            room = await work.rooms.find(room_id=room_id)
            mark = (await work.progress.marks(room_id=room_id, names=[DIGEST])).get(DIGEST, 0)
            new = await work.messages.page(room_id=room_id, after=mark, limit=1)
        if room is None or not new:
            return {"body": {}, "last": mark, "messages": 0}
        since = max(new[0].at, at - _LONGEST) if mark else at - _FIRST
        last = room.next_arrival - 1
        try:
            made = await self._digests(tenant).make(
                room_id, since=since, max_tokens=NIGHTLY_TOKENS, viewer=f"room:{room_id}", through=last
            )
        except NotFound:
            return {"body": {}, "last": mark, "messages": 0}
        return {"body": _body(tenant, at, made) if made.entries else {}, "last": last, "messages": made.messages}

    async def _read_up_to(self, tenant: str, room_id: str, arrival: int) -> None:
        async with self._storage.writing(tenant) as work:
            was = (await work.progress.marks(room_id=room_id, names=[DIGEST])).get(DIGEST, 0)
            if arrival > was:
                await work.progress.move_mark(
                    room_id=room_id, name=DIGEST, arrival=arrival, was=was, now=self._clock.now()
                )


def _body(tenant: str, at: datetime, made: Digest) -> Json:
    """Return what is sent. Text that UTF-8 cannot hold is replaced, since a store of work may refuse it."""
    text = json.dumps(_fields(tenant, at, made), ensure_ascii=False)
    body: dict[str, Any] = json.loads(text.encode("utf-8", "replace"))
    return body


def _fields(tenant: str, at: datetime, made: Digest) -> Json:
    return {
        "type": "digest",
        "tenant": tenant,
        "room_id": made.room_id,
        "made_for": at.isoformat(),
        "messages": made.messages,
        "left": made.left,
        "model": made.model,
        "degraded": made.degraded,
        "text": made.to_prompt(),
        "entries": [
            {
                "title": entry.title,
                "why": entry.why,
                "state": str(entry.state),
                "people": list(entry.people),
                "first_at": entry.first_at.isoformat(),
                "last_at": entry.last_at.isoformat(),
                "lines": [
                    {
                        "text": line.text,
                        "name": line.name,
                        "sent_at": line.sent_at.isoformat(),
                        "message_ids": list(line.cited),
                        "decides": line.decides,
                    }
                    for line in entry.lines
                ],
            }
            for entry in made.entries
        ],
    }
