"""kill -9 at any instant: every turn that was acknowledged is there once and whole, and the session goes on."""

import asyncio
import random
from pathlib import Path

from talker import ROOM, SETTINGS, answer, query

import roomlore
from forked_process import ForkedProcess
from worker_processes import kills

TALKER = Path(__file__).with_name("talker.py")
KILLS = kills(2)


async def start(url: str, name: str, first: int) -> ForkedProcess:
    return await ForkedProcess.start(TALKER, url, name, str(first))


async def killed(process: ForkedProcess, seconds: float) -> int:
    """The number after the last turn that it was told is stored."""
    first = await process.stdout.readline()
    await asyncio.sleep(seconds)
    process.kill()
    rest = await process.stdout.read()
    await process.wait()
    return int((first + rest).decode().rpartition("\n")[0].splitlines()[-1]) + 1


async def assert_sound(lore: roomlore.Lore, reached: dict[str, int]) -> None:
    """Both halves or none, acknowledged ones all, in order; what is not covered is shown."""
    stored = [message async for message in lore.messages.export(ROOM)]
    halves = {name: [m.text for m in stored if m.text.startswith(name)] for name in reached}
    for name, count in reached.items():
        said = halves[name]
        assert len(said) % 2 == 0
        assert count <= len(said) // 2 <= count + KILLS
        assert said == [text(name, number) for number in range(len(said) // 2) for text in (query, answer)]
    context = await lore.sessions.query_context(ROOM, model_context_window=1_000_000)
    assert not context.truncated
    past = await lore.sessions.checkpoints(ROOM, limit=1)
    covered = past[0].covers_arrival if past else 0
    open_ = [message.text for message in stored if message.arrival > covered]
    shown = [message["content"] for message in context.messages if message["role"] != "system"]
    assert shown[len(shown) - len(open_) :] == open_
    assert (context.mode == "SUMMARY_N") == bool(past and past[0].kind == "summary")
    assert [one.number for one in await lore.sessions.checkpoints(ROOM)][::-1] == list(
        range(1, len(await lore.sessions.checkpoints(ROOM)) + 1)
    )


async def test_killed_anywhere(url):
    chance = random.Random(20240511)
    reached = {"ann": 0, "bob": 0}
    async with asyncio.timeout(120 + 5 * KILLS):
        for _ in range(KILLS):
            talkers = {name: await start(url, name, first) for name, first in reached.items()}
            ends = [killed(talker, chance.uniform(0.05, 0.5)) for talker in talkers.values()]
            reached = dict(zip(talkers, await asyncio.gather(*ends), strict=True))
    async with roomlore.open(url, settings=SETTINGS, background=False) as lore:
        await assert_sound(lore, reached)
        number = reached["ann"]
        for _ in range(2):
            await lore.sessions.write_turn(
                ROOM, "ann", "bot", query("ann", number), answer("ann", number), turn_id=f"ann{number}"
            )
        await lore.sessions.query_context(ROOM, "and now?")
        await lore.sessions.catch_up()
        await lore.sessions.checkpoint(ROOM, "all of it", covers_through=f"ann{number}-answer")
        await assert_sound(lore, reached)
