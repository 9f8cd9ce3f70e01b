"""One thread that watches how long each test takes.

pytest-timeout starts and joins a thread for every test, and so does pytest's `faulthandler_timeout`. On a machine whose
processors are all busy, each of these waits for its turn: 20 milliseconds a test, for 15,000 tests.
"""

import faulthandler
import threading
import time
from collections.abc import Callable
from typing import Any

Late = Callable[[Any, Any], object]
EVERY_SECONDS = 10.0


class Watchdog:
    """Calls `late(item, settings)`, on its own thread, if a test takes longer than `settings.timeout` seconds. If a
    test holds Python's lock, so that no other thread runs, the stacks are written to the file `stderr` instead."""

    def __init__(self, late: Late, stderr: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._late, self._stderr, self._clock = late, stderr, clock
        self._watched: tuple[float, Any, Any] | None = None
        self._thread: threading.Thread | None = None

    def begin(self, item: Any, settings: Any) -> None:
        """Watch this test from now on. The first one starts the thread."""
        self._watched = (self._clock() + settings.timeout, item, settings)
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, args=(settings.timeout,), name="watchdog", daemon=True)
            self._thread.start()

    def end(self) -> None:
        self._watched = None

    def look(self) -> None:
        """Call `late` if the time of the test that runs is over."""
        watched = self._watched
        if watched is not None and self._clock() >= watched[0]:
            self._late(*watched[1:])

    def _watch(self, seconds: float) -> None:
        while True:
            faulthandler.dump_traceback_later(seconds + EVERY_SECONDS, file=self._stderr)
            time.sleep(EVERY_SECONDS)
            self.look()
