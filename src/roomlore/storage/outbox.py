"""Messages and memories with pending vectors, and the state of indexes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from secrets import randbits
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from roomlore.core.models import Room
from roomlore.core.search.hits import IndexState, IndexTask
from roomlore.storage import schema
from roomlore.storage.engine import FEW_ROWS, Connection, Locks, Repository, Row, Statement, among, in_use
from roomlore.storage.rows import numbers_text, to_micros
from roomlore.storage.shapes import INDEX_STATE, ROOM

_Scope = dict[str, str]


@dataclass(frozen=True)
class _Tables:
    """The tables of one kind of task: rows of `waiting` for rows of `items`, identified by `number`, which belong to
    rows of `owners`, identified by `key` and `name`."""

    waiting: Any
    items: Any
    owners: Any
    key: str
    name: str
    number: str

    def order(self) -> tuple[Any, Any]:
        return self.waiting.c[self.key], self.waiting.c[self.number]

    def locked(self, table: Any) -> ColumnElement[bool]:
        """Return a condition: rows of the owner given by the parameters `tenant` and `owner_key`."""
        return and_(table.c[self.key] == bindparam("owner_key"), table.c.tenant == bindparam("tenant"))

    def owned(self) -> ColumnElement[bool]:
        """Return a condition: tasks of the owner given by the parameters `tenant` and `scope`."""
        owners, waiting = self.owners.c, self.waiting.c
        its_name = and_(owners.tenant == bindparam("tenant"), owners[self.name] == bindparam("scope"))
        its_key = select(owners[self.key]).where(its_name).scalar_subquery()
        return and_(waiting[self.key] == its_key, waiting.tenant == bindparam("tenant"))

    def named(self) -> ColumnElement[bool]:
        """Return a condition: tasks of that owner with the numbers given by the parameter `numbers`."""
        return and_(self.owned(), among(self.waiting.c[self.number], "numbers"))


def _next_version(tables: _Tables) -> Any:
    owners = tables.owners
    return update(owners).where(tables.locked(owners)).values(index_version=owners.c.index_version + 1)


def _add(tables: _Tables) -> Any:
    """Add tasks in one statement, so that they have one position in the queue, in order of their numbers.

    Every statement locks rows by owner and number, which prevents deadlocks.
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
    """Claim tasks. A common table expression that locks rows is evaluated once, so at most `count` are claimed. SQLite
    drops the table's name in RETURNING, so the owner's key has another name there."""
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
    """Release tasks. Also locks the rows, in order of their numbers, until the transaction ends."""
    waiting = tables.waiting
    freed = update(waiting).where(tables.named(), waiting.c.lease == bindparam("its_lease"))
    return freed.values(leased_until=null(), lease=null()).returning(waiting.c[tables.number], waiting.c.version)


def _held(tables: _Tables) -> Any:
    claimed = and_(tables.owned(), tables.waiting.c.leased_until > bindparam("now"))
    return select(func.count()).select_from(tables.waiting).where(claimed)


class Waiting:
    """Tasks of one kind. `held`: the lock that a unit of work has on an owner, by tenant and name."""

    def __init__(self, tables: _Tables, held: Callable[[Locks, str, str], Any]) -> None:
        self.held = held
        self.owners = tables.owners.name
        self.next_version = Statement(lambda: _next_version(tables), brief=True)
        self.add = Statement(lambda: _add(tables))
        self.add_few = Statement(lambda: _add(tables), brief=True)
        self.claim = Statement(lambda: _claim(tables))
        self.free = Statement(lambda: _free(tables))
        self.drop = Statement(lambda: delete(tables.waiting).where(tables.named()))
        self.clear = Statement(lambda: delete(tables.waiting))
        self.count = Statement(lambda: select(func.count()).select_from(tables.waiting))
        self.claimed = Statement(lambda: _held(tables))


MESSAGES_DUE = Waiting(
    _Tables(schema.index_outbox, schema.messages, schema.rooms, "room_key", "room_id", "arrival"), Locks.held
)
MEMORIES_DUE = Waiting(
    _Tables(schema.outbox, schema.memories, schema.scopes, "scope_key", "scope", "memory_key"),
    Locks.held_scope,
)


class Outbox(Repository):
    """Messages, or versions of memories, whose vectors are due, of all tenants. They are written with the data and
    removed once the vector is stored.

    Each waits once, however often it changes. Calls that write need a writing unit of work.
    """

    def __init__(self, connection: Connection, locks: Locks, tenant: str | None, waiting: Waiting) -> None:
        super().__init__(connection, locks, tenant)
        self._waiting = waiting

    async def add(self, *, scope: str, numbers: Sequence[int], only_if_kept: bool = False) -> None:
        """Record that messages with these arrivals, or memories with these row numbers, were added, changed or deleted.
        `scope`: the room, or the memories' scope; it is locked by this unit of work. Unknown numbers are ignored.

        `only_if_kept`: do nothing if such a vector index was never begun: the first rebuild finds everything.
        """
        held = self._waiting.held(self._locks, self._tenant, scope)
        if numbers and (held.keeps_vectors or not only_if_kept):
            here = {"owner_key": held.key, "tenant": self._tenant}
            await self._sql.fetch(self._waiting.next_version, **here)
            add = self._waiting.add_few if len(numbers) <= FEW_ROWS else self._waiting.add
            await self._sql.fetch(add, numbers=numbers_text(numbers), **here)

    async def claim(self, *, limit: int, now: datetime, lease: timedelta) -> list[IndexTask]:
        """Claim the longest waiting free tasks for the duration of the lease; safe beside other claimers."""
        self._locks.check_writing()
        times = {"now": to_micros(now), "until": to_micros(now + lease)}
        rows = await self._sql.fetch(self._waiting.claim, count=limit, new_lease=randbits(63), **times)
        return [_to_task(row) for row in sorted(rows, key=tuple)]

    async def finish(self, *, tasks: Sequence[IndexTask]) -> list[IndexTask]:
        """Remove these tasks; one that changed meanwhile goes on waiting, free to be claimed.

        Return those that were no longer held: their lease ended and another claimer took or finished them meanwhile, or
        they were cleared. These are not changed. The tasks are released first, which returns those still claimed, with
        their versions.
        """
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
        """Return the tasks undone; those that are no longer held stay as they are."""
        self._locks.check_writing()
        for its, group in _by_claim(tasks):
            await self._free(its, group)

    async def _free(self, its: _Scope, group: Sequence[IndexTask]) -> dict[int, int]:
        """Release tasks and return number to version of those that were still claimed."""
        numbers = numbers_text([task.number for task in group])
        rows = await self._sql.fetch(self._waiting.free, numbers=numbers, its_lease=group[0].lease, **its)
        return {row[0]: row[1] for row in rows}

    async def clear(self) -> None:
        """Delete every task, including claimed ones, for a rebuild, which adds everything again.

        A transaction that is writing now may have seen that no index exists. A rebuild begins with this call, and so
        waits for it. SQLite has one writer anyway.
        """
        self._locks.check_writing()
        if self._sql.dialect.name == "postgresql":
            await self._sql.run(f"LOCK TABLE {self._waiting.owners} IN EXCLUSIVE MODE")
        await self._sql.fetch(self._waiting.clear)

    async def waiting(self) -> int:
        """Return the number of tasks, including claimed ones."""
        return int((await self._sql.fetch(self._waiting.count))[0][0])

    async def held(self, *, scope: str, now: datetime) -> int:
        """Return the number of tasks of one room, or scope of memories, whose lease has not ended."""
        values = {"tenant": self._tenant, "scope": scope, "now": to_micros(now)}
        return int((await self._sql.fetch(self._waiting.claimed, **values))[0][0])


def _claimed(task: IndexTask) -> tuple[str, str, int]:
    return (task.tenant, task.scope, task.lease)


def _by_claim(tasks: Sequence[IndexTask]) -> Iterator[tuple[_Scope, list[IndexTask]]]:
    """Yield the tasks of one claim on one owner, with the parameters that identify the owner."""
    for (tenant, scope, _), group in groupby(sorted(tasks, key=_claimed), key=_claimed):
        yield {"tenant": tenant, "scope": scope}, list(group)


def _to_task(row: Row) -> IndexTask:
    _, _, number, tenant, scope, version, lease = row
    return IndexTask(tenant=tenant, scope=scope, number=number, version=version, lease=lease)


_s, _r = schema.index_states, schema.rooms
_VALUES = tuple(column.name for column in INDEX_STATE.columns if column is not _s.c.name)


def _given(prefix: str) -> dict[str, Any]:
    return {name: bindparam(f"{prefix}{name}", type_=_s.c[name].type) for name in _VALUES}


def _rooms_after() -> Any:
    place = tuple_(_r.c.tenant, _r.c.room_id)
    after = tuple_(bindparam("after_tenant", type_=_r.c.tenant.type), bindparam("after_room", type_=_r.c.room_id.type))
    return (
        select(*ROOM.columns).where(place > after, in_use).order_by(_r.c.tenant, _r.c.room_id).limit(bindparam("count"))
    )


def _to_link(*columns: Any) -> Any:
    """Return two queries of the rooms whose links another model made: the model names before this one in the index, and
    those after."""
    model = bindparam("model", type_=_r.c.linked_by.type)
    sides = (_r.c.linked_by < model, _r.c.linked_by > model)
    return [select(*columns).where(side, _r.c.next_arrival > 1, in_use) for side in sides]


def _rooms_to_link() -> Any:
    sides = [side.limit(bindparam("count")).subquery() for side in _to_link(*ROOM.columns)]
    return union_all(*[select(*side.c) for side in sides])


def _left_to_link() -> Any:
    walked = case((_r.c.link_walk == bindparam("model"), _r.c.link_walked), else_=literal_column("0"))
    rooms = union_all(*_to_link((_r.c.next_arrival - literal_column("1") - walked).label("messages"))).subquery()
    return select(func.count(), func.sum(rooms.c.messages)).select_from(rooms)


_FIND = Statement(lambda: select(*INDEX_STATE.columns).where(_s.c.name == bindparam("name")))
_MAKE = Statement(
    lambda: insert(_s).values(name=bindparam("name"), **_given("")).on_conflict_do_nothing().returning(_s.c.name)
)
_CHANGE = Statement(
    lambda: (
        update(_s)
        .where(_s.c.name == bindparam("own_name"), _s.c.generation == bindparam("expected"))
        .values(_given("new_"))
        .returning(_s.c.name)
    )
)
_ROOMS_AFTER = Statement(_rooms_after)
_ROOMS_TO_LINK = Statement(_rooms_to_link)
_LEFT_TO_LINK = Statement(_left_to_link)


class IndexStates(Repository):
    """A part of `Progress`: the state of each derived index."""

    async def index_state(self, *, name: str) -> IndexState | None:
        rows = await self._sql.fetch(_FIND, name=name)
        return INDEX_STATE.read(rows[0]) if rows else None

    async def save_index_state(self, *, state: IndexState, expected: str | None) -> bool:
        """Store the state if the stored one has the generation `expected` (None: none is stored yet). Return False,
        without a change, if another writer was faster. Only while writing."""
        self._locks.check_writing()
        values = INDEX_STATE.values(state)
        if expected is None:
            return bool(await self._sql.fetch(_MAKE, **values))
        new = {f"new_{name}": values[name] for name in _VALUES}
        changed = await self._sql.fetch(_CHANGE, own_name=values["name"], expected=expected, **new)
        return bool(changed)

    async def rooms_after(self, *, tenant: str, room_id: str, limit: int) -> list[Room]:
        """Return the rooms of all tenants that come after this one by (tenant, room id), in that order, the order of a
        rebuild. ('', '') begins."""
        rows = await self._sql.fetch(_ROOMS_AFTER, after_tenant=tenant, after_room=room_id, count=limit)
        return [ROOM.read(row) for row in rows]

    async def rooms_to_link(self, *, model: str, limit: int) -> list[Room]:
        """Return some of the rooms of all tenants that have messages whose links are not all of this model
        (`Linked.by`)."""
        rows = await self._sql.fetch(_ROOMS_TO_LINK, model=model, count=limit)
        return [ROOM.read(row) for row in rows[:limit]]

    async def left_to_link(self, *, model: str) -> tuple[int, int]:
        """Return the number of these rooms, and of messages in them that their walks have not reached."""
        rows = await self._sql.fetch(_LEFT_TO_LINK, model=model)
        return int(rows[0][0]), int(rows[0][1] or 0)
