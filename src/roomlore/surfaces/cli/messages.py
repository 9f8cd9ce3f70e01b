"""`roomlore messages` and `links`: delete a message, correct what one answers, take that back, and the log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from roomlore.core.errors import Deleted
from roomlore.core.models import CorrectedEntry, Correction, CorrectionKind, Entry, StoredMessage
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import AsJson, Group, frame_of
from roomlore.surfaces.cli.language import App, say
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.surfaces.people_named import with_people_named

if TYPE_CHECKING:
    from roomlore.wiring import Lore

Room = Annotated[str, typer.Argument(help="The room's id or name.")]
Message = Annotated[str, typer.Argument(help=show.MESSAGE_HELP)]
_USUAL_CORRECTOR = "caller"

messages_app = App(cls=Group, no_args_is_help=True, help="Delete messages.")


@messages_app.command("delete")
def delete_message(
    ctx: typer.Context,
    room: Room,
    message: Message,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a message, after asking. Its text is gone for good, and its id stays taken."""

    async def find(lore: Lore) -> tuple[str, StoredMessage | None]:
        here = await lore.rooms.named(room, viewer=None)
        try:
            stored_message = (
                await lore.messages.get(here, await lore.messages.named(here, message), viewer=None)
            ).message
        except Deleted:
            return here, None
        return here, (await with_people_named(lore, [stored_message]))[0]

    here, there = frame_of(ctx).run(find)
    gone = message if there is None else there.id
    if there is not None:
        if not yes:
            _confirm_deletion(there)
        frame_of(ctx).run(lambda lore: lore.messages.delete(here, gone))
    if as_json:
        show.as_json({"room_id": here, "message_id": gone})
    elif there is None:
        typer.echo(say("Deleted already, {memory}", memory=show.inert(gone)))
    else:
        typer.echo(say("Deleted {message}", message=show.inert(gone)))


def _confirm_deletion(message: StoredMessage) -> None:
    """Ask if a message is to be deleted, and end the program if it is not."""
    question = say("Delete {text!r} of {sender}?", text=show.inert(message.text, 80), sender=show.name(message))
    typer.confirm(question, abort=True, err=True)


links_app = App(
    cls=Group, no_args_is_help=True, help="Correct what a message answers; threads and contexts follow at once."
)

CorrectedBy = Annotated[str, typer.Option(help="The name of who corrects it, for the log.")]


@links_app.command("correct")
def correct_link(
    ctx: typer.Context,
    room: Room,
    message: Message,
    answers: Annotated[
        str | None,
        typer.Option(
            help="The earlier message that it answers: its id, or the beginning or end of that.", metavar="MESSAGE"
        ),
    ] = None,
    nothing: Annotated[bool, typer.Option("--nothing", help="It answers nothing and starts something new.")] = False,
    by: CorrectedBy = _USUAL_CORRECTOR,
    as_json: AsJson = False,
) -> None:
    """Say which earlier message a message answers, or that it answers nothing."""
    if nothing == (answers is not None):
        raise typer.BadParameter("Give --answers MESSAGE or --nothing.")

    async def work(lore: Lore) -> tuple[CorrectedEntry, StoredMessage | None]:
        here = await lore.rooms.named(room, viewer=None)
        known = await lore.messages.named(here, message)
        answered = None if answers is None else await lore.messages.named(here, answers)
        entry = await lore.links.catch_up(await lore.links.correct(here, known, answers=answered, by=by))
        there = None if answered is None else (await lore.messages.get(here, answered, viewer=None)).message
        return (entry, there) if as_json else await _with_people_named(lore, entry, there)

    entry, answered = frame_of(ctx).run(work)
    _tell_link(entry, answered, as_json=as_json)


@links_app.command("undo")
def undo_correction(
    ctx: typer.Context, room: Room, message: Message, by: CorrectedBy = _USUAL_CORRECTOR, as_json: AsJson = False
) -> None:
    """Take the correction of a message back."""

    async def work(lore: Lore) -> tuple[CorrectedEntry, StoredMessage | None]:
        here = await lore.rooms.named(room, viewer=None)
        known = await lore.messages.named(here, message)
        entry = await lore.links.catch_up(await lore.links.undo(here, known, by=by))
        there = await _answered_message(lore, entry)
        return (entry, there) if as_json else await _with_people_named(lore, entry, there)

    entry, answered = frame_of(ctx).run(work)
    _tell_link(entry, answered, as_json=as_json)


async def _with_people_named(
    lore: Lore, entry: CorrectedEntry, answered: StoredMessage | None
) -> tuple[CorrectedEntry, StoredMessage | None]:
    shown, *there = await with_people_named(lore, [entry.message, *([answered] if answered else [])])
    return replace(entry, message=shown), there[0] if there else None


async def _answered_message(lore: Lore, entry: Entry) -> StoredMessage | None:
    link = entry.link
    if link.parent is None or link.kind == "new":
        return None
    page = await lore.messages.page(entry.message.room_id, after=link.parent - 1, limit=1, viewer=None)
    return page[0] if page and page[0].arrival == link.parent else None


def _tell_link(entry: CorrectedEntry, answered: StoredMessage | None, *, as_json: bool) -> None:
    if as_json:
        show.as_json(to_jsonable(entry))
        return
    typer.echo(f"{show.name(entry.message)}: {show.inert(entry.message.text, 160)}")
    if answered is None:
        typer.echo(f"  {say('answers nothing before it')}")
    else:
        share = entry.link.parent_probability
        likely = "" if entry.link.is_certain else say(" ({share:.2f} likely)", share=share)
        answer = f"{show.name(answered)}: {show.inert(answered.text, 160)}"
        typer.echo(f"  {say('answers{likely} {said}', likely=likely, said=answer)}")
    if entry.relinked or entry.left:
        typer.echo(f"  {say('other messages with a new link or thread: {count}', count=entry.relinked)}")
    if entry.left:
        waiting = say("still to move to another thread, by `roomlore serve` or `worker`: {count}", count=entry.left)
        typer.echo(f"  {waiting}")


@links_app.command("log")
def list_corrections(
    ctx: typer.Context,
    room: Room,
    before: Annotated[int | None, typer.Option(min=1, help="Only entries with a number below.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the corrections of a room, the newest first."""

    async def work(lore: Lore) -> list[Correction]:
        return await lore.links.corrections(await lore.rooms.named(room, viewer=None), before=before, limit=limit)

    corrections = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(corrections))
        return
    if not corrections:
        none = say("No corrections in {room}.", room=show.inert(room))
        typer.echo(none if before is None else say("Nothing found."))
        return
    shape = show.table("number", "when", "message", "said", "by", right=("number",), fixed=("when",))
    show.console().print(show.rows(shape, map(_correction_line, corrections)))
    if len(corrections) == limit:
        typer.echo(say("more: {option}", option=f"--before {corrections[-1].number}"), err=True)


def _correction_line(correction: Correction) -> list[str]:
    effect = {
        CorrectionKind.ANSWERS: say(
            "answers {message}", message=show.inert(correction.answers or say("a deleted message"), 80)
        ),
        CorrectionKind.NOTHING: say("answers nothing"),
        CorrectionKind.UNDONE: say("taken back"),
    }[correction.kind]
    effect += "" if correction.standing or correction.kind is CorrectionKind.UNDONE else say(" (no longer)")
    return [
        str(correction.number),
        show.clock(correction.at),
        show.inert(correction.message_id, 80),
        effect,
        show.inert(correction.by, 60),
    ]
