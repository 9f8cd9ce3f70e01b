"""Routes of memories, with their responses, and of evolutions: begin one, wait for it, and read its result."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from inspect import Parameter
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from roomlore.core import errors
from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.requests import BegunEvolution, EvolutionResult, Mode, ReadBy, Rejected, Stats, strength_at
from roomlore.core.memory.log import TextPiece, words_diff
from roomlore.core.memory.memory import (
    Action,
    Blame,
    BlamedVersion,
    Change,
    EvolutionKind,
    Memory,
    MemoryAnswer,
    MemoryDiff,
    MemoryStatus,
    Revised,
)
from roomlore.core.models import StoredMessage
from roomlore.core.search.hits import SearchMode
from roomlore.services.jobs import Job
from roomlore.surfaces.jsonable import IF_ANY, made_from
from roomlore.verbs import memories as verbs
from roomlore.wiring import Lore
from roomlore_server.http import problems
from roomlore_server.http.answers import SuccessResponse, reply
from roomlore_server.http.derived import add_routes
from roomlore_server.http.guard import Admin, Reader
from roomlore_server.http.paths import MOST, AdminsGroup, After, EvolutionId, Group, PageLimit, Reason
from roomlore_server.http.routers import Router
from roomlore_server.shapes import model_of


@dataclass(frozen=True, kw_only=True)
class OfGroup(SuccessResponse):
    """An answer about a group. `group_id`: as it was asked for. `scope`: the scope of the group, or the scope that was
    asked for."""

    group_id: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMemory(Memory):
    """One version of a memory. `strength`: in [0, 1], as it was at `supported_at`. `strength_now`: in [0, 1]; what is
    left of `strength` now. `parent_id`: the version before; null for the first one."""

    parent_id: str | None
    strength_now: float


@dataclass(frozen=True, kw_only=True)
class MemoryPage(OfGroup):
    """A page of memories. `total`: how many there are on all pages. `memories`: the last changed first."""

    total: int
    memories: list[ListedMemory]


@dataclass(frozen=True, kw_only=True)
class OneMemory(SuccessResponse):
    """A memory."""

    memory_id: str
    memory: ListedMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMemory:
    """A memory that was found. `score`: in [0, 1]; means the same whatever it was searched with. `signals`: what the
    score is made of. `doubtful`: why it looks doubtful, empty if it does not. `valid_from`: since when it holds.
    `valid_until`: when it ends or ended."""

    memory_id: str
    statement: str
    version: int
    updated_at: datetime
    tags: tuple[str, ...]
    doubtful: str
    valid_from: datetime | None
    valid_until: datetime | None
    score: float
    signals: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class MemorySearch(OfGroup):
    """The result of a search. `mode`: by words and meaning, or by words alone. `degraded`: why less was done than asked
    for, if it was. `nothing`: why there is no result, if there is none. `results`: best first."""

    query: str
    mode: SearchMode
    degraded: str | None
    nothing: str | None
    results: list[FoundMemory]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastVersion:
    """A version of a memory. `created_at`: when the memory began. `updated_at`: when this version was made.
    `doubtful`: why it looked doubtful, empty if it did not."""

    version: int
    memory_id: str
    statement: str
    status: MemoryStatus
    created_at: datetime
    updated_at: datetime
    parent_id: str | None
    change_summary: str
    made_by: str
    doubtful: str


@dataclass(frozen=True, kw_only=True)
class MemoryHistory(SuccessResponse):
    """The versions of a memory. `memory_id`: the version in force, or the last one of a memory that was deleted.
    `history`: the first one first."""

    memory_id: str
    current_version: int
    history: list[PastVersion]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChange:
    """An entry of the log. Fields that an action does not have are left out.

    `number`: its place in the log, from 1. `memory_id`: the version that it made or touched. `old_id`: the version that
    was in force before. `old_ids`: of a merge, all of them. `new_id`: the version that it made. `statement`: what the
    memory says, if that is new or unchanged. `undoes`: the evolution that it takes back. `actor`: 'caller', a model, or
    what did it without one. `doubtful`: why its words look doubtful beside the messages that it cites.
    """

    number: int
    timestamp: datetime
    action: Action
    memory_id: str
    old_id: Annotated[str | None, IF_ANY] = None
    old_ids: Annotated[tuple[str, ...] | None, IF_ANY] = None
    new_id: Annotated[str | None, IF_ANY] = None
    statement: Annotated[str | None, IF_ANY] = None
    old_statement: Annotated[str | None, IF_ANY] = None
    new_statement: Annotated[str | None, IF_ANY] = None
    change_reason: str
    version: int
    strength: Annotated[float | None, IF_ANY] = None
    evolution_id: Annotated[str | None, IF_ANY] = None
    undoes: Annotated[str | None, IF_ANY] = None
    actor: str
    doubtful: Annotated[str | None, IF_ANY] = None


@dataclass(frozen=True, kw_only=True)
class ChangeLog(OfGroup):
    """Changes of a group's memories. `period`: from which day to which, in UTC. `changes`: in the order in which they
    happened, or with newest_first the last one first. `next`: the `after` of the next page, with newest_first its
    `before`; null at the end."""

    period: str
    changes: list[LoggedChange]
    next: int | None


@dataclass(frozen=True, kw_only=True)
class Evolved(OfGroup):
    """The result of an evolution. `message`: why nothing was done; empty if something was. `messages`: how many were
    read. `remaining`: how many new ones are still to be read. `rejected`: what of the model's answer was not followed,
    and why. `mode`: who read: a model, rules alone (`offline`), or nobody, as there was nothing to read (`none`).
    `model`: what answered; empty without a model."""

    evolution_id: str
    evolution_time: datetime
    stats: Stats
    changes: list[LoggedChange]
    message: str
    messages: int
    remaining: int
    rejected: tuple[Rejected, ...]
    mode: ReadBy
    model: str


@dataclass(frozen=True, kw_only=True)
class Evolving(OfGroup):
    """An evolution in progress. `Location` is the address of its job; /memory/evolution has the result."""

    evolution_id: str
    job_id: str
    status: Literal["waiting", "running"]
    message: str


@dataclass(frozen=True, kw_only=True)
class MemoriesThen(OfGroup):
    """The memories of a group as of a time. `memories`: the oldest memory first."""

    at: datetime
    total: int
    memories: list[ListedMemory]


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisedMemory:
    """A memory that says something else now. `words`: the statement word by word."""

    before: ListedMemory
    after: ListedMemory
    words: Sequence[TextPiece]
    changes: list[LoggedChange]


@dataclass(frozen=True, kw_only=True)
class MemoryDifference(OfGroup):
    """The difference between the memories of a group at two times."""

    start: datetime
    end: datetime
    added: list[ListedMemory]
    removed: list[ListedMemory]
    changed: list[RevisedMemory]
    unchanged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBy:
    """The evolution that made a version. The model's answer is at /memory/evolution."""

    evolution_id: str
    kind: EvolutionKind
    room_id: str
    messages: int
    prompt_name: str
    prompt_hash: str
    model: str
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportingMessage:
    """A message that supports a memory. `message`: null if it was deleted or archived since, or is not known here.
    `archive_id`: the archive that holds it."""

    room_id: str
    message_id: str
    message: StoredMessage | None
    archive_id: Annotated[str | None, IF_ANY] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedMemory:
    """A version of a memory. `evolution`: null if a caller made it, or if the record is gone. `evidence`: the messages
    that this version added."""

    memory: ListedMemory
    change: LoggedChange | None
    evolution: MadeBy | None
    evidence: list[SupportingMessage]


@dataclass(frozen=True, kw_only=True)
class MemoryOrigin(SuccessResponse):
    """The origin of a memory. `memory_id`: the version in force. `versions`: every version that it goes back to, the
    newest first."""

    memory_id: str
    versions: list[BlamedMemory]


@dataclass(frozen=True, kw_only=True)
class Reverted(SuccessResponse):
    """An evolution that was undone. `message`: why nothing was done; empty if something was."""

    evolution_id: str
    changes: list[LoggedChange]
    message: str


def listed(one: Memory, lore: Lore) -> ListedMemory:
    now = strength_at(one, lore.now())
    return made_from(ListedMemory, one, strength_now=round(now, 6))


def each_listed(memories: Iterable[Memory], lore: Lore) -> list[ListedMemory]:
    return [listed(memory, lore) for memory in memories]


def one_memory(memory: Memory, lore: Lore) -> OneMemory:
    return OneMemory(memory_id=memory.memory_id, memory=listed(memory, lore))


def logged(change: Change) -> LoggedChange:
    return LoggedChange(
        number=change.number,
        timestamp=change.at,
        action=change.action,
        memory_id=change.memory.memory_id,
        change_reason=change.reason,
        version=change.memory.version,
        strength=change.memory.strength if change.action is Action.STRENGTH else None,
        evolution_id=change.evolution_id,
        undoes=change.undoes,
        actor=change.actor,
        doubtful=change.memory.doubtful or None,
        **_change_fields(change),
    )


def each_logged(changes: Iterable[Change]) -> list[LoggedChange]:
    return [logged(change) for change in changes]


def _change_fields(change: Change) -> dict[str, Any]:
    """Return the versions before and after a change, with their statements."""
    here, closed = change.memory, change.closes
    if change.action in (Action.STRENGTH, Action.REDACT, Action.SHARE):
        return {"statement": here.statement}
    if here.status is MemoryStatus.DEPRECATED:
        return {"old_id": here.memory_id, "old_statement": here.statement}
    if not closed:
        return {"new_id": here.memory_id, "statement": here.statement}
    several = {"old_ids": closed} if len(closed) > 1 else {}
    old = {"old_id": closed[0], "old_statement": change.old_statement}
    return {**old, **several, "new_id": here.memory_id, "new_statement": here.statement}


def evolved(request: Request, group_id: str, result: EvolutionResult) -> Evolved:
    changes, message = each_logged(result.changes), problems.in_language(request.scope, result.message)
    return made_from(Evolved, result, group_id=group_id, evolution_time=result.at, changes=changes, message=message)


def _revised(revised: Revised, lore: Lore) -> RevisedMemory:
    return RevisedMemory(
        before=listed(revised.before, lore),
        after=listed(revised.after, lore),
        words=words_diff(revised.before.statement, revised.after.statement),
        changes=each_logged(revised.changes),
    )


def blamed(version: BlamedVersion, lore: Lore) -> BlamedMemory:
    return BlamedMemory(
        memory=listed(version.memory, lore),
        change=None if version.change is None else logged(version.change),
        evolution=None if version.evolution is None else made_from(MadeBy, version.evolution),
        evidence=[
            made_from(
                SupportingMessage, supporting.source, message=supporting.message, archive_id=supporting.archive_id
            )
            for supporting in version.evidence
        ],
    )


def _period(since: datetime, now: datetime) -> str:
    return f"{since:%Y-%m-%d} to {now:%Y-%m-%d}"


Asked = Mapping[str, Any]


memory_router = Router(prefix="/memory", tags=["memory"])


_MAX_DAYS = 3_650
_GROUP = {"scope": "group_id"}


def _page(lore: Lore, page: verbs.MemoriesOf, arguments: Asked) -> MemoryPage:
    memories = each_listed(page.memories, lore)
    return MemoryPage(group_id=arguments["scope"], scope=page.scope, total=page.total, memories=memories)


async def _most(
    lore: Reader,
    limit: Annotated[
        int, Query(ge=1, le=MOST, description="Maximum number of memories; at most the setting max_page.")
    ] = 20,
) -> int:
    return min(limit, lore.settings.limits.max_page)


def _search_of(_: Lore, answer: MemoryAnswer, arguments: Asked) -> MemorySearch:
    results = [made_from(FoundMemory, hit.memory, score=hit.score, signals=hit.signals) for hit in answer.hits]
    return made_from(MemorySearch, answer, group_id=arguments["scope"], results=results)


def _versions(_: Lore, versions: Sequence[Memory], arguments: Asked) -> MemoryHistory:
    history = [made_from(PastVersion, version) for version in versions]
    now = next((version for version in versions if version.status is MemoryStatus.ACTIVE), versions[-1])
    return MemoryHistory(memory_id=now.memory_id, current_version=now.version, history=history)


@memory_router.get("/changes/{group_id:id}")
async def memory_changes(
    lore: Admin,
    group: AdminsGroup,
    limit: PageLimit,
    days: Annotated[float, Query(gt=0, le=_MAX_DAYS, description="Those of the last so many days.")] = 7,
    after: After = 0,
    newest_first: Annotated[
        bool, Query(description="The last change first; `before` then pages, not `after`.")
    ] = False,
    before: Annotated[
        int | None, Query(ge=1, le=MOST, description="With newest_first: only those with a number below this one.")
    ] = None,
) -> ChangeLog:
    """Return the changes of a group's memories in the last seven days, or `days`, in order; with `newest_first` the
    last change first."""
    if newest_first and after:
        raise InvalidInput("after_with_newest_first")
    if before is not None and not newest_first:
        raise InvalidInput("before_without_newest_first")
    now, scope = lore.now(), group.scope
    since = now - timedelta(days=days)
    await lore.rooms.check_there(scope)
    if newest_first:
        entries = await lore.memories.latest_changes(scope, before=before, limit=limit, since=since)
    else:
        entries = await lore.memories.changes(scope, after=after, limit=limit, since=since)
    following = entries[-1].number if len(entries) == limit else None
    period, changes = _period(since, now), each_logged(entries)
    return ChangeLog(group_id=group.group_id, scope=scope, period=period, changes=changes, next=following)


def _then(lore: Lore, memories_then: verbs.MemoriesThen, arguments: Asked) -> MemoriesThen:
    return made_from(
        MemoriesThen, memories_then, group_id=arguments["scope"], memories=each_listed(memories_then.memories, lore)
    )


def _difference(lore: Lore, diff: MemoryDiff, arguments: Asked) -> MemoryDifference:
    return made_from(
        MemoryDifference,
        diff,
        group_id=arguments["scope"],
        added=each_listed(diff.added, lore),
        removed=each_listed(diff.removed, lore),
        changed=[_revised(revised, lore) for revised in diff.changed],
    )


def _origin(lore: Lore, blame: Blame, arguments: Asked) -> MemoryOrigin:
    return MemoryOrigin(
        memory_id=blame.memory.memory_id, versions=[blamed(version, lore) for version in blame.versions]
    )


def _memory_of(lore: Lore, memory: Memory, arguments: Asked) -> OneMemory:
    return one_memory(memory, lore)


def _reverted(_: Lore, done: Sequence[Change], arguments: Asked) -> Reverted:
    message = "" if done else "There is nothing to take back: it was reverted before, or it changed nothing."
    return Reverted(evolution_id=arguments["evolution_id"], changes=each_logged(done), message=message)


_REASON: Mapping[str, Any] = {"reason": (Reason, None)}
add_routes(
    memory_router,
    verbs.VERBS,
    {
        "memories.list": {
            "name": "list_memories",
            "shown": _page,
            "gives": MemoryPage,
            "names": _GROUP,
            "also": {"limit": (Annotated[int, Depends(_most)], Parameter.empty)},
        },
        "memories.search": {
            "name": "search_memories",
            "shown": _search_of,
            "gives": MemorySearch,
            "names": _GROUP | {"query": "q"},
        },
        "memories.history": {"name": "memory_history", "shown": _versions, "gives": MemoryHistory},
        "memories.as_of": {"name": "memories_as_of", "shown": _then, "gives": MemoriesThen, "names": _GROUP},
        "memories.diff": {
            "name": "diff_memories",
            "shown": _difference,
            "gives": MemoryDifference,
            "names": _GROUP | {"start": "from", "end": "to"},
        },
        "memories.blame": {"name": "blame_memory", "shown": _origin, "gives": MemoryOrigin},
        "memories.delete": {"name": "delete_memory", "shown": _memory_of, "gives": OneMemory},
        "memories.strength": {"name": "set_strength", "shown": _memory_of, "gives": OneMemory},
        "memories.restore": {"name": "restore_memory", "shown": _memory_of, "gives": OneMemory, "also": _REASON},
        "memories.revert": {"name": "revert_evolution", "shown": _reverted, "gives": Reverted, "also": _REASON},
        "memories.visible": None,
    },
)


evolutions = Router(prefix="/memory", tags=["memory"])

_MAX_WAITED = 30.0
_LATER: dict[int | str, dict[str, Any]] = {
    202: {"model": model_of(Evolving), "description": "It is not done yet; Location says where to ask."}
}


@evolutions.post("/evolve/{group_id:id}", responses=_LATER)
async def evolve(
    request: Request,
    lore: Admin,
    group: AdminsGroup,
    days: Annotated[float, Query(gt=0, le=3_650, description="How far back a group's first evolution reads.")] = 1,
    mode: Annotated[Mode, Query(description="`llm`, `rules` (or `offline`), or `auto`: `llm` if set up.")] = "auto",
    wait: Annotated[
        float, Query(ge=0, le=_MAX_WAITED, description="Maximum number of seconds to wait for it.")
    ] = _MAX_WAITED,
) -> Evolved | Response:
    """Read the group's messages since the last evolution and update its memories."""
    begun = await lore.memories.begin_evolution(group.scope, days=days, mode=mode)
    try:
        job = await lore.jobs.wait(begun.job_id, wait)
    except errors.NotFound as error:
        raise _dropped() from error
    return await _answer(request, lore, group, begun, job)


@evolutions.get("/evolution/{evolution_id:id}")
async def get_evolution(request: Request, lore: Admin, evolution_id: EvolutionId) -> Evolved:
    """Return the result of an evolution. Answers 404 if it is not done or had nothing to read."""
    result = await lore.memories.evolved(evolution_id)
    return evolved(request, result.scope.removeprefix("group:"), result)


async def _answer(request: Request, lore: Lore, group: Group, begun: BegunEvolution, job: Job) -> Evolved | Response:
    if job.status in ("waiting", "running"):
        return _later(request, group, begun, job)
    if job.status == "cancelled":
        raise _dropped()
    if job.status != "done":
        raise _failure(job)
    return evolved(request, group.group_id, await _result(lore, group.scope, begun, job))


def _later(request: Request, group: Group, begun: BegunEvolution, job: Job) -> Response:
    sentence = job.progress or f"It is {job.status}; ask for the job, then for the evolution."
    message = problems.in_language(request.scope, sentence)
    answer = reply(
        made_from(Evolving, begun, group_id=group.group_id, scope=group.scope, status=job.status, message=message),
        202,
    )
    answer.headers["Location"] = f"/jobs/{quote(begun.job_id, safe='')}"
    return answer


async def _result(lore: Lore, scope: str, begun: BegunEvolution, job: Job) -> EvolutionResult:
    """Return the recorded result, or one that says that there was nothing to read."""
    try:
        return await lore.memories.evolved(begun.evolution_id)
    except errors.NotFound:
        return EvolutionResult(
            evolution_id=begun.evolution_id,
            scope=scope,
            mode="none",
            at=job.updated_at,
            message=job.progress or "There are no new messages.",
            stats=Stats(),
        )


def _dropped() -> errors.Conflict:
    """Return the error: forgetting a person drops waiting work of the rooms in which they wrote."""
    return errors.Conflict("evolution_dropped")


def _failure(job: Job) -> errors.RoomloreError:
    """Return the job's error as it would have been raised here."""
    name, _, detail = job.error.partition(": ")
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.RoomloreError):
        return kind(detail or None)
    return errors.RoomloreError("evolution_not_done", status=job.status)
