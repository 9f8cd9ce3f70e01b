"""kill -9 while attachments are described: none is lost, and what is stored is not asked about again."""

import random
from pathlib import Path

import roomlore
from attachment_rig import descriptions, held, settings
from extraction_rig import until
from roomlore_testkit.model_server import ModelServer, Says
from worker_processes import end, kill, kills, workers_of

WORKER = Path(__file__).with_name("describing_worker.py")
MESSAGES, AT_ONCE = 24, 4
KILLS = kills(3)


async def test_killed_anywhere(url):
    chance = random.Random(20261130)
    async with ModelServer(default=Says(text="the Kestrel hut", after=0.05)) as server:
        given = settings(server.url)
        async with (
            roomlore.open(url, settings=given, background=False) as lore,
            workers_of(WORKER, url, server.url) as workers,
        ):
            await lore.messages.add([held(str(number)) for number in range(MESSAGES)])
            await lore.messages.add([held(str(number), room_id="other") for number in range(2)])
            for _ in range(KILLS):
                asked = len(server.requests) + chance.randint(1, 6)
                worker = await workers.spawn(until="open")
                await until(lambda asked=asked: there(len(server.requests) >= asked), seconds=120)
                await kill(worker)
            last = await workers.spawn(until="open")

            async def all_described() -> bool:
                texts = [text for room in ("team", "other") for text in (await descriptions(lore, room)).values()]
                return texts == [["the Kestrel hut"]] * (MESSAGES + 2)

            await until(all_described, seconds=120)
            await end(last)
            assert MESSAGES + 2 <= len(server.requests) <= MESSAGES + 2 + 2 * AT_ONCE * KILLS
            assert (await lore.privacy.verify()).sound


async def there(is_so: bool) -> bool:
    return is_so
