"""Add the owner of a memory, who said it, and the span in which it holds."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_LISTED = ("scope_key", "head", "kind", "status", "updated_at", "memory_id")


def upgrade() -> None:
    for column in (
        sa.Column("owner", sa.Text(), nullable=False, server_default=""),
        sa.Column("said_by", sa.Text(), nullable=False, server_default="[]"),
        sa.Column("valid_from", sa.BigInteger()),
        sa.Column("valid_until", sa.BigInteger()),
    ):
        op.add_column("memories", column)
    op.drop_index("ix_memories_scope", table_name="memories")
    op.create_index("ix_memories_scope", "memories", [*_LISTED, "valid_until"])
