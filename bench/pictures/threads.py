"""The demo room: whom each message answers, and which messages the context of one question took."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from bench.pictures.held import held
from bench.pictures.svg import LARGE, SMALL, Sheet
from roomlore import Settings
from roomlore.core.models import Entry, Explanation, LinkKind, Weighed
from roomlore.samples import DEMO_ROOM, demo_path

NAME = "soft-threads.svg"
FIRST, LAST = ("m066", "m084"), ("m112", "m121")
"""The rows that are shown: both ends of what matters for the last one, a question to the bot."""

_TOP, _ROW = 104, 24
_LANES, _LANE = 22, 11
_LINK, _CLOCK, _TEXT, _BAR, _WINDOW = 170, 216, 226, 606, 708
_ZONE = ZoneInfo("Asia/Shanghai")
_QUIET: dict[str, Any] = {"size": SMALL, "colour": "soft"}
_LOOKS = ("c0", "c1", "c2", "c3", "c4")


@dataclass(frozen=True)
class Row:
    """A message. `chance`: that it is of one thread with the question; `window`: the plain last-N window has it."""

    entry: Entry
    chance: float
    taken: bool
    window: bool

    @property
    def arrival(self) -> int:
        return self.entry.message.arrival


async def run() -> tuple[list[Row], Explanation]:
    """Every message up to the question, and what was made of them."""
    async with held(Settings(min_context_messages=0)) as (lore, _):
        await lore.imports.run(demo_path())
        explained = await lore.context.compare(DEMO_ROOM, LAST[1])
        (made,) = (one for one in explained if one.strategy == "threaded")
        async with lore.storage.reading(lore.tenant) as work:
            entries = await work.messages.tail(room_id=DEMO_ROOM, limit=200)
    return _rows(entries, made), made


def _rows(entries: Sequence[Entry], made: Explanation) -> list[Row]:
    weighed: dict[int, Weighed] = {weighed_message.message.arrival: weighed_message for weighed_message in made.weighed}
    question = made.target.message.arrival
    thread_candidates = dict(
        zip(
            made.target.link.thread_candidates.arrivals.tolist(),
            made.target.link.thread_candidates.probabilities.tolist(),
            strict=True,
        )
    )
    rows = []
    for entry in entries:
        arrival = entry.message.arrival
        if arrival <= question:
            taken = arrival in weighed and weighed[arrival].taken
            inside = question - made.window_messages <= arrival < question
            rows.append(Row(entry, thread_candidates.get(arrival, 0.0), taken, inside))
    return rows


async def draw() -> str:
    rows, made = await run()
    first, last = _between(rows, *FIRST), _between(rows, *LAST)
    sheet = Sheet(
        _TOP + _ROW * (len(first) + len(last) + 2.5) + 24,
        title="A question in the demo room, and the messages its context took",
        alternative=_alternative_text(rows, made),
    )
    places = _places(first, last)
    _head(sheet, made)
    _flow(sheet, [*first, *last], places)
    unseen = [row for row in rows if first[-1].arrival < row.arrival < last[0].arrival]
    _gap(sheet, unseen, (places[first[-1].arrival] + places[last[0].arrival]) / 2)
    _foot(sheet, places, [row.arrival for row in last if row.window])
    return sheet.drawn()


def _places(first: Sequence[Row], last: Sequence[Row]) -> dict[int, float]:
    """Return the vertical position of each message."""
    places = {row.arrival: float(_TOP + _ROW * n) for n, row in enumerate(first)}
    below = _TOP + _ROW * (len(first) + 1.5)
    return places | {row.arrival: below + _ROW * n for n, row in enumerate(last)}


def _flow(sheet: Sheet, rows: Sequence[Row], places: dict[int, float]) -> None:
    lanes = _lanes(rows)
    _links(sheet, rows, places, lanes)
    for row in rows:
        _message(sheet, row, places[row.arrival], lanes[row.entry.link.thread], is_question=row is rows[-1])


def _foot(sheet: Sheet, places: dict[int, float], window: Sequence[int]) -> None:
    """The plain window, and how to read the lines."""
    begin, end = places[window[0]] - _ROW * 1.4, places[window[-1]] + _ROW / 2 - 2
    sheet.line(_WINDOW + 5, begin, _WINDOW + 5, end, "c1", width=3)
    y = end + _ROW * 2
    sheet.text(
        _LANES, y, "A line leads to the message that is likeliest answered, as thick as that is likely.", **_QUIET
    )
    sheet.text(
        _LANES, y + 20, "The bar at the right edge: the last 20 messages. They begin between both parts.", **_QUIET
    )


def _between(rows: Sequence[Row], begin: str, end: str) -> list[Row]:
    places = {row.entry.message.id: place for place, row in enumerate(rows)}
    return list(rows[places[begin] : places[end] + 1])


def _lanes(rows: Sequence[Row]) -> dict[int, int]:
    """Each thread's lane, by order of appearance."""
    lanes: dict[int, int] = {}
    for row in rows:
        lanes.setdefault(row.entry.link.thread, len(lanes))
    return lanes


def _head(sheet: Sheet, made: Explanation) -> None:
    taken = len(made.taken)
    sheet.text(24, 34, "What the bot needs to know to answer one question", size=LARGE, bold=True)
    caption = f"{taken} messages, {made.tokens} tokens taken; the last {made.window_messages} messages cost "
    sheet.text(24, 56, f"{caption}{made.window_tokens} and miss the first {_missed(made)} of them.", colour="soft")
    sheet.text(_LANES, 84, "thread", size=SMALL, colour="soft")
    sheet.text(_LINK, 84, "answers", size=SMALL, colour="soft", anchor="end")
    sheet.text(_TEXT, 84, "message", size=SMALL, colour="soft")
    sheet.text(_BAR, 84, "same thread", size=SMALL, colour="soft")


def _missed(made: Explanation) -> int:
    begin = made.target.message.arrival - made.window_messages
    return sum(weighed_message.message.arrival < begin for weighed_message in made.taken)


def _links(sheet: Sheet, rows: Sequence[Row], places: dict[int, float], lanes: dict[int, int]) -> None:
    """A line from each message to the one it likeliest answers, as thick as that is likely."""
    for row in rows:
        link = row.entry.link
        if link.parent not in places or link.kind is LinkKind.NEW:
            continue
        parent = next(row_of_parent for row_of_parent in rows if row_of_parent.arrival == link.parent)
        x, y = _x(lanes[link.thread]), places[row.arrival]
        to_x, to_y = _x(lanes[parent.entry.link.thread]), places[link.parent]
        out = min(8 + (y - to_y) / 9, 17)
        drawn = f"M{to_x} {to_y:.1f}C{to_x + out:.1f} {to_y:.1f} {x + out:.1f} {y:.1f} {x} {y:.1f}"
        sheet.path(
            drawn,
            _look(lanes[link.thread]),
            width=1 + 4 * link.parent_probability,
            opacity=0.35 + 0.6 * link.parent_probability,
        )


def _message(sheet: Sheet, row: Row, y: float, lane: int, *, is_question: bool) -> None:
    message, base = row.entry.message, y + 5
    if row.taken or is_question:
        sheet.rect(_TEXT - 8, y - _ROW / 2 + 1, _WINDOW - _TEXT, _ROW - 2, "band", round_by=4)
    sheet.circle(_x(lane), y, 6.5, _look(lane))
    sheet.text(_LINK, base, _link(row), size=SMALL, colour=_look(lane), anchor="end")
    sheet.text(_CLOCK, base, f"{message.at.astimezone(_ZONE):%H:%M}", size=SMALL, colour="soft", anchor="end")
    colour = "ink" if row.taken or is_question else "soft"
    sheet.said(_TEXT, base, message.sender_name, message.text, colour=colour, room=_BAR - _TEXT - 8)
    if is_question:
        sheet.text(_BAR, base, "the question", size=SMALL, bold=True, colour="strong")
        return
    sheet.rect(_BAR, y - 5, 44 * row.chance, 10, "strong" if row.taken else "line", round_by=2)
    likely = f"{row.chance:.2f} ✓" if row.taken else f"{row.chance:.2f}" if row.chance else "–"
    sheet.text(_BAR + 48, base, likely, size=SMALL, colour="strong" if row.taken else "soft", bold=row.taken)


def _link(row: Row) -> str:
    """Return the probability of what it most likely answers, or that it starts something new."""
    link = row.entry.link
    return f"new {link.new_probability:.2f}" if link.kind is LinkKind.NEW else f"{link.parent_probability:.2f}"


def _gap(sheet: Sheet, unseen: Sequence[Row], y: float) -> None:
    taken = sum(row.taken for row in unseen)
    caption = f"{len(unseen)} messages more: lunch, a meeting, releases. {taken or 'None'} taken."
    sheet.text(_TEXT, y + 5, caption, size=SMALL, colour="soft")
    sheet.path(f"M{_LANES} {y:.1f}L{_TEXT - 30} {y:.1f}", "line", dashed=True)


def _x(lane: int) -> float:
    return _LANES + 10 + lane * _LANE


def _look(lane: int) -> str:
    return _LOOKS[lane % len(_LOOKS)]


def _alternative_text(rows: Sequence[Row], made: Explanation) -> str:
    names = ", ".join(
        f"{weighed_message.message.id} with {weighed_message.score:.2f}" for weighed_message in made.taken
    )
    return (
        f"Rows are messages of the demo room from {FIRST[0]} to {FIRST[1]} and from {LAST[0]} to {LAST[1]}. Each has a "
        "dot in the lane of its likeliest thread and a line to the message it likeliest answers, thicker where that is "
        f"likelier. On the right is the probability that it shares a thread with {rows[-1].entry.message.id}, the "
        f"question. The context took {names}: {made.tokens} tokens, where the last {made.window_messages} messages "
        f"cost {made.window_tokens}."
    )
