"""Sessions and their checkpoints, which the view of turns includes."""

import sqlalchemy as sa
from alembic import op

from roomlore.adapters.sql.migrations.versions.v0001_first_tables import _READABLE, _STAMP, _TIMES, _VIEW

revision = "0003"
down_revision = "0002"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _make_sessions()
    _make_checkpoints()
    _make_view()


def _make_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("room_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("user_id", _NAME, nullable=False),
        sa.Column("enterprise_id", _NAME),
        sa.Column("patient_id", _NAME),
        sa.Column("agent_key", _NAME, nullable=False),
        sa.Column("boundary", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("checkpoint", sa.BigInteger()),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("marks", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.Column("due_tries", sa.BigInteger(), nullable=False),
        sa.Column("due_window", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["room_key"], ["rooms.room_key"], name="fk_sessions_rooms"),
        sa.PrimaryKeyConstraint("room_key", name="pk_sessions"),
    )
    given = sa.text("due_at IS NOT NULL")
    op.create_index("ix_sessions_due_at", "sessions", ["due_at"], sqlite_where=given, postgresql_where=given)


def _make_checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("room_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("checkpoint_id", _NAME, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("covers_arrival", sa.BigInteger(), nullable=False),
        sa.Column("covers_through", _NAME),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("recent_turns", sa.BigInteger(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("made_by", _NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["room_key"], ["rooms.room_key"], name="fk_checkpoints_rooms"),
        sa.PrimaryKeyConstraint("room_key", "number", name="pk_checkpoints"),
        sa.UniqueConstraint("room_key", "checkpoint_id", name="uq_checkpoints_room_key_checkpoint_id"),
    )


def _make_view() -> None:
    """Replace the view on PostgreSQL, so that grants on it and views built on it stay."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP VIEW ai_message")
        op.execute(_view("sqlite", _READABLE))
    else:
        op.execute(_view("postgresql", _STAMP).replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))


def _view(dialect: str, form: str) -> str:
    return (_VIEW + _CHECKPOINTS).format(**_TIMES[dialect], made=form.format("c.created_at"))


_CHECKPOINTS = """UNION ALL
SELECT c.checkpoint_id, r.room_id, '[MEMORY_CHECKPOINT]',
       CASE c.language WHEN 'zh' THEN '历史摘要: ' ELSE 'Summary: ' END || c.summary, {made}, c.made_by, NULL, NULL,
       c.tenant
FROM checkpoints c
JOIN rooms r ON r.room_key = c.room_key
WHERE c.kind = 'summary'
"""
