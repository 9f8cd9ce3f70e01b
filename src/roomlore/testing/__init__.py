"""Tools for tests of roomlore and of its plug-ins: builders, fixed clocks, faults, contract suites.

The suites in `roomlore.testing.contracts` need pytest and pytest-asyncio; the rest needs nothing.
"""

from roomlore.testing.builders import (
    START,
    change,
    checkpoint,
    entry,
    evolution,
    features,
    link,
    memory,
    message,
    session,
    usage_record,
)
from roomlore.testing.doubles import FaultyStorage, FrozenClock, InMemorySessionCache, SequentialIds

__all__ = [
    "START",
    "FaultyStorage",
    "FrozenClock",
    "InMemorySessionCache",
    "SequentialIds",
    "change",
    "checkpoint",
    "entry",
    "evolution",
    "features",
    "link",
    "memory",
    "message",
    "session",
    "usage_record",
]
