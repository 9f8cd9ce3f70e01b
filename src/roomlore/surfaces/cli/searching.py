"""`roomlore ask`, and how messages that were found are shown; `roomlore search` is its older name, and shows more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from shlex import quote
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from roomlore.core.attachments import found_words
from roomlore.core.audience import RoomKind
from roomlore.core.dates import TimeSpan, moment
from roomlore.core.errors import NotFound
from roomlore.core.search.telling import BETWEEN, ends_of
from roomlore.surfaces import excerpts
from roomlore.surfaces.cli import show, show_memories
from roomlore.surfaces.cli.derived import help_of
from roomlore.surfaces.cli.frame import frame_of, person_named, scope_meant, viewer_of
from roomlore.surfaces.cli.language import causes, say, translated
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.surfaces.people_named import answer_with_people_named
from roomlore.verbs.messages import SEARCH
from roomlore.verbs.table import Help

if TYPE_CHECKING:
    from roomlore.core.models import Heading, StoredMessage
    from roomlore.core.search.hits import SearchAnswer, SearchHit
    from roomlore.wiring import Lore


_ROOM_FIRST = Help(" With a room's id or name in front: in that room only.", "前面写房间的 id 或名称则只在该房间里找。")
_READ = 20_000
_SHOWN = 320
_INDENT = 4
_MARKED = "bold red"


def search(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="[ROOM] QUERY", help=help_of(SEARCH["query"], _ROOM_FIRST))],
    viewer: Annotated[
        str | None,
        typer.Option(help="Only what `room:ROOM` or `user:NAME` may see, in all rooms; then give no ROOM."),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--all", help="Search all rooms: every word given belongs to QUERY.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help=help_of(SEARCH["limit"]))] = 10,
    mode: Annotated[str, typer.Option(help=help_of(SEARCH["mode"]))] = "hybrid",
    sender: Annotated[list[str] | None, typer.Option(help="Only what this person said, by id or name.")] = None,
    since: Annotated[str | None, typer.Option(help=help_of(SEARCH["since"]))] = None,
    until: Annotated[str | None, typer.Option(help=help_of(SEARCH["until"]))] = None,
    asked_at: Annotated[str | None, typer.Option(help=help_of(SEARCH["asked_at"]))] = None,
    conversation: Annotated[bool, typer.Option("--conversation", help=help_of(SEARCH["conversation"]))] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Thread, score and reason of each hit; else the first three have a reason."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with the signals behind each score.")] = False,
) -> None:
    """Find the messages that answer a question. They are of one room, or of all rooms that a viewer may see."""
    several = everywhere or viewer is not None or len(words) == 1
    room, query = (None, words) if several else (words[0], words[1:])

    async def work(lore: Lore) -> tuple[SearchAnswer, ZoneInfo, dict[tuple[str, str], Heading]]:
        zone, whom = lore.settings.search.zone, await viewer_of(lore, viewer)
        # The library checks the mode and names the valid ones.
        answer = await lore.messages.search(
            None if room is None else await lore.rooms.named(room, viewer=None),
            " ".join(query),
            viewer=whom,
            limit=limit,
            mode=mode,  # type: ignore[arg-type]
            sender_ids=None if sender is None else [await _sender(lore, person) for person in sender],
            since=_time(lore, "--since", since),
            until=_time(lore, "--until", until),
            asked_at="newest" if asked_at == "newest" else _time(lore, "--asked-at", asked_at),
            conversation=conversation,
        )
        if whom is not None and whom.startswith("user:"):
            await _tell_hidden(lore, whom)
        if as_json:
            return answer, zone, {}
        return await answer_with_people_named(lore, answer), zone, await _headings(lore, answer, whom)

    answer, zone, headings = frame_of(ctx).run(work)
    if as_json:
        show.as_json(to_jsonable(answer))
        return
    out = show.console()
    hint = show.inert(translated(answer.hint or ""), 1_000)
    if not answer.hits:
        out.print(hint)
    elif hint:
        typer.echo(hint, err=True)
    if explain or conversation or ctx.info_name == "search":
        hits(answer, out, zone, headings)
    elif answer.hits:
        _answers(answer, out, zone)


async def _sender(lore: Lore, given: str) -> str:
    """Return the id of a sender by id or name. Raise `NotFound` that names who may be meant if nobody has it."""
    person = await person_named(lore, given)
    if unknown := await scope_meant(lore, f"user:{person}"):
        raise NotFound(unknown)
    return person


async def _tell_hidden(lore: Lore, viewer: str) -> None:
    """Say on standard error which rooms a person is shown in part, as nobody told that they are a member."""
    _, _, person = viewer.partition(":")
    async with lore.storage.reading(lore.tenant) as work:
        rooms = [room.room_id for room in await work.rooms.of_person(person_id=person)]
        people = await work.rooms.people(room_ids=rooms, persons=[person])
    for room, its in people.items():
        if its.kind is not RoomKind.PUBLIC and not its.people[person].stays:
            told = "{viewer} is shown {room} only from their first message to their last; `{add}` tells that they stay."
            add = show.inert(f"roomlore audience {quote(room)} --add {quote(person)}")
            typer.echo(say(told, viewer=show.inert(viewer), room=show.inert(room, 80), add=add), err=True)


async def _headings(lore: Lore, answer: SearchAnswer, viewer: str | None) -> dict[tuple[str, str], Heading]:
    """Return the headings of the threads of the hits, by room and message."""
    by_room: dict[str, list[str]] = {}
    for hit in answer.hits:
        by_room.setdefault(hit.message.room_id, []).append(hit.message.id)
    made = {room: await lore.rooms.headings(room, its, viewer=viewer) for room, its in by_room.items()}
    return {(room, name): heading for room, its in made.items() for name, heading in its.items()}


def _time(lore: Lore, option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    return moment(option, text, now=lore.now(), zone=lore.settings.search.zone, edge="start")


def hits(
    answer: SearchAnswer, out: Console, zone: ZoneInfo, headings: Mapping[tuple[str, str], Heading] | None = None
) -> None:
    """Print an answer for people: each message with its rank, score, reason and the query's words marked, then how the
    search was done. `headings`: of the threads of messages, by room and message."""
    for rank, (above, hit) in enumerate(_by_time(answer), 1):
        if above:
            out.print(Text(above, "dim"))
        _hit(rank, hit, answer, out, (headings or {}).get((hit.message.room_id, hit.message.id)))
    _print_end(answer, out, zone)


def _by_time(answer: SearchAnswer) -> Iterator[tuple[str, SearchHit]]:
    """Yield the messages, those of the time asked for first, each with the line above it, else ''."""
    from_then = any(not hit.outside for hit in answer.hits)
    for hit in sorted(answer.hits, key=attrgetter("outside")):
        yield say("From other times:") if hit.outside and from_then else "", hit
        from_then = from_then and not hit.outside


def _why(hit: SearchHit) -> str:
    return causes(show.inert(hit.reason)).replace(BETWEEN, " · ")


def found_in_lines(answer: SearchAnswer, out: Console, zone: ZoneInfo) -> None:
    """Print an answer with a line for each message."""
    shape = show.one_line(bar=None, score=None, sent=None, who=10, said=None, id=None, fill="said")
    for hit in answer.hits:
        message = hit.message
        shape.add_row(
            show.bar(hit.score, out),
            f"{hit.score:.2f}",
            Text(show.clock(message.at)[5:], "dim"),
            Text(show.name(message), "bold"),
            _marked_text(message, answer.query),
            Text(show.inert(message.id), "dim"),
        )
    out.print(shape)
    out.print(Text(f"  {_footer(answer, zone)}", "dim"))


_REASONS = 3


def _answers(answer: SearchAnswer, out: Console, zone: ZoneInfo) -> None:
    """Print an answer: each message in full, and of the first ones why."""
    shape = show.one_line(sent=None, who=10, said=None, id=None, fill="said")
    shape.columns[2].no_wrap, shape.columns[2].overflow = False, "fold"
    for rank, (above, hit) in enumerate(_by_time(answer)):
        message = hit.message
        if above:
            shape.add_row("", "", Text(above, "dim"), "")
        why = (f"\n{_why(hit)}", "dim italic") if rank < _REASONS else ""
        place = "" if answer.room_id else f" {show.inert(message.room_id, 80)}"
        shape.add_row(
            Text(show.clock(message.at)[5:], "dim"),
            Text(show.name(message), "bold"),
            Text.assemble(_marked_text(message, answer.query), why),
            Text(f"{show_memories.short(message.id)}{place}", "dim"),
        )
    out.print(shape)
    _print_end(answer, out, zone)


def _print_end(answer: SearchAnswer, out: Console, zone: ZoneInfo) -> None:
    """Print how a search was done."""
    if answer.degraded:
        cause = causes(show.inert(answer.degraded))
        out.print(Text(say("degraded: {why} (`roomlore reindex --status` tells more)", why=cause), "yellow"))
    out.print(Text(_footer(answer, zone), "dim"))


def _hit(rank: int, hit: SearchHit, answer: SearchAnswer, out: Console, heading: Heading | None) -> None:
    message, query = hit.message, answer.query
    head = Text.assemble(
        (f"{rank:>2}  ", "bold"),
        (f"{hit.score:.2f}  ", "green"),
        f"{show.clock(message.at)}  ",
        (show.name(message), "bold"),
        (f"  {show.inert(message.id, 80)}", "dim"),
        ("" if answer.room_id else f"  {say('in {room}', room=show.inert(message.room_id, 80))}", "dim"),
    )
    out.print(head)
    around = [line for in_conversation in hit.conversation for line in _around(hit, in_conversation, query)]
    thread = f" · {show.heading(heading)}" if heading and heading.title else ""
    for below in (*(around or [_marked_text(hit.message, query)]), Text(f"{_why(hit)}{thread}", "dim italic")):
        out.print(Padding(below, (0, 0, 0, _INDENT), expand=False))
    out.print()


def _around(hit: SearchHit, message: StoredMessage, query: str) -> Iterator[Text]:
    """Yield the messages of the hit's conversation, the hit itself under an arrow."""
    if message.arrival == hit.message.arrival:
        yield Text.assemble("> ", _marked_text(message, query))
    else:
        head = f"  {show.clock(message.at)}  {show.name(message)}: "
        yield Text.assemble((head, "dim"), _marked_text(message, query))


def _marked_text(message: StoredMessage, query: str) -> Text:
    """Return the message with the words of the query marked; of a long one the part with most of them."""
    text = show.inert(f"{message.text} {found_words(message)}".rstrip(), _READ)
    shown, places = excerpts.excerpt(text, excerpts.matches(text, query), _SHOWN)
    marked = Text(shown or say("(no text)"), "" if shown else "dim")
    for place in places:
        marked.stylize(_MARKED, *place)
    return marked


def _footer(answer: SearchAnswer, zone: ZoneInfo) -> str:
    how = (
        "{messages} by words and meaning ({mode})" if answer.mode == "hybrid" else "{messages} by words alone ({mode})"
    )
    count = say(how, messages=show.counted(len(answer.hits), "message"), mode=answer.mode)
    times = [say("“{words}” is {span}", words=show.inert(span.text, 40), span=spoken(span)) for span in answer.times]
    where = [] if zone.key == "UTC" else [say("times of {zone}", zone=zone.key)]
    return " · ".join([count, *times, *where, f"{answer.search_ms:.1f} ms"])


def spoken(span: TimeSpan) -> str:
    """Return a time span in days: whole days by their dates, both included."""
    first, last = ends_of(span, show.shown_zone())
    if not first:
        return say("up to {last}", last=last)
    return first if first == last else say("{first} to {last}", first=first, last=last)
