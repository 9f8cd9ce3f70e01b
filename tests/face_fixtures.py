"""An open roomlore, the service over it, and clients that speak for a key or for nobody."""

import os
from functools import cache

import httpx
import pytest
import typer.main
import typer.testing

import roomlore
from roomlore.settings import Settings
from roomlore_server.http import create_app

HERE = "http://127.0.0.1"

# Else each call of the command line reads the signatures of all commands anew.
typer.testing._get_command = cache(typer.main.get_command)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.upper().startswith(("MEMORY_", "ROOMLORE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def settings():
    return Settings(max_body_bytes=100_000, max_batch_messages=50, max_page=200, max_text_chars=20_000)


@pytest.fixture
async def lore(settings):
    async with roomlore.open("sqlite://", settings=settings) as opened:
        yield opened


@pytest.fixture
def app(lore):
    return create_app(lore)


@pytest.fixture
def connect(app):
    """Makes clients: `connect(key=..., client=..., base=...)`."""

    def make(*, key: str | None = None, client: str = "127.0.0.1", base: str = HERE) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app, client=(client, 1234))
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.AsyncClient(transport=transport, base_url=base, headers=headers)

    return make


@pytest.fixture
async def http(connect):
    async with connect() as client:
        yield client


def message(number: int = 1, *, room: str = "tea", **more: object) -> dict:
    return {"id": f"m{number}", "room_id": room, "sender_id": "ann", "text": f"word {number}", **more}


@pytest.fixture
def make_message():
    return message
