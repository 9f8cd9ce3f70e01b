"""Tools for tests of roomlore and of its plug-ins: builders, fixed clocks, faults, contract suites."""

from roomlore_testkit.builders import (
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
from roomlore_testkit.doubles import FaultyStorage, FrozenClock, InMemorySessionCache, SequentialIds, backends

__all__ = [
    "START",
    "FaultyStorage",
    "FrozenClock",
    "InMemorySessionCache",
    "SequentialIds",
    "backends",
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
