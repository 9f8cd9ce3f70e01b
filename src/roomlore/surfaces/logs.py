"""The log output of a process that roomlore runs: on standard error, for people or as JSON."""

import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Literal

_OWN = "roomlore"


def configure(*, form: Literal["console", "json"], level: str, at_once: bool = True) -> None:
    """Send structlog's lines and roomlore's own of `level` and above, and other libraries' warnings, to standard
    error. `at_once`: False loads structlog with the first line, for a program that does not use it itself."""
    lowest = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger(_OWN).setLevel(lowest)
    others = logging.getLogger()
    for handler in others.handlers[:]:
        if isinstance(handler, _Bridge):
            others.removeHandler(handler)
    others.addHandler(bridge := _Bridge(partial(_lines, form, lowest)))
    if at_once:
        bridge.open()


def _lines(form: Literal["console", "json"], lowest: int) -> Callable[[logging.LogRecord], None]:
    from roomlore.surfaces import log_lines

    log_lines.configure(form, lowest)
    return log_lines.write


def where(error: BaseException) -> list[str]:
    """Return the files and lines that an error passed through, innermost last, without its text."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return frames[-12:]


class _Bridge(logging.Handler):
    """Passes records of the standard library's log to structlog, which `lines` loads."""

    def __init__(self, lines: Callable[[], Callable[[logging.LogRecord], None]]) -> None:
        super().__init__()
        self.open = cache(lines)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.name.partition(".")[0] == _OWN

    def emit(self, record: logging.LogRecord) -> None:
        self.open()(record)
