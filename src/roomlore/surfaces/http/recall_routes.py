"""The route of recall: facts that matter for a conversation, within a token budget."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Depends
from pydantic import Field, WithJsonSchema

from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.recall.options import MAX_SCOPES, RecallRequest, Recollection
from roomlore.surfaces.http import bodies
from roomlore.surfaces.http.answers import Router
from roomlore.surfaces.http.fact_routes import Scope
from roomlore.surfaces.http.guard import Reader, ShownTo
from roomlore.surfaces.shapes import request_of, values_of

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
        max_length=MAX_SCOPES, description="Whom the facts are about: user:<id>, agent:<id> or group:<id>."
    )
    messages: list[Annotated[dict[str, Any], WithJsonSchema(dict(_MESSAGE))]] = Field(
        [], max_length=_MAX_MESSAGES, description="The conversation, the newest last, in OpenAI's form."
    )


_Weight = Annotated[float | None, Field(ge=0, le=1)]
RecallBody = request_of(
    RecallRequest,
    _Recall,
    {
        "max_tokens": Annotated[int | None, Field(ge=0, le=_MAX_TOKENS, description="Most tokens of the block.")],
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
            bool, Field(description="Also what holds no more, for conversations about the past.")
        ],
    },
    name="RecallRequest",
    without=("viewer",),
)


@recall.post(
    "/recall",
    openapi_extra=bodies.described(bodies.inlined(RecallBody.model_json_schema())),
)
async def recall_facts(
    lore: Reader, viewer: ShownTo, wanted: Annotated[_Recall, Depends(bodies.body_of(RecallBody))]
) -> Recollection:
    """Return the facts and group memories that matter for a conversation, ranked, and the block of text that holds them
    within a token budget."""
    return await lore.recall.build(wanted.scopes, wanted.messages, viewer=viewer, **values_of(RecallRequest, wanted))
