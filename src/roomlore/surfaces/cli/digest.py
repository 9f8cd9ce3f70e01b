"""`roomlore digest`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer
from rich.padding import Padding
from rich.text import Text

from roomlore.core.errors import InvalidInput
from roomlore.core.records import parse_time
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain

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
    room: Annotated[str, typer.Argument(help="The room's id.")],
    reader: Annotated[
        str | None,
        typer.Option(
            "--for", help="Whose digest: begins after what this sender id wrote or marked as read.", metavar="USER"
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="From this time on: a day or a time, such as `2024-05-01` or `2024-05-01T12:30Z`."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of the digest as text.")] = 800,
    viewer: Annotated[
        str | None, typer.Option(help="Show only what `room:<id>` or `user:<id>` may see; by default everything.")
    ] = None,
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
        begin = None if since is None else parse_time(since, zone=zone)
        if since is not None and begin is None:
            raise InvalidInput(f"--since is {since!r}; write a day or a time, such as 2024-05-01 or 2024-05-01T12:30Z.")
        made = await lore.digest(room, since=begin, for_user=reader, max_tokens=max_tokens, viewer=viewer)
        if mark_read and reader is not None:
            await lore.rooms.mark_read(room, reader)
        return made, zone

    made, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(made))
    elif as_prompt:
        typer.echo(show.inert_piece(made.to_prompt(zone=zone)))
    else:
        _print(made, zone)


def _print(made: Digest, zone: ZoneInfo) -> None:
    out = show.console()
    if not made.entries:
        out.print("Nothing new.")
        return
    why = None
    for entry in made.entries:
        if entry.why != why:
            why = entry.why
            out.print(Text(_GROUPS[why], "bold"))
        for number, line in enumerate(_lines(entry, zone)):
            out.print(Padding(line, (0, 0, 0, _INDENT if number else 2), expand=False))
    out.print(Text(_footer(made), "dim"))


def _lines(entry: DigestEntry, zone: ZoneInfo) -> Iterator[Text]:
    """Yield the heading of an entry, and what it cites."""
    people = show.inert(", ".join(entry.people), 60)
    state = "" if entry.state == "closed" else f" · {entry.state}"
    count = "1 message" if entry.messages == 1 else f"{entry.messages} messages"
    when = f"{show.clock(entry.first_at.astimezone(zone))} · {people} · {count}{state}"
    yield Text.assemble((show.inert(entry.title, 120), "green"), (f"  {when}", "dim"))
    for line in entry.lines:
        cited = show.inert(", ".join(line.cited), 120)
        yield Text.assemble(f"{show.inert(line.name, 24)}: {show.inert(line.text)}  ", (f"[{cited}]", "dim"))


def _footer(made: Digest) -> str:
    shown = sum(entry.messages for entry in made.entries)
    left = f"; {made.left} more conversations are left out" if made.left else ""
    return f"{made.messages} new messages, {shown} of them in what is shown{left} · {made.tokens} tokens"
