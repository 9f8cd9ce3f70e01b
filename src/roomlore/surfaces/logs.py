"""How log lines leave a process that roomlore owns: on standard error, for people or as JSON."""

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal

import structlog

_FOREIGN = frozenset({"exc_info", "exception", "stack_info"})


def configure(*, form: Literal["console", "json"], level: str) -> None:
    """Sends structlog and the standard library's log to standard error, `level` and above."""
    renderer: Any = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    if form == "json":
        renderer = structlog.processors.JSONRenderer(ensure_ascii=True)
    lowest = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            without_traces,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(
        level=max(lowest, logging.WARNING), stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s", force=True
    )


def without_traces(_: Any, __: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Drops exception texts: a driver's message may quote what somebody wrote. `where` and `error` name the place."""
    return {name: value for name, value in event.items() if name not in _FOREIGN}


def where(error: BaseException) -> list[str]:
    """The files and lines an error passed through, innermost last, without its text."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return frames[-12:]


def note(text: str) -> None:
    """One warning."""
    structlog.get_logger("roomlore").warning(text)
