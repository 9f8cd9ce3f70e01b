"""`roomlore reindex`, and the progress of indexing that other commands show."""

from collections.abc import AsyncIterator
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from roomlore.core.errors import InvalidInput
from roomlore.services.indexing import IndexProgress, IndexStatus, Part
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

INTERRUPTED = 130
PENDING = "`roomlore reindex --pending`"
LINKS = "`roomlore reindex --links`"

_HELD = "another process is at work on them, or they failed just now and are free again soon (index_lease_seconds)"
_TOLD = {"words": "indexed the words of", "vectors": "made the vectors of", "links": "linked anew"}
_NOUNS = {"words": "message", "vectors": "text", "links": "message"}
"""Messages and memories have vectors."""
_DOING = {"words": "indexing words", "vectors": "indexing vectors", "links": "linking anew"}


def reindex(
    ctx: typer.Context,
    words: Annotated[bool, typer.Option("--words", help="Only the index of words.")] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help="Only the vectors.")] = False,
    links: Annotated[
        bool, typer.Option("--links", help="Only the links of rooms that an earlier version of the link model linked.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a rebuild was broken off.")] = False,
    pending: Annotated[
        bool, typer.Option("--pending", help="Rebuild nothing: make the vectors and links that are waited for.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Do nothing: say how the indexes stand, and what to do.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="How the indexes stand at the end, as JSON.")] = False,
) -> None:
    """Make the indexes of search anew from messages and memories, those of all tenants; searches go on meanwhile."""
    rebuilding = words or vectors or resume
    _refuse_mixtures(rebuilding=rebuilding, links=links, pending=pending, status=status)
    part: Part | None = None if words == vectors else "words" if words else "vectors"

    async def work(lore: Lore) -> tuple[dict[str, int], IndexStatus]:
        done: dict[str, int] = {}
        if not status and not links:
            done = await follow(lore.index.drain() if pending else lore.index.rebuild(part=part, resume=resume))
        if links or pending:
            done |= await follow(lore.index.relink())
        return done, await lore.index.status()

    try:
        done, standing = frame_of(ctx).run(work)
    except KeyboardInterrupt as stop:
        going_on = LINKS if links else PENDING if pending else _resuming(part)
        typer.echo(f"Stopped. {going_on} goes on from here.", err=True)
        raise typer.Exit(INTERRUPTED) from stop
    if as_json:
        show.as_json(plain(standing))
    elif status:
        _tell_status(standing)
    else:
        _tell_done(done, standing, of_vectors=part != "words" and not links, waited=pending or links)


async def follow(steps: AsyncIterator[IndexProgress]) -> dict[str, int]:
    """Waits for indexing with a bar on standard error (none where that is no terminal); how many texts of each part
    were indexed."""
    done: dict[str, int] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), MofNCompleteColumn())
    shown = Console(stderr=True)
    with Progress(
        *columns, TimeRemainingColumn(), console=shown, transient=True, disable=not shown.is_terminal
    ) as progress:
        bars = {part: progress.add_task(_DOING[part], total=None, visible=False) for part in _DOING}
        async for step in steps:
            done[step.part] = step.done
            progress.update(bars[step.part], completed=step.done, total=step.total, visible=True)
    return done


def _refuse_mixtures(*, rebuilding: bool, links: bool, pending: bool, status: bool) -> None:
    if pending and (rebuilding or links or status):
        raise InvalidInput("--pending rebuilds nothing; give it alone.")
    if links and (rebuilding or status):
        raise InvalidInput("--links goes on by itself where it was broken off; give it alone.")
    if status and rebuilding:
        raise InvalidInput("--status does nothing but tell; give it alone, or with --json.")


def _resuming(part: Part | None) -> str:
    return f"`roomlore reindex{f' --{part}' if part else ''} --resume`"


def _tell_done(done: dict[str, int], standing: IndexStatus, *, of_vectors: bool, waited: bool) -> None:
    for name, count in done.items():
        typer.echo(f"{_TOLD[name]} {_counted(count, _NOUNS[name])}")
    held = [_counted(standing.waiting, "text")] if standing.waiting and of_vectors else []
    held += [_counted(standing.rooms_to_link, "room")] if standing.rooms_to_link and waited else []
    if standing.vectors == "off" and of_vectors:
        typer.echo("no vectors: `embeddings` is off, search goes by words alone")
    if held:
        typer.echo(f"{' and '.join(held)} still waiting: {_HELD}")
    elif waited and not done:
        typer.echo("nothing was waiting")
    if standing.problem:
        typer.echo(show.inert(standing.problem), err=True)


def _tell_status(standing: IndexStatus) -> None:
    model = standing.model
    told = {
        "words": standing.words,
        "vectors": standing.vectors,
        "model": f"{show.inert(model.name)} ({model.dimensions} dimensions)" if model else "–",
        "waiting": _counted(standing.waiting, "text"),
        "links": f"{_counted(standing.rooms_to_link, 'room')} to link anew" if standing.rooms_to_link else "whole",
        "what to do": show.inert(standing.problem or _advice(standing)),
    }
    shape = show.table("index", "stands", fixed=("index",))
    show.console().print(show.rows(shape, told.items()))


def _advice(standing: IndexStatus) -> str:
    if standing.vectors == "off" and not standing.rooms_to_link:
        return "nothing; to search by meaning too, set `embeddings` (docs/how-to/search.md)"
    if standing.vectors == "behind":
        return f"nothing while `roomlore serve` runs; {PENDING} otherwise"
    if standing.vectors == "rebuilding":
        return "nothing while `roomlore serve` runs; `roomlore reindex --resume` otherwise"
    if standing.rooms_to_link:
        return f"nothing while `roomlore serve` runs; {LINKS} otherwise"
    return "nothing"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
