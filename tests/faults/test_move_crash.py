"""A move that is killed at any moment, while the source goes on changing, is ended by the same command."""

import asyncio
from pathlib import Path

import pytest
from bench.moved_answers import unlike

from forked_process import ForkedProcess
from moved_store import answers, fill, index, opened, said
from roomlore.core.moving import differences
from roomlore.storage.moving import copied_tables, open_side
from worker_processes import kills

MOVER = """
import sys
from moved_store import SETTINGS
from roomlore.storage import moving as sides
from roomlore.wiring import moving

moving._BATCH_ROWS, sides._PAGE = 40, 15
settings = SETTINGS.changed(database_url=sys.argv[1])
report = moving.move(
    settings, settings.changed(database_url=sys.argv[2]), told=lambda what, done, _: print(what, done, flush=True),
    noticed=print,
)
print("copied", report.copied, "sound", report.sound, flush=True)
"""
STEPS = 83
"""The moments of the kills are so many lines apart; a move prints about 200 lines."""


@pytest.fixture(params=["sqlite-to-postgresql", "postgresql-to-sqlite"])
def urls(request, tmp_path) -> tuple[str, str]:
    file, server = f"sqlite:///{tmp_path}/chat.db", request.getfixturevalue("postgres_url")
    return (file, server) if request.param.startswith("sqlite") else (server, file)


async def run_until(program: Path, urls: tuple[str, str], lines: int) -> list[str]:
    """Start a move, kill it after so many lines, and return them; all of them if it ends before."""
    process = await ForkedProcess.start(program, *urls)
    told: list[str] = []
    while len(told) < lines and (line := await process.stdout.readline()):
        told.append(line.decode().strip())
    process.kill()
    await process.communicate()
    return told


async def change(url: str, number: int) -> None:
    async with opened(url) as lore:
        await lore.messages.add(
            [said("den", 1000 + number, "Bo", f"After kill {number} 消息"), said(f"r{number}", 1, "Ann", "hi")]
        )
        await lore.messages.edit("den", f"m{10 + number}", text=f"Edited after kill {number}")
        await lore.messages.delete("den", f"m{100 + number}")
        page = await lore.memories.page("group:den")
        await lore.memories.update(page[0].memory_id, statement=f"Changed after kill {number} 茶", reason="a kill")
        if number % 4 == 1:
            await lore.privacy.forget("dee")
        await index(lore)


async def test_a_killed_move_goes_on(urls, tmp_path):
    source, target = urls
    program = tmp_path / "mover.py"
    program.write_text(MOVER)
    await fill(source, more=300)
    for number in range(kills(5)):
        told = await run_until(program, urls, 1 + number * STEPS % 331)
        if not told[-1].endswith("sound True"):
            await change(source, number)
    told = await run_until(program, urls, 100_000)
    assert told[-1].endswith("sound True"), told[-1]
    assert unlike(await answers(source), await answers(target)) == []
    assert await asyncio.to_thread(unlike_rows, source, target) == {}


def unlike_rows(source: str, target: str) -> dict[str, int]:
    """Return how many rows differ, by table. How vectors are kept is another thing."""
    here, there = open_side(source), open_side(target)
    try:
        with here.snapshot(), there.snapshot():
            return {
                name: found
                for name in copied_tables()
                if not name.startswith("vector")
                and (
                    found := differences(
                        here.pages(name, form="sqlite"), there.pages(name, form="sqlite"), key=here.key_size(name)
                    ).rows
                )
            }
    finally:
        here.close()
        there.close()
