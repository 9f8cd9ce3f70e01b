"""Steps as changes of a scope's log."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from roomlore.core.evolution.models import Ground, Rules
from roomlore.core.evolution.steps import Step
from roomlore.core.evolution.strength import raised, strength_at
from roomlore.core.memory.intake import MAX_SOURCES, MAX_TAGS
from roomlore.core.memory.models import Action, Change, Memory, MemoryKind, MemoryStatus, Source


@dataclass(slots=True, kw_only=True)
class Maker:
    """Makes the changes of one evolution, in order. `changes`: those so far."""

    ground: Ground
    rules: Rules
    kind: MemoryKind
    evolution_id: str
    actor: str
    now: datetime
    new_id: Callable[[], str]
    changes: list[Change] = field(default_factory=list)

    def make(self, step: Step) -> None:
        if step.kind == "create":
            self._log(step, Action.CREATE, self._first(step))
        elif step.kind == "update":
            self._log(step, Action.UPDATE, self._next(step), closes=True)
        elif step.kind == "merge":
            self._log(step, Action.MERGE, self._next(step), closes=True)
        elif step.kind == "confirm":
            self._log(step, Action.STRENGTH, self._confirmed(step))
        elif step.kind == "delete":
            self._log(step, Action.DELETE, _gone(step))

    def _log(self, step: Step, action: Action, memory: Memory, *, closes: bool = False) -> None:
        change = Change(
            number=self.ground.number + len(self.changes) + 1,
            scope=self.ground.scope,
            action=action,
            memory=memory,
            closes=tuple(old.memory_id for old in step.memories) if closes else (),
            old_statement=step.memories[0].statement if step.memories else None,
            reason=step.reason,
            evolution_id=self.evolution_id,
            actor=self.actor,
            at=self.now,
        )
        self.changes.append(change)

    def _first(self, step: Step) -> Memory:
        memory_id = self.new_id()
        return Memory(
            memory_id=memory_id,
            lineage_id=memory_id,
            scope=self.ground.scope,
            kind=self.kind,
            statement=step.statement,
            tags=step.tags,
            strength=self.rules.first_strength if step.sources else self.rules.first_strength / 2,
            confidence=step.confidence,
            sources=step.sources,
            change_summary=step.reason,
            evolution_id=self.evolution_id,
            made_by=self.actor,
            created_at=self.now,
            updated_at=self.now,
            supported_at=self.now,
        )

    def _next(self, step: Step) -> Memory:
        """The next version of the oldest one's lineage."""
        head = step.memories[0]
        return replace(
            head,
            memory_id=self.new_id(),
            version=max(self.ground.latest.get(head.lineage_id, 0), head.version) + 1,
            parents=tuple(old.memory_id for old in step.memories),
            statement=step.statement,
            tags=step.tags or _tags(step),
            strength=self._strength(step),
            confidence=_cautious(step) if step.confidence is None else step.confidence,
            sources=_sources(step),
            change_summary=step.reason,
            evolution_id=self.evolution_id,
            made_by=self.actor,
            fallback=False,
            updated_at=max(self.now, head.updated_at),
            supported_at=self._supported(step),
        )

    def _confirmed(self, step: Step) -> Memory:
        head = step.memories[0]
        known = [one for one in (head.confidence, step.confidence) if one is not None]
        return replace(
            head,
            strength=self._strength(step),
            confidence=max(known, default=None),
            sources=_sources(step),
            supported_at=self._supported(step),
        )

    def _strength(self, step: Step) -> float:
        """Raised from what is left of it."""
        left = max(strength_at(old, self.now, self.rules.half_life_days) for old in step.memories)
        return raised(left, self.rules.raised)

    def _supported(self, step: Step) -> datetime:
        return max(self.now, *(old.supported_at for old in step.memories))


def _gone(step: Step) -> Memory:
    head = step.memories[0]
    return replace(head, status=MemoryStatus.DEPRECATED, change_summary=step.reason or head.change_summary)


def _tags(step: Step) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for old in step.memories for tag in old.tags))[:MAX_TAGS]


def _cautious(step: Step) -> float | None:
    """The lowest one that is known."""
    return min((old.confidence for old in step.memories if old.confidence is not None), default=None)


def _sources(step: Step) -> tuple[Source, ...]:
    """Each once; of too many the latest."""
    every = (*(source for old in step.memories for source in old.sources), *step.sources)
    return tuple(dict.fromkeys(every))[-MAX_SOURCES:]
