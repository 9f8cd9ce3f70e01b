"""Time, ids, measurements, background work and caches, injected so that tests can hold them still."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

Attributes = Mapping[str, str | int | float | bool]


class Span(Protocol):
    """A piece of work under way, as others will see it."""

    def note(self, name: str, value: str | int | float | bool) -> None: ...


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

    def span(
        self, name: str, *, attributes: Attributes | None = None, headers: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Span]:
        """Of a piece of work under way, for whoever traces, as `Tracer.span`: what is timed inside becomes its
        children. Nobody's text is ever among name and attributes."""

    def unforeseen(self, error: BaseException, *, attributes: Attributes | None = None) -> None:
        """Tells whoever wants to know, as `ErrorReports.tell`, of an error that nobody foresaw; roomlore's own are
        foreseen, and passed over."""


class Tracer(Protocol):
    """Sends spans somewhere. No call waits or fails for want of a receiver."""

    def span(
        self, name: str, *, attributes: Attributes | None = None, headers: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Span]:
        """A span that is current inside the block. `headers`: of a request whose `traceparent` it goes on from. Where
        the block raises, the span says so with the error's type and no more."""

    def record(self, name: str, seconds: float, *, attributes: Attributes | None = None) -> None:
        """A span that ends now and took so long, inside the current one."""

    async def close(self) -> None:
        """Sends what waits, for a few seconds at most."""


class ErrorReports(Protocol):
    """Tells people of errors. No call waits or fails for want of a receiver."""

    def tell(self, error: BaseException, *, attributes: Attributes | None = None) -> None:
        """Sends the error's type and where it came from, with those of its causes, and the ids that log lines have by
        now of the request or the work. Nobody's text goes along: not the error's own either, since it may quote one."""

    async def close(self) -> None:
        """Sends what waits, for a few seconds at most."""


class Jobs(Protocol):
    """Runs work behind the callers' backs, at least once.

    What is due is always derived from stored data, so a job lost with a killed process is found again by its own sweep.
    A job that fails is tried again, later each time; it never takes another with it.
    """

    def handle(self, name: str, work: Callable[[], Awaitable[object]], *, every_seconds: float) -> None:
        """Declares a job: run once soon after the start, again whenever it is asked for, and at least this often."""

    def ask(self, name: str) -> None:
        """Asks that the job be run soon. Never waits and never fails; asked often before it begins, it is run once."""

    async def close(self) -> None:
        """Lets what runs come to its next pause, and stops."""


class SessionCache(Protocol):
    """Sessions as text, kept beside the database for a while.

    It may lose anything at any moment, and what it gives may be old: the caller compares it with the database. Every
    call may raise `CacheUnavailable`, within the time the adapter was given.
    """

    async def get(self, *, tenant: str, conversation_id: str) -> str | None:
        """What was put last, or None where it is unknown, has expired or cannot be read as text."""

    async def put(self, *, tenant: str, conversation_id: str, value: str, seconds: int) -> None:
        """Keeps the value in the place of an earlier one, for so many seconds from now."""

    async def drop(self, *, tenant: str, conversation_id: str) -> None:
        """Forgets the value; nothing happens where there is none."""

    async def close(self) -> None: ...
