"""The commands of docs/how-to/back-up-and-restore.md, as they stand, on SQLite and on PostgreSQL.

Redis holds what came after the back-up."""

import psycopg
import pytest
from doc_blocks import blocks_of
from doc_follow import does
from doc_page import Page
from sqlalchemy import make_url

import roomlore
from roomlore.settings import Settings

PAGE = "docs/how-to/back-up-and-restore.md"
SAVE_FILES, BRING_FILES, SAVE_SERVER, BRING_SERVER, IN_A_CONTAINER, EMPTY_REDIS, CHECK = blocks_of(PAGE)


@pytest.fixture
def page(commands, tmp_path, request):
    followed = Page(PAGE, tmp_path, commands, request.getfixturevalue)
    yield followed
    followed.close()


@pytest.fixture
def shell(page):
    """Runs a block with variables of the reader's; anything but success fails the test."""

    def run(block, **environment: str) -> None:
        page.environment |= environment
        assert does(page, block) == "run"

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


async def test_sqlite(shell, page, redis_url):
    url = f"sqlite:///{page.folder / 'roomlore.db'}"
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


def test_the_command_in_a_container_is_one_for_the_compose_file(page):
    assert does(page, IN_A_CONTAINER) == "checked"
