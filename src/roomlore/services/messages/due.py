"""Noting which vectors are due, with the change that made them so."""

from collections.abc import Sequence

from roomlore.core.models import Entry
from roomlore.ports.coordination import Jobs
from roomlore.ports.indexing import INDEXING
from roomlore.ports.storage import UnitOfWork


class VectorsDue:
    """`embedding`: whether this process makes vectors. One that does not still notes what is due to others, from the
    moment they keep vectors here."""

    def __init__(self, *, embedding: bool, jobs: Jobs) -> None:
        self._embedding = embedding
        self._jobs = jobs

    async def note(self, work: UnitOfWork, tenant: str, room_id: str, entries: Sequence[Entry]) -> None:
        """Puts these messages of a locked room into the outbox, in the transaction that changes them."""
        arrivals = [entry.message.arrival for entry in entries]
        await work.outbox.add(tenant=tenant, room_id=room_id, arrivals=arrivals, only_if_kept=not self._embedding)

    def announce(self) -> None:
        """Asks for the work once the transaction is committed, where it is done here."""
        if self._embedding:
            self._jobs.ask(INDEXING)
