"""When messages of unknown time were said."""

from alembic import op

from roomlore.adapters.sql.migrations.heard_times import MADE, add_columns, fill

revision = MADE
down_revision = "0022"


def upgrade() -> None:
    add_columns(op.get_bind())
    fill(op.get_bind())
