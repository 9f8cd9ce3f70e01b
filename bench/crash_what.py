"""The work of the process that `crash` kills: the parts that differ."""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Protocol

from bench import (
    crash_checks,
    crash_forgetting,
    crash_items,
    crash_model,
    crash_report,
    crash_stored,
    crash_victim,
    evolution_checks,
    evolution_items,
    evolution_model,
    evolution_report,
    evolution_stored,
    evolution_victim,
)
from bench.crash_checks import Known
from bench.crash_model import Request, Requests
from bench.crash_report import Life
from bench.crash_victim import Task

_LATE_REQUESTS = 20


class Named(Protocol):
    """A room."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class What:
    """`rooms`: that something is handed in to. `live`: the life of a process that is killed. `model`: what it asks,
    made from the seed. `moment`: the first instant at or after the given one that kills are aimed at: the end of a
    model's answer, or the beginning of a forgetting. `read`: what is stored, from a fresh opening; `is_settled`:
    whether nothing is left to be done. `violations`: what must not be, a line each. `where`: what a life was at when it
    was killed. `report`: prints what was done."""

    rooms: Sequence[Named]
    live: Callable[[Connection, Task], None]
    model: Callable[[int], Requests]
    moment: Callable[[Life, Sequence[Request], float], float | None]
    read: Callable[[str], Coroutine[Any, Any, Any]]
    is_settled: Callable[[str], Coroutine[Any, Any, bool]]
    violations: Callable[[Known, Any], list[str]]
    where: Callable[[Life, Sequence[Request]], Iterator[str]]
    report: Callable[[Sequence[Life], Known, Any], None]


def answered(*kinds: str) -> Callable[[Life, Sequence[Request], float], float | None]:
    """Return the moment at which an answer of a kind is complete, of all kinds in turn."""

    def moment(life: Life, requests: Sequence[Request], after: float) -> float | None:
        kind = kinds[life.number % len(kinds)]
        late = (
            request for request in requests[-_LATE_REQUESTS:] if (request.kind, request.life) == (kind, life.number)
        )
        return min(
            (request.answered_at for request in late if request.answered_at and request.answered_at >= after),
            default=None,
        )

    return moment


WHATS: Mapping[str, What] = {
    "replies": What(
        rooms=crash_items.ROOMS,
        live=crash_victim.live,
        model=crash_model.ScriptedModel,
        moment=answered("reply", "memory"),
        read=crash_stored.read,
        is_settled=crash_stored.is_settled,
        violations=crash_checks.violations,
        where=crash_report.where,
        report=crash_report.report,
    ),
    "evolution": What(
        rooms=evolution_items.ROOMS,
        live=evolution_victim.live,
        model=evolution_model.ScriptedModel,
        moment=answered("evolution"),
        read=evolution_stored.read,
        is_settled=evolution_stored.is_settled,
        violations=evolution_checks.violations,
        where=evolution_report.where,
        report=evolution_report.report,
    ),
    "forgetting": What(
        rooms=crash_forgetting.LANES,
        live=crash_forgetting.live,
        model=crash_model.ScriptedModel,
        moment=crash_forgetting.forgetting,
        read=crash_forgetting.read,
        is_settled=crash_forgetting.is_settled,
        violations=crash_forgetting.violations,
        where=crash_forgetting.where,
        report=crash_forgetting.report,
    ),
}
