"""The state of the index of words."""

from alembic import op

from roomlore.storage.migrations.topics import TOPICS
from roomlore.storage.migrations.words import READ_BEFORE, name_words

revision = READ_BEFORE
down_revision = TOPICS


def upgrade() -> None:
    name_words(op.get_bind())
