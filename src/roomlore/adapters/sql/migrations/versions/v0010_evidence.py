"""The rooms in which the evidence of memories was said."""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from roomlore.adapters.sql.rows import escape, unescape

revision = "0010"
down_revision = "0009"

_AT_ONCE = 500
_BEGINNING, _END = -62135596800000000, 253402300799999999
_SAID_AT = sa.text(
    "SELECT m.sent_at FROM messages AS m JOIN rooms AS r ON r.room_key = m.room_key "
    "WHERE r.tenant = :tenant AND r.room_id = :room_id AND m.message_id = :message_id"
)


def upgrade() -> None:
    """Add the columns, and derive the evidence of each version, and of each entry of the log, from the messages that it
    cites. A message that is not known any more was said at an unknown time, which nobody but its room knows."""
    for name in ("evidence", "shared_with"):
        op.add_column("memories", sa.Column(name, sa.Text(), nullable=False, server_default="[]"))
    times: dict[tuple[str, str, str], int | None] = {}
    for key, tenant, sources in _pages("memory_key, tenant, sources", "memories", ("memory_key",), "sources <> '[]'"):
        told = escape(json.dumps(_evidence(times, tenant, json.loads(unescape(sources))), ensure_ascii=False))
        _set("memories", "evidence", told, {"memory_key": key})
    for scope, number, tenant, memory in _pages(
        "scope_key, number, tenant, memory", "memory_changes", ("scope_key", "number"), "1 = 1"
    ):
        version = json.loads(unescape(memory))
        version |= {"evidence": _evidence(times, tenant, version["sources"]), "shared_with": []}
        told = escape(json.dumps(version, ensure_ascii=False, separators=(",", ":")))
        _set("memory_changes", "memory", told, {"scope_key": scope, "number": number})


def _pages(columns: str, table: str, keys: tuple[str, ...], where: str) -> Iterator[Any]:
    """Yield the rows in order of their keys, which are the first columns."""
    after, names = (-1,) * len(keys), ", ".join(keys)
    given = ", ".join(f":after{place}" for place in range(len(keys)))
    wanted = sa.text(
        f"SELECT {columns} FROM {table} WHERE ({names}) > ({given}) AND {where} ORDER BY {names} LIMIT {_AT_ONCE}"  # noqa: S608
    )
    while True:
        page = op.get_bind().execute(wanted, {f"after{place}": key for place, key in enumerate(after)}).all()
        yield from page
        if len(page) < _AT_ONCE:
            return
        after = tuple(page[-1][: len(keys)])


def _set(table: str, column: str, value: str, keys: dict[str, int]) -> None:
    where = " AND ".join(f"{name} = :{name}" for name in keys)
    changed = sa.text(f"UPDATE {table} SET {column} = :value WHERE {where}")  # noqa: S608
    op.get_bind().execute(changed, {"value": value, **keys})


def _evidence(times: dict[tuple[str, str, str], int | None], tenant: str, sources: list[list[str]]) -> list[list[Any]]:
    found: dict[str, tuple[int, int]] = {}
    for room_id, message_id in sources:
        at = _said_at(times, (tenant, escape(room_id), escape(message_id)))
        first, last = (_BEGINNING, _END) if at is None else (at, at)
        known = found.get(room_id, (first, last))
        found[room_id] = min(known[0], first), max(known[1], last)
    return [[room_id, *found[room_id]] for room_id in sorted(found)]


def _said_at(times: dict[tuple[str, str, str], int | None], named: tuple[str, str, str]) -> int | None:
    if named not in times:
        its = dict(zip(("tenant", "room_id", "message_id"), named, strict=True))
        times[named] = op.get_bind().execute(_SAID_AT, its).scalar()
    return times[named]
