"""Holds a conversation from a process of its own: `python talker.py URL NAME FIRST`, until it is killed.

The number of each turn is printed once it is acknowledged. Every few turns it asks for the context, summarises it or
begins anew; checkpoints are made behind its back, too.
"""

import asyncio
import sys
from contextlib import suppress

import roomlore
from roomlore import Conflict, Settings
from roomlore.services.sessions import automatic

SETTINGS = Settings(auto_checkpoint=True, model_context_window=400, recent_turns=3)
ROOM = "talk"


def query(name: str, number: int) -> str:
    return f"{name}{number}: is the backup of node {number} done? 备份好了吗？"


def answer(name: str, number: int) -> str:
    return f"{name}{number}: it is, and it took {number} minutes. 好了。"


async def talk(url: str, name: str, number: int) -> None:
    automatic.SUMMARY_TOKENS = 80
    async with roomlore.open(url, settings=SETTINGS) as lore:
        while True:
            sessions = lore.sessions
            asked, answered = query(name, number), answer(name, number)
            await sessions.write_turn(ROOM, name, "bot", asked, answered, turn_id=f"{name}{number}")
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            number += 1
            context = await sessions.query_context(ROOM, "and now?")
            with suppress(Conflict):
                if number % 11 == 0:
                    await sessions.checkpoint(ROOM, f"all that {name} said", 3, context.covers_through)
                if number % 97 == 0:
                    await sessions.reset(ROOM)


if __name__ == "__main__":
    asyncio.run(talk(sys.argv[1], sys.argv[2], int(sys.argv[3])))
