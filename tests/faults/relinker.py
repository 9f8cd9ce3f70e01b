"""Makes links anew in a process of its own: `python relinker.py URL`. It prints how far it has come."""

import asyncio
import sys

from relink_rig import TODAY, opened


async def work(url: str) -> None:
    async with opened(url, TODAY, piece=20) as lore:
        async for step in lore.index.relink():
            sys.stdout.write(f"{step.done}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
