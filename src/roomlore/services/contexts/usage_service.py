"""Usage records of contexts: write them in the background, list, export, sum up for each arm, and expire them. And
`lore.tuning`: find better weights for `weighted`, from labels, or from feedback and corrected links."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput, describe
from roomlore.core.experiments import MAX_DAYS, UsageReport, UsageSelection, arm_report, training_row
from roomlore.core.models import ContextUsageRecord, LinkKind, Target
from roomlore.core.tuning import Example, RoomLabels, TuningReport, from_feedback, read_labels, tune
from roomlore.ports.coordination import Telemetry
from roomlore.ports.shared import Backends, Service
from roomlore.services.contexts.strategies import CandidateReader, scorer

if TYPE_CHECKING:
    from roomlore.storage import Storage, UnitOfWork

log = logging.getLogger(__name__)

_QUEUE = 2_000
_BATCH = 100
_GATHER_SECONDS = 0.05
"""A record waits this long for others, as a transaction costs more than several records."""
_SETTLE_SECONDS = 2.0
_PAGE = 200
_EXPIRED_AT_ONCE = 500
_KEPT_DAYS = 90
"""A quarter of a year: enough to compare two strategies in a quiet room."""


@dataclass(frozen=True, slots=True)
class _Note:
    tenant: str
    record: ContextUsageRecord


class UsageRecorder:
    """Write usage records in the background: `put` never waits and never fails, and drops what it cannot keep."""

    def __init__(self, *, storage: "Storage", telemetry: Telemetry) -> None:
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
            async with self._storage.writing(rooms=()) as every:
                for tenant, records in by_tenant.items():
                    work = every.of(tenant)
                    await work.usage.record(records=await _of_messages(work, records))
        except Exception as error:  # noqa: BLE001 - a worker loop: whatever is wrong with one batch, the next is tried
            self._telemetry.unforeseen(error, attributes={"job": "usage records"})
            self._lose(len(notes), describe(error))

    def _lose(self, records: int, why: str) -> None:
        self._telemetry.count("roomlore_usage_records_lost_total", records)
        log.warning("usage records lost", extra={"records": records, "why": why})


async def _of_messages(work: "UnitOfWork", records: Sequence[ContextUsageRecord]) -> list[ContextUsageRecord]:
    """Return the records whose message is still there: its sender may have been forgotten since."""
    by_room: dict[str, list[str]] = {}
    for record in records:
        by_room.setdefault(record.room_id, []).append(record.trigger_message_id)
    there = {
        (room_id, message_id)
        for room_id, ids in by_room.items()
        for message_id, stamp in (await work.messages.fingerprints(room_id=room_id, message_ids=ids)).items()
        if stamp
    }
    return [record for record in records if (record.room_id, record.trigger_message_id) in there]


class UsageService(Service):
    """The usage records of one tenant."""

    def __init__(self, backends: Backends, *, tenant: str, recorder: UsageRecorder) -> None:
        super().__init__(backends)
        self._tenant = tenant
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
        async with self._storage.reading(self._tenant) as work:
            sums = await work.usage.sums(since=since)
        return UsageReport(since=since, until=until, arms=tuple(map(arm_report, sums)))

    def _selection(self, room_id: str | None, arm: str | None, *, judged: bool, days: float | None) -> UsageSelection:
        since = None if days is None else self._clock.now() - _span(days)
        return UsageSelection(room_id=room_id, arm=arm, judged=judged, since=since)

    async def _page(self, selection: UsageSelection, after: str | None, limit: int) -> list[ContextUsageRecord]:
        async with self._storage.reading(self._tenant) as work:
            return await work.usage.page(selection=selection, after=after, limit=limit)

    async def _training_row(self, record: ContextUsageRecord) -> dict[str, Any] | None:
        ids = [record.trigger_message_id, *record.context_message_ids]
        async with self._storage.reading(self._tenant) as work:
            entries = await work.messages.by_id(room_id=record.room_id, message_ids=ids)
        return training_row(record, entries)


def _span(days: float) -> timedelta:
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days <= MAX_DAYS:
        raise InvalidInput("days_outside", value=f"{days!r:.60}", most=MAX_DAYS)
    return timedelta(days=days)


class UsageExpiry(Service):
    """Delete the usage records of all tenants that were made too many days ago."""

    def __init__(self, backends: Backends, *, days: int = _KEPT_DAYS) -> None:
        super().__init__(backends)
        self._kept = timedelta(days=days)

    async def run(self) -> None:
        before = self._clock.now() - self._kept
        async with self._storage.reading() as work:
            tenants = await work.usage.tenants()
        for tenant in tenants:
            gone = _EXPIRED_AT_ONCE
            while gone == _EXPIRED_AT_ONCE:
                async with self._storage.writing(tenant) as work:
                    gone = await work.usage.expire(before=before, limit=_EXPIRED_AT_ONCE)


_JUDGED = UsageSelection(judged=True)


class TuningService:
    """Tune the weights of one tenant's rooms."""

    def __init__(self, *, tenant: str, storage: "Storage", options: ContextOptions) -> None:
        self._tenant = tenant
        self._storage = storage
        self._options = options

    async def run(
        self,
        labels: Iterable[Mapping[str, Any]] | None = None,
        *,
        rooms: Sequence[str] | None = None,
        folds: int = 5,
        apply: bool = False,
    ) -> TuningReport:
        """Fit the weights and the threshold, tested on held-out targets.

        `labels`: rows as `core.tuning.read_labels` takes them; None uses the feedback on contexts and the links that
        people corrected. `rooms`: only these rooms. `apply`: give the rooms that had labels the new weights as their
        own settings, if they did better. Raise
        `InvalidInput` if there is too little to learn from.
        """
        rooms = [rooms] if isinstance(rooms, str) else rooms
        examples_by_room: dict[str, list[Example]] = {}
        given = None if labels is None else self._from_labels(read_labels(labels), rooms)
        for source in [given] if given else [self._from_feedback(rooms), self._from_corrections(rooms)]:
            async for room_id, example in source:
                examples_by_room.setdefault(room_id, []).append(example)
        if not examples_by_room:
            raise InvalidInput("tuning_data_missing")
        report = tune(
            [example for examples in examples_by_room.values() for example in examples],
            self._options.weights,
            threshold=self._options.relevance_threshold,
            max_messages=self._options.max_context_messages,
            folds=folds,
        )
        if apply and report.improved:
            await self._apply(report, list(examples_by_room))
        return report

    async def _from_labels(
        self, labelled: Mapping[str, RoomLabels], rooms: Sequence[str] | None
    ) -> AsyncIterator[tuple[str, Example]]:
        for room_id, labels in labelled.items():
            if rooms is not None and room_id not in rooms:
                continue
            for message_id in labels.targets:
                async with self._storage.reading(self._tenant) as work:
                    example = await self._labelled(work, room_id, message_id, labels)
                if example is not None:
                    yield room_id, example

    async def _labelled(self, work: "UnitOfWork", room_id: str, message_id: str, labels: RoomLabels) -> Example | None:
        target = await self._target(work, room_id, message_id)
        if target is None:
            return None
        pool, view = await CandidateReader(work=work).weighted_view(target, self._options)
        wanted = labels.wanted(target.entry, pool)
        if wanted is None:
            return None
        rule = scorer(self._options)
        ids = [entry.message.id for entry in pool]
        return Example(
            signals=tuple(rule.signals(view, entry) for entry in pool),
            relevant=tuple(float(message_id in wanted) for message_id in ids),
            missing=len(wanted.difference(ids)),
        )

    async def _from_feedback(self, rooms: Sequence[str] | None) -> AsyncIterator[tuple[str, Example]]:
        after: str | None = None
        while True:
            async with self._storage.reading(self._tenant) as work:
                page = await work.usage.page(selection=_JUDGED, after=after, limit=_PAGE)
                for record in page:
                    if rooms is not None and record.room_id not in rooms:
                        continue
                    target = await self._target(work, record.room_id, record.trigger_message_id)
                    if target is not None and record.success_indicator is not None:
                        shown = set(record.context_message_ids)
                        yield record.room_id, await self._judged(work, target, shown, record.success_indicator)
            if len(page) < _PAGE:
                return
            after = page[-1].context_id

    async def _from_corrections(self, rooms: Sequence[str] | None) -> AsyncIterator[tuple[str, Example]]:
        after = ("", 0)
        while True:
            async with self._storage.reading(self._tenant) as work:
                page = await work.corrections.in_force(after=after, limit=_PAGE)
                for correction in page:
                    wanted = rooms is None or correction.room_id in rooms
                    target = await self._target(work, correction.room_id, correction.message_id) if wanted else None
                    if target is not None and target.entry.link.kind is LinkKind.CORRECTED:
                        yield correction.room_id, await self._corrected(work, target)
            if len(page) < _PAGE:
                return
            after = page[-1].room_id, page[-1].number

    async def _corrected(self, work: "UnitOfWork", target: Target) -> Example:
        """Return an example from what a person said that a message answers. Its signals are those that it had without
        being told."""
        link = target.entry.link
        unaware = replace(target, entry=replace(target.entry, link=replace(link, kind=LinkKind.GUESS)))
        pool, view = await CandidateReader(work=work).weighted_view(unaware, self._options)
        rule, shares = scorer(self._options), link.thread_candidates.by_arrival()
        arrivals = [entry.message.arrival for entry in pool]
        return Example(
            signals=tuple(rule.signals(view, entry) for entry in pool),
            relevant=tuple(shares.get(arrival, 0.0) for arrival in arrivals),
            missing=int(link.parent is not None and link.parent not in arrivals),
        )

    async def _judged(self, work: "UnitOfWork", target: Target, shown: set[str], success: float) -> Example:
        pool, view = await CandidateReader(work=work).weighted_view(target, self._options)
        rule = scorer(self._options)
        return from_feedback([rule.signals(view, entry) for entry in pool if entry.message.id in shown], success)

    async def _target(self, work: "UnitOfWork", room_id: str, message_id: str) -> Target | None:
        return await work.messages.target(room_id=room_id, message_id=message_id, window=0)

    async def _apply(self, report: TuningReport, rooms: Sequence[str]) -> None:
        weights = {f"{signal}_weight": round(weight, 4) for signal, weight in asdict(report.weights).items()}
        changes = {**weights, "relevance_threshold": report.threshold}
        for room_id in rooms:
            async with self._storage.writing(self._tenant) as work:
                room = await work.rooms.lock_known(room_id=room_id)
                if room is None:
                    continue
                await work.rooms.configure(room_id=room_id, settings={**room.settings, **changes})
