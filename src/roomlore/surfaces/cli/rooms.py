"""`roomlore rooms`, `threads` and `settings`."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
import yaml

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Entry, Room, Thread
from roomlore.settings import Row, Settings, explain, row
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import Frame, frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

_PAGE = 500


def rooms(ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the rooms."""
    found = frame_of(ctx).run(_all_rooms)
    if as_json:
        show.as_json(plain(found))
        return
    shape = show.table("room", "messages", "last message", "own settings", right=("messages",), fixed=("last message",))
    show.console().print(show.rows(shape, map(_room_line, found)))


async def _all_rooms(lore: Lore) -> list[Room]:
    found: list[Room] = []
    while page := await lore.rooms.page(after=found[-1].room_id if found else None, limit=_PAGE):
        found += page
    return found


def _room_line(room: Room) -> list[str]:
    own = ", ".join(f"{name}={value}" for name, value in room.settings.items())
    return [show.inert(room.room_id), str(room.messages), show.clock(room.last_sent_at), own]


def threads(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id.")],
    thread: Annotated[
        str | None, typer.Option("--thread", help="Show the thread that this message is in.", metavar="MESSAGE")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most threads, or most messages of the thread.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List a room's latest threads, or show one."""
    if thread is None:
        _list_threads(frame_of(ctx), room, limit, as_json)
    else:
        _show_thread(frame_of(ctx), room, thread, limit, as_json)


def _list_threads(frame: Frame, room: str, limit: int, as_json: bool) -> None:
    async def work(lore: Lore) -> list[tuple[int, Thread]]:
        found: list[tuple[int, Thread]] = []
        while page := await lore.rooms.threads(room, after=found[-1][0] if found else 0, limit=_PAGE):
            found = (found + page)[-limit:]
        return found

    found = frame.run(work)
    if as_json:
        show.as_json([{"arrival": arrival, **plain(one)} for arrival, one in found])
        return
    shape = show.table("first message", "messages", "began", "last", "who", "begins", right=("messages",))
    show.console().print(show.rows(shape, (_thread_line(one) for _, one in found)))


def _thread_line(one: Thread) -> list[str]:
    who = show.inert(", ".join(one.senders), 60)
    begun, last = show.clock(one.first_sent_at), show.clock(one.last_sent_at)
    return [show.inert(one.thread_id), str(one.messages), begun, last, who, show.inert(one.first_text, 80)]


def _show_thread(frame: Frame, room: str, message: str, limit: int, as_json: bool) -> None:
    async def work(lore: Lore) -> list[Entry]:
        return await lore.rooms.thread(room, message, limit=limit)

    entries = frame.run(work)
    if as_json:
        show.as_json(plain(entries))
        return
    shape = show.table("id", "sent", "sender", "text", "place", fixed=("sent",))
    show.console().print(show.rows(shape, map(_entry_line, entries)))


def _entry_line(entry: Entry) -> list[str]:
    message, link = entry.message, entry.link
    place = "begins" if link.kind == "new" else f"{link.kind} {link.parent_probability:.2f}"
    return [show.inert(message.id), show.clock(message.at), show.name(message), show.inert(message.text), place]


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
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show every setting with its value and source, or a room's, or change a room's."""
    wanted = {**_read_changes(changes or ()), **dict.fromkeys(unset or ())}
    if room is None and wanted:
        raise InvalidInput("Name the room whose settings to change; those of all rooms are in roomlore.yaml.")
    frame = frame_of(ctx)
    found = explain(frame.settings()) if room is None else _room_settings(frame, room, wanted)
    if as_json:
        show.as_json([one._asdict() for one in found])
        return
    shape = show.table("setting", "value", "source", "meaning", fixed=("setting",))
    show.console().print(show.rows(shape, found))


def _room_settings(frame: Frame, room: str, changes: dict[str, Any]) -> list[Row]:
    async def work(lore: Lore) -> list[Row]:
        if changes:
            await lore.rooms.configure(room, changes)
        found = await lore.rooms.settings(room)
        return [row(name, value, _source(lore.settings, name, source)) for name, (value, source) in found.items()]

    return frame.run(work)


def _source(settings: Settings, name: str, source: str) -> str:
    return source if source == "room" else settings.source(name)


def _read_changes(given: Sequence[str]) -> dict[str, Any]:
    return dict(map(_read_change, given))


def _read_change(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not value:
        raise InvalidInput(f"{text!r} is no change; write NAME=VALUE, or --unset NAME to take a value back.")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise InvalidInput(f"The value of {name} cannot be read: {value!r}.") from error
