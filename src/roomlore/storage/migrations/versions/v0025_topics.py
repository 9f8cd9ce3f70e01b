"""The topics of messages."""

from alembic import op

from roomlore.storage.migrations.heard_times import MADE
from roomlore.storage.migrations.topics import TOPICS, add_topics

revision = TOPICS
down_revision = MADE


def upgrade() -> None:
    add_topics(op.get_bind())
