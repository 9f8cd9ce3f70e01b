"""A process that evolves: `evolving_worker.py URL MODEL_URL VERB`, until told to end, or killed.

`evolve`: says `ready`, waits for a line, evolves the group `g` here and now, and prints what came of it as JSON.
`begin`: hands the same in as durable work and prints its job. `work`: does what was handed in. The last two say `ready`
and end when their input does.
"""

import asyncio
import json
import os
import sys

from roomlore import Settings
from roomlore import open as open_lore
from roomlore.services.evolution import evolution_service


async def main(url: str, model_url: str, verb: str) -> None:
    settings = Settings(
        models={"memory-evolve-model": {"internal": True, "providers": [{"name": "first", "model_id": "tiny"}]}},
        providers={"first": {"base_url": model_url}},
        durable_work="dbos",
        model_timeout_seconds=60,
        evolve_schedule="",
    )
    evolution_service.LEASE_SECONDS = 6.0
    async with open_lore(url, settings=settings, background=verb != "evolve") as lore:
        if verb == "begin":
            say({"job": (await lore.memories.begin_evolution("g", mode="llm")).job_id})
        if verb == "work":
            await lore.jobs.begin()
        os.write(1, b"ready\n")
        if verb != "evolve":
            await asyncio.to_thread(sys.stdin.read)
            return
        await asyncio.to_thread(sys.stdin.readline)
        result = await lore.memories.evolve("g", mode="llm")
        say({"created": result.stats.created, "updated": result.stats.updated, "messages": result.messages})


def say(what: object) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
