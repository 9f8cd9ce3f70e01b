"""Readiness: try a write, seldom enough that anybody may ask."""

import asyncio

from roomlore.core.errors import StorageUnavailable, describe
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage

_FRESH_SECONDS = 5.0
_PATIENCE_SECONDS = 2.0
_GRACE_SECONDS = 60.0
"""How long a write may wait for others, such as a large import, before nothing can be written any more."""


class Readiness:
    """Tries a write that changes nothing, at most every few seconds. Belongs to one event loop."""

    def __init__(self, *, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._trying: asyncio.Task[None] | None = None
        self._tried: float | None = None
        self._begun = 0.0
        self._error: StorageUnavailable | None = None

    async def check(self) -> None:
        """Return if the database answers and takes writes. Raise `StorageUnavailable` if it does not."""
        await self._storage.ping()
        if self._trying is not None or self._tried is None or self._clock.monotonic() - self._tried >= _FRESH_SECONDS:
            await self._try()
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        if self._trying is not None:
            await asyncio.wait({self._trying})

    async def _try(self) -> None:
        """Wait for the write for a moment. It is not cancelled: a database waits for its lock all the same."""
        if self._trying is None:
            self._begun = self._clock.monotonic()
            self._trying = asyncio.create_task(self._write())
        trying = self._trying
        await asyncio.wait({trying}, timeout=_PATIENCE_SECONDS)
        if not trying.done() and self._clock.monotonic() - self._begun > _GRACE_SECONDS:
            self._error = StorageUnavailable(
                f"A write has waited for over {_GRACE_SECONDS:.0f} s: look for a program that holds the write lock."
            )

    async def _write(self) -> None:
        try:
            await self._storage.try_writing()
        except StorageUnavailable as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - nobody else would see it
            self._error = StorageUnavailable(f"A write failed: {describe(error)}")
        else:
            self._error = None
        finally:
            self._tried, self._trying = self._clock.monotonic(), None
