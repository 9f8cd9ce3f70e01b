"""The connections, sockets and processes that are made, with who made them: a leak is told of at the test that made it.

One of psycopg that a test leaves open fails that test (`all_closed`). Any other is told of where it is collected, which
may be many tests later: that error begins with the test that made it and the lines that led there (`name_makers`).
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace, TracebackType
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

_FRAMES = 30
_PATIENCE_SECONDS = 5.0
_HELD = ("_sock", "_proc", "_pipe")
"""Where what holds another keeps it: the transports of asyncio."""

_open: "WeakKeyDictionary[Any, int]" = WeakKeyDictionary()
_makers: dict[int, "_Maker"] = {}
"""By the number of the object: what is collected is no longer in a dictionary of weak references."""
_numbers = count(1)


class _Maker:
    """The test that ran, the thread, and the lines that were being run. Text is made of it when it is asked for."""

    def __init__(self) -> None:
        self._test = os.environ.get("PYTEST_CURRENT_TEST", "no test")
        self._thread = threading.current_thread().name
        self._lines: list[tuple[str, int, str]] = []
        frame = sys._getframe(2)
        while frame is not None and len(self._lines) < _FRAMES:
            self._lines.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
            frame = frame.f_back

    def __str__(self) -> str:
        lines = "".join(f"  {path}:{line} in {name}\n" for path, line, name in self._lines)
        return f"made by {self._test}, on the thread {self._thread}, last call first:\n{lines}"


def _noting(begin: Callable[..., None], *, must_close: bool) -> Callable[..., None]:
    def begin_and_note(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        _makers[id(self)] = _Maker()
        if must_close:
            _open[self] = next(_numbers)

    return begin_and_note


def watch() -> None:
    """Note from now on who makes a connection of psycopg, a socket or a process."""
    for kind in (psycopg.Connection, psycopg.AsyncConnection):
        kind.__init__ = _noting(kind.__init__, must_close=True)  # type: ignore[method-assign]
    for other in (socket.socket, subprocess.Popen):
        other.__init__ = _noting(other.__init__, must_close=False)  # type: ignore[method-assign]


def name_makers() -> None:
    """Have the errors of what is collected while open begin with its maker. Call it when pytest has its own hook."""
    hook = sys.unraisablehook

    def tell(unraisable: Any) -> None:
        maker = _maker(unraisable.object) or _maker(_itself(unraisable.exc_traceback))
        if maker is not None and isinstance(unraisable.exc_value, ResourceWarning):
            told = {name: getattr(unraisable, name) for name in ("exc_type", "exc_value", "exc_traceback", "object")}
            unraisable = SimpleNamespace(**told, err_msg=f"Left open, {maker}Exception ignored in")
        hook(unraisable)

    sys.unraisablehook = tell


def _itself(traceback: TracebackType | None) -> object:
    """What is collected, where its own `__del__` warns."""
    return traceback.tb_frame.f_locals.get("self") if traceback else None


def _maker(left: object) -> _Maker | None:
    held = (getattr(left, name, None) for name in _HELD)
    return next((_makers[id(one)] for one in (left, *held) if id(one) in _makers), None)


@contextmanager
def all_closed(patience_seconds: float = _PATIENCE_SECONDS) -> Iterator[None]:
    """Raise `AssertionError` where a connection that was made inside is open at the end, with its maker. A thread that
    is just ending has time to close its own."""
    first, until = next(_numbers), time.monotonic() + patience_seconds
    yield
    while (left := _open_since(first)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left, "Connections to PostgreSQL were left open.\n" + "\n".join(left)


def _open_since(first: int) -> list[str]:
    made = [connection for connection, number in list(_open.items()) if number > first and not connection.closed]
    return [str(_makers[id(connection)]) for connection in made]
