"""API keys, by the SHA-256 of their secret."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement
from roomlore.adapters.sql.values import (
    escape,
    from_micros,
    from_micros_or_none,
    list_text,
    read_list,
    to_micros,
    to_micros_or_none,
    unescape,
)
from roomlore.core.models import ApiKey

_k = schema.api_keys
_COLUMNS = (_k.c.key_id, _k.c.tenant, _k.c.name, _k.c.scopes, _k.c.created_at, _k.c.revoked_at)
_of_tenant = _k.c.tenant == bindparam("tenant")
_in_force = _k.c.revoked_at.is_(None)


def _revoke() -> Any:
    chosen = update(_k).where(_k.c.key_id == bindparam("own_id"))
    first = func.coalesce(_k.c.revoked_at, bindparam("now"))
    return chosen.values(revoked_at=first).returning(_k.c.key_id)


_ADD = Statement(lambda: insert(_k))
_MATCH = Statement(lambda: select(*_COLUMNS).where(_k.c.secret_hash == bindparam("hash"), _in_force))
_ALL = Statement(lambda: select(*_COLUMNS).order_by(_k.c.created_at, _k.c.key_id))
_TENANT = Statement(lambda: select(*_COLUMNS).where(_of_tenant).order_by(_k.c.created_at, _k.c.key_id))
_REVOKE_ANY = Statement(_revoke)
_REVOKE = Statement(lambda: _revoke().where(_of_tenant))
_FIRST = Statement(lambda: select(_k.c.key_id).limit(1))


class SqlKeys:
    """The port `Keys`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def add(self, *, key: ApiKey, secret_hash: str) -> None:
        """`Conflict` where the key id or the hash is taken."""
        self._locks.check_writing()
        row = (
            escape(key.key_id),
            escape(key.tenant),
            escape(key.name),
            list_text(key.scopes),
            secret_hash,
            to_micros(key.created_at),
            to_micros_or_none(key.revoked_at),
        )
        await self._sql.many(_ADD, [row])

    async def match(self, *, secret_hash: str) -> ApiKey | None:
        rows = await self._sql.fetch(_MATCH, hash=escape(secret_hash))
        return _to_key(rows[0]) if rows else None

    async def page(self, *, tenant: str | None) -> list[ApiKey]:
        if tenant is None:
            rows = await self._sql.fetch(_ALL)
        else:
            rows = await self._sql.fetch(_TENANT, tenant=escape(tenant))
        return [_to_key(row) for row in rows]

    async def revoke(self, *, tenant: str | None, key_id: str, now: datetime) -> bool:
        self._locks.check_writing()
        params: dict[str, Any] = {"own_id": escape(key_id), "now": to_micros(now)}
        if tenant is None:
            return bool(await self._sql.fetch(_REVOKE_ANY, **params))
        return bool(await self._sql.fetch(_REVOKE, tenant=escape(tenant), **params))

    async def any(self) -> bool:
        return bool(await self._sql.fetch(_FIRST))


def _to_key(row: Sequence[Any]) -> ApiKey:
    return ApiKey(
        key_id=unescape(row[0]),
        tenant=unescape(row[1]),
        name=unescape(row[2]),
        scopes=read_list(row[3]),
        created_at=from_micros(row[4]),
        revoked_at=from_micros_or_none(row[5]),
    )
