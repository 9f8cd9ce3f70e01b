"""The tables, views and indexes of the first version, on both engines. Loads no Alembic, so a new database is made
quickly.

`tables.sql` has them with the words of `_WORDS` in place of what the engines call differently. What only one engine has
is here.
"""

import re
from pathlib import Path

from sqlalchemy import Connection

FIRST = "0022"
"""The revision. Development commits before the first release made these tables by 22 migrations: a database of the last
such commit has this stamp and goes on being used."""


class _Form(str):
    """An expression around a column: `{time:sent_at}` is the form `time` of `sent_at`."""

    __slots__ = ()

    def __format__(self, column: str) -> str:
        return self.replace("COLUMN", column)


# A stored text has U+001A where the engine cannot hold a character, which is no JSON until it is written as an escape.
# The type jsonb refuses an escaped NUL too; an escaped backslash may stand before the same letters.
_SQLITE_JSON = r"replace(COLUMN, char(26), '\u001a')"
_LEGAL = r"replace(COLUMN, chr(26), '\u001a')"
_JSONB = (
    rf"CAST(CASE WHEN strpos(COLUMN, '\u0000') = 0 THEN {_LEGAL} ELSE "
    rf"regexp_replace({_LEGAL}, '(?<!\\)((\\\\)*)\\u0000', '\1\\u001a0', 'g') END AS jsonb)"
)
_MICROSECONDS = "((COLUMN % 1000000) + 1000000) % 1000000"
_WORDS = {
    "sqlite": {
        "name": "TEXT",
        "key": "INTEGER",
        "serial": "INTEGER",
        "never_reused": "PRIMARY KEY AUTOINCREMENT",
        "double": "DOUBLE",
        "bytes": "BLOB",
        "words": "TEXT",
        "false": "0",
        "is_true": " = 1",
        "rowless": " WITHOUT ROWID",
        "time": _Form(
            f"strftime('%Y-%m-%d %H:%M:%S', (COLUMN - {_MICROSECONDS}) / 1000000, 'unixepoch') || "
            f"printf('.%06d', {_MICROSECONDS})"
        ),
        "json": _Form(_SQLITE_JSON),
        "logged": _Form(f"json_extract({_SQLITE_JSON.replace('COLUMN', 'c.memory')}, '$.COLUMN')"),
    },
    "postgresql": {
        "name": 'TEXT COLLATE "C"',
        "key": "BIGINT",
        "serial": "BIGSERIAL",
        "never_reused": "CONSTRAINT pk_vector_scopes PRIMARY KEY",
        "double": "DOUBLE PRECISION",
        "bytes": "BYTEA",
        "words": "TSVECTOR",
        "false": "false",
        "is_true": "",
        "rowless": "",
        "time": _Form("TIMESTAMPTZ 'epoch' + COLUMN * INTERVAL '1 microsecond'"),
        "json": _Form(_JSONB),
        "logged": _Form(f"({_JSONB.replace('COLUMN', 'c.memory')} ->> 'COLUMN')"),
    },
}

NUMBER = "({row}.room_key << 38) | ({row}.arrival << 10) | {row}.length"
TERMS = "printf('%xx', {row}.room_key) || replace({row}.words, ' ', printf(' %xx', {row}.room_key))"
ENTER = f"INSERT INTO message_index (rowid, words) SELECT {NUMBER}, {TERMS} WHERE {{row}}.words <> '';"
LEAVE = (
    f"INSERT INTO message_index (message_index, rowid, words) "
    f"SELECT 'delete', {NUMBER}, {TERMS} WHERE {{row}}.words <> '';"
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

_INDEX_OF_WORDS = {
    "sqlite": (
        "CREATE VIRTUAL TABLE message_index "
        "USING fts5 (words, content = '', columnsize = 0, tokenize = \"ascii tokenchars '_'\")",
        "CREATE VIRTUAL TABLE message_index_terms USING fts5vocab (message_index, instance)",
        f"CREATE TRIGGER message_words_added AFTER INSERT ON message_words BEGIN {ENTER.format(row='new')} END",
        "CREATE TRIGGER message_words_changed AFTER UPDATE OF length, words ON message_words BEGIN "
        f"{LEAVE.format(row='old')} {ENTER.format(row='new')} END",
    ),
    "postgresql": (_GIN, _POSTINGS),
}


def make(connection: Connection) -> None:
    """Create all of it in an empty database, in the open transaction."""
    for statement in _statements(connection.dialect.name):
        connection.exec_driver_sql(statement)


def names(engine: str) -> frozenset[str]:
    """Return the names of its tables and views."""
    return frozenset(match[1] for match in map(_NAMED.match, _statements(engine)) if match)


_NAMED = re.compile(r"CREATE (?:VIRTUAL )?(?:TABLE|VIEW) (\w+)")


def _statements(engine: str) -> tuple[str, ...]:
    script = Path(__file__).with_name("tables.sql").read_text(encoding="utf-8").format(**_WORDS[engine])
    return (*script.split("\n\n"), *_INDEX_OF_WORDS[engine])
