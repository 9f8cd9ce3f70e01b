"""Rows of fewer bytes in SQLite."""

from alembic import op

from roomlore.storage.migrations.pending import PENDING
from roomlore.storage.migrations.smaller_rows import SMALLER, make_smaller

revision = SMALLER
down_revision = PENDING


def upgrade() -> None:
    make_smaller(op.get_bind())
