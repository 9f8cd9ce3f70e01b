"""Delete a room: what becomes of memories that rest on it, and the report of what goes and what stays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from roomlore.core.audience import EvidenceRoom, Window, covers, evidence_of
from roomlore.core.json_values import in_json
from roomlore.core.memory.memory import Change, Evolution, Memory
from roomlore.core.privacy import PLACES_IN_WORDS, Left, Traces, mark, record_without

NO_ROOM = ""
"""Takes the place of the room in evidence: nobody was ever in it, so that nobody is shown more than before."""
_NOBODY = Traces("\0")
STAYS_IN_WORDS: Mapping[str, str] = {
    "people": "people who wrote in other rooms too",
    "memories": "memories that also rest on something else",
}
"""What the entries of `RoomReport.stays` count, for people."""
ROOM_PLACES_IN_WORDS: Mapping[str, str] = {
    **PLACES_IN_WORDS,
    "messages": "messages",
    "archives": "files of archived messages",
    "group_memories": "memories of the group",
    "memories": "versions of memories elsewhere",
    "sessions": "sessions",
    "thread_titles": "titles of threads",
}
"""What the places of a `RoomReport` hold, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomReport:
    """What deleting a room removed, or with `dry_run` would.

    `name`: what the room was called. `places`: entries removed or rewritten, by place; places without any are omitted.
    `retired`: ids of memories elsewhere that rested on the room alone; `rewritten`: of those that stay, as they rest on
    something else too. `stays`: what of the room's is also elsewhere, and stays: people who wrote in other rooms too.
    `left`: what is still there, and why; background work goes on with it. `job_id`: the job that removes it, '' if it
    was not begun as one.
    """

    room_id: str
    name: str = ""
    dry_run: bool
    places: Mapping[str, int] = field(default_factory=dict)
    retired: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    stays: Mapping[str, int] = field(default_factory=dict)
    left: tuple[Left, ...] = ()
    job_id: str = ""
    started_at: datetime
    finished_at: datetime

    @property
    @in_json
    def complete(self) -> bool:
        """True if nothing is left."""
        return not self.left


@dataclass(frozen=True, slots=True)
class RoomRedaction:
    """Removes a room from memories. `public`: when everybody could hear what was said in it."""

    room_id: str
    public: tuple[Window, ...] = ()

    def rests_on_it_alone(self, memory: Memory) -> bool:
        """Return True if every message that supports it was said in the room; without messages, if all its evidence
        was. What a caller added for all rests on no room."""
        if memory.sources:
            return all(source.room_id == self.room_id for source in memory.sources)
        return bool(memory.evidence) and all(room.room_id == self.room_id for room in memory.evidence)

    def version(self, memory: Memory) -> Memory:
        """Return the version without the room; without its words if it rests on the room alone."""
        without = replace(
            memory,
            sources=tuple(source for source in memory.sources if source.room_id != self.room_id),
            evidence=self._evidence(memory.evidence),
            shared_with=tuple(target for target in memory.shared_with if target != f"room:{self.room_id}"),
        )
        if not self.rests_on_it_alone(memory):
            return without
        return replace(
            without, statement=mark(memory.statement), tags=(), category="", change_summary="", doubtful="", said_by=()
        )

    def _evidence(self, evidence: Iterable[EvidenceRoom]) -> tuple[EvidenceRoom, ...]:
        """Return the evidence. What everybody heard limits nobody, and goes; any other stays, of no room."""
        rooms = [room for room in evidence if room.room_id != self.room_id or not self._was_public(room)]
        return evidence_of(
            (), (replace(room, room_id=NO_ROOM) if room.room_id == self.room_id else room for room in rooms)
        )

    def _was_public(self, room: EvidenceRoom) -> bool:
        return covers(self.public, room.first, room.last)

    def statements(self, memories: Iterable[Memory]) -> dict[str, str]:
        """Return the changed statements, old to new, since entries of the log contain the earlier statement."""
        return {memory.statement: mark(memory.statement) for memory in memories if self.rests_on_it_alone(memory)}

    def entry(self, change: Change, statements: Mapping[str, str]) -> Change:
        """Return an entry of the log without the room; without its reason if anything it rests on was said there."""
        old, memory = change.old_statement, change.memory
        rooms = {*(source.room_id for source in memory.sources), *(room.room_id for room in memory.evidence)}
        return replace(
            change,
            memory=self.version(memory),
            old_statement=None if old is None else statements.get(old, old),
            reason="" if self.room_id in rooms else change.reason,
        )

    def record(self, evolution: Evolution) -> Evolution:
        """Return the record of an evolution: of one that read the room only numbers stay."""
        if evolution.room_id != self.room_id:
            return evolution
        return replace(record_without(evolution, _NOBODY, touched=True), room_id=NO_ROOM)
