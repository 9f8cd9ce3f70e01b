"""`roomlore audience`, `visible` and `share`: who can see a room, what may be shown there and why, and what others may
know too."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from roomlore.core.audience import EVERYONE, Presence, RoomPeople
from roomlore.core.dates import moment
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.surfaces.cli import show, show_memories
from roomlore.surfaces.cli.frame import frame_of, with_id
from roomlore.surfaces.cli.language import say, several
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from roomlore.core.memory.memory import Memory
    from roomlore.core.visibility import Reason, SeenIn, Visibility
    from roomlore.wiring import Lore

_UNKNOWN = "unknown"
_REASONS = {
    "added": "added by hand: for all",
    "shared": "shared with {who}",
    "here": "said here",
    "public": "said in {room}, which is public",
    "heard": "said in {room}, where everybody from here was",
    "unheard": "said in {room}: not everybody here is known to have been there",
    "replaced": "a later version is shown",
}


def audience(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id or name; with --new its id.")],
    kind: Annotated[
        Literal["direct", "private", "public", "unknown"] | None,
        typer.Option(help="Set who can see it: one person and agents, its members, everybody, or nobody knows."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="From when the kind counts, to correct what was said of it; by default from now on."),
    ] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(help="The id of a member; name all of them. Whoever is not named has left.", metavar="PERSON"),
    ] = None,
    add: Annotated[
        list[str] | None, typer.Option(help="The id of somebody who joined; may be repeated.", metavar="PERSON")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(help="The id of somebody who left; may be repeated.", metavar="PERSON")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Make the room, and the database, if there is none.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show who can see a room, or say who can."""
    if member and (add or remove):
        raise InvalidInput("Give all members with --member, or changes with --add and --remove, not both.")

    if since and kind is None:
        raise InvalidInput("--since says from when the kind counts; give --kind with it.")

    async def work(lore: Lore) -> tuple[RoomPeople | None, RoomPeople]:
        before = await _people(lore, room, new=new)
        here = before.room_id if before else room
        if kind is not None:
            zone = lore.settings.search.zone
            begin = moment("--since", since, now=lore.now(), zone=zone, edge="start") if since else None
            await lore.rooms.set_kind(here, None if kind == _UNKNOWN else kind, since=begin)
        if member:
            await lore.rooms.set_members(here, member)
        if add:
            await lore.rooms.add_members(here, add)
        if remove:
            await lore.rooms.remove_members(here, remove)
        return before, await lore.rooms.people(here)

    before, found = frame_of(ctx).run(work, creates=new)
    if as_json:
        show.as_json(to_jsonable(found))
        return
    told = say("all members are known") if found.complete else say("members are not all known")
    called = show.inert(found.room_id)
    typer.echo(say("{room}: {kind}, {told}", room=called, kind=say(found.kind or _UNKNOWN), told=told))
    shape = show.table(
        "person", "member", "joined", "left", "last spoke", fixed=("member", "joined", "left", "last spoke")
    )
    lines = [_line(name, presence) for name, presence in sorted(found.people.items())]
    show.console().print(show.rows(shape, lines))
    if gone := _gone(before, found):
        typer.echo(say("Marked as left: {people}", people=", ".join(map(show.inert, gone))))


async def _people(lore: Lore, room: str, *, new: bool) -> RoomPeople | None:
    try:
        return await lore.rooms.people(room if new else await lore.rooms.named(room))
    except NotFound as error:
        if new:
            return None
        raise NotFound(f"{error} `--new` makes one before its first message.") from error


def _gone(before: RoomPeople | None, after: RoomPeople) -> list[str]:
    """Return who has left now and had not before."""
    there = [name for name, presence in before.people.items() if not _has_left(presence)] if before else []
    return sorted(name for name in there if _has_left(after.people[name]))


def _has_left(presence: Presence) -> bool:
    return bool(presence.stays) and all(stay.left_at for stay in presence.stays)


def _line(person: str, presence: Presence) -> list[str]:
    joined, left = (presence.stays[-1].joined_at, presence.stays[-1].left_at) if presence.stays else (None, None)
    spoke = _time(presence.spoke.end if presence.spoke else None)
    return [show.inert(person), say(_standing(presence)), _time(joined), _time(left), spoke]


def _standing(presence: Presence) -> str:
    """Return if the person is a member: a member who was added may have no time of joining."""
    if not presence.stays:
        return "not known"
    return "no, left" if _has_left(presence) else "yes"


def _time(at: datetime | None) -> str:
    return show.clock(at.astimezone(UTC)) if at else ""


def visible(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id or name.")],
    scope: Annotated[
        str | None,
        typer.Option(help="Only memories about user:<id>, agent:<id> or group:<id>; else of the room and its people."),
    ] = None,
    withheld: Annotated[bool, typer.Option("--withheld", help="Only what is not shown there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show which memories may be shown in a room, and why."""

    async def work(lore: Lore) -> list[Visibility]:
        return await lore.memories.visible(f"room:{await lore.rooms.named(room)}", scope=scope)

    every = frame_of(ctx).run(work)
    found = [one for one in every if not (withheld and one.shown)]
    if as_json:
        show.as_json(to_jsonable(found))
        return
    if found:
        shape = show.table("", "memory", "about", "statement", "why", fixed=("", "memory"))
        show.console().print(show.rows(shape, map(_seen, found)))
    hidden = sum(not one.shown for one in every)
    shown = len(every) - hidden
    typer.echo(say("{shown} may be shown in {room}, {hidden} not.", shown=shown, room=show.inert(room), hidden=hidden))


def _seen(one: Visibility) -> list[str]:
    memory = one.memory
    mark = say("shown") if one.shown else say("withheld")
    named = show_memories.short(memory.memory_id)
    return [mark, named, show.inert(memory.scope), show.inert(memory.statement), say("; ").join(why(one.reasons))]


def why(reasons: Sequence[Reason]) -> list[str]:
    """Return the reasons for people to read. If something was not heard, that decides, and only that is said."""
    unheard = [one for one in reasons if one.kind == "unheard"]
    return [_said(one) for one in unheard or reasons]


def _said(reason: Reason) -> str:
    room = show.inert(reason.evidence.room_id) if reason.evidence else ""
    return say(_REASONS[reason.kind], room=room, who=show.inert(reason.target or ""))


def share(
    ctx: typer.Context,
    memory: Annotated[
        str,
        typer.Argument(
            help="The id of the memory, or the beginning or end of that. `roomlore facts list` and"
            " `roomlore visible` show it."
        ),
    ],
    with_: Annotated[
        str | None,
        typer.Argument(
            help="`room:` and the room's id or name, or `everyone`. Left out, it is shown who may know the memory.",
            metavar="WITH",
        ),
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="End the share.")] = False,
    reason: Annotated[str, typer.Option(help="For the log.")] = "",
) -> None:
    """Share a memory with a room or with everyone, beside those who heard it."""

    async def work(lore: Lore) -> tuple[Memory, SeenIn, str | None]:
        name, missing = await lore.memories.named(memory), None
        if with_ is not None:
            shared = (await lore.memories.get(name)).shared_with
            target, missing = (with_, None) if end and with_ in shared else await with_id(lore, with_)
            change = lore.memories.unshare if end else lore.memories.share
            name = (await change(name, target, reason=reason)).memory_id
        return await lore.memories.get(name), await lore.memories.seen_in(name), None if end else missing

    if end and with_ is None:
        raise InvalidInput("Say which share to end: room:ID or everyone.")
    shared, seen, missing = frame_of(ctx).run(work)
    others = ", ".join(map(show.inert, shared.shared_with)) or say("nobody else")
    typer.echo(say("Shared with {others}: {memory}", others=others, memory=show.inert(shared.memory_id)))
    typer.echo(_where(seen))
    if missing is not None:
        typer.echo(say("There is no room {room} yet; the share counts once there is one.", room=show.inert(missing)))


def _where(seen: SeenIn) -> str:
    if seen.everyone:
        return say("It may be shown to {everyone}.", everyone=EVERYONE)
    rooms = ", ".join(map(show.inert, seen.rooms)) or say("no room")
    if not seen.hidden_in:
        return say("It may be shown in {rooms}.", rooms=rooms)
    return several(
        seen.hidden_in,
        "It may be shown in {rooms}, not in {count} other.",
        "It may be shown in {rooms}, not in {count} others.",
        rooms=rooms,
    )
