"""One test that goes over a whole table of cases: it tells each that failed, not the first alone."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from traceback import extract_tb

import pytest

_LONGEST_NAME = 200
_FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""A skip is one of them: it would end the test as skipped, whatever had failed before."""


@contextmanager
def all_cases() -> Iterator[Callable[..., AbstractContextManager[None]]]:
    """Yield `case`, a context manager that holds one case: `with all_cases() as case: ... with case("GET", path): ...`.

    At the end, raise a failure that tells the name, the lines and the error of each case that failed; also if there was
    no case at all. An error that is raised between the cases goes on, with what failed before as its note.
    """
    names: list[str] = []
    failed: list[str] = []

    @contextmanager
    def case(*name: object) -> Iterator[None]:
        names.append(_printable(name))
        try:
            yield
        except _FAILURES as error:
            failed.append(f"{names[-1]}\n  {_failure_text(error)}")

    def report() -> str:
        return "\n".join([f"{len(failed)} of {len(names)} cases failed:", *failed])

    try:
        yield case
    except pytest.skip.Exception:
        if not failed:
            raise
    except BaseException as error:
        if failed:
            error.add_note(report())
        raise
    if failed:
        pytest.fail(report(), pytrace=False)
    if not names:
        pytest.fail("The table is empty.", pytrace=False)


def _printable(name: tuple[object, ...]) -> str:
    """Return the parts in one line, with escapes for what is no character or cannot be shown."""
    joined = " ".join(map(str, name))[:_LONGEST_NAME]
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in joined)


def _failure_text(error: BaseException) -> str:
    """Return the error in words, with its lines in the file of the case."""
    inner = extract_tb(error.__traceback__)[1:]
    lines = ", ".join(str(frame.lineno) for frame in inner if frame.filename == inner[0].filename)
    return f"line {lines}: {type(error).__name__}: {error}"
