"""A circuit breaker: a provider that keeps failing is left alone for a while, then tried once."""

from dataclasses import dataclass, replace

FAILURES = 3
FIRST_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 300.0
_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class Breaker:
    """The state of one provider's model. Times are seconds of a clock that only grows.

    `failures`: how many in a row. No call is made before `open_until`. Then, after too many failures, one call may try,
    and `trying_until` keeps others off while it does.
    """

    failures: int = 0
    open_until: float = float("-inf")
    trying_until: float = float("-inf")

    @property
    def is_open(self) -> bool:
        """Whether calls are kept off, but for one that tries after each pause."""
        return self.failures >= FAILURES

    def allows(self, now: float) -> bool:
        """Whether a call may be made now."""
        return now >= self.open_until and (not self.is_open or now >= self.trying_until)

    def tried(self, now: float, *, seconds: float) -> "Breaker":
        """A call begins that may last so long."""
        return replace(self, trying_until=now + seconds) if self.is_open else self

    def succeeded(self) -> "Breaker":
        return Breaker()

    def failed(self, now: float, *, wait_seconds: float | None = None) -> "Breaker":
        """`wait_seconds`: how long the provider itself asks to be left alone. Calls that began together and fail
        together count until it opens, and no further."""
        if self.is_open and now < self.open_until:
            return self
        failures = self.failures + 1
        pause = max(wait_seconds or 0.0, _pause(failures))
        return Breaker(failures=failures, open_until=now + min(pause, LONGEST_PAUSE_SECONDS))

    def abandoned(self) -> "Breaker":
        """A call ended without telling anything: the caller did not wait for it. Another may try."""
        return replace(self, trying_until=float("-inf"))


def _pause(failures: int) -> float:
    """Doubles with each failure after the one that opened it."""
    if failures < FAILURES:
        return 0.0
    return FIRST_PAUSE_SECONDS * 2.0 ** min(failures - FAILURES, _DOUBLINGS)
