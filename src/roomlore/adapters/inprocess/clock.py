"""The clock and the ids that contain its time. No other module reads the time."""

import secrets
import threading
import time
from datetime import UTC, datetime

from roomlore.ports.coordination import Clock


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current time, aware, UTC."""
        return datetime.now(UTC)  # noqa: TID251  this is the clock

    def monotonic(self) -> float:
        """Return seconds that never decrease."""
        return time.monotonic()


_FRACTION_BITS = 12
_RANDOM_BITS = 62


class TimeOrderedIds:
    """UUID version 7 as 32 hex digits: milliseconds, a fraction of one, then 62 random bits.

    Within one process each id is greater than the one before, even if the clock stops or goes back. Thread-safe.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._last = 0
        self._guard = threading.Lock()

    def new(self) -> str:
        stamp = self._next_stamp()
        milliseconds, fraction = divmod(stamp, 1 << _FRACTION_BITS)
        tail = 0b10 << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        return f"{milliseconds:012x}7{fraction:03x}{tail:016x}"

    def _next_stamp(self) -> int:
        micros = int(self._clock.now().timestamp() * 1_000_000)
        with self._guard:
            self._last = max(self._last + 1, (micros << _FRACTION_BITS) // 1000)
            return self._last
