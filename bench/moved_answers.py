"""What a store answers to many questions, so that it can be compared with a store that it was moved to."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import roomlore

Answers = Mapping[str, Sequence[tuple[str, float]]]
"""For each question ids in the order of the answer, with their scores."""
_NEAR = 1e-6


async def asked(
    lore: roomlore.Lore,
    *,
    contexts: Iterable[tuple[str, str]],
    searches: Iterable[tuple[str, str]],
    recalls: Iterable[tuple[str, str]],
    past: Iterable[tuple[str, datetime]],
) -> Answers:
    """Return the answers. `contexts`: rooms and messages; `searches`: rooms and questions; `recalls`: scopes and
    questions, for a recall and, of a group, a search; `past`: scopes and times, with the blame of what they held."""
    told: dict[str, list[tuple[str, float]]] = {}
    for room, name in contexts:
        context = await lore.context.build(room, name)
        told[f"context {room} {name}"] = [(one.message.id, one.score) for one in context.messages]
    for room, question in searches:
        hits = (await lore.messages.search(room, question)).hits
        told[f"search {room} {question}"] = [(hit.message.id, hit.score) for hit in hits]
    for scope, question in recalls:
        recalled = await lore.recall.build([scope], [{"role": "user", "content": question}])
        told[f"recall {scope} {question}"] = [(fact.memory.memory_id, 0.0) for fact in recalled.facts]
        kind, _, group = scope.partition(":")
        if kind == "group":
            answer = await lore.memories.search(group, question, threshold=0.0, limit=20)
            told[f"memories {scope} {question}"] = [(hit.memory.memory_id, hit.score) for hit in answer.hits]
    for scope, at in past:
        held = await lore.memories.as_of(scope, at)
        told[f"as of {scope} {at}"] = [(memory.memory_id, memory.strength) for memory in held]
        for memory in held[:2]:
            told[f"blame {memory.memory_id}"] = [(repr(await lore.memories.blame(memory.memory_id)), 0.0)]
    return told


def unlike(before: Answers, after: Answers) -> list[str]:
    """Return the questions with other ids, another order, or scores that differ by more than 1e-6."""
    return [
        question for question in before.keys() | after.keys() if not _same(before.get(question), after.get(question))
    ]


def _same(before: Sequence[tuple[str, float]] | None, after: Sequence[tuple[str, float]] | None) -> bool:
    if before is None or after is None or [name for name, _ in before] != [name for name, _ in after]:
        return False
    return all(abs(one - other) <= _NEAR for (_, one), (_, other) in zip(before, after, strict=True))
