"""The databases that tests take in turn: as migrated for each, whatever the one before did."""

import psycopg
import pytest
from sqlalchemy import make_url


@pytest.fixture
def execute(postgres_server):
    """`execute(database, statement)` gives the rows, where there are any."""

    def run(database: str, statement: str) -> list[tuple]:
        url = make_url(postgres_server).set(database=database).render_as_string(hide_password=False)
        with psycopg.connect(url, autocommit=True) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []

    return run


def test_a_filled_one_is_emptied_and_has_another_name(postgres_server, postgres_copies, execute):
    first = postgres_copies.take()
    execute(first, "INSERT INTO leases VALUES ('default', 'tidy', 'somebody', 1)")
    scope = "INSERT INTO memory_scopes (tenant, scope, changes, active, created_at) VALUES ('t', 'user:a', 1, 1, 1)"
    execute(first, scope)
    url = make_url(postgres_server).set(database=first).render_as_string(hide_password=False)
    left_open = psycopg.connect(url)
    left_open.execute("LOCK TABLE leases")
    postgres_copies.give_back(first)
    left_open.close()
    second = postgres_copies.take()
    assert second != first
    assert execute("postgres", f"SELECT FROM pg_database WHERE datname = '{first}'") == []
    assert execute(second, "SELECT * FROM leases") == []
    assert execute(second, f"{scope} RETURNING scope_key") == [(1,)]
    postgres_copies.give_back(second)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE leases ADD COLUMN more int",
        "ALTER TABLE leases DROP COLUMN until",
        "CREATE SCHEMA another",
        "CREATE INDEX another ON leases (until)",
        "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "GRANT SELECT ON leases TO PUBLIC",
        "UPDATE alembic_version SET version_num = '1'",
        "ANALYZE leases",
    ],
)
def test_one_that_was_changed_otherwise_is_dropped(postgres_copies, execute, change):
    name = postgres_copies.take()
    execute(name, change)
    postgres_copies.give_back(name)
    assert execute("postgres", f"SELECT FROM pg_database WHERE datname = '{name}'") == []
