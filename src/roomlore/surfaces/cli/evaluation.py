"""`roomlore eval`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from roomlore.core.errors import InvalidInput
from roomlore.surfaces.cli import evaluation_page, show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain

if TYPE_CHECKING:
    from roomlore.core.evaluation import Evaluation, RoomScore, Share
    from roomlore.wiring import Lore


def evaluate(
    ctx: typer.Context,
    rooms: Annotated[list[str] | None, typer.Argument(help="The ids of the rooms; by default all.")] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines with `question`, `room_id` or `viewer`, and `answers` (ids) or `words` of an answer.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    forbidden: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines with a `text` and the `viewer` (`room:<id>` or `user:<id>`) who must not be shown it.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write the report as a page of HTML to this file.", dir_okay=False)
    ] = None,
    sample: Annotated[int, typer.Option(min=1, max=100_000, help="Most replies of each room that are hidden.")] = 300,
    seed: Annotated[int, typer.Option(help="Chooses the replies; the same seed gives the same report.")] = 0,
    least: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 1 if fewer contexts hold the answered message than this share."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Tell how well roomlore does on your own rooms, without labels and without a model; exits with 1 if something
    leaks, or if --least is missed."""
    asked = None if questions is None else _rows(questions)
    hidden = None if forbidden is None else _rows(forbidden)

    async def work(lore: Lore) -> Evaluation:
        return await lore.evaluation.run(rooms or None, questions=asked, forbidden=hidden, sample=sample, seed=seed)

    found = frame_of(ctx).run(work)
    if report is not None:
        report.write_text(evaluation_page.page(found), encoding="utf-8")
    if as_json:
        show.as_json(figures(found))
    else:
        _print(found)
    reached = found.found.value
    if found.leaks or (least is not None and (reached is None or reached < least)):
        raise typer.Exit(1)


def _rows(path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise InvalidInput(f"{path.name}, line {number} is no JSON: {line[:60]!r}.") from error
    return rows


def figures(found: Evaluation) -> dict[str, Any]:
    """Return the report as JSON values, with the shares of all rooms."""
    whole = {"found": _figure(found.found), "window": _figure(found.window)}
    return {**plain(found), **whole, "tokens": found.tokens, "window_tokens": found.window_tokens}


def _figure(share: Share) -> dict[str, Any]:
    return {**plain(share), "share": share.value, "interval": share.interval}


def _print(found: Evaluation) -> None:
    out = show.console()
    numbers = ("messages", "replies", "tried", "found", "last 20", "size", "tokens", "of last 20")
    shape = show.table("room", *numbers, right=numbers)
    out.print(show.rows(shape, map(_line, found.rooms)))
    for line in _words(found):
        out.print(line)


def _line(room: RoomScore) -> list[str]:
    mean = max(1, room.found.cases)
    return [
        show.inert(room.room_id, 60),
        str(room.messages),
        str(room.replies),
        str(room.found.cases),
        str(room.found),
        str(room.window),
        f"{room.size:.1f}",
        str(round(room.tokens / mean)),
        str(round(room.window_tokens / mean)),
    ]


def _words(found: Evaluation) -> Iterator[Text]:
    if found.found.cases:
        text = f"{found.found} of contexts hold the answered message; of the last 20, {found.window}"
        yield Text(f"{text}; {tokens_saved(found)}", "green")
    else:
        yield Text("No platform replies: import an export that says what answers what, or give --questions.", "yellow")
    if found.asked:
        shares = ", ".join(f"{rank}: {share}" for rank, share in found.asked.recall.items())
        yield Text(f"questions answered within the first {shares}; {found.asked.ms:.0f} ms a search")
        for question in found.asked.missed:
            yield Text(f"  missed: {show.inert(question, 120)}", "yellow")
    if found.forbidden:
        yield Text(
            f"forbidden texts: {found.forbidden} looked for, {len(found.leaks)} shown",
            "red" if found.leaks else "green",
        )
    for leak in found.leaks:
        yield Text(f"  {show.inert(leak.viewer, 60)} is shown {show.inert(leak.text, 60)!r} ({show.inert(leak.where)})")


def tokens_saved(found: Evaluation) -> str:
    """Return what contexts cost beside the last 20 messages, for people."""
    return f"tokens: {show.verdict(found.tokens, found.window_tokens or 1)}"
