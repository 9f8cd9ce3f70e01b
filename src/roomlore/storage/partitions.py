"""The tables of messages and vectors in partitions, by a hash of the room, on PostgreSQL.

A new database gets them when it is made. An existing one is copied, room after room, while others read and write it:
triggers repeat every change of a copied row in the copy. A short transaction that locks the tables then puts the copy
in their place. Rows of the table `partitioning` say how far the copy of each room is, so it can be stopped and
continued.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roomlore.core.errors import InvalidInput, StorageDamaged
from roomlore.storage import schema
from roomlore.storage.engine import translated
from roomlore.storage.opening import (
    LOCK_OF_POSTGRES,
    LOCK_TIMEOUT,
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    check_is_worth_another_try,
    is_copying,
    parse,
)
from roomlore.storage.postgres import postgres_engine

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")

MOST_PARTS = 1024
_BY_ARRIVAL = (schema.messages.name, schema.features.name, schema.link_corrections.name, schema.message_words.name)
_OF_ROOMS = (*_BY_ARRIVAL, schema.keyword_counts.name)
_TABLES = (*_OF_ROOMS, schema.vectors.name)
"""In the order in which rows can be inserted: a table follows those that its foreign keys name."""
_ROWS_AT_ONCE = 1000
_DONE = 2**62
"""The place of an owner, a room or a scope, that is copied as a whole."""
_WAIT_FOR_OLD_READS = """
DO $$ BEGIN
    IF EXISTS (
        SELECT FROM pg_stat_activity, (SELECT max(last_copy::text::bigint) AS copied FROM partitioning) AS its
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
        AND age(backend_xmin) >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint - copied
    ) THEN RAISE EXCEPTION USING ERRCODE = 'lock_not_available';
    END IF;
END $$
"""

_PROGRESS = """
CREATE TABLE partitioning (
    kind TEXT, owner BIGINT, place BIGINT NOT NULL, parts BIGINT, last_copy XID8, PRIMARY KEY (kind, owner)
)
"""
# One row for each owner, a room or a scope, whose copy has begun: `place` is where it ends. The row of owner 0 has the
# number of partitions, and in `place` the highest owner. Keys are given before a transaction commits, so that an owner
# may appear below the highest one: a single mark would pass it by.
# Writers hold this lock from their first change of a room to their commit, and the copy of a part of the room holds it
# exclusively. So nothing of a room changes between the reading and the writing of a part.
_LOCKS = {"room": 7266714, "scope": 7266715}
_MIRROR = """
CREATE FUNCTION roomlore_mirror_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE its {table}%%ROWTYPE; copied partitioning%%ROWTYPE;
BEGIN
    IF TG_OP = 'DELETE' THEN its := OLD; ELSE its := NEW; END IF;
    PERFORM pg_advisory_xact_lock_shared({lock}, hashint8(its.{owner}));
    SELECT * INTO copied FROM partitioning WHERE kind = '{kind}' AND owner = its.{owner};
    IF NOT FOUND OR {place} > copied.place THEN RETURN NULL; END IF;
    IF TG_OP = 'INSERT' THEN
        INSERT INTO {table}_in_parts ({columns}) VALUES ({new});
    ELSIF TG_OP = 'UPDATE' THEN
        UPDATE {table}_in_parts SET ({columns}) = ROW ({new}) WHERE {old};
    ELSE
        DELETE FROM {table}_in_parts WHERE {old};
    END IF;
    RETURN NULL;
END $$
"""
_TRIGGER = """
CREATE TRIGGER roomlore_mirror AFTER INSERT OR UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION roomlore_mirror_{table}()
"""
# Only the partition of the room is searched. A condition on the room's key would do that too, but PostgreSQL might then
# read the whole room by its key instead of the index of words.
_WORDS_OF = """
CREATE FUNCTION roomlore_words_of(its_room BIGINT) RETURNS REGCLASS
LANGUAGE plpgsql STABLE SET enable_indexscan = on SET enable_bitmapscan = off
AS $$ BEGIN RETURN (SELECT w.tableoid FROM message_words w WHERE w.room_key = its_room LIMIT 1); END $$
"""
_POSTINGS = """
CREATE OR REPLACE FUNCTION roomlore_postings(its_room BIGINT, its_tenant TEXT, asked TEXT)
RETURNS TABLE (place BIGINT, found BYTEA)
LANGUAGE plpgsql STABLE
SET enable_bitmapscan = on SET enable_indexscan = off SET enable_seqscan = off
AS $$
DECLARE part REGCLASS;
BEGIN
    part := roomlore_words_of(its_room);
    IF part IS NULL THEN RETURN; END IF;
    RETURN QUERY EXECUTE format($query$
        SELECT asked_for.number - 1, (
            SELECT string_agg(
                int8send((w.arrival << 10) | w.length) || float4send(
                    CASE WHEN length(w.words) = w.length THEN 0 ELSE ts_rank('{1,1,1,1}', w.words, q.word) END
                ), ''
            )
            FROM %%s w
            WHERE w.words @@ q.word AND w.tenant = $2
        )
        FROM jsonb_array_elements_text($3::jsonb) WITH ORDINALITY AS asked_for (word, number),
             LATERAL (SELECT ('''' || to_hex($1) || 'x' || asked_for.word || '''')::tsquery AS word) AS q
    $query$, part) USING its_room, its_tenant, asked;
END
$$
"""


@dataclass(frozen=True, slots=True)
class Copied:
    """The progress of a copy: `rooms` of `all_rooms` are copied."""

    rooms: int
    all_rooms: int


async def partition(url: str, parts: int, *, told: Callable[[Copied], None]) -> bool:
    """Partition the tables of an existing database, or go on with that. Return False if they are in partitions already.

    Copies at most half of the time. `told` is called after each step. Raise `InvalidInput` for another database than
    PostgreSQL or for another number of partitions than the one begun with, `StorageBusy` if the tables could not be
    locked, and `StorageUnavailable`.
    """
    async with _connected(url) as connection:
        if there := await connection.run_sync(parts_of):
            _check_same(there, parts)
            return False
        await _run(connection, lambda its: _make_copies(its, parts))
        await _soon(connection, _begin_mirroring)
        loop, more = asyncio.get_running_loop(), True
        while more:
            begun = loop.time()
            more = await _run(connection, copy_part)
            told(await connection.run_sync(_progress))
            await asyncio.sleep(loop.time() - begun)
        await _soon(connection, _switch)
        return True


async def abandon(url: str) -> bool:
    """Drop a copy that is not in place yet. Return False if there is none. Raise as `partition`."""
    async with _connected(url) as connection:
        if not await connection.run_sync(is_copying):
            return False
        await _soon(connection, _abandon)
        return True


@asynccontextmanager
async def _connected(url: str) -> "AsyncIterator[AsyncConnection]":
    parsed = parse(url)
    if not parsed.drivername.startswith("postgres"):
        raise InvalidInput("partitions_need_postgres")
    engine = postgres_engine(parsed)
    try:
        with translated():
            async with engine.connect() as connection:
                yield connection
    finally:
        await engine.dispose()


async def _run(connection: "AsyncConnection", work: Callable[[Connection], T]) -> T:
    """Do the work in a transaction. A cancelled one ends with its connection."""

    def inside(its: Connection) -> T:
        its.exec_driver_sql("BEGIN")
        try:
            done = work(its)
            its.exec_driver_sql("COMMIT")
        except Exception:
            its.exec_driver_sql("ROLLBACK")
            raise
        return done

    return await connection.run_sync(inside)


async def _soon(connection: "AsyncConnection", work: Callable[[Connection], None]) -> None:
    """Do work that locks the tables, as soon as it can lock them."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE_SECONDS
    while True:
        try:
            return await _run(connection, work)
        except DBAPIError as error:
            check_is_worth_another_try(error, late=loop.time() > until)
        await asyncio.sleep(PAUSE_SECONDS)


def _progress(connection: Connection) -> Copied:
    counted = (
        "SELECT (SELECT count(*) FROM rooms WHERE room_key IN (SELECT owner FROM partitioning WHERE kind = 'room')),"
        " (SELECT count(*) FROM rooms)"
    )
    return Copied(*connection.exec_driver_sql(counted).one())


def parts_of(connection: Connection) -> int:
    """Return the number of partitions of the tables; 0 if they are whole."""
    counted = (
        "SELECT count(*) FROM pg_inherits JOIN pg_partitioned_table ON partrelid = inhparent"
        " WHERE inhparent = to_regclass('messages')"
    )
    return int(connection.exec_driver_sql(counted).scalar_one())


def _check_same(there: int, parts: int) -> None:
    if there != parts:
        raise InvalidInput("partitions_fixed", count=there, parts=parts)


def _make_copies(connection: Connection, parts: int) -> None:
    """Create empty tables in partitions, unless they are there, in the open transaction. Locks nothing."""
    if not 2 <= parts <= MOST_PARTS:
        raise InvalidInput("partitions_number_invalid", most=MOST_PARTS, parts=parts)
    if is_copying(connection):
        _check_same(connection.exec_driver_sql("SELECT max(parts) FROM partitioning").scalar_one(), parts)
        return
    connection.exec_driver_sql(_PROGRESS)
    for kind in _LOCKS:
        connection.exec_driver_sql("INSERT INTO partitioning VALUES (%s, 0, 0, %s, NULL)", (kind, parts))
    for table in _TABLES:
        _make_copy(connection, table, parts)


def _begin_mirroring(connection: Connection) -> None:
    """Create foreign keys and triggers, unless they are there, in the open transaction. It waits for every transaction
    that writes to these tables, so none of their rows is missed."""
    begun = "SELECT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'roomlore_mirror')"
    if not connection.exec_driver_sql(begun).scalar_one():
        _lock(connection, "SHARE ROW EXCLUSIVE")
        for table in _TABLES:
            _refer(connection, table)
            _mirror(connection, table)


def _lock(connection: Connection, mode: str) -> None:
    """Lock the tables. Writers are kept out by those that they lock first, so that only single reads can hold the
    others."""
    connection.exec_driver_sql(LOCK_TIMEOUT)
    connection.exec_driver_sql("LOCK TABLE rooms, vector_scopes IN EXCLUSIVE MODE")
    connection.exec_driver_sql(f"LOCK TABLE {', '.join((*_TABLES, schema.index_outbox.name))} IN {mode} MODE")


def _abandon(connection: Connection) -> None:
    _lock(connection, "ACCESS EXCLUSIVE")
    for table in reversed(_TABLES):
        connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS roomlore_mirror_{table} CASCADE")
        connection.exec_driver_sql(f"DROP TABLE {table}_in_parts")
    connection.exec_driver_sql("DROP TABLE partitioning")


def copy_part(connection: Connection) -> bool:
    """Copy the next part of a room or scope, in the open transaction. Return False if everything is copied."""
    return _copy_room(connection) or _copy_scope(connection)


def _owner(kind: str) -> str:
    return "room_key" if kind == "room" else "scope_key"


def _kind(table: str) -> str:
    return "scope" if table == schema.vectors.name else "room"


def _make_copy(connection: Connection, table: str, parts: int) -> None:
    """Create an empty table like this one, with its indexes. The key of `vectors` gets the scope in
    front: PostgreSQL asks for the column that chooses the partition."""
    copy, run = f"{table}_in_parts", connection.exec_driver_sql
    run(
        f"CREATE TABLE {copy} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE"
        f" INCLUDING COMPRESSION) PARTITION BY HASH ({_owner(_kind(table))})"
    )
    for part in range(parts):
        run(f"CREATE TABLE {table}_{part} PARTITION OF {copy} FOR VALUES WITH (MODULUS {parts}, REMAINDER {part})")
    for name, kind, definition in _constraints(connection, table):
        if kind != "f":
            keyed = definition.replace("(vector_key)", "(scope_key, vector_key)")
            run(f"ALTER TABLE {copy} ADD CONSTRAINT {name}_in_parts {keyed}")
    for name, definition in _plain_indexes(connection, table):
        head, using = definition.split(" USING ", 1)
        unique = "UNIQUE " if head.startswith("CREATE UNIQUE") else ""
        run(f"CREATE {unique}INDEX {name}_in_parts ON {copy} USING {using}")


def _refer(connection: Connection, table: str) -> None:
    for name, kind, definition in _constraints(connection, table):
        if kind == "f":
            for other in _OF_ROOMS:
                definition = definition.replace(f"REFERENCES {other}(", f"REFERENCES {other}_in_parts(")
            connection.exec_driver_sql(f"ALTER TABLE {table}_in_parts ADD CONSTRAINT {name} {definition}")


def _constraints(connection: Connection, table: str) -> list[Any]:
    query = (
        "SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = to_regclass(%s) AND contype IN ('p', 'u', 'f') ORDER BY contype <> 'p', conname"
    )
    return list(connection.exec_driver_sql(query, (table,)))


def _plain_indexes(connection: Connection, table: str) -> list[Any]:
    """Return the name and the definition of each index that is of no constraint."""
    query = (
        "SELECT relname, pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
        " WHERE indrelid = to_regclass(%s) AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid"
        " AND conrelid = indrelid) ORDER BY relname"
    )
    return list(connection.exec_driver_sql(query, (table,)))


def _mirror(connection: Connection, table: str) -> None:
    its, kind = schema.metadata.tables[table], _kind(table)
    columns = [column.name for column in its.c]
    keys = [_owner(kind), "number"] if kind == "scope" else [column.name for column in its.primary_key]
    place = "its.number" if kind == "scope" else "its.arrival" if table in _BY_ARRIVAL else str(_DONE)
    parts = {
        "table": table,
        "kind": kind,
        "owner": _owner(kind),
        "place": place,
        "columns": ", ".join(columns),
        "new": ", ".join(f"NEW.{name}" for name in columns),
        "old": " AND ".join(f"{name} = OLD.{name}" for name in keys),
        "lock": _LOCKS[kind],
    }
    connection.exec_driver_sql(_MIRROR.format(**parts))
    connection.exec_driver_sql(_TRIGGER.format(table=table))


def _copy_room(connection: Connection) -> bool:
    """Copy a part of the next room. Its row is locked before the advisory lock, in the order in which writers lock."""
    room, place = _next(connection, "room", "rooms")
    if room is None:
        return False
    connection.exec_driver_sql("SELECT FROM rooms WHERE room_key = %s FOR KEY SHARE", (room,))
    _take(connection, "room", room)
    last = _last_of(connection, schema.messages.name, "arrival", room, place)
    if last is None:
        _insert(connection, schema.keyword_counts.name, "room_key = %s", (room,))
        _compare(connection, _OF_ROOMS, room)
        _note(connection, "room", room, _DONE)
        return True
    for table in _BY_ARRIVAL:
        _insert(connection, table, "room_key = %s AND arrival > %s AND arrival <= %s", (room, place, last))
    _note(connection, "room", room, last)
    return True


def _copy_scope(connection: Connection) -> bool:
    scope, place = _next(connection, "scope", "vector_scopes")
    if scope is None:
        return False
    _take(connection, "scope", scope)
    last = _last_of(connection, schema.vectors.name, "number", scope, place)
    if last is None:
        _compare(connection, (schema.vectors.name,), scope)
    else:
        _insert(
            connection, schema.vectors.name, "scope_key = %s AND number > %s AND number <= %s", (scope, place, last)
        )
    _note(connection, "scope", scope, _DONE if last is None else last)
    return True


def _next(connection: Connection, kind: str, owners: str) -> tuple[int | None, int]:
    """Return the owner to go on with, and the place where its copy ends; the row of progress is locked."""
    key, run = _owner(kind), connection.exec_driver_sql
    highest = run("SELECT place FROM partitioning WHERE kind = %s AND owner = 0 FOR UPDATE", (kind,)).scalar_one()
    begun = "SELECT owner, place FROM partitioning WHERE kind = %s AND owner > 0 AND place < %s"
    if (step := run(begun, (kind, _DONE)).one_or_none()) is not None:
        return step[0], step[1]
    further = run(f"SELECT min({key}) FROM {owners} WHERE {key} > %s", (highest,)).scalar_one()  # noqa: S608
    if further is None:
        passed = f"NOT EXISTS (SELECT FROM partitioning WHERE kind = %s AND owner = {key})"
        further = run(f"SELECT min({key}) FROM {owners} WHERE {passed}", (kind,)).scalar_one()  # noqa: S608
    return further, -1


def _take(connection: Connection, kind: str, owner: int) -> None:
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s::int4, hashint8(%s))", (_LOCKS[kind], owner))


def _last_of(connection: Connection, table: str, column: str, owner: int, place: int) -> int | None:
    key = _owner(_kind(table))
    rows = f"SELECT {column} FROM {table} WHERE {key} = %s AND {column} > %s ORDER BY {column} LIMIT %s"  # noqa: S608
    last = connection.exec_driver_sql(f"SELECT max({column}) FROM ({rows}) AS its", (owner, place, _ROWS_AT_ONCE))  # noqa: S608
    return last.scalar_one()  # type: ignore[no-any-return]


def _insert(connection: Connection, table: str, where: str, its: tuple[int, ...]) -> None:
    columns = ", ".join(column.name for column in schema.metadata.tables[table].c)
    connection.exec_driver_sql(
        f"INSERT INTO {table}_in_parts ({columns}) SELECT {columns} FROM {table} WHERE {where}",  # noqa: S608
        its,
    )


def _compare(connection: Connection, tables: tuple[str, ...], owner: int) -> None:
    for table in tables:
        counted = [
            f"(SELECT count(*) FROM {name} WHERE {_owner(_kind(table))} = %s)"  # noqa: S608
            for name in (table, f"{table}_in_parts")
        ]
        counts = connection.exec_driver_sql(f"SELECT {', '.join(counted)}", (owner, owner))
        was, there = counts.one()
        if was != there:
            raise StorageDamaged("partition_copy_incomplete", table=table, count=there, owner=owner, rows=was)


def _note(connection: Connection, kind: str, owner: int, place: int) -> None:
    noted = (
        "INSERT INTO partitioning VALUES (%s, %s, %s) ON CONFLICT (kind, owner) DO UPDATE SET place = excluded.place",
        "UPDATE partitioning SET place = greatest(place, %s), last_copy = pg_current_xact_id()"
        " WHERE kind = %s AND owner = 0",
    )
    connection.exec_driver_sql(noted[0], (kind, owner, place))
    connection.exec_driver_sql(noted[1], (owner, kind))


def _switch(connection: Connection) -> None:
    """Put the copy in place, in the open transaction. If a statement is left that began before the copy was whole, it
    would not see all of its rows: that counts as a lock."""
    connection.exec_driver_sql(LOCK_OF_POSTGRES)
    connection.exec_driver_sql(_WAIT_FOR_OLD_READS)
    _lock(connection, "ACCESS EXCLUSIVE")
    while copy_part(connection):
        pass
    _put_in_place(connection)


def _put_in_place(connection: Connection) -> None:
    run = connection.exec_driver_sql
    names = [(table, *_names(connection, table)) for table in _TABLES]
    views, others, grants = _views(connection), _keys_of_others(connection), _grants(connection)
    for table in _TABLES:
        run(f"DROP FUNCTION IF EXISTS roomlore_mirror_{table} CASCADE")
        run(f"ALTER TABLE {table} RENAME TO {table}_whole")
        run(f"ALTER TABLE {table}_in_parts RENAME TO {table}")
    for name, definition in views:
        run(f"CREATE OR REPLACE VIEW {name} AS {definition}".replace("%", "%%"))
    for table, name, definition in others:
        run(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        run(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
    for table in reversed(_TABLES):
        run(f"DROP TABLE {table}_whole")
    for table, constraints, indexes in names:
        for name in constraints:
            run(f"ALTER TABLE {table} RENAME CONSTRAINT {name}_in_parts TO {name}")
        for name in indexes:
            run(f"ALTER INDEX {name}_in_parts RENAME TO {name}")
    for grant in grants:
        run(grant)
    run(_WORDS_OF)
    run(_POSTINGS)
    run("DROP TABLE partitioning")


def _names(connection: Connection, table: str) -> tuple[list[str], list[str]]:
    constraints = [name for name, kind, _ in _constraints(connection, table) if kind != "f"]
    return constraints, [name for name, _ in _plain_indexes(connection, table)]


def _views(connection: Connection) -> list[Any]:
    """Return the name and the definition of every view on the tables. Replacing it keeps its grants."""
    query = (
        "SELECT DISTINCT c.oid::regclass::text, pg_get_viewdef(c.oid) FROM pg_depend d"
        " JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class c ON c.oid = r.ev_class"
        " WHERE d.refobjid = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)"
        " AND c.relkind = 'v' AND c.oid <> d.refobjid"
    )
    return list(connection.exec_driver_sql(query, (list(_TABLES),)))


def _keys_of_others(connection: Connection) -> list[Any]:
    """Return foreign keys of other tables: table, name, definition."""
    query = (
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(c.oid) FROM pg_constraint c"
        " WHERE contype = 'f' AND conparentid = 0"
        " AND confrelid = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)"
        " AND NOT conrelid = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name)"
    )
    return list(connection.exec_driver_sql(query, (list(_TABLES), list(_TABLES))))


def _grants(connection: Connection) -> list[str]:
    """Return the statements that give others their rights on the tables again."""
    query = (
        "SELECT format('GRANT %%s ON %%I TO %%s', privilege_type, relname, CASE WHEN grantee = 0 THEN 'PUBLIC'"
        " ELSE quote_ident(pg_get_userbyid(grantee)) END) FROM pg_class, aclexplode(relacl)"
        " WHERE oid = ANY (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name) AND grantee <> relowner"
    )
    return [row[0] for row in connection.exec_driver_sql(query, (list(_TABLES),))]
