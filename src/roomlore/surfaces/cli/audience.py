"""`roomlore audience` and `share`: who can see a room, and what others may know too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from roomlore.core.audience import Presence, RoomPeople
from roomlore.core.memory.memory import Memory
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain

if TYPE_CHECKING:
    from roomlore.wiring import Lore

_UNKNOWN = "unknown"


def audience(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id.")],
    kind: Annotated[
        str | None,
        typer.Option(help="Set the kind: `direct` (one person and agents), `private`, `public`, or `unknown`."),
    ] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(help="The id of a member; name all of them. Whoever is not named has left.", metavar="PERSON"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show who can see a room, or say who can."""

    async def work(lore: Lore) -> RoomPeople:
        if kind is not None:
            await lore.rooms.set_kind(room, None if kind == _UNKNOWN else kind)
        if member:
            await lore.rooms.set_members(room, member)
        return await lore.rooms.people(room)

    found = frame_of(ctx).run(work, creates=kind is not None or bool(member))
    if as_json:
        show.as_json(plain(found))
        return
    told = "all members are known" if found.complete else "members are not all known"
    typer.echo(f"{show.inert(room)}: {found.kind or _UNKNOWN}, {told}")
    shape = show.table("person", "joined", "left", "last spoke", fixed=("joined", "left", "last spoke"))
    lines = [_line(name, presence) for name, presence in sorted(found.people.items())]
    show.console().print(show.rows(shape, lines))


def _line(person: str, presence: Presence) -> list[str]:
    joined, left = (presence.stays[-1].joined_at, presence.stays[-1].left_at) if presence.stays else (None, None)
    return [show.inert(person), _time(joined), _time(left), _time(presence.spoke.end if presence.spoke else None)]


def _time(at: datetime | None) -> str:
    return show.clock(at.astimezone(UTC)) if at else ""


def share(
    ctx: typer.Context,
    memory: Annotated[str, typer.Argument(help="The id of the memory, or the beginning or end of that.")],
    with_: Annotated[str, typer.Argument(help="`room:ID` or `everyone`.", metavar="WITH")],
    end: Annotated[bool, typer.Option("--end", help="End the share.")] = False,
    reason: Annotated[str, typer.Option(help="For the log.")] = "",
) -> None:
    """Share a memory with a room or with everyone, beside those who heard it."""

    async def work(lore: Lore) -> Memory:
        name = await lore.memories.named(memory)
        change = lore.memories.unshare if end else lore.memories.share
        return await change(name, with_, reason=reason)

    shared = frame_of(ctx).run(work)
    others = ", ".join(map(show.inert, shared.shared_with)) or "nobody else"
    typer.echo(f"Shared with {others}: {show.inert(shared.memory_id)}")
