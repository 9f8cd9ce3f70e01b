"""A storage that fails or delays on request."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from roomlore.core.errors import StorageUnavailable
from roomlore.ports.storage import Storage, UnitOfWork


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
    async def reading(self) -> AsyncIterator[UnitOfWork]:
        await self.visit("reading")
        async with self._storage.reading() as work:
            yield cast(UnitOfWork, _Watched(work, "", self.visit))

    @asynccontextmanager
    async def writing(self, *, brief: bool = False) -> AsyncIterator[UnitOfWork]:
        await self.visit("writing")
        async with self._storage.writing(brief=brief) as work:
            yield cast(UnitOfWork, _Watched(work, "", self.visit))
            await self.visit("commit")

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

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._inner, name)
        if not callable(inner):
            return _Watched(inner, name, self._visit)

        async def call(**arguments: Any) -> Any:
            await self._visit(f"{self._name}.{name}")
            return await inner(**arguments)

        return call
