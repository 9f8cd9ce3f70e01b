"""The schema's history, on both engines."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from roomlore.adapters.sql import connect, migrations, schema, upgrade
from roomlore.adapters.sql.upgrade import migrate
from roomlore.core.errors import StorageUnavailable

_OPEN = """
import asyncio, sys
from roomlore.adapters.sql import connect

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


def _engine(url: str):
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://"))


def _versions(url: str) -> list[str]:
    engine = _engine(url)
    with engine.connect() as connection:
        found = [row[0] for row in connection.execute(text("SELECT version_num FROM alembic_version"))]
    engine.dispose()
    return found


def _belongs(dialect: str):
    """Passes over what one engine alone has: PostgreSQL's index of words, and the tables SQLite's own is made of."""

    def judge(thing, name, *_):
        return not name.startswith("message_index") and (dialect == "postgresql" or name != "ix_message_words_words")

    return judge


async def test_from_empty_to_head_gives_the_schema(empty_url):
    await (await connect(empty_url)).close()
    engine = _engine(empty_url)
    with engine.connect() as connection:
        opts = {"compare_type": True, "include_object": _belongs(engine.dialect.name)}
        context = MigrationContext.configure(connection, opts=opts)
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_head_is_known_without_alembic():
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert scripts.get_heads() == [migrations.HEAD]


def test_a_new_sqlite_database_is_what_the_migrations_leave():
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        migrate(connection)
        assert upgrade.statements(connection) == upgrade.SCRIPT.read_text(encoding="utf-8"), (
            "`make schema` writes it anew"
        )
    engine.dispose()


def _rows(make) -> dict[str, list[tuple]]:
    """Return the rows of each table that has some, in a SQLite database made by these migrations."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        make(connection)
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"))
        found = {name: connection.execute(text(f'SELECT * FROM "{name}"')).all() for name in names.scalars()}
    engine.dispose()
    return {name: [tuple(row) for row in rows] for name, rows in found.items() if rows}


def test_the_migrations_leave_no_rows_but_the_stamp():
    """So that a new database can be made of statements alone; an index of FTS5 writes its own first rows."""
    left = _rows(migrate)
    assert {name for name in left if not name.startswith("message_index_")} == {"alembic_version"}
    assert left == _rows(upgrade.make)


@pytest.mark.parametrize("there", ["TABLE theirs (n INTEGER)", "VIEW theirs AS SELECT 1 AS n"])
def test_a_database_with_anything_in_it_is_not_new(there):
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        assert upgrade.is_new(connection)
        connection.execute(text(f"CREATE {there}"))
        assert not upgrade.is_new(connection)
    engine.dispose()


@pytest.mark.parametrize("file", ["", "/new.db"])
def test_a_new_sqlite_database_is_made_without_alembic(file, tmp_path):
    url = f"sqlite:///{tmp_path}{file}" if file else "sqlite://"
    program = f"{_OPEN}\nassert 'alembic' not in sys.modules"
    subprocess.run([sys.executable, "-c", program, url], input="go\n", text=True, check=True)


@pytest.mark.parametrize("there", ["TABLE theirs (n INTEGER)", "VIEW theirs AS SELECT 1 AS n"])
async def test_a_file_with_what_another_program_made_gets_our_tables_beside_it(tmp_path, there):
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    engine = _engine(url)
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


async def test_a_newer_database_is_refused(empty_url):
    await (await connect(empty_url)).close()
    engine = _engine(empty_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StorageUnavailable, match="newer roomlore"):
        await connect(empty_url)
    assert _versions(empty_url) == ["9999"]
