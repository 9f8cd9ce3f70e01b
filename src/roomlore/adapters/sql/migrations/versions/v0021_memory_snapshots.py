"""Add snapshots of the logs of memories."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "memory_snapshots",
        sa.Column("scope_key", key, primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("tenant", name, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("reached_from", sa.BigInteger(), nullable=False),
        sa.Column("in_force", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["scope_key"], ["memory_scopes.scope_key"], name="fk_memory_snapshots_memory_scopes"),
    )
    op.create_index("ix_memory_snapshots_reached_from", "memory_snapshots", ["scope_key", "reached_from", "number"])
