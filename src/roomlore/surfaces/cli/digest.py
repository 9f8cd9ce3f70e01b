"""`roomlore digest`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer
from rich.padding import Padding
from rich.text import Text

from roomlore.core.dates import moment
from roomlore.core.evolution.requests import Mode
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of, viewer_of
from roomlore.surfaces.cli.language import causes, say
from roomlore.surfaces.jsonable import to_jsonable

if TYPE_CHECKING:
    from roomlore.core.digest.digest import Digest, DigestEntry
    from roomlore.wiring import Lore

_GROUPS = {
    "waits": "Waits for you",
    "mentions": "Mentions you",
    "question": "Open questions",
    "decision": "Decided",
    "talk": "Also said",
}
_INDENT = 4


def digest(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id or name.")],
    reader: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="Whose digest, by sender id or by name: it begins after what they wrote or marked as read.",
            metavar="USER",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="From this time on: `2024-05-01`, `2024-05-01T12:30`, `yesterday`, `'3 days ago'`, `昨天`."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of the digest as text.")] = 800,
    viewer: Annotated[
        str | None,
        typer.Option(help="Show only what `room:<id>` (or by name) or `user:<id>` may see; by default everything."),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="`offline`: the messages' own sentences; `llm`: a model writes it; `auto`: a model, if one is set up."
        ),
    ] = "auto",
    mark_read: Annotated[
        bool, typer.Option("--mark-read", help="Mark what is there as read by the person of --for.")
    ] = False,
    as_prompt: Annotated[bool, typer.Option("--prompt", help="As one text for a model.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show what happened in a room, thread by thread: what waits for the reader, open questions, decisions, and the
    rest."""
    if as_prompt and as_json:
        raise typer.BadParameter("--prompt gives one text; leave out --json.")
    if mark_read and reader is None:
        raise typer.BadParameter("--mark-read needs --for, the person who has read it.")

    async def work(lore: Lore) -> tuple[Digest, ZoneInfo]:
        zone = lore.settings.search.zone
        begin = None if since is None else moment("--since", since, now=lore.now(), zone=zone, edge="start")
        here = await lore.rooms.named(room)
        whom = await viewer_of(lore, viewer)
        made = await lore.digest(here, since=begin, for_user=reader, max_tokens=max_tokens, viewer=whom, mode=mode)
        if mark_read and made.for_user is not None:
            await lore.rooms.mark_read(here, made.for_user)
        return made, zone

    made, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(made))
    elif as_prompt:
        typer.echo(show.inert_piece(made.to_prompt(zone=zone)))
    else:
        _print(made, zone)


def _print(made: Digest, zone: ZoneInfo) -> None:
    out = show.console()
    if not made.entries:
        out.print(say("Nothing new."))
        return
    why = None
    for entry in made.entries:
        if entry.why != why:
            why = entry.why
            out.print(Text(say(_GROUPS[why]), "bold"))
        for number, line in enumerate(_lines(entry, zone)):
            out.print(Padding(line, (0, 0, 0, _INDENT if number else 2), expand=False))
    out.print(Text(_footer(made), "dim"))
    if made.degraded:
        cause = causes(show.inert(made.degraded, 240))
        out.print(Text(say("Without a model: {why}", why=cause), "yellow"))


def _lines(entry: DigestEntry, zone: ZoneInfo) -> Iterator[Text]:
    """Yield the heading of an entry, and what it cites."""
    people = show.inert(", ".join(entry.people), 60)
    state = "" if entry.state == "closed" else f" · {say(entry.state)}"
    count = show.counted(entry.messages, "message")
    when = f"{show.clock(entry.first_at.astimezone(zone))} · {people} · {count}{state}"
    yield Text.assemble((show.inert(entry.title, 120), "green"), (f"  {when}", "dim"))
    for line in entry.lines:
        cited = show.inert(", ".join(line.cited), 120)
        mark = "! " if line.decides and entry.why != "decision" else ""
        yield Text.assemble(f"{mark}{show.inert(line.name, 24)}: {show.inert(line.text)}  ", (f"[{cited}]", "dim"))


def _footer(made: Digest) -> str:
    shown = say("{conversations} shown", conversations=show.counted(len(made.entries), "conversation"))
    left = say(", {count} left out; a larger --max-tokens shows more", count=made.left) if made.left else ""
    by = [say("by {model}", model=show.inert(made.model, 60))] if made.model else []
    new = show.counted(made.messages, "new message")
    return " · ".join([new, f"{shown}{left}", say("{count} tokens", count=made.tokens), *by])
