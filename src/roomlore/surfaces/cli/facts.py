"""`roomlore facts`: facts about people, agents and groups, added and changed by hand."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from roomlore.core.memory.memory import Memory
from roomlore.core.memory.versions import AddedFact, FactImport
from roomlore.surfaces.cli import memory, show, show_memories
from roomlore.surfaces.cli.derived import PART, Call, add_others, command
from roomlore.surfaces.cli.frame import AsJson, Group, frame_of, scope_meant, scope_to_write
from roomlore.surfaces.cli.language import App, helped, say, translated
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.verbs import facts as verbs

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from roomlore.wiring import Lore

app = App(cls=Group, no_args_is_help=True, help="List, change and import what is known of people, agents and groups.")

_NAMED_SKIPPED = 20

_NAMES = {"statement": "text", "tags": "tag", "memory_id": "id"}


async def _added(lore: Lore, fact: AddedFact, _: Call) -> None:
    """Tell what was remembered."""
    new = fact.outcome == "added"
    said = show_memories.held(fact, lore.settings.search.zone)
    begun = "Remembered as {memory}: {said}" if new else "Remembered already, as {memory}: {said}"
    typer.echo(say(begun, memory=show_memories.short(fact.memory_id), said=said))
    _tell_ended(lore, fact)


def _tell_ended(lore: Lore, fact: Memory) -> None:
    if fact.valid_until is not None and fact.valid_until <= lore.now():
        typer.echo(say("It has ended already; `--status ended` of `roomlore facts list` shows it."))


async def _unknown(lore: Lore, fact: AddedFact, __: Call) -> None:
    """Tell on standard error if a fact is about a room or a person that is not there, or another person may be
    meant."""
    known = show_memories.short(fact.memory_id)
    if fact.outcome == "added" and not fact.notes and (problem := await scope_meant(lore, fact.scope)):
        told = "{problem} `roomlore facts delete {fact}` takes it back."
        typer.echo(show.inert_piece(say(told, problem=translated(problem), fact=known)), err=True)
    for note in fact.notes:
        typer.echo(show.inert(translated(note)), err=True)
    if fact.people_meant:
        anew = f"roomlore remember {quote(f'user:{fact.people_meant[0]}')} {quote(fact.statement)}"
        told = "If so: `{anew}`, and `roomlore facts delete {fact}` takes this one back."
        typer.echo(say(told, anew=show.inert_piece(anew), fact=known), err=True)


async def _listed(lore: Lore, page: verbs.FactPage, call: Call) -> None:
    zone, now = lore.settings.search.zone, lore.now()
    if page.facts:
        whole = ("fact", "changed", "confidence")
        shape = show.table("fact", "changed", "confidence", "category", "statement", right=("confidence",), fixed=whole)
        show.console().print(show.rows(shape, (_line(fact, now, zone) for fact in page.facts)))
    else:
        typer.echo(say("No fact is known of {scope}.", scope=show.inert(call.asked["scope"])))


async def _meant(lore: Lore, page: verbs.FactPage, call: Call) -> None:
    if not page.facts and (meant := await scope_meant(lore, call.gives["scope"])):
        typer.echo(show.inert(translated(meant)), err=True)


async def _changed(lore: Lore, fact: Memory, call: Call) -> None:
    anew = fact.memory_id != call.gives["memory_id"]
    told = "Version {number}, {memory}: {said}" if anew else "Unchanged, version {number}, {memory}: {said}"
    known, said = show_memories.short(fact.memory_id), show_memories.held(fact, lore.settings.search.zone)
    typer.echo(say(told, number=fact.version, memory=known, said=said))
    _tell_ended(lore, fact)


remember = command(
    verbs.ADD,
    _added,
    after=_unknown,
    names=_NAMES | {"scope": "about", "sources": "source"},
    without=("kind",),
    spread=("statement",),
    creates=True,
)
app.command("add", hidden=True)(remember)
app.command("list")(
    command(
        verbs.LIST,
        _listed,
        in_json=lambda page, _: page.facts,
        after=_meant,
        start=memory.list_scopes,
        without=("kind", "offset"),
    )
)
app.command("update")(
    command(
        verbs.CHANGE,
        _changed,
        names=_NAMES | {"memory_id": "fact"},
        without=("owner", "said_by", "sources"),
    )
)


@app.command()
def delete(
    ctx: typer.Context,
    fact: Annotated[str, typer.Argument(help=helped(verbs.DELETE["memory_id"].help, PART))],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    expected: Annotated[str | None, typer.Option(help=helped(verbs.DELETE["expected"].help))] = None,
    reason: Annotated[str, typer.Option(help=helped(verbs.DELETE["reason"].help))] = "",
    as_json: AsJson = False,
) -> None:
    """Delete a fact, after asking. It stays in its history and is no longer recalled."""
    memory.delete_named(frame_of(ctx), fact, yes=yes, reason=reason, expected=expected, as_json=as_json)


app.command("history")(memory.history)
add_others(app, verbs.VERBS)


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
        why = show.inert(translated(left.reason))
        skipped = say("skipped {place}: {why}", place=show.inert(left.place), why=why)
        typer.echo(f"{skipped} | {show.inert(left.excerpt, 80)}", err=True)
    if len(report.skipped) > _NAMED_SKIPPED:
        more = len(report.skipped) - _NAMED_SKIPPED
        typer.echo(say("skipped {count} more; --json names them all", count=more), err=True)
    show.as_json(to_jsonable(report)) if as_json else typer.echo(_summary(report))


def _line(fact: Memory, now: datetime, zone: ZoneInfo) -> list[str]:
    sure = "" if fact.confidence is None else f"{fact.confidence:.2f}"
    cells = [show.inert(fact.category, 24), show_memories.listed(fact, now, zone)]
    return [show_memories.short(fact.memory_id), show.clock(fact.updated_at), sure, *cells]


def _summary(report: FactImport) -> str:
    counts = {
        "{count} added": report.added,
        "{count} updated": report.updated,
        "{count} unchanged": report.unchanged,
        "{count} skipped": len(report.skipped),
    }
    summary = say(", ").join(
        say(what, count=count) for what, count in counts.items() if count or what == "{count} added"
    )
    named = ", ".join([*(show.inert(scope, 60) for scope in report.scopes[:5]), *("…" for _ in report.scopes[5:6])])
    source = say("{form} of {scopes}", form=report.form, scopes=named) if named else report.form
    return say("would come: {told} ({source})" if report.dry_run else "{told} ({source})", told=summary, source=source)
