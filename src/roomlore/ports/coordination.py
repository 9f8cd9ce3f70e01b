"""Time, ids, telemetry, background jobs, caches and webhooks, injected so that tests can control them; and what may be
logged again."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

SESSIONS = "session-checkpoints"
"""The background job that makes the checkpoints that are due."""
INDEXING = "indexing"
"""The job that brings the indexes in step with SQL."""
RELINKING = "relinking"
"""The job that relinks rooms whose links another link model made."""
_AGAIN_SECONDS = 60.0
Attributes = Mapping[str, str | int | float | bool]


class Span(Protocol):
    """A traced operation in progress."""

    def note(self, name: str, value: str | int | float | bool) -> None: ...


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the time, aware, UTC."""

    def monotonic(self) -> float:
        """Return seconds of a monotonic clock."""


class OnceAMinute:
    """Lets each line be logged at most once a minute, however often an outage or a client leads to it. `monotonic`:
    returns seconds of a monotonic clock."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._told: dict[tuple[object, ...], float] = {}

    def is_due(self, *what: object) -> bool:
        """Return True if this was not due within the last minute."""
        now = self._monotonic()
        self._told = {key: when for key, when in self._told.items() if now - when < _AGAIN_SECONDS}
        due = what not in self._told
        self._told.setdefault(what, now)
        return due


class Ids(Protocol):
    def new(self) -> str:
        """Return a new id; later ones sort after earlier ones."""


class Telemetry(Protocol):
    """Counts and distributions, with Prometheus names.

    A metric is declared by the adapter with its labels; an undeclared name or label is a bug and raises `KeyError`.
    """

    def count(self, name: str, amount: float = 1, *, labels: Mapping[str, str] | None = None) -> None: ...

    def observe(self, name: str, value: float, *, labels: Mapping[str, str] | None = None) -> None: ...

    def level(self, name: str, value: float, *, labels: Mapping[str, str] | None = None) -> None:
        """Set a value that rises and falls."""

    def see(self, name: str, member: str) -> None:
        """Record one member of a set whose size is the metric, such as the rooms served."""

    def span(
        self, name: str, *, attributes: Attributes | None = None, headers: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Span]:
        """Open a span for tracing, as `Tracer.span`; spans timed inside become its children. Name and attributes never
        contain user text."""

    def unforeseen(self, error: BaseException, *, attributes: Attributes | None = None) -> None:
        """Report an unexpected error, as `ErrorReports.tell`. roomlore's own errors are expected and are skipped."""


class Tracer(Protocol):
    """Sends spans to a receiver. No call waits or fails if there is no receiver."""

    def span(
        self, name: str, *, attributes: Attributes | None = None, headers: Mapping[str, str] | None = None
    ) -> AbstractContextManager[Span]:
        """Open a span that is current inside the block. `headers`: of a request whose `traceparent` it continues. If
        the block raises, the span records the error's type only."""

    def record(self, name: str, seconds: float, *, attributes: Attributes | None = None) -> None:
        """Record a span that ends now and took this many seconds, inside the current one."""

    async def close(self) -> None:
        """Send what is queued, for a few seconds at most."""


class ErrorReports(Protocol):
    """Reports errors to people. No call waits or fails if there is no receiver."""

    def tell(self, error: BaseException, *, attributes: Attributes | None = None) -> None:
        """Send the error's type and origin, with those of its causes, and the ids in the log context of the request or
        the work. No user text is sent, including the error's own text, which may quote one."""

    async def close(self) -> None:
        """Send what is queued, for a few seconds at most."""


class Jobs(Protocol):
    """Runs background work at least once.

    Due work is always derived from stored data, so a job lost with a killed process is found again by the next regular
    run. A failed job is retried with growing delays; it never affects another.
    """

    def handle(self, name: str, work: Callable[[], Awaitable[object]], *, every_seconds: float) -> None:
        """Declare a job: it runs once soon after the start, again whenever requested, and at least this often."""

    def ask(self, name: str) -> None:
        """Request that the job runs soon. Never waits and never fails; several requests before it begins run it
        once."""

    async def close(self) -> None:
        """Let running jobs reach their next pause, and stop."""


class SessionCache(Protocol):
    """Sessions as text, cached beside the database.

    It may lose any entry at any time, and a value may be outdated: the caller compares it with the database. Every call
    may raise `CacheUnavailable`, within the adapter's timeout.
    """

    async def get(self, *, tenant: str, conversation_id: str) -> str | None:
        """Return the last value, or None if it is unknown, has expired or cannot be read as text."""

    async def put(self, *, tenant: str, conversation_id: str, value: str, seconds: int) -> None:
        """Store the value in place of an earlier one, for this many seconds from now."""

    async def drop(self, *, tenant: str, conversation_id: str) -> None:
        """Remove the value; no error if there is none."""

    async def close(self) -> None: ...


Webhook = Callable[..., Awaitable[None]]
"""Called with a JSON body and its `message_id`, the same for each attempt. Send it once, signed, to the one address
that is configured.

Return when the receiver has accepted it. Raise `Unavailable` if it cannot be reached, does not answer in time or does
not accept it, `InvalidInput` if the address is not allowed."""
