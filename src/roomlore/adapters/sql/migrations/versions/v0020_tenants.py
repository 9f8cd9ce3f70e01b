"""Add the limits of tenants, what they used, and the archives of messages."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "tenant_limits",
        sa.Column("tenant", name, primary_key=True),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "tenant_counts",
        sa.Column("tenant", name, primary_key=True),
        sa.Column("name", name, primary_key=True),
        sa.Column("period", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "archives",
        sa.Column("tenant", name, primary_key=True),
        sa.Column("archive_id", name, primary_key=True),
        sa.Column("room_id", name, nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("first_arrival", sa.BigInteger(), nullable=False),
        sa.Column("last_arrival", sa.BigInteger(), nullable=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("checksum", sa.Text(), nullable=False),
        sa.Column("archived_at", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_archives_room", "archives", ["tenant", "room_id", "first_arrival"])
