"""The lexical index, the outbox and state of indexes, and vectors."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

from roomlore.adapters.sql.rows import read_mapping, unescape
from roomlore.adapters.sql.words import spell_message
from roomlore.core.models import Message

revision = "0002"
down_revision = "0001"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for counter in ("words", "index_version"):
        op.add_column("rooms", sa.Column(counter, sa.BigInteger(), server_default="0", nullable=False))
    _make_words()
    _index_words()
    _fill_words()
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


def _index_words() -> None:
    op.create_index("ix_message_words_changed", "message_words", ["room_key", "changed"])
    if op.get_bind().dialect.name == "sqlite":
        for statement in _FTS5:
            op.execute(statement)
    else:
        op.execute(_GIN)
        op.execute(_POSTINGS)


def _fill_words() -> None:
    """Index the words of stored messages, one page at a time."""
    bind = op.get_bind()
    place = (0, 0)
    while page := bind.execute(_PAGE, {"room_key": place[0], "arrival": place[1]}).all():
        bind.execute(_WORDS.insert(), [_words_of(row, bind.dialect) for row in page])
        place = (page[-1].room_key, page[-1].arrival)
    bind.exec_driver_sql(
        "UPDATE rooms SET words = coalesce((SELECT sum(w.length) FROM message_words w WHERE w.room_key = "
        "rooms.room_key), 0)"
    )


def _words_of(row: sa.Row[Any], dialect: sa.Dialect) -> dict[str, Any]:
    kept = {"room_key": row.room_key, "arrival": row.arrival, "tenant": row.tenant, "changed": row.revision}
    if row.deleted_at is not None:
        return {**kept, "length": 0, "words": ""}
    message = Message(
        id="",
        room_id="",
        sender_id=unescape(row.sender_id),
        sender_name=unescape(row.sender_name),
        text=unescape(row.text),
        metadata=read_mapping(row.metadata),
    )
    spelled = spell_message(message, row.room_key, dialect, row.arrival)
    return {**kept, "length": spelled.length, "words": spelled.words}


def _make_outbox() -> None:
    op.create_table(
        "index_outbox",
        sa.Column("room_key", _KEY, autoincrement=False, nullable=False),
        sa.Column("arrival", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant", _NAME, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("queued", sa.BigInteger(), nullable=False),
        sa.Column("leased_until", sa.BigInteger()),
        sa.Column("lease", sa.BigInteger()),
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


_PAGE = sa.text("""
SELECT m.room_key, m.arrival, m.tenant, m.sender_id, m.sender_name, m.text, m.metadata, m.deleted_at, r.revision
FROM messages m JOIN rooms r ON r.room_key = m.room_key
WHERE (m.room_key, m.arrival) > (:room_key, :arrival) ORDER BY m.room_key, m.arrival LIMIT 1000
""")
_WORDS = sa.table(
    "message_words",
    *(sa.column(name) for name in ("room_key", "arrival", "tenant", "length", "changed")),
    sa.column("words", sa.Text().with_variant(TSVECTOR(), "postgresql")),
)

_NUMBER = "({row}.room_key << 38) | ({row}.arrival << 10) | {row}.length"
_TERMS = "printf('%xx', {row}.room_key) || replace({row}.words, ' ', printf(' %xx', {row}.room_key))"
_ENTER = f"INSERT INTO message_index (rowid, words) SELECT {_NUMBER}, {_TERMS} WHERE {{row}}.words <> '';"
_LEAVE = (
    f"INSERT INTO message_index (message_index, rowid, words) "
    f"SELECT 'delete', {_NUMBER}, {_TERMS} WHERE {{row}}.words <> '';"
)
_FTS5 = (
    "CREATE VIRTUAL TABLE message_index "
    "USING fts5 (words, content = '', columnsize = 0, tokenize = \"ascii tokenchars '_'\")",
    "CREATE VIRTUAL TABLE message_index_terms USING fts5vocab (message_index, instance)",
    f"CREATE TRIGGER message_words_added AFTER INSERT ON message_words BEGIN {_ENTER.format(row='new')} END",
    "CREATE TRIGGER message_words_changed AFTER UPDATE OF length, words ON message_words BEGIN "
    f"{_LEAVE.format(row='old')} {_ENTER.format(row='new')} END",
)

# Without the list of pending entries, which every search would have to read.
_GIN = "CREATE INDEX ix_message_words_words ON message_words USING gin (words) WITH (fastupdate = off)"

# A function, because it has its own settings: a GIN index needs a bitmap scan, which connections have switched off, and
# its plan is kept. It returns each message's number, as SQLite's index does, and the word's rank; 0 if each word of the
# message occurs once, which is faster to detect.
_POSTINGS = """
CREATE FUNCTION roomlore_postings(its_room BIGINT, its_tenant TEXT, asked TEXT)
RETURNS TABLE (place BIGINT, found BYTEA)
LANGUAGE plpgsql STABLE
SET enable_bitmapscan = on SET enable_indexscan = off SET enable_seqscan = off
AS $$
BEGIN
    RETURN QUERY
    SELECT asked_for.number - 1, (
        SELECT string_agg(
            int8send((w.arrival << 10) | w.length) || float4send(
                CASE WHEN length(w.words) = w.length THEN 0 ELSE ts_rank('{1,1,1,1}', w.words, q.word) END
            ), ''
        )
        FROM message_words w
        WHERE w.words @@ q.word AND w.tenant = its_tenant
    )
    FROM jsonb_array_elements_text(asked::jsonb) WITH ORDINALITY AS asked_for (word, number),
         LATERAL (SELECT ('''' || to_hex(its_room) || 'x' || asked_for.word || '''')::tsquery AS word) AS q;
END
$$
"""
