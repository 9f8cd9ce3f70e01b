"""kill -9 while links are corrected: what was acknowledged holds, and nothing is half done."""

import asyncio
import random
from pathlib import Path

import roomlore
from forked_process import ForkedProcess
from relink_rig import ROOM, told
from roomlore import LinkKind
from worker_processes import kills

CORRECTOR = Path(__file__).with_name("corrector.py")
KILLS = kills(3)
MESSAGES = 60


async def killed(url: str, first: int, seconds: float) -> list[str]:
    """What was acknowledged before it was killed."""
    process = await ForkedProcess.start(CORRECTOR, url, str(first))
    lines = [await process.stdout.readline()]
    await asyncio.sleep(seconds)
    process.kill()
    printed, _ = await process.communicate()
    return [line for line in (b"".join(lines) + printed).decode().splitlines(keepends=True) if line.endswith("\n")]


async def test_what_was_acknowledged_holds(url):
    async with roomlore.open(url, background=False) as lore:
        await lore.messages.add([told(number) for number in range(MESSAGES)])
    chance, count = random.Random(20261125), 0
    for _ in range(KILLS):
        lines = await killed(url, 1 + count, chance.uniform(0.0, 0.3))
        assert lines
        count = int(lines[-1].split()[0])
        async with roomlore.open(url, background=False) as lore:
            await check(lore, [line.split()[1:] for line in lines])
            count += 1


async def check(lore, acknowledged: list[list[str]]) -> None:
    """The last entries of the log are those that were acknowledged, and at most one that was not; links are as the log
    says; and without corrections the calibration is that of the replies alone."""
    log = await lore.links.corrections(ROOM, limit=1000)
    told_last = [
        [one.message_id, "undone" if one.kind == "undone" else str(one.answers)]
        for one in reversed(log[: len(acknowledged) + 1])
    ]
    assert acknowledged in (told_last[1:], told_last[:-1], told_last)
    assert [one.number for one in reversed(log)] == list(range(1, len(log) + 1))
    standing = {one.message_id: one.answers for one in log if one.standing}
    async with lore.storage.reading(lore.tenant) as work:
        entries = await work.messages.tail(room_id=ROOM, limit=1000)
        room = await work.rooms.find(room_id=ROOM)
        heard = await work.corrections.standing(room_id=ROOM, arrivals=[entry.message.arrival for entry in entries])
    for entry in entries:
        corrected = entry.link.kind is LinkKind.CORRECTED
        assert corrected == (entry.message.id in standing)
        answers = standing.get(entry.message.id)
        assert not corrected or entry.link.parent == (None if answers is None else int(answers) + 1)
    replies = sum(entry.message.reply_to is not None for entry in entries)
    assert room.linked.calibration.replies == replies + sum(bool(one.errors) for one in heard.values())
    assert (await lore.privacy.verify()).sound
