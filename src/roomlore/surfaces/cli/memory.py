"""`roomlore memory`: memories of a group and their history, and evolutions; `roomlore visible`, which of them a room is
shown."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.text import Text

from roomlore.core.dates import moment
from roomlore.core.errors import NotFound
from roomlore.core.evolution.requests import EvolutionResult, Mode, Rejected, check_days, strength_at
from roomlore.core.memory.memory import (
    Blame,
    Change,
    Evolution,
    Memory,
    MemoryAnswer,
    MemoryDiff,
    MemoryStatus,
    Scope,
)
from roomlore.core.memory.writing import scope_of
from roomlore.surfaces.cli import privacy, show, show_memories
from roomlore.surfaces.cli.derived import Call, add_others, command
from roomlore.surfaces.cli.frame import AsJson, Group, frame_of, scope_meant, scope_named, scope_to_write, viewer_of
from roomlore.surfaces.cli.language import App, causes, helped, say, several, translated
from roomlore.surfaces.cli.show_memories import lines, short, statement
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.surfaces.people_named import blame_with_people_named
from roomlore.verbs import memories as verbs
from roomlore.verbs.table import Id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roomlore.core.visibility import Visibility
    from roomlore.storage.store import UnitOfWork
    from roomlore.surfaces.cli.frame import Frame
    from roomlore.wiring import Lore

_REJECTED = 120
_EVERYTHING = 3_650.0
"""The most days that an evolution reads."""
_COUNTS = {
    "kept": "{count} kept",
    "updated": "{count} updated",
    "created": "{count} created",
    "deleted": "{count} deleted",
}


def evolve(
    ctx: typer.Context,
    group: Annotated[
        str,
        typer.Argument(metavar="SCOPE", help="The group's id or name; or user:<id>, for facts of what a person said."),
    ],
    days: Annotated[
        float, typer.Option(help="How far back the first evolution reads.", show_default="everything")
    ] = _EVERYTHING,
    mode: Annotated[
        Mode,
        typer.Option(
            metavar="MODE",
            help="`llm` asks a model once, `rules` goes by rules alone, `auto` is `llm` where a provider is set up.",
        ),
    ] = "auto",
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Go on until no new message remains: one evolution reads at most 200.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON; with `--all` a list.")] = False,
) -> None:
    """Read the messages of a group, or of a person, since the last evolution and update the memories."""
    done: list[EvolutionResult] = []
    out = show.console()

    async def work(lore: Lore) -> bool:
        scope = await scope_to_write(lore, group, group=True)
        while True:
            with _waiting(scope):
                done.append(await lore.memories.evolve(scope, days=days, mode=mode))
            if not as_json:
                _tell(done[-1], out, all_=all_)
                await _tell_meant(lore, scope, nothing=not done[-1].messages)
            if done[-1].failed or not all_ or not done[-1].remaining:
                return done[-1].failed

    failed = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(done if all_ else done[0]))
    if failed:
        raise typer.Exit(1)


@contextmanager
def _waiting(scope: str) -> Iterator[None]:
    """Show progress on standard error if it is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    notice = say("Reading what is new in {scope}", scope=show.inert(scope, 60))
    with Console(stderr=True, highlight=False, markup=False).status(notice):
        yield


def _tell(result: EvolutionResult, out: Console, *, all_: bool) -> None:
    if result.message:
        out.print(Text(show.inert(translated(result.message)), "yellow" if result.failed else ""))
    if result.messages:
        out.print(_head(result))
        show_memories.changes(result.changes, out)
        out.print(Text(_counts(result), "bold"))
    if result.rejected:
        out.print(Text(say("not followed:"), "yellow"))
        for rejected in result.rejected:
            out.print(show_memories.indented(_rejected(rejected, numbered=bool(result.model))))
    if result.remaining and not all_:
        left = several(
            result.remaining,
            "{count} new message remains; --all reads on.",
            "{count} new messages remain; --all reads on.",
        )
        out.print(Text(left, "dim"))


def _head(result: EvolutionResult) -> Text:
    by = show.inert(result.model, 60) or say("rules alone")
    read = say("{messages} read by {by}", messages=show.counted(result.messages, "message"), by=by)
    named = say("evolution {known}", known=show_memories.short(result.evolution_id))
    return Text.assemble((named, "bold yellow"), f"  {show.inert(result.scope, 60)}  {read}")


def _counts(result: EvolutionResult) -> str:
    return say(", ").join(say(_COUNTS[what], count=count) for what, count in to_jsonable(result.stats).items())


def _rejected(rejected: Rejected, *, numbered: bool) -> Text:
    why = show.inert(translated(rejected.reason))
    return Text.assemble(
        say("line {number}: {why}", number=rejected.line, why=why) if numbered else why,
        (f"\n{show.inert(rejected.text, _REJECTED)}", "dim"),
    )


GroupName = Annotated[str, typer.Argument(metavar="SCOPE", help=helped(verbs.GROUP.help))]
MemoryName = Annotated[str, typer.Argument(help="The id of any version of it, or the beginning or end of that.")]
Reason = Annotated[str, typer.Option(help="Why, for the history.")]


async def _reverted(_: Lore, done: list[Change], call: Call) -> None:
    if done:
        out = show.console()
        out.print(say("Took back evolution {evolution}:", evolution=show_memories.short(call.gives["evolution_id"])))
        show_memories.changes(done, out)
    else:
        typer.echo(say("There is nothing to take back: it was reverted before, or it changed nothing."))


async def _version(lore: Lore, given: Mapping[str, Any]) -> Memory:
    return await lore.memories.get(given["memory_id"], viewer=None)


async def _restored(_: Lore, back: Memory, call: Call) -> None:
    already = "In force already: version {number}, {memory}"
    begun = already if call.before.status is MemoryStatus.ACTIVE else "In force: version {number}, {memory}"
    _tell_change(back, say(begun, number=back.version, memory=show.inert(back.memory_id)))


async def _strengthened(_: Lore, done: Memory, __: Call) -> None:
    told = say("Strength {strength:.2f}, {memory}", strength=done.strength, memory=show.inert(done.memory_id))
    _tell_change(done, told)


def delete(
    ctx: typer.Context,
    memory: MemoryName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    expected: Annotated[
        str | None, typer.Option(help="The version that must be in force. Else nothing is changed.", metavar="MEMORY")
    ] = None,
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Delete a memory, after asking. It stays in its history and can be restored."""
    delete_named(frame_of(ctx), memory, yes=yes, reason=reason, expected=expected, as_json=as_json)


def delete_named(frame: Frame, named: str, *, yes: bool, reason: str, expected: str | None, as_json: bool) -> None:
    """Delete a memory, after asking unless `yes`, and tell what was done. One that is deleted already is not asked
    about."""
    known = frame.run(lambda lore: lore.memories.named(named))
    there = frame.run(lambda lore: lore.memories.head(known, viewer=None))
    held = there.status is MemoryStatus.ACTIVE
    if held and not yes:
        confirm_deletion(there)
    gone = frame.run(lambda lore: lore.memories.delete(known, reason, expected=expected))
    if as_json:
        show.as_json(to_jsonable(gone))
    else:
        told = "Deleted {memory}" if held else "Deleted already, {memory}"
        _tell_change(gone, say(told, memory=show.inert(gone.memory_id)))


def confirm_deletion(memory: Memory) -> None:
    """Ask if a memory is to be deleted, and end the program if it is not."""
    statement, scope = show.inert(memory.statement, 80), show.inert(memory.scope)
    typer.confirm(say("Delete {statement!r} of {scope}?", statement=statement, scope=scope), abort=True, err=True)


def _tell_change(memory: Memory, what: str) -> None:
    typer.echo(f"{what}{say(': ')}{show.inert(memory.statement)}")


def log(
    ctx: typer.Context,
    group: GroupName,
    days: Annotated[float | None, typer.Option(help="Only the last so many days.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of changes.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show how the memories of a group, a person or an agent changed, the newest first: what, when, by whom, why."""

    async def work(lore: Lore) -> tuple[list[Change], dict[str, Evolution], ZoneInfo]:
        since = None if days is None else lore.now() - timedelta(days=check_days(days))
        scope = await scope_named(lore, group, group=True)
        await lore.rooms.check_there(scope)
        changes = await lore.memories.latest_changes(scope, limit=limit, since=since)
        return changes, await _records(lore, changes), lore.settings.search.zone

    changes, records, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(changes))
    elif changes:
        show_memories.log(changes, records, show.console(), zone)
    else:
        typer.echo(say("Nothing has changed in what is remembered of {scope}.", scope=show.inert(scope_of(group))))


async def _records(lore: Lore, changes: Iterable[Change]) -> dict[str, Evolution]:
    records: dict[str, Evolution] = {}
    for known in {change.evolution_id for change in changes if change.evolution_id}:
        try:
            records[known] = await lore.memories.evolution(known)
        except NotFound:
            continue
    return records


async def _differs(lore: Lore, changes: MemoryDiff, call: Call) -> None:
    end = _end_in_words(lore, call.asked["end"] or "now", changes.end)
    show_memories.diff(changes, show.console(), lore.settings.search.zone, end=end)


async def _then(lore: Lore, then: verbs.MemoriesThen, call: Call) -> None:
    out, zone = show.console(), lore.settings.search.zone
    headline = say(
        "{scope} as of {time} ({zone}): {count} remembered"
        if then.memories
        else "{scope} as of {time} ({zone}): nothing was remembered",
        scope=show.inert(scope_of(call.asked["scope"]), 80),
        time=_end_in_words(lore, call.asked["at"], then.at),
        zone=zone.key,
        count=then.total,
    )
    out.print(Text(headline, "bold"))
    if then.memories:
        show_memories.as_of(then.memories, out, zone)


async def _blamed(lore: Lore, found: Blame, _: Call) -> None:
    out, named = show.console(), await blame_with_people_named(lore, found)
    out.print(show_memories.statement(named.memory.statement, "bold"))
    show_memories.versions(named, out, lore.settings.search.zone, evidence=True)


def _end_in_words(lore: Lore, words: str, at: datetime) -> str:
    """Return the time that the words name as an end: of a day the day itself, not the midnight after it."""
    zone = lore.settings.search.zone
    of_day = moment("", words, now=lore.now(), zone=zone, edge="start") < at
    return (show_memories.end_at if of_day else show.clock)(at, zone)


app = App(
    cls=Group, no_args_is_help=True, help="What is remembered: let it evolve, search it, see its history, go back."
)

_NARROW = 76
"""Columns; a table in fewer has no room for statements."""


async def _listed(lore: Lore, page: verbs.MemoriesOf, call: Call) -> None:
    if page.memories:
        _tell_list(page.memories, show.console(), lore.now(), lore.settings.search.zone)
    else:
        typer.echo(say("Nothing is remembered of {scope}.", scope=show.inert(scope_of(call.asked["scope"]))))


async def _meant(lore: Lore, page: verbs.MemoriesOf, _: Call) -> None:
    await _tell_meant(lore, page.scope, nothing=not page.memories)


async def _tell_meant(lore: Lore, scope: str, *, nothing: bool) -> None:
    """Tell on standard error whom a misspelt scope may mean."""
    if nothing and (meant := await scope_meant(lore, scope)):
        typer.echo(show.inert(translated(meant)), err=True)


def _memories(page: verbs.MemoriesOf, _: Call) -> Sequence[Memory]:
    return page.memories


async def _versions(lore: Lore, versions: list[Memory], _: Call) -> None:
    zone, columns = lore.settings.search.zone, ("version", "memory", "made", "made by", "status", "statement", "why")
    shape, now = show.table(*columns, right=("version",), fixed=("memory", "made")), lore.now()
    show.console().print(show.rows(shape, (_version_line(version, now, zone) for version in versions)))


@app.command("show")
def show_(ctx: typer.Context, memory: MemoryName, as_json: AsJson = False) -> None:
    """Show a memory: its text, its strength, and its versions, the newest first."""

    async def work(lore: Lore) -> tuple[Blame, datetime, ZoneInfo]:
        blame = await lore.memories.blame(await lore.memories.named(memory))
        return blame, lore.now(), lore.settings.search.zone

    blame, now, zone = frame_of(ctx).run(work)
    if as_json:
        versions = [to_jsonable(version.memory) for version in blame.versions]
        strength = round(strength_at(blame.memory, now), 6)
        show.as_json({**to_jsonable(blame.memory), "strength_now": strength, "versions": versions})
        return
    out = show.console()
    show_memories.memory(blame.memory, now, out, zone)
    show_memories.versions(blame, out, zone, evidence=False)


async def _show_search(lore: Lore, answer: MemoryAnswer, _: Call) -> None:
    out, zone = show.console(), lore.settings.search.zone
    show_memories.recalled(answer.hits, out, lore.now(), zone)
    if answer.nothing:
        out.print(f"{say('Nothing found.')} {translated(answer.nothing)}")
    if answer.degraded:
        out.print(Text(say("degraded: {why}", why=causes(show.inert(answer.degraded))), "yellow"))


def list_scopes(ctx: typer.Context, as_json: bool) -> None:
    """Print of whom something is remembered."""

    async def work(lore: Lore) -> list[dict[str, Any]]:
        held: list[Scope] = []
        async with lore.storage.reading(lore.tenant) as unit:
            while page := await unit.memories.scopes(after=held[-1].scope if held else None, limit=_PAGE):
                held += page
            return [
                {"scope": each.scope, "name": await _name_of(unit, each.scope), "memories": each.active}
                for each in held
                if each.active
            ]

    scopes = frame_of(ctx).run(work)
    if as_json:
        show.as_json(scopes)
    elif scopes:
        shape = show.table("scope", "name", "memories", right=("memories",))
        cells = ([show.inert(each["scope"]), show.inert(each["name"]), str(each["memories"])] for each in scopes)
        show.console().print(show.rows(shape, cells))
        typer.echo(say("Type {command} and one of these.", command=f"`{ctx.command_path} SCOPE`"))
    else:
        typer.echo(say("Nothing is remembered yet: `roomlore remember` and `roomlore memory evolve` begin."))


async def _name_of(unit: UnitOfWork, scope: str) -> str:
    """Return the name of a room or a person, '' if it has none."""
    kind, _, known = scope.partition(":")
    if kind == "group":
        room = await unit.rooms.find(room_id=known)
        return room.name if room else ""
    return next((voice.name for voice in await unit.rooms.voices(sender_id=known) if voice.name), "")


_PAGE = 500


def _tell_list(memories: Sequence[Memory], out: Console, now: datetime, zone: ZoneInfo) -> None:
    """Print a table, or a few lines for each memory if the terminal is too narrow."""
    if out.width < _NARROW:
        cells = ((_line(memory, now, zone), show_memories.listed(memory, now, zone)) for memory in memories)
        lines(
            ((" ", first[0], statement(statement_text), "  ".join(first[1:-1])) for first, statement_text in cells), out
        )
        return
    shape = show.table("memory", "changed", "kind", "made by", "statement", fixed=("memory", "changed", "kind"))
    out.print(show.rows(shape, (_line(memory, now, zone) for memory in memories)))


def _line(memory: Memory, now: datetime, zone: ZoneInfo) -> list[str]:
    flag = say(" (to be made again)") if memory.fallback else ""
    flag += say(" (doubtful)") if memory.doubtful else ""
    made_by = show_memories.maker(memory.made_by) + flag
    return [
        short(memory.memory_id),
        show.clock(memory.updated_at, zone),
        say(memory.kind.value),
        made_by,
        show_memories.listed(memory, now, zone),
    ]


def _version_line(memory: Memory, now: datetime, zone: ZoneInfo) -> list[str]:
    return [
        str(memory.version),
        short(memory.memory_id),
        show.clock(memory.updated_at, zone),
        show_memories.maker(memory.made_by),
        show_memories.state(memory, now),
        show_memories.held(memory, zone),
        show.inert(memory.change_summary),
    ]


def _wanted(visible: verbs.VisibleMemories, call: Call) -> list[Visibility]:
    return [memory for memory in visible.memories if not (call.own["withheld"] and memory.shown)]


async def _seen_by(lore: Lore, _: str | None, *, room: str, scope: str | None = None) -> verbs.VisibleMemories:
    """Return what a room may be shown, or a person who is given as user:ID."""
    viewer = await viewer_of(lore, room if room.startswith("user:") else f"room:{room}")
    return verbs.VisibleMemories(room_id=room, memories=await lore.memories.visible(str(viewer), scope=scope))


async def _visible(_: Lore, visible: verbs.VisibleMemories, call: Call) -> None:
    every, room = visible.memories, show.inert(call.asked["room"])
    if listed := _wanted(visible, call):
        shape = show.table("", "memory", "about", "statement", "why", fixed=("", "memory"))
        show.console().print(show.rows(shape, map(privacy.seen, listed)))
    hidden = sum(not visibility.shown for visibility in every)
    told = "{shown} may be shown to {room}, {hidden} not."
    if not room.startswith("user:"):
        told = "{shown} may be shown in {room}, {hidden} not."
    typer.echo(say(told, shown=len(every) - hidden, room=room, hidden=hidden))


_ROOM = verbs.VISIBLE["room"]
_VIEWER = replace(_ROOM, form=Id(), en=f"{_ROOM.en} Or user:<id>, a person.", zh=f"{_ROOM.zh}或 user:<id>，即一个人。")
_SEEN_BY = replace(verbs.VISIBLE, run=_seen_by, arguments=(_VIEWER, verbs.VISIBLE["scope"]))


_NAMES = {"memory_id": "memory", "evolution_id": "evolution", "strength": "value"}
history = command(verbs.HISTORY, _versions, names=_NAMES)
app.command("list")(
    command(verbs.LIST, _listed, in_json=_memories, after=_meant, names=_NAMES, start=list_scopes, without=("offset",))
)
app.command("history")(history)
app.command("search")(command(verbs.SEARCH, _show_search, names=_NAMES | {"include_ended": "ended"}))
app.command("evolve")(evolve)
app.command("log")(log)
app.command("diff")(command(verbs.DIFF, _differs, names=_NAMES | {"start": "from", "end": "to"}, placed=("end",)))
app.command("as-of")(command(verbs.AS_OF, _then, in_json=_memories, names=_NAMES | {"at": "when"}, spread=("at",)))
app.command("blame")(command(verbs.BLAME, _blamed, names=_NAMES))
app.command("revert")(command(verbs.REVERT, _reverted, names=_NAMES))
app.command("restore")(command(verbs.RESTORE, _restored, names=_NAMES, before=_version))
app.command("strength")(command(verbs.STRENGTH, _strengthened, names=_NAMES))
app.command("delete")(delete)
app.command("forget")(privacy.forget)
_WITHHELD = Annotated[bool, typer.Option("--withheld", help="Only what is not shown there.")]
visible = command(_SEEN_BY, _visible, in_json=_wanted, also={"withheld": (_WITHHELD, False)})
add_others(app, verbs.VERBS)
