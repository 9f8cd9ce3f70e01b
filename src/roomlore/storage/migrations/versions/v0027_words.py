"""The state of the index of words."""

from alembic import op

from roomlore.storage.migrations.pending import PENDING
from roomlore.storage.migrations.words import READ_BEFORE, name_words

revision = READ_BEFORE
down_revision = PENDING


def upgrade() -> None:
    name_words(op.get_bind())
