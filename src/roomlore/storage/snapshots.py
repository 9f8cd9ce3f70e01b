"""Snapshots of the logs of scopes: a part of `Memories` and `Maintenance`.

A row holds the numbers of entries alone, a few bytes for each active memory; their ids are read from the log.
"""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import bindparam, func, literal_column, select

from roomlore.core.memory.log import Snapshot
from roomlore.storage import schema
from roomlore.storage.engine import Repository, Row, Statement, among, in_scope, insert_row
from roomlore.storage.rows import DAMAGE, from_micros, numbers_text, read_numbers, to_micros
from roomlore.storage.values import ReadSnapshot

_n, _s, _c = schema.snapshots, schema.scopes, schema.changes

LAST = func.coalesce(
    select(func.max(_n.c.number)).where(_n.c.scope_key == _s.c.scope_key, _n.c.tenant == _s.c.tenant).scalar_subquery(),
    literal_column("0"),
)
"""The entry of a scope's last snapshot, in a select of scopes."""
_mine = in_scope(_n)
_COLUMNS = (_n.c.number, _n.c.at, _n.c.reached_from, _n.c.in_force)


_LAST = Statement(lambda: select(*_COLUMNS).where(_mine).order_by(_n.c.number.desc()).limit(literal_column("1")))
_SERVING = Statement(
    lambda: (
        select(*_COLUMNS)
        .where(_mine, _n.c.reached_from <= bindparam("moment"), _n.c.at <= bindparam("moment"))
        .order_by(_n.c.reached_from.desc(), _n.c.number.desc())
        .limit(literal_column("1"))
    )
)
_BETWEEN = Statement(
    lambda: (
        select(*_COLUMNS)
        .where(_mine, _n.c.number > bindparam("after"), _n.c.number <= bindparam("until"))
        .order_by(_n.c.number)
        .limit(bindparam("count"))
    )
)
_NAMES = Statement(lambda: select(_c.c.memory_id, _c.c.number).where(in_scope(_c), among(_c.c.number, "numbers")))
_KEEP = Statement(lambda: insert_row(_n).on_conflict_do_nothing().inline())


class Snapshots(Repository):
    """The stored snapshots of scopes."""

    async def last(self, *, scope: str) -> ReadSnapshot | None:
        rows = await self._sql.fetch(_LAST, tenant=self._tenant, scope=scope)
        return await self._read(scope, rows[0]) if rows else None

    async def serving(self, *, scope: str, at: datetime) -> ReadSnapshot | None:
        """Return the last one that serves this moment."""
        rows = await self._sql.fetch(_SERVING, tenant=self._tenant, scope=scope, moment=to_micros(at))
        return await self._read(scope, rows[0]) if rows else None

    async def between(self, *, scope: str, after: int, until: int, limit: int) -> list[ReadSnapshot]:
        here = {"tenant": self._tenant, "scope": scope}
        rows = await self._sql.fetch(_BETWEEN, after=after, until=until, count=limit, **here)
        return [await self._read(scope, row) for row in rows]

    async def keep(self, *, scope_key: int, made: Iterable[Snapshot]) -> None:
        """Store snapshots of a locked scope."""
        for snapshot in made:
            await self._sql.fetch(
                _KEEP,
                scope_key=scope_key,
                tenant=self._tenant,
                number=snapshot.number,
                at=to_micros(snapshot.at),
                reached_from=to_micros(snapshot.reached_from),
                in_force=numbers_text(sorted(snapshot.in_force.values())),
            )

    async def _read(self, scope: str, row: Row) -> ReadSnapshot:
        number, at, reached_from, numbers_packed = row
        try:
            numbers = read_numbers(numbers_packed)
            rows = await self._sql.fetch(_NAMES, tenant=self._tenant, scope=scope, numbers=numbers_text(numbers))
            in_force: dict[str, int] = dict(rows)
            if len(in_force) != len(numbers):
                return ReadSnapshot(number, None, "It names entries that the log does not have.")
            return ReadSnapshot(number, Snapshot(number, from_micros(at), from_micros(reached_from), in_force))
        except DAMAGE as error:
            return ReadSnapshot(number, None, f"{type(error).__name__}: {error}"[:200])
