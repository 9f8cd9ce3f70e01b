"""kill -9 of a server while it forgets somebody: the next one goes on by itself, and lists the job until it is done."""

import asyncio
import random

import httpx
import pytest

import roomlore
from roomlore import Message
from worker_processes import kills

MARIA, SECRET = "maria-7f3a9c", "the spare key hangs under the third flower pot"
ROOMS = 600
KILLS = kills(2)


async def left(url: str) -> int:
    async with roomlore.open(url, background=False) as lore:
        return len(await lore.rooms.page(limit=ROOMS + 1)) - 1


async def test_a_killed_server_forgets_after_its_restart(url, servers, tmp_path):
    async with roomlore.open(url, background=False) as lore:
        own = [Message(id=f"{n}", room_id=f"den-{n}", sender_id=MARIA, text=f"{n}: {SECRET}") for n in range(ROOMS)]
        shared = [
            Message(id="1", room_id="tea", sender_id=MARIA, text=SECRET),
            Message(id="2", room_id="tea", sender_id="ben", text=f"> {SECRET}\n@{MARIA} which pot?", reply_to="1"),
        ]
        await lore.messages.add([*own, *shared])
    chance, places = random.Random(20261128), [await left(url)]
    await servers.start()
    asked = asyncio.create_task(servers.forget(MARIA))
    for _ in range(KILLS):
        await servers.until("forgetting", "running")
        await asyncio.sleep(chance.uniform(0.1, 0.5))
        await servers.kill()
        places.append(await left(url))
        await servers.start()
    assert places[-1] > 0, "it was done before it could be killed"
    assert places == sorted(places, reverse=True), "each process went on"
    with pytest.raises(httpx.TransportError):
        await asked
    await servers.until("forgetting", "done")
    (job,) = await servers.jobs("forgetting")
    assert (job["error"], "left" in job["progress"], MARIA in str(job)) == ("", False, False)
    told = (await servers.forget(MARIA)).json()
    assert (told["found"], told["complete"]) == (False, True), "nothing is left"
    await servers.kill()
    async with roomlore.open(url, background=False) as lore:
        assert [one.room_id for one in await lore.rooms.page()] == ["tea"]
        (kept,) = await lore.messages.page("tea")
        assert (kept.sender_id, kept.text) == ("ben", "> [forgotten]\n@[forgotten] which pot?")
        assert (await lore.privacy.verify()).sound
    held = [path.name for path in sorted(tmp_path.glob("*.db*")) if MARIA.encode() in path.read_bytes()]
    assert held == []
