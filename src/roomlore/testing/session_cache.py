"""A session cache in memory, whose server can be down and can forget everything."""

from roomlore.core.errors import CacheUnavailable
from roomlore.ports.coordination import Clock


class InMemorySessionCache:
    """`SessionCache`; every call raises `CacheUnavailable` while `down` is set."""

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
        """Forgets everything, as a server that is restarted does."""
        self._kept.clear()

    def _answer(self) -> None:
        if self.down:
            raise CacheUnavailable
