"""Rows of fewer bytes in SQLite."""

from alembic import op

from roomlore.storage.migrations.smaller_rows import SMALLER, make_smaller
from roomlore.storage.migrations.words import READ_BEFORE

revision = SMALLER
down_revision = READ_BEFORE


def upgrade() -> None:
    make_smaller(op.get_bind())
