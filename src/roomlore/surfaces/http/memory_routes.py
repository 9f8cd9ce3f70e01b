"""What is remembered, over HTTP: looking at it, searching it, its past, and going back."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field
from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.intake import MAX_REASON, scope_of
from roomlore.core.memory.models import MemoryKind
from roomlore.surfaces.http import bodies, memory_answers, memory_views
from roomlore.surfaces.http.guard import Reader, Writer
from roomlore.surfaces.http.paths import MOST, After, PageLimit
from roomlore.surfaces.http.replies import reply
from roomlore.surfaces.http.search_routes import read_time
from roomlore.surfaces.plain import plain

memories = APIRouter(prefix="/memory", tags=["memory"])

_MOST_DAYS = 3_650

GroupId = Annotated[
    str, Path(description="The group's id, percent-encoded; or a scope such as user:anna, for what is known of anna.")
]
MemoryId = Annotated[str, Path(description="The id of any version of it, percent-encoded.")]
Reason = Annotated[str, Query(description="Why, for the history.")]


@memories.get("/list/{group_id:id}", response_model=memory_views.MemoryPage)
async def list_memories(
    lore: Reader,
    group_id: GroupId,
    kind: Annotated[list[MemoryKind] | None, Query(description="By default every kind; may be repeated.")] = None,
    status: Annotated[Literal["active", "deprecated", "all"], Query(description="Which ones.")] = "active",
    limit: Annotated[int, Query(ge=1, le=MOST, description="Most memories; at most the setting max_page.")] = 20,
    offset: Annotated[int, Query(ge=0, le=MOST, description="How many were shown before.")] = 0,
) -> Response:
    """What is remembered of a group, the newest version of each memory, the last changed first."""
    scope, kinds = scope_of(group_id), tuple(kind or MemoryKind)
    most = min(limit, lore.settings.max_page)
    page = await lore.memories.page(scope, kinds=kinds, status=status, limit=most, offset=offset)
    total = await lore.memories.count(scope, kinds=kinds, status=status)
    return reply({**_of(group_id), "total": total, "memories": memory_answers.memories(page, lore)})


@memories.get("/search/{group_id:id}", response_model=memory_views.MemorySearch)
async def search_memories(
    lore: Reader,
    group_id: GroupId,
    q: Annotated[str, Query(description="A few words or a question. Needed.")] = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Most memories.")] = 5,
    threshold: Annotated[float, Query(ge=0, le=1, description="Only those with this score or a higher one.")] = 0.7,
) -> Response:
    """The memories of a group that say something about a question, best first."""
    if not q:
        raise InvalidInput("q is missing: say what to look for, as in /memory/search/tea?q=green+tea.")
    answer = await lore.memories.search(group_id, q, limit=limit, threshold=threshold)
    names = ("memory_id", "statement", "version", "updated_at", "tags")
    results = [
        {
            **{name: plain(getattr(hit.memory, name)) for name in names},
            "score": hit.score,
            "signals": plain(hit.signals),
        }
        for hit in answer.hits
    ]
    told = {"query": answer.query, "mode": answer.mode, "degraded": answer.degraded, "results": results}
    return reply({**_of(group_id), **told})


@memories.get("/history/{memory_id:id}", response_model=memory_views.MemoryHistory)
async def memory_history(lore: Reader, memory_id: MemoryId) -> Response:
    """Every version of a memory, the first one first."""
    versions = await lore.memories.history(memory_id)
    now = memory_answers.current(versions)
    history = [memory_answers.version(one) for one in versions]
    return reply({"success": True, "memory_id": now.memory_id, "current_version": now.version, "history": history})


@memories.get("/changes/{group_id:id}", response_model=memory_views.ChangeLog)
async def memory_changes(
    lore: Reader,
    group_id: GroupId,
    limit: PageLimit,
    days: Annotated[float, Query(gt=0, le=_MOST_DAYS, description="Those of the last so many days.")] = 7,
    after: After = 0,
    newest_first: Annotated[
        bool, Query(description="The last change first; `before` then pages, not `after`.")
    ] = False,
    before: Annotated[
        int | None, Query(ge=1, le=MOST, description="With newest_first: only those with a number below this one.")
    ] = None,
) -> Response:
    """What changed in what is remembered of a group, in order; with `newest_first` the last change first."""
    now, scope = lore.now(), scope_of(group_id)
    since = now - timedelta(days=days)
    if newest_first:
        found = await lore.memories.latest_changes(scope, before=before, limit=limit, since=since)
    else:
        found = await lore.memories.changes(scope, after=after, limit=limit, since=since)
    following = found[-1].number if len(found) == limit else None
    told = {"period": memory_answers.period(since, now), "changes": memory_answers.changes(found), "next": following}
    return reply({**_of(group_id), **told})


@memories.get("/as-of/{group_id:id}", response_model=memory_views.MemoriesThen)
async def memories_as_of(
    lore: Reader,
    group_id: GroupId,
    at: Annotated[str, Query(description="ISO 8601 or a Unix time; without a zone it is UTC. Needed.")] = "",
) -> Response:
    """What was remembered of a group at a time."""
    moment = _needed("at", at, "/memory/as-of/tea?at=2024-05-01T12:00:00Z")
    found = await lore.memories.as_of(scope_of(group_id), moment)
    told = {"at": plain(moment), "total": len(found), "memories": memory_answers.memories(found, lore)}
    return reply({**_of(group_id), **told})


@memories.get("/diff/{group_id:id}", response_model=memory_views.MemoryDiffView)
async def diff_memories(
    lore: Reader,
    group_id: GroupId,
    start: Annotated[str, Query(alias="from", description="ISO 8601 or a Unix time. Needed.")] = "",
    end: Annotated[str | None, Query(alias="to", description="By default now.")] = None,
) -> Response:
    """What is remembered of a group at one time that was not at another, and the other way round."""
    first = _needed("from", start, "/memory/diff/tea?from=2024-05-01&to=2024-06-01")
    found = await lore.memories.diff(scope_of(group_id), first, read_time("to", end))
    return reply({**_of(group_id), **memory_answers.difference(found, lore)})


@memories.get("/blame/{memory_id:id}", response_model=memory_views.BlameView)
async def blame_memory(lore: Reader, memory_id: MemoryId) -> Response:
    """Which messages and which evolutions made a memory."""
    found = await lore.memories.blame(memory_id)
    versions = [memory_answers.blamed(one, lore) for one in found.versions]
    return reply({"success": True, "memory_id": found.memory.memory_id, "versions": versions})


@memories.delete("/{memory_id:id}", response_model=memory_views.OneMemory)
async def delete_memory(
    lore: Writer,
    memory_id: MemoryId,
    reason: Reason = "",
    expected: Annotated[str | None, Query(description="The id of the version that you saw.")] = None,
) -> Response:
    """Deprecates a memory: it stays in the history. Deleting it again changes nothing."""
    gone = await lore.memories.delete(memory_id, reason, expected=expected)
    return reply({"success": True, "memory_id": gone.memory_id, "memory": memory_answers.memory(gone, lore)})


class ReasonRequest(bodies.Body):
    """Why something is done."""

    reason: str = Field("", max_length=8 * MAX_REASON, description="Why, for the history.")


ReasonBody = Annotated[ReasonRequest, Depends(bodies.body_if_any_of(ReasonRequest))]
_REASON_BODY = bodies.documented(ReasonRequest, required=False)


@memories.put("/{memory_id:id}/restore", response_model=memory_views.OneMemory, openapi_extra=_REASON_BODY)
async def restore_memory(lore: Writer, memory_id: MemoryId, body: ReasonBody, reason: Reason = "") -> Response:
    """Brings a version back into force, in the place of what is in force of that memory. `reason` may stand in the
    query or in a body."""
    back = await lore.memories.restore(memory_id, reason or body.reason)
    return reply({"success": True, "memory_id": back.memory_id, "memory": memory_answers.memory(back, lore)})


class StrengthRequest(ReasonRequest):
    """How strong a memory is from now on; it fades from there."""

    strength: float = Field(ge=0, le=1, description="In [0, 1].")


@memories.put(
    "/{memory_id:id}/strength",
    response_model=memory_views.OneMemory,
    openapi_extra=bodies.documented(StrengthRequest),
)
async def set_strength(
    lore: Writer,
    memory_id: MemoryId,
    wanted: Annotated[StrengthRequest, Depends(bodies.body_of(StrengthRequest))],
) -> Response:
    """Sets how strong a memory is."""
    done = await lore.memories.strength(memory_id, wanted.strength, wanted.reason)
    return reply({"success": True, "memory_id": done.memory_id, "memory": memory_answers.memory(done, lore)})


@memories.post("/revert/{evolution_id:id}", response_model=memory_views.Reverted, openapi_extra=_REASON_BODY)
async def revert_evolution(
    lore: Writer,
    evolution_id: Annotated[str, Path(description="The evolution's id, percent-encoded.")],
    body: ReasonBody,
    reason: Reason = "",
) -> Response:
    """Takes back what an evolution did, as new changes of the log. `reason` may stand in the query or in a body."""
    done = await lore.memories.revert(evolution_id, reason or body.reason)
    message = "" if done else "There is nothing to take back: it was reverted before, or it changed nothing."
    changes = memory_answers.changes(done)
    return reply({"success": True, "evolution_id": evolution_id, "changes": changes, "message": message})


def _of(group_id: str) -> dict[str, object]:
    return {"success": True, "group_id": group_id, "scope": scope_of(group_id)}


def _needed(name: str, text: str, example: str) -> datetime:
    moment = read_time(name, text or None)
    if moment is None:
        raise InvalidInput(f"{name} is missing: give a day or a time, as in {example}.")
    return moment
