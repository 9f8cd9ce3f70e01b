"""Routes of memories, with their responses."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.requests import EvolutionResult, strength_at
from roomlore.core.memory.memory import (
    Action,
    BlamedVersion,
    Change,
    Evidence,
    Evolution,
    Memory,
    MemoryDiff,
    MemoryKind,
    MemoryStatus,
    Revised,
)
from roomlore.core.memory.words_diff import words_diff
from roomlore.core.memory.writing import MAX_REASON, scope_of
from roomlore.services.memory_search import MAX_QUERY_CHARS
from roomlore.surfaces.http import bodies
from roomlore.surfaces.http.fact_routes import FactView
from roomlore.surfaces.http.guard import Reader, Writer
from roomlore.surfaces.http.message_routes import MessageView, Moment, read_time
from roomlore.surfaces.http.paths import MOST, After, EvolutionId, GroupId, MemoryId, PageLimit, Reason
from roomlore.surfaces.http.problems import reply
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

Did = Literal["create", "update", "merge", "delete", "restore", "revert", "strength", "redact", "share"]


class Told(BaseModel):
    """A response of /memory. `success` is true; failures are answered with a problem."""

    success: Literal[True]


class OfGroup(Told):
    group_id: str = Field(description="As it was asked for.")
    scope: str = Field(description="group:<group_id>, or the scope that was asked for.")


class ListedMemory(FactView):
    """One version of a memory. `strength`: in [0, 1], as it was at `supported_at`."""

    parent_id: str | None = Field(description="The version before; null for the first one.")
    strength_now: float = Field(description="In [0, 1]: what is left of `strength` now.")


class MemoryPage(OfGroup):
    total: int = Field(description="How many there are on all pages.")
    memories: list[ListedMemory] = Field(description="The last changed first.")


class OneMemory(Told):
    memory_id: str
    memory: ListedMemory


class FoundMemory(BaseModel):
    memory_id: str
    statement: str
    score: float = Field(description="In [0, 1]; means the same whatever it was searched with.")
    version: int
    updated_at: datetime
    tags: list[str]
    signals: dict[str, float] = Field(description="What the score is made of.")


class MemorySearch(OfGroup):
    query: str
    mode: Literal["hybrid", "lexical"] = Field(description="By words and meaning, or by words alone.")
    degraded: str | None = Field(description="Why less was done than asked for, if it was.")
    results: list[FoundMemory] = Field(description="Best first.")


class PastVersion(BaseModel):
    version: int
    memory_id: str
    statement: str
    status: Literal["active", "deprecated"]
    created_at: datetime = Field(description="When the memory began.")
    updated_at: datetime = Field(description="When this version was made.")
    parent_id: str | None
    change_summary: str
    made_by: str


class MemoryHistory(Told):
    memory_id: str = Field(description="The version in force, or the last one of a memory that was deleted.")
    current_version: int
    history: list[PastVersion] = Field(description="The first one first.")


class ChangeView(BaseModel):
    """An entry of the log. Fields that an action does not have are left out."""

    model_config = ConfigDict(extra="forbid")

    number: int = Field(description="Its place in the log, from 1.")
    timestamp: datetime
    action: Did
    memory_id: str = Field(description="The version that it made or touched.")
    old_id: str | None = Field(None, description="The version that was in force before.")
    old_ids: list[str] | None = Field(None, description="Of a merge: all of them.")
    new_id: str | None = Field(None, description="The version that it made.")
    statement: str | None = Field(None, description="Where what it says stayed as it was, or is new.")
    old_statement: str | None = None
    new_statement: str | None = None
    change_reason: str
    version: int
    strength: float | None = None
    evolution_id: str | None = None
    undoes: str | None = Field(None, description="The evolution that it takes back.")
    actor: str = Field(description="caller, a model, or what did it without one.")


class ChangeLog(OfGroup):
    period: str = Field(description="From which day to which, in UTC.", examples=["2025-01-08 to 2025-01-15"])
    changes: list[ChangeView] = Field(
        description="In the order in which they happened, or with newest_first the last one first."
    )
    next: int | None = Field(
        description="The `after` of the next page, with newest_first its `before`; null at the end."
    )


class Counts(BaseModel):
    kept: int
    updated: int = Field(description="Merges too.")
    created: int
    deleted: int


class RejectedLine(BaseModel):
    line: int = Field(description="Of the model's answer, from 1.")
    text: str = Field(description="The beginning of it.")
    reason: str


class Evolved(OfGroup):
    """The result of an evolution."""

    evolution_id: str
    evolution_time: datetime
    stats: Counts
    changes: list[ChangeView]
    message: str = Field(description="Why nothing was done; empty where something was.")
    messages: int = Field(description="How many were read.")
    remaining: int = Field(description="How many new ones are still to be read.")
    rejected: list[RejectedLine] = Field(description="What of the model's answer was not followed, and why.")
    mode: Literal["llm", "offline", "auto"] = Field(description="Who read: a model, or nobody but rules.")
    model: str = Field(description="What answered; empty without a model.")


class Evolving(OfGroup):
    """An evolution in progress. `Location` is the address of its job; /memory/evolution has the result."""

    evolution_id: str
    job_id: str
    status: Literal["waiting", "running"]
    message: str


class MemoriesThen(OfGroup):
    at: datetime
    total: int
    memories: list[ListedMemory] = Field(description="The oldest memory first.")


class PieceView(BaseModel):
    became: Literal["same", "gone", "new"]
    text: str


class RevisedView(BaseModel):
    before: ListedMemory
    after: ListedMemory
    words: list[PieceView] = Field(description="The statement word by word.")
    changes: list[ChangeView]


class MemoryDiffView(OfGroup):
    start: datetime
    end: datetime
    added: list[ListedMemory]
    removed: list[ListedMemory]
    changed: list[RevisedView]
    unchanged: int


class MadeBy(BaseModel):
    """The evolution that made a version. The model's answer is at /memory/evolution."""

    evolution_id: str
    kind: Literal["extraction", "evolution"]
    room_id: str
    messages: int
    prompt_name: str
    prompt_hash: str
    model: str
    started_at: datetime
    finished_at: datetime


class EvidenceView(BaseModel):
    room_id: str
    message_id: str
    message: MessageView | None = Field(description="Null where it was deleted since, or is not known here.")


class BlamedView(BaseModel):
    memory: ListedMemory
    change: ChangeView | None
    evolution: MadeBy | None = Field(description="Null where a caller made it, or where the record is gone.")
    evidence: list[EvidenceView] = Field(description="The messages that this version added.")


class BlameView(Told):
    memory_id: str = Field(description="The version in force.")
    versions: list[BlamedView] = Field(description="Every version that it goes back to, the newest first.")


class Reverted(Told):
    evolution_id: str
    changes: list[ChangeView]
    message: str = Field(description="Why nothing was done; empty where something was.")


_MADE_BY = (
    "evolution_id", "kind", "room_id", "messages", "prompt_name", "prompt_hash", "model", "started_at", "finished_at",
)  # fmt: skip


def memory_body(one: Memory, lore: Lore) -> dict[str, Any]:
    now = strength_at(one, lore.now(), lore.settings.evolution.strength_half_life_days)
    return {**plain(one), "parent_id": one.parent_id, "strength_now": round(now, 6)}


def memory_bodies(found: Iterable[Memory], lore: Lore) -> list[dict[str, Any]]:
    return [memory_body(one, lore) for one in found]


def version_body(one: Memory) -> dict[str, Any]:
    """Return a version of a history."""
    names = ("version", "memory_id", "statement", "status", "created_at", "updated_at", "parent_id")
    return {name: plain(getattr(one, name)) for name in (*names, "change_summary", "made_by")}


def current_body(versions: list[Memory]) -> Memory:
    """Return the version in force, or the last one of a deleted memory."""
    return next((one for one in versions if one.status is MemoryStatus.ACTIVE), versions[-1])


def change_body(one: Change) -> dict[str, Any]:
    """Return an entry of the log, without fields that it does not have."""
    told = {
        "number": one.number,
        "timestamp": plain(one.at),
        "action": one.action.value,
        "memory_id": one.memory.memory_id,
        **_said(one),
        "change_reason": one.reason,
        "version": one.memory.version,
        "strength": one.memory.strength if one.action is Action.STRENGTH else None,
        "evolution_id": one.evolution_id,
        "undoes": one.undoes,
        "actor": one.actor,
    }
    return {name: value for name, value in told.items() if value is not None}


def change_bodies(found: Iterable[Change]) -> list[dict[str, Any]]:
    return [change_body(one) for one in found]


def _said(one: Change) -> dict[str, Any]:
    """Return the versions before and after a change, with their statements."""
    here, closed = one.memory, list(one.closes)
    if one.action in (Action.STRENGTH, Action.REDACT, Action.SHARE):
        return {"statement": here.statement}
    if here.status is MemoryStatus.DEPRECATED:
        return {"old_id": here.memory_id, "old_statement": here.statement}
    if not closed:
        return {"new_id": here.memory_id, "statement": here.statement}
    several = {"old_ids": closed} if len(closed) > 1 else {}
    old = {"old_id": closed[0], "old_statement": one.old_statement}
    return {**old, **several, "new_id": here.memory_id, "new_statement": here.statement}


def evolved_body(group_id: str, result: EvolutionResult) -> dict[str, Any]:
    return {
        "success": True,
        "group_id": group_id,
        "scope": result.scope,
        "evolution_id": result.evolution_id,
        "evolution_time": plain(result.at),
        "stats": plain(result.stats),
        "changes": change_bodies(result.changes),
        "message": result.message,
        "messages": result.messages,
        "remaining": result.remaining,
        "rejected": plain(result.rejected),
        "mode": result.mode,
        "model": result.model,
    }


def difference_body(found: MemoryDiff, lore: Lore) -> dict[str, Any]:
    return {
        "start": plain(found.start),
        "end": plain(found.end),
        "added": memory_bodies(found.added, lore),
        "removed": memory_bodies(found.removed, lore),
        "changed": [_revised(one, lore) for one in found.changed],
        "unchanged": found.unchanged,
    }


def _revised(one: Revised, lore: Lore) -> dict[str, Any]:
    return {
        "before": memory_body(one.before, lore),
        "after": memory_body(one.after, lore),
        "words": plain(words_diff(one.before.statement, one.after.statement)),
        "changes": change_bodies(one.changes),
    }


def blamed_body(one: BlamedVersion, lore: Lore) -> dict[str, Any]:
    return {
        "memory": memory_body(one.memory, lore),
        "change": None if one.change is None else change_body(one.change),
        "evolution": None if one.evolution is None else _made_by(one.evolution),
        "evidence": [_evidence(found) for found in one.evidence],
    }


def _made_by(one: Evolution) -> dict[str, Any]:
    return {name: plain(getattr(one, name)) for name in _MADE_BY}


def _evidence(found: Evidence) -> dict[str, Any]:
    return {**plain(found.source), "message": plain(found.message)}


def period_body(since: datetime, now: datetime) -> str:
    return f"{since:%Y-%m-%d} to {now:%Y-%m-%d}"


memory_router = APIRouter(prefix="/memory", tags=["memory"])

_MOST_DAYS = 3_650


@memory_router.get("/list/{group_id:id}", response_model=MemoryPage)
async def list_memories(
    lore: Reader,
    group_id: GroupId,
    kind: Annotated[list[MemoryKind] | None, Query(description="By default every kind; may be repeated.")] = None,
    status: Annotated[Literal["active", "deprecated", "all"], Query(description="Which ones.")] = "active",
    limit: Annotated[int, Query(ge=1, le=MOST, description="Most memories; at most the setting max_page.")] = 20,
    offset: Annotated[int, Query(ge=0, le=MOST, description="How many were shown before.")] = 0,
) -> Response:
    """Return the memories of a group, the newest version of each, the last changed first."""
    scope, kinds = scope_of(group_id), tuple(kind or MemoryKind)
    most = min(limit, lore.settings.limits.max_page)
    page = await lore.memories.page(scope, kinds=kinds, status=status, limit=most, offset=offset)
    total = await lore.memories.count(scope, kinds=kinds, status=status)
    return reply({**_of(group_id), "total": total, "memories": memory_bodies(page, lore)})


@memory_router.get("/search/{group_id:id}", response_model=MemorySearch)
async def search_memories(
    lore: Reader,
    group_id: GroupId,
    q: Annotated[
        str, Query(description="A few words or a question. Needed.", json_schema_extra={"maxLength": MAX_QUERY_CHARS})
    ] = "",
    limit: Annotated[int, Query(ge=1, le=200, description="Most memories.")] = 5,
    threshold: Annotated[float, Query(ge=0, le=1, description="Only those with this score or a higher one.")] = 0.7,
) -> Response:
    """Return the memories of a group that answer a question, best first."""
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


@memory_router.get("/history/{memory_id:id}", response_model=MemoryHistory)
async def memory_history(lore: Reader, memory_id: MemoryId) -> Response:
    """Return every version of a memory, the first one first."""
    versions = await lore.memories.history(memory_id)
    now = current_body(versions)
    history = [version_body(one) for one in versions]
    return reply({"success": True, "memory_id": now.memory_id, "current_version": now.version, "history": history})


@memory_router.get("/changes/{group_id:id}", response_model=ChangeLog)
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
    """Return the changes of a group's memories, in order; with `newest_first` the last change first."""
    now, scope = lore.now(), scope_of(group_id)
    since = now - timedelta(days=days)
    if newest_first:
        found = await lore.memories.latest_changes(scope, before=before, limit=limit, since=since)
    else:
        found = await lore.memories.changes(scope, after=after, limit=limit, since=since)
    following = found[-1].number if len(found) == limit else None
    told = {"period": period_body(since, now), "changes": change_bodies(found), "next": following}
    return reply({**_of(group_id), **told})


@memory_router.get("/as-of/{group_id:id}", response_model=MemoriesThen)
async def memories_as_of(
    lore: Reader,
    group_id: GroupId,
    at: Annotated[
        str,
        Query(
            description="ISO 8601 or a Unix time; without a zone it is UTC. Needed.",
            json_schema_extra=dict(bodies.MOMENT),
        ),
    ] = "",
) -> Response:
    """Return the memories of a group as of a time."""
    moment = _needed("at", at, "/memory/as-of/tea?at=2024-05-01T12:00:00Z")
    found = await lore.memories.as_of(scope_of(group_id), moment)
    told = {"at": plain(moment), "total": len(found), "memories": memory_bodies(found, lore)}
    return reply({**_of(group_id), **told})


@memory_router.get("/diff/{group_id:id}", response_model=MemoryDiffView)
async def diff_memories(
    lore: Reader,
    group_id: GroupId,
    start: Annotated[
        str,
        Query(alias="from", description="ISO 8601 or a Unix time. Needed.", json_schema_extra=dict(bodies.MOMENT)),
    ] = "",
    end: Annotated[Moment | None, Query(alias="to", description="By default now.")] = None,
) -> Response:
    """Return the difference between the memories of a group at two times."""
    first = _needed("from", start, "/memory/diff/tea?from=2024-05-01&to=2024-06-01")
    found = await lore.memories.diff(scope_of(group_id), first, read_time("to", end))
    return reply({**_of(group_id), **difference_body(found, lore)})


@memory_router.get("/blame/{memory_id:id}", response_model=BlameView)
async def blame_memory(lore: Reader, memory_id: MemoryId) -> Response:
    """Return the messages and evolutions that made a memory."""
    found = await lore.memories.blame(memory_id)
    versions = [blamed_body(one, lore) for one in found.versions]
    return reply({"success": True, "memory_id": found.memory.memory_id, "versions": versions})


@memory_router.delete("/{memory_id:id}", response_model=OneMemory)
async def delete_memory(
    lore: Writer,
    memory_id: MemoryId,
    reason: Reason = "",
    expected: Annotated[str | None, Query(description="The id of the version that you saw.")] = None,
) -> Response:
    """Deprecate a memory: it stays in the history. Deleting it again changes nothing."""
    gone = await lore.memories.delete(memory_id, reason, expected=expected)
    return reply({"success": True, "memory_id": gone.memory_id, "memory": memory_body(gone, lore)})


class ReasonRequest(bodies.Body):
    """The reason of a change."""

    reason: str = Field("", description="Why, for the history.", json_schema_extra={"maxLength": MAX_REASON})


ReasonBody = Annotated[ReasonRequest, Depends(bodies.body_if_any_of(ReasonRequest))]
_REASON_BODY = bodies.documented(ReasonRequest, required=False)


@memory_router.put("/{memory_id:id}/restore", response_model=OneMemory, openapi_extra=_REASON_BODY)
async def restore_memory(lore: Writer, memory_id: MemoryId, body: ReasonBody, reason: Reason = "") -> Response:
    """Bring a version back into force, in place of the version in force of that memory. `reason` may be in the query or
    in a body."""
    back = await lore.memories.restore(memory_id, reason or body.reason)
    return reply({"success": True, "memory_id": back.memory_id, "memory": memory_body(back, lore)})


class StrengthRequest(ReasonRequest):
    """The new strength of a memory; it fades from there."""

    strength: float = Field(ge=0, le=1, description="In [0, 1].")


@memory_router.put(
    "/{memory_id:id}/strength",
    response_model=OneMemory,
    openapi_extra=bodies.documented(StrengthRequest),
)
async def set_strength(
    lore: Writer,
    memory_id: MemoryId,
    wanted: Annotated[StrengthRequest, Depends(bodies.body_of(StrengthRequest))],
) -> Response:
    """Set the strength of a memory."""
    done = await lore.memories.strength(memory_id, wanted.strength, wanted.reason)
    return reply({"success": True, "memory_id": done.memory_id, "memory": memory_body(done, lore)})


@memory_router.post("/revert/{evolution_id:id}", response_model=Reverted, openapi_extra=_REASON_BODY)
async def revert_evolution(
    lore: Writer,
    evolution_id: EvolutionId,
    body: ReasonBody,
    reason: Reason = "",
) -> Response:
    """Undo an evolution, by new changes of the log. `reason` may be in the query or in a body."""
    done = await lore.memories.revert(evolution_id, reason or body.reason)
    message = "" if done else "There is nothing to take back: it was reverted before, or it changed nothing."
    changes = change_bodies(done)
    return reply({"success": True, "evolution_id": evolution_id, "changes": changes, "message": message})


def _of(group_id: str) -> dict[str, object]:
    return {"success": True, "group_id": group_id, "scope": scope_of(group_id)}


def _needed(name: str, text: str, example: str) -> datetime:
    moment = read_time(name, text or None)
    if moment is None:
        raise InvalidInput(f"{name} is missing: give a day or a time, as in {example}.")
    return moment
