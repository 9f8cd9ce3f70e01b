"""How derived indexes stand."""

import json
from typing import Any

from sqlalchemy import bindparam, case, func, literal_column, select, tuple_, union_all, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection, Row
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.rows import ROOM_COLUMNS, to_room
from roomlore.adapters.sql.statements import Statement
from roomlore.adapters.sql.values import escape, from_micros, to_micros, unescape
from roomlore.core.models import Room
from roomlore.core.search import EmbeddingModel, IndexState

_s, _r = schema.index_states, schema.rooms
_VALUES = ("model", "dimensions", "generation", "cursor", "updated_at")


def _given(prefix: str) -> dict[str, Any]:
    return {name: bindparam(f"{prefix}{name}", type_=_s.c[name].type) for name in _VALUES}


def _rooms_after() -> Any:
    place = tuple_(_r.c.tenant, _r.c.room_id)
    after = tuple_(bindparam("after_tenant", type_=_r.c.tenant.type), bindparam("after_room", type_=_r.c.room_id.type))
    return select(*ROOM_COLUMNS).where(place > after).order_by(_r.c.tenant, _r.c.room_id).limit(bindparam("count"))


def _to_link(*columns: Any) -> Any:
    """Other names stand before and after this one in the index."""
    model = bindparam("model", type_=_r.c.linked_by.type)
    sides = (_r.c.linked_by < model, _r.c.linked_by > model)
    return [select(*columns).where(side, _r.c.next_arrival > 1) for side in sides]


def _rooms_to_link() -> Any:
    sides = [side.limit(bindparam("count")).subquery() for side in _to_link(*ROOM_COLUMNS)]
    return union_all(*[select(*side.c) for side in sides])


def _left_to_link() -> Any:
    walked = case((_r.c.link_walk == bindparam("model"), _r.c.link_walked), else_=literal_column("0"))
    rooms = union_all(*_to_link((_r.c.next_arrival - literal_column("1") - walked).label("messages"))).subquery()
    return select(func.count(), func.sum(rooms.c.messages)).select_from(rooms)


_FIND = Statement(lambda: select(_s).where(_s.c.name == bindparam("name")))
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


class SqlIndexStates:
    """The port `IndexStates`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def find(self, *, name: str) -> IndexState | None:
        rows = await self._sql.fetch(_FIND, name=escape(name))
        return _to_state(rows[0]) if rows else None

    async def save(self, *, state: IndexState, expected: str | None) -> bool:
        self._locks.check_writing()
        values = dict(zip(_VALUES, _values(state), strict=True))
        if expected is None:
            return bool(await self._sql.fetch(_MAKE, name=escape(state.name), **values))
        new = {f"new_{name}": value for name, value in values.items()}
        changed = await self._sql.fetch(_CHANGE, own_name=escape(state.name), expected=escape(expected), **new)
        return bool(changed)

    async def rooms_after(self, *, tenant: str, room_id: str, limit: int) -> list[Room]:
        rows = await self._sql.fetch(_ROOMS_AFTER, after_tenant=escape(tenant), after_room=escape(room_id), count=limit)
        return [to_room(row) for row in rows]

    async def rooms_to_link(self, *, model: str, limit: int) -> list[Room]:
        rows = await self._sql.fetch(_ROOMS_TO_LINK, model=escape(model), count=limit)
        return [to_room(row) for row in rows[:limit]]

    async def left_to_link(self, *, model: str) -> tuple[int, int]:
        rows = await self._sql.fetch(_LEFT_TO_LINK, model=escape(model))
        return int(rows[0][0]), int(rows[0][1] or 0)


def _values(state: IndexState) -> tuple[Any, ...]:
    return (
        escape(state.model.name),
        state.model.dimensions,
        escape(state.generation),
        None if state.cursor is None else json.dumps(state.cursor),
        to_micros(state.updated_at),
    )


def _to_state(row: Row) -> IndexState:
    name, model, dimensions, generation, cursor, updated_at = row
    return IndexState(
        name=unescape(name),
        model=EmbeddingModel(name=unescape(model), dimensions=dimensions),
        generation=unescape(generation),
        cursor=None if cursor is None else tuple(json.loads(cursor)),
        updated_at=from_micros(updated_at),
    )
