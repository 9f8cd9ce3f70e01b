"""Parts of `Maintenance`: every row of a tenant, and a search for those that may tell of a person.

No index finds a part of a text, so a search reads the table once, from beginning to end, in the database. The database
compares stored texts: escaped, and in columns of JSON spelled as JSON. So a pattern has a wildcard for every character
that may be stored in another form.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Table,
    Text,
    bindparam,
    cast,
    delete,
    exists,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from roomlore.core.json_values import texts_in
from roomlore.core.privacy import each_text
from roomlore.storage import schema
from roomlore.storage.engine import Repository, Statement, among, in_room
from roomlore.storage.rows import names_text, numbers_text
from roomlore.storage.schema import message_words, metadata, rooms
from roomlore.storage.values import ReferencedIds, Sought, StoredRow

_m, _f, _r = schema.messages, schema.features, schema.rooms
_SPELLED = frozenset('"\\\x1a' + "".join(map(chr, range(0x20))))
_DOT_ABOVE = "\u0307"
_SIZES = (0, 1, 2, 4, 8, 16, 32, 64, 128)
"""The numbers of texts for which there are statements. With more, the comparisons would take longer than reading all
rows."""
_LONGEST = 100
"""A pattern has this many characters of a text. SQLite allows 50,000 bytes."""
_CONDITIONS = 900
"""SQLite allows 1,000 conditions in a row."""


def any_case(name: str) -> str:
    """Return the pattern of LIKE, for lower-case ASCII letters, of the texts that have the name in any case, and maybe
    of others: any character is allowed in place of one with a case beyond ASCII, and of k and i, which are lower-case
    forms of such characters too."""
    return f"%{''.join(map(_any_case, name.lower()))}%"


def _any_case(sign: str) -> str:
    if sign == _DOT_ABOVE or _is_spelled(sign):
        return "%"
    cased = sign in "ki" if sign.isascii() else not sign.lower() == sign == sign.upper()
    return "_" if cased else _literal(sign)


def as_it_is(text: str) -> str:
    """Return the pattern of LIKE of the texts that have a part of this text: the longest without a character that may
    be stored in another form."""
    parts = "".join("\n" if _is_spelled(sign) else sign for sign in text).split("\n")
    return f"%{_literal(max(parts, key=len)[:_LONGEST])}%"


def _is_spelled(sign: str) -> bool:
    return sign in _SPELLED or "\ud800" <= sign <= "\udfff"


def _literal(text: str) -> str:
    return text.replace("%", "\\%").replace("_", "\\_")


class _Like(FunctionElement[Any]):
    """`column, pattern`: true if the text fits the pattern. SQLite ignores the case of ASCII letters."""

    inherit_cache = True
    type = NullType()


class _LikeInAnyCase(_Like):
    inherit_cache = True


@compiles(_Like, "sqlite")
def _on_sqlite(element: _Like, compiler: SQLCompiler, **options: Any) -> str:
    column, pattern = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} LIKE {pattern} ESCAPE '\\'"


@compiles(_Like, "postgresql")
def _on_postgresql(element: _Like, compiler: SQLCompiler, **options: Any) -> str:
    """Compile it without ESCAPE, for which PostgreSQL would rewrite the pattern for every row."""
    column, pattern = (compiler.process(clause, **options) for clause in element.clauses)
    return f'CAST({column} AS TEXT) COLLATE "C" LIKE {pattern}'


@compiles(_LikeInAnyCase, "postgresql")
def _lower_on_postgresql(element: _Like, compiler: SQLCompiler, **options: Any) -> str:
    """Compile it. The collation C has no lower case but that of ASCII letters."""
    column, pattern = (compiler.process(clause, **options) for clause in element.clauses)
    return f'lower(CAST({column} AS TEXT) COLLATE "C") LIKE {pattern}'


def _may_tell(ids: Sequence[Any], texts: Sequence[Any], sizes: tuple[int, int]) -> ColumnElement[bool]:
    """Return a condition: one of the columns `ids` may have one of the names, or one of the columns `texts` one of the
    texts. `sizes`: the numbers of names and texts; -1 if any row may tell."""
    if _is_all(len(ids), len(texts), sizes):
        return true()
    named = [_LikeInAnyCase(column, _pattern("name", place)) for column in ids for place in range(sizes[0])]
    conditions = [_Like(column, _pattern("text", place)) for column in texts for place in range(sizes[1])]
    return or_(false(), *named, *conditions)


def _is_all(ids: int, texts: int, sizes: tuple[int, int]) -> bool:
    """Return True if too much is sought in these numbers of columns for the database to compare."""
    return -1 in sizes or ids * sizes[0] + texts * sizes[1] > _CONDITIONS


def _pattern(kind: str, place: int) -> Any:
    return bindparam(f"{kind}_{place}", type_=Text)


def _patterns(sought: Sought) -> tuple[tuple[int, int], dict[str, str]]:
    """Return the numbers of names and texts, rounded up, and the patterns as parameters."""
    sizes: list[int] = []
    named: dict[str, str] = {}
    for kind, patterns in (
        ("name", _least(map(any_case, sought.names))),
        ("text", _least(map(as_it_is, sought.texts))),
    ):
        size = next((size for size in _SIZES if size >= len(patterns)), -1)
        sizes.append(size)
        named |= {f"{kind}_{place}": patterns[min(place, len(patterns) - 1)] for place in range(size)}
    return (sizes[0], sizes[1]), {} if -1 in sizes else named


def _least(patterns: Iterable[str]) -> list[str]:
    """Return the patterns without those that contain another one; of many patterns some, one more than are compared."""
    some: set[str] = set()
    for pattern in patterns:
        some.add(pattern)
        if len(some) > _SIZES[-1]:
            return list(some)
    distinct = sorted(some, key=lambda pattern: (len(pattern), pattern))
    return [
        kept_pattern
        for place, kept_pattern in enumerate(distinct)
        if not any(less[1:-1] in kept_pattern for less in distinct[:place])
    ]


_JSON = frozenset(
    {
        "addressed", "closes", "context_message_ids", "facts", "keywords", "memory", "mentions", "metadata", "parents",
        "partners", "quarantined", "relevance_scores", "reply", "scopes", "settings", "sources", "state", "tags",
    }
)  # fmt: skip
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_OF_TENANTS = {table.name: table for table in metadata.sorted_tables if "tenant" in table.c}
assert schema.scopes.name in _OF_TENANTS


def _text_columns(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if isinstance(column.type, Text) and column.name != "tenant"]


def _keys(table: Table) -> list[Column[Any]]:
    """Return the key columns without the tenant, which every query names."""
    return [column for column in table.primary_key.columns if column.name != "tenant"]


_Sizes = tuple[int, int]


@lru_cache(maxsize=1 << 10)
def _page(name: str, *, after: bool, in_a_room: bool, columns: tuple[str, ...], sizes: _Sizes) -> Statement:
    table = _OF_TENANTS[name]
    keys = _keys(table)
    shown = [cast(column, Text) if table is message_words else column for column in _text_columns(table)]

    def build() -> Any:
        chosen = select(*keys, *shown).where(table.c.tenant == bindparam("its_tenant"))
        if in_a_room:
            chosen = chosen.where(table.c.room_key == bindparam("its_room"))
        chosen = chosen.where(_tells(table, columns, sizes))
        if after:
            given = [bindparam(f"key_{place}", type_=column.type) for place, column in enumerate(keys)]
            chosen = chosen.where(tuple_(*keys) > tuple_(*given))
        return chosen.order_by(*keys).limit(bindparam("count"))

    return Statement(build)


def _tells(table: Table, columns: Sequence[str], sizes: _Sizes) -> ColumnElement[bool]:
    named = [table.c[column] for column in columns]
    return _may_tell(named, named, sizes)


@lru_cache(maxsize=1 << 10)
def _rooms_with(name: str, columns: tuple[str, ...], sizes: _Sizes) -> Statement:
    """Select keys of rooms. Grouped by a sum, so that neither engine walks along the index of the key: then it would
    read the rows in another order than they are stored in."""
    table = _OF_TENANTS[name]
    key = (table.c.room_key + literal_column("0")).label("its_room")
    its = table.c.tenant == bindparam("its_tenant")
    return Statement(lambda: select(key).where(its, _tells(table, columns, sizes)).group_by(key))


@lru_cache
def _count(name: str) -> Statement:
    table = _OF_TENANTS[name]
    return Statement(lambda: select(func.count()).select_from(table).where(table.c.tenant == bindparam("its_tenant")))


_REFERENCES = (_m.c.mentions, _m.c.reply_to, _m.c.root_id, _m.c.topic_id, _m.c.turn_id)
_TEXTS = (_m.c.text, _m.c.metadata)
_of_others = (_m.c.deleted_at.is_(None), _m.c.sender_id != bindparam("its_sender"))


@lru_cache
def _rooms_telling(sizes: _Sizes) -> Statement:
    key = (_m.c.room_key + literal_column("0")).label("its_room")
    its = _m.c.tenant == bindparam("its_tenant")
    telling = _may_tell((*_TEXTS, *_REFERENCES), _TEXTS, sizes)
    return Statement(lambda: select(key).where(its, *_of_others, telling).group_by(key))


@lru_cache
def _telling(sizes: _Sizes, *, linked: bool) -> Statement:
    """Select arrivals of messages. `linked`: also of those that refer to messages of the person. All with a reply are
    among them, since its id is stored beside other texts."""
    telling = _may_tell((*_TEXTS, *_REFERENCES), _TEXTS, sizes)
    if linked:
        its = (_f.c.room_key == _m.c.room_key, _f.c.arrival == _m.c.arrival)
        named = _may_tell((_f.c.mentions, _f.c.addressed, _f.c.partners), (), (sizes[0], 0))
        telling = or_(
            telling,
            among(_m.c.reply_to, "message_ids"),
            among(_m.c.root_id, "message_ids"),
            among(_m.c.turn_id, "turn_ids"),
            exists().where(*its, or_(_f.c.reply.is_not(None), named)),
        )
    later = _m.c.arrival > bindparam("after")
    chosen = select(_m.c.arrival).where(in_room(_m), later, *_of_others, telling)
    return Statement(lambda: chosen.order_by(_m.c.arrival).limit(bindparam("count")))


_ROOM_IDS = Statement(
    lambda: select(_r.c.room_id).where(_r.c.tenant == bindparam("its_tenant"), among(_r.c.room_key, "room_keys"))
)


def _is_row(table: Table) -> Any:
    condition = table.c.tenant == bindparam("its_tenant")
    for place, column in enumerate(_keys(table)):
        condition &= column == bindparam(f"key_{place}", type_=column.type)
    return condition


@lru_cache
def _drop(name: str) -> Statement:
    return Statement(lambda: delete(_OF_TENANTS[name]).where(_is_row(_OF_TENANTS[name])))


@lru_cache
def _find(name: str, columns: tuple[str, ...]) -> Statement:
    table = _OF_TENANTS[name]
    return Statement(lambda: select(*[table.c[column] for column in columns]).where(_is_row(table)))


@lru_cache
def _next_rows(name: str) -> Statement:
    table = _OF_TENANTS[name]
    its_room = select(table.c.room_key).where(_is_row(table)).scalar_subquery()
    return Statement(lambda: update(rooms).where(rooms.c.room_key == its_room).values(revision=rooms.c.revision + 1))


@lru_cache
def _set_columns(name: str, columns: tuple[str, ...]) -> Statement:
    table = _OF_TENANTS[name]
    values = {column: bindparam(f"new_{column}", type_=table.c[column].type) for column in columns}
    return Statement(lambda: update(table).where(_is_row(table)).values(values))


class StoredRows(Repository):
    """A part of `Maintenance`: every row of a tenant."""

    async def tables(self) -> Mapping[str, Sequence[str]]:
        """Return every table that holds rows of tenants, with its columns of text."""
        return {name: [column.name for column in _text_columns(table)] for name, table in _OF_TENANTS.items()}

    async def count_rows(self, *, table: str) -> int:
        """Return the number of rows."""
        return int((await self._sql.fetch(_count(table), its_tenant=self._tenant))[0][0])

    async def rooms_with(self, *, table: str, columns: Sequence[str], sought: Sought) -> list[int] | None:
        """Return the keys of the rooms with rows in which one of the columns has what is sought; None if the table has
        no keys of rooms, or if so much is sought that all rows are to be read. May return others too."""
        if "room_key" not in _OF_TENANTS[table].c:
            return None
        sizes, patterns = _patterns(sought)
        if _is_all(len(columns), len(columns), sizes):
            return None
        statement = _rooms_with(table, tuple(columns), sizes)
        return sorted(row[0] for row in await self._sql.fetch(statement, its_tenant=self._tenant, **patterns))

    async def rows(
        self,
        *,
        table: str,
        after: tuple[Any, ...] | None,
        limit: int,
        columns: Sequence[str] = (),
        sought: Sought | None = None,
        room_key: int | None = None,
    ) -> list[StoredRow]:
        """Return rows with a key above `after`, ascending: of all rooms or one, and with `sought` only those in which
        one of the columns has it, and maybe others."""
        values = {} if after is None else _named(after)
        sizes, patterns = ((-1, -1), {}) if sought is None else _patterns(sought)
        its_room = {} if room_key is None else {"its_room": room_key}
        statement = _page(
            table, after=after is not None, in_a_room=room_key is not None, columns=tuple(columns), sizes=sizes
        )
        rows = await self._sql.fetch(statement, its_tenant=self._tenant, count=limit, **values, **its_room, **patterns)
        keys, shown = len(_keys(_OF_TENANTS[table])), _text_columns(_OF_TENANTS[table])
        return [_to_row(row, keys, shown) for row in rows]

    async def rooms_telling(self, *, user_id: str, sought: Sought) -> list[str]:
        """Return the ids of the rooms, ascending, with a message of another sender whose text or metadata has what is
        sought, or that refers to a name that is. May return others too: the engine compares what it stores."""
        sizes, patterns = _patterns(sought)
        its = {"its_tenant": self._tenant}
        room_rows = await self._sql.fetch(_rooms_telling(sizes), **its, its_sender=user_id, **patterns)
        rows = await self._sql.fetch(_ROOM_IDS, **its, room_keys=numbers_text([row[0] for row in room_rows]))
        return sorted(row[0] for row in rows)

    async def messages_telling(
        self, *, room_id: str, user_id: str, sought: Sought, linked: ReferencedIds | None, after: int, limit: int
    ) -> list[int]:
        """Return the arrivals of these messages above `after`, ascending; with `linked` also of messages that refer to
        those, or whose features name a name that is sought. May return others too."""
        sizes, patterns = _patterns(sought)
        here = {"tenant": self._tenant, "room_id": room_id, "its_sender": user_id}
        if linked is not None:
            here |= await asyncio.to_thread(_ids_in, linked)
        statement = _telling(sizes, linked=linked is not None)
        rows = await self._sql.fetch(statement, **here, **patterns, after=after, count=limit)
        return [row[0] for row in rows]

    async def redact_row(
        self, *, table: str, key: tuple[Any, ...], columns: Sequence[str], change: Callable[[str], str]
    ) -> None:
        """Change every text in these columns of the row, and raise the revision of its room."""
        self._locks.check_writing()
        own = {"its_tenant": self._tenant, **_named(key)}
        await self._raise_revision(table, own)
        for row in await self._sql.fetch(_find(table, tuple(columns)), **own):
            stored = dict(zip(columns, row, strict=True))
            new = {name: _changed(name, text, change) for name, text in stored.items()}
            different = tuple(name for name in columns if new[name] != stored[name])
            if different:
                given = {f"new_{name}": new[name] for name in different}
                await self._sql.fetch(_set_columns(table, different), **own, **given)

    async def drop_row(self, *, table: str, key: tuple[Any, ...]) -> None:
        """Delete the row, to which no other row may refer."""
        self._locks.check_writing()
        own = {"its_tenant": self._tenant, **_named(key)}
        await self._raise_revision(table, own)
        await self._sql.fetch(_drop(table), **own)

    async def _raise_revision(self, table: str, own: Mapping[str, Any]) -> None:
        """Raise the revision of the row's room, if it has one, and so lock the room. It is done before the row is read,
        which others may change until then, and before the change, which may be to the row's key."""
        if "room_key" in _OF_TENANTS[table].c:
            await self._sql.fetch(_next_rows(table), **own)


def _ids_in(linked: ReferencedIds) -> dict[str, str]:
    return {"message_ids": names_text(sorted(linked.message_ids)), "turn_ids": names_text(sorted(linked.turn_ids))}


def _named(key: tuple[Any, ...]) -> dict[str, Any]:
    return {f"key_{place}": value for place, value in enumerate(key)}


def _to_row(row: Sequence[Any], keys: int, columns: Sequence[Column[Any]]) -> StoredRow:
    """Return a row. The key stays as stored, since it is only passed back."""
    texts = {
        column.name: tuple(_texts(column.name, text))
        for column, text in zip(columns, row[keys:], strict=True)
        if text is not None
    }
    return StoredRow(tuple(row[:keys]), texts)


def _texts(column: str, stored: str) -> Iterator[str]:
    return texts_in(_read(column, stored))


def _changed(column: str, stored: str | None, change: Callable[[str], str]) -> str | None:
    if stored is None:
        return None
    value = _read(column, stored)
    changed = each_text(value, change)
    if changed == value:
        return stored
    return changed if isinstance(changed, str) else _ENCODE(changed)


def _read(column: str, text: str) -> Any:
    if column not in _JSON:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
