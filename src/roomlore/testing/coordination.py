"""Time that stands still and ids that count."""

from datetime import datetime, timedelta

from roomlore.testing.builders import START


class FrozenClock:
    """Stands at `at` until it is moved."""

    def __init__(self, at: datetime = START) -> None:
        self._start = at
        self._passed = timedelta()

    def now(self) -> datetime:
        return self._start + self._passed

    def monotonic(self) -> float:
        return self._passed.total_seconds()

    def advance(self, seconds: float) -> None:
        """Lets time pass; a negative number turns the clock back."""
        self._passed += timedelta(seconds=seconds)


class SequentialIds:
    """`id-000001`, `id-000002`, ..."""

    def __init__(self, prefix: str = "id") -> None:
        self._prefix = prefix
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count:06d}"
