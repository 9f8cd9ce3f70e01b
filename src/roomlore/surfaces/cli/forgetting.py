"""`roomlore forget` and `roomlore verify`: removing a person, and checking what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from roomlore.core.memory.writing import scope_of
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.cli.language import say, several, translated
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from roomlore.core.integrity import VerifyProgress, VerifyReport
    from roomlore.core.privacy import ForgetReport
    from roomlore.wiring import Lore


def forget(
    ctx: typer.Context,
    user: Annotated[str, typer.Argument(help="The sender id that the person's messages have.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would go.")] = False,
    same_words: Annotated[
        bool,
        typer.Option(
            "--same-words", help="Also take out what others said later in the same words, in rooms that both spoke in."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Remove everything that a person said and that was derived from it, after asking. It cannot be undone."""
    frame = frame_of(ctx)
    if dry_run or not yes:
        would = frame.run(lambda lore: lore.privacy.forget(user, dry_run=True, same_words=same_words))
        if dry_run:
            _tell(would, as_json=as_json)
            return
        report(would, Console(stderr=True, highlight=False, markup=False))
        typer.confirm(say("Forget {person} for good?", person=show.inert(user, 80)), abort=True, err=True)
    done = frame.run(lambda lore: lore.privacy.forget(user, same_words=same_words))
    _tell(done, as_json=as_json)
    if not done.complete:
        raise typer.Exit(1)


def _tell(done: ForgetReport, *, as_json: bool) -> None:
    if as_json:
        show.as_json(to_jsonable(done))
    else:
        report(done, show.console())


def report(done: ForgetReport, out: Console) -> None:
    """Print what was or would be removed, by place, and what is left, with the reason."""
    name = show.inert(done.user_id, 80)
    if not done.places and not done.rooms_removed:
        out.print(say("Nothing of {person} is here.", person=name))
    else:
        out.print(Text(say("Would go of {person}:" if done.dry_run else "Gone of {person}:", person=name), "bold"))
        for place, count in done.places.items():
            out.print(f"  {count:>7}  {translated(show.inert(place))}")
        out.print(f"  {_memories(done)}")
    for room in done.rooms_removed:
        out.print(f"  {say('the whole room {room}', room=show.inert(room, 80))}")
    for place, count in done.same_words.items():
        told = say("same words, kept: {count} in {place}", count=count, place=translated(show.inert(place)))
        out.print(Text(f"  {told}", "dim"))
    for one in done.left:
        place, why = translated(show.inert(one.place)), translated(show.inert(one.why))
        told = say("left: {count} in {place}: {why}", count=one.count, place=place, why=why)
        out.print(Text(f"  {told}", "yellow"))
    if done.checked:
        rows, tables = sum(done.checked.values()), len(done.checked)
        out.print(Text(say("Looked through {rows} rows of {tables} tables.", rows=rows, tables=tables), "dim"))


def _memories(done: ForgetReport) -> str:
    return say(
        "{retired} memories would be retired, {rewritten} would be rewritten"
        if done.dry_run
        else "{retired} memories retired, {rewritten} rewritten",
        retired=len(done.retired),
        rewritten=len(done.rewritten),
    )


def verify(
    ctx: typer.Context,
    group: Annotated[
        str | None, typer.Argument(metavar="[GROUP]", help="Only this group or scope, such as `user:anna`; else all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Check the integrity of stored data: logs, versions, evidence, marks, derived data, indexes. Changes nothing;
    exits with 1 if there is a fault."""
    scope = None if group is None else scope_of(group)
    telling = Console(stderr=True, highlight=False, markup=False)

    async def work(lore: Lore) -> VerifyReport:
        with telling.status(say("Reading")) as status:

            def progress(come: VerifyProgress) -> None:
                told = say("Read {memories} memories of {scopes} scopes", memories=come.memories, scopes=come.scopes)
                more = say(", {count} messages", count=come.messages) if come.messages else ""
                status.update(f"{told}{more}")

            return await lore.privacy.verify(scope, progress=progress if telling.is_terminal else None)

    found = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(found))
    else:
        _findings(found, show.console())
    if not found.sound:
        raise typer.Exit(1)


def _findings(found: VerifyReport, out: Console) -> None:
    """Print the faults with what to do, the notes, and what was checked."""
    for fault in found.faults:
        out.print(Text.assemble((f"{fault.check}  ", "bold red"), f"{show.inert(fault.where)}: {_found(fault.found)}"))
        out.print(Text(f"  {translated(fault.mend)}", "dim"))
    for note in found.notes:
        out.print(Text(f"{say('note')}  {show.inert(note.where)}: {_found(note.found)}", "yellow"))
    listed = say(", ").join(f"{count} {translated(what)}" for what, count in found.checked.items())
    checked = say("Looked at {what}.", what=listed or say("nothing: nothing is remembered"))
    count = sum(found.counts.values())
    verdict = say("All of it holds together.") if found.sound else several(count, "{count} fault.", "{count} faults.")
    out.print(f"{checked} {verdict}")


def _found(text: str) -> str:
    return translated(show.inert(text))
