"""The one place that reads the time."""

import time
from datetime import UTC, datetime


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time, aware, UTC."""
        return datetime.now(UTC)  # noqa: TID251  this is the clock

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()
