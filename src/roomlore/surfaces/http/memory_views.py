"""What answers about memories look like: the bodies that other programs know, and what there is beside them."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from roomlore.surfaces.http.fact_views import FactView
from roomlore.surfaces.http.views import MessageView

Did = Literal["create", "update", "merge", "delete", "restore", "revert", "strength", "redact"]


class Told(BaseModel):
    """An answer of /memory. `success` is true; what fails is answered by a problem."""

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
    """An entry of the log. What an action has nothing to say of is left out."""

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
    """What an evolution did."""

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
    """An evolution that is not done yet. `Location` is where to ask for the work; /memory/evolution has the result."""

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
    """The evolution that made a version. What its model answered is at /memory/evolution."""

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
