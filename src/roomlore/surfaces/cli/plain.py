"""`roomlore add`, `recall` and `reply`: the plain verbs."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from roomlore.core.errors import NotFound, RoomloreError
from roomlore.surfaces.cli import memory, show, show_memories
from roomlore.surfaces.cli.derived import Call, command, help_of
from roomlore.surfaces.cli.frame import AsJson, ShownTo, frame_of, scope_meant, scope_named, viewer_of
from roomlore.surfaces.cli.language import causes, say
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.verbs import plain as verbs
from roomlore.verbs.recall import RECALL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from roomlore.core.models import AddReport
    from roomlore.core.recall.recollection import Recollection
    from roomlore.core.replies.reply import Reply
    from roomlore.wiring import Lore


async def _added(lore: Lore, report: AddReport, call: Call) -> None:
    here = call.gives["room"]
    for name in report.added:
        where = say("Added to {room} as {message}.", room=show.inert(here, 80), message=show_memories.short(name))
        typed = show.inert(call.frame.line("context", call.asked["room"]), 400)
        try_it = say("`{command}` shows what matters for it.", command=typed)
        typer.echo(f"{where} {try_it}")
    for name in report.duplicates:
        typer.echo(
            say("In {room} already, as {message}.", room=show.inert(here, 80), message=show_memories.short(name))
        )


async def _replied(_: Lore, reply: Reply, __: Call) -> None:
    typer.echo(show.inert_piece(reply.text))


_SPOKEN = {"sender_id": "as", "sender_name": "name", "message_id": "id", "agent_id": "agent", "model_id": "model"}
add = command(verbs.ADD, _added, names=_SPOKEN, spread=("text",), piped=("text",), creates=True)
reply = command(verbs.REPLY, _replied, names=_SPOKEN, spread=("text",), piped=("text",), creates=True)


async def _check_known(lore: Lore, scope: str) -> None:
    """Raise `NotFound` that names who may be meant if nothing is known of a room or a person."""
    try:
        await lore.rooms.check_there(scope)
    except NotFound as error:
        if meant := await scope_meant(lore, scope):
            raise NotFound(meant) from error


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the scopes before a question, and its words: what begins as a scope does, and what stands before a
    question in quotes."""
    count = len(words) - 1 if len(words) > 1 and len(words[-1].split()) > 1 else 0
    while count < len(words) and re.match(r"(group|user|agent|room):\S", words[count]):
        count += 1
    return list(words[:count]), list(words[count:])


async def _note_name(lore: Lore, words: Sequence[str]) -> None:
    """Tell on standard error if the first word of a question is the name of a room or a person."""
    from roomlore.wiring.naming import scope_about

    with suppress(RoomloreError):
        if words and await scope_about(lore, words[0], viewer=None):
            told = "“{word}” is taken as a word of the question; `--for {word}` recalls for it too."
            typer.echo(say(told, word=show.inert(words[0], 80)), err=True)


def recall(
    ctx: typer.Context,
    whose: Annotated[
        str | None,
        typer.Argument(
            metavar="SCOPE",
            help="A room or a person by id or name, or group:ROOM, user:NAME or agent:ID; left out, they are listed.",
        ),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="A question or a few words. More scopes may stand before it."),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--for", metavar="SCOPE", help="One more room, person or agent; may be repeated."),
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help=help_of(RECALL["max_tokens"]))] = None,
    ended: Annotated[bool, typer.Option("--ended", help=help_of(RECALL["include_ended"]))] = False,
    viewer: ShownTo = None,
    as_json: AsJson = False,
) -> None:
    """Show what is remembered of a room, a person or an agent. With a question it shows what matters for that."""
    before, words = _split(question or ())
    asked = [*([whose] if whose else []), *before, *(also or ())]
    if not asked:
        if viewer:
            raise typer.BadParameter("Give SCOPE, or leave out --viewer.")
        memory.list_scopes(ctx, as_json)
        return

    async def work(lore: Lore) -> tuple[Recollection, datetime, ZoneInfo]:
        scopes = [await scope_named(lore, scope) for scope in asked]
        said = [{"role": "user", "content": " ".join(words)}] if words else []
        whom = await viewer_of(lore, viewer)
        how = {"max_tokens": max_tokens, "include_ended": ended}
        known = await RECALL(lore, whom, scopes=scopes, messages=said, **how)
        await _note_name(lore, words)
        for scope in () if whom else scopes:
            await _check_known(lore, scope)
        return known, lore.now(), lore.settings.search.zone

    recollection, now, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(recollection))
        return
    out = show.console()
    show_memories.recalled(recollection.facts, out, now, zone)
    if recollection.degraded:
        out.print(say("degraded: {why}", why=causes(show.inert(recollection.degraded))))
    counts = {"count": len(recollection.facts), "total": recollection.considered, "tokens": recollection.tokens}
    out.print(say("{count} of {total} memories, {tokens} tokens", **counts), style="dim")
