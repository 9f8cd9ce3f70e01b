"""Adds messages and indexes them in a process of its own: `python indexer.py URL START COUNT [die]`.

Each number is printed once its message is acknowledged. With `die` the process kills itself while it embeds, after the
first was printed: the messages are committed, their vectors are not made yet.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

import roomlore
from roomlore.core.search.hits import Vectors
from roomlore.services.indexing import index_state
from roomlore_testkit.embedding import HashEmbedder


class Deadly(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.printed = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        if any("remark" in text for text in texts):
            await self.printed.wait()
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().embed(texts, kind=kind)


def said(number: int) -> roomlore.Message:
    return roomlore.Message(id=str(number), room_id="tea", sender_id="ann", text=f"remark {number} 说的话{number}")


async def work(url: str, start: int, count: int, *, die: bool) -> None:
    settings = roomlore.Settings(vectors="sql")
    index_state.LEASE_SECONDS = 0.2
    embedder = Deadly() if die else HashEmbedder()
    async with roomlore.open(url, settings=settings, embedder=embedder) as lore:
        for number in range(start, start + count):
            await lore.messages.add(said(number))
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            if isinstance(embedder, Deadly):
                embedder.printed.set()
            await asyncio.sleep(0.001)
        await asyncio.sleep(5 if die else 0)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), die="die" in sys.argv))
