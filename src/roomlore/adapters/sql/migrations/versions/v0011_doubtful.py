"""Why a memory looks doubtful."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("memories", sa.Column("doubtful", sa.Text(), nullable=False, server_default=""))
