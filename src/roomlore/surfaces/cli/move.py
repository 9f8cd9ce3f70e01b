"""`roomlore move`, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from roomlore.core.moving import BESIDE
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.data import INTERRUPTED, counting
from roomlore.surfaces.cli.frame import Frame, frame_of
from roomlore.surfaces.cli.language import say, translated
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from roomlore.core.moving import MovePlan, MoveReport

_DOING = {
    "copying": "copying rows",
    "comparing": "comparing rows",
    "waiting": "source still open elsewhere, {done} or more",
    "finishing": "making indexes",
    "verifying": "checking both sides",
}
_SIDES = {"source": "the source", "target": "the target"}
_NAMED = ("messages", "rooms", "memories", "sessions")


def move(
    ctx: typer.Context,
    target: Annotated[str, typer.Option("--to", metavar="URL", help="The new database, which must be empty.")],
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="URL", help="The database to copy.", show_default="roomlore.db, the setting database_url"
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Go on copying what is new until no other program has the source open."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing: say what would be copied, and about how long it takes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Copy everything into another database, such as from SQLite to PostgreSQL or back, while bots go on. Stopped, the
    same command goes on. Exits with 1 if the two differ in the end, or one has a fault."""
    from roomlore.wiring.moving import move as copy
    from roomlore.wiring.moving import plan_move

    frame = frame_of(ctx)
    settings = Frame(frame.config, source or frame.database, frame.tenant).settings(quiet=True)
    other = settings.changed(database_url=target)
    if dry_run:
        planned = plan_move(settings, other)
        show.as_json(to_jsonable(planned)) if as_json else _tell_plan(planned)
        return
    try:
        with _bar() as told:
            report = copy(settings, other, follow=follow, told=told, noticed=_tell_notice)
    except KeyboardInterrupt as stop:
        typer.echo(say("Stopped. The same command goes on from here."), err=True)
        raise typer.Exit(INTERRUPTED) from stop
    show.as_json(to_jsonable(report)) if as_json else _tell_report(report)
    if not report.sound:
        raise typer.Exit(1)


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """Give what moves a bar that says what is done."""
    with counting() as progress:
        bar = progress.add_task("", total=None)
        yield lambda what, done, total: progress.update(
            bar, description=say(_DOING[what], done=done), completed=done, total=total or None
        )


def _tell_plan(plan: MovePlan) -> None:
    typer.echo(say("From {source}", source=show.inert(plan.source)))
    typer.echo(say("to {target}", target=show.inert(plan.target)))
    show.console().print(_rows(plan.rows))
    minutes = max(1, round(plan.minutes))
    typer.echo(say("About {size:,.0f} MB, and about {minutes} min.", size=max(1.0, plan.bytes / 1e6), minutes=minutes))
    for notice in plan.notices:
        _tell_notice(notice)
    _tell_left(plan.left, plan.rows)


def _rows(rows: Mapping[str, int]) -> object:
    """Return a table of what people call by a name, and of all else."""
    named = {name: rows[name] for name in _NAMED}
    lines = [(say(name), f"{count:,}") for name, count in named.items()]
    lines.append((say("other rows"), f"{sum(rows.values()) - sum(named.values()):,}"))
    return show.rows(show.table("what", "rows", right=("rows",)), lines)


def _tell_report(report: MoveReport) -> None:
    rows = {name: here for name, (_, here) in report.rows.items()}
    show.console().print(_rows(rows))
    stood = show.local(report.stands_at).strftime("%Y-%m-%d %H:%M:%S")
    typer.echo(say("Copied in {seconds:,.0f} s: as the source was at {time}.", seconds=report.seconds, time=stood))
    if report.sound:
        typer.echo(say("Checked: every row was compared, and `roomlore verify` finds no fault in either database."))
    for name in report.unlike:
        there, here = report.rows[name]
        typer.echo(say("{table}: {there:,} rows there, {here:,} here.", table=name, there=there, here=here))
    for side, tenants in report.faults.items():
        for tenant, faults in tenants.items():
            for fault in faults:
                typer.echo(f"{say(_SIDES[side])}, {show.inert(tenant)}: {show.inert(translated(fault))}")
    _tell_left(report.left, rows)
    if report.newer:
        typer.echo(say("The source was changed since. Stop what uses it and run the same command again."))
    else:
        typer.echo(say("Now set database_url to {target}. The source stays.", target=show.inert(report.target)))


def _tell_notice(notice: str) -> None:
    typer.echo(translated(notice), err=True)


def _tell_left(left: Mapping[str, str], rows: Mapping[str, int]) -> None:
    """Print what is not copied, as far as the store has any of it. What is left of tables is nothing to people."""
    elsewhere = rows["vector_collections"] if not rows["vectors"] else 0
    counts = (rows["rooms_due"] + rows["import_positions"], rows["archives"], elsewhere)
    there = dict(zip(BESIDE, counts, strict=True))
    if lines := [(translated(name), translated(why)) for name, why in left.items() if there.get(name)]:
        show.console().print(show.rows(show.table("not copied", "why"), lines))
