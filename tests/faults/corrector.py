"""Corrects links of one room from a process of its own: `python corrector.py URL FIRST`. It prints each correction that
was acknowledged: the message, and what it answers."""

import asyncio
import sys

import roomlore
from relink_rig import ROOM

MESSAGES = 60


def wish(number: int) -> tuple[str, str | None] | None:
    """The correction of this number; None to take one back."""
    message = 20 + number * 7 % (MESSAGES - 20)
    if number % 5 == 4:
        return None
    return str(message), None if number % 3 == 2 else str(message - 1 - number % 11)


async def work(url: str, first: int) -> None:
    async with roomlore.open(url, background=False) as lore:
        number = first
        while True:
            said = wish(number)
            if said is None:
                undone = (await lore.links.in_force(limit=1))[0].message_id
                await lore.links.undo(ROOM, undone)
                said = undone, "undone"
            else:
                await lore.links.correct(ROOM, said[0], answers=said[1])
            sys.stdout.write(f"{number} {said[0]} {said[1]}\n")
            sys.stdout.flush()
            number += 1


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], int(sys.argv[2])))
