"""A chain of replies is corrected near its root while a person of many rooms is forgotten, and the server is killed in
the middle: it answers meanwhile, the next one ends both, and nothing that was acknowledged is lost.

With ROOMLORE_FULL_LOAD=1 (see `make soak`) the chain has 10,000 messages and the person 10,000 rooms, and the answers
must come as fast as they have to; the small load in CI, beside other tests, has four times as long.
"""

import asyncio
import os
import sys
import time
from dataclasses import dataclass, field
from itertools import count

import httpx
import numpy as np
import pytest
from clients import Clients, fill

import roomlore
from relink_rig import ROOM
from roomlore import Message

FULL = bool(os.environ.get("ROOMLORE_FULL_LOAD"))
CHAIN, ROOMS, KILLED_AFTER, SLOWER = (10_000, 10_000, 1.0, 1) if FULL else (2_500, 400, 0.05, 4)
LIVE_P99_SECONDS, WRITE_SECONDS = 0.25 * SLOWER, 1.0 * SLOWER
MARIA, WRITERS, LONG = "maria-7f3a9c", 4, 3_000


@dataclass
class Load(Clients):
    """`acknowledged`: the texts of the messages that are stored, by id."""

    acknowledged: dict[str, str] = field(default_factory=dict)

    async def look(self) -> None:
        while True:
            await self.ask("live", "GET", "/health/live")
            await asyncio.sleep(0.02)

    async def write(self, room_id: str) -> None:
        for number in count():
            one = {"id": f"{room_id}-{number}", "room_id": room_id, "sender_id": "ben", "text": f"Tea {number}, 茶"}
            await self.ask("write", "POST", "/messages", json={"messages": [one]})
            self.acknowledged[one["id"]] = one["text"]
            await asyncio.sleep(0.05)


def own_rooms() -> list[Message]:
    return [
        Message(id="1", room_id=f"den-{n}", sender_id=MARIA, text=f"{n}: the key is under a pot") for n in range(ROOMS)
    ]


@pytest.mark.timeout(LONG)
async def test_the_server_answers_meanwhile_and_the_next_one_ends_both(url, servers, tmp_path):
    await fill(url, CHAIN, own_rooms())
    load = Load(servers)
    await load.start()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(load.look())]
        tasks += [group.create_task(load.write(f"tea-{n}")) for n in range(WRITERS)]
        path = f"{servers.at}/messages/{ROOM}/m5/link"
        corrected = (await servers.client.put(path, json={"answers": None})).json()
        asked = asyncio.create_task(servers.forget(MARIA))
        await servers.until("forgetting", "running")
        await asyncio.sleep(KILLED_AFTER)
        await load.kill()
        with pytest.raises(httpx.TransportError):
            await asked
        await load.start()
        begun = time.monotonic()
        for kind in ("threads", "forgetting"):
            await servers.until(kind, "done", seconds=LONG)
        took = time.monotonic() - begun
        for task in tasks:
            task.cancel()
    lives, writes = load.took["live"], load.took["write"]
    p99, slowest = float(np.quantile(lives, 0.99)), max(writes)
    sys.stdout.write(
        f"{len(lives)} looks, p99 {p99:.3f} s, slowest {max(lives):.3f} s; "
        f"{len(writes)} writes, p99 {np.quantile(writes, 0.99):.3f} s, slowest {slowest:.3f} s; "
        f"{corrected['left']} to move; done {took:.1f} s after the restart\n"
    )
    await servers.kill()
    assert corrected["left"] > 0
    async with roomlore.open(url, background=False) as lore:
        assert (await lore.links.correct(ROOM, "m5", answers=None)).left == 0
        assert (await lore.privacy.verify()).sound
        rooms = {room.room_id: room.messages for room in await lore.rooms.page()}
        assert rooms.keys() == {ROOM, *(f"tea-{n}" for n in range(WRITERS))}
        assert rooms[ROOM] == CHAIN
        for name, text in load.acknowledged.items():
            assert (await lore.messages.get(name.rpartition("-")[0], name)).message.text == text
    assert load.acknowledged
    assert p99 < LIVE_P99_SECONDS
    assert slowest < WRITE_SECONDS
