"""Facts for the suites of recall."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.memory.memory import Memory, MemoryKind
from roomlore.core.recall.ranking import FactSet, recollect, topic_of
from roomlore.core.recall.recollection import ConversationMessage, RecallOptions, Recollection

START = datetime(2026, 1, 1, tzinfo=UTC)
USUAL = RecallOptions()
count = EncodingTokens().count


def fact(number: int, statement: str, confidence: float | None = 0.5, scope: str = "user:ann") -> Memory:
    """Later numbers changed later."""
    at = START + timedelta(minutes=number)
    return Memory(
        memory_id=f"f{number}",
        lineage_id=f"f{number}",
        scope=scope,
        kind=MemoryKind.FACT,
        statement=statement,
        confidence=confidence,
        created_at=at,
        updated_at=at,
        supported_at=at,
    )


def facts(*statements: str) -> FactSet:
    return FactSet([fact(number, statement) for number, statement in enumerate(statements)], count=count)


def said(*texts: str) -> list[ConversationMessage]:
    return [ConversationMessage("user", text) for text in texts]


def recall(
    known: FactSet, texts: Sequence[str], options: RecallOptions = USUAL, previous: Sequence[str] = ()
) -> Recollection:
    """For what a user says, one message after the other."""
    topic = topic_of(said(*texts), options.max_context_turns)
    return recollect(known, topic, options, count=count, previous=previous)


def statements(found: Recollection) -> list[str]:
    return [one.memory.statement for one in found.facts]
