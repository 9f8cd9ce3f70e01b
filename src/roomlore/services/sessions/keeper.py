"""Changing what is stored of one tenant's sessions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from roomlore.core.errors import Conflict, NotFound
from roomlore.core.models import Message, StoredMessage
from roomlore.core.sessions.intake import filled
from roomlore.core.sessions.models import Checkpoint, Session
from roomlore.ports.coordination import Clock, Ids, Telemetry
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.sessions.writer import Writer

Change = Callable[[Session], Session]


class SessionKeeper:
    """The stored sessions of one tenant; every change is made under the lock of the room's row."""

    def __init__(
        self, *, tenant: str, storage: Storage, writer: Writer, clock: Clock, ids: Ids, telemetry: Telemetry
    ) -> None:
        self._telemetry = telemetry
        self._tenant = tenant
        self._storage = storage
        self._writer = writer
        self._clock = clock
        self._ids = ids

    async def find(self, conversation_id: str) -> Session | None:
        async with self._storage.reading() as work:
            return await work.sessions.find(tenant=self._tenant, conversation_id=conversation_id)

    async def require(self, work: UnitOfWork, conversation_id: str) -> Session:
        """The session; `NotFound` where there is no such conversation."""
        found = await work.sessions.find(tenant=self._tenant, conversation_id=conversation_id)
        if found is None:
            raise NotFound(f"There is no conversation {conversation_id!r}; create its session, or write a turn to it.")
        return found

    async def stored(self, conversation_id: str, message_ids: Sequence[str]) -> dict[str, StoredMessage]:
        """Those of these messages that are there, by id."""
        async with self._storage.reading() as work:
            found = await work.messages.by_id(
                tenant=self._tenant, room_id=conversation_id, message_ids=list(message_ids)
            )
        return {entry.message.id: entry.message for entry in found}

    async def change(self, conversation_id: str, change: Change, *, make: bool = False) -> Session:
        """Changes the session, as it is stored now. `make`: makes room and session where they are missing."""
        with self._timed():
            return await self._change(conversation_id, change, make=make)

    async def _change(self, conversation_id: str, change: Change, *, make: bool) -> Session:
        async with self._storage.writing() as work:
            stored = await self._locked(work, conversation_id, make=make)
            changed = change(stored)
            return stored if changed == stored and stored.version else await self._save(work, changed)

    async def write(
        self, conversation_id: str, messages: Sequence[Message], *, user_id: str, agent_key: str
    ) -> tuple[Session, bool]:
        """Stores messages and what they say of the session in one transaction; whether they were new."""
        kept: list[Session] = []

        async def keep(work: UnitOfWork) -> None:
            stored = filled(await self.require(work, conversation_id), {"user_id": user_id})
            kept.append(await self._save(work, replace(stored, agent_key=agent_key or stored.agent_key)))

        try:
            with self._timed():
                await self._writer.add({conversation_id: messages}, strict=True, along=keep)
        except Conflict as error:
            raise Conflict(
                f"Turn {messages[-1].turn_id!r} is stored already with other content or another time, and nothing was "
                "changed; repeat the call as it was, or give another turn_id."
            ) from error
        if kept:
            return kept[-1], True
        async with self._storage.reading() as work:
            return await self.require(work, conversation_id), False

    async def reset(self, conversation_id: str) -> None:
        """Puts everything said so far behind a boundary, and no checkpoint in force."""
        async with self._storage.writing() as work:
            stored = await self._locked(work, conversation_id, make=False)
            mark = Checkpoint(
                checkpoint_id=self._ids.new(),
                conversation_id=conversation_id,
                number=stored.marks + 1,
                kind="reset",
                covers_arrival=stored.next_arrival - 1,
                created_at=self._clock.now(),
            )
            await work.sessions.mark(tenant=self._tenant, checkpoint=mark)
            await self._save(work, replace(stored, boundary=mark.covers_arrival, checkpoint=None, marks=mark.number))
            if stored.due:
                named: Mapping[str, str] = {"tenant": self._tenant, "conversation_id": conversation_id}
                await work.sessions.schedule(**named, due=None, was=stored.due.at)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        begun = self._clock.monotonic()
        yield
        self._telemetry.observe("roomlore_session_seconds", self._clock.monotonic() - begun, labels={"part": "write"})

    async def _locked(self, work: UnitOfWork, conversation_id: str, *, make: bool) -> Session:
        if not make:
            await self.require(work, conversation_id)
        await work.rooms.lock(tenant=self._tenant, room_id=conversation_id, now=self._clock.now())
        return await self.require(work, conversation_id)

    async def _save(self, work: UnitOfWork, session: Session) -> Session:
        saved = replace(session, version=session.version + 1, updated_at=self._clock.now())
        await work.sessions.save(session=saved)
        return saved
