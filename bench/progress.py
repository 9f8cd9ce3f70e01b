"""A line a second on standard error, so that results can be piped on."""

import sys
import time


class Progress:
    """Tells how many of `total` things are done."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._started = self._told = time.perf_counter()

    def at(self, done: int) -> None:
        now = time.perf_counter()
        if now - self._told >= 1:
            self._told = now
            print(f"{self._what}: {done:,} of {self._total:,}", file=sys.stderr, flush=True)

    def end(self, done: int) -> float:
        """Seconds since the start."""
        took = time.perf_counter() - self._started
        print(f"{self._what}: {done:,} in {took:.1f} s", file=sys.stderr, flush=True)
        return took
