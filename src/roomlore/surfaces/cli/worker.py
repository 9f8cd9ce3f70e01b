"""`roomlore worker`: the work that is done behind the calls, in a process of its own."""

import asyncio
import signal
from typing import Annotated

import typer

from roomlore.settings import Settings
from roomlore.surfaces.cli.frame import frame_of
from roomlore.wiring import Lore, open_lore

_LOOK_SECONDS = 1.0


def worker(
    ctx: typer.Context,
    at_once: Annotated[
        int | None,
        typer.Option(
            "--at-once",
            min=1,
            max=64,
            help="Pieces of durable work at a time.",
            show_default="the setting work_at_once",
        ),
    ] = None,
) -> None:
    """Do the work behind the calls, of all tenants, until stopped."""
    frame = frame_of(ctx)
    asyncio.run(_work(frame.settings(work_at_once=at_once), frame.place()))


async def _work(settings: Settings, place: str) -> None:
    told = _Told()
    async with open_lore(settings=settings) as lore:
        await lore.jobs.begin()
        typer.echo(f"roomlore works on {place}: {_what(settings)}. Stop it with Ctrl-C.")
        for sentence in _manners(settings, lore):
            typer.echo(sentence)
        await _until(told, lore)
        typer.echo("Stopping; what is not finished is left to whoever works next.")


class _Told:
    """Set by the first SIGINT or SIGTERM; the second one ends the process at once, as if there were no handler."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}

    def _hear(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> bool:
        """Whether it was told within so many seconds."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True


async def _until(told: _Told, lore: Lore) -> None:
    """Says, while it waits, whenever it begins to stand by or to work."""
    working = True
    while not await told.wait(_LOOK_SECONDS):
        if working is not (working := await lore.jobs.works_here()):
            typer.echo("Works now." if working else "Stands by: another process works on this database.")


def _what(settings: Settings) -> str:
    parts = [f"short memories ({settings.work_at_once} at a time)"] if settings.extract_every else []
    parts += ["indexes for search"]
    parts += ["summaries of sessions"] if settings.auto_checkpoint else []
    return ", ".join(parts)


def _manners(settings: Settings, lore: Lore) -> list[str]:
    if not lore.jobs.shared:
        return ["Work is kept in this process alone (durable_work); one that is killed begins it anew from the data."]
    if settings.database_url.startswith("postgres"):
        return []
    return ["On SQLite one process works at a time, a server too: the others stand by and follow when it ends."]
