"""A server's process: does what each line of standard input says, and answers with what it tells of the room then."""

import asyncio
import json
import sys
from datetime import datetime
from typing import Any

import roomlore
from roomlore import Lore, Message, Settings

ROOM = "team"
SETTINGS: dict[str, Any] = {"durable_work": "process", "context_build_timeout_seconds": 60, "time_window_hours": 8760}


async def do(lore: Lore, verb: str, given: dict[str, str]) -> None:
    if verb == "add":
        at = datetime.fromisoformat(given["at"])
        said = Message(id=given["id"], room_id=ROOM, sender_id=given["by"], text=given["text"], sent_at=at)
        await lore.messages.add(said)
    elif verb == "edit":
        await lore.messages.edit(ROOM, given["id"], text=given["text"])
    else:
        await lore.messages.delete(ROOM, [given["id"]])


async def told(lore: Lore) -> list[Any]:
    """What is told out of caches: a search, a context, the threads."""
    found = await lore.messages.search(ROOM, "needs water", limit=200)
    context = await lore.context.build(ROOM, max_messages=50)
    threads = await lore.rooms.threads(ROOM)
    return [
        sorted([hit.message.id, hit.message.text] for hit in found.hits),
        [[one.message.id, one.message.text] for one in context.messages],
        [[thread.thread_id, thread.messages, thread.first_text] for _, thread in threads],
    ]


def _say(answer: list[Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


async def main(url: str) -> None:
    async with roomlore.open(url, settings=Settings(**SETTINGS), background=False) as lore:
        _say([])
        while line := await asyncio.to_thread(sys.stdin.readline):
            verb, given = json.loads(line)
            if verb != "tell":
                await do(lore, verb, given)
            _say(await told(lore))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
