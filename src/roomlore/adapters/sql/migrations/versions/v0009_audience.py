"""The kinds of rooms, their members, and when people spoke."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SPOKE = """
UPDATE participants SET first_spoke_at = spoke.first, last_spoke_at = spoke.last
FROM (
    SELECT room_key, sender_id, min(sent_at) AS first, max(sent_at) AS last
    FROM messages WHERE role = 'user' AND deleted_at IS NULL GROUP BY room_key, sender_id
) AS spoke
WHERE spoke.room_key = participants.room_key AND spoke.sender_id = participants.sender_id
"""


def upgrade() -> None:
    """Add the columns and the table. The kind of existing rooms is unknown; who spoke when is read from the
    messages."""
    op.add_column("rooms", sa.Column("kind", _NAME, nullable=False, server_default=""))
    op.add_column("rooms", sa.Column("members_told", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("participants", sa.Column("first_spoke_at", sa.BigInteger()))
    op.add_column("participants", sa.Column("last_spoke_at", sa.BigInteger()))
    op.execute(_SPOKE)
    op.create_table(
        "room_members",
        sa.Column("room_key", _KEY, nullable=False, autoincrement=False),
        sa.Column("person_id", _NAME, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("told_at", sa.BigInteger(), nullable=False),
        sa.Column("joined_at", sa.BigInteger()),
        sa.Column("left_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("room_key", "person_id", "number", name="pk_room_members"),
        sa.ForeignKeyConstraint(["room_key"], ["rooms.room_key"], name="fk_room_members_rooms"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_room_members_person", "room_members", ["tenant", "person_id"])
