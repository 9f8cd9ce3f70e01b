"""Time, ids and measurements, injected so that tests can hold them still."""

from collections.abc import Mapping
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
    """Counts and distributions, named as in the Prometheus text they end up in.

    A metric is declared by the adapter with its labels; an undeclared name or label is a mistake and raises `KeyError`.
    """

    def count(self, name: str, amount: float = 1, *, labels: Mapping[str, str] | None = None) -> None: ...

    def observe(self, name: str, value: float, *, labels: Mapping[str, str] | None = None) -> None: ...

    def see(self, name: str, member: str) -> None:
        """Notes one member of a set whose size is the metric (rooms served, say)."""
