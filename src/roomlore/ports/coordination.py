"""Time, ids and measurements, injected so that tests can hold them still."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The time, aware, UTC."""

    def monotonic(self) -> float:
        """Seconds that only grow."""


class Ids(Protocol):
    def new(self) -> str:
        """A fresh id; later ones sort after earlier ones."""


class Telemetry(Protocol):
    """Counts and distributions, named as in the Prometheus text they end up in."""

    def count(self, name: str, amount: float = 1) -> None: ...

    def observe(self, name: str, value: float) -> None: ...

    def see(self, name: str, member: str) -> None:
        """Notes one member of a set whose size is the metric (rooms served, say)."""
