"""The state of the index of words, for databases that never wrote one: their words were read as build `words-2` did, so
that the index follows. Loads no Alembic, so a new database is made quickly."""

from sqlalchemy import Connection

READ_BEFORE = "0027"


def name_words(connection: Connection) -> None:
    """Say how the words were read, unless the database says it."""
    connection.exec_driver_sql(
        "INSERT INTO index_states (name, model, dimensions, generation, updated_at) "
        "SELECT 'words', 'words-2', 0, 'words-2', 0 WHERE NOT EXISTS (SELECT 1 FROM index_states WHERE name = 'words')"
    )
