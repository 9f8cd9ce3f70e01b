"""The vector indexes the contract runs on: a name, and how to open an empty one."""

import os
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from uuid import uuid4

import pytest
from qdrant_client import AsyncQdrantClient

from qdrant_stand_in import QdrantStandIn
from roomlore.adapters.qdrant import open_qdrant
from roomlore.adapters.qdrant.index import QdrantVectors
from roomlore.adapters.vectors.pgvector import PgVectors
from roomlore.adapters.vectors.sql import SqlVectors, pgvector_error
from roomlore.ports.vectors import VectorIndex
from roomlore.storage import connect

SqlKind = type[SqlVectors] | type[PgVectors]
Opening = AbstractAsyncContextManager[VectorIndex]


@asynccontextmanager
async def _in_sql(url: str, kind: SqlKind) -> AsyncIterator[VectorIndex]:
    storage = await connect(url)
    assert kind is SqlVectors or await pgvector_error(storage) is None
    index = kind(storage)
    yield index
    await index.close()
    await storage.close()


def _in_database(url_fixture: str, kind: SqlKind, request: pytest.FixtureRequest) -> Opening:
    return _in_sql(str(request.getfixturevalue(url_fixture)), kind)


@asynccontextmanager
async def _in_local_qdrant(_request: pytest.FixtureRequest) -> AsyncIterator[VectorIndex]:
    """The client's own double: it warns that it ignores payload indexes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Payload indexes have no effect")
        index = QdrantVectors(AsyncQdrantClient(":memory:"))
        yield index
        await index.close()


@asynccontextmanager
async def _over_http(_request: pytest.FixtureRequest) -> AsyncIterator[VectorIndex]:
    async with QdrantStandIn() as server:
        index = open_qdrant(server.url, timeout_seconds=10)
        yield index
        await index.close()


@asynccontextmanager
async def _in_a_real_qdrant(_request: pytest.FixtureRequest) -> AsyncIterator[VectorIndex]:
    url, key = os.environ.get("QDRANT_URL"), os.environ.get("QDRANT_API_KEY")
    if not url:
        pytest.skip("QDRANT_URL is not set: there is no real Qdrant server to test")
    prefix = f"test_{uuid4().hex}_"
    index = open_qdrant(url, api_key=key, prefix=prefix, timeout_seconds=10)
    yield index
    await index.close()
    async with AsyncQdrantClient(url=url, api_key=key, check_compatibility=False) as client:
        for found in (await client.get_collections()).collections:
            if found.name.startswith(prefix):
                await client.delete_collection(found.name)


VECTOR_INDEXES: dict[str, Callable[[pytest.FixtureRequest], Opening]] = {
    "sqlite": partial(_in_database, "sqlite_url", SqlVectors),
    "postgresql": partial(_in_database, "postgres_url", SqlVectors),
    "pgvector": partial(_in_database, "postgres_url", PgVectors),
    "qdrant-local": _in_local_qdrant,
    "qdrant-http": _over_http,
    "qdrant-server": _in_a_real_qdrant,
}
