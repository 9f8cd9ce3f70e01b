"""Doubles for tests: a clock that stands still, ids that count, a session cache in memory, and a storage with
faults."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, cast

from roomlore.adapters.inprocess import InProcessJobs
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.errors import CacheUnavailable, StorageUnavailable
from roomlore.ports.coordination import Clock
from roomlore.ports.shared import Backends
from roomlore.storage import Storage, UnitOfWork
from roomlore_testkit.builders import START


class FrozenClock:
    """A clock that stays at `at` until it is moved."""

    def __init__(self, at: datetime = START) -> None:
        self._start = at
        self._passed = timedelta()

    def now(self) -> datetime:
        return self._start + self._passed

    def monotonic(self) -> float:
        return self._passed.total_seconds()

    def advance(self, seconds: float) -> None:
        """Let time pass; a negative number turns the clock back."""
        self._passed += timedelta(seconds=seconds)


class SequentialIds:
    """Return `id-000001`, `id-000002`, ..."""

    def __init__(self, prefix: str = "id") -> None:
        self._prefix = prefix
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count:06d}"


class InMemorySessionCache:
    """A `SessionCache` in memory; every call raises `CacheUnavailable` while `down` is set."""

    def __init__(self, clock: Clock) -> None:
        self.down = False
        self._clock = clock
        self._kept: dict[tuple[str, str], tuple[str, float]] = {}

    async def get(self, *, tenant: str, conversation_id: str) -> str | None:
        self._answer()
        value, until = self._kept.get((tenant, conversation_id), ("", self._clock.monotonic()))
        return value if self._clock.monotonic() < until else None

    async def put(self, *, tenant: str, conversation_id: str, value: str, seconds: int) -> None:
        self._answer()
        self._kept[tenant, conversation_id] = value, self._clock.monotonic() + seconds

    async def drop(self, *, tenant: str, conversation_id: str) -> None:
        self._answer()
        self._kept.pop((tenant, conversation_id), None)

    async def close(self) -> None:
        self._kept.clear()

    def wipe(self) -> None:
        """Drop everything, as a restarted server does."""
        self._kept.clear()

    def _answer(self) -> None:
        if self.down:
            raise CacheUnavailable


class FaultyStorage:
    """Wrap a storage. A call is named as in `messages.recent` or `messages.append`; opening is `reading` or `writing`,
    the end of a writing block is `commit`, and `*` is every call.

    `fail` raises before the call is made, so a failed commit keeps nothing.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._errors: dict[str, Exception] = {}
        self._delays: dict[str, float] = {}
        self.calls: list[str] = []

    def fail(self, name: str, error: Exception | None = None) -> None:
        """Make this call raise, from now on."""
        self._errors[name] = error or StorageUnavailable(f"{name} was told to fail.")

    def delay(self, name: str, seconds: float) -> None:
        """Make this call wait first, from now on."""
        self._delays[name] = seconds

    def heal(self) -> None:
        """Remove all faults."""
        self._errors.clear()
        self._delays.clear()

    async def visit(self, name: str) -> None:
        """Note the call, then wait and raise as requested."""
        self.calls.append(name)
        await asyncio.sleep(self._delays.get(name, self._delays.get("*", 0.0)))
        error = self._errors.get(name) or self._errors.get("*")
        if error is not None:
            raise error

    @asynccontextmanager
    async def reading(self, tenant: str | None = None) -> AsyncIterator[UnitOfWork]:
        await self.visit("reading")
        async with self._storage.reading(tenant) as work:
            yield cast(UnitOfWork, _Watched(work, "", self.visit))

    @asynccontextmanager
    async def writing(
        self, tenant: str | None = None, *, brief: bool = False, rooms: Collection[str] | None = None
    ) -> AsyncIterator[UnitOfWork]:
        await self.visit("writing")
        async with self._storage.writing(tenant, brief=brief, rooms=rooms) as work:
            yield cast(UnitOfWork, _Watched(work, "", self.visit))
            await self.visit("commit")

    def stamp(self, *_: object) -> None:
        """Return None, so that each revision is read."""

    async def ping(self) -> None:
        await self.visit("ping")
        await self._storage.ping()

    async def try_writing(self) -> None:
        await self.visit("try_writing")
        await self._storage.try_writing()

    async def close(self) -> None:
        await self._storage.close()


class _Watched:
    """A unit of work, or one of its parts, whose calls pass through `visit` first."""

    def __init__(self, inner: Any, name: str, visit: Callable[[str], Any]) -> None:
        self._inner = inner
        self._name = name
        self._visit = visit

    def of(self, tenant: str) -> "_Watched":
        return _Watched(self._inner.of(tenant), self._name, self._visit)

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._inner, name)
        if isinstance(inner, str):
            return inner
        if not callable(inner):
            return _Watched(inner, name, self._visit)

        async def call(**arguments: Any) -> Any:
            await self._visit(f"{self._name}.{name}")
            return await inner(**arguments)

        return call


def backends(storage: Storage, **own: Any) -> Backends:
    """Return the backends of services under test: those given, a frozen clock and parts of one process."""
    clock = own.pop("clock", None) or FrozenClock()
    telemetry = own.pop("telemetry", None) or PrometheusTelemetry(clock)
    jobs = own.pop("jobs", None) or InProcessJobs(telemetry=telemetry)
    ids, tokens = own.pop("ids", None) or SequentialIds(), own.pop("tokens", None) or EncodingTokens("cl100k_base")
    return Backends(storage=storage, tokens=tokens, clock=clock, ids=ids, telemetry=telemetry, jobs=jobs)
