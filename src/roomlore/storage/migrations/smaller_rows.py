"""A form of the index of words in SQLite that takes fewer bytes than that of the first version. Loads no Alembic, so a
new database is made quickly.

The number of a message there is its arrival. Before, its room and its length were part of it; but each word begins with
its room, so a word and an arrival belong to one message. A database of many messages keeps the first form, as rewriting
it would keep others waiting. It is read as well.
"""

from collections.abc import Iterator

from sqlalchemy import Connection

from roomlore.storage.migrations.first_version import NUMBER, TERMS

SMALLER = "0028"
_MANY = 20_000
_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'message_words'"
_REINDEX = (
    "INSERT INTO message_index (message_index) VALUES ('delete-all')",
    f"INSERT INTO message_index (rowid, words) SELECT w.arrival, {TERMS.format(row='w')} "  # noqa: S608
    "FROM message_words w WHERE w.words <> '' AND NOT w.pending ORDER BY w.room_key, w.arrival",
)


def make_smaller(connection: Connection) -> None:
    """Rewrite the index of words, in the open transaction, if there are few messages."""
    few = f"SELECT count(*) <= {_MANY} FROM (SELECT 1 FROM messages LIMIT {_MANY + 1})"  # noqa: S608
    if connection.dialect.name != "sqlite" or not connection.exec_driver_sql(few).scalar_one():
        return
    for statement in (*_renumbering(connection), *_REINDEX):
        connection.exec_driver_sql(statement)


def _renumbering(connection: Connection) -> Iterator[str]:
    """Yield the statements after which the triggers number a message by its arrival."""
    for name, sql in connection.exec_driver_sql(_TRIGGERS).all():
        yield f"DROP TRIGGER {name}"
        for row in ("new", "old"):
            sql = sql.replace(NUMBER.format(row=row), f"{row}.arrival")
        yield sql
