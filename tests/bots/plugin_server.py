"""`roomlore serve` as a process of its own, for plugins that speak HTTP."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forked_process import ForkedProgram


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[str]:
    """Serve a new store in the folder. Yields the URL; the log is in serve.log."""
    for name in [name for name in os.environ if name.startswith(("MEMORY_", "ROOMLORE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    with Path("serve.log").open("wb") as log:
        process = ForkedProgram("roomlore", "--db", "chat.db", "serve", "--port", "0", error=log.fileno())
        try:
            yield re.search(r"http://\S+", process.stdout.readline().decode()).group()
        finally:
            process.close()
