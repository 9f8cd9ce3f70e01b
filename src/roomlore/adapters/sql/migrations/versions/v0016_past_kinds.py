"""Add the kinds that a room had before, and until when."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("rooms", sa.Column("past_kinds", sa.Text(), nullable=False, server_default=""))
