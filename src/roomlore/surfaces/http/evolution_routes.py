"""Routes of evolutions: begin one, wait for it, and read its result."""

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query
from starlette.responses import Response

from roomlore.core import errors
from roomlore.core.evolution.requests import BegunEvolution, EvolutionResult, Mode, Stats
from roomlore.core.memory.writing import scope_of
from roomlore.services.jobs import Job
from roomlore.surfaces.http.answers import Router, reply
from roomlore.surfaces.http.guard import Admin
from roomlore.surfaces.http.memory_routes import Evolved, Evolving, evolved
from roomlore.surfaces.http.paths import EvolutionId, GroupId
from roomlore.surfaces.jsonable import made_from
from roomlore.surfaces.shapes import model_of
from roomlore.wiring import Lore

evolutions = Router(prefix="/memory", tags=["memory"])

_MAX_WAITED = 30.0
_LATER: dict[int | str, dict[str, Any]] = {
    202: {"model": model_of(Evolving), "description": "It is not done yet; Location says where to ask."}
}


@evolutions.post("/evolve/{group_id:id}", responses=_LATER)
async def evolve(
    lore: Admin,
    group_id: GroupId,
    days: Annotated[float, Query(gt=0, le=3_650, description="How far back a group's first evolution reads.")] = 1,
    mode: Annotated[Mode, Query(description="`llm`, `offline` (rules), or `auto`: `llm` if set up.")] = "auto",
    wait: Annotated[float, Query(ge=0, le=_MAX_WAITED, description="Most seconds to wait for it.")] = _MAX_WAITED,
) -> Evolved | Response:
    """Read the group's messages since the last evolution and update its memories."""
    begun = await lore.memories.begin_evolution(group_id, days=days, mode=mode)
    try:
        job = await lore.jobs.wait(begun.job_id, wait)
    except errors.NotFound as error:
        raise _dropped() from error
    return await _answer(lore, group_id, begun, job)


@evolutions.get("/evolution/{evolution_id:id}")
async def get_evolution(lore: Admin, evolution_id: EvolutionId) -> Evolved:
    """Return the result of an evolution. Answers 404 if it is not done or had nothing to read."""
    result = await lore.memories.evolved(evolution_id)
    return evolved(result.scope.removeprefix("group:"), result)


async def _answer(lore: Lore, group_id: str, begun: BegunEvolution, job: Job) -> Evolved | Response:
    if job.status in ("waiting", "running"):
        return _later(group_id, begun, job)
    if job.status == "cancelled":
        raise _dropped()
    if job.status != "done":
        raise _failure(job)
    return evolved(group_id, await _result(lore, group_id, begun, job))


def _later(group_id: str, begun: BegunEvolution, job: Job) -> Response:
    message = job.progress or f"It is {job.status}; ask for the job, then for the evolution."
    answer = reply(
        made_from(Evolving, begun, group_id=group_id, scope=scope_of(group_id), status=job.status, message=message), 202
    )
    answer.headers["Location"] = f"/jobs/{quote(begun.job_id, safe='')}"
    return answer


async def _result(lore: Lore, group_id: str, begun: BegunEvolution, job: Job) -> EvolutionResult:
    """Return the recorded result, or one that says that there was nothing to read."""
    try:
        return await lore.memories.evolved(begun.evolution_id)
    except errors.NotFound:
        return EvolutionResult(
            evolution_id=begun.evolution_id,
            scope=scope_of(group_id),
            mode="auto",
            at=job.updated_at,
            message=job.progress or "There are no new messages.",
            stats=Stats(),
        )


def _dropped() -> errors.Conflict:
    """Return the error: forgetting a person drops waiting work of the rooms in which they wrote."""
    return errors.Conflict(
        "The evolution was dropped before it was done, as work of this group is while somebody who spoke there is being"
        " forgotten. Nothing was changed; ask again."
    )


def _failure(job: Job) -> errors.RoomloreError:
    """Return the job's error as it would have been raised here."""
    name, _, said = job.error.partition(": ")
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.RoomloreError):
        return kind(said or None)
    return errors.RoomloreError(
        f"The evolution {job.status}; the log says where. `roomlore jobs retry` tries it again."
    )
