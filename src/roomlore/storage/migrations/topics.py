"""The topics of messages: a column that databases before it lack, and its index. Loads no Alembic, so a new database is
made quickly."""

from sqlalchemy import Connection

TOPICS = "0025"
_NAME = {"sqlite": "TEXT", "postgresql": 'TEXT COLLATE "C"'}


def add_topics(connection: Connection) -> None:
    """Add the column. Servers of the version before leave it empty."""
    connection.exec_driver_sql(f"ALTER TABLE messages ADD COLUMN topic_id {_NAME[connection.dialect.name]}")
    connection.exec_driver_sql(
        "CREATE INDEX ix_messages_topic_id ON messages (room_key, topic_id, arrival) WHERE topic_id IS NOT NULL"
    )
