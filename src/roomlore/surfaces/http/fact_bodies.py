"""What is sent to add and change facts."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.requests import Request

from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.intake import KEEP, MAX_BATCH, MAX_LABEL, MAX_REASON, MAX_SOURCES, MAX_TAGS, Keep, NewMemory
from roomlore.core.memory.models import MAX_SCOPE_CHARS, MemoryKind, Source
from roomlore.surfaces.http.bodies import Body, read_json, validated
from roomlore.surfaces.http.json_bounds import Bounds

_SCOPE = "Whom it is about: user:<id>, agent:<id> or group:<id>."


class SourceForm(BaseModel):
    """A message that supports a fact."""

    model_config = ConfigDict(extra="forbid", strict=True)

    room_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    message_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)

    def source(self) -> Source:
        return Source(self.room_id, self.message_id)


class FactForm(Body):
    """A fact to add."""

    scope: str = Field(min_length=1, max_length=MAX_SCOPE_CHARS, description=_SCOPE)
    statement: str = Field(min_length=1, description="What is to be remembered.")
    kind: Literal["fact", "group", "short"] = "fact"
    confidence: float | None = Field(None, ge=0, le=1, description="Null: nobody said.")
    category: str = Field("", max_length=8 * MAX_LABEL)
    tags: list[str] = Field([], max_length=MAX_TAGS)
    sources: list[SourceForm] = Field([], max_length=MAX_SOURCES, description="The messages that support it.")
    memory_id: str | None = Field(
        None, min_length=1, max_length=MAX_ID_CHARS, description="An id of your own makes the call safe to repeat."
    )

    def new(self) -> NewMemory:
        return NewMemory(
            scope=self.scope,
            statement=self.statement,
            kind=MemoryKind(self.kind),
            confidence=self.confidence,
            category=self.category,
            tags=self.tags,
            sources=[form.source() for form in self.sources],
            memory_id=self.memory_id,
        )


class FactsRequest(Body):
    """Several facts to add."""

    facts: list[FactForm] = Field(min_length=1, max_length=MAX_BATCH)


async def facts_of(request: Request) -> list[NewMemory]:
    """The body: one fact, or `{"facts": [...]}`."""
    return await read_json(request, _facts, within=Bounds.bulk)


def _facts(value: Any) -> list[NewMemory]:
    if isinstance(value, dict) and "facts" in value:
        return [form.new() for form in validated(FactsRequest, value).facts]
    return [validated(FactForm, value).new()]


class FactChange(Body):
    """What to change of a fact. What is left out stays; a confidence of null is taken away, any other null stays."""

    statement: str | None = Field(None, min_length=1)
    confidence: float | None = Field(None, ge=0, le=1)
    category: str | None = Field(None, max_length=8 * MAX_LABEL)
    tags: list[str] | None = Field(None, max_length=MAX_TAGS)
    sources: list[SourceForm] | None = Field(None, max_length=MAX_SOURCES)
    expected: str | None = Field(None, description="The id of the version that you saw; another one in force is a 409.")
    reason: str = Field("", max_length=8 * MAX_REASON, description="Why, for the history.")

    @model_validator(mode="after")
    def _something(self) -> "FactChange":
        content = (self.statement, self.category, self.tags, self.sources)
        if "confidence" not in self.model_fields_set and all(given is None for given in content):
            raise ValueError("give at least one of statement, confidence, category, tags, sources")
        return self

    def wanted_confidence(self) -> float | Keep | None:
        return self.confidence if "confidence" in self.model_fields_set else KEEP

    def wanted_sources(self) -> list[Source] | None:
        return None if self.sources is None else [form.source() for form in self.sources]
