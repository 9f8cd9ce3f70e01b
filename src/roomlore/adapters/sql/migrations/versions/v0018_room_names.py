"""Add the names of rooms."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("rooms", sa.Column("room_name", sa.Text(), nullable=False, server_default=""))
