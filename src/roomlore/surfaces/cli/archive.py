"""`roomlore archive`: old messages into files, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from roomlore.core.integrity import MENDS
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import AsJson, Group, OnlyRoom, frame_of, room_given
from roomlore.surfaces.cli.language import App, say, translated
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from roomlore.services.archives import ArchiveReport
    from roomlore.storage.values import Archive
    from roomlore.wiring import Lore

app = App(cls=Group, no_args_is_help=True, help="Archive old messages to files, and bring them back.")


@app.command("run")
def run(
    ctx: typer.Context,
    days: Annotated[int, typer.Option("--older-than", min=0, help="Archive messages sent more than so many days ago.")],
    room: OnlyRoom = None,
    as_json: AsJson = False,
) -> None:
    """Archive the tenant's old messages now."""

    async def work(lore: Lore) -> ArchiveReport:
        return await lore.archives.run(days=days, room_id=await room_given(lore, room))

    report = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(report))
        return
    typer.echo(say("archived {messages} of {rooms}", **_counts(report)))


@app.command("list")
def list_(
    ctx: typer.Context,
    room: OnlyRoom = None,
    as_json: AsJson = False,
) -> None:
    """List the tenant's archives, the oldest first."""

    async def work(lore: Lore) -> list[Archive]:
        return await lore.archives.kept(await room_given(lore, room))

    archives = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(archives))
        return
    shape = show.table("archive", "room", "messages", "file", right=("messages",), fixed=("archive",))
    show.console().print(show.rows(shape, map(_line, archives)))


def _line(archive: Archive) -> list[str]:
    return [
        show.inert(archive.archive_id),
        show.inert(archive.room_id, 40),
        f"{archive.messages:,}",
        show.inert(archive.file),
    ]


@app.command("restore")
def restore(
    ctx: typer.Context,
    archive_id: Annotated[
        str | None, typer.Argument(metavar="ARCHIVE_ID", help="The id that `archive list` shows.")
    ] = None,
    room: Annotated[str | None, typer.Option(help="All archives of this room, by id or name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Bring archived messages back to their places, and delete the files."""

    async def work(lore: Lore) -> ArchiveReport:
        return await lore.archives.restore(archive_id, room_id=await room_given(lore, room))

    report = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(report))
        return
    typer.echo(say("brought back {messages} of {rooms}", **_counts(report)))


@app.command("check")
def check(ctx: typer.Context) -> None:
    """Read every archive of the tenant; exits with 1 if a file is missing or damaged."""

    async def work(lore: Lore) -> list[str]:
        return await lore.archives.check()

    wrong = frame_of(ctx).run(work)
    for fault in wrong:
        typer.echo(show.inert(translated(fault)), err=True)
    if wrong:
        typer.echo(translated(MENDS["archives"]), err=True)
        raise typer.Exit(1)
    typer.echo(say("All archives can be read."))


def _counts(report: ArchiveReport) -> dict[str, str]:
    """Return the counts of a report in words."""
    return {"messages": show.counted(report.messages, "message"), "rooms": show.counted(report.rooms, "room")}
