"""Messages that are counted and indexed later."""

from alembic import op

from roomlore.storage.migrations.pending import PENDING, add_pending
from roomlore.storage.migrations.topics import TOPICS

revision = PENDING
down_revision = TOPICS


def upgrade() -> None:
    add_pending(op.get_bind())
