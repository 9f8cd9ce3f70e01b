"""`roomlore import` and `roomlore export`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from roomlore.core.errors import InvalidInput, ModelUnavailable, VectorsUnavailable
from roomlore.core.exports import ImportReport
from roomlore.core.records import to_line
from roomlore.importers import FORMATS
from roomlore.surfaces.cli import indexing, show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

_NAMED_BAD = 20

Advance = Callable[[int, int, int], None]


def import_(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(help="An export: a file, a folder or a zip.")],
    form: Annotated[
        str | None,
        typer.Option("--format", help=f"One of {', '.join(FORMATS)}; found out by looking otherwise."),
    ] = None,
    room: Annotated[str | None, typer.Option(help="Put everything into this room.")] = None,
    timezone: Annotated[
        str | None,
        typer.Option(help="Of exports with local times, such as `Asia/Shanghai`; else the setting `time_zone`."),
    ] = None,
    day: Annotated[
        str | None, typer.Option(help="The first day of an IRC log without dates, such as `2024-05-01`.")
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Go on where an import of this file was broken off, or begin again.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="The report as JSON; it names up to 1,000 skipped lines.")
    ] = False,
) -> None:
    """Import a chat export. Lines that cannot be read are named and skipped; the same again adds nothing twice."""

    imported = False

    async def work(lore: Lore) -> None:
        nonlocal imported
        with _bar(path.name) as advance:
            report = await lore.imports.run(
                path, format=form, room_id=room, timezone=timezone, day=day, resume=resume, progress=advance
            )
        imported = True
        _tell(report, as_json=as_json)
        await _index(lore)

    try:
        frame_of(ctx).run(work)
    except KeyboardInterrupt as stop:
        if imported:
            typer.echo(f"Stopped. The messages are in; {indexing.PENDING} makes the vectors that are left.", err=True)
            return
        typer.echo("Stopped. The same command goes on from here.", err=True)
        raise typer.Exit(indexing.INTERRUPTED) from stop


async def _index(lore: Lore) -> None:
    """Makes the vectors of what came in; the import stands without them."""
    try:
        await indexing.follow(lore.index.drain())
    except InvalidInput as error:
        typer.echo(f"The messages are in, but have no vectors. {error}", err=True)
    except (ModelUnavailable, VectorsUnavailable) as error:
        typer.echo(f"The messages are in; {indexing.PENDING} makes the vectors that are left. {error}", err=True)


def _tell(report: ImportReport, *, as_json: bool) -> None:
    _name_bad(report)
    if as_json:
        show.as_json({**plain(report), "read": report.read})
    else:
        typer.echo(_summary(report))


@contextmanager
def _bar(name: str) -> Iterator[Advance]:
    """A progress bar on standard error; nothing where that is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), DownloadColumn())
    tail = (TextColumn("{task.fields[messages]} messages"), TimeRemainingColumn())
    shown = Console(stderr=True)
    with Progress(*columns, *tail, console=shown, transient=True, disable=not shown.is_terminal) as progress:
        task = progress.add_task(show.inert(name, 40).replace("[", "\\["), total=None, messages=0)

        def advance(done: int, total: int, messages: int) -> None:
            progress.update(task, completed=done, total=total, messages=messages)

        yield advance


def _name_bad(report: ImportReport) -> None:
    for bad in report.bad[:_NAMED_BAD]:
        typer.echo(f"skipped {bad.number}: {show.inert(bad.reason)} | {show.inert(bad.excerpt, 80)}", err=True)
    hidden = report.bad_count - min(len(report.bad), _NAMED_BAD)
    if hidden:
        typer.echo(f"skipped {hidden} more; --json names up to 1,000", err=True)


def _summary(report: ImportReport) -> str:
    counts = {
        "added": report.added,
        "duplicates": report.duplicates,
        "conflicts, left as they were": len(report.conflicts),
        "skipped": report.bad_count,
        "without a readable time": report.undated,
        "with repaired bytes": report.repaired,
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count or what == "added")
    begun = "went on with" if report.resumed else "read"
    rooms = f"{len(report.rooms)} room{'' if len(report.rooms) == 1 else 's'}"
    zone = f"; local times as those of {report.time_zone}" if report.time_zone else ""
    return f"{begun} {report.read} messages ({report.format}) in {rooms}: {told}{zone}"


def export(
    ctx: typer.Context,
    room: Annotated[str | None, typer.Option(help="This room only.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file, which appears only once it is whole; by default standard output."),
    ] = None,
) -> None:
    """Write messages as JSON lines that `import` reads back without loss."""

    async def work(lore: Lore) -> int:
        if room is not None:
            await lore.rooms.get(room)
        with _sink(output) as sink:
            return await _write(lore, room, sink)

    count = frame_of(ctx).run(work)
    typer.echo(f"wrote {count} messages", err=True)


async def _write(lore: Lore, room: str | None, sink: BinaryIO) -> int:
    count = 0
    async for message in lore.messages.export(room):
        sink.write(to_line(message))
        count += 1
    return count


@contextmanager
def _sink(output: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears only once it is whole."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(output)
    except OSError as error:
        raise InvalidInput(f"{output} cannot be written: {error.strerror}.") from error
    finally:
        part.unlink(missing_ok=True)
