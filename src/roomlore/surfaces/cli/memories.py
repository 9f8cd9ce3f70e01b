"""`roomlore memory`: what is remembered, and how it came to be."""

from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.text import Text

from roomlore.core.evolution.strength import strength_at
from roomlore.core.memory.found import MemoryAnswer
from roomlore.core.memory.intake import scope_of
from roomlore.core.memory.models import Memory, MemoryKind
from roomlore.core.memory.past import Blame
from roomlore.services.memories import Status
from roomlore.surfaces.cli import evolving, forgetting, going_back, memory_past, show, show_past
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.cli.show_memories import clock, lines, short, statement
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

app = typer.Typer(
    cls=Group, no_args_is_help=True, help="What is remembered: let it evolve, search it, see its history, go back."
)

_NARROW = 76
"""Columns; a table with fewer leaves nothing for what is said."""

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
GroupName = Annotated[str, typer.Argument(help="The group's id, or a scope: group:<id>, user:<id> or agent:<id>.")]
MemoryName = Annotated[str, typer.Argument(help="The id of any version of it, or the beginning or end of that.")]


@app.command("list")
def list_(
    ctx: typer.Context,
    group: GroupName,
    kind: Annotated[
        list[MemoryKind] | None, typer.Option(help="Only this kind; may be repeated. By default all.")
    ] = None,
    status: Annotated[Status, typer.Option(help="Which ones.")] = "active",
    limit: Annotated[int, typer.Option(min=1, help="Most memories.")] = 50,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON, with the messages that support each memory.")
    ] = False,
) -> None:
    """List what is remembered of a group, a person or an agent, the last changed first."""
    scope, kinds = scope_of(group), tuple(kind or MemoryKind)

    async def work(lore: Lore) -> tuple[list[Memory], ZoneInfo]:
        found = await lore.memories.page(scope, kinds=kinds, status=status, limit=limit)
        return found, ZoneInfo(lore.settings.time_zone)

    found, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(found))
    elif found:
        _tell(found, show.console(), zone)
    else:
        typer.echo(f"Nothing is remembered of {show.inert(scope)}.")


@app.command()
def history(ctx: typer.Context, memory: MemoryName, as_json: AsJson = False) -> None:
    """Show every version of a memory, the first one first."""

    async def work(lore: Lore) -> tuple[list[Memory], ZoneInfo]:
        found = await lore.memories.history(await lore.memories.named(memory))
        return found, ZoneInfo(lore.settings.time_zone)

    found, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(found))
        return
    columns = ("version", "memory", "made", "made by", "status", "statement", "why")
    shape = show.table(*columns, right=("version",), fixed=("memory", "made"))
    show.console().print(show.rows(shape, (_version_line(one, zone) for one in found)))


@app.command("show")
def show_(ctx: typer.Context, memory: MemoryName, as_json: AsJson = False) -> None:
    """Show a memory: what it says, how strong it is, and its versions, the newest first."""

    async def work(lore: Lore) -> tuple[Blame, float, ZoneInfo]:
        found = await lore.memories.blame(await lore.memories.named(memory))
        strength = strength_at(found.memory, lore.now(), lore.settings.strength_half_life_days)
        return found, strength, ZoneInfo(lore.settings.time_zone)

    found, strength, zone = frame_of(ctx).run(work)
    if as_json:
        versions = [plain(one.memory) for one in found.versions]
        show.as_json({**plain(found.memory), "strength_now": round(strength, 6), "versions": versions})
        return
    out = show.console()
    show_past.memory(found.memory, strength, out, zone)
    show_past.versions(found, out, zone, evidence=False)


@app.command()
def search(
    ctx: typer.Context,
    group: GroupName,
    query: Annotated[list[str], typer.Argument(help="A few words or a question; quotes are not needed.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Most memories.")] = 5,
    threshold: Annotated[float, typer.Option(help="Only those with this score, from 0 to 1, or a higher one.")] = 0.7,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with what each score is made of.")] = False,
) -> None:
    """Find what is remembered of a group that says something about a question, best first."""

    async def work(lore: Lore) -> MemoryAnswer:
        return await lore.memories.search(group, " ".join(query), limit=limit, threshold=threshold)

    answer = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(answer))
        return
    out = show.console()
    for hit in answer.hits:
        head = Text.assemble((f"{hit.score:.2f}  ", "green"), (f"{short(hit.memory.memory_id)}  ", "yellow"))
        out.print(Text.assemble(head, statement(hit.memory.statement)))
    if not answer.hits:
        out.print(f"Nothing remembered scores {threshold:g} or more. Try other words, or a lower --threshold.")
    if answer.degraded:
        out.print(Text(f"degraded: {show.inert(answer.degraded)}", "yellow"))


def _tell(found: list[Memory], out: Console, zone: ZoneInfo) -> None:
    """A table, or where there is no room for one a few lines for each."""
    if out.width < _NARROW:
        cells = ((_line(one, zone), one.statement) for one in found)
        lines(((" ", first[0], statement(said), "  ".join(first[1:-1])) for first, said in cells), out)
        return
    shape = show.table("memory", "changed", "kind", "made by", "statement", fixed=("memory", "changed", "kind"))
    out.print(show.rows(shape, (_line(one, zone) for one in found)))


def _line(memory: Memory, zone: ZoneInfo) -> list[str]:
    flag = " (to be made again)" if memory.fallback else ""
    made_by = show.inert(memory.made_by, 60) + flag
    return [
        short(memory.memory_id),
        clock(memory.updated_at, zone),
        memory.kind.value,
        made_by,
        show.inert(memory.statement),
    ]


def _version_line(memory: Memory, zone: ZoneInfo) -> list[str]:
    made = [clock(memory.updated_at, zone), show.inert(memory.made_by, 60), memory.status.value]
    return [
        str(memory.version),
        short(memory.memory_id),
        *made,
        show.inert(memory.statement),
        show.inert(memory.change_summary),
    ]


app.command("evolve")(evolving.evolve)
app.command("log")(memory_past.log)
app.command("diff")(memory_past.diff)
app.command("as-of")(memory_past.as_of)
app.command("blame")(memory_past.blame)
app.command("revert")(going_back.revert)
app.command("restore")(going_back.restore)
app.command("strength")(going_back.strength)
app.command("delete")(going_back.delete)
app.command("forget")(forgetting.forget)
