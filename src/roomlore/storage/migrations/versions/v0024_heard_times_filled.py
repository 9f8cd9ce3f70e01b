"""When messages of unknown time were said: what the columns hold for the messages of the first version."""

from alembic import op

from roomlore.storage.migrations.heard_times import ADDED, MADE, fill_rooms, widen_evidence

revision = MADE
down_revision = ADDED


def upgrade() -> None:
    """Fill what `upgrade.py`, which fills room by room, has left."""
    fill_rooms(op.get_bind(), lambda step: step())
    widen_evidence(op.get_bind())
