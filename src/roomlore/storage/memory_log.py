"""A part of `Memories`: the log, and the effect of its changes on rows, computed before any write."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NoReturn

from sqlalchemy import bindparam, case, delete, exists, func, literal, select, union_all, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.memory.log import LogState, Snapshot, Touch, is_followed, snapshots, snapshots_due
from roomlore.core.memory.memory import Action, Change, Memory, MemoryStatus, Scope, Source
from roomlore.storage import schema
from roomlore.storage import schema as shared
from roomlore.storage.engine import (
    Connection,
    LockedScope,
    Locks,
    Repository,
    Row,
    Statement,
    among,
    in_scope,
    key_of_scope,
)
from roomlore.storage.outbox import MEMORIES_DUE, Outbox
from roomlore.storage.rows import (
    from_micros,
    names_text,
    numbers_text,
    read_list,
    to_micros,
)
from roomlore.storage.shapes import (
    CHANGE_COLUMNS,
    CONTENT,
    LOGGED,
    SCOPE,
    change_values,
    content_values,
    read_sources,
    to_change,
)
from roomlore.storage.snapshots import LAST, Snapshots
from roomlore.storage.values import MEMORY_VECTORS

_ACTIVE, _DEPRECATED = MemoryStatus.ACTIVE, MemoryStatus.DEPRECATED
_MADE_BY = {Action.CREATE, Action.UPDATE, Action.MERGE, Action.REVERT}
"""Actions that create a version. REVERT may also touch an existing one; all others do only that."""
_AFTER = {
    Action.CREATE: _ACTIVE,
    Action.UPDATE: _ACTIVE,
    Action.MERGE: _ACTIVE,
    Action.DELETE: _DEPRECATED,
    Action.RESTORE: _ACTIVE,
}
_BEFORE = {Action.DELETE: _ACTIVE, Action.RESTORE: _DEPRECATED}
_STAYS = {Action.STRENGTH, Action.REDACT, Action.SHARE}


@dataclass(slots=True)
class VersionRow:
    """A row of `memories` with its present and its new state.

    `key`: None for a new row. `elsewhere`: it belongs to another scope. `newest`: the highest version of its lineage.
    `sources`: the stored ones. `memory`: the new content, None if it stays.
    """

    key: int | None
    memory_id: str
    lineage_id: str
    version: int
    status: MemoryStatus
    head: bool
    merged_into: str | None
    elsewhere: bool = False
    newest: int = 0
    sources: tuple[Source, ...] = ()
    memory: Memory | None = None
    changed: bool = False


class RowPlan:
    """Takes changes one after another. `rows`: by memory id, all rows that were read and created. `active`: the change
    of the number of active memories."""

    def __init__(self, stored: Iterable[VersionRow]) -> None:
        self.rows = {row.memory_id: row for row in stored}
        self.active = 0
        self._heads = {row.lineage_id: row for row in self.rows.values() if row.head}
        self._newest = {row.lineage_id: row.newest for row in self.rows.values()}

    def add(self, change: Change) -> None:
        """Apply a change to the rows. Raises `Conflict` if the rows are not as the change expects, and `InvalidInput`
        if it contradicts itself."""
        _check_shape(change)
        self._check_parent(change)
        closed = [self._close(memory_id) for memory_id in change.closes]
        row = self.rows.get(change.memory.memory_id)
        row = self._make(change) if row is None else self._touch(change, row)
        self._keep_one_active(row)
        for other in closed:
            if other.lineage_id != row.lineage_id and is_followed(change, other.memory_id):
                other.merged_into = row.lineage_id

    def changed(self) -> list[VersionRow]:
        """Return the rows to write. Versions that stop being heads come first, so that a lineage never has two
        heads."""
        return sorted((row for row in self.rows.values() if row.changed), key=lambda row: row.head)

    def _check_parent(self, change: Change) -> None:
        """Check that an update or a merge is based on the version that its writer read."""
        head = self._heads.get(change.memory.lineage_id)
        if change.action in {Action.UPDATE, Action.MERGE} and (head is None or head.memory_id not in change.closes):
            _conflict(f"Memory {change.memory.memory_id!r} does not follow the version in force")

    def _close(self, memory_id: str) -> VersionRow:
        row = self.rows.get(memory_id)
        if row is None or row.elsewhere or row.status is not _ACTIVE:
            _conflict(f"Memory {memory_id!r} is not active here")
        self._turn(row, _DEPRECATED)
        return row

    def _make(self, change: Change) -> VersionRow:
        memory = change.memory
        if change.action not in _MADE_BY or memory.status is not _ACTIVE:
            _conflict(f"There is no memory {memory.memory_id!r} here")
        follows = memory.version == self._newest.get(memory.lineage_id, 0) + 1
        starts = memory.version == 1 and memory.lineage_id == memory.memory_id
        if not follows or starts != (change.action is Action.CREATE) or self._is_elsewhere(memory.lineage_id):
            _conflict(f"Memory {memory.memory_id!r} cannot be version {memory.version} of {memory.lineage_id!r}")
        row = VersionRow(None, memory.memory_id, memory.lineage_id, memory.version, _DEPRECATED, False, None)
        self.rows[memory.memory_id] = row
        self._newest[memory.lineage_id] = memory.version
        return self._write(row, memory)

    def _is_elsewhere(self, lineage_id: str) -> bool:
        head = self._heads.get(lineage_id)
        return head is not None and head.elsewhere

    def _touch(self, change: Change, row: VersionRow) -> VersionRow:
        memory = change.memory
        same = (row.lineage_id, row.version) == (memory.lineage_id, memory.version) and not row.elsewhere
        if not same or change.action in _MADE_BY - {Action.REVERT}:
            _conflict(f"The id {memory.memory_id!r} is taken")
        before = memory.status if change.action in _STAYS else _BEFORE.get(change.action, row.status)
        if row.status is not before:
            _conflict(f"Memory {memory.memory_id!r} is {row.status.value}")
        return self._write(row, memory)

    def _write(self, row: VersionRow, memory: Memory) -> VersionRow:
        row.memory = memory
        self._turn(row, memory.status)
        return row

    def _turn(self, row: VersionRow, status: MemoryStatus) -> None:
        self.active += (status is _ACTIVE) - (row.status is _ACTIVE)
        row.status, row.changed = status, True

    def _keep_one_active(self, row: VersionRow) -> None:
        """Make the active version the head of its lineage."""
        head = self._heads.get(row.lineage_id)
        if row.status is not _ACTIVE:
            return
        if head is not None and head is not row:
            if head.status is _ACTIVE:
                _conflict(f"Memory {head.memory_id!r} is active, beside {row.memory_id!r}")
            head.head, head.merged_into, head.changed = False, None, True
        row.head, row.merged_into = True, None
        self._heads[row.lineage_id] = row


def check_numbers(scope: str, last: int, changes: Sequence[Change]) -> None:
    """Raise `Conflict` unless the numbers continue from the last one, and `InvalidInput` if a change belongs to another
    scope."""
    for number, change in enumerate(changes, start=last + 1):
        if change.scope != scope or change.memory.scope != scope:
            raise InvalidInput("change_scope_differs", number=change.number, scope=f"{scope!r:.60}")
        if change.number != number:
            _conflict(f"Change {change.number} of {scope!r:.60} does not follow number {number - 1}")


def _check_shape(change: Change) -> None:
    memory = change.memory
    if memory.status is not _AFTER.get(change.action, memory.status) or memory.memory_id in change.closes:
        raise InvalidInput(
            "change_inconsistent",
            number=change.number,
            action=change.action.value,
            memory=repr(memory.memory_id),
            status=memory.status.value,
        )


def _conflict(what: str) -> NoReturn:
    raise Conflict("memory_rows_stale", what=what)


_s, _m, _src, _c = schema.scopes, schema.memories, schema.sources, schema.changes
_MARKS = ("status", "head", "merged_into")

_NO_NUMBER = 2**63 - 1
_LEAVES_ACTIVE = {
    **dict.fromkeys((Action.CREATE.value, Action.UPDATE.value, Action.MERGE.value, Action.RESTORE.value), True),
    Action.DELETE.value: False,
}
"""True if the version of a change is active after it; other actions leave its status unchanged."""

_named = (_s.c.tenant == bindparam("tenant")) & (_s.c.scope == bindparam("scope"))


def _page_after() -> Any:
    chosen = select(*SCOPE.columns).where(_s.c.tenant == bindparam("tenant"), _s.c.scope > bindparam("after"))
    return chosen.order_by(_s.c.scope).limit(bindparam("count"))


def _touched() -> Any:
    """Select the versions with these ids and the heads of these lineages; some come twice."""
    its = _m.alias()
    same = (its.c.tenant == _m.c.tenant) & (its.c.lineage_id == _m.c.lineage_id)
    newest = select(func.max(its.c.version)).where(same).scalar_subquery()
    columns = (_m.c.memory_key, _m.c.scope_key, _m.c.memory_id, _m.c.lineage_id, _m.c.version, _m.c.status)
    rows = select(*columns, _m.c.head, _m.c.merged_into, _m.c.sources, newest)
    here = rows.where(_m.c.tenant == bindparam("tenant"))
    return union_all(
        here.where(among(_m.c.memory_id, "memory_ids")), here.where(among(_m.c.lineage_id, "lineage_ids"), _m.c.head)
    )


def _set(names: Sequence[str]) -> Any:
    """Return an update. Its parameters must not have the names of columns."""
    values = {name: bindparam(f"new_{name}", type_=_m.c[name].type) for name in names}
    own = (_m.c.memory_key == bindparam("key")) & (_m.c.tenant == bindparam("its_tenant"))
    return update(_m).where(own).values(values)


def _add(table: Any, *left_out: str) -> Any:
    names = [column.name for column in table.c if column.name not in left_out]
    return insert(table).values({name: bindparam(name) for name in names}).inline()


def _log(*where: Any, order: Any = _c.c.number) -> Any:
    return select(*CHANGE_COLUMNS).where(in_scope(_c), *where).order_by(order).limit(bindparam("count"))


def _touches() -> Any:
    """Select touches. After a revert only the version itself has its status."""
    kept_memory = case((_c.c.action == literal(Action.REVERT.value), _c.c.memory))
    wanted = select(_c.c.number, _c.c.at, _c.c.memory_id, _c.c.closes, _c.c.action, kept_memory)
    return wanted.where(in_scope(_c), _c.c.number > bindparam("after")).order_by(_c.c.number).limit(bindparam("count"))


def _by_number() -> Any:
    return select(*CHANGE_COLUMNS).where(in_scope(_c), among(_c.c.number, "numbers")).order_by(_c.c.number)


def _of_lineages_between() -> Any:
    """Select along the entries between the two numbers, if these are few: a lineage may have thousands of versions."""
    its = (_m.c.tenant == _c.c.tenant) & (_m.c.memory_id == _c.c.memory_id) & among(_m.c.lineage_id, "lineage_ids")
    between = (_c.c.number > bindparam("after")) & (_c.c.number <= bindparam("until"))
    return select(*CHANGE_COLUMNS).where(in_scope(_c), exists().where(its), between).order_by(_c.c.number)


def _of_lineages() -> Any:
    """Select along the versions, of which there are few; not along the entries between the two numbers."""
    its = select(_m.c.memory_id).where(_m.c.tenant == bindparam("tenant"), among(_m.c.lineage_id, "lineage_ids"))
    mine = (_c.c.tenant == bindparam("tenant")) & _c.c.memory_id.in_(its)
    between = (_reckoned > bindparam("after")) & (_reckoned <= bindparam("until"))
    here = _c.c.scope_key + 0 == key_of_scope()
    return select(*CHANGE_COLUMNS).where(mine, here, between).order_by(_reckoned)


def _in_any_scope(chosen: Any) -> Any:
    logged = select(*CHANGE_COLUMNS, _s.c.scope).select_from(_c.join(_s, _s.c.scope_key == _c.c.scope_key))
    return logged.where(_c.c.tenant == bindparam("tenant"), chosen).order_by(_s.c.scope, _c.c.number)


def _latest_in_scopes(*where: Any) -> Any:
    """Select changes of content since a time with their scopes, the newest first, along the index of times."""
    its = (_c.c.scope_key == _s.c.scope_key) & (_c.c.tenant == _s.c.tenant)
    logged = select(*CHANGE_COLUMNS, _s.c.scope).select_from(_s.join(_c, its))
    chosen = logged.where(_s.c.tenant == bindparam("tenant"), _recent, *_of_content, *where)
    return chosen.order_by(_c.c.at.desc(), _s.c.scope, _c.c.number.desc()).limit(bindparam("count"))


_of_content = [_c.c.action != literal(action.value) for action in sorted(_STAYS)]
_recent = _c.c.at >= bindparam("since")
_reckoned = _c.c.number + 0
"""The arithmetic keeps the query off the index of numbers: it scans the index of times, not the whole log."""


_FIND = Statement(lambda: select(*SCOPE.columns).where(_named))
_keeps_vectors = exists().where(shared.index_states.c.name == MEMORY_VECTORS)
_LOCK = Statement(lambda: select(*SCOPE.columns, LAST, _keeps_vectors, _s.c.scope_key).where(_named).with_for_update())
_MAKE = Statement(
    lambda: (
        insert(_s)
        .values(tenant=bindparam("tenant"), scope=bindparam("scope"), changes=0, active=0, created_at=bindparam("now"))
        .on_conflict_do_nothing()
    )
)
_PAGE_AFTER = Statement(_page_after)
_STEP = Statement(
    lambda: (
        update(_s)
        .where(_s.c.scope_key == bindparam("key"), _s.c.tenant == bindparam("its_tenant"))
        .values(changes=_s.c.changes + bindparam("added"), active=_s.c.active + bindparam("more"))
    )
)
_TOUCHED = Statement(_touched)
_MARK = Statement(lambda: _set(_MARKS))
_REWRITE = Statement(lambda: _set(CONTENT))
_INSERT = Statement(lambda: _add(_m, "memory_key"))
_KEYS = Statement(
    lambda: select(_m.c.memory_id, _m.c.memory_key).where(
        _m.c.tenant == bindparam("tenant"), among(_m.c.memory_id, "memory_ids")
    )
)
_LOG = Statement(lambda: _add(_c))
_SUPPORT = Statement(lambda: _add(_src))
_NO_SUPPORT = Statement(
    lambda: delete(_src).where(
        *(_src.c[name] == bindparam(name) for name in ("tenant", "room_id", "message_id", "memory_key"))
    )
)
_CHANGES = Statement(lambda: _log(_c.c.number > bindparam("after")))
_CHANGES_SINCE = Statement(lambda: _log(_recent, _reckoned > bindparam("after"), order=_reckoned))
_LATEST = Statement(lambda: _log(_c.c.number < bindparam("before"), order=_c.c.number.desc()))
_LATEST_SINCE = Statement(lambda: _log(_recent, _reckoned < bindparam("before"), order=_reckoned.desc()))
_TOUCHES = Statement(_touches)
_BY_NUMBER = Statement(_by_number)
_OF_LINEAGES = Statement(_of_lineages)
_OF_LINEAGES_BETWEEN = Statement(_of_lineages_between)
_FEW = 1000
_LATEST_ANYWHERE = Statement(_latest_in_scopes)
_LATEST_IN_SCOPES = Statement(lambda: _latest_in_scopes(among(_s.c.scope, "scopes")))
_OF_EVOLUTION = Statement(lambda: _in_any_scope(_c.c.evolution_id == bindparam("evolution_id")))
_OF_MEMORIES = Statement(lambda: _in_any_scope(among(_c.c.memory_id, "memory_ids")))


@dataclass(frozen=True, slots=True)
class _Held:
    """A scope whose row this unit of work has locked. `snapshot`: the entry of its last snapshot, 0 if it has none."""

    key: int
    stored: Scope
    snapshot: int


class MemoryLog(Repository):
    """A part of `Memories`: the logs of scopes."""

    def __init__(self, connection: Connection, locks: Locks, tenant: str | None) -> None:
        super().__init__(connection, locks, tenant)
        self._due = Outbox(connection, locks, tenant, MEMORIES_DUE)
        self._snapshots = Snapshots(connection, locks, tenant)
        self._held: dict[tuple[str, str], _Held] = {}

    async def lock(self, *, scope: str, now: datetime) -> Scope:
        """Return the scope, created if new, with its row locked until the unit of work ends. Only while writing."""
        self._locks.check_writing()
        named = {"tenant": self._tenant, "scope": scope}
        rows = await self._sql.fetch(_LOCK, **named)
        if not rows:
            await self._sql.fetch(_MAKE, now=to_micros(now), **named)
            rows = await self._sql.fetch(_LOCK, **named)
        stored = SCOPE.read(rows[0], self._tenant)
        *_, snapshot, keeps_vectors, key = rows[0]
        self._locks.take_scope(LockedScope(key, self._tenant, scope, bool(keeps_vectors)))
        self._held[self._tenant, scope] = _Held(key, stored, snapshot)
        return stored

    async def scope(self, *, scope: str) -> Scope | None:
        """Return the scope as stored, None if nothing was ever remembered in it."""
        rows = await self._sql.fetch(_FIND, tenant=self._tenant, scope=scope)
        return SCOPE.read(rows[0], self._tenant) if rows else None

    async def scopes(self, *, after: str | None, limit: int) -> list[Scope]:
        """Return scopes above `after`, ascending."""
        rows = await self._sql.fetch(_PAGE_AFTER, tenant=self._tenant, after=after or "", count=limit)
        return [SCOPE.read(row, self._tenant) for row in rows]

    async def apply(self, *, scope: str, changes: Sequence[Change]) -> None:
        """Add changes to the log of a locked scope and apply them: all of them or none. All are computed first.

        CREATE begins a lineage; UPDATE and MERGE add a version to one, and close its active version; REVERT adds a
        version or touches an existing one; the others touch an existing one. A version that is closed and named among
        the new one's parents has its lineage merged into the new one's.

        Raises `Conflict` if a number does not follow the last one, a new version's id or number is taken, a version to
        be closed is not active, a touched one does not exist or has another status than the change starts from, or a
        lineage would have two active versions; `InvalidInput` if the scope is not locked or is another one, or if a
        change contradicts itself.
        """
        held = self._held.get((self._tenant, scope))
        if held is None:
            raise InvalidInput("scope_not_locked")
        if not changes:
            return
        check_numbers(scope, held.stored.changes, changes)
        plan = RowPlan(await self._touched(held, changes))
        for change in changes:
            plan.add(change)
        await self._write(held, plan, changes)

    async def changes(self, *, scope: str, after: int, limit: int, since: datetime | None = None) -> list[Change]:
        """Return changes of the scope with a number above `after`, ascending, those made at `since` or later."""
        named = {"tenant": self._tenant, "scope": scope, "after": after, "count": limit}
        if since is None:
            rows = await self._sql.fetch(_CHANGES, **named)
        else:
            rows = await self._sql.fetch(_CHANGES_SINCE, since=to_micros(since), **named)
        return [to_change(scope, row) for row in rows]

    async def touches(self, *, scope: str, after: int, limit: int) -> list[Touch]:
        """Return the changes that `changes` gives, without statements. A change that leaves a version as active as it
        was may say so (`Touch.active`)."""
        named = {"tenant": self._tenant, "scope": scope, "after": after, "count": limit}
        return [_to_touch(scope, row) for row in await self._sql.fetch(_TOUCHES, **named)]

    async def snapshot(self, *, scope: str, at: datetime) -> Snapshot | None:
        """Return the last stored snapshot that serves this moment, None if there is none. `apply` stores those that
        are due. An unreadable one is not returned."""
        read = await self._snapshots.serving(scope=scope, at=at)
        return read.snapshot if read else None

    async def changes_by_number(self, *, scope: str, numbers: Sequence[int]) -> list[Change]:
        """Return the changes of the scope with these numbers, ascending."""
        named = {"tenant": self._tenant, "scope": scope, "numbers": numbers_text(numbers)}
        return [to_change(scope, row) for row in await self._sql.fetch(_BY_NUMBER, **named)] if numbers else []

    async def changes_of_lineages(
        self, *, scope: str, lineage_ids: Sequence[str], after: int, until: int
    ) -> list[Change]:
        """Return the changes of the scope that made or touched a version of these lineages, ascending; those with a
        number above `after` up to `until`."""
        if not lineage_ids:
            return []
        named = {"tenant": self._tenant, "scope": scope, "lineage_ids": names_text(lineage_ids)}
        rows = await self._sql.fetch(
            _OF_LINEAGES if until - after > _FEW else _OF_LINEAGES_BETWEEN, after=after, until=until, **named
        )
        return [to_change(scope, row) for row in rows]

    async def latest_changes(
        self, *, scope: str, limit: int, before: int | None = None, since: datetime | None = None
    ) -> list[Change]:
        """Return changes of the scope with a number below `before` (None: up to the last one), descending, those made
        at `since` or later."""
        below = _NO_NUMBER if before is None else before
        named = {"tenant": self._tenant, "scope": scope, "before": below, "count": limit}
        if since is None:
            rows = await self._sql.fetch(_LATEST, **named)
        else:
            rows = await self._sql.fetch(_LATEST_SINCE, since=to_micros(since), **named)
        return [to_change(scope, row) for row in rows]

    async def latest_in(self, *, scopes: Collection[str] | None, since: datetime, limit: int) -> list[Change]:
        """Return the newest changes since a time, descending, of these scopes, None for all: those that add, change,
        delete or restore a memory."""
        named: dict[str, Any] = {"tenant": self._tenant, "since": to_micros(since), "count": limit}
        if scopes is None:
            rows = await self._sql.fetch(_LATEST_ANYWHERE, **named)
        else:
            rows = await self._sql.fetch(_LATEST_IN_SCOPES, scopes=names_text(sorted(scopes)), **named)
        return [to_change(row[-1], row) for row in rows]

    async def changes_of_evolution(self, *, evolution_id: str) -> list[Change]:
        """Return the changes that this evolution made, ascending; empty if there is no such evolution."""
        rows = await self._sql.fetch(_OF_EVOLUTION, tenant=self._tenant, evolution_id=evolution_id)
        return [to_change(row[-1], row) for row in rows]

    async def changes_of_memories(self, *, memory_ids: Sequence[str]) -> list[Change]:
        """Return the changes that made or touched these versions, by scope and ascending. A version is closed by an
        entry of the version that replaced it."""
        rows = await self._sql.fetch(_OF_MEMORIES, tenant=self._tenant, memory_ids=names_text(memory_ids))
        return [to_change(row[-1], row) for row in rows]

    async def _touched(self, held: _Held, changes: Sequence[Change]) -> list[VersionRow]:
        """Return the versions that the changes name, and the heads of their lineages."""
        named = {memory_id for change in changes for memory_id in (change.memory.memory_id, *change.closes)}
        lineages = {change.memory.lineage_id for change in changes}
        rows = await self._sql.fetch(
            _TOUCHED,
            tenant=held.stored.tenant,
            memory_ids=names_text(sorted(named)),
            lineage_ids=names_text(sorted(lineages)),
        )
        return [_to_version(held, row) for row in rows]

    async def _write(self, held: _Held, plan: RowPlan, changes: Sequence[Change]) -> None:
        tenant = held.stored.tenant
        mine = {"scope_key": held.key, "tenant": tenant}
        await self._many(_LOG, [mine | change_values(change) for change in changes])
        rows = plan.changed()
        stored = [row for row in rows if row.key is not None]
        await self._many(_MARK, [_own(row, tenant) | _new(_marks(row)) for row in stored])
        rewritten = [row for row in stored if row.memory]
        await self._many(_REWRITE, [_own(row, tenant) | _new(_content(row)) for row in rewritten])
        made = [row for row in rows if row.key is None]
        await self._many(_INSERT, [mine | _identity(row) | _marks(row) | _content(row) for row in made])
        await self._number(made)
        await self._support([*rewritten, *made])
        await self._step(held, added=len(changes), more=plan.active)
        await self._keep_snapshots(held.stored)
        numbers = [row.key for row in rows if row.key is not None]
        await self._due.add(scope=held.stored.scope, numbers=numbers, only_if_kept=True)

    async def _number(self, made: Sequence[VersionRow]) -> None:
        """Read the keys of new rows."""
        if made:
            rows = await self._sql.fetch(
                _KEYS, tenant=self._tenant, memory_ids=names_text([row.memory_id for row in made])
            )
            keys: dict[str, int] = dict(rows)
            for row in made:
                row.key = keys[row.memory_id]

    async def _support(self, rows: Sequence[VersionRow]) -> None:
        """Update which versions each message supports."""
        new: list[dict[str, Any]] = []
        gone: list[dict[str, Any]] = []
        for row in rows:
            its = {"tenant": self._tenant, "memory_key": row.key}
            now = set(row.memory.sources) if row.memory else set()
            new += [its | _place(source) for source in now.difference(row.sources)]
            gone += [its | _place(source) for source in set(row.sources) - now]
        await self._many(_NO_SUPPORT, gone)
        await self._many(_SUPPORT, new)

    async def _step(self, held: _Held, *, added: int, more: int) -> None:
        stored = held.stored
        await self._sql.fetch(_STEP, key=held.key, its_tenant=stored.tenant, added=added, more=more)
        after = replace(stored, changes=stored.changes + added, active=stored.active + more)
        self._held[stored.tenant, stored.scope] = replace(held, stored=after)

    async def _keep_snapshots(self, of: Scope) -> None:
        """Store the snapshots that are due. The last one is read again before: PostgreSQL reads it from before the wait
        for the lock when it locks the scope."""
        held = self._held[of.tenant, of.scope]
        if not _due(held, held.snapshot):
            return
        read = await self._snapshots.last(scope=of.scope)
        if read is not None and read.snapshot is None:
            return
        start = read.snapshot if read else None
        state, last = LogState(start), start.number if start else 0
        until = _due(held, last)
        if until:
            touches = await self.touches(scope=of.scope, after=last, limit=until - last)
            made = list(snapshots(state, touches, last=last, until=until))
            await self._snapshots.keep(scope_key=held.key, made=made)
            last = made[-1].number if made else last
        self._held[of.tenant, of.scope] = replace(held, snapshot=last)

    async def _many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            compiled = statement.on(self._sql.dialect)
            await self._sql.many(statement, [compiled.ordered(row) for row in rows])


def _due(held: _Held, last: int) -> int:
    return snapshots_due(last=last, changes=held.stored.changes, active=held.stored.active)


def _to_touch(scope: str, row: Row) -> Touch:
    number, at, memory_id, closes, action, memory_text = row
    if memory_text is not None:
        active: bool | None = LOGGED.read_text(memory_text, scope).status is MemoryStatus.ACTIVE
    else:
        active = _LEAVES_ACTIVE.get(action)
    return Touch(number, from_micros(at), memory_id, read_list(closes), active)


def _to_version(held: _Held, row: Row) -> VersionRow:
    key, scope_key, memory_id, lineage_id, version, status, head, merged_into, sources, newest = row
    return VersionRow(
        key=key,
        memory_id=memory_id,
        lineage_id=lineage_id,
        version=version,
        status=MemoryStatus(status),
        head=bool(head),
        merged_into=merged_into,
        elsewhere=scope_key != held.key,
        newest=newest,
        sources=read_sources(sources),
    )


def _own(row: VersionRow, tenant: str) -> dict[str, Any]:
    return {"key": row.key, "its_tenant": tenant}


def _new(values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"new_{name}": value for name, value in values.items()}


def _identity(row: VersionRow) -> dict[str, Any]:
    return {"memory_id": row.memory_id, "lineage_id": row.lineage_id, "version": row.version}


def _marks(row: VersionRow) -> dict[str, Any]:
    return {"status": row.status.value, "head": row.head, "merged_into": row.merged_into}


def _content(row: VersionRow) -> dict[str, Any]:
    return content_values(row.memory) if row.memory else {}


def _place(source: Any) -> dict[str, str]:
    return {"room_id": source.room_id, "message_id": source.message_id}
