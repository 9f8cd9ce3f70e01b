"""Threads side by side down a page: which lane each one runs in, and how it looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LANES = 6
COLOURS = 8
SHAPES = ("●", "■", "▲", "◆", "★", "✚", "▼")
"""With the colours 56 looks, so that colour alone never tells threads apart."""

Part = Literal["none", "pass", "only", "first", "middle", "last"]


@dataclass(frozen=True, slots=True)
class Look:
    """How a thread looks on a page. `number`: arrival of its first message, by which people name it."""

    number: int
    colour: int
    shape: str


@dataclass(frozen=True, slots=True)
class Cell:
    part: Part
    look: Look | None = None


_NONE = Cell("none")


@dataclass(frozen=True, slots=True)
class Row:
    """A message's own thread, and what each lane shows beside it."""

    look: Look
    cells: tuple[Cell, ...]


def lanes(messages: Sequence[tuple[int, int]]) -> list[Row]:
    """A row for each message, given as (arrival, arrival of its thread's first message). Two threads share a lane only
    one after the other; where all lanes are taken a thread has none."""
    spans = _spans(messages)
    looks = {thread: _look(order, thread) for order, thread in enumerate(spans)}
    lane_of = _assigned(spans)
    going: list[int | None] = [None] * max((lane + 1 for lane in lane_of.values()), default=0)
    rows = []
    for place, (_, thread) in enumerate(messages):
        if thread in lane_of:
            going[lane_of[thread]] = thread
        rows.append(Row(looks[thread], tuple(_cell(other, thread, place, spans, looks) for other in going)))
        going = [other if other is not None and spans[other][1] > place else None for other in going]
    return rows


def _cell(
    other: int | None, thread: int, place: int, spans: dict[int, tuple[int, int]], looks: dict[int, Look]
) -> Cell:
    return _NONE if other is None else Cell(_part(spans[other], place, mine=other == thread), looks[other])


def _spans(messages: Sequence[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """First and last row of each thread, by order of appearance."""
    spans: dict[int, tuple[int, int]] = {}
    for place, (_, thread) in enumerate(messages):
        spans[thread] = (spans.get(thread, (place, place))[0], place)
    return spans


def _assigned(spans: dict[int, tuple[int, int]]) -> dict[int, int]:
    free_from = [0] * LANES
    found: dict[int, int] = {}
    for thread, (first, last) in spans.items():
        lane = next((one for one in range(LANES) if free_from[one] <= first), None)
        if lane is not None:
            found[thread], free_from[lane] = lane, last + 1
    return found


def _part(span: tuple[int, int], place: int, *, mine: bool) -> Part:
    if not mine:
        return "pass"
    if span[0] == span[1]:
        return "only"
    return "first" if place == span[0] else "last" if place == span[1] else "middle"


def _look(order: int, thread: int) -> Look:
    return Look(thread, order % COLOURS, SHAPES[order % len(SHAPES)])
