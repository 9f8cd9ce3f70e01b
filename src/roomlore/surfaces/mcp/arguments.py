"""What tools take. The descriptions are read by models: short, and complete."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.memory.intake import MAX_LABEL, MAX_REASON, MAX_STATEMENT, MAX_TAGS
from roomlore.core.memory.models import MAX_SCOPE_CHARS
from roomlore.settings.contexts import StrategyName

MOST_FOUND = 20
MOST_LISTED = 50
MOST_SOURCES = 20
MOST_SCOPES = 10
MOST_PROMPT_TOKENS = 4_000
MOST_MESSAGES = 50
_MOST_QUERY = 4_000
_MOST = 2**63 - 1
_CODE_POINTS_A_CHARACTER = 8

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
Scope = Annotated[
    str | None,
    Field(max_length=MAX_SCOPE_CHARS, description="Whose: user:<id>, agent:<id> or group:<room id>."),
]
MemoryId = Annotated[Id, Field(description="The id of any version of the memory.")]
Statement = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_STATEMENT * _CODE_POINTS_A_CHARACTER,
        description=f"One statement that stands by itself, at most {MAX_STATEMENT} characters.",
    ),
]
Confidence = Annotated[float | None, Field(ge=0, le=1, description="How sure it is, from 0 to 1.")]
Reason = Annotated[str, Field(max_length=8 * MAX_REASON, description="Why, for the history.")]
Expected = Annotated[
    str | None, Field(description="The id of the version you saw; refused where another one is in force.")
]
Offset = Annotated[int, Field(ge=0, le=_MOST, description="The next_offset of the answer before.")]
Query = Annotated[str, Field(max_length=_MOST_QUERY)]
Label = Annotated[str, Field(max_length=8 * MAX_LABEL)]
Tags = Annotated[list[Label], Field(max_length=MAX_TAGS)]


class Arguments(BaseModel):
    """Named arguments; others are refused."""

    model_config = ConfigDict(extra="forbid")


class AddMemory(Arguments):
    """Something to remember."""

    statement: Statement
    scope: Scope = None
    kind: Literal["fact", "group"] = Field("fact", description="group: what a group has come to be.")
    confidence: Confidence = None
    category: Label = ""
    tags: Tags = []
    room_id: Id | None = Field(None, description="The room of message_ids.")
    message_ids: list[Id] = Field([], max_length=MOST_SOURCES, description="The messages that say so.")

    @model_validator(mode="after")
    def _both_or_none(self) -> "AddMemory":
        if bool(self.message_ids) != (self.room_id is not None):
            raise ValueError("room_id and message_ids go together; give both or none")
        return self


class SearchMemories(Arguments):
    """What to look for."""

    query: Annotated[Query, Field(min_length=1, description="A question or a few words.")]
    scope: Scope = None
    limit: int = Field(5, ge=1, le=MOST_FOUND)
    threshold: float = Field(0.7, ge=0, le=1, description="The lowest score; lower finds more.")


class GetMemories(Arguments):
    """Which memories to list."""

    scope: Scope = None
    kind: Literal["fact", "group", "short"] | None = None
    status: Literal["active", "deprecated", "all"] = "active"
    limit: int = Field(20, ge=1, le=MOST_LISTED)
    offset: Offset = 0


class GetMemory(Arguments):
    """Which memory."""

    memory_id: MemoryId


class UpdateMemory(Arguments):
    """What to change; what is left out stays."""

    memory_id: MemoryId
    statement: Statement | None = None
    confidence: Confidence = None
    category: Label | None = None
    tags: Tags | None = None
    expected: Expected = None
    reason: Reason = ""

    @model_validator(mode="after")
    def _something(self) -> "UpdateMemory":
        if all(given is None for given in (self.statement, self.confidence, self.category, self.tags)):
            raise ValueError("give at least one of statement, confidence, category, tags")
        return self


class DeleteMemory(Arguments):
    """Which memory to take out of force."""

    memory_id: MemoryId
    expected: Expected = None
    reason: Reason = ""


class MemoryHistory(Arguments):
    """Whose versions."""

    memory_id: MemoryId
    offset: Offset = 0


class MemoryPrompt(Arguments):
    """What the memories are wanted for."""

    query: Query = Field("", description="What is being talked about; empty: the surest memories.")
    scopes: list[Annotated[str, Field(max_length=MAX_SCOPE_CHARS)]] | None = Field(
        None, min_length=1, max_length=MOST_SCOPES, description="Whose: user:<id>, agent:<id>, group:<room id>."
    )
    max_tokens: int = Field(1_000, ge=1, le=MOST_PROMPT_TOKENS)


class RoomContext(Arguments):
    """Which message to answer."""

    room_id: Id
    message_id: Id | None = Field(None, description="By default the newest message that a user wrote.")
    max_messages: int = Field(20, ge=1, le=MOST_MESSAGES)
    max_tokens: int | None = Field(
        None, ge=1, le=1_000_000, description="Most tokens that the texts take together; by default the room's."
    )
    strategy: StrategyName | None = Field(None, description="By default the room's.")
