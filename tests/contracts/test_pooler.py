"""A pooler in transaction mode: what roomlore leaves out behind it. `make soak` runs the contracts behind PgBouncer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from sqlalchemy import make_url, text

from roomlore.adapters.dbos import open_dbos
from roomlore.core.errors import StorageUnavailable
from roomlore.storage import connect
from roomlore.storage.engine import Statement

_SEQSCAN = Statement(lambda: text("SHOW enable_seqscan"))
_PREPARED = Statement(lambda: text("SELECT count(*) FROM pg_prepared_statements"))
_OTHER_NUMBER = (7).to_bytes(4)


@asynccontextmanager
async def pooled(url: str) -> AsyncIterator[str]:
    """The address of a proxy that, as PgBouncer does, tells clients other numbers than those of their sessions."""
    its = make_url(url)
    folder = its.query.get("host")

    served: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served.add(task)
        if folder:
            answers, asks = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{its.port or 5432}")
        else:
            answers, asks = await asyncio.open_connection(its.host, its.port or 5432)
        with suppress(ConnectionError):
            await asyncio.gather(_pass(reader, asks), _answer(answers, writer))
        for end in (asks, writer):
            with suppress(ConnectionError):
                await end.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    front = its.set(host="127.0.0.1", port=port, query={"sslmode": "disable", "gssencmode": "disable"})
    async with server:
        yield front.render_as_string(hide_password=False)
        await asyncio.gather(*served)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Messages one by one: a letter, a length, a body. That of BackendKeyData begins with the number."""
    with suppress(asyncio.IncompleteReadError):
        while True:
            head = await reader.readexactly(5)
            body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
            writer.write(head + (_OTHER_NUMBER + body[4:] if head[:1] == b"K" else body))
            await writer.drain()
    writer.close()


async def _look(url: str) -> tuple[str, int]:
    storage = await connect(url)
    try:
        async with storage.reading() as work:
            for _ in range(20):
                seqscan = (await work.connection.fetch(_SEQSCAN))[0][0]
                prepared = (await work.connection.fetch(_PREPARED))[0][0]
            return seqscan, prepared
    finally:
        await storage.close()


async def test_nothing_is_left_in_a_session_of_others(postgres_url):
    async with pooled(postgres_url) as url:
        assert await _look(url) == ("on", 0)


async def test_a_session_of_its_own_is_prepared(postgres_url):
    seqscan, prepared = await _look(postgres_url)
    assert seqscan == "off"
    assert prepared > 0


async def test_durable_work_names_what_it_needs_behind_a_pooler(postgres_url):
    async with pooled(postgres_url) as url:
        work = open_dbos(url)
        with pytest.raises(StorageUnavailable, match="work_database_url"):
            await work.open(working=True)
        await work.close()
