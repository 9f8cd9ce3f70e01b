"""Mark the senders of a room that answered as agents. A sender of notices of the platform alone, such as of joining, is
none."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_AGENTS = """
UPDATE participants SET answers = true
FROM (SELECT DISTINCT room_key, sender_id FROM messages WHERE role IN ('assistant', 'tool')) AS agents
WHERE agents.room_key = participants.room_key AND agents.sender_id = participants.sender_id
"""


def upgrade() -> None:
    op.add_column("participants", sa.Column("answers", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute(_AGENTS)
