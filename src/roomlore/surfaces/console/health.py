"""How this service is: what it measured lately, as small charts; what waits; and what `roomlore doctor` finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from starlette.responses import Response

from roomlore.core.health import worst
from roomlore.core.measured import quantile
from roomlore.surfaces.console import doctor_words
from roomlore.surfaces.console.charts import HEIGHT, WIDTH, Unit, draw
from roomlore.surfaces.console.frame import Page
from roomlore.surfaces.console.measuring import EVERY_SECONDS, HISTOGRAMS, Watch
from roomlore.surfaces.long_work import LongWork
from roomlore.wiring import Lore

_MOST_JOBS = 100
_MOST_ROUTES = 20
_LOOK_SECONDS = 5.0
_WAITED = 15.0
_REQUESTS = "roomlore_http_request_seconds"


@dataclass(frozen=True, slots=True)
class Asked:
    """A route since the process began: how often it was asked for, how often it broke, and seconds."""

    method: str
    route: str
    count: float
    failed: float
    p50: float | None
    p95: float | None


async def health(page: Page) -> Response:
    """Of this process and over all tenants, as `/metrics`: for who has the scope `admin`."""
    lore = page.need("admin")
    watch: Watch = page.request.app.state.watch
    readings = await watch.look(lore)
    bounds = {name: lore.bounds(series) for name, series in HISTOGRAMS.items()}
    return page.show(
        "health.html",
        charts=draw(readings, bounds),
        begun=watch.begun,
        every=round(EVERY_SECONDS),
        still=page.asked("still") == "yes",
        width=WIDTH,
        height=HEIGHT,
        told=told,
        routes=_routes(lore),
        **await _standing(lore),
    )


async def findings(page: Page) -> Response:
    """What `roomlore doctor` finds, but that no embedder is asked: that takes its time, and a provider may charge."""
    lore = page.need("admin")
    work: LongWork = page.request.app.state.long_work
    found = await work.wait("doctor", lambda: lore.examine(timeout_seconds=_LOOK_SECONDS), seconds=_WAITED)
    return page.show(
        "findings.html",
        found=found or [],
        verdict=worst(found or []),
        over=found is not None,
        told=partial(doctor_words.told, language=page.tongue.language),
        part=partial(doctor_words.part, language=page.tongue.language),
    )


def told(value: float | None, unit: Unit) -> str:
    """A number for people, in both languages alike."""
    if value is None:
        return "–"
    if unit == "share":
        return f"{100 * value:.0f} %"
    if unit == "count":
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.3g} ms"


async def _standing(lore: Lore) -> Mapping[str, Any]:
    """What waits, and what can be asked, just now."""
    models = await lore.models.list_available_models()
    jobs = {
        status: len(await lore.jobs.page(status=status, limit=_MOST_JOBS))
        for status in ("waiting", "running", "failed")
    }
    return {
        "jobs": {status: f"{count}+" if count == _MOST_JOBS else str(count) for status, count in jobs.items()},
        "works_here": await lore.jobs.works_here(),
        "index": await lore.index.status(),
        "models": len(models),
        "usable": sum(one.usable and not all(other.resting for other in one.providers) for one in models),
    }


def _routes(lore: Lore) -> list[Asked]:
    """Those asked for most, over one look at the counters."""
    bounds = lore.bounds(_REQUESTS)
    places = {bound: place for place, bound in enumerate((*bounds, inf))}
    held: dict[tuple[str, str], list[float]] = {}
    failed: dict[tuple[str, str], float] = {}
    for labels, count in lore.series(f"{_REQUESTS}_bucket"):
        route, place = (labels["method"], labels["route"]), places[float(labels["le"])]
        held.setdefault(route, [0.0] * len(places))[place] += count
        if labels["status"] == "5xx" and place == len(bounds):
            failed[route] = failed.get(route, 0.0) + count
    often = sorted(held, key=lambda route: (-held[route][-1], route))[:_MOST_ROUTES]
    return [_asked(route, held[route], failed.get(route, 0.0), bounds) for route in often]


def _asked(route: tuple[str, str], held: Sequence[float], failed: float, bounds: Sequence[float]) -> Asked:
    return Asked(*route, held[-1], failed, quantile(0.5, bounds, held), quantile(0.95, bounds, held))
