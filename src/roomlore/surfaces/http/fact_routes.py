"""Facts over HTTP: what is remembered of a person, an agent or a group, added and changed by hand."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.intake import NewMemory
from roomlore.core.memory.models import MemoryKind
from roomlore.surfaces.http import bodies, fact_bodies, fact_views
from roomlore.surfaces.http.chat_bodies import inlined
from roomlore.surfaces.http.guard import Reader, Writer
from roomlore.surfaces.http.json_bounds import Bounds
from roomlore.surfaces.http.paths import MOST, PageLimit
from roomlore.surfaces.http.replies import reply
from roomlore.surfaces.plain import plain

facts = APIRouter(tags=["facts"])

FactId = Annotated[str, Path(description="The id of any version of it, percent-encoded.")]

_ONE = inlined(fact_bodies.FactForm.model_json_schema())
_ADDED = bodies.described({"anyOf": [_ONE, inlined(fact_bodies.FactsRequest.model_json_schema())]})
_CHANGED = bodies.described(inlined(fact_bodies.FactChange.model_json_schema()))


@facts.post("/facts", response_model=fact_views.AddedFacts, openapi_extra=_ADDED)
async def add_facts(lore: Writer, wanted: Annotated[list[NewMemory], Depends(fact_bodies.facts_of)]) -> Response:
    """Adds one fact, or `{"facts": [...]}`, in one transaction. What is there already, under its id or in its words, is
    not added again."""
    done = await lore.memories.add_all(wanted)
    return reply({"facts": [{**plain(one.memory), "outcome": one.outcome} for one in done]})


@facts.get("/facts", response_model=fact_views.FactPage)
async def list_facts(
    lore: Reader,
    limit: PageLimit,
    scope: Annotated[str, Query(description="Whom they are about: user:<id>, agent:<id> or group:<id>. Needed.")] = "",
    kind: Annotated[list[MemoryKind] | None, Query(description="By default fact; may be repeated.")] = None,
    status: Annotated[Literal["active", "deprecated", "all"], Query(description="Which ones.")] = "active",
    offset: Annotated[int, Query(ge=0, le=MOST, description="The `next` of the page before; 0 begins.")] = 0,
) -> Response:
    """What is remembered of a scope, the last changed first."""
    if not scope:
        raise InvalidInput("scope is missing: say whose facts, as in /facts?scope=user:anna.")
    kinds = tuple(kind or (MemoryKind.FACT,))
    page = await lore.memories.page(scope, kinds=kinds, status=status, limit=limit, offset=offset)
    total = await lore.memories.count(scope, kinds=kinds, status=status)
    following = offset + len(page)
    return reply({"facts": plain(page), "total": total, "next": following if page and following < total else None})


@facts.get("/facts/{memory_id:id}", response_model=fact_views.FactView)
async def get_fact(lore: Reader, memory_id: FactId) -> Response:
    """The version that is in force, whichever version the id is of; the last one of a fact that was deleted."""
    return reply(plain(await lore.memories.head(memory_id)))


@facts.patch("/facts/{memory_id:id}", response_model=fact_views.FactView, openapi_extra=_CHANGED)
async def change_fact(
    lore: Writer,
    memory_id: FactId,
    change: Annotated[fact_bodies.FactChange, Depends(bodies.body_of(fact_bodies.FactChange, within=Bounds.bulk))],
) -> Response:
    """Makes a new version, which has an id of its own; the one before stays in the history."""
    changed = await lore.memories.update(
        memory_id,
        statement=change.statement,
        confidence=change.wanted_confidence(),
        category=change.category,
        tags=change.tags,
        sources=change.wanted_sources(),
        expected=change.expected,
        reason=change.reason,
    )
    return reply(plain(changed))


@facts.delete("/facts/{memory_id:id}", status_code=204, response_class=Response)
async def delete_fact(
    lore: Writer,
    memory_id: FactId,
    reason: Annotated[str, Query(description="Why, for the history.")] = "",
    expected: Annotated[str | None, Query(description="The id of the version that you saw.")] = None,
) -> Response:
    """Deprecates a fact: it stays in the history. Deleting it again changes nothing."""
    await lore.memories.delete(memory_id, reason, expected=expected)
    return Response(status_code=204)


@facts.get("/facts/{memory_id:id}/history", response_model=fact_views.FactHistory)
async def fact_history(lore: Reader, memory_id: FactId) -> Response:
    """Every version of a fact, the first one first."""
    return reply({"versions": plain(await lore.memories.history(memory_id))})
