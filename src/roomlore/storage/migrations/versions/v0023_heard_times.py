"""When messages of unknown time were said: the columns."""

from alembic import op

from roomlore.storage.migrations.heard_times import ADDED, add_columns

revision = ADDED
down_revision = "0022"


def upgrade() -> None:
    add_columns(op.get_bind())
