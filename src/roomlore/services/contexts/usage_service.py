"""Usage records: written in the background, listed, exported for training, summed up for each arm, and expired."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from roomlore.core.errors import InvalidInput, describe
from roomlore.core.experiments import UsageReport, UsageSelection, arm_report, training_row
from roomlore.core.models import ContextUsageRecord
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.storage import Storage, UnitOfWork

log = logging.getLogger(__name__)

_QUEUE = 2_000
_BATCH = 100
_GATHER_SECONDS = 0.05
"""A record waits this long for others, as a transaction costs more than several records."""
_SETTLE_SECONDS = 2.0
_PAGE = 200
_EXPIRED_AT_ONCE = 500
MAX_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class _Note:
    tenant: str
    record: ContextUsageRecord


class UsageRecorder:
    """Write usage records in the background: `put` never waits and never fails, and drops what it cannot keep."""

    def __init__(self, *, storage: Storage, telemetry: Telemetry) -> None:
        self._storage = storage
        self._telemetry = telemetry
        self._queue: asyncio.Queue[_Note] = asyncio.Queue(_QUEUE)
        self._writer: asyncio.Task[None] | None = None
        self._awaited = asyncio.Event()

    def put(self, tenant: str, record: ContextUsageRecord) -> None:
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_all(), name="roomlore-usage")
        try:
            self._queue.put_nowait(_Note(tenant, record))
        except asyncio.QueueFull:
            self._lose(1, "the queue is full")

    async def settle(self) -> None:
        """Wait for a moment until the queued records are written."""
        self._awaited.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._queue.join(), _SETTLE_SECONDS)

    async def close(self) -> None:
        """Write the queued records, as far as the database answers, and stop."""
        await self.settle()
        if self._writer is not None:
            self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer

    async def _write_all(self) -> None:
        while True:
            notes = [await self._queue.get()]
            if self._queue.qsize() < _BATCH:
                await self._gather()
            while len(notes) < _BATCH and not self._queue.empty():
                notes.append(self._queue.get_nowait())
            await self._write(notes)
            for _ in notes:
                self._queue.task_done()

    async def _gather(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GATHER_SECONDS):
                await self._awaited.wait()
        self._awaited.clear()

    async def _write(self, notes: list[_Note]) -> None:
        by_tenant: dict[str, list[ContextUsageRecord]] = {}
        for note in notes:
            by_tenant.setdefault(note.tenant, []).append(note.record)
        try:
            async with self._storage.writing() as work:
                for tenant, records in by_tenant.items():
                    await work.usage.record(tenant=tenant, records=await _of_messages(work, tenant, records))
        except Exception as error:  # noqa: BLE001 - a worker loop: whatever is wrong with one batch, the next is tried
            self._telemetry.unforeseen(error, attributes={"job": "usage records"})
            self._lose(len(notes), describe(error))

    def _lose(self, records: int, why: str) -> None:
        self._telemetry.count("roomlore_usage_records_lost_total", records)
        log.warning("usage records lost", extra={"records": records, "why": why})


async def _of_messages(
    work: UnitOfWork, tenant: str, records: Sequence[ContextUsageRecord]
) -> list[ContextUsageRecord]:
    """Return the records whose message is still there: its sender may have been forgotten since."""
    by_room: dict[str, list[str]] = {}
    for record in records:
        by_room.setdefault(record.room_id, []).append(record.trigger_message_id)
    there = {
        (room_id, message_id)
        for room_id, ids in by_room.items()
        for message_id, stamp in (
            await work.messages.fingerprints(tenant=tenant, room_id=room_id, message_ids=ids)
        ).items()
        if stamp
    }
    return [record for record in records if (record.room_id, record.trigger_message_id) in there]


class UsageService:
    """The usage records of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, clock: Clock, recorder: UsageRecorder) -> None:
        self._tenant = tenant
        self._storage = storage
        self._clock = clock
        self._recorder = recorder

    async def page(
        self,
        *,
        room_id: str | None = None,
        arm: str | None = None,
        judged: bool = False,
        days: float | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[ContextUsageRecord]:
        """Return usage records, the oldest first. `judged`: only those with a feedback score. `days`: only those of the
        last days. `after`: the `context_id` of the last record of the page before."""
        await self._recorder.settle()
        return await self._page(self._selection(room_id, arm, judged=judged, days=days), after, limit)

    async def export(
        self,
        *,
        room_id: str | None = None,
        arm: str | None = None,
        judged: bool = False,
        days: float | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield usage records for training: each with its message and the messages chosen as they are now, their
        features and scores, the model's answer and the feedback. Leave out those of messages that were deleted, or
        whose senders were forgotten. The arguments are those of `page`."""
        selection, after = self._selection(room_id, arm, judged=judged, days=days), None
        await self._recorder.settle()
        while page := await self._page(selection, after, _PAGE):
            for record in page:
                if row := await self._training_row(record):
                    yield row
            after = page[-1].context_id

    async def report(self, *, days: float = 30) -> UsageReport:
        """Return the figures of each arm over the last days; without an experiment those of all contexts."""
        await self._recorder.settle()
        until = self._clock.now()
        since = until - _span(days)
        async with self._storage.reading() as work:
            sums = await work.usage.sums(tenant=self._tenant, since=since)
        return UsageReport(since=since, until=until, arms=tuple(map(arm_report, sums)))

    def _selection(self, room_id: str | None, arm: str | None, *, judged: bool, days: float | None) -> UsageSelection:
        since = None if days is None else self._clock.now() - _span(days)
        return UsageSelection(room_id=room_id, arm=arm, judged=judged, since=since)

    async def _page(self, selection: UsageSelection, after: str | None, limit: int) -> list[ContextUsageRecord]:
        async with self._storage.reading() as work:
            return await work.usage.page(tenant=self._tenant, selection=selection, after=after, limit=limit)

    async def _training_row(self, record: ContextUsageRecord) -> dict[str, Any] | None:
        ids = [record.trigger_message_id, *record.context_message_ids]
        async with self._storage.reading() as work:
            entries = await work.messages.by_id(tenant=self._tenant, room_id=record.room_id, message_ids=ids)
        return training_row(record, entries)


def _span(days: float) -> timedelta:
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days <= MAX_DAYS:
        raise InvalidInput(f"days is {days!r:.60}; give a number above 0, at most {MAX_DAYS}.")
    return timedelta(days=days)


class UsageExpiry:
    """Delete the usage records of all tenants that were made too many days ago."""

    def __init__(self, *, storage: Storage, clock: Clock, days: int) -> None:
        self._storage = storage
        self._clock = clock
        self._kept = timedelta(days=days)

    async def run(self) -> None:
        before = self._clock.now() - self._kept
        async with self._storage.reading() as work:
            tenants = await work.usage.tenants()
        for tenant in tenants:
            gone = _EXPIRED_AT_ONCE
            while gone == _EXPIRED_AT_ONCE:
                async with self._storage.writing() as work:
                    gone = await work.usage.expire(tenant=tenant, before=before, limit=_EXPIRED_AT_ONCE)
