"""The lexical index, the outbox and state of indexes, and vectors."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

revision = "0002"
down_revision = "0001"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for counter in ("words", "index_version"):
        op.add_column("rooms", sa.Column(counter, sa.BigInteger(), server_default="0", nullable=False))
    _make_words()
    _make_outbox()
    _make_vectors()


def _make_words() -> None:
    op.create_table(
        "message_words",
        sa.Column("room_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("arrival", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("words", sa.Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
        sa.ForeignKeyConstraint(
            ["room_key", "arrival"], ["messages.room_key", "messages.arrival"], name="fk_message_words_messages"
        ),
        sa.PrimaryKeyConstraint("room_key", "arrival", name="pk_message_words"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_message_words_changed", "message_words", ["room_key", "changed"])
    if op.get_bind().dialect.name == "sqlite":
        op.execute(_FTS5)
        op.execute(_VOCABULARY)
    else:
        op.create_index("ix_message_words_words", "message_words", ["words"], postgresql_using="gin")
        op.execute(_POSTINGS)


def _make_outbox() -> None:
    op.create_table(
        "index_outbox",
        sa.Column("room_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("arrival", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("queued", sa.BigInteger(), nullable=False),
        sa.Column("leased_until", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["room_key", "arrival"], ["messages.room_key", "messages.arrival"], name="fk_index_outbox_messages"
        ),
        sa.PrimaryKeyConstraint("room_key", "arrival", name="pk_index_outbox"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_index_outbox_queued", "index_outbox", ["queued", "room_key", "arrival"])
    op.create_table(
        "index_states",
        sa.Column("name", _NAME, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dimensions", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.Text(), nullable=False),
        sa.Column("cursor", sa.Text()),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_index_states"),
    )


def _make_vectors() -> None:
    op.create_table(
        "vector_collections",
        sa.Column("collection", _NAME, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dimensions", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("collection", name="pk_vector_collections"),
    )
    op.create_table(
        "vector_scopes",
        sa.Column("scope_key", _KEY, nullable=False),
        sa.Column("collection", _NAME, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("scope", _NAME, nullable=False),
        sa.Column("stamp", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope_key", name="pk_vector_scopes"),
        sa.UniqueConstraint(
            "collection", "epoch", "tenant", "scope", name="uq_vector_scopes_collection_epoch_tenant_scope"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "vectors",
        sa.Column("vector_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("scope_key", _KEY, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("vector", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("vector_key", name="pk_vectors"),
        sa.UniqueConstraint("scope_key", "number", name="uq_vectors_scope_key_number"),
    )


_FTS5 = """
CREATE VIRTUAL TABLE message_index USING fts5 (words, content = '', columnsize = 0, tokenize = "ascii tokenchars '_'")
"""
_VOCABULARY = "CREATE VIRTUAL TABLE message_index_terms USING fts5vocab (message_index, instance)"

# A function, because it takes settings along: a GIN index is read by a bitmap scan, which connections have switched
# off, and its plan is kept. Of a message it gives its number as in SQLite's index, and the word's rank.
_POSTINGS = """
CREATE FUNCTION roomlore_postings(its_room BIGINT, its_tenant TEXT, asked TEXT)
RETURNS TABLE (place BIGINT, found BYTEA)
LANGUAGE plpgsql STABLE
SET enable_bitmapscan = on SET enable_indexscan = off SET enable_seqscan = off
AS $$
BEGIN
    RETURN QUERY
    SELECT asked_for.number - 1, (
        SELECT string_agg(int8send(w.arrival << 10 | w.length) || float4send(ts_rank('{1,1,1,1}', w.words, q.word)), '')
        FROM message_words w
        WHERE w.words @@ q.word AND w.tenant = its_tenant
    )
    FROM jsonb_array_elements_text(asked::jsonb) WITH ORDINALITY AS asked_for (word, number),
         LATERAL (SELECT ('''' || to_hex(its_room) || 'x' || asked_for.word || '''')::tsquery AS word) AS q;
END
$$
"""
