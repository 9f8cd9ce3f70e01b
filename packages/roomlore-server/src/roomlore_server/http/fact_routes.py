"""Routes of facts and of their recall, with their requests and responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends
from pydantic import BaseModel, Field, WithJsonSchema
from starlette.requests import Request

from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.writing import MAX_BATCH, NewMemory
from roomlore.core.recall.recollection import MAX_SCOPES, RecallRequest, Recollection
from roomlore.surfaces.shapes import request_of, values_of
from roomlore.verbs import facts as verbs
from roomlore_server.http import bodies
from roomlore_server.http.bodies import Body, Bounds, read_json, validated
from roomlore_server.http.derived import SCOPE_BOUNDS, RoomNames, add_routes, body_of, resolved
from roomlore_server.http.guard import Reader, ShownTo, Writer
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

    facts: list[verbs.AddedFact]


facts = Router(tags=["facts"])


@facts.post("/facts", openapi_extra=bodies.described({"anyOf": [FactForm, FactsRequest]}))
async def add_facts(lore: Writer, viewer: ShownTo, wanted: Annotated[list[Any], Depends(facts_of)]) -> AddedFacts:
    """Add one fact, or `{"facts": [...]}`, in one transaction. A fact that exists, by its id or in the same words, is
    not added again. A viewer may cite the messages that it may see; without one, a fact
    that a room adds was said there now, and one that a person or an administrator adds is for all."""
    called = RoomNames(lore, viewer)
    given = [await resolved(verbs.ADD, one.model_dump(exclude_unset=True), lore, called) for one in wanted]
    return AddedFacts(facts=await verbs.add_all(lore, viewer, [NewMemory(**one) for one in given]))


add_routes(
    facts,
    verbs.VERBS,
    {
        "facts.list": {"name": "list_facts"},
        "facts.get": {"name": "get_fact"},
        "facts.change": {"name": "change_fact"},
        "facts.delete": {"name": "delete_fact", "status_code": 204},
        "facts.history": {"name": "fact_history"},
    },
)


recall = Router(tags=["facts"])

Scope = Annotated[str, Field(**SCOPE_BOUNDS)]

_MAX_TOKENS = 10_000_000
_MAX_TURNS = 10_000
_MAX_MESSAGES = 5_000  # more would exceed the limit of values in a body


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


class _Recall(bodies.Body):
    """The scopes to recall from, and the conversation. Fields that are left out have the values of the settings."""

    scopes: list[Scope] = Field(
        max_length=MAX_SCOPES, description="Whom the facts are about: user:<id>, agent:<id> or group:<id or name>."
    )
    messages: list[Annotated[dict[str, Any], WithJsonSchema(dict(_MESSAGE))]] = Field(
        [], max_length=_MAX_MESSAGES, description="The conversation, the newest last, in OpenAI's form."
    )


_Weight = Annotated[float | None, Field(ge=0, le=1)]
RecallBody = request_of(
    RecallRequest,
    _Recall,
    {
        "max_tokens": Annotated[
            int | None, Field(ge=0, le=_MAX_TOKENS, description="Maximum number of tokens of the block.")
        ],
        "max_context_turns": Annotated[
            int | None,
            Field(ge=0, le=_MAX_TURNS, description="How many of the last turns the facts are recalled for."),
        ],
        "similarity_weight": _Weight,
        "confidence_weight": _Weight,
        "kinds": Annotated[list[Literal["fact", "group", "short"]], Field(description="Which memories.")],
        "conversation_id": Annotated[
            str | None,
            Field(
                min_length=1,
                max_length=MAX_ID_CHARS,
                description="What was shown in it stays as long as relevance has not clearly changed.",
            ),
        ],
        "previous": Annotated[
            list[str] | None, Field(description="The ids of the facts shown before, if you keep them.")
        ],
        "include_ended": Annotated[
            bool, Field(description="Also what is no longer valid, for conversations about the past.")
        ],
    },
    name="RecallRequest",
    without=("viewer",),
)


@recall.post(
    "/recall",
    openapi_extra=bodies.described(RecallBody),
)
async def recall_facts(
    lore: Reader, viewer: ShownTo, wanted: Annotated[_Recall, Depends(bodies.body_of(RecallBody))]
) -> Recollection:
    """Return the facts and group memories that matter for a conversation, ranked, and the block of text that holds them
    within a token budget."""
    scopes = [await lore.rooms.scope_named(scope, viewer=viewer) for scope in wanted.scopes]
    return await lore.recall.build(scopes, wanted.messages, viewer=viewer, **values_of(RecallRequest, wanted))
