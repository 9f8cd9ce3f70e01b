"""The schema's history, on both engines."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from schemas import LATER, engine_of, schema_of, with_a_later_one
from sqlalchemy import inspect, text

from roomlore.core.errors import StorageUnavailable
from roomlore.storage import connect, migrations, opening, schema
from roomlore.storage.migrations.smaller_rows import SMALLER
from roomlore.storage.opening import migrate

_OPEN = """
import asyncio, sys
from roomlore.storage import connect

async def main():
    sys.stdin.readline()
    storage = await connect(sys.argv[1])
    await storage.ping()
    await storage.close()

asyncio.run(main())
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database without a table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'empty.db'}"
    return str(request.getfixturevalue("empty_postgres"))


def _versions(url: str) -> list[str]:
    engine = engine_of(url)
    with engine.connect() as connection:
        found = [row[0] for row in connection.execute(text("SELECT version_num FROM alembic_version"))]
    engine.dispose()
    return found


def _run(url: str, *statements: str) -> None:
    engine = engine_of(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def _belongs(dialect: str):
    """Passes over what one engine alone has: PostgreSQL's index of words, and the tables SQLite's own is made of."""

    def judge(thing, name, *_):
        return not name.startswith("message_index") and (dialect == "postgresql" or name != "ix_message_words_words")

    return judge


async def test_from_empty_to_head_gives_the_schema(empty_url):
    await (await connect(empty_url)).close()
    engine = engine_of(empty_url)
    with engine.connect() as connection:
        opts = {"compare_type": True, "include_object": _belongs(engine.dialect.name)}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_head_is_known_without_alembic():
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert scripts.get_heads() == [migrations.HEAD]


@pytest.fixture
def later_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have one more migration from the call on."""

    def add() -> None:
        monkeypatch.setattr(opening, "_SCRIPTS", with_a_later_one(tmp_path / "migrations"))
        monkeypatch.setattr(migrations, "HEAD", LATER)

    return add


def _clear(url: str) -> None:
    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).unlink()
        return
    _run(url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def _migrate(url: str) -> None:
    engine = engine_of(url)
    with engine.begin() as connection:
        migrate(connection)
    engine.dispose()


async def test_new_and_upgraded_databases_have_one_schema(empty_url, later_migration):
    _migrate(empty_url)
    by_alembic = schema_of(empty_url)
    _clear(empty_url)
    await (await connect(empty_url)).close()
    assert schema_of(empty_url) == by_alembic
    later_migration()
    await (await connect(empty_url)).close()
    upgraded = schema_of(empty_url)
    assert "mood" in str(upgraded)
    _clear(empty_url)
    await (await connect(empty_url)).close()
    assert schema_of(empty_url) == upgraded
    assert _versions(empty_url) == [LATER]


@pytest.mark.skipif(migrations.HEAD != SMALLER, reason="later migrations need Alembic")
@pytest.mark.parametrize("file", ["", "/new.db"])
def test_a_new_sqlite_database_is_made_without_alembic(file, tmp_path):
    url = f"sqlite:///{tmp_path}{file}" if file else "sqlite://"
    program = f"{_OPEN}\nassert 'alembic' not in sys.modules"
    subprocess.run([sys.executable, "-c", program, url], input="go\n", text=True, check=True)


@pytest.mark.parametrize("there", ["TABLE theirs (n INTEGER)", "VIEW theirs AS SELECT 1 AS n"])
async def test_a_file_with_what_another_program_made_gets_our_tables_beside_it(tmp_path, there):
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text(f"CREATE {there}"))
    await (await connect(url)).close()
    with engine.connect() as connection:
        names = {*inspect(connection).get_table_names(), *inspect(connection).get_view_names()}
    engine.dispose()
    assert {"theirs", "messages", "memories"} <= names
    assert _versions(url) == [migrations.HEAD]


async def test_opening_twice_changes_nothing(empty_url):
    await (await connect(empty_url)).close()
    await (await connect(empty_url)).close()
    assert _versions(empty_url) == [migrations.HEAD]


async def test_two_openings_at_once(empty_url):
    for storage in await asyncio.gather(connect(empty_url), connect(empty_url), connect(empty_url)):
        await storage.close()
    assert _versions(empty_url) == [migrations.HEAD]


async def test_a_file_is_opened_while_another_connection_holds_its_lock(tmp_path):
    """SQLite does not wait for the lock when a file is switched to WAL mode."""
    path = tmp_path / "chat.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE other (x)")
    holder.execute("BEGIN EXCLUSIVE")
    opening = asyncio.create_task(connect(f"sqlite:///{path}"))
    await asyncio.sleep(0.2)
    assert not opening.done()
    holder.execute("DROP TABLE other")
    holder.execute("COMMIT")
    holder.close()
    await (await opening).close()
    assert _versions(f"sqlite:///{path}") == [migrations.HEAD]


def test_processes_opening_a_fresh_database_at_once(empty_url):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _OPEN, empty_url], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    assert _versions(empty_url) == [migrations.HEAD]


@pytest.mark.parametrize(
    ("stamp", "says"), [("9999", "newer roomlore"), ("0001", "commit 526591a"), ("0021", "commit 526591a")]
)
async def test_a_database_of_another_version_is_refused(empty_url, stamp, says):
    await (await connect(empty_url)).close()
    _run(empty_url, f"UPDATE alembic_version SET version_num = '{stamp}'")
    with pytest.raises(StorageUnavailable, match=says):
        await connect(empty_url)
    assert _versions(empty_url) == [stamp]


_STAMPS = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"


@pytest.mark.parametrize(
    ("statements", "names"),
    [
        ([_STAMPS], "alembic_version"),
        ([_STAMPS, "INSERT INTO alembic_version VALUES ('0005')"], "alembic_version"),
        ([_STAMPS, "INSERT INTO alembic_version VALUES ('ae1027a6acf1')"], "alembic_version"),
        (["CREATE TABLE rooms (floor INTEGER)"], "rooms"),
        (["CREATE TABLE rooms (floor INTEGER)", "CREATE TABLE leases (until INTEGER)"], "leases, rooms"),
        (["CREATE VIEW ai_message AS SELECT 1 AS n"], "ai_message"),
        (
            [_STAMPS, "INSERT INTO alembic_version VALUES ('0005')", "CREATE TABLE rooms (room_id INTEGER)"],
            "alembic_version, rooms",
        ),
    ],
    ids=["no stamp", "a low stamp", "a strange stamp", "rooms", "two", "a view", "rooms with a stamp"],
)
async def test_tables_of_another_program_with_our_names_are_told(empty_url, statements, names):
    _run(empty_url, *statements)
    before = schema_of(empty_url)
    with pytest.raises(
        StorageUnavailable, match=f"Another program has tables .* own: {names}\\. Name another database"
    ):
        await connect(empty_url)
    assert schema_of(empty_url) == before


async def test_case_tells_no_tables_of_sqlite_apart(tmp_path):
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    _run(url, "CREATE TABLE Rooms (floor INTEGER)")
    with pytest.raises(StorageUnavailable, match="own: Rooms"):
        await connect(url)


async def test_a_schema_of_its_own_keeps_our_tables_from_those_of_another_program(empty_postgres):
    _run(empty_postgres, _STAMPS, "INSERT INTO alembic_version VALUES ('0005')", "CREATE TABLE rooms (floor INTEGER)")
    name = empty_postgres.rpartition("/")[2].partition("?")[0]
    _run(empty_postgres, "CREATE SCHEMA ours", f'ALTER DATABASE "{name}" SET search_path = ours, public')
    for _ in range(2):
        await (await connect(empty_postgres)).close()
    assert _versions(empty_postgres) == [migrations.HEAD]
    engine = engine_of(empty_postgres)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names("public") == ["alembic_version", "rooms"]
        assert "messages" in inspect(connection).get_table_names("ours")
    engine.dispose()


async def test_a_database_is_not_upgraded_while_it_is_copied_into_partitions(empty_postgres, later_migration):
    await (await connect(empty_postgres)).close()
    _run(empty_postgres, "CREATE TABLE partitioning (parts BIGINT)")
    later_migration()
    with pytest.raises(StorageUnavailable, match="--abandon"):
        await connect(empty_postgres)
    assert _versions(empty_postgres) == [SMALLER]
