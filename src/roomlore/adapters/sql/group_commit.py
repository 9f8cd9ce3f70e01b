"""Transactions that several units of work share: one commit for all of them, and a savepoint for each.

A unit leads if it finds no other. Those that come until its block ends join its transaction, one after another. No unit
ends before the commit, so what was acknowledged is as durable as if it had been committed alone.
"""

from asyncio import CancelledError, Future, get_running_loop
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from copy import copy
from time import monotonic

from roomlore.adapters.sql.engine import Connection, shielded
from roomlore.core.errors import RoomloreError, StorageUnavailable

_MAX_UNITS = 32
_MAX_SECONDS = 0.02
"""A transaction takes in no more units after this long, so that no unit waits long for its commit."""
SAVEPOINT, UNDO = "SAVEPOINT unit", "ROLLBACK TO unit"
_UNDONE = "database_write_undone"


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
                    await connection.run("COMMIT")
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
            await connection.run("COMMIT")
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
