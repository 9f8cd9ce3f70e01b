"""Routes of facts and of their recall, with their requests and responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from pydantic import BaseModel, Field
from starlette.requests import Request

from roomlore.core.memory.versions import AddedFact
from roomlore.core.memory.writing import MAX_BATCH, NewMemory
from roomlore.verbs import facts as verbs
from roomlore.verbs.recall import RECALL
from roomlore_server.http import bodies
from roomlore_server.http.bodies import Body, Bounds, read_json, validated
from roomlore_server.http.derived import RoomNames, add_route, add_routes, body_of, resolved
from roomlore_server.http.guard import ShownTo, Writer
from roomlore_server.http.routers import Router

FactForm = body_of(verbs.ADD)


class FactsRequest(Body):
    """Several facts to add."""

    facts: list[FactForm] = Field(  # type: ignore[valid-type]
        min_length=1, max_length=MAX_BATCH
    )


async def facts_of(request: Request) -> list[BaseModel]:
    """Return the facts of the body: one fact, or `{"facts": [...]}`."""
    return await read_json(request, _facts, within=Bounds.bulk)


def _facts(value: Any) -> list[BaseModel]:
    if isinstance(value, dict) and "facts" in value:
        return list(validated(FactsRequest, value).facts)
    return [validated(FactForm, value)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFacts:
    """The current fact for each fact of the request, in the same order."""

    facts: list[AddedFact]


facts = Router(tags=["facts"])


@facts.post("/facts", openapi_extra=bodies.described({"anyOf": [FactForm, FactsRequest]}))
async def add_facts(lore: Writer, viewer: ShownTo, wanted: Annotated[list[Any], Depends(facts_of)]) -> AddedFacts:
    """Add one fact, or `{"facts": [...]}`, in one transaction. A fact that exists, by its id or in the same words, is
    not added again. A viewer may cite the messages that it may see; without one, a fact
    that a room adds was said there now, and one that a person or an administrator adds is for all."""
    called = RoomNames(lore, viewer)
    given = [await resolved(verbs.ADD, fact.model_dump(exclude_unset=True), lore, called) for fact in wanted]
    return AddedFacts(facts=await lore.memories.add_told([NewMemory(**fact) for fact in given], viewer=viewer))


add_routes(
    facts,
    verbs.VERBS,
    {
        "facts.list": {"name": "list_facts"},
        "facts.get": {"name": "get_fact"},
        "facts.change": {"name": "change_fact", "bulk": True},
        "facts.delete": {"name": "delete_fact", "status_code": 204},
        "facts.history": {"name": "fact_history"},
    },
)


recall = Router(tags=["facts"])

_MESSAGE: Mapping[str, Any] = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["user", "assistant", "system", "tool", "developer", "function"]},
        "content": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": ["object", "string"]}}, {"type": "null"}]
        },
        "name": {"description": "memory_context: a block of memories, which is left out."},
        "tool_calls": {"description": "Empty or not: a message that calls tools is left out."},
    },
}


def _with_messages(schema: dict[str, Any]) -> None:
    schema["properties"]["messages"]["items"] = dict(_MESSAGE)


add_route(recall, RECALL, "recall_facts", schema=_with_messages)
