"""A process that describes attachments: `describing_worker.py URL MODEL_URL`, until told to end, or killed. Says `open`
when it is at work."""

import asyncio
import os
import sys

from attachment_rig import settings
from roomlore import open as open_lore


async def main(url: str, model_url: str) -> None:
    async with open_lore(url, settings=settings(model_url, durable_work="dbos")):
        os.write(1, b"open\n")
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
