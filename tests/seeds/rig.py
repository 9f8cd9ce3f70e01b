"""The only place, beside conftest.py, where the tests of the design documents touch parts of roomlore that may move."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from typer.testing import CliRunner, Result

import roomlore
from roomlore.surfaces.cli.app import app
from roomlore_server.http import create_app
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


def setting(name: str) -> str:
    """The value of a setting as `roomlore settings` shows it."""
    return next(str(one["value"]) for one in json.loads(command("settings", "--json").stdout) if one["name"] == name)


def memory_middleware(lore: roomlore.Lore | roomlore.SyncLore, scopes: Sequence[str], **options: Any) -> Any:
    """The middleware for agents of LangChain, which takes a second to import."""
    from roomlore_integrations.langchain import MemoryMiddleware

    return MemoryMiddleware(lore, scopes, **options)


def strategy(choose: Callable[..., Awaitable[Any]]) -> Any:
    """A way to choose a context, as `roomlore.open(strategies={name: ...})` takes it."""
    from roomlore.services.contexts import Strategy

    return Strategy(choose)


def alert_rules() -> dict[str, str]:
    """The expressions of the alerts that ship, by name."""
    rules = yaml.safe_load((files("roomlore_server.http") / "alerts.yaml").read_text(encoding="utf-8"))
    return {rule["alert"]: rule["expr"] for group in rules["groups"] for rule in group["rules"]}


def dashboard() -> list[dict[str, Any]]:
    """The panels of the dashboard that ships."""
    path = Path(__file__).parents[2] / "deploy" / "grafana" / "roomlore.json"
    return list(json.loads(path.read_text(encoding="utf-8"))["panels"])
