"""Add the log of corrected links."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "link_corrections",
        sa.Column("room_key", key, primary_key=True, autoincrement=False),
        sa.Column("arrival", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("tenant", name, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("answers", sa.BigInteger()),
        sa.Column("standing", sa.Boolean(), nullable=False),
        sa.Column("corrected_by", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("errors", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["room_key", "arrival"],
            ["messages.room_key", "messages.arrival"],
            name="fk_link_corrections_messages",
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_link_corrections_number", "link_corrections", ["room_key", "number"], unique=True)
