"""`roomlore rooms`, `threads`, `settings`, `context`, `search` and `digest`: a room, and what matters in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer
import yaml
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from roomlore.core.errors import InvalidInput
from roomlore.core.mentions import with_names
from roomlore.core.models import LinkKind, Role
from roomlore.services.contexts import STRATEGIES
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.derived import Call, command
from roomlore.surfaces.cli.frame import AsJson, Frame, ShownTo, frame_of, viewer_of
from roomlore.surfaces.cli.language import causes, say, translated
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.surfaces.people_named import context_with_people_named, with_people_named
from roomlore.verbs import rooms as verbs

if TYPE_CHECKING:
    from roomlore.core.context import Context
    from roomlore.core.digest.digest import Digest, DigestEntry, DigestLine
    from roomlore.core.models import Entry, Heading, Link, Room, Thread
    from roomlore.settings import Row, Settings
    from roomlore.wiring import Lore


_PAGE = 500
Ids = Annotated[bool, typer.Option("--ids", help="With whole ids, each message on a line of its own, to copy them.")]


def rooms(
    ctx: typer.Context,
    part: Annotated[
        str | None,
        typer.Argument(metavar="PART", help="Only rooms whose id or name has this in it, in any case; else all."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the rooms, or those whose id or name has a part."""

    async def work(lore: Lore) -> tuple[list[Room], str]:
        every = await _all_rooms(lore)
        fit = [room for room in every if part is None or _has(room, part)]
        return fit, "" if fit or part is None else await lore.rooms.meant(part, viewer=None)

    page_rooms, meant = frame_of(ctx).run(work)
    if meant:
        typer.echo(show.inert(translated(meant), 1_000), err=True)
    if as_json:
        show.as_json(to_jsonable(page_rooms))
        return
    if part is not None and not page_rooms:
        typer.echo(say("No room has {part} in its id or name.", part=show.inert(part, 80)))
        return
    named = any(room.name for room in page_rooms)
    columns = ("room", *(["name"] if named else []), "messages", "last message", "own settings")
    shape = show.table(*columns, right=("messages",), fixed=("last message",))
    show.console().print(show.rows(shape, (_room_line(room, named=named) for room in page_rooms)))


async def _all_rooms(lore: Lore) -> list[Room]:
    rooms_read: list[Room] = []
    while page := await lore.rooms.page(after=rooms_read[-1].room_id if rooms_read else None, limit=_PAGE, viewer=None):
        rooms_read += page
    return rooms_read


def _has(room: Room, part: str) -> bool:
    return any(part.casefold() in text.casefold() for text in (room.room_id, room.name))


def _room_line(room: Room, *, named: bool) -> list[str]:
    own = ", ".join(f"{name}={value}" for name, value in room.settings.items())
    called = [show.inert(room.name, 40)] if named else []
    return [show.inert(room.room_id), *called, str(room.messages), show.clock(room.last_sent_at), own]


async def _renamed(_: Lore, room: Room, __: Call) -> None:
    typer.echo(f"{show.inert(room.room_id)}: {show.inert(room.name) or say('(no name)')}")


rename = command(verbs.RENAME, _renamed, without=("json",))


def threads(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id or name.")],
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            help="Show the thread that this message is in: its id, or the beginning or end of that.",
            metavar="MESSAGE",
        ),
    ] = None,
    ids: Ids = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of threads, or of messages of the thread.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List a room's latest threads, or show one."""
    if thread is None:
        _list_threads(frame_of(ctx), room, limit, ids=ids, as_json=as_json)
    else:
        _show_thread(frame_of(ctx), room, thread, limit, ids=ids, as_json=as_json)


def _list_threads(frame: Frame, room: str, limit: int, *, ids: bool, as_json: bool) -> None:
    async def work(lore: Lore) -> tuple[list[tuple[int, Thread]], dict[str, str]]:
        here = await lore.rooms.named(room, viewer=None)
        shown_threads: list[tuple[int, Thread]] = []
        after = 0
        while page := await lore.rooms.threads(here, after=after, limit=_PAGE):
            after, notices = page[-1][0], await _notices(lore, here, page)
            shown_threads = [*shown_threads, *(pair for pair in page if pair[1].thread_id not in notices)][-limit:]
        async with lore.storage.reading(lore.tenant) as unit:
            return shown_threads, await unit.rooms.participants(room_id=here)

    shown_threads, names = frame.run(work)
    if as_json:
        show.as_json([{"arrival": arrival, **to_jsonable(thread)} for arrival, thread in shown_threads])
        return
    out = show.console()
    if ids:
        for _, thread in shown_threads:
            title = _heading(thread, names)
            out.print(Text.assemble((show.inert(thread.thread_id, show.WHOLE_ID), "dim"), f"  {title}"), soft_wrap=True)
        return
    shape = show.one_line(title=None, count=None, who=22, last=None, first=None)
    heads = (say("title"), say("count"), say("who"), say("last"), say("first"))
    shape.add_row(*(Text(head, "bold") for head in heads))
    for _, thread in shown_threads:
        who = ", ".join(show.inert(names.get(sender) or sender, 24) for sender in thread.senders)
        title = _heading(thread, names)
        shape.add_row(
            title, str(thread.messages), who, show.clock(thread.last_sent_at)[5:], show.inert(thread.thread_id)
        )
    out.print(shape)


def _heading(thread: Thread, names: Mapping[str, str]) -> str:
    return show.inert(thread.title or with_names(thread.first_text, names, ()), 160) or say("(no text)")


async def _notices(lore: Lore, room: str, page: Sequence[tuple[int, Thread]]) -> set[str]:
    """Return those of the threads that are only a notice of the platform, such as that somebody joined."""
    alone = [one.thread_id for _, one in page if one.messages == 1]
    async with lore.storage.reading(lore.tenant) as unit:
        entries = await unit.messages.by_id(room_id=room, message_ids=alone) if alone else []
    return {entry.message.id for entry in entries if entry.message.role is Role.SYSTEM}


def _show_thread(frame: Frame, room: str, message: str, limit: int, *, ids: bool, as_json: bool) -> None:
    async def work(lore: Lore) -> list[Entry]:
        here = await lore.rooms.named(room, viewer=None)
        thread_entries = await lore.rooms.thread(here, await lore.messages.named(here, message), limit=limit)
        if as_json:
            return thread_entries
        named = await with_people_named(lore, (entry.message for entry in thread_entries))
        return [replace(thread_entry, message=its) for thread_entry, its in zip(thread_entries, named, strict=True)]

    entries = frame.run(work)
    if as_json:
        show.as_json(to_jsonable(entries))
        return
    out = show.console()
    if ids:
        show.ids((entry.message for entry in entries), out)
        return
    shape = show.one_line(sent=None, who=10, said=None, answers=10, known=None, fill="said")
    for entry in entries:
        link, message_ = entry.link, entry.message
        place = say("begins") if link.kind == "new" or link.parent is None else say(str(link.kind))
        share = f"{link.parent_probability:.2f}" if link.kind == "guess" else place
        shape.add_row(
            Text(show.clock(message_.at)[5:], "dim"),
            Text(show.name(message_), "bold"),
            show.text_of(message_, 400),
            Text(share, "dim"),
            Text(show.inert(message_.id), "dim"),
        )
    out.print(shape)


def settings(
    ctx: typer.Context,
    room: Annotated[str | None, typer.Argument(help="Show or change the settings of this room.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Give the room its own value; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", help="Take the room's own value back; may be repeated.", metavar="NAME"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every setting with its value and source, or a room's, or change a room's."""
    wanted = {**_read_changes(changes or ()), **dict.fromkeys(unset or ())}
    if room is None and wanted:
        raise InvalidInput("room_to_set_missing")
    frame = frame_of(ctx)
    from roomlore.settings import explain

    rows = explain(frame.settings()) if room is None else _room_settings(frame, room, wanted)
    if as_json:
        show.as_json([row._asdict() for row in rows])
        return
    shape = show.table("section", "setting", "value", "source", "meaning", fixed=("section", "setting"))
    translated_rows = (row._replace(description=translated(row.description)) for row in rows)
    show.console().print(show.rows(shape, translated_rows))


def _room_settings(frame: Frame, room: str, changes: dict[str, Any]) -> list[Row]:
    from roomlore.settings import row

    async def work(lore: Lore) -> list[Row]:
        here = await lore.rooms.named(room, viewer=None)
        if changes:
            await lore.rooms.configure(here, changes)
        in_force = await lore.rooms.settings(here)
        return [row(name, value, _source(lore.settings, name, source)) for name, (value, source) in in_force.items()]

    return frame.run(work)


def _source(settings: Settings, name: str, source: str) -> str:
    return source if source == "room" else settings.source(name)


def _read_changes(given: Sequence[str]) -> dict[str, Any]:
    return dict(map(_read_change, given))


def _read_change(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not value:
        raise InvalidInput("setting_change_invalid", value=repr(text))
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise InvalidInput("setting_value_unreadable", name=name, value=repr(value)) from error


_COLUMNS = (
    "→      the message that this one answers, as far as roomlore can tell",
    "score  how likely it matters, in [0, 1]; under `weighted` the weighted sum of the five signals",
    "reply  nearness along the reply chain          user   the same speaker, or one just spoken with",
    "time   halves every half-life                  @      mentions",
    "words  rarity of the words both use",
)
_NO_ROOM = (
    "→  the message that this one answers, as far as roomlore can tell",
    "The number is how likely it matters; under `weighted` the sum of the signals.",
    "A terminal of {columns} columns shows the five signals too.",
)
_NAMES = 11
"""Columns of the names of what is known of a message."""


def context(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id or name.")],
    message: Annotated[
        str | None,
        typer.Argument(
            help="The message's id, or the beginning or end of that; by default the newest that a user wrote."
        ),
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help=f"{', '.join(f'`{name}`' for name in STRATEGIES)}; by default the room's.")
    ] = None,
    most: Annotated[int | None, typer.Option("--max", help="Maximum number of messages.")] = None,
    least: Annotated[int | None, typer.Option("--min", help="Add the newest messages up to this number.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Maximum number of tokens of the context as text.")] = None,
    as_prompt: Annotated[
        bool, typer.Option("--prompt", help="As one text for a model, the message itself at the end.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with everything the library gives.")] = False,
    ids: Ids = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what the columns mean and how the message was read.")
    ] = False,
    viewer: ShownTo = None,
) -> None:
    """Show the messages that matter for a message, each with its reason."""

    async def work(lore: Lore) -> tuple[Context, Entry, ZoneInfo, Heading | None]:
        whom = await viewer_of(lore, viewer)
        here = await lore.rooms.named(room, viewer=whom)
        known = None if message is None else await lore.messages.named(here, message)
        built = await lore.context.build(
            here,
            known,
            strategy=strategy,
            max_messages=most,
            min_messages=least,
            max_tokens=max_tokens,
            viewer=whom,
        )
        made = await lore.rooms.headings(here, [built.message_id], viewer=whom)
        trigger = await lore.messages.get(here, built.message_id, viewer=whom)
        if not (as_prompt or as_json):
            [message_] = await with_people_named(lore, [trigger.message])
            built, trigger = await context_with_people_named(lore, built), replace(trigger, message=message_)
        return built, trigger, lore.settings.search.zone, made.get(built.message_id)

    if as_prompt and (as_json or explain):
        raise typer.BadParameter("--prompt gives one text; leave out --json and --explain.")
    built, trigger, zone, heading = frame_of(ctx).run(work)
    if as_prompt:
        typer.echo(show.inert_piece(built.to_prompt(query=trigger.message, zone=zone)))
        return
    if as_json:
        show.as_json(to_jsonable(built))
        return
    out = show.console()
    show.context(built, trigger.message, out, signals=explain)
    if ids:
        show.ids((in_context.message for in_context in built.messages), out)
    if heading and heading.title:
        out.print(Text(f"  {show.heading(heading)}", "dim"))
    if explain:
        _explain(trigger, built, out)


def _explain(trigger: Entry, built: Context, out: Console) -> None:
    features, link = trigger.features, trigger.link
    out.print()
    for line in _COLUMNS if out.width >= show.WIDE else _NO_ROOM:
        out.print(say(line, columns=show.WIDE))
    out.print()
    facts = {
        "type": say(str(features.message_type)),
        "keywords": show.inert(", ".join(features.keywords)) or "–",
        "mentions": show.inert(", ".join(features.mentions)) or "–",
        "answers": _answered(link, built),
        "new topic": say("probability {share:.2f}", share=link.new_probability),
    }
    for name, value in facts.items():
        out.print(f"{show.padded(say(name), _NAMES)}{value}")


def _answered(link: Link, built: Context) -> str:
    """Say what a message answers; of one that starts something new, how likely it is that it answers one after all."""
    if link.parent is None:
        return say("no earlier message")
    if link.kind is LinkKind.NEW:
        return say(
            "no earlier message; for the likeliest one the probability is {share:.2f}", share=link.parent_probability
        )
    return say(
        "{message} ({kind}, probability {share:.2f})",
        message=show.inert(built.parent or "–"),
        kind=say(str(link.kind)),
        share=link.parent_probability,
    )


_INDENT = 4
_GROUPS = {
    "waits": "Waits for you",
    "mentions": "Mentions you",
    "question": "Open questions",
    "decision": "Decided",
    "talk": "Also said",
}


def _check(given: Mapping[str, Any]) -> None:
    if given["as_prompt"] and given["as_json"]:
        raise typer.BadParameter("--prompt gives one text; leave out --json.")
    if given["mark_read"] and given["for_"] is None:
        raise typer.BadParameter("--mark-read needs --for, the person who has read it.")


async def _digested(lore: Lore, made: Digest, call: Call) -> None:
    zone = lore.settings.search.zone
    if call.own["as_prompt"]:
        typer.echo(show.inert_piece(made.to_prompt(zone=zone)))
    else:
        _print(made, call.gives.get("since"), zone)


async def _marked_read(lore: Lore, made: Digest, call: Call) -> None:
    if call.own["mark_read"] and made.for_user is not None:
        await verbs.READ(lore, None, room=call.gives["room"], user_id=made.for_user)


_MARK_READ = typer.Option("--mark-read", help="Mark what is there as read by the person of --for.")
digest = command(
    verbs.DIGEST,
    _digested,
    after=_marked_read,
    names={"for_user": "for"},
    for_viewer=True,
    also={
        "mark_read": (Annotated[bool, _MARK_READ], False),
        "as_prompt": (Annotated[bool, typer.Option("--prompt", help="As one text for a model.")], False),
    },
    checks=_check,
)


def _print(made: Digest, begin: datetime | None, zone: ZoneInfo) -> None:
    out = show.console()
    if not made.entries:
        out.print(_nothing(made, begin, zone))
        return
    for why, parts in made.sections():
        out.print(Text(say(_GROUPS[why]), "bold"))
        for entry, lines in parts:
            for indent, text in _talk(entry, lines) if why == "talk" else map(_point, lines):
                out.print(Padding(text, (0, 0, 0, indent), expand=False))
    out.print(Text(_digest_footer(made), "dim"))
    if made.degraded:
        cause = causes(show.inert(made.degraded, 240))
        out.print(Text(say("Without a model: {why}", why=cause), "yellow"))


def _nothing(made: Digest, begin: datetime | None, zone: ZoneInfo) -> str:
    """Say that nothing is new, and since when."""
    if begin is not None:
        return say("Nothing new since {time} ({zone}).", time=show.clock(begin, zone), zone=zone.key)
    if made.for_user is not None:
        person = show.inert(made.for_user, 60)
        if not made.after:  # who never wrote or read there, or sees nothing of it
            return say("Nothing new for {person}.", person=person)
        return say("Nothing new since {person} last wrote or marked messages as read.", person=person)
    return say("Nothing new in the last day of the room.")


def _point(line: DigestLine) -> tuple[int, Text]:
    """Return what waits, was decided or is open, with who said it and when."""
    return 2, Text.assemble(f"{show.inert(line.name, 24)}: {show.inert(line.text)}  ", (_cited(line, when=True), "dim"))


def _talk(entry: DigestEntry, lines: Sequence[DigestLine]) -> Iterator[tuple[int, Text]]:
    """Yield the heading of a thread, and what else was said in it. A title that is shown already is left out."""
    people = show.inert(", ".join(entry.people), 60)
    about = f"{show.clock(entry.first_at)} · {people} · {show.counted(entry.messages, 'message')}"
    title = "" if entry.titled_by else f"{show.inert(entry.title, 120)}  "
    yield 2, Text.assemble((title, "green"), (about, "dim"))
    for line in lines:
        yield (
            _INDENT,
            Text.assemble(f"{show.inert(line.name, 24)}: {show.inert(line.text)}  ", (_cited(line, when=False), "dim")),
        )


def _cited(line: DigestLine, *, when: bool) -> str:
    cited = show.inert(", ".join(line.cited), 120)
    return f"{show.clock(line.sent_at)} [{cited}]" if when else f"[{cited}]"


def _digest_footer(made: Digest) -> str:
    shown = say("{threads} shown", threads=show.counted(len(made.entries), "thread"))
    left = say(", {count} left out; a larger --max-tokens shows more", count=made.left) if made.left else ""
    by = [say("by {model}", model=show.inert(made.model, 60))] if made.model else []
    new = show.counted(made.messages, "new message")
    return " · ".join([new, f"{shown}{left}", say("{count} tokens", count=made.tokens), *by])
