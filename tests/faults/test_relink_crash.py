"""kill -9 anywhere while links are made anew: it goes on where it stopped and comes out as in a new store."""

import asyncio
import random
import signal
from pathlib import Path

from forked_process import ForkedProcess
from relink_rig import EARLIER, ROOM, TODAY, fresh, opened, relinked, stored, told

RELINKER = Path(__file__).with_name("relinker.py")
MESSAGES = 800
KILLS = 3


async def killed_after(url: str, seconds: float) -> bool:
    """Return True if it was killed before it was done. `seconds`: the time after its first pieces."""
    process = await ForkedProcess.start(RELINKER, url)
    await process.stdout.readline()
    await asyncio.sleep(seconds)
    if process.returncode is None:
        process.kill()
    await process.communicate()
    return process.returncode == -signal.SIGKILL


async def walked(url: str) -> int:
    async with opened(url, TODAY) as lore:
        return (await lore.rooms.get(ROOM)).linked.walked


async def test_killed_anywhere(url):
    async with opened(url, EARLIER) as lore:
        await lore.messages.add([told(number) for number in range(MESSAGES)])
    chance = random.Random(20261123)
    places, kills = [0], 0
    for _ in range(KILLS):
        kills += await killed_after(url, chance.uniform(0.0, 0.08))
        places.append(await walked(url))
        await asyncio.sleep(0.25)
    assert kills == KILLS, "it was done before it could be killed"
    assert places == sorted(places)
    assert len(set(places)) == len(places), "each process went on"
    async with opened(url, TODAY) as lore:
        await lore.messages.add([told(number) for number in range(MESSAGES, MESSAGES + 50)])
        assert await relinked(lore) == MESSAGES + 50 - places[-1]
        assert await stored(lore) == await fresh([told(number) for number in range(MESSAGES + 50)])
