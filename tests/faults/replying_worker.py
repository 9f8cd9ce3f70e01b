"""A process whose agent replies: `replying_worker.py URL MODEL_URL ROOM FIRST COUNT`, until told to end, or killed.

Says `written` when the replies are stored, does the work that follows from them, and ends when its input does.
"""

import asyncio
import os
import sys

from roomlore import Message, Role, Settings
from roomlore import open as open_lore


async def main(url: str, model_url: str, room: str, first: int, count: int) -> None:
    settings = Settings(
        models={"memory-summary-model": {"internal": True, "providers": [{"name": "first", "model_id": "tiny"}]}},
        providers={"first": {"base_url": model_url}},
        durable_work="dbos",
    )
    async with open_lore(url, settings=settings) as lore:
        for n in range(first, first + count):
            await lore.messages.add([
                Message(id=f"q{n}-bot", room_id=room, sender_id="u1", text=f"问题 {n}"),
                Message(id=f"a{n}-bot", room_id=room, sender_id="bot", text=f"回复 {n}", role=Role.ASSISTANT),
            ])  # fmt: skip
        os.write(1, b"written\n")
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4], *map(int, sys.argv[4:])))
