"""`roomlore tune`: better weights from labels or feedback."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from roomlore.core.errors import InvalidInput
from roomlore.core.tuning import Quality, TuningReport
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore


def tune(
    ctx: typer.Context,
    labels: Annotated[
        Path | None, typer.Argument(help="JSON lines of labels; by default the feedback that contexts got.")
    ] = None,
    room: Annotated[list[str] | None, typer.Option(help="Learn from this room only; may be repeated.")] = None,
    folds: Annotated[
        int, typer.Option(min=2, max=20, help="Into how many parts the messages are split for testing.")
    ] = 5,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply", help="Give the rooms that had labels the new weights as their own settings, if they did better."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Fit the weights of `weighted`, tested on messages they were not fitted on.

    A label is {"room_id", "message_id", "relevant": [ids]} or {"room_id", "message_id", "thread": name}.
    """
    rows = None if labels is None else list(_read(labels))

    async def work(lore: Lore) -> TuningReport:
        return await lore.tuning.run(rows, rooms=room, folds=folds, apply=apply)

    report = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(report))
    else:
        _tell(report, applied=apply)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The labels in {path} cannot be read: {error}.") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _row(line, number)


def _row(line: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InvalidInput(f"Line {number} of the labels is not JSON: {error}.") from error
    if not isinstance(row, dict):
        raise InvalidInput(f"Line {number} of the labels is not a JSON object.")
    return row


def _tell(report: TuningReport, *, applied: bool) -> None:
    names = ("precision", "recall", "F1", "chosen", "worth")
    shape = show.table("held-out targets", *names, right=names)
    lines = [_quality("before", report.before), _quality("after", report.after)]
    show.console().print(show.rows(shape, lines))
    typer.echo(f"{report.targets} targets, {report.folds} folds")
    if not report.improved:
        typer.echo("No better weights were found: the present ones stay.")
        return
    typer.echo("The rooms have them now:" if applied else "To use them everywhere, put this into roomlore.yaml:")
    typer.echo("memory:")
    for signal, weight in asdict(report.weights).items():
        typer.echo(f"  {signal}_weight: {weight:.4f}")
    typer.echo(f"  relevance_threshold: {report.threshold:g}")


def _quality(label: str, quality: Quality) -> list[str]:
    shares = (quality.precision, quality.recall, quality.f1)
    return [label, *(f"{share:.3f}" for share in shares), f"{quality.selected:.1f}", f"{quality.worth:.3f}"]
