"""Rooms, messages, their features, usage records, keys and the view of turns."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _make_rooms()
    _make_messages()
    _make_features()
    _make_counts()
    _make_usage()
    _make_keys()
    op.execute(_VIEW.format(**_TIMES[op.get_bind().dialect.name]))


def _make_rooms() -> None:
    op.create_table(
        "rooms",
        sa.Column("room_key", _KEY, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("room_id", _NAME, nullable=False),
        sa.Column("next_arrival", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_sent_at", sa.BigInteger()),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("room_key", name="pk_rooms"),
        sa.UniqueConstraint("tenant", "room_id", name="uq_rooms_tenant_room_id"),
    )


def _make_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("room_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("arrival", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("message_id", _NAME, nullable=False),
        sa.Column("sender_id", _NAME, nullable=False),
        sa.Column("sender_name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("sent_at", sa.BigInteger(), nullable=False),
        sa.Column("sent_at_estimated", sa.Boolean(), nullable=False),
        sa.Column("reply_to", _NAME),
        sa.Column("root_id", _NAME),
        sa.Column("turn_id", _NAME),
        sa.Column("mentions", sa.Text(), nullable=False),
        sa.Column("has_tool_calls", sa.Boolean(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("edited_at", sa.BigInteger()),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["room_key"], ["rooms.room_key"], name="fk_messages_rooms"),
        sa.PrimaryKeyConstraint("room_key", "arrival", name="pk_messages"),
        sa.UniqueConstraint("room_key", "message_id", name="uq_messages_room_key_message_id"),
    )
    op.create_index(
        "ix_messages_reply_to",
        "messages",
        ["room_key", "reply_to", "arrival"],
        sqlite_where=sa.text("reply_to IS NOT NULL"),
        postgresql_where=sa.text("reply_to IS NOT NULL"),
    )
    op.create_index(
        "ix_messages_root_id",
        "messages",
        ["room_key", "root_id", "arrival"],
        sqlite_where=sa.text("root_id IS NOT NULL"),
        postgresql_where=sa.text("root_id IS NOT NULL"),
    )
    op.create_index("ix_messages_sent_at", "messages", ["room_key", "sent_at", "arrival"])
    op.create_index(
        "ix_messages_turn_id",
        "messages",
        ["room_key", "turn_id", "arrival"],
        sqlite_where=sa.text("turn_id IS NOT NULL"),
        postgresql_where=sa.text("turn_id IS NOT NULL"),
    )


def _make_features() -> None:
    op.create_table(
        "message_features",
        sa.Column("room_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("arrival", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("message_type", sa.Text(), nullable=False),
        sa.Column("mentions", sa.Text(), nullable=False),
        sa.Column("addressed", sa.Text(), nullable=False),
        sa.Column("mentions_all", sa.Boolean(), nullable=False),
        sa.Column("keywords", sa.Text(), nullable=False),
        sa.Column("reply", sa.Text()),
        sa.Column("partners", sa.Text(), nullable=False),
        sa.Column("link_kind", sa.Text(), nullable=False),
        sa.Column("thread", sa.BigInteger(), nullable=False),
        sa.Column("parent", sa.BigInteger()),
        sa.Column("parent_probability", sa.Double(), nullable=False),
        sa.Column("new_probability", sa.Double(), nullable=False),
        sa.Column("mates", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["room_key", "arrival"], ["messages.room_key", "messages.arrival"], name="fk_message_features_messages"
        ),
        sa.PrimaryKeyConstraint("room_key", "arrival", name="pk_message_features"),
    )
    op.create_index("ix_message_features_parent", "message_features", ["room_key", "parent"])
    op.create_index("ix_message_features_thread", "message_features", ["room_key", "thread", "arrival"])


def _make_counts() -> None:
    op.create_table(
        "participants",
        sa.Column("room_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("sender_id", _NAME, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("first_arrival", sa.BigInteger(), nullable=False),
        sa.Column("last_arrival", sa.BigInteger(), nullable=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["room_key"], ["rooms.room_key"], name="fk_participants_rooms"),
        sa.PrimaryKeyConstraint("room_key", "sender_id", name="pk_participants"),
        sqlite_with_rowid=False,
    )

    op.create_table(
        "keyword_counts",
        sa.Column("room_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("keyword", _NAME, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["room_key"], ["rooms.room_key"], name="fk_keyword_counts_rooms"),
        sa.PrimaryKeyConstraint("room_key", "keyword", name="pk_keyword_counts"),
        sqlite_with_rowid=False,
    )


def _make_usage() -> None:
    op.create_table(
        "context_usage_records",
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("context_id", _NAME, nullable=False),
        sa.Column("room_id", _NAME, nullable=False),
        sa.Column("user_id", _NAME, nullable=False),
        sa.Column("trigger_message_id", _NAME, nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("context_message_ids", sa.Text(), nullable=False),
        sa.Column("relevance_scores", sa.Text(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("window_tokens", sa.BigInteger(), nullable=False),
        sa.Column("build_ms", sa.Double(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("degraded", sa.Text()),
        sa.Column("arm", sa.Text()),
        sa.Column("llm_response", sa.Text()),
        sa.Column("user_feedback", sa.Text()),
        sa.Column("success_indicator", sa.Double()),
        sa.PrimaryKeyConstraint("tenant", "context_id", name="pk_context_usage_records"),
    )
    op.create_index("ix_context_usage_records_room", "context_usage_records", ["tenant", "room_id", "context_id"])


def _make_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("key_id", _NAME, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("secret_hash", _NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("key_id", name="pk_api_keys"),
        sa.UniqueConstraint("secret_hash", name="uq_api_keys_secret_hash"),
    )
    op.create_table(
        "import_positions",
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("source", _NAME, nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("saved_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "source", name="pk_import_positions"),
    )


_SECONDS = "({0} - (({0} % 1000000) + 1000000) % 1000000) / 1000000"
_FRACTION = "printf('.%06d', (({0} % 1000000) + 1000000) % 1000000)"
_READABLE = f"strftime('%Y-%m-%d %H:%M:%S', {_SECONDS}, 'unixepoch') || {_FRACTION}"
_STAMP = "TIMESTAMPTZ 'epoch' + {0} * INTERVAL '1 microsecond'"
_ANSWERED = "coalesce(a.edited_at, a.sent_at, q.edited_at)"


def _times(form: str) -> dict[str, str]:
    places = {"asked": "q.sent_at", "answered": _ANSWERED, "alone": "a.sent_at", "edited": "a.edited_at"}
    return {name: form.format(place) for name, place in places.items()}


_TIMES = {"sqlite": _times(_READABLE), "postgresql": _times(_STAMP)}

_VIEW = """
CREATE VIEW ai_message AS
SELECT q.message_id AS message_id, r.room_id AS conversation_id, q.text AS query, a.text AS answer,
       {asked} AS create_time, q.sender_id AS create_by, {answered} AS update_time,
       coalesce(a.sender_id, CASE WHEN q.edited_at IS NOT NULL THEN q.sender_id END) AS update_by, q.tenant AS tenant
FROM messages q
JOIN rooms r ON r.room_key = q.room_key
LEFT JOIN messages a ON a.room_key = q.room_key AND a.arrival = (
    SELECT s.arrival FROM messages s
    WHERE s.room_key = q.room_key AND s.turn_id = q.turn_id AND s.role = 'assistant' AND s.deleted_at IS NULL
    ORDER BY s.has_tool_calls, s.arrival DESC LIMIT 1)
WHERE q.role = 'user' AND q.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM messages s
    WHERE s.room_key = q.room_key AND s.turn_id = q.turn_id AND s.role = 'user' AND s.deleted_at IS NULL
      AND s.arrival < q.arrival)
UNION ALL
SELECT a.message_id, r.room_id, NULL, a.text, {alone}, a.sender_id, {edited},
       CASE WHEN a.edited_at IS NOT NULL THEN a.sender_id END, a.tenant
FROM messages a
JOIN rooms r ON r.room_key = a.room_key
WHERE a.role = 'assistant' AND a.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM messages s
    WHERE s.room_key = a.room_key AND s.turn_id = a.turn_id AND s.deleted_at IS NULL
      AND (s.role = 'user' OR (s.role = 'assistant' AND (
          s.has_tool_calls < a.has_tool_calls OR (s.has_tool_calls = a.has_tool_calls AND s.arrival > a.arrival)))))
"""
