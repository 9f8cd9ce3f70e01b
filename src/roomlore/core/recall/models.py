"""What recall is asked with and what it gives."""

from dataclasses import dataclass
from typing import Literal

from roomlore.core.memory.models import Memory, MemoryKind

Similarity = Literal["tfidf", "embedding", "hybrid"]
Scale = Literal["fit", "literal"]

RECALLED = (MemoryKind.FACT, MemoryKind.GROUP)
"""What is recalled where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the conversation that facts are recalled for. `role`: user, assistant, system or tool."""

    role: str
    text: str
    has_tool_calls: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """`max_tokens`: of the rendered block. `max_context_turns`: how many of the user's last messages, with the final
    answers between them, are the query. `similarity_weight`, `confidence_weight`: of the score. `scale`: 'fit' scales
    similarities over the candidates by what fits the budget, 'literal' takes the cosines as they are. `sticky`: keep
    the facts shown before as long as relevance has not clearly changed. `half_life_days`: in which the strength of a
    group memory, which is its confidence, halves without support."""

    max_tokens: int = 2000
    max_context_turns: int = 3
    similarity_weight: float = 0.6
    confidence_weight: float = 0.4
    similarity: Similarity = "tfidf"
    scale: Scale = "fit"
    sticky: bool = True
    half_life_days: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A fact and why it was taken. `similarity`: the one it was ranked by, at least 0 and as small as cosines are.
    `relevance`: similarity as it counts, in [0, 1]. `confidence`: in [0, 1]; where none was given, how strong a group
    memory is now, and the default for any other. `score`: the weighted sum."""

    memory: Memory
    similarity: float
    relevance: float
    confidence: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """The facts that are worth their tokens, in the order in which they stand in the block.

    `text`: the block, '' where there is no fact. `tokens`: of the block, never above the budget. `considered`: how many
    facts there were to choose from. `kept`: the facts are those shown before, byte for byte. `degraded`: why it is a
    simpler answer than asked for, None if it is not.
    """

    facts: tuple[Recalled, ...]
    text: str
    tokens: int
    considered: int
    kept: bool = False
    degraded: str | None = None
