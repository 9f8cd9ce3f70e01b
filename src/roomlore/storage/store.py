"""Units of work on SQLite and PostgreSQL: their repositories, each built when it is first used, and their connections
and transactions.

Brief units share a transaction: one commit for all of them, and a savepoint for each. A unit leads if it finds no
other. Those that come until its block ends join its transaction, one after another. No unit ends before the commit, so
what was acknowledged is as durable as if it had been committed alone.
"""

import asyncio
from asyncio import CancelledError, Future, get_running_loop
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from roomlore.core.errors import RoomloreError, StorageBusy, StorageUnavailable
from roomlore.storage.archives import Archives
from roomlore.storage.engine import SAVEPOINT, UNDO, WAIT_SECONDS, Connection, Locks, Repository, shielded, the_tenant
from roomlore.storage.every_row import StoredRows
from roomlore.storage.integrity import MemoryAudit, MessageAudit
from roomlore.storage.memories import EvolutionRecords, MemoryReading, NumberedReading
from roomlore.storage.memory_log import MemoryLog
from roomlore.storage.messages import MessageReading
from roomlore.storage.outbox import MEMORIES_DUE, MESSAGES_DUE, IndexStates, Outbox
from roomlore.storage.people import PeopleInRooms, Rewriting
from roomlore.storage.related import ThreadReading
from roomlore.storage.removal import RoomRemoval
from roomlore.storage.rooms import ImportPositions, Keys, Rooms
from roomlore.storage.sessions import Sessions
from roomlore.storage.sqlite import OpenFile
from roomlore.storage.stamps import RoomWrites, Stamp
from roomlore.storage.tenants import Tenants
from roomlore.storage.threads import Corrections, ThreadTitles
from roomlore.storage.usage import Usage
from roomlore.storage.words import WordReading
from roomlore.storage.work import DueRooms, Leases, Watermarks
from roomlore.storage.writer import MessageWriting

C = TypeVar("C", bound=Connection)
R = TypeVar("R", bound=Repository)
_MAX_UNITS = 32
_MAX_SECONDS = 0.02
"""A transaction takes in no more units after this long, so that no unit waits long for its commit."""
_UNDONE = "database_write_undone"
_GROWS = """INSERT OR REPLACE INTO import_positions (tenant, source, position, saved_at)
VALUES ('', '', hex(zeroblob(32768)), 0)"""
"""A write of 64 KiB, which is undone."""


class Messages(MessageReading, ThreadReading, WordReading, MessageWriting):
    """The messages of a room, their threads and words.

    Appending, replacing and erasing messages update their words, the participants, the keyword counts and the room's
    counters in the same transaction. A call that changes messages needs the room's lock, and raises its revision by
    one.
    """


class Memories(MemoryReading, NumberedReading, EvolutionRecords, MemoryLog):
    """The memories of a tenant, the logs of its scopes, and the records of what made them.

    The head of a lineage is its active version or, if there is none, the last active one: the newest, unless an earlier
    one was restored. A log is the only way to change a memory.
    """


class Progress(IndexStates, DueRooms, Leases, Watermarks, ImportPositions):
    """Work that is due, who holds it, and how far it is done."""

    @property
    def outbox(self) -> Outbox:
        """The outbox of messages."""
        return Outbox(self._sql, self._locks, self._of, MESSAGES_DUE)

    @property
    def memory_outbox(self) -> Outbox:
        """The outbox of memories. The log adds the entries that its changes make due, if a vector index of memories was
        begun."""
        return Outbox(self._sql, self._locks, self._of, MEMORIES_DUE)


class Maintenance(PeopleInRooms, RoomRemoval, Rewriting, StoredRows, MessageAudit, MemoryAudit):
    """Removing a person or a room, rewriting memories in place, and reading rows as they are stored."""


class _Part(Generic[R]):
    """A part of a unit of work, made when it is first used. `cached_property` takes a lock, with every message."""

    def __init__(self, made: Callable[[Connection, Locks, str | None], R]) -> None:
        self._made = made

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, work: "UnitOfWork", _: object = None) -> R:
        part = work.__dict__[self._name] = self._made(*work.given)
        return part


class UnitOfWork:
    """One transaction's view of everything stored: of one tenant, or over all of them.

    Calls that need a tenant raise `RuntimeError` in a unit over all tenants. `connection`: for other data of this
    package in the database. `given`: what its parts are made of.
    """

    rooms = _Part(Rooms)
    messages = _Part(Messages)
    corrections = _Part(Corrections)
    titles = _Part(ThreadTitles)
    sessions = _Part(Sessions)
    memories = _Part(Memories)
    progress = _Part(Progress)
    usage = _Part(Usage)
    keys = _Part(Keys)
    archives = _Part(Archives)
    tenants = _Part(Tenants)
    maintenance = _Part(Maintenance)

    def __init__(self, connection: Connection, locks: Locks, tenant: str | None) -> None:
        self.connection = connection
        self.given = connection, locks, tenant
        self._others: dict[str, UnitOfWork] = {}

    @property
    def tenant(self) -> str:
        """Return the tenant; raise `RuntimeError` if the unit is over all tenants."""
        return the_tenant(self.given[2])

    def of(self, tenant: str) -> "UnitOfWork":
        """Return a unit of the same transaction, under the same locks, for this tenant."""
        return self._others.setdefault(tenant, UnitOfWork(*self.given[:2], tenant))


class ConnectionSource(Protocol[C]):
    """The maker of a pool's connections."""

    async def open(self) -> C:
        """Return a new connection. Raises `StorageUnavailable` if there is none."""

    async def close(self, connection: C) -> None:
        """Close a connection that nobody uses."""

    async def drop(self, connection: C) -> None:
        """Close a connection that may be inside a transaction or call."""

    async def end(self) -> None:
        """Release what the connections shared."""


@dataclass(frozen=True, slots=True)
class _Held(Generic[C]):
    """A connection in use, with the generation of the pool at that time."""

    connection: C
    age: int


class Connections(Generic[C]):
    """A pool of at most `most` connections. After one breaks, all are replaced, as the others broke with it."""

    def __init__(self, source: ConnectionSource[C], *, most: int) -> None:
        self._source = source
        self._turns = asyncio.Semaphore(most)
        self._idle: list[_Held[C]] = []
        self._age = 0

    def one(self) -> "_Lease[C]":
        """Yield a connection for one unit of work. Raises `StorageUnavailable` if none is available."""
        return _Lease(self)

    async def take(self) -> "_Held[C]":
        """Return a connection, which its user gives back. Raises as `one` does."""
        await self._turn()
        try:
            return self._idle.pop() if self._idle else await self._opened()
        except BaseException:
            self._turns.release()
            raise

    def idle(self) -> C | None:
        """Return a connection that nobody uses, to ask it something at once; None if there is none."""
        held = self._idle[-1] if self._idle else None
        return held.connection if held and held.age == self._age else None

    async def give_back(self, held: "_Held[C]") -> None:
        try:
            if held.age != self._age or held.connection.broken():
                await shielded(self._drop(held))
            elif held.connection.interrupted:
                await shielded(self._source.drop(held.connection))
            else:
                self._idle.append(held)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Close idle connections now, and the others when they are returned."""
        self._age += 1
        idle, self._idle = self._idle, []
        for held in idle:
            await self._source.close(held.connection)
        await self._source.end()

    async def _turn(self) -> None:
        if not self._turns.locked():
            await self._turns.acquire()
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):  # `wait_for` may swallow a cancellation that comes now
                await self._turns.acquire()
        except TimeoutError as exc:
            raise StorageBusy("database_busy") from exc

    async def _opened(self) -> _Held[C]:
        age = self._age
        return _Held(await self._source.open(), age)

    async def _drop(self, held: _Held[C]) -> None:
        await self._source.drop(held.connection)
        if held.age == self._age:
            await self.close()


class _Lease(Generic[C]):
    """The use of one connection of a pool."""

    __slots__ = ("_held", "_pool")

    def __init__(self, pool: Connections[C]) -> None:
        self._pool = pool

    async def __aenter__(self) -> C:
        self._held = await self._pool.take()
        return self._held.connection

    async def __aexit__(self, *_: object) -> None:
        await self._pool.give_back(self._held)


class _Member:
    """A unit that waits for a leader. `turn`: the leader's connection, or None if it is to lead itself. `ended`: True
    if its block succeeded."""

    def __init__(self) -> None:
        loop = get_running_loop()
        self.turn: Future[Connection | None] = loop.create_future()
        self.ended: Future[bool] = loop.create_future()
        self.committed: Future[None] = loop.create_future()

    def fail(self, error: BaseException) -> None:
        if not self.committed.done():
            self.committed.set_exception(copy(error))
            self.committed.exception()  # a unit that was cancelled does not ask for it

    def succeed(self) -> None:
        if not self.committed.done():
            self.committed.set_result(None)


class GroupCommit:
    """The brief units of work of one writing connection. `transaction` opens it and begins a transaction; it rolls back
    on an error."""

    def __init__(self, transaction: Callable[[], AbstractAsyncContextManager[Connection]]) -> None:
        self._transaction = transaction
        self._leading = False
        self._waiting: deque[_Member] = deque()

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Connection]:
        """Yield the connection for one brief unit, and return when it is committed."""
        if self._leading:
            member = _Member()
            self._waiting.append(member)
            connection = await self._turn(member)
            if connection is not None:
                async with _ended(member):
                    yield connection
                await member.committed
                return
        self._leading = True
        try:
            async with self._transaction() as connection:
                until = monotonic() + _MAX_SECONDS
                yield connection
                if self._waiting:
                    await shielded(self._commit_with_others(connection, until))
                else:
                    await connection.commit(brief=True)
        finally:
            self._pass_on()

    async def _turn(self, member: _Member) -> Connection | None:
        try:
            return await member.turn
        except CancelledError:
            if not member.turn.cancelled():  # the turn was granted at this very moment
                if member.turn.result() is None:
                    self._pass_on()
                else:
                    member.ended.set_result(False)
            raise

    def _pass_on(self) -> None:
        """Let the next unit lead."""
        member = self._next()
        if member is None:
            self._leading = False
        else:
            member.turn.set_result(None)

    def _next(self) -> _Member | None:
        while self._waiting:
            member = self._waiting.popleft()
            if not member.turn.done():
                return member
        return None

    async def _commit_with_others(self, connection: Connection, until: float) -> None:
        joined: list[_Member] = []
        try:
            while len(joined) < _MAX_UNITS and monotonic() < until and (member := self._next()):
                if await _joined(member, connection):
                    joined.append(member)
            await connection.commit(brief=True)
        except BaseException as error:
            for member in joined:
                member.fail(error)
            raise
        for member in joined:
            member.succeed()


@asynccontextmanager
async def _ended(member: _Member) -> AsyncIterator[None]:
    try:
        yield
    except BaseException:
        member.ended.set_result(False)
        raise
    member.ended.set_result(True)


async def _joined(member: _Member, connection: Connection) -> bool:
    """Let the unit run inside a savepoint. Return False if it failed and was undone."""
    await connection.run(SAVEPOINT)
    if member.turn.done():  # it was cancelled meanwhile
        return False
    member.turn.set_result(connection)
    if await member.ended:
        return True
    try:
        await connection.run(UNDO)
    except RoomloreError as error:
        raise StorageUnavailable(_UNDONE) from error
    return False


class Storage:
    """Opens units of work on SQLite or PostgreSQL, created by `connect`. All writes of one are committed together when
    its block ends, or none of them if it raises. Belongs to the event loop on which it was created."""

    def __init__(
        self,
        readers: Connections[Any],
        writers: Connections[Any],
        *,
        gate: asyncio.Lock | None = None,
        file: OpenFile | None = None,
    ) -> None:
        self._file = file
        self._readers = readers
        self._writers = writers
        self._gate = gate
        self._group = None if readers is writers or gate else GroupCommit(self._transaction)
        self._closed = False
        self._writes = RoomWrites()

    def reading(self, tenant: str | None = None) -> "_Reading":
        """Open a view for reading, of a tenant or over all of them; several may be open at once. Each call sees what
        was committed when it began, so a write may happen between two calls: compare revisions if that matters."""
        return _Reading(self._readers, self._check_open, tenant)

    @asynccontextmanager
    async def writing(
        self, tenant: str | None = None, *, brief: bool = False, rooms: Collection[str] | None = None
    ) -> AsyncIterator[UnitOfWork]:
        """Open a view for writing; committed when the block ends, rolled back when it raises.

        `brief`: the block takes a few milliseconds and waits for nothing but storage. It may share a transaction with
        other brief ones, but not its success or failure, and it still returns only when it is committed. `rooms`: the
        only ones that it changes, None for any.
        """
        self._check_open()
        if brief and self._group is not None:
            async with self._group.unit() as connection:
                self._writes.note(tenant, rooms)
                yield UnitOfWork(connection, Locks(writing=True), tenant)
            return
        async with self._transaction() as connection:
            self._writes.note(tenant, rooms)
            yield UnitOfWork(connection, Locks(writing=True), tenant)
            await connection.commit(brief=False)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        """Yield a connection inside a transaction, which the caller commits."""
        async with self._gate or nullcontext(), self._writers.one() as connection:
            try:
                await connection.run("BEGIN IMMEDIATE" if connection.dialect.name == "sqlite" else "BEGIN")
                yield connection
            except BaseException:
                await shielded(_rollback(connection))
                raise

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[Connection]:
        """Yield the connection that writes, without a transaction, for maintenance commands."""
        self._check_open()
        async with self._gate or nullcontext(), self._writers.one() as connection:
            self._writes.note(None, None)
            yield connection

    def stamp(self, tenant: str = "", room_id: str = "", writer: Connection | None = None) -> Stamp | None:
        """Return the stamp of a room, or of what belongs to no room, without a statement; None while this process
        writes, and with a server, which does not tell it. `writer`: the connection of a unit of work that writes: the
        stamp is that of the room as it leaves it."""
        if self._readers is self._writers or (writer is None and self._gate and self._gate.locked()):
            return None
        writer = writer or self._writers.idle()
        others = writer.committed_elsewhere() if writer else None
        return None if others is None else (writer, others, self._writes.last(tenant, room_id))

    async def ping(self) -> None:
        """Return when the database answers."""
        self._check_open()
        if self._file:
            self._file.check()
        async with self._readers.one() as connection:
            await connection.run("SELECT 1")

    async def try_writing(self) -> None:
        """Commit a write that changes nothing. Raises `StorageUnavailable` if nothing can be written. A file must have
        room for more: a full disk may still take small writes in the place of earlier ones."""
        if self._file:
            self._file.check_space()
        async with self.writing() as work:
            if self._file:
                await work.connection.run(SAVEPOINT)
                await work.connection.run(_GROWS)
                await work.connection.run(UNDO)
            await work.connection.run("UPDATE alembic_version SET version_num = version_num")

    async def close(self) -> None:
        """Close every connection. Later requests for one raise `StorageUnavailable`."""
        self._closed = True
        await self._readers.close()
        await self._writers.close()

    def _check_open(self) -> None:
        """Raise an error after `close`. A disposed pool would open new connections that nobody closes."""
        if self._closed:
            raise StorageUnavailable("lore_closed")


class _Reading:
    """A unit of work for reading."""

    __slots__ = ("_check_open", "_held", "_readers", "_tenant")

    def __init__(self, readers: Connections[Any], check_open: Callable[[], None], tenant: str | None) -> None:
        self._readers = readers
        self._check_open = check_open
        self._tenant = tenant

    async def __aenter__(self) -> UnitOfWork:
        self._check_open()
        self._held = await self._readers.take()
        return UnitOfWork(self._held.connection, Locks(writing=False), self._tenant)

    async def __aexit__(self, *_: object) -> None:
        await self._readers.give_back(self._held)


async def _rollback(connection: Connection) -> None:
    """Roll back. If this fails the connection is `broken`, and closing it ends the transaction."""
    with suppress(RoomloreError):
        await connection.run("ROLLBACK")
