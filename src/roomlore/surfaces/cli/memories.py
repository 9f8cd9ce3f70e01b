"""`roomlore memory`: what is remembered, and how it came to be."""

from typing import Annotated

import typer

from roomlore.core.memory.models import Memory, MemoryKind
from roomlore.services.memories import Status
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.plain import plain

app = typer.Typer(cls=Group, no_args_is_help=True, help="Look at what is remembered.")

_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command("list")
def list_(
    ctx: typer.Context,
    scope: Annotated[str, typer.Argument(help="Whom it is about: agent:<id>, group:<id> or user:<id>.")],
    kind: Annotated[list[MemoryKind] | None, typer.Option(help="Only this kind; may be given again.")] = None,
    status: Annotated[Status, typer.Option(help="Which ones.")] = "active",
    limit: Annotated[int, typer.Option(min=1, help="Most memories.")] = 50,
    as_json: _Json = False,
) -> None:
    """List what is remembered of an agent, a group or a person, the last changed first."""
    kinds = tuple(kind or MemoryKind)
    found = frame_of(ctx).run(lambda lore: lore.memories.page(scope, kinds=kinds, status=status, limit=limit))
    if as_json:
        show.as_json(plain(found))
    elif found:
        shape = show.table("memory", "changed", "kind", "made by", "statement", fixed=("memory", "changed", "kind"))
        show.console().print(show.rows(shape, map(_line, found)))
    else:
        typer.echo(f"Nothing is remembered of {show.inert(scope)}.")


@app.command()
def history(
    ctx: typer.Context,
    memory: Annotated[str, typer.Argument(help="The id of any version of it.")],
    as_json: _Json = False,
) -> None:
    """Show every version of a memory, the first one first."""
    found = frame_of(ctx).run(lambda lore: lore.memories.history(memory))
    if as_json:
        show.as_json(plain(found))
        return
    shape = show.table(
        "version",
        "memory",
        "made",
        "made by",
        "status",
        "statement",
        "why",
        right=("version",),
        fixed=("memory", "made"),
    )
    show.console().print(show.rows(shape, map(_version_line, found)))


def _line(memory: Memory) -> list[str]:
    flag = " (to be made again)" if memory.fallback else ""
    made_by = show.inert(memory.made_by, 60) + flag
    return [memory.memory_id, show.clock(memory.updated_at), memory.kind.value, made_by, show.inert(memory.statement)]


def _version_line(memory: Memory) -> list[str]:
    made = [show.clock(memory.updated_at), show.inert(memory.made_by, 60), memory.status.value]
    return [
        str(memory.version),
        memory.memory_id,
        *made,
        show.inert(memory.statement),
        show.inert(memory.change_summary),
    ]
