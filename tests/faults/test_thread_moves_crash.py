"""kill -9 while messages move to their threads: the next process goes on, and it ends as in one transaction."""

import random
from itertools import pairwise
from pathlib import Path

import roomlore
from forked_process import ForkedProcess
from relink_rig import ROOM, stored, told
from roomlore.services import links
from worker_processes import kills

MOVER = Path(__file__).with_name("thread_mover.py")
MESSAGES = 1500
KILLS = kills(3)


def chain():
    """Each message replies to the one before it."""
    return [told(number, id=f"m{number}", reply_to=f"m{number - 1}") for number in range(1, MESSAGES + 1)]


async def left_when_killed(url: str, pieces: int) -> int:
    """Return how many messages were left when a process was killed after so many pieces."""
    process = await ForkedProcess.start(MOVER, url)
    try:
        for _ in range(pieces + 1):
            left = int(await process.stdout.readline())
    finally:
        process.kill()
        await process.communicate()
    return left


async def test_killed_anywhere(url, monkeypatch):
    async with roomlore.open(url, background=False) as lore:
        await lore.messages.add(chain())
    chance = random.Random(20261128)
    left = [await left_when_killed(url, chance.randint(0, 12)) for _ in range(KILLS)]
    assert all(before >= after > 0 for before, after in pairwise([*left, 1])), left
    async with roomlore.open(url) as lore:
        for job in await lore.jobs.page(kind="threads"):
            assert (await lore.jobs.wait(job.job_id)).status == "done"
        assert (await lore.links.correct(ROOM, "m5", answers=None)).left == 0
        assert (await lore.privacy.verify()).sound
        moved, _ = await stored(lore)
    async with roomlore.open("sqlite://", background=False) as other:
        await other.messages.add(chain())
        monkeypatch.setattr(links, "_PIECE", MESSAGES)
        assert (await other.links.correct(ROOM, "m5", answers=None)).left == 0
        once, _ = await stored(other)
    assert moved == once
