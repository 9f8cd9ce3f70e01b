"""Storage behind a real PgBouncer in transaction mode, as `make soak` runs all contracts; and a whole roomlore."""

import asyncio
from datetime import UTC, datetime

import psycopg
import pytest
from typer.testing import CliRunner

import roomlore
import storage_contracts as contracts
from pgbouncer_server import BINARY, SESSIONS
from roomlore import Message, Settings
from roomlore.surfaces.cli.app import app

pytestmark = pytest.mark.skipif(BINARY is None, reason="needs pgbouncer: `make system-packages` installs it")

_NOW = datetime(2026, 1, 5, tzinfo=UTC)
_SETTINGS = Settings(durable_work="process", context_build_timeout_seconds=60, time_window_hours=8760)


@pytest.fixture
def storage_url(pooled_url: str) -> str:
    return pooled_url


class TestTransactions(contracts.TransactionsContract): ...


class TestWriter(contracts.WriterContract): ...


class TestLexical(contracts.LexicalContract): ...


class TestOutbox(contracts.OutboxContract): ...


async def test_more_writers_than_sessions_leave_nothing_in_them(pooled_url):
    """Each client has ten connections, and PgBouncer has fewer for both: a transaction that is sent to another session
    than it began in, or a statement that was prepared in another one, would fail."""
    rooms = [f"room-{number}" for number in range(4 * SESSIONS)]
    async with (
        roomlore.open(pooled_url, settings=_SETTINGS, background=False) as one,
        roomlore.open(pooled_url, settings=_SETTINGS, background=False) as other,
    ):
        for turn in range(4):
            said = [
                Message(id=f"m{turn}", room_id=room, sender_id="ben", text="who waters the garden?", sent_at=_NOW)
                for room in rooms
            ]
            await asyncio.gather(*((one, other)[at % 2].messages.add(message) for at, message in enumerate(said)))
        for lore in (one, other):
            found = await asyncio.gather(*(lore.messages.search(room, "garden") for room in rooms))
            assert {len(answer.hits) for answer in found} == {4}
            shown = await asyncio.gather(*(lore.context.build(room) for room in rooms))
            assert {len(context.messages) for context in shown} == {3}
    with psycopg.connect(pooled_url, prepare_threshold=None) as connection:
        assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert connection.execute("SHOW enable_seqscan").fetchone() == ("on",)


async def test_a_database_is_partitioned_through_it(pooled_url):
    async with roomlore.open(pooled_url, settings=_SETTINGS, background=False) as lore:
        await lore.messages.add(
            Message(id="m1", room_id="team", sender_id="ben", text="who waters the garden?", sent_at=_NOW)
        )
        result = await asyncio.to_thread(CliRunner().invoke, app, ["--db", pooled_url, "partition", "2"])
        assert result.exit_code == 0, result.output
        assert (await lore.messages.search("team", "garden")).hits
