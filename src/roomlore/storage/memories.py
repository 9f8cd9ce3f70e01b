"""Parts of `Memories`, and rows of memories and their log to values and back."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, func, literal_column, or_, select, tuple_

from roomlore.core.memory.memory import (
    Evolution,
    Memory,
    MemoryKind,
    MemoryStatus,
    NumberedMemory,
)
from roomlore.storage import schema
from roomlore.storage.engine import Repository, Row, Statement, among, begins_or_ends, insert_row, key_of_scope
from roomlore.storage.rows import (
    containing,
    names_text,
    numbers_text,
    to_micros,
)
from roomlore.storage.shapes import EVOLUTION, MEMORY

_s, _m, _c, _src = schema.scopes, schema.memories, schema.changes, schema.sources


_in_scope = _s.c.scope_key == _m.c.scope_key
_ours = _m.c.tenant == bindparam("tenant")
_ours_without_index = _m.c.tenant.concat(literal_column("''")) == bindparam("tenant")
"""The tenant's check for a memory with a known key. It must not use an index: SQLite would scan all memories of the
tenant."""


def _any_memories(*more: Any) -> Any:
    """Select memories of all tenants, with more columns."""
    return select(*MEMORY.columns, *more).select_from(_m.join(_s, _in_scope))


def _memories(*where: Any) -> Any:
    return _any_memories().where(_ours, *where)


def _chosen() -> ColumnElement[bool]:
    """Return a condition: heads of the requested scopes, kinds and states. A scope has one tenant; a check of the
    tenant on each memory would keep the query off the index of scopes, which covers it."""
    scopes = select(_s.c.scope_key).where(_s.c.tenant == bindparam("tenant"), among(_s.c.scope, "scopes"))
    kinds = and_(_m.c.head, among(_m.c.kind, "kinds"), among(_m.c.status, "states"))
    return and_(_m.c.scope_key.in_(scopes), kinds)


_HOLDS = or_(_m.c.valid_until.is_(None), _m.c.valid_until > bindparam("held_at"))
_ENDED = _m.c.valid_until <= bindparam("ended_by")


def _page(*where: Any) -> Any:
    """Select a page. Only the keys are sorted; the content is read for the memories of the page alone. The tenant is
    checked with the keys: a second check would make PostgreSQL expect few rows and scan them all for each key."""
    latest = (_m.c.updated_at.desc(), _m.c.memory_id.desc())
    keys = select(_m.c.memory_key).where(_chosen(), *where).order_by(*latest)
    page = keys.limit(bindparam("count")).offset(bindparam("start")).subquery("page")
    joined = page.join(_m, _m.c.memory_key == page.c.memory_key).join(_s, _in_scope)
    return select(*MEMORY.columns).select_from(joined).order_by(*latest)


def _count(*where: Any) -> Any:
    return select(func.count()).select_from(_m).where(_chosen(), *where)


_MAX_WORDS = 4


def _saying() -> Any:
    statement = func.lower(_m.c.statement)
    parts = (statement.like(func.lower(bindparam(f"word{number}")), escape="!") for number in range(_MAX_WORDS))
    memories = _memories(schema.ACTIVE, *parts)
    return memories.order_by(_m.c.updated_at.desc(), _m.c.memory_id.desc()).limit(bindparam("count"))


def _citing() -> Any:
    mine = (_src.c.tenant == bindparam("tenant")) & (_src.c.room_id == bindparam("room_id"))
    keys = select(_src.c.memory_key).where(mine, among(_src.c.message_id, "message_ids"))
    chosen = _any_memories().where(_m.c.memory_key.in_(keys), schema.ACTIVE, _ours_without_index)
    return chosen.order_by(_m.c.memory_id)


def _short_of_room() -> Any:
    mine = (_src.c.tenant == bindparam("tenant")) & (_src.c.room_id == bindparam("room_id"))
    keys = select(_src.c.memory_key).where(mine)
    of_scope = (_s.c.tenant == bindparam("tenant")) & (_s.c.scope == bindparam("scope"))
    short = _any_memories().where(
        of_scope, schema.ACTIVE, _m.c.kind == MemoryKind.SHORT.value, _m.c.memory_key.in_(keys), _ours_without_index
    )
    return short.order_by(_m.c.updated_at.desc(), _m.c.memory_id.desc()).limit(bindparam("count"))


def _fallbacks(*where: Any) -> Any:
    waiting = _any_memories(_m.c.tenant).where(schema.WAITS_FOR_A_MODEL, *where)
    return waiting.order_by(_m.c.tenant, _m.c.memory_id).limit(bindparam("count"))


def _above() -> ColumnElement[bool]:
    return tuple_(_m.c.tenant, _m.c.memory_id) > tuple_(bindparam("after_tenant"), bindparam("after_id"))


_LINEAGES = Statement(lambda: select(_m.c.memory_id, _m.c.lineage_id).where(_ours, among(_m.c.memory_id, "memory_ids")))
_HEADS = Statement(
    lambda: _any_memories(_m.c.merged_into).where(_ours, among(_m.c.lineage_id, "lineage_ids"), _m.c.head)
)
_BY_ID = Statement(lambda: _memories(among(_m.c.memory_id, "memory_ids")))
_PAGE, _PAGE_HELD, _PAGE_ENDED = (Statement(partial(_page, *where)) for where in ((), (_HOLDS,), (_ENDED,)))
_COUNT, _COUNT_HELD, _COUNT_ENDED = (Statement(partial(_count, *where)) for where in ((), (_HOLDS,), (_ENDED,)))
_LATEST = Statement(
    lambda: (
        select(_m.c.lineage_id, func.max(_m.c.version))
        .where(_ours, among(_m.c.lineage_id, "lineage_ids"))
        .group_by(_m.c.lineage_id)
    )
)
_LINEAGE = Statement(lambda: _memories(_m.c.lineage_id == bindparam("lineage_id")).order_by(_m.c.version))
_IDS_LIKE = Statement(
    lambda: (
        select(_m.c.memory_id)
        .where(_ours, begins_or_ends(_m.c.memory_id))
        .order_by(_m.c.memory_id)
        .limit(bindparam("count"))
    )
)
_SAYING = Statement(lambda: _saying())
_CITING = Statement(_citing)
_SHORT_OF_ROOM = Statement(_short_of_room)
_FALLBACKS = Statement(_fallbacks)
_FALLBACKS_AFTER = Statement(lambda: _fallbacks(_above()))


class MemoryReading(Repository):
    """A part of `Memories`: versions and lineages, for reading."""

    async def by_id(self, *, memory_ids: Sequence[str]) -> list[Memory]:
        """Return the versions with these ids, in any scope, in no order."""
        rows = await self._sql.fetch(_BY_ID, tenant=self._tenant, memory_ids=names_text(memory_ids))
        return [MEMORY.read(row) for row in rows]

    async def heads(self, *, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Return the head of the lineage for each id of any version; for a lineage merged into another one, the head of
        that one, and so on.

        It follows merges one step at a time: a recursive query makes SQLite scan whole tables once it has statistics.
        """
        rows = await self._sql.fetch(_LINEAGES, tenant=self._tenant, memory_ids=names_text(memory_ids))
        on_the_way: dict[str, str] = dict(rows)
        heads_by_id: dict[str, Memory] = {}
        while on_the_way:
            heads = await self._heads_of(set(on_the_way.values()))
            reached = {memory_id: heads[lineage] for memory_id, lineage in on_the_way.items() if lineage in heads}
            heads_by_id |= {
                memory_id: head for memory_id, (head, merged_into) in reached.items() if merged_into is None
            }
            on_the_way = {memory_id: into for memory_id, (_, into) in reached.items() if into is not None}
        return heads_by_id

    async def _heads_of(self, lineages: Iterable[str]) -> dict[str, tuple[Memory, str | None]]:
        """Return the head of each lineage, and the lineage that it was merged into."""
        rows = await self._sql.fetch(_HEADS, tenant=self._tenant, lineage_ids=names_text(sorted(lineages)))
        read = [(MEMORY.read(row), row[-1]) for row in rows]
        return {head.lineage_id: (head, merged_into) for head, merged_into in read}

    async def page(
        self,
        *,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
        status: MemoryStatus | None,
        limit: int,
        offset: int = 0,
        held_at: datetime | None = None,
        ended_by: datetime | None = None,
    ) -> list[Memory]:
        """Return heads of lineages of these scopes and kinds, the latest `updated_at` first, then the highest id.

        `status`: None is any. `held_at`: those that had not ended then. `ended_by`: those that had ended then; one of
        the two at most."""
        chosen = _filter(self._tenant, scopes, kinds, status)
        statement, its = _held((_PAGE, _PAGE_HELD, _PAGE_ENDED), held_at, ended_by)
        rows = await self._sql.fetch(statement, count=limit, start=offset, **chosen, **its)
        return [MEMORY.read(row) for row in rows]

    async def count(
        self,
        *,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
        status: MemoryStatus | None,
        held_at: datetime | None = None,
        ended_by: datetime | None = None,
    ) -> int:
        """Return the total number of results of `page`."""
        statement, its = _held((_COUNT, _COUNT_HELD, _COUNT_ENDED), held_at, ended_by)
        rows = await self._sql.fetch(statement, **_filter(self._tenant, scopes, kinds, status), **its)
        return int(rows[0][0])

    async def lineage(self, *, lineage_id: str) -> list[Memory]:
        """Return every version of the lineage, the first one first."""
        rows = await self._sql.fetch(_LINEAGE, tenant=self._tenant, lineage_id=lineage_id)
        return [MEMORY.read(row) for row in rows]

    async def latest_versions(self, *, lineage_ids: Sequence[str]) -> dict[str, int]:
        """Return the highest version number of each of these lineages, active or not, without unknown ones."""
        rows = await self._sql.fetch(_LATEST, tenant=self._tenant, lineage_ids=names_text(lineage_ids))
        return {row[0]: row[1] for row in rows}

    async def ids_like(self, *, part: str, limit: int) -> list[str]:
        """Return the ids of versions that begin or end with `part`, ascending."""
        rows = await self._sql.fetch(_IDS_LIKE, tenant=self._tenant, part=part, count=limit)
        return [row[0] for row in rows]

    async def saying(self, *, words: Sequence[str], limit: int) -> list[Memory]:
        """Return active memories of any scope whose statement contains each of at most four words, whatever their case
        in ASCII, the latest `updated_at` first."""
        every = [*words[:_MAX_WORDS], *[""] * _MAX_WORDS][:_MAX_WORDS]
        patterns = {f"word{number}": containing(word) for number, word in enumerate(every)}
        rows = await self._sql.fetch(_SAYING, tenant=self._tenant, count=limit, **patterns)
        return [MEMORY.read(row) for row in rows]

    async def citing(self, *, room_id: str, message_ids: Sequence[str]) -> list[Memory]:
        """Return the active memories that any of these messages supports, by id."""
        here = {"tenant": self._tenant, "room_id": room_id}
        rows = await self._sql.fetch(_CITING, message_ids=names_text(message_ids), **here)
        return [MEMORY.read(row) for row in rows]

    async def short_of_room(self, *, scope: str, room_id: str, limit: int) -> list[Memory]:
        """Return the active short memories of the scope that a message of this room supports, the latest `updated_at`
        first, then the highest id."""
        here = {"tenant": self._tenant, "scope": scope, "room_id": room_id}
        rows = await self._sql.fetch(_SHORT_OF_ROOM, count=limit, **here)
        return [MEMORY.read(row) for row in rows]

    async def fallbacks(self, *, after: str | None, limit: int) -> list[tuple[str, Memory]]:
        """Return active memories of all tenants that were made as a fallback without their model, with their tenant, by
        tenant and id; those above `after`, which is a tenant and an id joined by a NUL: an id has none, so the last one
        ends the tenant."""
        if after is None:
            rows = await self._sql.fetch(_FALLBACKS, count=limit)
        else:
            tenant, _, memory_id = after.rpartition("\0")
            above = {"after_tenant": tenant, "after_id": memory_id}
            rows = await self._sql.fetch(_FALLBACKS_AFTER, count=limit, **above)
        return [(row[-1], MEMORY.read(row)) for row in rows]


def _filter(
    tenant: str, scopes: Sequence[str], kinds: Sequence[MemoryKind], status: MemoryStatus | None
) -> dict[str, str]:
    states = list(MemoryStatus) if status is None else [status]
    return {
        "tenant": tenant,
        "scopes": names_text(scopes),
        "kinds": names_text([kind.value for kind in kinds]),
        "states": names_text([state.value for state in states]),
    }


def _held(
    statements: tuple[Statement, Statement, Statement], held_at: datetime | None, ended_by: datetime | None
) -> tuple[Statement, dict[str, int]]:
    """Return the statement of all, of those that had not ended, or of those that had, with its time."""
    every, held, ended = statements
    if ended_by is not None:
        return ended, {"ended_by": to_micros(ended_by)}
    return (every, {}) if held_at is None else (held, {"held_at": to_micros(held_at)})


def _numbered(*where: Any) -> Any:
    return _any_memories(_m.c.tenant, _m.c.memory_key).where(schema.ACTIVE, *where)


def _active() -> Any:
    """Return a condition for active memories. A scope has one tenant; a check of the tenant on each memory would keep
    the query off the index of scopes."""
    latest = (_m.c.updated_at.desc(), _m.c.memory_id.desc())
    return _numbered(_m.c.scope_key == key_of_scope(), _m.c.head).order_by(*latest).limit(bindparam("count"))


def _after() -> Any:
    return _numbered(_m.c.memory_key > bindparam("after")).order_by(_m.c.memory_key).limit(bindparam("count"))


def _by_number() -> Any:
    """Select by number. The arithmetic on the scope's key keeps the query on the index of numbers."""
    mine = _m.c.scope_key + 0 == key_of_scope()
    return _numbered(among(_m.c.memory_key, "numbers"), mine).order_by(_m.c.memory_key)


_ACTIVE = Statement(_active)
_BY_NUMBER = Statement(_by_number)
_AFTER = Statement(_after)
_COUNT_ACTIVE = Statement(lambda: select(func.coalesce(func.sum(_s.c.active), 0)))


class NumberedReading(Repository):
    """A part of `Memories`: active memories by row number."""

    async def active(self, *, scope: str, limit: int) -> list[NumberedMemory]:
        """Return the active memories of the scope, the latest `updated_at` first, then the highest id."""
        rows = await self._sql.fetch(_ACTIVE, tenant=self._tenant, scope=scope, count=limit)
        return [_to_numbered(row) for row in rows]

    async def by_number(self, *, scope: str, numbers: Sequence[int]) -> list[NumberedMemory]:
        """Return the active ones of these versions, by number."""
        its = {"tenant": self._tenant, "scope": scope, "numbers": numbers_text(numbers)}
        return [_to_numbered(row) for row in await self._sql.fetch(_BY_NUMBER, **its)]

    async def active_after(self, *, number: int, limit: int) -> list[NumberedMemory]:
        """Return the active memories of all tenants with a number above this one, ascending, the order of a rebuild."""
        return [_to_numbered(row) for row in await self._sql.fetch(_AFTER, after=number, count=limit)]

    async def count_active(self) -> int:
        """Return the number of active memories of all tenants."""
        return int((await self._sql.fetch(_COUNT_ACTIVE))[0][0])


def _to_numbered(row: Row) -> NumberedMemory:
    return NumberedMemory(tenant=row[-2], number=row[-1], memory=MEMORY.read(row))


_e = schema.evolutions
_own_evolution = _e.c.tenant == bindparam("tenant")


def _evolution_page(*where: Any) -> Any:
    chosen = select(*EVOLUTION.columns).where(_own_evolution, _e.c.scope == bindparam("scope"), *where)
    return chosen.order_by(_e.c.evolution_id.desc()).limit(bindparam("count"))


_ADD = Statement(lambda: insert_row(_e).on_conflict_do_nothing().returning(_e.c.evolution_id))
_EVOLUTIONS_BY_ID = Statement(
    lambda: select(*EVOLUTION.columns).where(_own_evolution, among(_e.c.evolution_id, "evolution_ids"))
)
_EVOLUTION_IDS_LIKE = Statement(
    lambda: (
        select(_e.c.evolution_id)
        .where(_own_evolution, begins_or_ends(_e.c.evolution_id))
        .order_by(_e.c.evolution_id)
        .limit(bindparam("count"))
    )
)
_PAGE_FROM_END = Statement(_evolution_page)
_PAGE_BEFORE = Statement(lambda: _evolution_page(_e.c.evolution_id < bindparam("before")))


class EvolutionRecords(Repository):
    """A part of `Memories`: records of evolutions and extractions."""

    async def add_evolution(self, *, evolution: Evolution) -> bool:
        """Store the record. Return False, without a change, if its id exists already. Raises `InvalidInput` if its
        facts are no JSON."""
        self._locks.check_writing()
        return bool(await self._sql.fetch(_ADD, tenant=self._tenant, **EVOLUTION.values(evolution)))

    async def evolutions_by_id(self, *, evolution_ids: Sequence[str]) -> list[Evolution]:
        rows = await self._sql.fetch(_EVOLUTIONS_BY_ID, tenant=self._tenant, evolution_ids=names_text(evolution_ids))
        return [EVOLUTION.read(row) for row in rows]

    async def evolution_ids_like(self, *, part: str, limit: int) -> list[str]:
        """Return the ids that begin or end with `part`, ascending."""
        rows = await self._sql.fetch(_EVOLUTION_IDS_LIKE, tenant=self._tenant, part=part, count=limit)
        return [row[0] for row in rows]

    async def evolutions(self, *, scope: str, before: str | None, limit: int) -> list[Evolution]:
        """Return the scope's records with an id below `before`, newest first."""
        here = {"tenant": self._tenant, "scope": scope, "count": limit}
        if before is None:
            rows = await self._sql.fetch(_PAGE_FROM_END, **here)
        else:
            rows = await self._sql.fetch(_PAGE_BEFORE, before=before, **here)
        return [EVOLUTION.read(row) for row in rows]
