"""What `Keys` must do."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roomlore.core.errors import Conflict
from roomlore.core.models import ApiKey
from roomlore.ports.storage import Storage
from roomlore.testing.builders import START
from roomlore.testing.contracts.filling import TENANT, digest

_KEY = ApiKey(key_id="k1", tenant=TENANT, name="bot", scopes=("read", "write"), created_at=START)


async def _add(storage: Storage, *keys: ApiKey) -> None:
    async with storage.writing() as work:
        for key in keys:
            await work.keys.add(key=key, secret_hash=digest(key.key_id))


class KeysContract:
    async def test_a_key_is_found_by_its_hash_alone(self, storage: Storage) -> None:
        await _add(storage, _KEY)
        async with storage.reading() as work:
            assert await work.keys.match(secret_hash=digest("k1")) == _KEY
            assert await work.keys.match(secret_hash=digest("k2")) is None
            assert await work.keys.match(secret_hash=digest("")) is None

    async def test_an_id_or_a_hash_is_taken_once(self, storage: Storage) -> None:
        await _add(storage, _KEY)
        with pytest.raises(Conflict):
            await _add(storage, _KEY)
        with pytest.raises(Conflict):
            async with storage.writing() as work:
                await work.keys.add(key=replace(_KEY, key_id="k2"), secret_hash=digest("k1"))

    async def test_a_revoked_key_matches_nothing_and_stays_listed(self, storage: Storage) -> None:
        await _add(storage, _KEY)
        async with storage.writing() as work:
            assert await work.keys.any()
            assert await work.keys.revoke(tenant=TENANT, key_id="k1", now=START)
            assert await work.keys.revoke(tenant=None, key_id="k1", now=START + timedelta(days=1))
            assert not await work.keys.revoke(tenant=TENANT, key_id="k2", now=START)
        async with storage.reading() as work:
            assert await work.keys.match(secret_hash=digest("k1")) is None
            assert await work.keys.page(tenant=TENANT) == [replace(_KEY, revoked_at=START)]
            assert await work.keys.any()

    async def test_the_operator_sees_all_tenants_oldest_first(self, storage: Storage) -> None:
        older = replace(_KEY, key_id="k0", tenant="other", created_at=START - timedelta(days=1))
        await _add(storage, _KEY, older)
        async with storage.reading() as work:
            assert await work.keys.page(tenant=None) == [older, _KEY]
            assert await work.keys.page(tenant="other") == [older]

    async def test_no_key_at_first(self, storage: Storage) -> None:
        async with storage.reading() as work:
            assert not await work.keys.any()
            assert await work.keys.page(tenant=None) == []
