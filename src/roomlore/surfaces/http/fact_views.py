"""What answers about facts look like, for OpenAPI."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field


class SourceView(BaseModel):
    room_id: str
    message_id: str


class FactView(BaseModel):
    """One version of a fact. Times are ISO 8601 in UTC."""

    memory_id: str
    lineage_id: str = Field(description="The id of its first version.")
    scope: str
    kind: Literal["short", "fact", "group"]
    statement: str
    version: int
    parents: list[str] = Field(description="The versions that it took the place of.")
    status: Literal["active", "deprecated"]
    tags: list[str]
    category: str
    strength: float
    confidence: float | None = Field(description="In [0, 1]; null where nobody said.")
    sources: list[SourceView] = Field(description="The messages that support it.")
    change_summary: str
    evolution_id: str | None
    made_by: str = Field(description="caller, a model, or what made it without one.")
    fallback: bool = Field(description="No model was there; it is to be made again when one is.")
    created_at: datetime
    updated_at: datetime
    supported_at: datetime


class AddedFact(FactView):
    outcome: Literal["added", "unchanged"] = Field(
        description="unchanged: it was there already, under this id or in these words."
    )


class AddedFacts(BaseModel):
    """What is there now for each fact that was sent, in that order."""

    facts: list[AddedFact]


class FactPage(BaseModel):
    facts: list[FactView]
    total: int = Field(description="How many there are on all pages.")
    next: int | None = Field(description="The `offset` of the next page; null at the end.")


class FactHistory(BaseModel):
    versions: list[FactView] = Field(description="The first one first.")
