"""The port `UnitOfWork`: repositories of one transaction, each built when it is first used."""

from functools import cached_property

from roomlore.adapters.sql.corrections import SqlCorrections
from roomlore.adapters.sql.engine import Connection
from roomlore.adapters.sql.integrity import MemoryAudit, MessageAudit
from roomlore.adapters.sql.locks import Locks
from roomlore.adapters.sql.memories import EvolutionRecords, MemoryReading, NumberedReading
from roomlore.adapters.sql.memory_log import MemoryLog
from roomlore.adapters.sql.messages import MessageReading, ThreadReading
from roomlore.adapters.sql.outbox import MEMORIES_DUE, MESSAGES_DUE, IndexStates, SqlOutbox
from roomlore.adapters.sql.people import PeopleInRooms, Rewriting, StoredRows
from roomlore.adapters.sql.rooms import ImportPositions, SqlKeys, SqlRooms
from roomlore.adapters.sql.sessions import SqlSessions
from roomlore.adapters.sql.titles import SqlTitles
from roomlore.adapters.sql.usage import SqlUsage
from roomlore.adapters.sql.words import WordReading
from roomlore.adapters.sql.work import DueRooms, Leases, Watermarks
from roomlore.adapters.sql.writer import MessageWriting


class SqlMessages(MessageReading, ThreadReading, WordReading, MessageWriting):
    """The port `Messages`."""


class SqlMemories(MemoryReading, NumberedReading, EvolutionRecords, MemoryLog):
    """The port `Memories`."""


class SqlProgress(IndexStates, DueRooms, Leases, Watermarks, ImportPositions):
    """The port `Progress`."""

    @cached_property
    def outbox(self) -> SqlOutbox:
        return SqlOutbox(self._sql, self._locks, MESSAGES_DUE)

    @cached_property
    def memory_outbox(self) -> SqlOutbox:
        return SqlOutbox(self._sql, self._locks, MEMORIES_DUE)


class SqlMaintenance(PeopleInRooms, Rewriting, StoredRows, MessageAudit, MemoryAudit):
    """The port `Maintenance`."""


class SqlUnitOfWork:
    """The port `UnitOfWork`. `connection`: for other data of this package in the database."""

    def __init__(self, connection: Connection, *, writing: bool) -> None:
        self.connection = connection
        self._locks = Locks(writing=writing)

    @cached_property
    def rooms(self) -> SqlRooms:
        return SqlRooms(self.connection, self._locks)

    @cached_property
    def messages(self) -> SqlMessages:
        return SqlMessages(self.connection, self._locks)

    @cached_property
    def corrections(self) -> SqlCorrections:
        return SqlCorrections(self.connection, self._locks)

    @cached_property
    def titles(self) -> SqlTitles:
        return SqlTitles(self.connection, self._locks)

    @cached_property
    def sessions(self) -> SqlSessions:
        return SqlSessions(self.connection, self._locks)

    @cached_property
    def memories(self) -> SqlMemories:
        return SqlMemories(self.connection, self._locks)

    @cached_property
    def progress(self) -> SqlProgress:
        return SqlProgress(self.connection, self._locks)

    @cached_property
    def usage(self) -> SqlUsage:
        return SqlUsage(self.connection, self._locks)

    @cached_property
    def keys(self) -> SqlKeys:
        return SqlKeys(self.connection, self._locks)

    @cached_property
    def maintenance(self) -> SqlMaintenance:
        return SqlMaintenance(self.connection, self._locks)
