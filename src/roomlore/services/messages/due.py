"""Noting what is due behind the callers' backs, with the change that made it so."""

from collections.abc import Sequence
from typing import Protocol

from roomlore.core.models import Entry
from roomlore.ports.coordination import Jobs
from roomlore.ports.indexing import INDEXING
from roomlore.ports.storage import UnitOfWork


class Due(Protocol):
    """Somebody who has work to do where messages are written."""

    async def note(self, work: UnitOfWork, tenant: str, room_id: str, entries: Sequence[Entry]) -> None:
        """Notes what these messages of a locked room make due, in the transaction that writes them."""

    def announce(self) -> None:
        """Asks for the work, once the transaction is committed."""


class AllDue:
    """Several of them."""

    def __init__(self, *parts: Due) -> None:
        self._parts = parts

    async def note(self, work: UnitOfWork, tenant: str, room_id: str, entries: Sequence[Entry]) -> None:
        for part in self._parts:
            await part.note(work, tenant, room_id, entries)

    def announce(self) -> None:
        for part in self._parts:
            part.announce()


class VectorsDue:
    """`embedding`: whether this process makes vectors. One that does not still notes what is due to others, from the
    moment they keep vectors here."""

    def __init__(self, *, embedding: bool, jobs: Jobs) -> None:
        self._embedding = embedding
        self._jobs = jobs

    async def note(self, work: UnitOfWork, tenant: str, room_id: str, entries: Sequence[Entry]) -> None:
        """Puts these messages of a locked room into the outbox, in the transaction that changes them."""
        arrivals = [entry.message.arrival for entry in entries]
        await work.outbox.add(tenant=tenant, scope=room_id, numbers=arrivals, only_if_kept=not self._embedding)

    def announce(self) -> None:
        """Asks for the work once the transaction is committed, where it is done here."""
        if self._embedding:
            self._jobs.ask(INDEXING)
