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
from tuned import tuned

PAGE = "docs/how-to/back-up-and-restore.md"
_BLOCKS = blocks_of(PAGE)
ONE_COMMAND, BACK, SAVE_FILES, BRING_FILES, SAVE_SERVER, BRING_SERVER, IN_A_CONTAINER = _BLOCKS[:7]
EMPTY_REDIS, CHECK = _BLOCKS[-2:]


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


@pytest.fixture(autouse=True)
def _tuned():
    with tuned(redis_timeout_seconds=30):
        yield


def opened(url: str, redis: str):
    settings = Settings(redis_url=redis)
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


async def test_one_command(shell, page, redis_url):
    await before(f"sqlite:///{page.folder / 'roomlore.db'}", redis_url)
    (page.folder / "backups").mkdir()
    shell(ONE_COMMAND)
    await after_the_backup(f"sqlite:///{page.folder / 'roomlore.db'}", redis_url)
    shell(BACK)
    shell(EMPTY_REDIS, MEMORY_REDIS_URL=redis_url)
    await restored(f"sqlite:///{page.folder / 'restored.db'}", redis_url)


def test_the_command_in_a_container_is_one_for_the_compose_file(page):
    assert does(page, IN_A_CONTAINER) == "checked"
