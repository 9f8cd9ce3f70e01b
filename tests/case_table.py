"""One test that goes over a whole table of cases: it tells each that failed, not the first alone."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from traceback import extract_tb

import pytest


@contextmanager
def all_cases() -> Iterator[Callable[..., AbstractContextManager[None]]]:
    """Yield what a case is checked in, with its name: `with all_cases() as case: ... with case("GET", path): ...`.

    Raise at the end if any case failed, with the name, the lines and the error of each; also if there was none at all.
    """
    names: list[str] = []
    failed: list[str] = []

    @contextmanager
    def case(*name: object) -> Iterator[None]:
        names.append(" ".join(map(str, name))[:200])
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - told at the end
            lines = [frame.lineno for frame in extract_tb(error.__traceback__)[1:] if "/tests/" in frame.filename]
            failed.append(f"{names[-1]}\n  line {', '.join(map(str, lines))}: {type(error).__name__}: {error}")

    yield case
    assert names, "The table is empty."
    if failed:
        pytest.fail("\n".join([f"{len(failed)} of {len(names)} cases failed:", *failed]), pytrace=False)
