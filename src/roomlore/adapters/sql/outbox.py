"""Messages and memories whose vectors are due."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from secrets import randbits
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, bindparam, cast, delete, func, null, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema, schema_memories
from roomlore.adapters.sql.drivers import Connection, Row
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement, among
from roomlore.adapters.sql.values import escape, numbers_text, to_micros, unescape
from roomlore.core.search import IndexTask

_Scope = dict[str, str]


@dataclass(frozen=True)
class _Tables:
    """What waits, in `waiting`: rows of `items`, each by its `number`, which belong to rows of `owners`, each by its
    `key` and with its `name`."""

    waiting: Any
    items: Any
    owners: Any
    key: str
    name: str
    number: str

    def order(self) -> tuple[Any, Any]:
        return self.waiting.c[self.key], self.waiting.c[self.number]

    def locked(self, table: Any) -> ColumnElement[bool]:
        """Rows of the owner that the parameters `tenant` and `owner_key` name."""
        return and_(table.c[self.key] == bindparam("owner_key"), table.c.tenant == bindparam("tenant"))

    def named(self) -> ColumnElement[bool]:
        """What waits of these numbers and of the owner that the parameters `tenant` and `scope` name."""
        owners, waiting = self.owners.c, self.waiting.c
        its_name = and_(owners.tenant == bindparam("tenant"), owners[self.name] == bindparam("scope"))
        its_key = select(owners[self.key]).where(its_name).scalar_subquery()
        mine = and_(waiting[self.key] == its_key, waiting.tenant == bindparam("tenant"))
        return and_(mine, among(waiting[self.number], "numbers"))


def _next_version(tables: _Tables) -> Any:
    owners = tables.owners
    return update(owners).where(tables.locked(owners)).values(index_version=owners.c.index_version + 1)


def _add(tables: _Tables) -> Any:
    """One statement for all, which then share a place in the queue, in order of their numbers.

    Whoever takes several rows takes them by owner and number, so that no two wait for each other.
    """
    waiting, items, owners = tables.waiting, tables.items, tables.owners
    last = select(func.coalesce(func.max(waiting.c.queued), 0)).scalar_subquery()
    free = cast(null(), BigInteger)
    key, number = items.c[tables.key], items.c[tables.number]
    due = (
        select(key, number, items.c.tenant, owners.c.index_version, last + 1, free, free)
        .select_from(items.join(owners, owners.c[tables.key] == key))
        .where(tables.locked(items), among(number, "numbers"))
        .order_by(number)
    )
    given = insert(waiting).from_select(waiting.c.keys(), due)
    return given.on_conflict_do_update(index_elements=tables.order(), set_={"version": given.excluded.version})


def _claim(tables: _Tables) -> Any:
    """A common table expression that locks rows is reckoned once, so no more than `count` are taken. SQLite
    leaves the table's name out behind RETURNING, so the owner's key goes by another name there."""
    waiting, owners = tables.waiting, tables.owners
    free = or_(waiting.c.leased_until.is_(None), waiting.c.leased_until <= bindparam("now"))
    key = tables.order()
    first = select(*key).where(free).order_by(waiting.c.queued, *key).limit(bindparam("count"))
    taken = first.with_for_update(skip_locked=True).cte("taken")
    its = select(owners.c[tables.key].label("its_key"), owners.c[tables.name]).subquery("its_owner")
    name = select(its.c[tables.name]).where(its.c.its_key == waiting.c[tables.key]).scalar_subquery()
    return (
        update(waiting)
        .where(tuple_(*key).in_(select(taken.c[tables.key], taken.c[tables.number])))
        .values(leased_until=bindparam("until"), lease=bindparam("new_lease"))
        .returning(waiting.c.queued, *key, waiting.c.tenant, name, waiting.c.version, waiting.c.lease)
    )


def _free(tables: _Tables) -> Any:
    """Takes hold of the rows too, in order of their numbers, until the transaction ends."""
    waiting = tables.waiting
    freed = update(waiting).where(tables.named(), waiting.c.lease == bindparam("its_lease"))
    return freed.values(leased_until=null(), lease=null()).returning(waiting.c[tables.number], waiting.c.version)


class Waiting:
    """One kind of what waits. `held`: the lock of a unit of work on an owner, by tenant and name."""

    def __init__(self, tables: _Tables, held: Callable[[Locks, str, str], Any]) -> None:
        self.held = held
        self.owners = tables.owners.name
        self.next_version = Statement(lambda: _next_version(tables))
        self.add = Statement(lambda: _add(tables))
        self.claim = Statement(lambda: _claim(tables))
        self.free = Statement(lambda: _free(tables))
        self.drop = Statement(lambda: delete(tables.waiting).where(tables.named()))
        self.clear = Statement(lambda: delete(tables.waiting))
        self.count = Statement(lambda: select(func.count()).select_from(tables.waiting))


MESSAGES_DUE = Waiting(
    _Tables(schema.index_outbox, schema.messages, schema.rooms, "room_key", "room_id", "arrival"), Locks.held
)
MEMORIES_DUE = Waiting(
    _Tables(
        schema_memories.outbox, schema_memories.memories, schema_memories.scopes, "scope_key", "scope", "memory_key"
    ),
    Locks.held_scope,
)


class SqlOutbox:
    """The port `Outbox`."""

    def __init__(self, connection: Connection, locks: Locks, waiting: Waiting) -> None:
        self._sql = connection
        self._locks = locks
        self._waiting = waiting

    async def add(self, *, tenant: str, scope: str, numbers: Sequence[int], only_if_kept: bool = False) -> None:
        """Numbers that are not there are passed over."""
        held = self._waiting.held(self._locks, tenant, scope)
        if numbers and (held.keeps_vectors or not only_if_kept):
            here = {"owner_key": held.key, "tenant": escape(tenant)}
            await self._sql.fetch(self._waiting.next_version, **here)
            await self._sql.fetch(self._waiting.add, numbers=numbers_text(numbers), **here)

    async def claim(self, *, limit: int, now: datetime, lease: timedelta) -> list[IndexTask]:
        self._locks.check_writing()
        times = {"now": to_micros(now), "until": to_micros(now + lease)}
        rows = await self._sql.fetch(self._waiting.claim, count=limit, new_lease=randbits(63), **times)
        return [_to_task(row) for row in sorted(rows, key=tuple)]

    async def finish(self, *, tasks: Sequence[IndexTask]) -> list[IndexTask]:
        """Frees them first, since that tells which are still held, and as what version."""
        self._locks.check_writing()
        lost: list[IndexTask] = []
        for its, group in _by_claim(tasks):
            versions = await self._free(its, group)
            lost += [task for task in group if task.number not in versions]
            done = [task.number for task in group if versions.get(task.number) == task.version]
            if done:
                await self._sql.fetch(self._waiting.drop, numbers=numbers_text(done), **its)
        return lost

    async def release(self, *, tasks: Sequence[IndexTask]) -> None:
        self._locks.check_writing()
        for its, group in _by_claim(tasks):
            await self._free(its, group)

    async def _free(self, its: _Scope, group: Sequence[IndexTask]) -> dict[int, int]:
        """Number to version of those that were held until now."""
        numbers = numbers_text([task.number for task in group])
        rows = await self._sql.fetch(self._waiting.free, numbers=numbers, its_lease=group[0].lease, **its)
        return {row[0]: row[1] for row in rows}

    async def clear(self) -> None:
        """Whoever is writing just now may have seen that no index was begun: a rebuild, which begins with this, waits
        for them. SQLite has one writer anyway."""
        self._locks.check_writing()
        if self._sql.dialect.name == "postgresql":
            await self._sql.run(f"LOCK TABLE {self._waiting.owners} IN EXCLUSIVE MODE")
        await self._sql.fetch(self._waiting.clear)

    async def waiting(self) -> int:
        return int((await self._sql.fetch(self._waiting.count))[0][0])


def _claimed(task: IndexTask) -> tuple[str, str, int]:
    return (task.tenant, task.scope, task.lease)


def _by_claim(tasks: Sequence[IndexTask]) -> Iterator[tuple[_Scope, list[IndexTask]]]:
    """What one claim took of one owner, with the parameters that name the owner."""
    for (tenant, scope, _), group in groupby(sorted(tasks, key=_claimed), key=_claimed):
        yield {"tenant": escape(tenant), "scope": escape(scope)}, list(group)


def _to_task(row: Row) -> IndexTask:
    _, _, number, tenant, scope, version, lease = row
    return IndexTask(tenant=unescape(tenant), scope=unescape(scope), number=number, version=version, lease=lease)
