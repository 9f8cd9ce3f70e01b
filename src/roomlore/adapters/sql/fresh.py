"""A new SQLite database: its tables all at once, as the migrations would leave them, without loading Alembic.

`make schema` runs this module, which writes the statements anew by running the migrations; a test compares.
"""

import re
from pathlib import Path

from sqlalchemy import Connection, create_engine

from roomlore.adapters.sql import migrations

SCRIPT = Path(migrations.__file__).parent / "sqlite.sql"

_ANYTHING = "SELECT 1 FROM sqlite_master LIMIT 1"
_OWN = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT IN ({others}) ORDER BY rowid"
_STAMP = "SELECT 'INSERT INTO alembic_version (version_num) VALUES (' || quote(version_num) || ')' FROM alembic_version"
_SHADOWS = ("data", "idx", "config")


def is_new(connection: Connection) -> bool:
    """Whether it is a SQLite database that holds nothing at all: no table, and no view of another program either."""
    if connection.dialect.name != "sqlite":
        return False
    return connection.exec_driver_sql(_ANYTHING).first() is None


def make(connection: Connection) -> None:
    """Makes every table, in the transaction that is open."""
    for statement in SCRIPT.read_text(encoding="utf-8").strip().split("\n\n"):
        connection.exec_driver_sql(statement)


def statements(connection: Connection) -> str:
    """What makes a database like this one where it has no rows but the stamp of Alembic, as the migrations leave it:
    statements with an empty line between them. What FTS5 and SQLite make for themselves is left out."""
    others = ", ".join(f"'{name}'" for name in ("sqlite_sequence", *(f"message_index_{part}" for part in _SHADOWS)))
    found = connection.exec_driver_sql(_OWN.format(others=others)).scalars()
    stamp = connection.exec_driver_sql(_STAMP).scalars()
    return "\n\n".join(f"{_tidy(sql)};" for sql in (*found, *stamp)) + "\n"


def _tidy(sql: str) -> str:
    return re.sub(r"\s*\n\s*", "\n  ", sql).replace("\n  )", "\n)").strip()


def main() -> None:
    from roomlore.adapters.sql.upgrade import migrate

    with create_engine("sqlite://").begin() as connection:
        migrate(connection)
        SCRIPT.write_text(statements(connection), encoding="utf-8")


if __name__ == "__main__":
    main()
