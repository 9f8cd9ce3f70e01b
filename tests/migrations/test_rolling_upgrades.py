"""Servers of the version before go on while the first server of a new one migrates their database.

So a migration may only add: tables, columns that may be left out, indexes that refuse nothing. What the statements of
the version before name must stay as it is.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from schemas import LATER, with_a_later_one
from sqlalchemy import Connection, create_engine, inspect, text

from roomlore.storage import migrations
from roomlore.storage.migrations.first_version import FIRST


@dataclass
class _Schema:
    """What statements can rely on. `columns`: of tables and views; type and whether it may be NULL. `needed`: the
    columns that an INSERT has to name. `refusals`: what makes a row impossible: keys, unique indexes, checks."""

    columns: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)
    needed: set[tuple[str, str]] = field(default_factory=set)
    refusals: set[tuple[str, str]] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)


def _look(connection: Connection) -> _Schema:
    looked, found = inspect(connection), _Schema()
    found.tables = {name for name in looked.get_table_names() if not name.startswith("message_index")}
    for name in (*found.tables, *looked.get_view_names()):
        for column in looked.get_columns(name):
            place = (name, column["name"])
            found.columns[place] = (str(column["type"]), column["nullable"])
            if not column["nullable"] and column["default"] is None and column.get("autoincrement") is not True:
                found.needed.add(place)
    for name in found.tables:
        for refusal in _refusals(looked, name):
            found.refusals.add((name, refusal))
    return found


def _refusals(looked: Any, table: str) -> list[str]:
    keys = [f"key to {key['referred_table']} {key['constrained_columns']}" for key in looked.get_foreign_keys(table)]
    unique = [f"unique {one['column_names']}" for one in looked.get_indexes(table) if one["unique"]]
    unique += [f"unique {one['column_names']}" for one in looked.get_unique_constraints(table)]
    checks = [f"check {one['sqltext']}" for one in looked.get_check_constraints(table)]
    return [*keys, *unique, *checks, f"primary key {looked.get_pk_constraint(table)['constrained_columns']}"]


def _breaks(before: _Schema, after: _Schema) -> set[str]:
    """Return what a server of the version before could not go on with."""
    gone = {f"{place} is gone or another" for place, its in before.columns.items() if after.columns.get(place) != its}
    needed = {f"{place} has to be named" for place in after.needed - before.needed if place[0] in before.tables}
    refused = {f"{place} is refused" for place in after.refusals - before.refusals if place[0] in before.tables}
    return gone | needed | refused


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return "sqlite://"
    return str(request.getfixturevalue("empty_postgres")).replace("postgresql://", "postgresql+psycopg://")


def _broken(url: str, scripts: Path) -> dict[str, set[str]]:
    """Return what each migration after the first breaks for servers of the version before."""
    broken: dict[str, set[str]] = {}
    engine = create_engine(url)
    with engine.connect() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(scripts))
        first, *later = [script.revision for script in ScriptDirectory(str(scripts)).walk_revisions()][::-1]
        command.upgrade(config, first)
        before = _look(connection)
        assert {"rooms", "messages", "alembic_version"} <= before.tables
        for revision in later:
            command.upgrade(config, revision)
            after = _look(connection)
            broken[revision] = _breaks(before, after)
            before = after
        assert MigrationContext.configure(connection).get_current_revision() == (later or [first])[-1]
        connection.rollback()
    engine.dispose()
    return broken


def test_servers_of_the_version_before_can_go_on_after_every_migration(empty_url, tmp_path):
    """A made-up migration comes last: there is one to compare even while the first is the only one."""
    broken = _broken(empty_url, with_a_later_one(tmp_path / "migrations"))
    assert list(broken)[-1] == LATER
    assert migrations.HEAD in {FIRST, *broken}
    assert {revision: found for revision, found in broken.items() if found} == {}


def test_a_migration_that_takes_a_column_away_is_found(empty_url, tmp_path):
    scripts = with_a_later_one(tmp_path / "migrations", _TAKES_THE_LINK_WALK)
    assert _broken(empty_url, scripts)[LATER] == {"('rooms', 'link_walk') is gone or another"}


_TAKES_THE_LINK_WALK = f"""
from alembic import op

revision = "{LATER}"
down_revision = "{migrations.HEAD}"


def upgrade() -> None:
    op.drop_column("rooms", "link_walk")
"""


@pytest.mark.parametrize(
    ("statement", "breaks"),
    [
        ("CREATE TABLE others (name TEXT NOT NULL UNIQUE)", set()),
        ("CREATE INDEX by_text ON things (text)", set()),
        ("ALTER TABLE things ADD COLUMN more TEXT", set()),
        ("ALTER TABLE things ADD COLUMN more TEXT NOT NULL DEFAULT ''", set()),
        ("ALTER TABLE things RENAME COLUMN text TO said", {"('things', 'text') is gone or another"}),
        ("ALTER TABLE things DROP COLUMN text", {"('things', 'text') is gone or another"}),
        ("CREATE UNIQUE INDEX one_text ON things (text)", {"('things', \"unique ['text']\") is refused"}),
    ],
)
def test_what_only_adds_breaks_nothing(statement, breaks):
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE things (number INTEGER PRIMARY KEY, text TEXT)"))
        before = _look(connection)
        connection.execute(text(statement))
        found = _breaks(before, _look(connection))
    engine.dispose()
    assert breaks <= found
    assert bool(found) == bool(breaks)


def test_a_column_that_has_to_be_named_breaks_the_version_before(empty_postgres):
    engine = create_engine(empty_postgres.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE things (number BIGINT PRIMARY KEY)"))
        before = _look(connection)
        connection.execute(text("ALTER TABLE things ADD COLUMN more TEXT NOT NULL"))
        assert _breaks(before, _look(connection)) == {"('things', 'more') has to be named"}
    engine.dispose()
