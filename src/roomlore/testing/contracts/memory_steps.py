"""Valid changes by chance, and what they must come to."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from roomlore.core.memory.log import active, replay
from roomlore.core.memory.models import Action, Change, Memory, MemoryKind, MemoryStatus, Source
from roomlore.testing.builders import START, change, memory

_STATEMENTS = ("likes tea", "喜欢喝茶", "👋🏽 e\u0301", "a\x00b", "\ud800 lone", "\x1a0 \\", "")
MESSAGES = [f"m{n}" for n in range(1, 9)]


@dataclass
class Story:
    """A scope to which things happen. `heads`: by lineage; `merged`: lineage to the one it was merged into."""

    scope: str
    rng: Random
    changes: list[Change] = field(default_factory=list)
    versions: dict[str, Memory] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)

    def go_on(self, count: int) -> list[Change]:
        """So many more changes."""
        return [self._keep(self._next()) for _ in range(count)]

    def head(self, memory_id: str) -> Memory:
        lineage = self.versions[memory_id].lineage_id
        while lineage in self.merged:
            lineage = self.merged[lineage]
        return self.versions[self.heads[lineage]]

    def _keep(self, made: Change) -> Change:
        self.changes.append(made)
        before = self.versions
        self.versions = replay([made], before)
        if made.memory.status is MemoryStatus.ACTIVE:
            self.heads[made.memory.lineage_id] = made.memory.memory_id
            self.merged.pop(made.memory.lineage_id, None)
        for closed in made.closes:
            lineage = before[closed].lineage_id
            if closed in made.memory.parents and lineage != made.memory.lineage_id:
                self.merged[lineage] = made.memory.lineage_id
        return made

    def _next(self) -> Change:
        steps: list[Callable[[], Change | None]] = [
            self._create,
            self._update,
            self._merge,
            self._delete,
            self._restore,
            self._strength,
            self._redact,
            self._revert,
        ]
        return self.rng.choice(steps)() or self._create()

    def _create(self) -> Change:
        memory_id = self._id()
        return self._change(Action.CREATE, self._told(memory(memory_id, scope=self.scope)))

    def _update(self, action: Action = Action.UPDATE) -> Change | None:
        found = active(self.versions)
        return self._upon(action, self.rng.choice(found)) if found else None

    def _merge(self) -> Change | None:
        found = active(self.versions)
        if len(found) < 3:
            return None
        return self._upon(Action.MERGE, *self.rng.sample(found, self.rng.choice([2, 3])))

    def _upon(self, action: Action, *parents: Memory) -> Change:
        first = parents[0]
        ids = tuple(one.memory_id for one in parents)
        new = replace(first, memory_id=self._id(), version=self._newest(first) + 1, parents=ids)
        return self._change(action, self._told(new), closes=ids, old_statement=first.statement)

    def _delete(self, action: Action = Action.DELETE) -> Change | None:
        found = active(self.versions)
        if not found:
            return None
        return self._change(action, replace(self.rng.choice(found), status=MemoryStatus.DEPRECATED))

    def _restore(self, action: Action = Action.RESTORE) -> Change | None:
        found = [one for one in self.versions.values() if one.status is MemoryStatus.DEPRECATED]
        if not found:
            return None
        back = replace(self.rng.choice(found), status=MemoryStatus.ACTIVE)
        beside = [one.memory_id for one in active(self.versions) if one.lineage_id == back.lineage_id]
        return self._change(action, back, closes=tuple(beside))

    def _revert(self) -> Change | None:
        return self.rng.choice([self._update, self._delete, self._restore])(Action.REVERT)

    def _strength(self) -> Change | None:
        one = self._any()
        if one is None:
            return None
        return self._change(
            Action.STRENGTH, replace(one, strength=self.rng.random(), sources=self._sources(), supported_at=self._at())
        )

    def _redact(self) -> Change | None:
        one = self._any()
        return self._change(Action.REDACT, replace(one, statement="", tags=(), sources=())) if one else None

    def _any(self) -> Memory | None:
        return self.rng.choice(list(self.versions.values())) if self.versions else None

    def _newest(self, one: Memory) -> int:
        return max(other.version for other in self.versions.values() if other.lineage_id == one.lineage_id)

    def _told(self, one: Memory) -> Memory:
        rng = self.rng
        return replace(
            one,
            kind=rng.choice(list(MemoryKind)),
            statement=rng.choice(_STATEMENTS),
            tags=tuple(rng.sample(_STATEMENTS, rng.choice([0, 2]))),
            confidence=rng.choice([None, rng.random()]),
            sources=self._sources(),
            fallback=rng.random() < 0.3,
            updated_at=self._at(),
        )

    def _sources(self) -> tuple[Source, ...]:
        return tuple(Source("room", message_id) for message_id in self.rng.sample(MESSAGES, self.rng.choice([0, 1, 3])))

    def _change(
        self, action: Action, one: Memory, *, closes: tuple[str, ...] = (), old_statement: str | None = None
    ) -> Change:
        number = len(self.changes) + 1
        return change(number, one, action=action, closes=closes, old_statement=old_statement, at=self._at())

    def _id(self) -> str:
        return f"{self.scope}-{len(self.changes):04}"

    def _at(self) -> datetime:
        """Several things happen at one time."""
        return START + timedelta(minutes=len(self.changes) // 5)
