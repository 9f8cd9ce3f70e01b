"""Adds messages of one room from a process of its own: `python writer.py URL WRITER COUNT`, one or two at a time."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

import roomlore

START = datetime(2026, 2, 3, 9, tzinfo=UTC)
SAID = ["the deploy is stuck again", "which deploy?", "谁在跑迁移？", "me, wait a minute", "好的", "thanks", "lunch?"]


def said(writer: str, number: int) -> roomlore.Message:
    other = "b" if writer == "a" else "a"
    text = SAID[number % len(SAID)]
    return roomlore.Message(
        id=f"{writer}{number}",
        room_id="shared",
        sender_id=f"writer-{writer}",
        text=f"@writer-{other} {text}" if number % 3 == 0 else text,
        sent_at=START + timedelta(seconds=number),
        reply_to=f"{other}{number + 2}" if number % 7 == 0 else None,
    )


async def write(url: str, writer: str, count: int) -> None:
    async with roomlore.open(url) as lore:
        number = 0
        while number < count:
            size = 1 + number % 3
            batch = [said(writer, n) for n in range(number, min(count, number + size))]
            await lore.messages.add([*batch, said("shared", number % 5)], on_conflict="report")
            number += size
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3])))
