"""`roomlore memory log`, `diff`, `as-of` and `blame`: the past of what is remembered."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.text import Text

from roomlore.core.errors import NotFound
from roomlore.core.evolution.result import check_days
from roomlore.core.memory.intake import scope_of
from roomlore.core.memory.models import Change, Evolution, Memory
from roomlore.core.memory.past import Blame, MemoryDiff
from roomlore.surfaces.cli import show, show_memories, show_past
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.cli.moments import Edge, moment
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
_Group = Annotated[str, typer.Argument(help="The group's id, or a scope: group:<id>, user:<id> or agent:<id>.")]
_Memory = Annotated[str, typer.Argument(help="The id of any version of it, or the beginning or end of that.")]


def log(
    ctx: typer.Context,
    group: _Group,
    days: Annotated[float | None, typer.Option(help="Only the last so many days.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most changes.")] = 50,
    as_json: _Json = False,
) -> None:
    """Show what changed in what is remembered of a group, the newest first: what, when, by whom and why."""
    scope = scope_of(group)

    async def work(lore: Lore) -> tuple[list[Change], dict[str, Evolution], ZoneInfo]:
        since = None if days is None else lore.now() - timedelta(days=check_days(days))
        found = await lore.memories.latest_changes(scope, limit=limit, since=since)
        return found, await _records(lore, found), ZoneInfo(lore.settings.time_zone)

    found, records, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(found))
    elif found:
        show_memories.log(found, records, show.console(), zone)
    else:
        typer.echo(f"Nothing has changed in what is remembered of {show.inert(scope)}.")


async def _records(lore: Lore, found: Iterable[Change]) -> dict[str, Evolution]:
    records: dict[str, Evolution] = {}
    for known in {one.evolution_id for one in found if one.evolution_id}:
        try:
            records[known] = await lore.memories.evolution(known)
        except NotFound:
            continue
    return records


def diff(
    ctx: typer.Context,
    group: _Group,
    start: Annotated[str, typer.Argument(metavar="FROM", help="A time: `2024-05-01`, `'last week'`, `上周五`.")],
    end: Annotated[str, typer.Argument(metavar="[TO]", help="A time; by default now.")] = "now",
    as_json: _Json = False,
) -> None:
    """Show what became of what is remembered of a group between two times, word by word."""

    async def work(lore: Lore) -> tuple[MemoryDiff, ZoneInfo]:
        begun, ended = _moment(lore, "FROM", start, "start"), _moment(lore, "TO", end, "end")
        return await lore.memories.diff(scope_of(group), begun, ended), ZoneInfo(lore.settings.time_zone)

    found, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(found))
    else:
        show_past.diff(found, show.console(), zone)


def as_of(
    ctx: typer.Context,
    group: _Group,
    when: Annotated[
        list[str], typer.Argument(help="A time: `2024-05-01`, `3 days ago`, `上周五`; quotes are not needed.")
    ],
    as_json: _Json = False,
) -> None:
    """List what was remembered of a group at a time."""

    async def work(lore: Lore) -> tuple[list[Memory], datetime, ZoneInfo]:
        at = _moment(lore, "WHEN", " ".join(when), "end")
        return await lore.memories.as_of(scope_of(group), at), at, ZoneInfo(lore.settings.time_zone)

    found, at, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(found))
        return
    out = show.console()
    told = f"{show.inert(scope_of(group), 80)} as of {show_memories.clock(at, zone)} ({zone.key})"
    out.print(Text(f"{told}: {'nothing was remembered' if not found else f'{len(found)} remembered'}", "bold"))
    if found:
        show_past.as_of(found, out, zone)


def blame(ctx: typer.Context, memory: _Memory, as_json: _Json = False) -> None:
    """Show which messages and which evolutions made a memory, the newest version first."""

    async def work(lore: Lore) -> tuple[Blame, ZoneInfo]:
        known = await lore.memories.named(memory)
        return await lore.memories.blame(known), ZoneInfo(lore.settings.time_zone)

    found, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(found))
        return
    out = show.console()
    out.print(show_memories.statement(found.memory.statement, "bold"))
    show_past.versions(found, out, zone, evidence=True)


def _moment(lore: Lore, name: str, words: str, edge: Edge) -> datetime:
    return moment(name, words, now=lore.now(), zone=ZoneInfo(lore.settings.time_zone), edge=edge)
