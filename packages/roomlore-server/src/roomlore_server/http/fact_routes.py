"""Routes of facts and of their recall, with their requests and responses."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator
from starlette.requests import Request

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.memory import MAX_SCOPE_CHARS, SCOPE_PATTERN, Memory, MemoryKind, Source, Status
from roomlore.core.memory.writing import (
    KEEP,
    MAX_BATCH,
    MAX_LABEL,
    MAX_PEOPLE,
    MAX_REASON,
    MAX_SOURCES,
    MAX_STATEMENT,
    MAX_TAGS,
    Edit,
    NewMemory,
)
from roomlore.core.recall.recollection import MAX_SCOPES, RecallRequest, Recollection
from roomlore.surfaces.jsonable import made_from
from roomlore.surfaces.shapes import request_of, values_of
from roomlore.wiring import Lore
from roomlore_server.http import bodies
from roomlore_server.http.bodies import Body, Bounds, TimeOrDay, needs_one, read_json, validated
from roomlore_server.http.guard import Reader, ShownTo, Writer
from roomlore_server.http.memory_routes import STATUS, ChangeableMemory
from roomlore_server.http.paths import MOST, MemoryId, PageLimit, Reason
from roomlore_server.http.routers import Router

_SCOPE = "Whom it is about: user:<id>, agent:<id> or group:<id or name>."
Scope = Annotated[str, Field(min_length=1, max_length=MAX_SCOPE_CHARS, json_schema_extra={"pattern": SCOPE_PATTERN})]
# The limit counts graphemes, which a schema cannot: these are the most code points that always fit.
Statement = Annotated[str, Field(min_length=1, json_schema_extra={"maxLength": MAX_STATEMENT, "pattern": r"\S"})]
Label = Annotated[str, Field(json_schema_extra={"maxLength": MAX_LABEL})]
Tag = Annotated[str, Field(json_schema_extra={"maxLength": MAX_LABEL, "pattern": r"\S"})]


Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]


class _Part(BaseModel):
    """A message that supports a fact."""

    model_config = ConfigDict(extra="forbid", strict=True)


SourceForm = request_of(Source, _Part, {"room_id": Id, "message_id": Id}, name="SourceForm")


Sources = Annotated[list[SourceForm], Field(max_length=MAX_SOURCES)]  # type: ignore[valid-type]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS)]
Confidence = Annotated[float | None, Field(ge=0, le=1)]
Person = Annotated[str, Field(max_length=MAX_ID_CHARS)]
People = Annotated[list[Id], Field(max_length=MAX_PEOPLE)]


_ENDS = (
    "When it ends; then only who asks for the past is shown it. A day counts to its end in the zone of the setting "
    "time_zone."
)


class _Fact(Body):
    """A fact to add."""


FactForm = request_of(
    NewMemory,
    _Fact,
    {
        "scope": Annotated[Scope, Field(description=_SCOPE)],
        "statement": Annotated[Statement, Field(description="What is to be remembered.")],
        "kind": Literal["fact", "group", "short"],
        "confidence": Annotated[Confidence, Field(description="Null: nobody said.")],
        "category": Label,
        "tags": Tags,
        "owner": Annotated[
            Person, Field(description="The id of the person whom it is about; by default the person of a user's scope.")
        ],
        "said_by": Annotated[People, Field(description="Who said it, beside the senders of the sources.")],
        "valid_from": Annotated[TimeOrDay, Field(description="Since when it holds; a day counts from its beginning.")],
        "valid_until": Annotated[TimeOrDay, Field(description=_ENDS)],
        "sources": Annotated[
            Sources, Field(description="The messages that support it, each with the id or the name of its room.")
        ],
        "memory_id": Annotated[
            str | None,
            Field(
                min_length=1,
                max_length=MAX_ID_CHARS,
                description="An id of your own makes the call safe to repeat.",
                json_schema_extra={"pattern": r"^[^\x00]+$"},
            ),
        ],
    },
    name="FactForm",
    without=("evidence", "created_at", "updated_at", "made_by", "reason"),
)


def _new(form: BaseModel) -> NewMemory:
    return NewMemory(**values_of(NewMemory, form))


class FactsRequest(Body):
    """Several facts to add."""

    facts: list[FactForm] = Field(  # type: ignore[valid-type]
        min_length=1, max_length=MAX_BATCH
    )


async def facts_of(request: Request) -> list[NewMemory]:
    """Return the facts of the body: one fact, or `{"facts": [...]}`."""
    return await read_json(request, _facts, within=Bounds.bulk)


def _facts(value: Any) -> list[NewMemory]:
    if isinstance(value, dict) and "facts" in value:
        return list(map(_new, validated(FactsRequest, value).facts))
    return [_new(validated(FactForm, value))]


_CONTENT = tuple(one.name for one in fields(Edit))


_REMOVABLE = tuple(one.name for one in fields(Edit) if one.default is KEEP)


def _change_schema(schema: dict[str, Any]) -> None:
    """Mark the fields that can be removed as nullable: null is a change too."""
    some = needs_one(*(name for name in _CONTENT if name not in _REMOVABLE))
    some["allOf"][0]["anyOf"] += [{"required": [name]} for name in _REMOVABLE]
    schema.update(some)


class _Change(Body):
    """A change of a fact. Fields that are left out stay. A null confidence or time is removed; other null fields
    stay."""

    model_config = ConfigDict(json_schema_extra=_change_schema)

    @model_validator(mode="after")
    def _something(self) -> "_Change":
        removed = self.model_fields_set.intersection(_REMOVABLE)
        if not removed and all(getattr(self, name) is None for name in _CONTENT):
            raise ValueError(f"give at least one of {', '.join(_CONTENT)}")
        return self


FactChange = request_of(
    Edit,
    _Change,
    {
        "statement": Statement | None,
        "confidence": Confidence,
        "category": Label | None,
        "tags": Tags | None,
        "owner": Person | None,
        "said_by": People | None,
        "valid_from": TimeOrDay,
        "valid_until": Annotated[TimeOrDay, Field(description=_ENDS)],
        "sources": Sources | None,
    },
    name="FactChange",
    also={
        "expected": (
            Annotated[
                str | None,
                Field(description="The id of the version that you saw; another one in force is a 409."),
            ],
            None,
        ),
        "reason": (
            Annotated[str, Field(description="Why, for the history.", json_schema_extra={"maxLength": MAX_REASON})],
            "",
        ),
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFact(Memory):
    """The current version of a fact of the request. `outcome`: unchanged if it was there already, under this id or in
    these words."""

    outcome: Literal["added", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFacts:
    """The current fact for each fact of the request, in the same order."""

    facts: list[AddedFact]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPage:
    """A page of facts. `total`: how many there are on all pages. `next`: the `offset` of the next page; null at the
    end."""

    facts: Sequence[Memory]
    total: int
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHistory:
    """The versions of a fact, the first one first."""

    versions: Sequence[Memory]


facts = Router(tags=["facts"])


@facts.post("/facts", openapi_extra=bodies.described({"anyOf": [FactForm, FactsRequest]}))
async def add_facts(lore: Writer, viewer: ShownTo, wanted: Annotated[list[NewMemory], Depends(facts_of)]) -> AddedFacts:
    """Add one fact, or `{"facts": [...]}`, in one transaction. A fact that exists, by its id or in the same words, is
    not added again. A viewer may cite the messages that it may see; without one, a fact
    that a room adds was said there now, and one that a person or an administrator adds is for all."""
    wanted = await _with_ids(lore, wanted, viewer)
    done = await lore.memories.add_all(await lore.memories.check_new(wanted, viewer))
    told = await lore.memories.as_told([one.memory for one in done], viewer)
    facts = [made_from(AddedFact, memory, outcome=one.outcome) for memory, one in zip(told, done, strict=True)]
    return AddedFacts(facts=facts)


async def _with_ids(lore: Lore, wanted: Sequence[NewMemory], viewer: str | None) -> list[NewMemory]:
    """Return new facts with the ids of rooms in place of their names."""
    scopes = {one: await lore.rooms.scope_named(one, viewer=viewer) for one in {new.scope for new in wanted}}
    rooms = await _rooms_of([source for new in wanted for source in new.sources], lore, viewer)
    return [
        replace(new, scope=scopes[new.scope], sources=[replace(one, room_id=rooms[one.room_id]) for one in new.sources])
        for new in wanted
    ]


async def _rooms_of(sources: Iterable[Source], lore: Lore, viewer: str | None) -> dict[str, str]:
    """Return the id of each room that the sources name."""
    named = {source.room_id for source in sources}
    return {name: await lore.rooms.named(name, viewer=viewer, or_new=True) for name in named}


@facts.get("/facts")
async def list_facts(
    lore: Reader,
    viewer: ShownTo,
    limit: PageLimit,
    scope: Annotated[
        str,
        Query(
            description="Whom they are about: user:<id>, agent:<id> or group:<id or name>. Needed.",
            json_schema_extra={"pattern": SCOPE_PATTERN, "maxLength": MAX_SCOPE_CHARS},
        ),
    ] = "",
    kind: Annotated[list[MemoryKind] | None, Query(description="By default fact; may be repeated.")] = None,
    status: Annotated[Status, Query(description=STATUS)] = "active",
    offset: Annotated[int, Query(ge=0, le=MOST, description="The `next` of the page before; 0 begins.")] = 0,
) -> FactPage:
    """Return the facts of a scope, the last changed first."""
    if not scope:
        raise InvalidInput("scope is missing: say whose facts, as in /facts?scope=user:anna.")
    scope, kinds = await lore.rooms.scope_named(scope, viewer=viewer), tuple(kind or (MemoryKind.FACT,))
    page = await lore.memories.page(scope, kinds=kinds, status=status, limit=limit, offset=offset, viewer=viewer)
    total = await lore.memories.count(scope, kinds=kinds, status=status, viewer=viewer)
    following = offset + len(page)
    return FactPage(facts=page, total=total, next=following if page and following < total else None)


@facts.get("/facts/{memory_id:id}")
async def get_fact(lore: Reader, viewer: ShownTo, memory_id: MemoryId) -> Memory:
    """Return the version in force, for the id of any version; the last one of a deleted fact."""
    return await lore.memories.head(memory_id, viewer=viewer)


@facts.patch("/facts/{memory_id:id}", openapi_extra=bodies.described(FactChange))
async def change_fact(
    lore: Writer,
    viewer: ShownTo,
    memory_id: MemoryId,
    change: Annotated[Any, Depends(bodies.body_of(FactChange, within=Bounds.bulk))],
) -> Memory:
    """Add a new version with its own id; the version before stays in the history."""
    wanted = values_of(Edit, change)
    if wanted.get("sources"):
        rooms = await _rooms_of(wanted["sources"], lore, viewer)
        wanted["sources"] = [replace(one, room_id=rooms[one.room_id]) for one in wanted["sources"]]
    await lore.memories.check_changeable(memory_id, viewer, citing=wanted.get("sources") or ())
    changed = await lore.memories.update(
        memory_id, **wanted, expected=change.expected, reason=change.reason, viewer=viewer
    )
    return (await lore.memories.as_told([changed], viewer))[0]


@facts.delete("/facts/{memory_id:id}", status_code=204)
async def delete_fact(
    lore: Writer,
    memory_id: ChangeableMemory,
    reason: Reason = "",
    expected: Annotated[str | None, Query(description="The id of the version that you saw.")] = None,
) -> None:
    """Deprecate a fact: it stays in the history. Deleting it again changes nothing."""
    await lore.memories.delete(memory_id, reason, expected=expected)


@facts.get("/facts/{memory_id:id}/history")
async def fact_history(lore: Reader, viewer: ShownTo, memory_id: MemoryId) -> FactHistory:
    """Return every version of a fact, the first one first."""
    return FactHistory(versions=await lore.memories.history(memory_id, viewer=viewer))


recall = Router(tags=["facts"])

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
