"""How long a call takes: by the clock, and of the processor in this process.

Only the standard library is used, since other programs are timed with this in environments of their own.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from typing import NamedTuple


class Took(NamedTuple):
    """Seconds."""

    wall: float
    processor: float

    def each(self, count: int) -> "Took":
        return Took(self.wall / count, self.processor / count)

    def and_(self, other: "Took") -> "Took":
        return Took(self.wall + other.wall, self.processor + other.processor)


async def took(call: Awaitable[object]) -> Took:
    worked, begun = time.process_time(), time.perf_counter()
    await call
    return Took(time.perf_counter() - begun, time.process_time() - worked)


async def timed(call: Awaitable[object]) -> float:
    return (await took(call)).wall


def spent(work: Callable[[], object]) -> Took:
    worked, begun = time.process_time(), time.perf_counter()
    work()
    return Took(time.perf_counter() - begun, time.process_time() - worked)


def clocked(work: Callable[[], object]) -> float:
    return spent(work).wall


def medians(calls: Sequence[Took]) -> Took:
    return Took(*(median(seconds) for seconds in zip(*calls, strict=True)))
