"""`roomlore facts`: facts about people, agents and groups, added and changed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roomlore.core.dates import Edge, moment
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import Memory, MemoryKind, MemoryStatus, Status
from roomlore.core.memory.writing import KEEP, FactImport, NewMemory, Remembered
from roomlore.surfaces.cli import memory, show, show_memories
from roomlore.surfaces.cli.frame import Group, frame_of, scope_and_missing, scope_meant, scope_named, scope_to_write
from roomlore.surfaces.cli.language import say, translated
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from roomlore.wiring import Lore

app = typer.Typer(
    cls=Group, no_args_is_help=True, help="Add, change and import what is known of people, agents and groups."
)

_NAMED_SKIPPED = 20

_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
_Fact = Annotated[str, typer.Argument(help="The id of any version of it, or the beginning or end of that.")]
_Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.")]
_Expected = Annotated[
    str | None,
    typer.Option(
        help="The version that must be in force. Else nothing is changed and the exit status is 1.", metavar="FACT"
    ),
]
_Reason = Annotated[str, typer.Option(help="Why, for the history.")]


@app.command()
def add(
    ctx: typer.Context,
    scope: Annotated[str, typer.Argument(help="Whom it is about: user:<id>, agent:<id> or group:<id or name>.")],
    text: Annotated[str, typer.Argument(help="What is to be remembered.")],
    confidence: Annotated[
        float | None, typer.Option(help="How sure it is, from 0 to 1. Left out, nobody said.")
    ] = None,
    category: Annotated[str, typer.Option(help="What kind of thing it is, such as `preference`.")] = "",
    tag: _Tags = None,
    owner: Annotated[
        str, typer.Option(help="The id of the person whom it is about; by default that of the scope.")
    ] = "",
    said_by: Annotated[list[str] | None, typer.Option(help="The id of who said it; may be repeated.")] = None,
    valid_from: Annotated[str | None, typer.Option(help="Since when it holds: `2024-05-01`, `'last week'`.")] = None,
    valid_until: Annotated[str | None, typer.Option(help="When it ends: `2024-05-01` counts to its end.")] = None,
    fact_id: Annotated[
        str | None, typer.Option("--id", help="An id of your own makes the command safe to repeat.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The fact as JSON, with its `outcome`: `added` or `unchanged`.")
    ] = False,
) -> None:
    """Add a fact. A fact in the same words is not added again."""

    async def work(lore: Lore) -> tuple[Remembered, ZoneInfo, bool, str | None, str]:
        about, missing = await scope_and_missing(lore, scope)
        meant = "" if about.startswith("group:") else await scope_meant(lore, about)
        begins, ends = _span(lore, valid_from, valid_until)
        new = NewMemory(
            scope=about,
            statement=text,
            confidence=confidence,
            category=category,
            tags=tag or (),
            owner=owner,
            said_by=said_by or (),
            valid_from=begins,
            valid_until=ends,
            memory_id=fact_id,
        )
        (done,) = await lore.memories.add_all([new])
        until = done.memory.valid_until
        return done, lore.settings.search.zone, until is not None and until <= lore.now(), missing, meant

    done, zone, over, missing, meant = frame_of(ctx).run(work, creates=True)
    if as_json:
        show.as_json({**to_jsonable(done.memory), "outcome": done.outcome})
    else:
        known, said = show.inert(done.memory.memory_id), show_memories.held(done.memory, zone)
        added = done.outcome == "added"
        begun = "Remembered as {memory}: {said}" if added else "Remembered already, as {memory}: {said}"
        typer.echo(say(begun, memory=known, said=said))
        if over:
            typer.echo(say("It has ended already; `--status ended` of `roomlore facts list` shows it."))
    if missing is not None and done.outcome == "added":
        told = "There is no room {room} yet (`roomlore rooms`); `roomlore facts delete {fact}` takes it back."
        typer.echo(say(told, room=show.inert(missing), fact=show.inert(done.memory.memory_id)), err=True)
    if meant.endswith("?"):
        typer.echo(translated(show.inert(meant)), err=True)


@app.command("list")
def list_(
    ctx: typer.Context,
    scope: Annotated[
        str, typer.Argument(help="Whom they are about: user:<id or name>, agent:<id> or group:<id or name>.")
    ],
    status: Annotated[Status, typer.Option(help="Which ones.")] = "active",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of facts.")] = 50,
    as_json: _Json = False,
) -> None:
    """List the facts about a person, an agent or a group, the last changed first."""
    kinds = (MemoryKind.FACT,)

    async def work(lore: Lore) -> tuple[list[Memory], ZoneInfo, str]:
        about = await scope_named(lore, scope)
        page = await lore.memories.page(about, kinds=kinds, status=status, limit=limit, viewer=None)
        return page, lore.settings.search.zone, "" if page else await scope_meant(lore, about)

    found, zone, meant = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(found))
    elif found:
        whole = ("fact", "changed", "confidence")
        shape = show.table("fact", "changed", "confidence", "category", "statement", right=("confidence",), fixed=whole)
        show.console().print(show.rows(shape, (_line(one, zone) for one in found)))
    else:
        typer.echo(say("No fact is known of {scope}.", scope=show.inert(scope)))
    if meant:
        typer.echo(translated(show.inert(meant)), err=True)


@app.command()
def update(
    ctx: typer.Context,
    fact: _Fact,
    text: Annotated[str | None, typer.Option(help="What it says from now on.")] = None,
    confidence: Annotated[float | None, typer.Option(help="How sure it is, from 0 to 1; 0 is 0.")] = None,
    no_confidence: Annotated[bool, typer.Option("--no-confidence", help="Take its confidence away.")] = False,
    category: Annotated[str | None, typer.Option(help="What kind of thing it is; `''` takes it away.")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="A tag; may be repeated. The tags given take the place of all others."),
    ] = None,
    valid_from: Annotated[str | None, typer.Option(help="Since when it holds; `''` takes it away.")] = None,
    valid_until: Annotated[str | None, typer.Option(help="When it ends, such as `now`; `''` takes it away.")] = None,
    expected: _Expected = None,
    reason: _Reason = "",
    as_json: Annotated[bool, typer.Option("--json", help="The new version as JSON.")] = False,
) -> None:
    """Change a fact. It gets a new version with a new id; the version before stays in its history."""
    if no_confidence and confidence is not None:
        raise InvalidInput("Give --confidence or --no-confidence, not both.")
    given = (confidence, text, category, tag or None, valid_from, valid_until)
    if not no_confidence and all(one is None for one in given):
        raise InvalidInput(
            "Say what to change: --text, --confidence, --no-confidence, --category, --tag, --valid-from, --valid-until."
        )
    wanted = None if no_confidence else KEEP if confidence is None else confidence

    async def work(lore: Lore) -> tuple[Memory, bool]:
        begins, ends = _span(lore, valid_from, valid_until)
        before = await lore.memories.head(await lore.memories.named(fact), viewer=None)
        after = await lore.memories.update(
            before.memory_id,
            statement=text,
            confidence=wanted,
            category=category,
            tags=tag,
            valid_from=KEEP if valid_from is None else begins,
            valid_until=KEEP if valid_until is None else ends,
            expected=expected,
            reason=reason,
            viewer=None,
        )
        return after, after.memory_id != before.memory_id

    changed, anew = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(changed))
    else:
        known, said = show.inert(changed.memory_id), show.inert(changed.statement)
        told = "Version {number}, {memory}: {said}" if anew else "Unchanged, version {number}, {memory}: {said}"
        typer.echo(say(told, number=changed.version, memory=known, said=said))


@app.command()
def delete(
    ctx: typer.Context,
    fact: _Fact,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    expected: _Expected = None,
    reason: _Reason = "",
    as_json: _Json = False,
) -> None:
    """Delete a fact, after asking. It stays in its history and is no longer recalled."""
    gone, told = memory.deleted(frame_of(ctx), fact, yes=yes, reason=reason, expected=expected)
    if as_json:
        show.as_json(to_jsonable(gone))
    else:
        typer.echo(f"{told}{say(': ')}{show.inert(gone.statement)}")


app.command("history")(memory.history)


@app.command("import")
def import_(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="DeerFlow's memory.json, or what mem0 exports.")],
    scope: Annotated[
        str | None,
        typer.Option(
            help="Whom facts are about that do not say it themselves, such as `user:anna`. DeerFlow's need it."
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--from", help="`deerflow` or `mem0`; found out by looking otherwise.", metavar="NAME")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; say what would come of it.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The report as JSON, with every entry that was skipped.")
    ] = False,
) -> None:
    """Import the memories of another system. Unreadable entries are listed and skipped; importing the same file again
    changes nothing."""

    async def work(lore: Lore) -> FactImport:
        about = None if scope is None else await scope_to_write(lore, scope)
        return await lore.memories.import_facts(file, form=form, scope=about, dry_run=dry_run)

    report = frame_of(ctx).run(work, creates=True)
    for left in report.skipped[:_NAMED_SKIPPED]:
        why = translated(show.inert(left.reason))
        skipped = say("skipped {place}: {why}", place=show.inert(left.place), why=why)
        typer.echo(f"{skipped} | {show.inert(left.excerpt, 80)}", err=True)
    if len(report.skipped) > _NAMED_SKIPPED:
        more = len(report.skipped) - _NAMED_SKIPPED
        typer.echo(say("skipped {count} more; --json names them all", count=more), err=True)
    if as_json:
        show.as_json(to_jsonable(report))
    else:
        typer.echo(_summary(report))


def _span(lore: Lore, begins: str | None, ends: str | None) -> tuple[datetime | None, datetime | None]:
    """Return both times. Raise `InvalidInput` in the words of the user if the second is not after the first."""
    first, last = _moment(lore, "--valid-from", begins, "start"), _moment(lore, "--valid-until", ends, "end")
    if first is not None and last is not None and last <= first:
        raise InvalidInput(f"--valid-until {ends!r:.60} is not after --valid-from {begins!r:.60}; change one of them.")
    return first, last


def _moment(lore: Lore, name: str, words: str | None, edge: Edge) -> datetime | None:
    """Return the time; None if it is not given, or ''."""
    if not words:
        return None
    return moment(name, words, now=lore.now(), zone=lore.settings.search.zone, edge=edge, may_come=True)


def _line(fact: Memory, zone: ZoneInfo) -> list[str]:
    sure = "–" if fact.confidence is None else f"{fact.confidence:.2f}"
    gone = "" if fact.status is MemoryStatus.ACTIVE else f"  ({say(fact.status)})"
    said = [show.inert(fact.category, 24), f"{show_memories.held(fact, zone)}{gone}"]
    return [fact.memory_id, show.clock(fact.updated_at), sure, *said]


def _summary(report: FactImport) -> str:
    counts = {
        "{count} added": report.added,
        "{count} updated": report.updated,
        "{count} unchanged": report.unchanged,
        "{count} skipped": len(report.skipped),
    }
    told = say(", ").join(say(what, count=count) for what, count in counts.items() if count or what == "{count} added")
    named = ", ".join([*(show.inert(scope, 60) for scope in report.scopes[:5]), *("…" for _ in report.scopes[5:6])])
    source = say("{form} of {scopes}", form=report.form, scopes=named) if named else report.form
    return say("would come: {told} ({source})" if report.dry_run else "{told} ({source})", told=told, source=source)
