"""Noting which rooms may have something to extract, with the replies that make it so."""

from collections.abc import Sequence

from roomlore.core.memory.extraction import watermark
from roomlore.core.models import Entry, Role, StoredMessage
from roomlore.ports.coordination import Clock, Jobs
from roomlore.ports.storage import UnitOfWork

EXTRACTION = "extraction"
"""The work that turns replies into short memories, and the background job that hands it in."""
_MOST_KNOWN = 100_000


class RepliesDue:
    """Looks at what is added for replies of agents. An agent's count in a room begins with the first reply seen here:
    what was imported before it is history, not a conversation that goes on."""

    def __init__(self, *, clock: Clock, jobs: Jobs) -> None:
        self._clock = clock
        self._jobs = jobs
        self._begun: set[tuple[str, str, str]] = set()

    async def note(self, work: UnitOfWork, tenant: str, room_id: str, entries: Sequence[Entry]) -> None:
        """Notes the room, in the transaction that writes the entries, if there is a reply among them."""
        first: dict[str, int] = {}
        for entry in entries:
            if _is_reply(entry.message):
                first.setdefault(entry.message.sender_id, entry.message.arrival)
        if first:
            await self._begin(work, tenant, room_id, first)
            await work.rooms_due.note(tenant=tenant, room_id=room_id, work=EXTRACTION, now=self._clock.now())

    def announce(self) -> None:
        """Asks for the work once the transaction is committed."""
        self._jobs.ask(EXTRACTION)

    async def _begin(self, work: UnitOfWork, tenant: str, room_id: str, first: dict[str, int]) -> None:
        named = {"tenant": tenant, "room_id": room_id}
        unknown = {agent: arrival for agent, arrival in first.items() if (tenant, room_id, agent) not in self._begun}
        names = {agent: watermark(agent) for agent in unknown}
        marks = await work.watermarks.find(**named, names=list(names.values())) if names else {}
        for agent, arrival in unknown.items():
            if names[agent] in marks:
                self._remember(tenant, room_id, agent)
                continue
            now = self._clock.now()
            await work.watermarks.move(**named, name=names[agent], arrival=arrival - 1, was=0, now=now)

    def _remember(self, tenant: str, room_id: str, agent_id: str) -> None:
        if len(self._begun) >= _MOST_KNOWN:
            self._begun.clear()
        self._begun.add((tenant, room_id, agent_id))


class RepliesImported:
    """Looks at what is imported: it is never extracted, so the count of an agent that talks in the room already begins
    anew after it."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def note(self, work: UnitOfWork, tenant: str, room_id: str, entries: Sequence[Entry]) -> None:
        replies = [entry.message for entry in entries if _is_reply(entry.message)]
        ends = {watermark(message.sender_id): message.arrival for message in replies}
        while ends:
            ends = await self._move(work, tenant, room_id, ends)

    async def _move(self, work: UnitOfWork, tenant: str, room_id: str, ends: dict[str, int]) -> dict[str, int]:
        """Moves the marks that there are; those are left that a memory moved meanwhile, which locks no room."""
        named = {"tenant": tenant, "room_id": room_id}
        left: dict[str, int] = {}
        for name, was in (await work.watermarks.find(**named, names=list(ends))).items():
            if not await work.watermarks.move(**named, name=name, arrival=ends[name], was=was, now=self._clock.now()):
                left[name] = ends[name]
        return left

    def announce(self) -> None:
        """It makes nothing due."""


def _is_reply(message: StoredMessage) -> bool:
    return message.role is Role.ASSISTANT and not message.has_tool_calls
