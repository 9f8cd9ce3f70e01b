"""Threads as they are drawn: one look for a thread on every page, lanes beside the messages, and a list with titles."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from roomlore.core.models import Entry

LANES = 6
COLOURS = 8
SHAPES = ("●", "■", "▲", "◆", "★", "✚", "▼", "○", "□", "△", "◇", "☆", "▽")
"""Their number and that of the colours have no common divisor: 104 threads that begin one after the other all look
different."""

Part = Literal["none", "pass", "only", "first", "middle", "last"]


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a thread, the same on every page. `number`: arrival of its first message, which names it."""

    number: int
    colour: int
    shape: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A lane beside one message. `above` and `below`: the thickness of its line over and under the thread's mark; 0 for
    none. A line has one thickness from a message to the next one of its thread, in every row between."""

    part: Part
    look: Look | None = None
    above: int = 0
    below: int = 0


_NONE = Cell("none")


@dataclass(frozen=True, slots=True)
class Row:
    """A message's own thread, and what each lane shows beside it."""

    look: Look
    cells: tuple[Cell, ...]


def lanes(messages: Sequence[tuple[int, int]]) -> list[Row]:
    """Return a row for each message, given as (arrival of its thread's first message, thickness of the line that leads
    to it). Two threads share a lane only one after the other; if all lanes are taken a thread has none."""
    spans = _spans(messages)
    below = _below(messages)
    looks = {thread: look_of(thread) for thread in spans}
    lane_of = _assigned(spans)
    going: list[int | None] = [None] * max((lane + 1 for lane in lane_of.values()), default=0)
    under: dict[int, int] = {}
    rows = []
    for place, (thread, thickness) in enumerate(messages):
        under[thread] = below[place]
        if thread in lane_of:
            going[lane_of[thread]] = thread
        above = thickness if place > spans[thread][0] else 0
        cells = (
            _NONE
            if other is None
            else Cell(
                _part(spans[other], place, mine=other == thread), looks[other], above * (other == thread), under[other]
            )
            for other in going
        )
        rows.append(Row(looks[thread], tuple(cells)))
        going = [other if other is not None and spans[other][1] > place else None for other in going]
    return rows


def _below(messages: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each message the thickness of the line from it to the next one of its thread; 0 if there is none."""
    counts = [0] * len(messages)
    after: dict[int, int] = {}
    for place in range(len(messages) - 1, -1, -1):
        thread, thickness = messages[place]
        counts[place] = after.get(thread, 0)
        after[thread] = thickness
    return counts


def _spans(messages: Sequence[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return the first and last row of each thread, in order of appearance."""
    spans: dict[int, tuple[int, int]] = {}
    for place, (thread, _) in enumerate(messages):
        spans[thread] = (spans.get(thread, (place, place))[0], place)
    return spans


def _assigned(spans: dict[int, tuple[int, int]]) -> dict[int, int]:
    free_from = [0] * LANES
    lane_of: dict[int, int] = {}
    for thread, (first, last) in spans.items():
        lane = next((free_lane for free_lane in range(LANES) if free_from[free_lane] <= first), None)
        if lane is not None:
            lane_of[thread], free_from[lane] = lane, last + 1
    return lane_of


def _part(span: tuple[int, int], place: int, *, mine: bool) -> Part:
    if not mine:
        return "pass"
    if span[0] == span[1]:
        return "only"
    return "first" if place == span[0] else "last" if place == span[1] else "middle"


def look_of(thread: int) -> Look:
    return Look(thread, thread % COLOURS, SHAPES[thread % len(SHAPES)])


@dataclass(frozen=True, slots=True)
class Strand:
    """A thread in the list beside its room. `message_id`: of one of its messages. `whole`: it began among the messages
    that are shown, so `messages` is its number. `open`: a question in it has no answer."""

    look: Look
    people: tuple[str, ...]
    messages: int
    whole: bool
    message_id: str
    last: datetime
    title: str = ""
    open: bool = False


def strands(entries: Sequence[Entry]) -> list[Strand]:
    """Return the threads of messages, the one with the newest message first, without titles."""
    together: dict[int, list[Entry]] = {}
    for entry in entries:
        together.setdefault(entry.link.thread, []).append(entry)
    all_strands = [_strand(thread, its) for thread, its in together.items()]
    return sorted(all_strands, key=lambda strand: strand.last, reverse=True)


def _strand(thread: int, its: Sequence[Entry]) -> Strand:
    first, last = its[0].message, its[-1]
    names = dict.fromkeys(entry.message.sender_name or entry.message.sender_id for entry in its)
    return Strand(
        look=look_of(thread),
        people=tuple(names),
        messages=len(its),
        whole=first.arrival == thread,
        message_id=last.message.id,
        last=last.message.at,
    )
