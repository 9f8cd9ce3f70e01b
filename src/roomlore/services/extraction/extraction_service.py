"""Noting the rooms with new replies of agents, in the transactions that store messages."""

from collections.abc import Sequence

from roomlore.core.memory.extraction import IMPORTED, first_mark, watermark
from roomlore.core.models import Entry, Role, StoredMessage
from roomlore.ports.coordination import Clock, Jobs
from roomlore.ports.storage import UnitOfWork

EXTRACTION = "extraction"
"""The work that turns replies into short memories, and the background job that enqueues it."""
_MAX_KNOWN = 100_000


class RepliesDue:
    """Watch new messages for replies of agents.

    An agent's count in a room begins with the first reply seen here, and what it reads begins with what led to that
    reply, except what was imported: that is history, not part of an ongoing conversation.
    """

    def __init__(self, *, clock: Clock, jobs: Jobs) -> None:
        self._clock = clock
        self._jobs = jobs
        self._begun: set[tuple[str, str, str]] = set()

    async def note(self, work: UnitOfWork, tenant: str, room_id: str, entries: Sequence[Entry]) -> None:
        """Note the room, in the transaction that writes the entries, if there is a reply among them."""
        first: dict[str, int] = {}
        for entry in entries:
            if is_reply(entry.message):
                first.setdefault(entry.message.sender_id, entry.message.arrival)
        if first:
            await self._begin(work, tenant, room_id, first)
            await work.progress.note_room(tenant=tenant, room_id=room_id, work=EXTRACTION, now=self._clock.now())

    def announce(self) -> None:
        """Request the work once the transaction is committed."""
        self._jobs.ask(EXTRACTION)

    async def _begin(self, work: UnitOfWork, tenant: str, room_id: str, first: dict[str, int]) -> None:
        named = {"tenant": tenant, "room_id": room_id}
        unknown = {agent: arrival for agent, arrival in first.items() if (tenant, room_id, agent) not in self._begun}
        names = {agent: watermark(agent) for agent in unknown}
        marks = await work.progress.marks(**named, names=[*names.values(), IMPORTED]) if names else {}
        for agent, arrival in unknown.items():
            if names[agent] in marks:
                self._remember(tenant, room_id, agent)
                continue
            start = first_mark(arrival, marks.get(IMPORTED, 0))
            await work.progress.move_mark(**named, name=names[agent], arrival=start, was=0, now=self._clock.now())

    def _remember(self, tenant: str, room_id: str, agent_id: str) -> None:
        if len(self._begun) >= _MAX_KNOWN:
            self._begun.clear()
        self._begun.add((tenant, room_id, agent_id))


class RepliesImported:
    """Watch imports. Imported messages are never extracted, so the count of an agent that is active in the room starts
    again after them."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def note(self, work: UnitOfWork, tenant: str, room_id: str, entries: Sequence[Entry]) -> None:
        replies = [entry.message for entry in entries if is_reply(entry.message)]
        ends = {watermark(message.sender_id): message.arrival for message in replies}
        if entries:
            await self._move_imported(work, tenant, room_id, entries[-1].message.arrival)
        while ends:
            ends = await self._move(work, tenant, room_id, ends)

    async def _move_imported(self, work: UnitOfWork, tenant: str, room_id: str, end: int) -> None:
        named = {"tenant": tenant, "room_id": room_id}
        was = (await work.progress.marks(**named, names=[IMPORTED])).get(IMPORTED, 0)
        await work.progress.move_mark(**named, name=IMPORTED, arrival=end, was=was, now=self._clock.now())

    async def _move(self, work: UnitOfWork, tenant: str, room_id: str, ends: dict[str, int]) -> dict[str, int]:
        """Move the existing watermarks; return those that a memory moved meanwhile, which locks no room."""
        named = {"tenant": tenant, "room_id": room_id}
        left: dict[str, int] = {}
        for name, was in (await work.progress.marks(**named, names=list(ends))).items():
            if not await work.progress.move_mark(
                **named, name=name, arrival=ends[name], was=was, now=self._clock.now()
            ):
                left[name] = ends[name]
        return left

    def announce(self) -> None:
        """Do nothing: an import makes nothing due."""


def is_reply(message: StoredMessage) -> bool:
    return message.role is Role.ASSISTANT and not message.has_tool_calls
