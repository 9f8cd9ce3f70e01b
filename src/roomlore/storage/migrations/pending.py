"""Messages whose keywords and words are counted and indexed later (`storage.pending`): two columns that databases
before it lack, and on SQLite triggers that leave such messages out. Loads no Alembic, so a new database is made
quickly."""

from sqlalchemy import Connection

from roomlore.storage.migrations.first_version import ENTER, LEAVE

PENDING = "0026"
_INDEX_LATER = (
    "DROP TRIGGER message_words_added",
    "DROP TRIGGER message_words_changed",
    "CREATE TRIGGER message_words_added AFTER INSERT ON message_words WHEN NOT new.pending "
    f"BEGIN {ENTER.format(row='new')} END",
    "CREATE TRIGGER message_words_changed AFTER UPDATE OF length, words ON message_words WHEN NOT new.pending "
    f"BEGIN {LEAVE.format(row='old')} {ENTER.format(row='new')} END",
    "CREATE TRIGGER message_words_settled AFTER UPDATE OF pending ON message_words "
    f"WHEN old.pending AND NOT new.pending BEGIN {ENTER.format(row='new')} END",
)


def add_pending(connection: Connection) -> None:
    """Add the columns. Servers of the version before leave them empty, and their messages are indexed at once."""
    sqlite = connection.dialect.name == "sqlite"
    connection.exec_driver_sql("ALTER TABLE rooms ADD COLUMN pending_from BIGINT")
    no = "0" if sqlite else "false"
    connection.exec_driver_sql(f"ALTER TABLE message_words ADD COLUMN pending BOOLEAN DEFAULT {no} NOT NULL")
    for statement in _INDEX_LATER if sqlite else ():
        connection.exec_driver_sql(statement)
