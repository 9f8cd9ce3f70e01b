"""The log output of a process that roomlore runs: on standard error, for people or as JSON."""

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Literal

import structlog

_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
_OWN = "roomlore"
_TRACES = frozenset({"exc_info", "exception", "stack_info"})


def configure(*, form: Literal["console", "json"], level: str) -> None:
    """Send structlog's lines and roomlore's own of `level` and above, and other libraries' warnings, to standard
    error."""
    lowest = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_traces,
            _renderer(form),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=_on_standard_error,
        cache_logger_on_first_use=False,
    )
    logging.getLogger(_OWN).setLevel(lowest)
    others = logging.getLogger()
    if not any(isinstance(handler, _Bridge) for handler in others.handlers):
        others.addHandler(_Bridge())


def where(error: BaseException) -> list[str]:
    """Return the files and lines that an error passed through, innermost last, without its text."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return frames[-12:]


class _Bridge(logging.Handler):
    """Passes records of the standard library's log to structlog with their extra fields, without tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.name.partition(".")[0] == _OWN

    def emit(self, record: logging.LogRecord) -> None:
        beside = {name: value for name, value in vars(record).items() if name not in _RECORD}
        said = record.getMessage()
        if "why" in beside:  # a program without a format of its own sees it in the text alone
            said = said.removesuffix(f": {beside['why']}")
        structlog.get_logger(record.name).log(record.levelno, said, logger=record.name, **beside)


def _on_standard_error(*_: Any) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.stderr)


def _renderer(form: str) -> Any:
    if form == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=True)
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())


def _without_traces(_: Any, __: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Remove the text of exceptions: a driver's message may quote user data."""
    return {name: value for name, value in event.items() if name not in _TRACES}
