"""The connections of psycopg that are open, with who made them: a leak is told of at the test that made it."""

import os
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

_FRAMES = 30
_PATIENCE_SECONDS = 5.0
_made: "WeakKeyDictionary[psycopg.Connection[Any], tuple[int, str]]" = WeakKeyDictionary()
_numbers = count(1)
_begin = psycopg.Connection.__init__


def _begin_and_tell(self: "psycopg.Connection[Any]", *given: Any, **named: Any) -> None:
    _begin(self, *given, **named)
    stack = "".join(traceback.format_list(traceback.extract_stack(limit=_FRAMES)[:-1]))
    test = os.environ.get("PYTEST_CURRENT_TEST", "no test")
    _made[self] = next(_numbers), f"made by {test}, on the thread {threading.current_thread().name}:\n{stack}"


def watch() -> None:
    """Note from now on who makes a synchronous connection."""
    psycopg.Connection.__init__ = _begin_and_tell  # type: ignore[method-assign]


@contextmanager
def all_closed(patience_seconds: float = _PATIENCE_SECONDS) -> Iterator[None]:
    """Raise `AssertionError` where a connection that was made inside is open at the end, with the stack of its maker. A
    thread that is just ending has time to close its own."""
    first, until = next(_numbers), time.monotonic() + patience_seconds
    yield
    while (left := _open_since(first)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left, "Connections to PostgreSQL were left open.\n" + "\n".join(left)


def _open_since(first: int) -> list[str]:
    return [told for connection, (number, told) in list(_made.items()) if number > first and not connection.closed]
