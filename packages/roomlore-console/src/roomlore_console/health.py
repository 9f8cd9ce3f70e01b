"""The pages for operators: health with charts of this process's counters over an hour, findings, and jobs."""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, Literal, get_args

from starlette.responses import Response

from roomlore.core.errors import Conflict, NotFound, describe
from roomlore.core.health import Finding
from roomlore.core.patterns import lazy_pattern
from roomlore.ports.durable import RETRIABLE, WorkStatus
from roomlore.services.indexing import IndexStatus
from roomlore.services.jobs import Job
from roomlore.surfaces.doctor_words import part, phrase
from roomlore.surfaces.long_work import LongWork
from roomlore.wiring import Lore
from roomlore_console.counters import CounterReading, growth, kept, per_minute, quantile, share, thinned
from roomlore_console.frame import ROOT, Page, Tongue, in_tongue
from roomlore_console.shell import name_scopes

EVERY_SECONDS = 10.0
_WITHIN = timedelta(hours=1)
_MAX = 361

COUNTERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "requests": ("roomlore_http_request_seconds_count", {}),
    "requests_failed": ("roomlore_http_request_seconds_count", {"status": "5xx"}),
    "messages": ("roomlore_messages_added_total", {}),
    "contexts": ("roomlore_contexts_total", {}),
    "contexts_degraded": ("roomlore_contexts_total", {"degraded": "yes"}),
    "context_tokens": ("roomlore_context_tokens_total", {}),
    "window_tokens": ("roomlore_window_tokens_total", {}),
    "cache": ("roomlore_room_cache_total", {}),
    "cache_hits": ("roomlore_room_cache_total", {"result": "hit"}),
    "searches": ("roomlore_searches_total", {}),
    "searches_degraded": ("roomlore_searches_total", {"degraded": "yes"}),
    "model_calls": ("roomlore_model_calls_total", {}),
    "model_answers": ("roomlore_model_calls_total", {"result": "answered"}),
    "work_done": ("roomlore_work_total", {"result": "done"}),
    "work_failed": ("roomlore_work_total", {"result": "failed"}),
}
"""The counters by name: a series, and the labels that its parts must have to be added up."""

HISTOGRAMS: Mapping[str, str] = {
    "request_time": "roomlore_http_request_seconds",
    "context_time": "roomlore_context_build_seconds",
    "search_time": "roomlore_search_seconds",
    "memory_search_time": "roomlore_memory_search_seconds",
    "first_text_time": "roomlore_reply_first_text_seconds",
}

log = logging.getLogger("roomlore.console")


class Watch:
    """The readings so far, in bounded memory: at most 361 readings of a fixed number of counters."""

    def __init__(self) -> None:
        self._readings: tuple[CounterReading, ...] = ()

    async def look(self, lore: Lore) -> tuple[CounterReading, ...]:
        """Return the stored readings and a current one."""
        return kept(self._readings, await _read(lore), within=_WITHIN, most=_MAX)

    @asynccontextmanager
    async def watching(self, lore: Lore, *, every_seconds: float = EVERY_SECONDS) -> AsyncIterator[None]:
        """Read the counters regularly inside the block."""
        task = asyncio.create_task(self._go_on(lore, every_seconds))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _go_on(self, lore: Lore, seconds: float) -> None:
        while True:
            try:
                self._readings = await self.look(lore)
            except Exception as error:  # noqa: BLE001 - a reading that fails is missing from a chart, no more
                log.warning("counters could not be read", extra={"why": describe(error)})
            await asyncio.sleep(seconds)


async def _read(lore: Lore) -> CounterReading:
    return CounterReading(lore.now(), await asyncio.to_thread(_counters, lore))


def _counters(lore: Lore) -> dict[str, tuple[float, ...]]:
    readings = {name: (_sum(lore, *which),) for name, which in COUNTERS.items()}
    return readings | {name: _buckets(lore, series) for name, series in HISTOGRAMS.items()}


def _sum(lore: Lore, series: str, wanted: Mapping[str, str]) -> float:
    return sum(value for labels, value in _others(lore, series) if wanted.items() <= labels.items())


def _others(lore: Lore, series: str) -> Iterator[tuple[Mapping[str, str], float]]:
    """Yield a series without what the console itself asked for: open pages would hide the requests of programs."""
    for labels, value in lore.series(series):
        if not labels.get("route", "").startswith(ROOT):
            yield labels, value


def _buckets(lore: Lore, histogram: str) -> tuple[float, ...]:
    """Return the counts at or below each bound, and the total."""
    buckets = dict.fromkeys((*lore.bounds(histogram), math.inf), 0.0)
    for labels, value in _others(lore, f"{histogram}_bucket"):
        buckets[float(labels["le"])] += value
    return tuple(buckets.values())


WIDTH, HEIGHT = 320, 140
LEFT, RIGHT, TOP, BOTTOM = 52, 312, 8, 116
"""The edges of a chart between its axes."""
_POINTS = 61
_ROWS = 13
_SPANS = 2
"""Parts of an axis between its ticks."""
_MINUTES_APART = timedelta(minutes=5)

Unit = Literal["count", "rate", "seconds", "share"]
"""`rate`: a minute."""
Bounds = Mapping[str, tuple[float, ...]]
Values = tuple[float | None, ...]
Figure = Callable[[Sequence[CounterReading], Bounds], Values]
"""A value for each step from a reading to the next, None if it is unknown."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart. `pieces`: points in SVG's form, interrupted if nothing was measured. `whole`: its value over
    all the time shown. `values`: its values over equal parts of it."""

    name: str
    pieces: tuple[str, ...]
    whole: float | None
    values: Values


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `top`: the value of the upper edge; None if nothing was measured. `ticks`: the heights and values of its
    vertical axis, from 0 on."""

    name: str
    unit: Unit
    lines: tuple[Line, ...]
    top: float | None
    ticks: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Charts:
    """All charts of a page, over the same time. `times`: the ends of the parts that the lines' `values` belong to.
    `ticks`: the places and times of their horizontal axis."""

    begins: datetime
    ends: datetime
    times: tuple[datetime, ...]
    ticks: tuple[tuple[float, datetime], ...]
    all: tuple[Chart, ...]

    @property
    def to_the_second(self) -> bool:
        """Return True if the axis needs seconds to tell its times apart."""
        return self.ends - self.begins < _MINUTES_APART


def draw(readings: Sequence[CounterReading], bounds: Bounds) -> Charts | None:
    """Return the charts, or None if there are fewer than two readings. `bounds`: of the histograms among the
    counters."""
    if len(readings) < 2:
        return None
    rows = thinned(readings, _ROWS)
    charts = tuple(_chart(name, unit, figures, readings, bounds) for name, (unit, figures) in _CHARTS.items())
    begins, ends = readings[0].at, readings[-1].at
    ticks = tuple(
        (LEFT + (RIGHT - LEFT) * place / _SPANS, begins + (ends - begins) * place / _SPANS)
        for place in range(_SPANS + 1)
    )
    return Charts(begins, ends, tuple(row.at for row in rows[1:]), ticks, charts)


def _chart(
    name: str, unit: Unit, figures: Mapping[str, Figure], readings: Sequence[CounterReading], bounds: Bounds
) -> Chart:
    drawn, rows, ends = thinned(readings, _POINTS), thinned(readings, _ROWS), (readings[0], readings[-1])
    values = {line: figure(drawn, bounds) for line, figure in figures.items()}
    known = [value for series in values.values() for value in series if value is not None]
    top = (1.0 if unit == "share" else _ceiling(max(known))) if known else None
    lines = tuple(
        Line(line, _pieces(drawn, values[line], top or 1.0), figure(ends, bounds)[0], figure(rows, bounds))
        for line, figure in figures.items()
    )
    return Chart(name, unit, lines, top, _ticks(top or 0.0))


def _ceiling(value: float) -> float:
    """Return the next number that is 1, 2 or 5 times a power of ten; 0 for 0."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 5) if step * power >= value), 10 * power)


def _ticks(top: float) -> tuple[tuple[float, float], ...]:
    return tuple((_height(place / _SPANS), top * place / _SPANS) for place in range(_SPANS + 1))


def _height(part: float) -> float:
    """Return the place of a value, given as its part of the upper edge's."""
    return BOTTOM - (BOTTOM - TOP) * min(max(part, 0.0), 1.0)


def _pieces(readings: Sequence[CounterReading], values: Values, top: float) -> tuple[str, ...]:
    begin, span = readings[0].at, (readings[-1].at - readings[0].at).total_seconds()
    pieces: list[list[str]] = [[]]
    for (before, after), value in zip(pairwise(readings), values, strict=True):
        if value is None:
            pieces.append([])
            continue
        height = _height(value / top)
        for at in (after.at,) if pieces[-1] else (before.at, after.at):
            pieces[-1].append(f"{LEFT + (RIGHT - LEFT) * (at - begin).total_seconds() / span:.1f},{height:.1f}")
    return tuple(" ".join(piece) for piece in pieces if piece)


def _rate(plus: str, minus: str | None, readings: Sequence[CounterReading], bounds: Bounds) -> Values:
    grown = growth(readings, plus)
    if minus is not None:
        less = growth(readings, minus)
        grown = [(max(0.0, amount - other),) for (amount,), (other,) in zip(grown, less, strict=True)]
    return tuple(per_minute(readings, grown))


def _share(part: str, whole: str, rest: bool, readings: Sequence[CounterReading], bounds: Bounds) -> Values:
    both = zip(growth(readings, part), growth(readings, whole), strict=True)
    shares = [share(amount, of) for (amount,), (of,) in both]
    return tuple(1 - ratio if rest and ratio is not None else ratio for ratio in shares)


def _quantile(name: str, rank: float, readings: Sequence[CounterReading], bounds: Bounds) -> Values:
    return tuple(quantile(rank, bounds[name], counts) for counts in growth(readings, name))


def _rates(**lines: tuple[str, str | None]) -> tuple[Unit, Mapping[str, Figure]]:
    return "rate", {line: partial(_rate, *counters) for line, counters in lines.items()}


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


_MAX_JOBS = 100
_STALE = ("behind", "rebuilding", "missing", "other model")
_MAX_ROUTES = 20
_LOOK_SECONDS = 5.0
_WAITED = 15.0
_REQUESTS = "roomlore_http_request_seconds"


@dataclass(frozen=True, slots=True)
class Asked:
    """A route since the process began: its number of requests, of failed ones, and seconds."""

    method: str
    route: str
    count: float
    failed: float
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice of what is missing, waits or fails. `name`: of its text; `count`: a number in it; `path`: of the page
    about it. `verdict`: as of a finding, or "off" for what is not set up."""

    verdict: str
    name: str
    count: int | str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs of one kind that came to the same end, with the same error, the newest first."""

    kind: str
    status: WorkStatus
    error: str
    jobs: tuple[Job, ...]


async def health(page: Page) -> Response:
    """Return the page of this process over all tenants, as `/metrics`. Needs the scope `admin`."""
    lore = page.need("admin")
    watch: Watch = page.request.app.state.watch
    readings = await watch.look(lore)
    bounds = {name: lore.bounds(series) for name, series in HISTOGRAMS.items()}
    standing = await standing_now(lore)
    return page.show(
        "health.html",
        charts=draw(readings, bounds),
        every=round(EVERY_SECONDS),
        still=page.asked("still") == "yes",
        frame={"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT},
        told=format_value,
        routes=_routes(lore),
        notices=await notices_now(lore, standing),
        **standing,
    )


async def findings(page: Page) -> Response:
    """Return the page of what `roomlore doctor` finds, without calling an embedder, which takes time and may cost
    money."""
    lore = page.need("admin")
    work: LongWork = page.request.app.state.long_work
    findings_shown = await work.wait("doctor", lambda: lore.examine(timeout_seconds=_LOOK_SECONDS), seconds=_WAITED)
    notices = await notices_now(lore, await standing_now(lore))
    return page.show(
        "findings.html",
        inside="hx-request" in page.request.headers,
        found=findings_shown or [],
        notices=notices,
        verdict=_verdict(page, [*(findings_shown or []), *notices]),
        over=findings_shown is not None,
        told=partial(phrase, language=page.tongue.language),
        part=partial(part, language=page.tongue.language),
    )


def _verdict(page: Page, results: Sequence[Finding | Notice]) -> tuple[str, str]:
    """Return the worst of some results, and what it says over all: how many fail, or how many are only warnings."""
    verdicts = Counter(result.verdict for result in results)
    worst = "fail" if verdicts["fail"] else "warn" if verdicts["warn"] else "ok"
    return worst, page.tongue.say(f"verdict.all.{worst}", count=verdicts[worst])


_OUTCOMES = tuple(
    (lazy_pattern(form), f"outcome.{key}")
    for form, key in (
        (r"(\d+) messages? read; memories: (\d+) new, (\d+) changed, (\d+) removed, (\d+) kept\.", "evolution"),
        (r"reading (\d+) messages?$", "reading"),
        (r"asking a model about (\d+) messages$", "asking"),
        (r"asking a model to merge (\d+) short memories$", "merging"),
        (r"a memory of (\d+) messages, without a model: it is made again when one answers$", "fallback"),
        (r"a memory of (\d+) messages$", "kept"),
        (r"(\d+) messages read, nothing to keep$", "nothing"),
        (r"nothing: another process had read these messages$", "overtaken"),
        (r"summarising$", "summarising"),
        (r"checkpoint (\d+): (\d+) tokens$", "checkpoint"),
        (r"Nothing was said since the last checkpoint\.$", "unchanged"),
        (r"sent (\d+) messages of '(.*)'$", "sent"),
        (r"nothing new$", "nothing_new"),
        (r"(\d+) titles of '(.*)', up to message (\d+) of (\d+)$", "titles"),
        (r"stopped after (\d+) titles of '(.*?)': ", "titles_stopped"),
        (r"There are no new messages\.$", "no_messages"),
        (r"(\d+) messages moved to their threads, (\d+) left$", "moved"),
        (r"archived (\d+) messages; removed the raw answers of (\d+) records$", "archived"),
        (r"removing what is stored of a person$", "forgetting"),
        (r"removed or changed (\d+) entries$", "forgotten"),
        (r"removed or changed (\d+) entries; left: ", "forgotten_left"),
        (r"compacted the databases$", "compacted"),
        (r"nothing: it was done before$", "forgotten_before"),
        (r"removing what is stored of a room$", "deleting_room"),
        (r"the room is gone$", "deleted_room"),
    )
)


def outcome(progress: str, tongue: Tongue) -> tuple[str, bool]:
    """Return what came of a job in the visitor's language, and True; the text itself and False if it is another one.
    What an evolution refused follows as it is."""
    if tongue.language == "en":
        return progress, True
    for form, key in _OUTCOMES:
        if match := form.match(progress):
            return tongue.words[key].format(*match.groups()) + progress[match.end() :], True
    return in_tongue(progress, tongue)


_CLASS = lazy_pattern(r"[A-Z][A-Za-z]+: (?=\S)")
_FAILURES = tuple(
    (lazy_pattern(form), f"failure.{key}")
    for form, key in (
        (r"Every provider of the model '([^']*)' failed just now and is left alone for a while;.*", "resting"),
        (r"No provider of the model '([^']*)' can be asked: each failed lately.*", "resting"),
        (r"No provider of the model '([^']*)' can be asked.*'(?:rules|offline)'.*", "no_model"),
        (r"No provider of the model '([^']*)' can be asked.*", "no_provider"),
        (r"The provider (\S+) cannot be reached: check its base_url and the network\.$", "unreachable"),
    )
)


def failure(error: str, tongue: Tongue) -> tuple[str, bool]:
    """Return why a job failed, without the name of the exception's class, and True if it is in the visitor's language.

    What the command line can do about it is replaced by what the console can do.
    """
    sentence = _CLASS.sub("", error, count=1) if _CLASS.match(error) else error
    for form, key in _FAILURES:
        if match := form.match(sentence):
            return tongue.words[key].format(*match.groups()), True
    return in_tongue(sentence, tongue)


def format_value(value: float | None, unit: Unit) -> str:
    """Return a number for people, the same in both languages."""
    if value is None:
        return "–"
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit in ("count", "rate"):
        return (f"{value:,.0f}" if value >= 100 else f"{value:.3g}") + ("/min" if unit == "rate" else "")
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"


async def standing_now(lore: Lore) -> Mapping[str, Any]:
    """Return what is pending and what is available now."""
    # Those for roomlore's own use make the memories; one without a key is not configured.
    models = [model for model in await lore.models.list_available_models(internal=True) if model.usable]
    return {
        "jobs": await _job_counts(lore, ("waiting", "running", "failed")),
        "works_here": await lore.jobs.works_here(),
        "index": await lore.index.status(),
        "models": len(models),
        "usable": sum(not all(other.resting for other in model.providers if other.usable) for model in models),
    }


async def _job_counts(lore: Lore, statuses: Sequence[WorkStatus]) -> Mapping[str, str]:
    """Return how many jobs are in each status, '100+' for more than are counted."""
    counts = {status: len(await lore.jobs.page(status=status, limit=_MAX_JOBS)) for status in statuses}
    return {status: f"{count}+" if count == _MAX_JOBS else str(count) for status, count in counts.items()}


async def notices_now(lore: Lore, standing: Mapping[str, Any]) -> list[Notice]:
    """Return what is missing, waits or fails now, the worst first."""
    index: IndexStatus = standing["index"]
    jobs, works = standing["jobs"], standing["works_here"]
    async with lore.storage.reading() as work:
        fallbacks = len(await work.memories.fallbacks(after=None, limit=_MAX_JOBS))
    known = [
        Notice("fail", "models_down", standing["models"]) if standing["models"] and not standing["usable"] else None,
        Notice("fail", "vectors_down", 0) if index.vectors == "down" else None,
        Notice("fail", "work_failed", jobs["failed"], "/jobs?status=failed") if jobs["failed"] != "0" else None,
        Notice("warn", "nobody_works", jobs["waiting"], "/jobs?status=waiting")
        if jobs["waiting"] != "0" and not works
        else None,
        Notice("off", "no_model", 0) if not standing["models"] else None,
        Notice("warn", "fallbacks", f"{fallbacks}+" if fallbacks == _MAX_JOBS else fallbacks) if fallbacks else None,
        Notice("warn", "vectors_stale", index.waiting) if index.vectors in _STALE else None,
        Notice("warn", "links_stale", index.rooms_to_link) if index.rooms_to_link else None,
        Notice("warn", "words_stale", 0) if index.words == "rebuilding" else None,
    ]
    return [notice for notice in known if notice is not None]


def _routes(lore: Lore) -> list[Asked]:
    """Return the most requested routes, from one reading of the counters."""
    bounds = lore.bounds(_REQUESTS)
    places = {bound: place for place, bound in enumerate((*bounds, math.inf))}
    held: dict[tuple[str, str], list[float]] = {}
    failed: dict[tuple[str, str], float] = {}
    for labels, count in _others(lore, f"{_REQUESTS}_bucket"):
        route, place = (labels["method"], labels["route"]), places[float(labels["le"])]
        held.setdefault(route, [0.0] * len(places))[place] += count
        if labels["status"] == "5xx" and place == len(bounds):
            failed[route] = failed.get(route, 0.0) + count
    often = sorted(held, key=lambda route: (-held[route][-1], route))[:_MAX_ROUTES]
    return [_route_of(route, held[route], failed.get(route, 0.0), bounds) for route in often]


def _route_of(route: tuple[str, str], held: Sequence[float], failed: float, bounds: Sequence[float]) -> Asked:
    return Asked(*route, held[-1], failed, quantile(0.5, bounds, held), quantile(0.95, bounds, held))


_JOBS = 50
_STATUSES = get_args(WorkStatus)


async def listed(page: Page) -> Response:
    status: Any = page.choice("status", ("", *_STATUSES)) or None
    offset = page.number("offset") or 0
    lore = page.need("admin", "read")
    jobs = await lore.jobs.page(status=status, limit=_JOBS, offset=offset)
    await name_scopes(page, [f"group:{job.room_id}" for job in jobs if job.room_id])
    return page.show(
        "jobs.html",
        outcome=partial(outcome, tongue=page.tongue),
        failure=partial(failure, tongue=page.tongue),
        kind_named=lambda kind: page.tongue.words.get(f"job.kind.{kind}", kind),
        groups=grouped(jobs),
        chosen=status,
        counts=await _job_counts(lore, _STATUSES),
        works=await lore.jobs.works_here(),
        statuses=_STATUSES,
        retriable=RETRIABLE,
        offset=offset,
        next=offset + _JOBS if len(jobs) == _JOBS else None,
        done=page.asked("done"),
        count=_count(page.asked("count")),
    )


def _count(given: str) -> int | None:
    """Return how many jobs the form before this page retried; None for one job or another address."""
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 4 else None


def grouped(jobs: Sequence[Job]) -> list[Group]:
    """Return the jobs in groups, in the order of their newest job."""
    groups: dict[tuple[str, WorkStatus, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.kind, job.status, job.error), []).append(job)
    return [Group(*what, tuple(its)) for what, its in groups.items()]


async def retry(page: Page) -> Response:
    """Retry one job, or all that the form names; what runs or was done meanwhile is left alone."""
    jobs = page.need("admin").jobs
    named = page.form.get("ids", "").split("\n")
    if not any(named):
        await jobs.retry(page.needed("id"))
        return page.go("/jobs", status=page.form.get("status"), done="retry")
    retried = 0
    for job_id in named[:_JOBS]:
        with suppress(Conflict, NotFound):
            await jobs.retry(job_id.strip())
            retried += 1
    return page.go("/jobs", status=page.form.get("status"), done="retry", count=retried)
