"""The outbox and state for vectors of memories."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _make_outbox()
    op.add_column("memory_scopes", sa.Column("index_version", sa.BigInteger(), nullable=False, server_default="0"))


def _make_outbox() -> None:
    op.create_table(
        "memory_outbox",
        sa.Column("scope_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("memory_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("queued", sa.BigInteger(), nullable=False),
        sa.Column("leased_until", sa.BigInteger()),
        sa.Column("lease", sa.BigInteger()),
        sa.PrimaryKeyConstraint("scope_key", "memory_key", name="pk_memory_outbox"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_outbox_queued", "memory_outbox", ["queued", "scope_key", "memory_key"])
