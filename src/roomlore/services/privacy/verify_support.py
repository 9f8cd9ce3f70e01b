"""Checking that memories are found from the messages that they rest on, and from no others."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from roomlore.core.memory.models import Scope
from roomlore.core.soundness.report import Fault, Findings
from roomlore.core.soundness.scope import StoredVersion, supported
from roomlore.ports.audit import ReadSupport
from roomlore.ports.storage import Storage

_PAGE = 1000


class SupportChecks:
    """Compares the sources that memories name with the rows by which they are found from messages."""

    def __init__(self, *, storage: Storage) -> None:
        self._storage = storage

    async def check_sources(self, scope: Scope, page: Sequence[StoredVersion], findings: Findings) -> Counter[str]:
        """That these are found from their messages. How many messages are deleted, and unknown."""
        missing = Counter[str]()
        told: dict[str, set[tuple[str, int]]] = defaultdict(set)
        for room_id, message_id, number in supported(page):
            told[room_id].add((message_id, number))
        names = {stored.number: stored.memory.memory_id for stored in page}
        for room_id, pairs in told.items():
            message_ids = sorted({message_id for message_id, _ in pairs})
            async with self._storage.reading() as work:
                prints = await work.messages.fingerprints(tenant=scope.tenant, room_id=room_id, message_ids=message_ids)
                found = await work.audit.found_from(
                    tenant=scope.tenant, scope=scope.scope, room_id=room_id, message_ids=message_ids
                )
            missing["deleted"] += sum(prints.get(one) == "" for one in message_ids)
            missing["unknown"] += sum(one not in prints for one in message_ids)
            findings.saw("sources", len(pairs))
            findings.add(_lost(scope.scope, room_id, one, names[one[1]]) for one in sorted(pairs - found))
        return +missing

    async def check_rows(self, tenant: str, scope: str | None, findings: Findings) -> None:
        """That what is found from messages rests on them: every row, whatever message it names. A row is compared with
        the memory of the same moment, so that nothing has to be read again where somebody writes meanwhile."""
        after = ("", "", 0)
        while True:
            async with self._storage.reading() as work:
                page = await work.audit.support_rows(tenant=tenant, scope=scope, after=after, limit=_PAGE)
            findings.add(fault for row in page if (fault := _surplus(row)) is not None)
            if len(page) < _PAGE:
                return
            after = (page[-1].room_id, page[-1].message_id, page[-1].number)


def _lost(scope: str, room_id: str, pair: tuple[str, int], memory_id: str) -> Fault:
    where = f"scope {scope}, memory {memory_id}"
    return Fault("support", where, f"It is not found from message {pair[0]} of room {room_id}.")


def _surplus(row: ReadSupport) -> Fault | None:
    if row.memory_id is None:
        where = f"message {row.message_id} of room {row.room_id}"
        return Fault("support", where, f"Row {row.number} of the memories is found from it, and is not there.")
    if row.rests is not False:
        return None
    where = f"scope {row.scope}, memory {row.memory_id}"
    return Fault(
        "support", where, f"It is found from message {row.message_id} of room {row.room_id}, and does not rest on it."
    )
