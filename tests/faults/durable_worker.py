"""A process that does the work it finds: `durable_worker.py URL DIARY PAUSE NAME`, until told to end, or killed.

Each piece of work has three steps; each step writes one line into the diary, which every process appends to, and lasts
`PAUSE` seconds. Says `open` when it is at work, and ends when its input does.
"""

import asyncio
import os
import sys

from roomlore.adapters.dbos import open_dbos
from roomlore.ports.durable import Json, Steps

STEPS = 3


async def main(url: str, diary: str, pause: float, name: str) -> None:
    page = os.open(diary, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def count(steps: Steps, arguments: Json) -> None:
        for number in range(STEPS):

            async def step(number: int = number) -> Json:
                os.write(page, f"{arguments['piece']} {number} {name}\n".encode())
                await asyncio.sleep(pause)
                return {"number": number}

            assert await steps.once(f"step {number}", step) == {"number": number}

    work = open_dbos(url, poll_seconds=0.05, sweep_seconds=0.3)
    work.define("count", count)
    await work.open(working=True)
    os.write(1, b"open\n")
    await asyncio.to_thread(sys.stdin.read)
    await work.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]))
