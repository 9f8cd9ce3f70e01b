"""The link model that made the links of a room."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns. The model of existing rooms is unknown, so their links are made again."""
    for name, kind, default in (
        ("linked_by", _NAME, ""),
        ("link_walk", _NAME, ""),
        ("link_walked", sa.BigInteger(), "0"),
        ("calibration", sa.Text(), ""),
    ):
        op.add_column("rooms", sa.Column(name, kind, nullable=False, server_default=default))
    op.create_index("ix_rooms_linked_by", "rooms", ["linked_by"])
