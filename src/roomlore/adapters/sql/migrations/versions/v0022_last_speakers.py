"""Add the index by which those who spoke last are found."""

from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.create_index("ix_participants_last_spoke_at", "participants", ["tenant", "last_spoke_at"])
