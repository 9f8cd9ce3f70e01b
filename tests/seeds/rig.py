"""The only place, beside conftest.py, where the tests of the design documents touch parts of roomlore that may move."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

import roomlore
from roomlore.surfaces.cli.app import app
from roomlore.surfaces.http import create_app
from roomlore_testkit import FrozenClock

HERE = "http://127.0.0.1"


@asynccontextmanager
async def served(lore: roomlore.Lore) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the HTTP service over an open roomlore."""
    transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1234))
    async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
        yield client


@contextmanager
def held_clock(at: datetime) -> Iterator[FrozenClock]:
    """A clock that every roomlore opened inside goes by, until it is moved."""
    clock = FrozenClock(at)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("roomlore.wiring.resources.SystemClock", lambda: clock)
        yield clock


def command(*words: str) -> Result:
    """What `roomlore WORDS` answers."""
    return CliRunner().invoke(app, list(words))


def memory_middleware(lore: roomlore.Lore | roomlore.SyncLore, scopes: Sequence[str], **options: Any) -> Any:
    """The middleware for agents of LangChain, which takes a second to import."""
    from roomlore.surfaces.langchain import MemoryMiddleware

    return MemoryMiddleware(lore, scopes, **options)
