"""What the settings say about evolutions."""

from dataclasses import dataclass, field, replace
from datetime import tzinfo

from roomlore.core.evolution.models import Rules
from roomlore.core.memory.models import MemoryKind

MOST_FACTS = 300
"""Of a person. A group has come to be few things; of a person much can be known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionOptions:
    """`model`: of the registry. `timeout_seconds`: that each of its providers gets. `messages`, `memories`: that are
    shown at a time. `strength_floor`: below which a memory is shown as stale. `lease_seconds`: after which others go on
    where a process was killed. `least`: messages that make a room evolve by the schedule. `zone`: whose days count."""

    model: str
    timeout_seconds: float
    zone: tzinfo
    rules: Rules = field(default_factory=Rules)
    messages: int = 200
    memories: int = 50
    strength_floor: float = 0.2
    lease_seconds: float = 60.0
    least: int = 10

    def rules_for(self, kind: MemoryKind) -> Rules:
        """The cap of the rules is one on what is remembered of a group."""
        return self.rules if kind is MemoryKind.GROUP else replace(self.rules, most_active=MOST_FACTS)
