"""Keys that sign data outside the database."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "signing_keys",
        sa.Column("name", _NAME, nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_signing_keys"),
    )
