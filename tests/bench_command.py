"""`python -m bench` as tests run it: in their own process, which has imported roomlore, as has what it forks from."""

import io
from contextlib import redirect_stdout

from bench.__main__ import main

from forked_process import begin


def bench(*words: str, misses_goals: bool = False) -> str:
    """Run the bench and return what it prints. Raises `AssertionError` with that if it ends with an error; what misses
    its goals may."""
    begin()
    with redirect_stdout(io.StringIO()) as printed:
        try:
            main(words)
        except SystemExit as ended:
            if not misses_goals:
                raise AssertionError(f"{printed.getvalue()}\n{ended}") from ended
    return printed.getvalue()
