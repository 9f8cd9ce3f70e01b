"""`roomlore messages`: delete a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from roomlore.core.models import StoredMessage
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Group, frame_of
from roomlore.surfaces.cli.language import say

if TYPE_CHECKING:
    from roomlore.wiring import Lore

app = typer.Typer(cls=Group, no_args_is_help=True, help="Delete messages.")


@app.command()
def delete(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id or name.")],
    message: Annotated[str, typer.Argument(help=show.MESSAGE_HELP)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Delete a message, after asking. Its text is gone for good, and its id stays taken."""

    async def find(lore: Lore) -> StoredMessage:
        here = await lore.rooms.named(room)
        return (await lore.messages.get(here, await lore.messages.named(here, message))).message

    there = frame_of(ctx).run(find)
    if not yes:
        _confirm(there)
    frame_of(ctx).run(lambda lore: lore.messages.delete(there.room_id, there.id))
    if as_json:
        show.as_json({"room_id": there.room_id, "message_id": there.id})
    else:
        typer.echo(say("Deleted {message}", message=show.inert(there.id)))


def _confirm(message: StoredMessage) -> None:
    """Ask if a message is to be deleted, and end the program if it is not."""
    asked = say("Delete {text!r} of {sender}?", text=show.inert(message.text, 80), sender=show.name(message))
    typer.confirm(asked, abort=True, err=True)
