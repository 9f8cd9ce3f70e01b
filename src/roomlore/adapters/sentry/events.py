"""An error as Sentry takes it: types and places, and nobody's text. An error's own text is left out, since it may quote
a message; so are local variables, the lines of the source, and where on the machine the files lie."""

from collections.abc import Iterator, Mapping
from itertools import islice
from types import TracebackType
from typing import Any

from sentry_sdk.types import Event

_MOST_ERRORS = 10
_MOST_FRAMES = 60


def event_of(error: BaseException, tags: Mapping[str, str | int | float | bool]) -> Event:
    """`tags`: what people may look for it by."""
    chain = [_told(one) for one in islice(_with_causes(error), _MOST_ERRORS)]
    values = {name: str(value) for name, value in tags.items()}
    return {"level": "error", "exception": {"values": chain[::-1]}, "tags": values}


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """The error, then what it was raised from or while handling, and what it holds where it is a group."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        before = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        waiting += [before] if before else []


def _told(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    return {"type": kind.__qualname__, "module": kind.__module__, "stacktrace": {"frames": _frames(error)}}


def _frames(error: BaseException) -> list[dict[str, Any]]:
    """The innermost last, as Sentry wants them."""
    return [_frame(trace) for trace in _traces(error.__traceback__)][-_MOST_FRAMES:]


def _traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _frame(trace: TracebackType) -> dict[str, Any]:
    code = trace.tb_frame.f_code
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    return {
        "filename": code.co_filename.replace("\\", "/").rpartition("/")[2],
        "function": code.co_name,
        "module": module,
        "lineno": trace.tb_lineno,
        "in_app": module.partition(".")[0] == "roomlore",
    }
