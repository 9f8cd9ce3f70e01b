"""Workers on one PostgreSQL share the extractions of many rooms; beside it one worker on as many rooms.

The workers are real: `roomlore worker` in processes of their own. The model is a scripted server in this process, whose
every answer takes a while. Each room has as many replies as make one short memory. The same run has one worker do other
rooms of the same database first, so that the ratio of the two rates holds on another machine. What is done before all
workers of a part are at work is left out of its rate. Exit code 1 if a room has no memory or two, or if the model was
asked for a room never or twice.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import roomlore
from bench import databases
from bench.progress import Progress
from roomlore_testkit.model_server import Asked, ModelServer, Says

MODEL = "memory-summary-model"
REPLIES = 5
_PROGRAM = (sys.executable, "-c", "from roomlore.surfaces.cli import main; main()")
_LOOK_SECONDS = 0.1
_START_SECONDS = 120
_PAGE = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rooms", type=int, default=500, help="rooms of each part, one extraction each")
    parser.add_argument("--workers", type=int, default=2, help="processes that share the work")
    parser.add_argument("--at-once", type=int, default=4, help="extractions that each does at a time")
    parser.add_argument("--answer", type=float, default=0.2, help="seconds that an answer of the model takes")
    parser.add_argument("--seconds", type=float, default=600, help="longest time for each part")
    parser.add_argument("--database", default=databases.EMBEDDED, help="postgresql://...; by default one of its own")


async def run(arguments: argparse.Namespace) -> None:
    with databases.database(arguments.database) as url:
        if not await WorkSharing(arguments, url).run():
            raise SystemExit(1)


@dataclass(slots=True)
class Part:
    """The outcome of the work on some rooms. `asked`: how often the model was asked for each room; `shares`: by which
    worker; `kept`: memories of each room; `pieces`, `seconds`: since all workers were at it."""

    rooms: Sequence[str]
    asked: Counter[str] = field(default_factory=Counter)
    shares: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    pieces: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.pieces / self.seconds

    def wrong(self) -> list[str]:
        """Return the faults, a sentence each."""
        once = Counter(dict.fromkeys(self.rooms, 1))
        return [
            f"{what}: {len(once.keys() - counts.keys())} rooms never, {sum(n > 1 for n in counts.values())} repeatedly"
            for what, counts in (("asked of the model", self.asked), ("kept as a memory", self.kept))
            if counts != once
        ]


class WorkSharing:
    """One database, one model, and parts of work on them."""

    def __init__(self, given: argparse.Namespace, url: str) -> None:
        self._given = given
        self._url = url
        self._name = f"sharing-{uuid4().hex[:8]}"
        self._part = Part([])

    async def run(self) -> bool:
        """Return True if every room was remembered exactly once."""
        given = self._given
        print(
            f"{given.rooms} rooms for each part, {given.at_once} extractions at a time in each worker, "
            f"an answer takes {given.answer} s",
            flush=True,
        )
        settings = roomlore.Settings(database_url=self._url, extract_every=REPLIES)
        async with (
            ModelServer(self._answer) as model,
            roomlore.open(settings=settings, background=False) as lore,
        ):
            alone = await self._work(lore, model, "alone", 1)
            together = await self._work(lore, model, "together", given.workers)
        print(f"{given.workers} workers are {together.rate / alone.rate:.2f} times as fast as one")
        return not alone.wrong() and not together.wrong()

    def _answer(self, request: Asked) -> Says:
        """A summary that names its room, which stands in what was said there."""
        room = next(word for word in request.prompt.split() if word.startswith(self._name))
        self._part.asked[room] += 1
        self._part.shares[request.path] += 1
        return Says(text=f"They meet at seven in {room}.", after=self._given.answer)

    async def _work(self, lore: roomlore.Lore, model: ModelServer, name: str, workers: int) -> Part:
        part = self._part = Part([f"{self._name}-{name}-{number}" for number in range(self._given.rooms)])
        await _fill(lore, part.rooms, agent=name)
        async with self._workers(model, workers):
            before, begun = sum(part.asked.values()), time.perf_counter()
            async with asyncio.timeout(self._given.seconds):
                await self._until_kept(lore, part, name)
            part.pieces, part.seconds = len(part.rooms) - before, time.perf_counter() - begun
        _tell(part, workers)
        return part

    async def _until_kept(self, lore: roomlore.Lore, part: Part, agent: str) -> None:
        progress = Progress("extractions", len(part.rooms))
        while len(part.asked) < len(part.rooms):
            await asyncio.sleep(_LOOK_SECONDS)
            progress.at(len(part.asked))
        while sum(part.kept.values()) < len(part.rooms):
            await asyncio.sleep(_LOOK_SECONDS)
            part.kept = await _kept(lore, agent)
        progress.end(len(part.rooms))

    @asynccontextmanager
    async def _workers(self, model: ModelServer, count: int) -> AsyncIterator[None]:
        """At work when the block begins, told to end at its end."""
        with TemporaryDirectory(prefix="roomlore-workers-") as folder:
            started = [await self._start(model, Path(folder), f"worker-{number}") for number in range(count)]
            try:
                await asyncio.gather(*map(_opened, started))
                yield
            finally:
                for process in started:
                    process.terminate()
                await asyncio.gather(*(process.communicate() for process in started))

    async def _start(self, model: ModelServer, folder: Path, name: str) -> asyncio.subprocess.Process:
        """The model knows the worker by the path that it asks at."""
        here = {"name": "scripted", "model_id": "scripted"}
        memory = {
            "extract_every": REPLIES,
            "models": {MODEL: {"internal": True, "providers": [here]}},
            "providers": {"scripted": {"base_url": f"{model.url}/{name}"}},
        }
        config = folder / f"{name}.yaml"
        config.write_text(json.dumps({"memory": memory}), encoding="utf-8")
        options = ("--db", self._url, "--config", str(config), "worker", "--at-once", str(self._given.at_once))
        return await asyncio.create_subprocess_exec(
            *_PROGRAM, *options, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )


async def _opened(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    if not await asyncio.wait_for(process.stdout.readline(), _START_SECONDS):
        raise SystemExit("A worker did not start; run `roomlore worker` by hand to see why.")


async def _fill(lore: roomlore.Lore, rooms: Sequence[str], *, agent: str) -> None:
    progress = Progress("rooms", len(rooms))
    for place, room in enumerate(rooms):
        await lore.messages.add(
            [
                roomlore.Message(
                    id=str(n),
                    room_id=room,
                    sender_id=agent,
                    role=roomlore.Role.ASSISTANT,
                    text=f"Seven, in {room} then",
                )
                for n in range(REPLIES)
            ]
        )
        progress.at(place)
    progress.end(len(rooms))


async def _kept(lore: roomlore.Lore, agent: str) -> Counter[str]:
    """Memories by room. By their ids first: pages move while memories are added."""
    rooms_by_memory: dict[str, str] = {}
    offset = 0
    while page := await lore.memories.page(f"agent:{agent}", limit=_PAGE, offset=offset):
        rooms_by_memory.update((memory.memory_id, memory.sources[0].room_id) for memory in page)
        offset += len(page)
    return Counter(rooms_by_memory.values())


def _tell(part: Part, workers: int) -> None:
    shares = ", ".join(str(count) for _, count in sorted(part.shares.items()))
    print(
        f"{workers} {'worker' if workers == 1 else 'workers'}: {part.rate:.1f} extractions/s "
        f"({part.pieces} in {part.seconds:.1f} s); {sum(part.asked.values())} requests to the model ({shares}), "
        f"{sum(part.kept.values())} memories of {len(part.kept)} rooms"
    )
    for sentence in part.wrong():
        print(f"WRONG: {sentence}")
    sys.stdout.flush()
