"""`roomlore memory revert`, `restore`, `strength` and `delete`: changing by hand what is remembered."""

from typing import Annotated

import typer

from roomlore.core.memory.models import Change, Memory
from roomlore.surfaces.cli import show, show_memories
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
_Memory = Annotated[str, typer.Argument(help="The id of any version of it, or the beginning or end of that.")]
_Reason = Annotated[str, typer.Option(help="Why, for the history.")]


def revert(
    ctx: typer.Context,
    evolution: Annotated[str, typer.Argument(help="Its id, or the beginning or end of that; `memory log` shows it.")],
    reason: _Reason = "",
    as_json: Annotated[bool, typer.Option("--json", help="The changes as JSON.")] = False,
) -> None:
    """Take back what an evolution did, as new changes: what it made goes, what it replaced is in force again."""

    async def work(lore: Lore) -> tuple[str, list[Change]]:
        known = await lore.memories.named(evolution, "evolution")
        return known, await lore.memories.revert(known, reason)

    known, done = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(done))
    elif done:
        out = show.console()
        out.print(f"Took back evolution {show_memories.short(known)}:")
        show_memories.changes(done, out)
    else:
        typer.echo("There is nothing to take back: it was reverted before, or it changed nothing.")


def restore(
    ctx: typer.Context,
    memory: Annotated[str, typer.Argument(help="The id of the version, or the beginning or end of that.")],
    reason: _Reason = "",
    as_json: _Json = False,
) -> None:
    """Bring a version of a memory back into force."""

    async def work(lore: Lore) -> Memory:
        return await lore.memories.restore(await lore.memories.named(memory), reason)

    back = frame_of(ctx).run(work)
    _tell(back, f"In force: version {back.version}, {show.inert(back.memory_id)}", as_json=as_json)


def strength(
    ctx: typer.Context,
    memory: _Memory,
    value: Annotated[float, typer.Argument(help="How strong it is from now on, from 0 to 1; it fades from there.")],
    reason: _Reason = "",
    as_json: _Json = False,
) -> None:
    """Set how strong a memory is."""

    async def work(lore: Lore) -> Memory:
        return await lore.memories.strength(await lore.memories.named(memory), value, reason)

    done = frame_of(ctx).run(work)
    _tell(done, f"Strength {done.strength:.2f}, {show.inert(done.memory_id)}", as_json=as_json)


def delete(
    ctx: typer.Context,
    memory: _Memory,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    expected: Annotated[
        str | None, typer.Option(help="The version that must be in force. Else nothing is changed.", metavar="MEMORY")
    ] = None,
    reason: _Reason = "",
    as_json: _Json = False,
) -> None:
    """Delete a memory, after asking: it stays in its history and can be restored."""
    known = frame_of(ctx).run(lambda lore: lore.memories.named(memory))
    if not yes:
        there = frame_of(ctx).run(lambda lore: lore.memories.head(known))
        typer.confirm(f"Delete {show.inert(there.statement, 80)!r} of {show.inert(there.scope)}?", abort=True, err=True)
    gone = frame_of(ctx).run(lambda lore: lore.memories.delete(known, reason, expected=expected))
    _tell(gone, f"Deleted {show.inert(gone.memory_id)}", as_json=as_json)


def _tell(memory: Memory, what: str, *, as_json: bool) -> None:
    if as_json:
        show.as_json(plain(memory))
    else:
        typer.echo(f"{what}: {show.inert(memory.statement)}")
