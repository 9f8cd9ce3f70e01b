"""Add the titles of threads that a model wrote."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "thread_titles",
        sa.Column("room_key", key, primary_key=True, autoincrement=False),
        sa.Column("thread", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("tenant", name, nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["room_key"], ["rooms.room_key"], name="fk_thread_titles_rooms"),
        sqlite_with_rowid=False,
    )
    stale = sa.text("messages = 0")
    op.create_index("ix_thread_titles_stale", "thread_titles", ["room_key"], sqlite_where=stale, postgresql_where=stale)
