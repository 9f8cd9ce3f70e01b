"""Two processes write to one room at once, and one is killed while it writes."""

import asyncio
import signal
from pathlib import Path

import pytest

import roomlore
from forked_process import ForkedProcess

WRITER = Path(__file__).with_name("writer.py")


async def start(url: str, writer: str, count: int) -> ForkedProcess:
    return await ForkedProcess.start(WRITER, url, writer, str(count))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shared.db'}"
    return request.getfixturevalue("postgres_url")


async def test_two_processes_lose_nothing_and_the_order_of_arrival_decides_the_threads(url):
    async with asyncio.timeout(90):
        writers = [await start(url, name, 60) for name in "ab"]
        assert [(await writer.communicate(), writer.returncode)[1] for writer in writers] == [0, 0]
    async with roomlore.open(url) as lore:
        messages = [message async for message in lore.messages.export("shared")]
        entries = [await lore.messages.get("shared", message.id) for message in messages]
    assert [message.arrival for message in messages] == list(range(1, len(messages) + 1))
    assert sorted(message.id for message in messages if message.id[0] in "ab") == sorted(
        f"{name}{number}" for name in "ab" for number in range(60)
    )
    assert sum(message.id.startswith("shared") for message in messages) == 5
    async with roomlore.open("sqlite://") as serial:
        for message in messages:
            await serial.messages.add(message)
        again = [await serial.messages.get("shared", message.id) for message in messages]
    assert again == entries


async def test_a_killed_writer_loses_nothing_it_was_told_is_stored(url):
    writer = await start(url, "a", 5_000)
    assert writer.stdout is not None
    acknowledged = 0
    async with asyncio.timeout(60):
        while acknowledged < 40:
            acknowledged = int(await writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = (await writer.stdout.read()).split()
        await writer.wait()
    acknowledged = max([acknowledged, *map(int, rest)])
    async with roomlore.open(url) as lore:
        stored = {message.id for message in await lore.messages.page("shared", limit=10_000)}
        assert {f"a{number}" for number in range(acknowledged)} <= stored
        entries = [await lore.messages.get("shared", message_id) for message_id in sorted(stored)]
        assert sorted(entry.message.arrival for entry in entries) == list(range(1, len(entries) + 1))
        await lore.messages.add(roomlore.Message(id="after", room_id="shared", sender_id="x", text="still works"))
