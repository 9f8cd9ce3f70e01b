"""The work that messages make due, noted in the transaction that stores them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roomlore.core.models import Entry
from roomlore.ports.coordination import INDEXING, Jobs
from roomlore.ports.verbs import DueWork

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork


class AllDue:
    """Several of them as one."""

    def __init__(self, *parts: DueWork) -> None:
        self._parts = parts

    async def note(self, work: "UnitOfWork", room_id: str, entries: Sequence[Entry]) -> bool:
        return any([await part.note(work, room_id, entries) for part in self._parts])

    def announce(self) -> None:
        for part in self._parts:
            part.announce()


class VectorsDue:
    """Note messages that need vectors. `embedding`: True if this process makes vectors. A process that does not still
    notes the work for others, once they keep vectors here."""

    def __init__(self, *, embedding: bool, jobs: Jobs) -> None:
        self._embedding = embedding
        self._jobs = jobs

    async def note(self, work: "UnitOfWork", room_id: str, entries: Sequence[Entry]) -> bool:
        """Put these messages of a locked room into the outbox, in the transaction that changes them."""
        arrivals = [entry.message.arrival for entry in entries]
        await work.progress.outbox.add(scope=room_id, numbers=arrivals, only_if_kept=not self._embedding)
        return self._embedding

    def announce(self) -> None:
        """Request the work once the transaction is committed, if this process does it."""
        if self._embedding:
            self._jobs.ask(INDEXING)
