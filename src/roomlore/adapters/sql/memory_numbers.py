"""The active memories by the row numbers of their versions."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, func, select

from roomlore.adapters.sql import schema_memories as schema
from roomlore.adapters.sql.drivers import Connection, Row
from roomlore.adapters.sql.memory_rows import MEMORY_COLUMNS, to_memory
from roomlore.adapters.sql.statements import Statement, among
from roomlore.adapters.sql.values import escape, numbers_text, unescape
from roomlore.core.memory.found import NumberedMemory

_s, _m = schema.scopes, schema.memories


def _numbered(*where: Any) -> Any:
    joined = _m.join(_s, _s.c.scope_key == _m.c.scope_key)
    return select(*MEMORY_COLUMNS, _m.c.tenant, _m.c.memory_key).select_from(joined).where(schema.ACTIVE, *where)


def _scope_key() -> Any:
    named = (_s.c.tenant == bindparam("tenant")) & (_s.c.scope == bindparam("scope"))
    return select(_s.c.scope_key).where(named).scalar_subquery()


def _active() -> Any:
    """A scope has one tenant; asked of each memory as well, it would take the walk off the index of scopes."""
    latest = (_m.c.updated_at.desc(), _m.c.memory_id.desc())
    return _numbered(_m.c.scope_key == _scope_key(), _m.c.head).order_by(*latest).limit(bindparam("count"))


def _after() -> Any:
    return _numbered(_m.c.memory_key > bindparam("after")).order_by(_m.c.memory_key).limit(bindparam("count"))


def _by_number() -> Any:
    """A scope's key reckoned with is not looked up: the numbers are."""
    mine = _m.c.scope_key + 0 == _scope_key()
    return _numbered(among(_m.c.memory_key, "numbers"), mine).order_by(_m.c.memory_key)


_ACTIVE = Statement(_active)
_BY_NUMBER = Statement(_by_number)
_AFTER = Statement(_after)
_COUNT = Statement(lambda: select(func.coalesce(func.sum(_s.c.active), 0)))


class SqlIndexedMemories:
    """The port `IndexedMemories`."""

    def __init__(self, connection: Connection) -> None:
        self._sql = connection

    async def active(self, *, tenant: str, scope: str, limit: int) -> list[NumberedMemory]:
        rows = await self._sql.fetch(_ACTIVE, tenant=escape(tenant), scope=escape(scope), count=limit)
        return [_to_numbered(row) for row in rows]

    async def by_number(self, *, tenant: str, scope: str, numbers: Sequence[int]) -> list[NumberedMemory]:
        its = {"tenant": escape(tenant), "scope": escape(scope), "numbers": numbers_text(numbers)}
        return [_to_numbered(row) for row in await self._sql.fetch(_BY_NUMBER, **its)]

    async def after(self, *, number: int, limit: int) -> list[NumberedMemory]:
        return [_to_numbered(row) for row in await self._sql.fetch(_AFTER, after=number, count=limit)]

    async def count(self) -> int:
        return int((await self._sql.fetch(_COUNT))[0][0])


def _to_numbered(row: Row) -> NumberedMemory:
    return NumberedMemory(tenant=unescape(row[-2]), number=row[-1], memory=to_memory(row))
