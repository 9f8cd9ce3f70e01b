"""The commands that tell how good contexts are: `roomlore eval`, with its report as one page of HTML with bars drawn in
SVG; `roomlore tune`; and `roomlore usage`, the contexts that were used, their export for training, and a report for
each arm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from roomlore.core.errors import InvalidInput
from roomlore.core.evaluation import Evaluation, QuestionScore, RoomScore, Share, caution
from roomlore.core.json_values import json_line
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.data import sink_of
from roomlore.surfaces.cli.derived import Call, command
from roomlore.surfaces.cli.frame import AsJson, Group, frame_of
from roomlore.surfaces.cli.language import App, interface_language, say, translated
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.verbs import operations as verbs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from roomlore.core.experiments import ArmReport, UsageReport
    from roomlore.core.models import ContextUsageRecord
    from roomlore.core.tuning import Quality, TuningReport
    from roomlore.wiring import Lore


def evaluate(
    ctx: typer.Context,
    rooms: Annotated[list[str] | None, typer.Argument(help="The rooms, by id or name; by default all.")] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines with `question`, `room_id` or `viewer`, `answers` (ids) or `words` of an answer, and "
            "optionally the `message_id` of the message that asks it.",
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
    sample: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of replies of each room that are hidden.")
    ] = 300,
    seed: Annotated[int, typer.Option(help="Chooses the replies; the same seed gives the same report.")] = 0,
    least: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 1 if fewer contexts hold the answered message than this share."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell how well roomlore does on your own rooms, without labels and without a model; exits with 1 if something
    leaks, or if --least is missed."""
    question_rows = None if questions is None else _rows(questions)
    hidden = None if forbidden is None else _rows(forbidden)

    async def work(lore: Lore) -> Evaluation:
        chosen = [await lore.rooms.named(room, viewer=None) for room in rooms or ()]
        return await lore.evaluation.run(
            chosen or None, questions=question_rows, forbidden=hidden, sample=sample, seed=seed
        )

    evaluation = frame_of(ctx).run(work)
    if report is not None:
        report.write_text(page(evaluation), encoding="utf-8")
    show.as_json(figures(evaluation)) if as_json else _print(evaluation)
    reached = evaluation.found.value
    if evaluation.leaks or (least is not None and (reached is None or reached < least)):
        raise typer.Exit(1)


def _rows(path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise InvalidInput("line_not_json", file=path.name, number=number, line=repr(line[:60])) from error
    return rows


def figures(evaluation: Evaluation) -> dict[str, Any]:
    """Return the report as JSON values, with the shares of all rooms."""
    whole = {"found": _figure(evaluation.found), "window": _figure(evaluation.window)}
    return {**to_jsonable(evaluation), **whole, "tokens": evaluation.tokens, "window_tokens": evaluation.window_tokens}


def _figure(share: Share) -> dict[str, Any]:
    return {**to_jsonable(share), "share": share.value, "interval": share.interval}


def _print(evaluation: Evaluation) -> None:
    out = show.console()
    if evaluation.found.cases:
        out.print(say("Replies were hidden one at a time. Does a context still hold the message that was answered?"))
    numbers = ("messages", "replies", "roomlore", "last 20", "tokens")
    shape = show.table("room", *numbers, right=numbers)
    out.print(show.rows(shape, map(_line, evaluation.rooms)))
    for line in _words(evaluation):
        out.print(line)


def _line(room: RoomScore) -> list[str]:
    mean = max(1, room.found.cases)
    return [
        show.inert(room.room_id, 60),
        f"{room.messages:,}",
        f"{room.found.cases:,}/{room.replies:,}",
        str(room.found),
        str(room.window),
        f"{room.tokens / mean:.0f}/{room.window_tokens / mean:.0f}",
    ]


def _words(evaluation: Evaluation) -> Iterator[Text]:
    if evaluation.found.cases:
        text = say(
            "{found} of contexts hold the answered message; of the last 20, {window}; {tokens}",
            found=evaluation.found,
            window=evaluation.window,
            tokens=tokens_saved(evaluation),
        )
        few = caution(evaluation)
        yield Text(text, "yellow" if few else "green")
        if few:
            yield Text(translated(few), "yellow")
    else:
        yield Text(
            say("No platform replies: import an export that says what answers what, or give --questions."), "yellow"
        )
    if evaluation.asked:
        shares = ", ".join(f"{rank}: {share}" for rank, share in evaluation.asked.recall.items())
        sentence = say(
            "questions answered within the first {shares}; {ms:.0f} ms a search", shares=shares, ms=evaluation.asked.ms
        )
        yield Text(sentence)
        if evaluation.asked.contexts.cases:
            sentence = say(
                "contexts of the messages that ask hold an answer: {held}; {tokens:.0f} tokens on average",
                held=evaluation.asked.contexts,
                tokens=evaluation.asked.context_tokens,
            )
            yield Text(sentence)
        for question in evaluation.asked.missed:
            yield Text(f"  {say('missed: {question}', question=show.inert(question, 120))}", "yellow")
    if evaluation.forbidden:
        yield Text(
            say(
                "forbidden texts: {count} looked for, {shown} shown",
                count=evaluation.forbidden,
                shown=len(evaluation.leaks),
            ),
            "red" if evaluation.leaks else "green",
        )
    for leak in evaluation.leaks:
        viewer, text = show.inert(leak.viewer, 60), show.inert(leak.text, 60)
        sentence = say("{viewer} is shown {text!r} ({where})", viewer=viewer, text=text, where=show.inert(leak.where))
        yield Text(f"  {sentence}")


def tokens_saved(evaluation: Evaluation) -> str:
    """Return what contexts cost beside the last 20 messages, for people."""
    return say("tokens: {verdict}", verdict=show.verdict(evaluation.tokens, evaluation.window_tokens or 1))


_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd}
td.n,th.n{text-align:right}svg{width:100%;height:auto}.leak{color:#b00020}
@media(prefers-color-scheme:dark){body{color:#e8e8e8;background:#161616}th,td{border-color:#444}.leak{color:#ff6b81}}
"""
_WIDE, _HIGH, _NAME = 640, 22, 150


def page(evaluation: Evaluation) -> str:
    """Return the page, which needs nothing from elsewhere."""
    parts = "\n".join(_parts(evaluation))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>roomlore eval</title>'
    begun = f"<!doctype html>\n<html lang={interface_language()}>"
    return f"{begun}<head>{head}<style>{_STYLE}</style></head><body>\n{parts}\n</body></html>\n"


def _parts(evaluation: Evaluation) -> Iterator[str]:
    yield f"<h1>{say('How well roomlore does on these rooms')}</h1>"
    how = say(
        "Platform replies were hidden one at a time. A context counts if it still holds the message that was answered. "
        "Seed {seed}, {seconds:.1f} s. In brackets: the interval that holds the share of all replies 19 times of 20.",
        seed=evaluation.seed,
        seconds=evaluation.seconds,
    )
    yield f"<p>{how}</p>"
    if few := caution(evaluation):
        yield f'<p class="leak">{_text(translated(few))}</p>'
    yield bars([("roomlore", evaluation.found), (say("last 20 messages"), evaluation.window)])
    spent = say(
        "Tokens of the contexts: {tokens:,}; of the last 20 messages: {window:,}.",
        tokens=evaluation.tokens,
        window=evaluation.window_tokens,
    )
    yield f"<p>{spent}</p>"
    yield _table(evaluation.rooms)
    if evaluation.asked:
        yield from _questions(evaluation.asked)
    if evaluation.forbidden:
        sentence = say(
            "{count} were looked for, {shown} are shown.", count=evaluation.forbidden, shown=len(evaluation.leaks)
        )
        yield f"<h2>{say('Forbidden texts')}</h2><p>{sentence}</p>"
        for leak in evaluation.leaks:
            viewer, text, where = _text(leak.viewer), _text(leak.text), _text(leak.where)
            sentence = say("{viewer} is shown “{text}” ({where}).", viewer=viewer, text=text, where=where)
            yield f'<p class="leak">{sentence}</p>'


def _questions(score: QuestionScore) -> Iterator[str]:
    yield f"<h2>{say('Questions')}</h2>"
    yield bars([(say("within the first {rank}", rank=rank), share) for rank, share in score.recall.items()])
    sentence = say("{ms:.0f} ms a search; {tokens:.0f} tokens of hits on average.", ms=score.ms, tokens=score.tokens)
    yield f"<p>{sentence}</p>"
    if score.contexts.cases:
        yield bars([(say("context of the message"), score.contexts)])
        yield f"<p>{say('{tokens:.0f} tokens of a context on average.', tokens=score.context_tokens)}</p>"
    if score.missed:
        yield f"<ul>{''.join(f'<li>{_text(missed)}</li>' for missed in score.missed)}</ul>"


def _table(rooms: tuple[RoomScore, ...]) -> str:
    heads = ("messages", "replies", "tried", "held", "in the last 20", "size")
    head = "".join(f'<th class="n">{say(name)}</th>' for name in heads)
    return f"<table><tr><th>{say('room')}</th>{head}</tr>{''.join(map(_row, rooms))}</table>"


def _row(room: RoomScore) -> str:
    cells = (
        f"{room.messages:,}",
        f"{room.replies:,}",
        f"{room.found.cases:,}",
        str(room.found),
        str(room.window),
        f"{room.size:.1f}",
    )
    return f"<tr><td>{_text(room.room_id)}</td>{''.join(f'<td class=n>{cell}</td>' for cell in cells)}</tr>"


def bars(rows: list[tuple[str, Share]]) -> str:
    """Return a picture of shares as bars, each with its margin."""
    drawn = "".join(_bar(place, name, share) for place, (name, share) in enumerate(rows))
    high = len(rows) * (_HIGH + 8)
    label = "; ".join(f"{name}: {share}" for name, share in rows)
    return f'<svg viewBox="0 0 {_WIDE} {high}" role="img" aria-label="{_text(label)}" fill="currentColor">{drawn}</svg>'


def _bar(place: int, name: str, share: Share) -> str:
    top, middle = place * (_HIGH + 8), place * (_HIGH + 8) + 16
    room = _WIDE - _NAME - 120
    low, high = share.interval or (0.0, 0.0)
    wide = (share.value or 0.0) * room
    return (
        f'<text x="0" y="{middle}" font-size="14">{_text(name)}</text>'
        f'<rect x="{_NAME}" y="{top}" width="{wide:.1f}" height="{_HIGH}" fill="#2f6fde"/>'
        f'<line x1="{_NAME + low * room:.1f}" x2="{_NAME + high * room:.1f}" y1="{top + 11}" y2="{top + 11}" '
        f'stroke="currentColor" stroke-width="2"/>'
        f'<text x="{_NAME + room + 8}" y="{middle}" font-size="14">{share}</text>'
    )


def _text(text: str) -> str:
    return escape("".join(character if character.isprintable() else "\ufffd" for character in text))


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
    """Fit the weights of `weighted`, and test them on messages they were not fitted on.

    A label is {"room_id", "message_id", "relevant": [ids]} or {"room_id", "message_id", "thread": name}.
    """
    rows = None if labels is None else list(_labels(labels))

    async def work(lore: Lore) -> TuningReport:
        rooms = None if room is None else [await lore.rooms.named(one, viewer=None) for one in room]
        return await lore.tuning.run(rows, rooms=rooms, folds=folds, apply=apply)

    report = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(report))
    else:
        _tell_tuned(report, applied=apply)


def _labels(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("labels_unreadable", path=path, error=error) from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _label(line, number)


def _label(line: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InvalidInput("label_line_not_json", number=number, error=error) from error
    if not isinstance(row, dict):
        raise InvalidInput("label_line_not_object", number=number)
    return row


def _tell_tuned(report: TuningReport, *, applied: bool) -> None:
    names = ("precision", "recall", "F1", "chosen", "worth")
    shape = show.table("held-out targets", *names, right=names)
    lines = [_quality(say("before"), report.before), _quality(say("after"), report.after)]
    show.console().print(show.rows(shape, lines))
    typer.echo(say("{targets} targets, {folds} folds", targets=report.targets, folds=report.folds))
    if not report.improved:
        typer.echo(say("No better weights were found: the present ones stay."))
        return
    typer.echo(say("The rooms have them now:" if applied else "To use them everywhere, put this into roomlore.yaml:"))
    typer.echo("memory:")
    for signal, weight in asdict(report.weights).items():
        typer.echo(f"  {signal}_weight: {weight:.4f}")
    typer.echo(f"  relevance_threshold: {report.threshold:g}")


def _quality(label: str, quality: Quality) -> list[str]:
    shares = (quality.precision, quality.recall, quality.f1)
    return [label, *(f"{share:.3f}" for share in shares), f"{quality.selected:.1f}", f"{quality.worth:.3f}"]


usage_app = App(
    cls=Group,
    no_args_is_help=True,
    help="The contexts that were used: list them, export them for training, compare the arms of an experiment.",
)


async def _listed(_: Lore, page: verbs.UsagePage, __: Call) -> None:
    numbers = ("messages", "tokens", "score", "feedback")
    shape = show.table("context", "built", "room", "for", "strategy", "arm", *numbers, right=numbers)
    show.console().print(show.rows(shape, map(_record_line, page.records)))
    if page.next:
        typer.echo(say("more: {option}", option=f"--after {show.inert(page.next)}"), err=True)


def _record_line(record: ContextUsageRecord) -> list[str]:
    return [
        show.inert(record.context_id, 40),
        show.clock(record.created_at),
        show.inert(record.room_id, 40),
        show.inert(record.trigger_message_id, 40),
        record.strategy + (say(" (degraded)") if record.degraded else ""),
        show.inert(record.arm or "", 40),
        str(len(record.context_message_ids)),
        str(record.tokens),
        _number(record.mean_score),
        _number(record.success_indicator),
    ]


async def _exported(_: Lore, rows: AsyncIterator[Mapping[str, Any]], call: Call) -> None:
    count = 0
    with sink_of(call.own["output"]) as sink:
        async for row in rows:
            sink.write(json_line(row))
            count += 1
    typer.echo(say("wrote {contexts}", contexts=show.counted(count, "context")), err=True)


async def _reported(_: Lore, report: UsageReport, __: Call) -> None:
    numbers = ("contexts", "rooms", "tokens", "saved", "score", "ms", "degraded", "answered", "judged", "feedback")
    shape = show.table("arm", *numbers, right=numbers)
    show.console().print(show.rows(shape, map(_arm, report.arms)))


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


_OUTPUT = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="A file, which appears only once it is whole; by default standard output."),
]
usage_app.command("list")(command(verbs.LIST_USAGE, _listed, in_json=lambda page, _: page.records))
usage_app.command("report")(command(verbs.REPORT_USAGE, _reported))
usage_app.command("export")(command(verbs.EXPORT_USAGE, _exported, also={"output": (_OUTPUT, None)}, without=("json",)))
