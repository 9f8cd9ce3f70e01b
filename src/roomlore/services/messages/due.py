"""Noting which vectors are due, with the change that made them so."""

from collections.abc import Sequence

from roomlore.core.models import Entry
from roomlore.ports.coordination import Jobs
from roomlore.ports.indexing import INDEXING
from roomlore.ports.storage import UnitOfWork


class VectorsDue:
    """`keeping`: whether anybody keeps vectors here; where nobody does, nothing is noted."""

    def __init__(self, *, keeping: bool, jobs: Jobs) -> None:
        self._keeping = keeping
        self._jobs = jobs

    async def note(self, work: UnitOfWork, tenant: str, room_id: str, entries: Sequence[Entry]) -> None:
        """Puts these messages of a locked room into the outbox, in the transaction that changes them."""
        if self._keeping and entries:
            arrivals = [entry.message.arrival for entry in entries]
            await work.outbox.add(tenant=tenant, room_id=room_id, arrivals=arrivals)

    def announce(self) -> None:
        """Asks for the work once the transaction is committed."""
        if self._keeping:
            self._jobs.ask(INDEXING)
