"""Round trips to PostgreSQL, counted on the wire: over a network each costs more than its statement."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

import roomlore
from roomlore.storage.engine import Statement
from roomlore.storage.postgres import PostgresConnection


class Wire:
    """Passes on what a client and its server say. `trips`: how often the server was heard after the client spoke."""

    def __init__(self, server: str) -> None:
        self._to = conninfo_to_dict(server)
        self._spoke = False
        self._talks: set[asyncio.Task[None]] = set()
        self.trips = 0
        self.url = ""

    async def serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._begin, "127.0.0.1")

    async def end(self) -> None:
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._talks.add(asyncio.create_task(self._meet(reader, writer)))

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = str(self._to["host"]), int(self._to.get("port") or 5432)
        if host.startswith("/"):
            there = await asyncio.open_unix_connection(str(Path(host) / f".s.PGSQL.{port}"))
        else:
            there = await asyncio.open_connection(host, port)
        try:
            await asyncio.gather(self._pass(reader, there[1], asked=True), self._pass(there[0], writer, asked=False))
        finally:
            for end in (writer, there[1]):
                end.close()
                with suppress(ConnectionError):
                    await end.wait_closed()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, asked: bool) -> None:
        while said := await reader.read(1 << 16):
            self.trips += self._spoke and not asked
            self._spoke = asked
            writer.write(said)
            await writer.drain()
        writer.close()  # The other side hears the end, too.


@pytest.fixture
async def wire(postgres_url: str) -> AsyncIterator[Wire]:
    wire = Wire(postgres_url.replace("postgresql+psycopg", "postgresql"))
    async with await wire.serve() as server:
        wire.url = (
            make_url(postgres_url)
            .set(host="127.0.0.1", port=server.sockets[0].getsockname()[1], query={"sslmode": "disable"})
            .render_as_string(hide_password=False)
        )
        yield wire
        await wire.end()


def said(number: int) -> roomlore.Message:
    return roomlore.Message(id=f"{number}", room_id="r", sender_id="ann", text=f"Who deploys the server? {number}")


async def test_a_message_is_added_with_three_round_trips(wire):
    settings = roomlore.Settings(embeddings="off")
    async with roomlore.open(wire.url, settings=settings, background=False) as lore:
        for number in range(30):
            await lore.messages.add(said(number))
        wire.trips = 0
        await lore.messages.add(said(30))
        assert wire.trips <= 3


async def test_what_fails_among_statements_sent_together_is_raised_and_not_logged_as_well(postgres_url, caplog):
    engine = create_async_engine(postgres_url)
    divided = Statement(lambda: text("SELECT 1 / 0"))
    async with engine.connect() as made:
        connection = PostgresConnection(await made.get_raw_connection(), engine.dialect)
        with pytest.raises(roomlore.RoomloreError, match="division by zero"):
            await connection.fetch_locked(divided, divided)
        await connection.run("ROLLBACK")
        assert not connection.broken()
    await engine.dispose()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("psycopg")] == []
