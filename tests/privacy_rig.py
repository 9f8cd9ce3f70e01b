"""Checking and forgetting that take as long as a test says."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace

from roomlore import Lore
from roomlore.core.privacy import ForgetReport
from roomlore.services.privacy import IndexChecks, Verifier
from roomlore.surfaces.long_work import LongWork
from roomlore_testkit import START, backends
from roomlore_testkit.doubles import FaultyStorage

SECONDS = 60.0


class Gate(FaultyStorage):
    """A storage in which every call waits until `open` is set."""

    def __init__(self, storage) -> None:
        super().__init__(storage)
        self.open = asyncio.Event()

    async def visit(self, name: str) -> None:
        await super().visit(name)
        await self.open.wait()


class SlowForgetter:
    """Of a person what is asked for, a count or the forgetting, ends when `may_end[user_id, dry_run]` is set, with an
    empty report or with the error of `errors`. `begun`: what was begun, by tenant."""

    def __init__(self) -> None:
        self.may_end = defaultdict(asyncio.Event)
        self.errors = {}
        self.begun = []

    async def forget(self, *, tenant: str, user_id: str, dry_run: bool, same_words: bool) -> ForgetReport:
        self.begun.append((tenant, user_id, dry_run))
        await self.may_end[user_id, dry_run].wait()
        if (user_id, dry_run) in self.errors:
            raise self.errors[user_id, dry_run]
        return ForgetReport(user_id=user_id, dry_run=dry_run, started_at=START, finished_at=START)

    async def begin(self, *, tenant: str, user_id: str, same_words: bool) -> str:
        return f"{tenant}:forgetting:{user_id}"

    async def ended(self, work_id: str, *, tenant: str, user_id: str, same_words: bool) -> ForgetReport:
        return await self.forget(tenant=tenant, user_id=user_id, dry_run=False, same_words=same_words)

    async def work_of(self, work: object, user_id: str) -> str | None:
        return None


@dataclass(frozen=True)
class Slow:
    """`lore` checks what is stored through `gate`, and forgets nobody really."""

    lore: Lore
    gate: Gate
    forgetter: SlowForgetter


def slow_over(lore: Lore) -> Slow:
    shared, gate, forgetter = lore._resources, Gate(lore.storage), SlowForgetter()
    checks = IndexChecks(storage=gate, vectors=shared.indexing.vectors)
    verifier = Verifier(backends(storage=gate, clock=shared.clock), indexes=checks)
    slow = replace(shared)
    vars(slow).update(verifier=verifier, forgetter=forgetter, forgettings=forgetter)
    return Slow(Lore(slow, lore.tenant), gate, forgetter)


async def ended(work: LongWork, *beginning: str) -> None:
    """Returns when no work is under way whose name begins like this."""
    await until(lambda: not work.under_way(*beginning))


async def until(told: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not told():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0.001)
