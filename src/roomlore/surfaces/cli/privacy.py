"""Privacy: `roomlore audience` and `share`, who can see a room, and what others may know too; `roomlore forget`,
`delete-room` and `verify`, removing a person or a room, and checking what is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import starmap
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from roomlore.core.audience import EVERYONE, Presence, RoomPeople
from roomlore.core.dates import moment
from roomlore.core.deletion import ROOM_PLACES_IN_WORDS, STAYS_IN_WORDS
from roomlore.core.errors import Conflict, InvalidInput, NameNotId, NotFound, UnknownRoom
from roomlore.core.memory.memory import owner_of
from roomlore.core.privacy import PLACES_IN_WORDS
from roomlore.core.search.facts import nobody_has
from roomlore.core.texts import Phrase, sentences
from roomlore.surfaces.cli import show, show_memories
from roomlore.surfaces.cli.frame import AsJson, Frame, frame_of, scope_meant, scope_named, with_id
from roomlore.surfaces.cli.language import interface_language, say, several, translated
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from roomlore.core.deletion import RoomReport
    from roomlore.core.integrity import VerifyProgress, VerifyReport
    from roomlore.core.memory.memory import Memory
    from roomlore.core.privacy import ForgetReport, Left
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
        typer.Option(metavar="KIND", help="Who sees it: direct (one person and agents), private, public or unknown."),
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
    is_id: Annotated[bool, typer.Option("--id", help="Take each PERSON as an id, also an unknown one.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Make the room, and the database, if there is none.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show who can see a room, or say who can."""
    if member and (add or remove):
        raise InvalidInput("members_given_twice")

    if since and kind is None:
        raise InvalidInput("since_without_kind")

    async def work(lore: Lore) -> tuple[RoomPeople | None, RoomPeople]:
        before = await _people(lore, room, new=new)
        here = before.room_id if before else room
        people = [] if is_id else [*(member or ()), *(add or ()), *(remove or ())]
        await _check_people(lore, people, lost=sorted(_there(before).difference(people)) if member else [])
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

    before, membership = frame_of(ctx).run(work, creates=new)
    if as_json:
        show.as_json(to_jsonable(replace(membership, people=dict(sorted(membership.people.items())))))
        return
    completeness = say("all members are known") if membership.complete else say("members are not all known")
    called = show.inert(membership.room_id)
    typer.echo(say("{room}: {kind}, {told}", room=called, kind=say(membership.kind or _UNKNOWN), told=completeness))
    shape = show.table(
        "person", "member", "joined", "left", "last spoke", fixed=("member", "joined", "left", "last spoke")
    )
    show.console().print(show.rows(shape, starmap(_line, sorted(membership.people.items()))))
    if gone := sorted(_there(before) - _there(membership)):
        typer.echo(say("Marked as left: {people}", people=", ".join(map(show.inert, gone))))


async def _check_people(lore: Lore, people: Sequence[str], *, lost: Sequence[str]) -> None:
    """Raise `NameNotId` for the name of a person, and `NotFound` for an id of which nothing is known if another may be
    meant, or others would be marked as left (`lost`). Warn of any other such id."""
    from roomlore.ports.people import all_meant

    for person in people:
        await lore.privacy.check_person(person)
    async with lore.storage.reading(lore.tenant) as work:
        unknown = await all_meant(work, people, viewer=None, now=lore.now())
    notes = [nobody_has(name, near) for name, near in unknown.items() if near or lost]
    if notes:
        others = Phrase("members_left", people=", ".join(lost)) if lost else ""
        raise NotFound(sentences("", *notes, Phrase("members_unknown"), others))
    for name in unknown:
        typer.echo(show.inert(translated(nobody_has(name, {}))), err=True)


async def _people(lore: Lore, room: str, *, new: bool) -> RoomPeople | None:
    try:
        return await lore.rooms.people(room if new else await lore.rooms.named(room, viewer=None))
    except NotFound as error:
        if new:
            return None
        unknown = Phrase("room_unknown_make_new", room=repr(room))
        raise NotFound(sentences(unknown, await lore.rooms.meant(room, viewer=None))) from error


def _there(people: RoomPeople | None) -> set[str]:
    """Return who has not left."""
    return {name for name, presence in people.people.items() if not _has_left(presence)} if people else set()


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
    return show.clock(at) if at else ""


def seen(visibility: Visibility) -> list[str]:
    """Return a line of the table of `roomlore visible`."""
    memory = visibility.memory
    mark = say("shown") if visibility.shown else say("withheld")
    named = show_memories.short(memory.memory_id)
    return [
        mark,
        named,
        show.inert(memory.scope),
        show.inert(memory.statement),
        say("; ").join(why(visibility.reasons)),
    ]


def why(reasons: Sequence[Reason]) -> list[str]:
    """Return the reasons for people to read. If something was not heard, that decides, and only that is said."""
    unheard = [unheard_reason for unheard_reason in reasons if unheard_reason.kind == "unheard"]
    return [_reason_line(reason) for reason in unheard or reasons]


def _reason_line(reason: Reason) -> str:
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
            shared = (await lore.memories.get(name, viewer=None)).shared_with
            target, missing = (with_, None) if end and with_ in shared else await with_id(lore, with_)
            change = lore.memories.unshare if end else lore.memories.share
            name = (await change(name, target, reason=reason)).memory_id
        return await lore.memories.get(name, viewer=None), await lore.memories.seen_in(name), None if end else missing

    if end and with_ is None:
        raise InvalidInput("share_missing")
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


def forget(
    ctx: typer.Context,
    given: Annotated[str, typer.Argument(metavar="USER", help="The sender id that the person's messages have.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would go.")] = False,
    same_words: Annotated[
        bool,
        typer.Option("--same-words", help="Also where others repeated the same words, in rooms where both wrote."),
    ] = False,
    is_id: Annotated[bool, typer.Option("--id", help="Take USER as an id, also where it is somebody's name.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Remove all that a person said and all that was made from it. Asks first, as it cannot be undone. Exits with 1 if
    nothing of the person is here, or something is left."""
    frame, user = frame_of(ctx), given
    if not is_id:
        user = frame.run(lambda lore: _person(lore, given, frame))
    if dry_run or not yes:
        would, rooms = frame.run(lambda lore: _would(lore, user, same_words=same_words))
        nothing = not (would.found or would.left)
        if dry_run or nothing:
            _tell(would, as_json=as_json, rooms=rooms)
            if nothing:
                _say_meant(frame, user)
            raise typer.Exit(1 if nothing else 0)
        report(would, Console(stderr=True, highlight=False, markup=False), rooms)
        typer.confirm(say("Forget {person} for good?", person=show.inert(user, 80)), abort=True, err=True)
    done = frame.run(lambda lore: lore.privacy.forget(user, same_words=same_words, is_id=True))
    _tell(done, as_json=as_json)
    if not (done.found or done.left):
        _say_meant(frame, user)
    if not (done.complete and done.found):
        raise typer.Exit(1)


def _say_meant(frame: Frame, user: str) -> None:
    """Tell on standard error which people a misspelt id may mean."""
    if meant := frame.run(lambda lore: scope_meant(lore, f"user:{user}")):
        typer.echo(show.inert(translated(meant)), err=True)


async def _would(lore: Lore, user: str, *, same_words: bool) -> tuple[ForgetReport, dict[str, str]]:
    """Return what would go, and the names of the rooms that would."""
    would = await lore.privacy.forget(user, dry_run=True, same_words=same_words, is_id=True)
    return would, {room: (await lore.rooms.get(room)).name for room in would.rooms_removed}


async def _person(lore: Lore, given: str, frame: Frame) -> str:
    """Return the id of a person who is given by it or as user:ID. The error for a name says what to type."""
    try:
        await lore.privacy.check_person(given)
        return given
    except NameNotId as error:
        if error.code == "scope_for_person":
            return owner_of(given)
        typed = frame.line("forget", await lore.privacy.person_named(given))
        raise NameNotId("person_named_in_command", name=error.fields["name"], command=typed) from error


def _tell(done: ForgetReport, *, as_json: bool, rooms: Mapping[str, str] | None = None) -> None:
    show.as_json(to_jsonable(done)) if as_json else report(done, show.console(), rooms)


def report(done: ForgetReport, out: Console, rooms: Mapping[str, str] | None = None) -> None:
    """Print what was or would be removed, by place, and what is left, with the reason. `rooms`: the names of rooms."""
    name = show.inert(done.user_id, 80)
    if not done.found:
        out.print(say("Nothing of {person} is here.", person=name))
    else:
        out.print(Text(say("Would go of {person}:" if done.dry_run else "Gone of {person}:", person=name), "bold"))
        for place, count in done.places.items():
            out.print(f"  {count:>7}  {translated(PLACES_IN_WORDS.get(place, show.inert(place)))}")
        for line in _memories(done):
            out.print(f"  {line}")
    for room in done.rooms_removed:
        called = (rooms or {}).get(room, "")
        named = f"{show.inert(room, 80)} ({show.inert(called, 80)})" if called else show.inert(room, 80)
        out.print(f"  {say('the whole room {room}', room=named)}")
    for place, count in done.same_words.items():
        line = say("same words, kept: {count} in {place}", count=count, place=show.inert(translated(place)))
        out.print(Text(f"  {line}", "dim"))
    _print_left(done.left, out)
    if done.checked:
        rows, tables = sum(done.checked.values()), len(done.checked)
        out.print(
            Text(say("Looked through {rows} of {tables} tables.", rows=show.counted(rows, "row"), tables=tables), "dim")
        )


def _memories(done: ForgetReport) -> Iterator[str]:
    """Yield what became of memories, or would, if of any."""
    if retired := len(done.retired):
        if done.dry_run:
            yield several(retired, "{count} memory would be retired", "{count} memories would be retired")
        else:
            yield several(retired, "{count} memory retired", "{count} memories retired")
    if rewritten := len(done.rewritten):
        singular, many = (
            "{count} memory would be rewritten without the person",
            "{count} memories would be rewritten without the person",
        )
        if not done.dry_run:
            singular, many = "{count} memory stays without the person", "{count} memories stay without the person"
        yield several(rewritten, singular, many)


def delete_room(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id or name.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Remove a room with everything that rests on it alone. Asks first, as it cannot be undone. Exits with 1 if
    something is left."""
    frame = frame_of(ctx)
    here, would = frame.run(lambda lore: _would_delete(lore, room))
    if would is not None and dry_run:
        _tell_of_room(would, as_json=as_json)
        raise typer.Exit
    if would is not None and not yes:
        _print_room(would, Console(stderr=True, highlight=False, markup=False))
        typer.confirm(say("Delete {room} for good?", room=_room_called(would)), abort=True, err=True)
    done = frame.run(lambda lore: lore.rooms.delete(here))
    _tell_of_room(done, as_json=as_json)
    if not done.complete:
        raise typer.Exit(1)


async def _would_delete(lore: Lore, given: str) -> tuple[str, RoomReport | None]:
    """Return the id of a room, and what would go, None if it is going already. Raise `NotFound` if there is none."""
    here = await lore.rooms.named(given, viewer=None, or_new=True)
    try:
        return here, await lore.rooms.delete(here, dry_run=True)
    except Conflict:
        return here, None
    except UnknownRoom as error:
        nothing = Phrase("room_to_delete_unknown", room=f"{given!r:.80}")
        raise NotFound(sentences(nothing, await lore.rooms.meant(given, viewer=None))) from error


def _tell_of_room(report: RoomReport, *, as_json: bool) -> None:
    show.as_json(to_jsonable(report)) if as_json else _print_room(report, show.console())


def _room_called(report: RoomReport) -> str:
    room = show.inert(report.room_id, 80)
    return f"{show.inert(report.name, 80)} ({room})" if report.name else room


def _print_room(report: RoomReport, out: Console) -> None:
    """Print what was or would be removed, and what stays, each once, and what is left, with the reason."""
    head = "Would be removed with the room {room}:" if report.dry_run else "Removed with the room {room}:"
    goes = {
        translated(ROOM_PLACES_IN_WORDS.get(place, place)): count
        for place, count in report.places.items()
        if place not in _REWRITTEN
    }
    if report.retired:
        goes[say("memories elsewhere that rest on it alone")] = len(report.retired)
    stays = {translated(STAYS_IN_WORDS[what]): count for what, count in report.stays.items()}
    for title, counts in ((say(head, room=_room_called(report)), goes), (say("Stays:"), stays)):
        out.print(Text(title, "bold"))
        for what, count in counts.items():
            out.print(f"  {what}{say(': ')}{count:,}")
    out.print(f"  {say('backups, exports and the totals of usage')}")
    _print_left(report.left, out)


_REWRITTEN = ("memories", "memory_changes", "evolutions")
"""Places of which something stays, rewritten. What goes of them is counted in memories."""


def _print_left(remainders: Sequence[Left], out: Console) -> None:
    for remainder in remainders:
        place, why = show.inert(translated(remainder.place)), show.inert(translated(remainder.why))
        line = say("left: {count} in {place}: {why}", count=remainder.count, place=place, why=why)
        out.print(Text(f"  {line}", "yellow"))


def verify(
    ctx: typer.Context,
    group: Annotated[
        str | None,
        typer.Argument(
            metavar="SCOPE", help="Only this group, by its id or name, or scope, such as `user:anna`; else all."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Check the integrity of stored data: logs, versions, evidence, marks, derived data, indexes. Changes nothing;
    exits with 1 if there is a fault, or nothing of the group."""
    telling = Console(stderr=True, highlight=False, markup=False)

    async def work(lore: Lore) -> VerifyReport:
        scope = None if group is None else await scope_named(lore, group, group=True)
        with telling.status(say("Reading")) as status:

            def progress(come: VerifyProgress) -> None:
                status_text = say(
                    "Read {memories} memories of {scopes} scopes", memories=come.memories, scopes=come.scopes
                )
                more = say(", ") + show.counted(come.messages, "message") if come.messages else ""
                status.update(f"{status_text}{more}")

            try:
                return await lore.privacy.verify(scope, progress=progress if telling.is_terminal else None)
            except NotFound as error:
                meant = await scope_meant(lore, scope) if scope else ""
                raise NotFound(sentences(str(error), meant)) from error

    verification = frame_of(ctx).run(work)
    show.as_json(to_jsonable(verification)) if as_json else _findings(verification, show.console())
    if not verification.sound:
        raise typer.Exit(1)


def _findings(verification: VerifyReport, out: Console) -> None:
    """Print the faults with what to do, the notes, and what was checked."""
    for fault in verification.faults:
        check = (f"{translated(fault.check)}  ", "bold red")
        out.print(Text.assemble(check, f"{_placed(fault.where)}: {_fault_text(fault.found)}"))
        out.print(Text(f"  {translated(fault.mend)}", "dim"))
    for note in verification.notes:
        out.print(Text(f"{say('note')}  {_placed(note.where)}: {_fault_text(note.found)}", "yellow"))
    listed = say(", ").join(_looked_at(what, count) for what, count in verification.checked.items())
    if not (verification.checked or verification.counts):
        out.print(say("Looked at nothing."))
        return
    checked = say("Looked at {what}.", what=listed)
    count = sum(verification.counts.values())
    verdict = (
        say("All of it holds together.") if verification.sound else several(count, "{count} fault.", "{count} faults.")
    )
    out.print(f"{checked} {verdict}")


def _looked_at(what: str, count: int) -> str:
    """Return the number of what was checked, which is called in the plural, with its noun."""
    if count != 1 or interface_language() == "zh":
        return f"{count} {translated(what)}"
    return "1 memory" if what == "memories" else f"1 {what.removesuffix('s')}"


def _placed(text: str) -> str:
    """Return a place such as "scope group:tea, memory m1" with its words in the user's language."""
    if (whole := translated(text)) != text:
        return show.inert(whole)
    parts = (part.partition(" ") for part in show.inert(text).split(", "))
    return say(", ").join(
        f"{say(kind)} {rest}" if kind in _PLACES else f"{kind} {rest}".strip() for kind, _, rest in parts
    )


_PLACES = ("scope", "memory", "change", "lineage", "room", "archive", "message", "mark", "table")


def _fault_text(text: str) -> str:
    return show.inert(translated(text))
