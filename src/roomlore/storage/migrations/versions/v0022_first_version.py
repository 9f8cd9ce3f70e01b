"""The first version. Its number is that of the last of 22 migrations of development commits before the first release,
which left the same tables: a database that has their stamp needs no work."""

from alembic import op

from roomlore.storage.migrations.first_version import FIRST, make

revision = FIRST
down_revision = None


def upgrade() -> None:
    make(op.get_bind())
