"""Leases, the rooms in which a person wrote, and the successors of a memory's version."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    _make_leases()
    op.create_index("ix_participants_sender", "participants", ["tenant", "sender_id"])
    op.create_index("ix_memory_changes_memory", "memory_changes", ["tenant", "memory_id"])


def _make_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("holder", _NAME, nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_leases"),
        sqlite_with_rowid=False,
    )
