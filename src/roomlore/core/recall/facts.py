"""Facts made ready for recall: their lines, what the lines cost, and their words."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from roomlore.core.evolution.strength import strength_at
from roomlore.core.memory.models import Memory, MemoryKind
from roomlore.core.recall.rendering import HEAD, TAIL, line_of
from roomlore.core.recall.words import Counted, Vocabulary, WordIndex
from roomlore.core.search import Floats, Ints

Count = Callable[[Sequence[str]], list[int]]
DEFAULT_CONFIDENCE = 0.5
_STALE = 4
_FEW_WORDS = 1000


@dataclass(frozen=True, slots=True)
class _Ready:
    counted: Counted
    tokens: int


class FactSet:
    """Facts in one order, whatever order they came in: those changed last first. `count`: counts tokens.

    `labelled`: each line names its fact's scope. `known`: an earlier set, whose work is not done again.
    """

    def __init__(
        self, memories: Iterable[Memory], *, count: Count, labelled: bool = False, known: "FactSet | None" = None
    ) -> None:
        self.memories = sorted(memories, key=lambda m: (m.updated_at, m.memory_id), reverse=True)
        self.labelled = labelled
        self.lines = [line_of(m.statement, m.scope if labelled else "") for m in self.memories]
        reusable = known is not None and known.labelled == labelled
        self._vocabulary, self._ready = known.work() if known and reusable else (Vocabulary(), {})
        self._complete(count)
        used = [self._ready[line] for line in self.lines]
        self._ready = dict(zip(self.lines, used, strict=True))
        self.tokens: Ints = np.array([one.tokens for one in used], np.int64)
        self.frame = sum(count([HEAD, TAIL]))
        self.confidence: Floats = np.array([confidence_of(m) for m in self.memories], float)
        self._fading = [place for place, m in enumerate(self.memories) if _fades(m)]
        self.words = WordIndex(self._vocabulary, [one.counted for one in used])
        self.places = {memory.memory_id: place for place, memory in enumerate(self.memories)}

    def confidence_at(self, now: datetime, half_life_days: float) -> Floats:
        """Of each fact; of a group memory that was given none, how strong it is by then."""
        if not self._fading:
            return self.confidence
        found = self.confidence.copy()
        found[self._fading] = [strength_at(self.memories[place], now, half_life_days) for place in self._fading]
        return found

    def __len__(self) -> int:
        return len(self.memories)

    def work(self) -> "tuple[Vocabulary, dict[str, _Ready]]":
        """What was made ready, for the next set; nothing where most of its words are of facts that are gone."""
        if len(self._vocabulary) > _STALE * self.words.used + _FEW_WORDS:
            return Vocabulary(), {}
        return self._vocabulary, dict(self._ready)

    def _complete(self, count: Count) -> None:
        new = {line: m for line, m in zip(self.lines, self.memories, strict=True) if line not in self._ready}
        for (line, memory), tokens in zip(new.items(), count(list(new)), strict=True):
            self._ready[line] = _Ready(self._vocabulary.count(memory.statement), tokens)


def _fades(memory: Memory) -> bool:
    return memory.kind is MemoryKind.GROUP and memory.confidence is None


def confidence_of(memory: Memory) -> float:
    """In [0, 1]; 0 is 0, and only what was never given is the default."""
    given = DEFAULT_CONFIDENCE if memory.confidence is None else memory.confidence
    return min(1.0, max(0.0, given))
