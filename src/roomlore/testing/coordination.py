"""A clock that stands still, ids that count, and a session cache in memory."""

from datetime import datetime, timedelta

from roomlore.core.errors import CacheUnavailable
from roomlore.ports.coordination import Clock
from roomlore.testing.builders import START


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
