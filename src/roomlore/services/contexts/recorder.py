"""Keeping what contexts were used, in the background."""

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from roomlore.core.errors import describe
from roomlore.core.models import ContextUsageRecord
from roomlore.ports.coordination import Telemetry
from roomlore.ports.storage import Storage

_QUEUE = 2_000
_BATCH = 100
_SETTLE_SECONDS = 2.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Note:
    tenant: str
    record: ContextUsageRecord


class UsageRecorder:
    """Writes usage records behind the answers' back: `put` never waits, never fails and drops what it cannot keep."""

    def __init__(self, *, storage: Storage, telemetry: Telemetry) -> None:
        self._storage = storage
        self._telemetry = telemetry
        self._queue: asyncio.Queue[_Note] = asyncio.Queue(_QUEUE)
        self._writer: asyncio.Task[None] | None = None

    def put(self, tenant: str, record: ContextUsageRecord) -> None:
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_all(), name="roomlore-usage")
        try:
            self._queue.put_nowait(_Note(tenant, record))
        except asyncio.QueueFull:
            self._lose(1, "the queue is full")

    async def settle(self) -> None:
        """Waits a moment for what is queued to be written."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._queue.join(), _SETTLE_SECONDS)

    async def close(self) -> None:
        """Writes what is queued, as far as the database answers, and stops."""
        await self.settle()
        if self._writer is not None:
            self._writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writer

    async def _write_all(self) -> None:
        while True:
            notes = [await self._queue.get()]
            while len(notes) < _BATCH and not self._queue.empty():
                notes.append(self._queue.get_nowait())
            await self._write(notes)
            for _ in notes:
                self._queue.task_done()

    async def _write(self, notes: list[_Note]) -> None:
        by_tenant: dict[str, list[ContextUsageRecord]] = {}
        for note in notes:
            by_tenant.setdefault(note.tenant, []).append(note.record)
        try:
            async with self._storage.writing() as work:
                for tenant, records in by_tenant.items():
                    await work.usage.record(tenant=tenant, records=records)
        except Exception as error:  # noqa: BLE001 - a worker loop: whatever is wrong with one batch, the next is tried
            self._telemetry.unforeseen(error, attributes={"job": "usage records"})
            self._lose(len(notes), describe(error))

    def _lose(self, records: int, why: str) -> None:
        self._telemetry.count("roomlore_usage_records_lost_total", records)
        log.warning("usage records lost", extra={"records": records, "why": why})
