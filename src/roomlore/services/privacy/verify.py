"""Checking that what is stored of a tenant holds together."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from roomlore.core.memory.models import Evolution, Scope
from roomlore.core.soundness.report import Fault, Findings, VerifyProgress, VerifyReport
from roomlore.core.soundness.scope import ScopeCheck
from roomlore.ports.audit import ReadChange, ReadVersion
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage
from roomlore.services.privacy.verify_indexes import IndexChecks
from roomlore.services.privacy.verify_messages import MessageChecks
from roomlore.services.privacy.verify_support import SupportChecks

Progress = Callable[[VerifyProgress], None]
_Read = TypeVar("_Read", ReadChange, ReadVersion)
_PAGE = 1000
_SCOPES = 200
_TRIES = 5


class Verifier:
    """Reads everything that is remembered of a tenant, scope by scope, and changes nothing."""

    def __init__(self, *, storage: Storage, clock: Clock, indexes: IndexChecks) -> None:
        self._storage = storage
        self._clock = clock
        self._indexes = indexes
        self._support = SupportChecks(storage=storage)
        self._messages = MessageChecks(storage=storage, indexes=indexes)

    async def verify(self, *, tenant: str, scope: str | None, progress: Progress | None) -> VerifyReport:
        """Of one scope only that scope; else of the whole tenant, its rooms and their messages too.

        Raises `StorageUnavailable`.
        """
        started, findings = self._clock.now(), Findings()
        tell = partial(_tell, progress, findings)
        holds = await self._indexes.begin(findings)
        async for one in self._scopes(tenant, scope):
            await self._check(one, findings)
            if holds.memories:
                await self._indexes.check_memories(one, holds, findings)
            findings.saw("scopes", 1)
            tell()
        await self._support.check_rows(tenant, scope, findings)
        if scope is None:
            await self._check_marks(tenant, findings)
            await self._messages.check(tenant, holds, findings, tell)
        return findings.report(started, self._clock.now())

    async def _scopes(self, tenant: str, scope: str | None) -> AsyncIterator[Scope]:
        """Page by page: a unit of work is not held while a page is checked."""
        if scope is not None:
            found = await self._scope(tenant, scope)
            if found is not None:
                yield found
            return
        after: str | None = None
        while page := await self._page_of_scopes(tenant, after):
            for one in page:
                yield one
            after = page[-1].scope

    async def _page_of_scopes(self, tenant: str, after: str | None) -> list[Scope]:
        async with self._storage.reading() as work:
            return await work.memory_log.scopes(tenant=tenant, after=after, limit=_SCOPES)

    async def _scope(self, tenant: str, scope: str) -> Scope | None:
        async with self._storage.reading() as work:
            return await work.memory_log.scope(tenant=tenant, scope=scope)

    async def _check(self, scope: Scope, findings: Findings) -> None:
        """A scope that was written to meanwhile is read again: two readings of it need not agree."""
        for _ in range(_TRIES):
            before = await self._scope(scope.tenant, scope.scope)
            if before is None:
                return
            tried = Findings()
            await self._check_once(before, tried)
            after = await self._scope(scope.tenant, scope.scope)
            if after is not None and after.changes == before.changes:
                findings.take(tried)
                return
        findings.note(f"scope {scope.scope}", "It was written to all the while, and could not be checked: try again.")

    async def _check_once(self, scope: Scope, findings: Findings) -> None:
        check = ScopeCheck(scope.scope)
        await self._read_log(scope, check, findings)
        await self._read_versions(scope, check, findings)
        findings.add(check.finish(scope, elsewhere=await self._elsewhere(scope, check.strangers())))
        await self._check_evolutions(scope, check, findings)
        await self._look_for_changes(scope, check, findings)

    async def _read_log(self, scope: Scope, check: ScopeCheck, findings: Findings) -> None:
        async for page in _pages(partial(self._page_of_log, scope)):
            for one in page:
                if one.change is None:
                    check.skip_change(one.number, one.why)
                else:
                    check.add_change(one.change)
            findings.saw("changes", len(page))

    async def _page_of_log(self, scope: Scope, after: int) -> list[ReadChange]:
        async with self._storage.reading() as work:
            return await work.audit.log(tenant=scope.tenant, scope=scope.scope, after=after, limit=_PAGE)

    async def _read_versions(self, scope: Scope, check: ScopeCheck, findings: Findings) -> None:
        missing = Counter[str]()
        async for page in _pages(partial(self._page_of_versions, scope)):
            for one in page:
                if one.stored is None:
                    check.skip_version(one.memory_id, one.why)
                else:
                    check.add_version(one.stored)
            findings.saw("memories", len(page))
            missing += await self._support.check_sources(scope, [one.stored for one in page if one.stored], findings)
        for what, count in missing.items():
            findings.note(f"scope {scope.scope}", f"{count} of the messages that its memories rest on are {what}.")

    async def _page_of_versions(self, scope: Scope, after: int) -> list[ReadVersion]:
        async with self._storage.reading() as work:
            return await work.audit.versions(tenant=scope.tenant, scope=scope.scope, after=after, limit=_PAGE)

    async def _elsewhere(self, scope: Scope, memory_ids: Sequence[str]) -> frozenset[str]:
        """Those that another scope has."""
        if not memory_ids:
            return frozenset()
        async with self._storage.reading() as work:
            found = await work.memories.by_id(tenant=scope.tenant, memory_ids=memory_ids)
        return frozenset(memory.memory_id for memory in found)

    async def _check_evolutions(self, scope: Scope, check: ScopeCheck, findings: Findings) -> None:
        asked = sorted(check.evolutions)
        for start in range(0, len(asked), _PAGE):
            ids = asked[start : start + _PAGE]
            async with self._storage.reading() as work:
                found = await work.evolutions.by_id(tenant=scope.tenant, evolution_ids=ids)
            there = {one.evolution_id for one in found}
            findings.saw("evolutions", len(ids))
            findings.add(
                Fault("evolutions", f"scope {scope.scope}, {check.evolutions[one]}", f"Record {one} is not there.")
                for one in ids
                if one not in there
            )

    async def _look_for_changes(self, scope: Scope, check: ScopeCheck, findings: Findings) -> None:
        """A record that says it was applied has changes in the log, of this scope."""
        before: str | None = None
        while page := await self._page_of_evolutions(scope, before):
            for one in page:
                if one.status == "applied" and one.evolution_id not in check.evolutions:
                    findings.note(
                        f"scope {scope.scope}", f"Evolution {one.evolution_id} was applied, and the log has none of it."
                    )
            before = page[-1].evolution_id

    async def _page_of_evolutions(self, scope: Scope, before: str | None) -> list[Evolution]:
        async with self._storage.reading() as work:
            return await work.evolutions.page(tenant=scope.tenant, scope=scope.scope, before=before, limit=_SCOPES)

    async def _check_marks(self, tenant: str, findings: Findings) -> None:
        async with self._storage.reading() as work:
            ahead = await work.audit.marks_ahead(tenant=tenant)
        findings.add(
            Fault(
                "watermarks",
                f"room {mark.room_id}, mark {mark.name}",
                f"It stands at {mark.arrival}; the room ends at {mark.last}.",
            )
            for mark in ahead
        )


async def _pages(read: Callable[[int], Awaitable[list[_Read]]]) -> AsyncIterator[list[_Read]]:
    """By the number that the last one read has, to the first page that is not full: what grows as fast as it is read
    has no end."""
    page = await read(0)
    while len(page) == _PAGE:
        yield page
        page = await read(page[-1].number)
    yield page


def _tell(progress: Progress | None, findings: Findings) -> None:
    if progress is not None:
        progress(VerifyProgress(*(findings.checked.get(what, 0) for what in ("scopes", "memories", "messages"))))
