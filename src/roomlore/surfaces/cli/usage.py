"""`roomlore usage`: the contexts that were used, their export for training, and a report for each arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from roomlore.core.json_values import json_line
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.data import sink_of
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.cli.language import say
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from roomlore.core.experiments import ArmReport, UsageReport
    from roomlore.core.models import ContextUsageRecord
    from roomlore.wiring import Lore

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="The contexts that were used: list them, export them for training, compare the arms of an experiment.",
)

Room = Annotated[str | None, typer.Option(help="This room only.")]
ArmName = Annotated[str | None, typer.Option(help="This arm only.")]
Judged = Annotated[bool, typer.Option("--judged", help="Only those with a feedback score.")]
Days = Annotated[float | None, typer.Option(min=0, help="Only those of the last days; by default all that are kept.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command("list")
def list_(
    ctx: typer.Context,
    room: Room = None,
    arm: ArmName = None,
    judged: Judged = False,
    days: Days = None,
    after: Annotated[str | None, typer.Option(help="Begin after this context.", metavar="ID")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Most contexts.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List contexts, the oldest first."""

    async def work(lore: Lore) -> list[ContextUsageRecord]:
        return await lore.usage.page(room_id=room, arm=arm, judged=judged, days=days, after=after, limit=limit)

    found = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(found))
        return
    numbers = ("messages", "tokens", "score", "feedback")
    shape = show.table("context", "built", "room", "for", "strategy", "arm", *numbers, right=numbers)
    show.console().print(show.rows(shape, map(_line, found)))
    if len(found) == limit:
        typer.echo(say("more: {option}", option=f"--after {show.inert(found[-1].context_id)}"), err=True)


def _line(record: ContextUsageRecord) -> list[str]:
    return [
        show.inert(record.context_id, 40),
        f"{record.created_at:%Y-%m-%d %H:%M}",
        show.inert(record.room_id, 40),
        show.inert(record.trigger_message_id, 40),
        record.strategy + (say(" (degraded)") if record.degraded else ""),
        show.inert(record.arm or "", 40),
        str(len(record.context_message_ids)),
        str(record.tokens),
        _number(record.mean_score),
        _number(record.success_indicator),
    ]


@app.command()
def export(
    ctx: typer.Context,
    room: Room = None,
    arm: ArmName = None,
    judged: Judged = False,
    days: Days = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A file, which appears only once it is whole; by default standard output."),
    ] = None,
) -> None:
    """Write contexts as JSON lines for training: the messages with features and scores, the answer, the feedback.

    Contexts for messages that were deleted, or whose senders were forgotten, are left out.
    """

    async def work(lore: Lore) -> int:
        with sink_of(output) as sink:
            return await _write(lore, sink, room_id=room, arm=arm, judged=judged, days=days)

    count = frame_of(ctx).run(work)
    typer.echo(say("wrote {count} contexts", count=count), err=True)


async def _write(lore: Lore, sink: BinaryIO, **selected: Any) -> int:
    count = 0
    async for row in lore.usage.export(**selected):
        sink.write(json_line(row))
        count += 1
    return count


@app.command()
def report(
    ctx: typer.Context,
    days: Annotated[float, typer.Option(min=0, help="Over the last days.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Compare the arms of an experiment: contexts, tokens, scores, feedback and degradation."""

    async def work(lore: Lore) -> UsageReport:
        return await lore.usage.report(days=days)

    found = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(found))
        return
    numbers = ("contexts", "rooms", "tokens", "saved", "score", "ms", "degraded", "answered", "judged", "feedback")
    shape = show.table("arm", *numbers, right=numbers)
    show.console().print(show.rows(shape, map(_arm, found.arms)))


def _arm(arm: ArmReport) -> list[str]:
    margin = "" if arm.success_margin is None else f" ±{arm.success_margin:.2f}"
    return [
        show.inert(arm.arm, 40) if arm.arm is not None else say("(none)"),
        str(arm.contexts),
        str(arm.rooms),
        f"{arm.tokens:.0f}",
        _share(arm.token_savings),
        _number(arm.mean_score),
        f"{arm.build_ms:.1f}",
        _share(arm.degraded),
        _share(arm.answered),
        str(arm.judged),
        _number(arm.success) + margin,
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
