"""`roomlore import`, `export`, `reindex` and `partition`, with progress bars."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from roomlore.core.errors import InvalidInput, ModelUnavailable, VectorsUnavailable
from roomlore.core.models import CorrectionKind
from roomlore.core.records import CorrectedLink, ImportReport, to_line
from roomlore.settings.registry import importers
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import OnlyRoom, frame_of, room_given, room_to_write
from roomlore.surfaces.cli.language import say, several, translated
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from roomlore.services.indexing import IndexProgress, IndexStatus, Part
    from roomlore.wiring import Lore

INTERRUPTED = 130
_PAGE = 500
PENDING = "`roomlore reindex --pending`"
LINKS = "`roomlore reindex --links`"

_HELD = (
    "{what} still waiting: another process is at work on them, or they failed just now and are free again within a "
    "minute"
)
_TOLD = {
    "words": "indexed the words of {what}",
    "vectors": "made the vectors of {what}",
    "links": "linked anew {what}",
}
_NOUNS = {"words": "message", "vectors": "text", "links": "message"}
"""The counted items: both messages and memories have vectors."""
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
    """Rebuild the search indexes of all tenants from messages and memories; searches continue meanwhile."""
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
        typer.echo(say("Stopped. {command} goes on from here.", command=going_on), err=True)
        raise typer.Exit(INTERRUPTED) from stop
    if as_json:
        show.as_json(to_jsonable(standing))
    elif status:
        _tell_status(standing)
    else:
        _tell_done(done, standing, of_vectors=part != "words" and not links, waited=pending or links)


async def follow(steps: AsyncIterator[IndexProgress]) -> dict[str, int]:
    """Wait for indexing, with a bar on standard error if it is a terminal. Return how many texts of each part were
    indexed."""
    done: dict[str, int] = {}
    with counting() as progress:
        bars = {part: progress.add_task(say(_DOING[part]), total=None, visible=False) for part in _DOING}
        async for step in steps:
            done[step.part] = step.done
            progress.update(bars[step.part], completed=step.done, total=step.total, visible=True)
    return done


def counting() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), MofNCompleteColumn())
    shown = Console(stderr=True)
    return Progress(*columns, TimeRemainingColumn(), console=shown, transient=True, disable=not shown.is_terminal)


def partition(
    ctx: typer.Context,
    parts: Annotated[
        int | None, typer.Argument(metavar="PARTS", min=2, max=1024, help="How many; it cannot be changed later.")
    ] = None,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give up a copy that is not in place yet, and drop it.")
    ] = False,
) -> None:
    """Partition the tables of messages of a PostgreSQL database by room, copying in the background."""
    from roomlore.storage.partitions import Copied
    from roomlore.storage.partitions import abandon as drop_copy
    from roomlore.storage.partitions import partition as copy

    if abandon == (parts is not None):
        raise typer.BadParameter("Give PARTS or --abandon.")
    url = frame_of(ctx).settings().database.database_url
    if parts is None:
        dropped = asyncio.run(drop_copy(url))
        typer.echo(say("The copy is dropped.") if dropped else say("There is no copy to give up."))
        return
    with counting() as progress:
        bar = progress.add_task(say("copying rooms"), total=None)

        def report_copied(copied: Copied) -> None:
            progress.update(bar, completed=copied.rooms, total=copied.all_rooms)

        try:
            done = asyncio.run(copy(url, parts, told=report_copied))
        except KeyboardInterrupt as stop:
            typer.echo(say("Stopped. The same command goes on from here."), err=True)
            raise typer.Exit(INTERRUPTED) from stop
    if done:
        typer.echo(say("The tables of messages have {parts} partitions.", parts=parts))
    else:
        typer.echo(say("The tables of messages have {parts} partitions already.", parts=parts))


def _refuse_mixtures(*, rebuilding: bool, links: bool, pending: bool, status: bool) -> None:
    if pending and (rebuilding or links or status):
        raise InvalidInput("pending_not_alone")
    if links and (rebuilding or status):
        raise InvalidInput("links_not_alone")
    if status and rebuilding:
        raise InvalidInput("status_not_alone")


def _resuming(part: Part | None) -> str:
    return f"`roomlore reindex{f' --{part}' if part else ''} --resume`"


def _tell_done(done: dict[str, int], standing: IndexStatus, *, of_vectors: bool, waited: bool) -> None:
    for name, count in done.items():
        typer.echo(say(_TOLD[name], what=show.counted(count, _NOUNS[name])))
    held = [show.counted(standing.waiting, "text")] if standing.waiting and of_vectors else []
    held += [show.counted(standing.rooms_to_link, "room")] if standing.rooms_to_link and waited else []
    if standing.vectors == "off" and of_vectors:
        typer.echo(say("no vectors: `embeddings` is off, search goes by words alone"))
    if held:
        typer.echo(say(_HELD, what=say(" and ").join(held)))
    elif waited and not done:
        typer.echo(say("nothing was waiting"))
    if standing.problem:
        typer.echo(show.inert(translated(standing.problem)), err=True)


def _tell_status(standing: IndexStatus) -> None:
    figures = {
        "words": say(standing.words),
        "vectors": say(standing.vectors),
        "model": _model(standing),
        "waiting": show.counted(standing.waiting, "text"),
        "links": _links(standing.rooms_to_link),
        "what to do": show.inert(translated(standing.problem)) if standing.problem else _advice(standing),
    }
    shape = show.table("index", "stands", fixed=("index",))
    show.console().print(show.rows(shape, ((say(name), value) for name, value in figures.items())))


def _model(standing: IndexStatus) -> str:
    if (model := standing.model) is None:
        return "–"
    return say("{model} ({count} dimensions)", model=show.inert(model.name), count=model.dimensions)


def _links(rooms: int) -> str:
    return say("{rooms} to link anew", rooms=show.counted(rooms, "room")) if rooms else say("whole")


def _advice(standing: IndexStatus) -> str:
    if standing.vectors == "off" and not standing.rooms_to_link:
        return say("nothing; to search by meaning too, set `embeddings` (docs/how-to/search.md)")
    going_on = {"behind": PENDING, "rebuilding": "`roomlore reindex --resume`"}.get(standing.vectors)
    going_on = going_on or (LINKS if standing.rooms_to_link else None)
    if going_on is None:
        return say("nothing")
    return say("nothing while `roomlore serve` runs; {command} otherwise", command=going_on)


_NAMED_BAD = 20
_NAMED_FILES = 20
_NAMED_CONFLICTS = 5
_LARGE_BYTES = 32 * 1024 * 1024
_MOST_PROCESSES = 16
_LEFT = "The messages are in; {command} makes the vectors that are left."

_DELETED = "What was recalled or deleted stays deleted, also if an export still has its text."
_ARCHIVED = "What is in an archive stays there; `roomlore archive restore` brings archives back."
_REDACTED = (
    "Messages from which words of a forgotten person were removed stay as they are. Do not edit them after the export:"
    " that would bring the words back."
)
_APART = "The room is {room}, since another chat seems to be called {name}. Use --room to choose the room yourself."
_CONTINUED = (
    "{room} was there with other messages, and few of these people spoke there. If this is another chat of that name,"
    " use --room to give it a room of its own."
)

Advance = Callable[[int, int, int], None]


def import_(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Exports: files, folders or zips; each may hold several.")],
    form: Annotated[
        str | None,
        typer.Option("--format", help=f"One of {', '.join(importers().FORMATS)}; found out by looking otherwise."),
    ] = None,
    room: Annotated[
        str | None, typer.Option(help="Put everything into the room with this id or name, or into a new one.")
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            help="The zone of exports with local times, such as `Asia/Shanghai`; else the setting `time_zone`."
        ),
    ] = None,
    day: Annotated[
        str | None, typer.Option(help="The first day of an IRC log without dates, such as `2024-05-01`.")
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Go on where an import of this file was broken off, or begin again.")
    ] = True,
    processes: Annotated[
        int | None,
        typer.Option(
            help="How many processes link and store the messages; by default one for each processor if the exports have"
            " 32 MiB and more, else 1."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The report as JSON; it names up to 1,000 skipped lines.")
    ] = False,
) -> None:
    """Import chat exports. Unreadable lines are listed and skipped; importing it again adds nothing twice."""

    frame = frame_of(ctx)
    if frame.is_missing():
        _check_readable(paths, form, timezone=timezone, day=day)
    imported = False

    async def work(lore: Lore) -> None:
        nonlocal imported
        with _bar(", ".join(path.name for path in paths)) as advance:
            report = await lore.imports.run(
                paths,
                format=form,
                room_id=await room_to_write(lore, room),
                timezone=timezone,
                day=day,
                resume=resume,
                progress=advance,
                processes=_processes(paths) if processes is None else processes,
            )
        imported = True
        _tell(report, as_json=as_json, given=room)
        await _index(lore)

    try:
        frame.run(work, creates=True)
    except KeyboardInterrupt as stop:
        if imported:
            typer.echo(f"{say('Stopped.')} {say(_LEFT, command=PENDING)}", err=True)
            return
        typer.echo(say("Stopped. The same command goes on from here."), err=True)
        raise typer.Exit(INTERRUPTED) from stop


def _check_readable(paths: Sequence[Path], form: str | None, *, timezone: str | None, day: str | None) -> None:
    """Raise `InvalidInput` if nothing can be imported, before a database is made."""
    for path in paths:
        for file in importers().find(path, form).exports:
            importers().open_import(file.path, file.format, member=file.member, timezone=timezone, day=day).close()


def _processes(paths: Sequence[Path]) -> int:
    """Return how many processes read these exports; starting them takes longer than to read a small one."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
    large = sum(file.stat().st_size for file in files) >= _LARGE_BYTES
    return min(os.cpu_count() or 1, _MOST_PROCESSES) if large else 1


async def _index(lore: Lore) -> None:
    """Make the vectors of the imported messages. If that fails, the import stays."""
    try:
        await follow(lore.index.drain())
    except InvalidInput as error:
        typer.echo(f"{say('The messages are in, but have no vectors.')} {translated(str(error))}", err=True)
    except (ModelUnavailable, VectorsUnavailable) as error:
        typer.echo(f"{say(_LEFT, command=PENDING)} {translated(str(error))}", err=True)


def _tell(report: ImportReport, *, as_json: bool, given: str | None) -> None:
    _name_bad(report)
    if as_json:
        show.as_json(to_jsonable(report))
    else:
        typer.echo(f"{_summary(report)}{_resolved(report, given)}")
        _name_files(report)
    _name_rooms(report)
    _name_conflicts(report)
    _name_removed(report)
    _name_left_out(report)


def _name_files(report: ImportReport) -> None:
    """Say what was read of each export, if there are several."""
    if report.exports == 1:
        return
    for file in report.files[:_NAMED_FILES]:
        rooms = _rooms_read(report, file.rooms)
        summary = say("{messages} in {rooms}", messages=show.counted(file.read, "message"), rooms=rooms)
        typer.echo(
            say("  {path} ({format}): {told}", path=show.inert(file.name, 200), format=file.format, told=summary)
        )
    if report.exports > _NAMED_FILES:
        hidden = report.exports - _NAMED_FILES
        typer.echo(say("  and {count} more exports; --json names up to 1,000", count=hidden))


def _name_left_out(report: ImportReport) -> None:
    """Name files that may be exports and were not read."""
    for left in report.left_out[:_NAMED_FILES]:
        why = show.inert(translated(left.reason), 400)
        typer.echo(say("left out {path}: {why}", path=show.inert(left.name, 200), why=why), err=True)
    hidden = report.left_out_count - min(len(report.left_out), _NAMED_FILES)
    if hidden:
        typer.echo(say("left out {count} more; --json names up to 1,000", count=hidden), err=True)


def _rooms_read(report: ImportReport, rooms: Sequence[str]) -> str:
    """Return the name of the only room, or how many rooms there are."""
    return _called(report, rooms[0]) if len(rooms) == 1 else show.counted(len(rooms), "room")


def _called(report: ImportReport, room_id: str) -> str:
    """Return the name of a room with its id, or the id alone if it has no name."""
    title = report.titles.get(room_id, room_id)
    if title == room_id:
        return show.inert(room_id, 80)
    return say("{title} ({id})", title=show.inert(title, 80), id=show.inert(room_id, 80))


def _resolved(report: ImportReport, given: str | None) -> str:
    """Return which room a name meant, '' if an id was given."""
    if given is None or not report.rooms or given in report.rooms:
        return ""
    return say("; {name} is the room {room}", name=show.inert(given, 80), room=show.inert(report.rooms[0], 80))


def _name_rooms(report: ImportReport) -> None:
    """Say which rooms were chosen for chats that have a name alone."""
    if report.exports == 1:
        for room_id, name in report.apart.items():
            typer.echo(say(_APART, room=show.inert(room_id, 80), name=show.inert(name, 80)), err=True)
    for room_id in report.continued[:_NAMED_FILES]:
        typer.echo(say(_CONTINUED, room=show.inert(room_id, 80)), err=True)
    hidden = len(report.continued) - _NAMED_FILES
    if hidden > 0:
        typer.echo(say("The same is true of {count} more rooms; --json names them.", count=hidden), err=True)


def _name_conflicts(report: ImportReport) -> None:
    """Name some of the messages that were not stored, and say what can be done."""
    if not report.conflicts:
        return
    rooms: dict[str, list[str]] = {}
    for conflict in report.conflicts[:_NAMED_CONFLICTS]:
        rooms.setdefault(conflict.room_id, []).append(show.inert(conflict.id, 60))
    named = "; ".join(
        say("{ids} in {room}", ids=", ".join(ids), room=_called(report, room_id)) for room_id, ids in rooms.items()
    )
    typer.echo(
        several(
            report.conflict_count,
            "Not imported, since a message with this id and another content is there: {ids}. {ways}",
            "{count} were not imported, since messages with these ids and other contents are there: {ids}. {ways}",
            ids=named + ("" if report.conflict_count <= _NAMED_CONFLICTS else "; …"),
            ways=say(
                "If they are other messages, import them into another room (--room). If they were edited since, which"
                " this export does not say, change those that are there: `lore.messages.edit`, or PATCH"
                " /messages/ROOM/ID."
            ),
        ),
        err=True,
    )


def _name_removed(report: ImportReport) -> None:
    """Say why messages stay away, and what can be done."""
    if report.deleted:
        typer.echo(say(_DELETED), err=True)
    if report.archived:
        typer.echo(say(_ARCHIVED), err=True)
    if report.redacted:
        typer.echo(say(_REDACTED), err=True)


@contextmanager
def _bar(name: str) -> Iterator[Advance]:
    """Show a progress bar on standard error if it is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), DownloadColumn())
    tail = (TextColumn("{task.fields[messages]}"), TimeRemainingColumn())
    shown = Console(stderr=True)
    with Progress(*columns, *tail, console=shown, transient=True, disable=not shown.is_terminal) as progress:
        task = progress.add_task(show.inert(name, 40).replace("[", "\\["), total=None, messages="")

        def advance(done: int, total: int, messages: int) -> None:
            progress.update(task, completed=done, total=total, messages=show.counted(messages, "message"))

        yield advance


def _name_bad(report: ImportReport) -> None:
    for bad in report.bad[:_NAMED_BAD]:
        why, excerpt = show.inert(translated(bad.reason)), show.inert(bad.excerpt, 80)
        typer.echo(f"{say('skipped {place}: {why}', place=bad.number, why=why)} | {excerpt}", err=True)
    hidden = report.bad_count - min(len(report.bad), _NAMED_BAD)
    if hidden:
        typer.echo(say("skipped {count} more; --json names up to 1,000", count=hidden), err=True)


def _summary(report: ImportReport) -> str:
    conflicts, counts = report.conflict_count, [say("{count} added", count=report.added)]
    counts += [
        noun
        for count, noun in (
            (report.duplicates, several(report.duplicates, "{count} duplicate", "{count} duplicates")),
            (report.edited, say("{count} edited", count=report.edited)),
            (report.older, say("{count} in an older form, left out", count=report.older)),
            (report.deleted, say("{count} deleted here, left out", count=report.deleted)),
            (report.archived, say("{count} archived here, left out", count=report.archived)),
            (report.redacted, say("{count} redacted here, left as they are", count=report.redacted)),
            (conflicts, several(conflicts, "{count} conflict, left as it was", "{count} conflicts, left as they were")),
            (report.bad_count, say("{count} skipped", count=report.bad_count)),
            (report.undated, say("{count} without a readable time", count=report.undated)),
            (report.unsigned, say("{count} without a sender", count=report.unsigned)),
            (report.repaired, say("{count} with repaired bytes", count=report.repaired)),
            (report.attachments, several(report.attachments, "{count} attachment", "{count} attachments")),
            (report.described, say("{count} described", count=report.described)),
            (report.undescribed, say("{count} that could not be described", count=report.undescribed)),
        )
        if count
    ]
    begun = (
        "went on with {messages}{exports} ({format}) in {rooms}: {told}"
        if report.resumed
        else "read {messages}{exports} ({format}) in {rooms}: {told}"
    )
    read = say(
        begun,
        messages=show.counted(report.read, "message"),
        exports=say(" of {count} exports", count=report.exports) if report.exports > 1 else "",
        format=report.format,
        rooms=_rooms_read(report, report.rooms),
        told=say(", ").join(counts),
    )
    zone = say("; local times as those of {zone}", zone=report.time_zone) if report.time_zone else ""
    return f"{read}{zone}{_kinds(report)}"


def _rooms_of(kind: str, count: int) -> str:
    if kind == "direct":
        return several(count, "{count} direct room", "{count} direct rooms")
    if kind == "private":
        return several(count, "{count} private room", "{count} private rooms")
    if kind == "public":
        return several(count, "{count} public room", "{count} public rooms")
    return several(count, "{count} room of unknown kind", "{count} rooms of unknown kind")


def _kinds(report: ImportReport) -> str:
    """Return who can see the rooms, as far as the export or somebody before it said."""
    kinds = Counter(kind or "unknown" for kind in report.kinds.values())
    listed = [_rooms_of(kind, count) for kind, count in sorted(kinds.items())]
    if report.members:
        listed.append(say("all members known in {rooms}", rooms=show.counted(len(report.members), "room")))
    return f"{say('; ')}{say(', ').join(listed)}" if listed else ""


def export(
    ctx: typer.Context,
    room: OnlyRoom = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file, which appears only once it is whole; by default standard output."),
    ] = None,
) -> None:
    """Write messages as JSON lines that `import` reads back without loss."""

    async def work(lore: Lore) -> int:
        here = await room_given(lore, room)
        with sink_of(output) as sink:
            return await _write(lore, here, sink)

    count = frame_of(ctx).run(work)
    typer.echo(say("wrote {messages}", messages=show.counted(count, "message")), err=True)


async def _write(lore: Lore, room: str | None, sink: BinaryIO) -> int:
    count, corrected = 0, await _corrected(lore, room)
    async for message in lore.messages.export(room):
        sink.write(to_line(message, corrected.get((message.room_id, message.id))))
        count += 1
    return count


async def _corrected(lore: Lore, room: str | None) -> dict[tuple[str, str], CorrectedLink]:
    """Return the corrected links by room and message."""
    corrected: dict[tuple[str, str], CorrectedLink] = {}
    after = ("", 0)
    while page := await lore.links.in_force(after=after, limit=_PAGE):
        after = page[-1].room_id, page[-1].number
        for correction in page:
            gone = correction.kind is CorrectionKind.ANSWERS and correction.answers is None
            if room in (None, correction.room_id) and not gone:
                corrected[correction.room_id, correction.message_id] = CorrectedLink(
                    correction.answers, correction.by, correction.at
                )
    return corrected


@contextmanager
def sink_of(output: Path | None) -> Iterator[BinaryIO]:
    """Yield standard output, or a file that is created only when it is complete."""
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
        raise InvalidInput("output_unwritable", path=output, why=error.strerror) from error
    finally:
        part.unlink(missing_ok=True)
