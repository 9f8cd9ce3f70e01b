"""What another system remembers, read, and what came of bringing it over."""

from dataclasses import dataclass

from roomlore.core.memory.intake import NewMemory


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that was not brought over. `place`: where it stands, such as 'facts[3]' or 'line 12'."""

    place: str
    reason: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class ForeignMemories:
    """Another system's memories, each with the place where it stands; and what could not be read."""

    form: str
    memories: tuple[tuple[str, NewMemory], ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactImport:
    """What became of another system's memories.

    `updated`: they had changed there since the last import. `unchanged`: they were there already. `scopes`: whom they
    are about. `dry_run`: nothing was written; this is what would have come of it.
    """

    form: str
    added: int
    updated: int
    unchanged: int
    skipped: tuple[Skipped, ...]
    scopes: tuple[str, ...]
    dry_run: bool = False
