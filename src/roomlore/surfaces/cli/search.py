"""`roomlore search`: the messages that answer a question."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from roomlore.core.errors import InvalidInput
from roomlore.core.models import StoredMessage
from roomlore.core.records import parse_time
from roomlore.core.search import SearchAnswer, SearchHit
from roomlore.core.when import FAR_PAST, TimeSpan
from roomlore.surfaces import marks
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.frame import frame_of
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

_READ = 20_000
_SHOWN = 320
_INDENT = 4
_MARKED = "bold red"


def search(
    ctx: typer.Context,
    room: Annotated[str, typer.Argument(help="The room's id.")],
    query: Annotated[list[str], typer.Argument(help="A few words or a question; quotes are not needed.")],
    limit: Annotated[int, typer.Option("--limit", "-n", help="Most messages, 1 to 200.")] = 10,
    mode: Annotated[str, typer.Option(help="`hybrid`, by words and meaning, or `lexical`, by words alone.")] = "hybrid",
    sender: Annotated[list[str] | None, typer.Option(help="Only what this sender id said; may be repeated.")] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only from this time on: a day or a time, such as `2024-05-01` or `2024-05-01T12:30Z`."),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only before this time.")] = None,
    asked_at: Annotated[
        str | None,
        typer.Option(
            help="When the question is asked, from which 'last week' is seen: a time, or `newest` for the room's "
            "newest message; by default now."
        ),
    ] = None,
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Show each message within its conversation, at most 12 messages.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with the signals behind each score.")] = False,
) -> None:
    """Find the messages of a room that answer a question best, each with its score and reason."""

    async def work(lore: Lore) -> tuple[SearchAnswer, ZoneInfo]:
        zone = ZoneInfo(lore.settings.time_zone)
        # The library checks the mode and says what it may be.
        answer = await lore.messages.search(
            room,
            " ".join(query),
            limit=limit,
            mode=mode,  # type: ignore[arg-type]
            sender_ids=sender,
            since=_time("--since", since, zone),
            until=_time("--until", until, zone),
            asked_at="newest" if asked_at == "newest" else _time("--asked-at", asked_at, zone),
            conversation=conversation,
        )
        return answer, zone

    answer, zone = frame_of(ctx).run(work)
    if as_json:
        show.as_json(plain(answer))
        return
    out = show.console()
    if not answer.hits:
        tries = _tries(answer, mode, by_sender=bool(sender), by_time=bool(since or until))
        out.print("\n  - ".join([f"Nothing in {show.inert(room, 80)} fits. Try", *tries]))
    found(answer, out, zone)


def _time(option: str, text: str | None, zone: ZoneInfo) -> datetime | None:
    if text is None:
        return None
    moment = parse_time(text, zone=zone)
    if moment is None:
        raise InvalidInput(f"{option} is {text!r}; write a day or a time, such as 2024-05-01 or 2024-05-01T12:30Z.")
    return moment


def found(answer: SearchAnswer, out: Console, zone: ZoneInfo) -> None:
    """An answer for people: each message with its rank, score, reason and the query's words marked, then how it was
    searched. Times are told in the zone."""
    for rank, hit in enumerate(answer.hits, 1):
        _hit(rank, hit, answer.query, out, zone)
    if answer.degraded:
        out.print(Text(f"degraded: {show.inert(answer.degraded)} (`roomlore reindex --status` tells more)", "yellow"))
    out.print(Text(_footer(answer, zone), "dim"))


def _hit(rank: int, hit: SearchHit, query: str, out: Console, zone: ZoneInfo) -> None:
    message = hit.message
    head = Text.assemble(
        (f"{rank:>2}  ", "bold"),
        (f"{hit.score:.2f}  ", "green"),
        f"{show.clock(_in(zone, message.at))}  ",
        (show.name(message), "bold"),
        (f"  {show.inert(message.id, 80)}", "dim"),
    )
    out.print(head)
    around = [line for one in hit.conversation for line in _around(hit, one, query, zone)]
    for below in (*(around or [_said(hit.message, query)]), Text(show.inert(hit.reason), "dim italic")):
        out.print(Padding(below, (0, 0, 0, _INDENT), expand=False))
    out.print()


def _around(hit: SearchHit, message: StoredMessage, query: str, zone: ZoneInfo) -> Iterator[Text]:
    """Yield a message of the hit's conversation, the hit itself under an arrow."""
    if message.arrival == hit.message.arrival:
        yield Text.assemble("> ", _said(message, query))
    else:
        head = f"  {show.clock(_in(zone, message.at))}  {show.name(message)}: "
        yield Text.assemble((head, "dim"), _said(message, query))


def _said(message: StoredMessage, query: str) -> Text:
    """Return the message with the words of the query marked; of a long one the part that has most of them."""
    caption = message.metadata.get("caption")
    both = f"{message.text} {caption}" if isinstance(caption, str) else message.text
    text = show.inert(both, _READ)
    shown, places = marks.excerpt(text, marks.matches(text, query), _SHOWN)
    said = Text(shown or "(no text)", "" if shown else "dim")
    for place in places:
        said.stylize(_MARKED, *place)
    return said


def _footer(answer: SearchAnswer, zone: ZoneInfo) -> str:
    how = "words and meaning" if answer.mode == "hybrid" else "words alone"
    count = f"{len(answer.hits)} message{'' if len(answer.hits) == 1 else 's'}"
    times = [f"“{show.inert(span.text, 40)}” is {spoken(span, zone)}" for span in answer.times]
    where = [] if zone.key == "UTC" else [f"times of {zone.key}"]
    return " · ".join([f"{count} by {how} ({answer.mode})", *times, *where, f"{answer.search_ms:.1f} ms"])


def spoken(span: TimeSpan, zone: ZoneInfo) -> str:
    """A stretch of time in the days of a zone: whole days by their dates, both included."""
    start, end = _in(zone, span.start), _in(zone, span.end)
    whole = not any((start.hour, start.minute, start.second, end.hour, end.minute, end.second))
    first, last = (_day(start), _day(end - timedelta(days=1))) if whole else (show.clock(start), show.clock(end))
    if span.start <= FAR_PAST:
        return f"up to {last}"
    if not whole:
        last = last.removeprefix(f"{_day(start)} ")
    return first if first == last else f"{first} to {last}"


def _in(zone: ZoneInfo, moment: datetime) -> datetime:
    """As it was where the calendar's ends leave no room for the zone."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def _tries(answer: SearchAnswer, mode: str, *, by_sender: bool, by_time: bool) -> Iterator[str]:
    yield "fewer words, or other words"
    if by_sender:
        yield "without --sender, which takes the ids that `export` shows, not names"
    if by_time:
        yield "without --since and --until"
    if mode == "lexical":
        yield "without --mode lexical"
    elif answer.mode == "lexical" and not answer.degraded:
        yield "by meaning too: set `embeddings` (docs/how-to/search.md)"
