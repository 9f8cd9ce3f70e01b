"""Processes that a test starts, and may kill at any moment."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sqlalchemy import create_engine, text

from forked_process import ForkedProcess
from roomlore.adapters.dbos.locations import location_of

Process = ForkedProcess


def kills(few: int) -> int:
    """Return how many processes a crash test kills: `few`, or as many as ROOMLORE_KILLS says (see `make soak`)."""
    return int(os.environ.get("ROOMLORE_KILLS", few))


class Workers:
    """Processes of one program; the first arguments of all are `given`. None outlives its test."""

    def __init__(self, program: Path, *given: str) -> None:
        self._program = program
        self._given = given
        self._all: list[Process] = []

    async def spawn(self, *arguments: object, until: str = "") -> Process:
        """One more, once it has printed the line `until`; at once where that is empty."""
        process = await Process.start(self._program, *self._given, *map(str, arguments))
        self._all.append(process)
        if until:
            await printed(process, until)
        return process

    async def kill_all(self) -> None:
        for process in self._all:
            if process.returncode is None:
                await kill(process)


@asynccontextmanager
async def workers_of(program: Path, *given: str) -> AsyncIterator[Workers]:
    started = Workers(program, *given)
    try:
        yield started
    finally:
        await started.kill_all()


async def printed(process: Process, line: str) -> None:
    """Comes back once the process has printed the line; others before it are passed over."""
    while (await process.stdout.readline()).rstrip() != line.encode():
        assert not process.stdout.at_eof()


async def kill(process: Process) -> None:
    process.kill()
    await process.communicate()


async def end(process: Process) -> None:
    """Lets it end by itself, as it does where its standard input does."""
    await process.communicate(b"")
    assert process.returncode == 0


async def answer_kept(url: str, model: str) -> bool:
    """Return True if durable work on this database has stored an answer of the model."""
    return await asyncio.to_thread(_answer_kept, url, model)


def _answer_kept(url: str, model: str) -> bool:
    place = location_of(url).url
    schema = "" if place.drivername == "sqlite" else "dbos."
    engine = create_engine(place)
    try:
        with engine.begin() as connection:
            outputs = connection.execute(text(f"SELECT output FROM {schema}operation_outputs")).scalars().all()
    finally:
        engine.dispose()
    return any(output and model in output for output in outputs)
