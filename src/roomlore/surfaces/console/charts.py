"""Small charts of what was measured: lines as points of an SVG picture, and the same in numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Literal

from roomlore.core.measured import Reading, growth, per_minute, quantile, share, thinned

WIDTH, HEIGHT = 240, 56
_EDGE = 3
_POINTS = 61
_ROWS = 13

Unit = Literal["count", "seconds", "share"]
Bounds = Mapping[str, tuple[float, ...]]
Values = tuple[float | None, ...]
Figure = Callable[[Sequence[Reading], Bounds], Values]
"""A value for each step from a reading to the next, None where nothing can be said."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart. `pieces`: points as SVG has them, broken where nothing was measured; `whole`: its value over
    all the time shown; `values`: over even parts of it."""

    name: str
    pieces: tuple[str, ...]
    whole: float | None
    values: Values


@dataclass(frozen=True, slots=True)
class Chart:
    """`top`: what the upper edge stands for; None where nothing was measured."""

    name: str
    unit: Unit
    lines: tuple[Line, ...]
    top: float | None


@dataclass(frozen=True, slots=True)
class Charts:
    """All of one page, over the same time. `times`: where the parts end that the lines' `values` are of."""

    begins: datetime
    ends: datetime
    times: tuple[datetime, ...]
    all: tuple[Chart, ...]


def draw(readings: Sequence[Reading], bounds: Bounds) -> Charts | None:
    """`bounds`: of the histograms among the counters. None where there is no more than one reading."""
    if len(readings) < 2:
        return None
    rows = thinned(readings, _ROWS)
    charts = tuple(_chart(name, unit, figures, readings, bounds) for name, (unit, figures) in _CHARTS.items())
    return Charts(readings[0].at, readings[-1].at, tuple(one.at for one in rows[1:]), charts)


def _chart(name: str, unit: Unit, figures: Mapping[str, Figure], readings: Sequence[Reading], bounds: Bounds) -> Chart:
    drawn, rows, ends = thinned(readings, _POINTS), thinned(readings, _ROWS), (readings[0], readings[-1])
    values = {line: figure(drawn, bounds) for line, figure in figures.items()}
    known = [value for one in values.values() for value in one if value is not None]
    top = (1.0 if unit == "share" else max(known)) if known else None
    lines = tuple(
        Line(line, _pieces(drawn, values[line], top or 1.0), figure(ends, bounds)[0], figure(rows, bounds))
        for line, figure in figures.items()
    )
    return Chart(name, unit, lines, top)


def _pieces(readings: Sequence[Reading], values: Values, top: float) -> tuple[str, ...]:
    begin, span = readings[0].at, (readings[-1].at - readings[0].at).total_seconds()
    pieces: list[list[str]] = [[]]
    for (before, after), value in zip(pairwise(readings), values, strict=True):
        if value is None:
            pieces.append([])
            continue
        height = HEIGHT - _EDGE - (HEIGHT - 2 * _EDGE) * min(max(value / top, 0.0), 1.0)
        for at in (after.at,) if pieces[-1] else (before.at, after.at):
            pieces[-1].append(f"{WIDTH * (at - begin).total_seconds() / span:.1f},{height:.1f}")
    return tuple(" ".join(piece) for piece in pieces if piece)


def _rate(plus: str, minus: str | None, readings: Sequence[Reading], bounds: Bounds) -> Values:
    grown = growth(readings, plus)
    if minus is not None:
        less = growth(readings, minus)
        grown = [(max(0.0, amount - other),) for (amount,), (other,) in zip(grown, less, strict=True)]
    return tuple(per_minute(readings, grown))


def _share(part: str, whole: str, rest: bool, readings: Sequence[Reading], bounds: Bounds) -> Values:
    both = zip(growth(readings, part), growth(readings, whole), strict=True)
    found = [share(amount, of) for (amount,), (of,) in both]
    return tuple(1 - one if rest and one is not None else one for one in found)


def _quantile(name: str, rank: float, readings: Sequence[Reading], bounds: Bounds) -> Values:
    return tuple(quantile(rank, bounds[name], counts) for counts in growth(readings, name))


def _rates(**lines: tuple[str, str | None]) -> tuple[Unit, Mapping[str, Figure]]:
    return "count", {line: partial(_rate, *counters) for line, counters in lines.items()}


def _times(name: str) -> tuple[Unit, Mapping[str, Figure]]:
    return "seconds", {"p50": partial(_quantile, name, 0.5), "p95": partial(_quantile, name, 0.95)}


def _shares(line: str, part: str, whole: str, *, rest: bool = False) -> tuple[Unit, Mapping[str, Figure]]:
    return "share", {line: partial(_share, part, whole, rest)}


_CHARTS: Mapping[str, tuple[Unit, Mapping[str, Figure]]] = {
    "requests": _rates(all=("requests", None), failed=("requests_failed", None)),
    "request_time": _times("request_time"),
    "messages": _rates(all=("messages", None)),
    "contexts": _rates(all=("contexts", None), degraded=("contexts_degraded", None)),
    "context_time": _times("context_time"),
    "saved": _shares("saved", "context_tokens", "window_tokens", rest=True),
    "cache": _shares("hits", "cache_hits", "cache"),
    "searches": _rates(all=("searches", None), degraded=("searches_degraded", None)),
    "search_time": _times("search_time"),
    "memory_search_time": _times("memory_search_time"),
    "models": _rates(answered=("model_answers", None), failed=("model_calls", "model_answers")),
    "first_text_time": _times("first_text_time"),
    "work": _rates(done=("work_done", None), failed=("work_failed", None)),
}
