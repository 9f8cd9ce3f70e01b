"""The plan by which an engine runs a statement."""

import re
import sqlite3

import psycopg
from sqlalchemy import make_url

from roomlore.storage.engine import Statement
from roomlore.storage.postgres import ALONG_INDEXES


def plan(url: str, statement: Statement) -> str:
    """Whatever its parameters are."""
    if url.startswith("sqlite"):
        compiled = statement.on(make_url("sqlite://").get_dialect()())
        connection = sqlite3.connect(str(make_url(url).database))
        rows = connection.execute(f"EXPLAIN QUERY PLAN {compiled.sql}", (None,) * len(compiled.names)).fetchall()
        connection.close()
        return "\n".join(row[3] for row in rows)
    numbers = iter(range(1, 100))
    compiled = statement.on(make_url("postgresql+psycopg://").get_dialect()(paramstyle="format"))
    generic = re.sub("%s", lambda _: f"${next(numbers)}", compiled.sql)
    with psycopg.connect(url) as connection:
        for setting in ALONG_INDEXES:
            connection.execute(setting.encode())
        return "\n".join(row[0] for row in connection.execute(f"EXPLAIN (GENERIC_PLAN) {generic}".encode()))


def without_statistics(url: str) -> None:
    """Keeps PostgreSQL from making statistics by itself: those made while a transaction fills a table call it empty."""
    if not url.startswith("sqlite"):
        with psycopg.connect(url, autocommit=True) as connection:
            tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            for (table,) in tables:
                connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())


def analyse(url: str) -> None:
    """Gives the engine its statistics."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(str(make_url(url).database))
        connection.execute("ANALYZE")
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")
