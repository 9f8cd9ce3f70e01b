"""Moves messages to their threads in a process of its own: `python thread_mover.py URL`. It corrects a link, which
changes nothing the second time, and prints how many messages are left after it and after each piece."""

import asyncio
import sys

import roomlore
from relink_rig import ROOM
from roomlore.services import links

PIECE = 20


def told(left: int) -> None:
    sys.stdout.write(f"{left}\n")
    sys.stdout.flush()


async def work(url: str) -> None:
    links._PIECE = PIECE
    async with roomlore.open(url) as lore:
        moves = lore.links._moves
        moved = moves._moved

        async def telling(room):
            async for count, left in moved(room):
                told(left)
                yield count, left

        moves._moved = telling
        told((await lore.links.correct(ROOM, "m5", answers=None)).left)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
