"""Requests to forget somebody, which survive their process: each is recorded with the data of its tenant until it is
done and nothing is left that another try may remove, and is done as durable work.

Neither the id of the work, nor its arguments, nor its result names the person, since finished work is kept for days.
The record goes before the database is compacted, so that the id can be read nowhere afterwards; a record of nobody
takes its place until then.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from roomlore.core.errors import NotFound, StorageUnavailable
from roomlore.core.privacy import LISTED, ForgetReport, Left
from roomlore.ports.durable import (
    ENDED,
    RETRIABLE,
    DurableWork,
    Json,
    Steps,
    WorkState,
    work_name,
)
from roomlore.ports.noted import NOTED_LEASE, NotedWork
from roomlore.ports.shared import Backends
from roomlore.services.privacy.forget_messages import ForgetTally
from roomlore.services.privacy.forgetter import FREE_PAGES, PAGES_LEFT, Forgetter, unfinished
from roomlore.services.privacy.requests import Requests, remove_requests
from roomlore.storage import UnitOfWork
from roomlore.storage.values import ERASED, FORGETTING, FORGETTING_SAME_WORDS, OF_PEOPLE

_NOBODY = ""
"""Recorded in place of the person as long as the database is to be compacted."""
_WAIT_SECONDS = 30.0
_GOES = "removing what is stored of a person"
_COMPACTED = "compacted the databases"
_DONE_BEFORE = "nothing: it was done before"


class Forgettings(Requests):
    """The requests of all tenants to forget somebody. `shared`: True if other processes see and do the durable work of
    this one."""

    def __init__(self, backends: Backends, *, durable: DurableWork, forgetter: Forgetter, shared: bool) -> None:
        super().__init__(backends, durable=durable, kinds=OF_PEOPLE)
        self._forgetter = forgetter
        self._shared = shared
        self._waiting: Counter[str] = Counter()
        self._reports: dict[str, ForgetReport] = {}
        """Of work that was done here and is waited for."""
        self._so_far: dict[str, ForgetReport] = {}
        """Of work that was done here and left something."""

    def _partition_and_arguments(self, noted: NotedWork) -> tuple[str, Json]:
        partition, arguments = super()._partition_and_arguments(noted)
        return partition, {**arguments, "whose": _whose(noted.own, noted.room.room_id)}

    async def forget(self, *, tenant: str, user_id: str, same_words: bool) -> ForgetReport:
        """Forget a person now. If this breaks off, or leaves something, the background work of any process goes on with
        it."""
        due = await self._request_of(tenant, user_id, same_words)
        async with self._held(due):
            report = await self._forgetter.forget(
                tenant=tenant, user_id=user_id, dry_run=False, same_words=same_words, settle=partial(self._settle, due)
            )
        if not unfinished(report.left):
            await self._compacted(tenant, left=report.left)
            work_id = work_name(tenant, FORGETTING, due.own)
            self._so_far.pop(work_id, None)
            await self._durable.retry(work_id)  # so that work that failed does not stay listed
        return report

    async def begin(self, *, tenant: str, user_id: str, same_words: bool) -> str:
        """Record the request, unless it is recorded, and submit its work. Return the id of the work."""
        return await self._submitted(await self._request_of(tenant, user_id, same_words), patiently=False)

    async def ended(self, work_id: str, *, tenant: str, user_id: str, same_words: bool) -> ForgetReport:
        """Return what came of the work when it has ended. Raise `StorageUnavailable` if it failed, or was lost before
        it was done, `NotFound` if it is not of the person, or unknown while something of the person is stored."""
        own = work_id.removeprefix(work_name(tenant, FORGETTING, ""))
        recorded = await self._request(tenant, own)
        if own == work_id or (recorded is not None and recorded.room.room_id != user_id):
            raise _not_of_them(work_id)
        alone = not (self._shared or self._durable.works())
        if alone and recorded is not None:
            await self._durable.drop(prefix=work_id, tells=lambda _: True)
            return await self.forget(tenant=tenant, user_id=user_id, same_words=same_words)
        state, report = (await self._durable.find(work_id), None) if alone else await self._end_of(work_id)
        result = dict((state and state.result) or {})
        if result.pop("whose", None) not in (None, _whose(own, user_id)) or (report and report.user_id != user_id):
            raise _not_of_them(work_id)
        if report is None and result:
            report = _report(user_id, result)
        if report is not None:
            return report
        if (state is not None and state.status in RETRIABLE) or await self._is_recorded(tenant, user_id):
            why = (state.error or f"The job was {state.status}.") if state else "The job is not there any more."
            raise StorageUnavailable("forgetting_failed", why=why)
        if state is None:
            stored = await self._forgetter.forget(tenant=tenant, user_id=user_id, dry_run=True)
            if stored.found:
                raise _not_of_them(work_id)
        now = self._clock.now()  # somebody else did it before the work began: it found nothing to do
        return ForgetReport(user_id=user_id, dry_run=False, started_at=now, finished_at=now)

    async def _end_of(self, work_id: str) -> tuple[WorkState | None, ForgetReport | None]:
        """Return the work when it has ended, None if it is unknown; and its report if it was done here."""
        self._waiting[work_id] += 1
        try:
            while (state := await self._durable.wait(work_id, seconds=_WAIT_SECONDS)) and state.status not in ENDED:
                pass
            return state, self._reports.get(work_id) or self._so_far.get(work_id)
        finally:
            self._waiting[work_id] -= 1
            if not self._waiting[work_id]:
                del self._waiting[work_id]
                self._reports.pop(work_id, None)

    async def _is_recorded(self, tenant: str, user_id: str) -> bool:
        async with self._storage.reading(tenant) as work:
            return await self.work_of(work, user_id) is not None

    async def work_of(self, work: UnitOfWork, user_id: str) -> str | None:
        """Return the id of the work of a request that is recorded for the person, submitted or not; None if none is."""
        for kind in OF_PEOPLE:
            for room in await work.progress.noted(work=kind, room_id=user_id):
                return work_name(work.tenant, FORGETTING, NotedWork(kind, room).own)
        return None

    async def work(self, steps: Steps, arguments: Json) -> Json | None:
        """Do what was asked for, as durable work, and return the report without the person's id, only `whose` it is if
        the request is no longer there. Raise `StorageUnavailable` if something is left that another try may remove: the
        request stays, and the work is listed as failed until it is tried again."""
        tenant, own = str(arguments["tenant"]), str(arguments["own"])
        work_id = work_name(tenant, FORGETTING, own)
        request = await self._request(tenant, own)
        if request is None:
            await steps.report(_DONE_BEFORE)
            return {"whose": whose} if (whose := arguments.get("whose")) else None
        if request.room.room_id == _NOBODY:
            await self._forgetter.compact()
            await self._compacted(tenant)
            await steps.report(_COMPACTED)
            return None
        async with self._storage.reading(tenant) as work:
            erased = bool(await work.progress.noted(work=ERASED, room_id=own))
        await steps.report(_GOES)
        report = await self._forgetter.forget(
            tenant=tenant,
            user_id=request.room.room_id,
            dry_run=False,
            same_words=request.kind == FORGETTING_SAME_WORDS,
            settle=partial(self._settle, request),
            own_work=own,
            erased=erased,
        )
        if before := self._so_far.pop(work_id, None):
            report = report.after(before)
        await steps.report(_summary_of(report))
        if left := unfinished(report.left):
            self._so_far[work_id] = report
            places = " ".join(f"{remainder.place} ({remainder.count}): {remainder.why}" for remainder in left)
            raise StorageUnavailable("forgetting_incomplete", places=places)
        await self._compacted(tenant, left=report.left)
        if work_id in self._waiting:
            self._reports[work_id] = report
        return {**_kept(report), "whose": _whose(own, report.user_id)}

    async def _request_of(self, tenant: str, user_id: str, same_words: bool) -> NotedWork:
        """Return the request, recorded. A repeated one erases what was written since, too."""
        async with self._storage.writing(tenant) as work:
            request = await self._recorded(work, user_id, FORGETTING_SAME_WORDS if same_words else FORGETTING)
            await remove_requests(work, request.own, ERASED)
        return request

    async def _settle(self, request: NotedWork, finished: bool) -> None:
        """Put a record of nobody in the place of the request if it is finished. If not, note that its messages are
        erased."""
        async with self._storage.writing(request.room.tenant) as work:
            if not finished:
                await work.progress.note_room(room_id=request.own, work=ERASED, now=self._clock.now())
                return
            await remove_requests(work, request.own, ERASED)
            await self.note_compaction(work)
            await remove_requests(work, request.room.room_id, request.kind)

    async def note_compaction(self, work: UnitOfWork) -> None:
        """Record that the databases are to be compacted, whatever becomes of this process. For a while sweeps leave it
        to this process."""
        await work.progress.note_room(room_id=_NOBODY, work=FORGETTING, now=self._clock.now())
        await self._compaction_is_due_in(work, NOTED_LEASE)

    async def _compaction_is_due_in(self, work: UnitOfWork, pause: timedelta) -> None:
        for record in await work.progress.noted(work=FORGETTING, room_id=_NOBODY):
            await work.progress.put_off(room=record, work=FORGETTING, until=self._clock.now() + pause)

    async def compact(self, tenant: str, tally: ForgetTally) -> None:
        """Compact the databases, as was noted. What cannot be done is left, and stays recorded."""
        try:
            await self._forgetter.compact()
        except StorageUnavailable:
            tally.leave(FREE_PAGES, 1, PAGES_LEFT)
        await self._compacted(tenant, left=tally.left.values())

    async def _compacted(self, tenant: str, *, left: Iterable[Left] = ()) -> None:
        """Remove the record of nobody. It stays, and is due at once, if the databases could not be compacted."""
        async with self._storage.writing(tenant) as work:
            if any(remainder.place == FREE_PAGES for remainder in left):
                await self._compaction_is_due_in(work, timedelta())
            else:
                await remove_requests(work, _NOBODY, FORGETTING)


def _whose(own: str, user_id: str) -> str:
    """Return the mark of the person in work of this `own` part, without naming them."""
    return hashlib.sha256(f"{own} {user_id}".encode("utf-8", "surrogatepass")).hexdigest()


def _not_of_them(work_id: str) -> NotFound:
    job_id = work_id.partition(":")[2]
    return NotFound("forgetting_job_unknown", job=f"{job_id!r:.80}")


def _summary_of(report: ForgetReport) -> str:
    text = f"removed or changed {sum(report.places.values())} entries"
    return f"{text}; left: {', '.join(remainder.place for remainder in report.left)}" if report.left else text


def _kept(report: ForgetReport) -> Json:
    """Return the report as it is kept with the work: without the person's id, and with numbers in place of lists of
    ids, as those may be names of other people."""
    kept = asdict(report) | {"unlisted": report.counts, "left": list(map(asdict, report.left))}
    kept |= {name: kept[name].isoformat() for name in ("started_at", "finished_at")}
    return {name: value for name, value in kept.items() if name not in ("user_id", *LISTED)}


def _report(user_id: str, kept: Mapping[str, Any]) -> ForgetReport:
    values: dict[str, Any] = dict(kept)
    values |= {name: datetime.fromisoformat(values[name]) for name in ("started_at", "finished_at")}
    values["left"] = tuple(Left(**remainder) for remainder in values["left"])
    return ForgetReport(user_id=user_id, **values)
