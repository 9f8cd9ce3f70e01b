"""One view of everything stored, over one connection."""

from roomlore.adapters.sql.audit import SqlAudit
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.evolutions import SqlEvolutions
from roomlore.adapters.sql.imports import SqlImports
from roomlore.adapters.sql.index_states import SqlIndexStates
from roomlore.adapters.sql.keys import SqlKeys
from roomlore.adapters.sql.leases import SqlLeases
from roomlore.adapters.sql.lexical import SqlLexicalIndex
from roomlore.adapters.sql.memories import SqlMemories
from roomlore.adapters.sql.memory_log import SqlMemoryLog
from roomlore.adapters.sql.memory_numbers import SqlIndexedMemories
from roomlore.adapters.sql.messages import SqlMessages
from roomlore.adapters.sql.outbox import MEMORIES_DUE, MESSAGES_DUE, SqlOutbox
from roomlore.adapters.sql.people import SqlPeople
from roomlore.adapters.sql.people_memories import SqlRewriting
from roomlore.adapters.sql.people_rows import SqlStoredRows
from roomlore.adapters.sql.rooms import Locks, SqlRooms
from roomlore.adapters.sql.rooms_due import SqlRoomsDue
from roomlore.adapters.sql.sessions import SqlSessions
from roomlore.adapters.sql.threads import SqlThreads
from roomlore.adapters.sql.usage import SqlUsage
from roomlore.adapters.sql.watermarks import SqlWatermarks
from roomlore.adapters.sql.writer import SqlMessageWriter


class SqlUnitOfWork:
    """The port `UnitOfWork`; `connection` is for what else this package keeps in the database."""

    __slots__ = (
        "audit",
        "connection",
        "evolutions",
        "imports",
        "index_states",
        "indexed_memories",
        "keys",
        "leases",
        "lexical",
        "memories",
        "memory_log",
        "memory_outbox",
        "messages",
        "outbox",
        "people",
        "rewriting",
        "rooms",
        "rooms_due",
        "rows",
        "sessions",
        "threads",
        "usage",
        "watermarks",
        "writer",
    )

    def __init__(self, connection: Connection, *, writing: bool) -> None:
        self.connection = connection
        locks = Locks(writing=writing)
        self.rooms = SqlRooms(connection, locks)
        self.messages = SqlMessages(connection)
        self.threads = SqlThreads(connection)
        self.writer = SqlMessageWriter(connection, locks)
        self.lexical = SqlLexicalIndex(connection, locks)
        self.outbox = SqlOutbox(connection, locks, MESSAGES_DUE)
        self.memory_outbox = SqlOutbox(connection, locks, MEMORIES_DUE)
        self.indexed_memories = SqlIndexedMemories(connection)
        self.index_states = SqlIndexStates(connection, locks)
        self.usage = SqlUsage(connection, locks)
        self.keys = SqlKeys(connection, locks)
        self.imports = SqlImports(connection, locks)
        self.sessions = SqlSessions(connection, locks)
        self.memory_log = SqlMemoryLog(connection, locks)
        self.memories = SqlMemories(connection)
        self.evolutions = SqlEvolutions(connection, locks)
        self.watermarks = SqlWatermarks(connection, locks)
        self.leases = SqlLeases(connection, locks)
        self.audit = SqlAudit(connection)
        self.rooms_due = SqlRoomsDue(connection, locks)
        self.people = SqlPeople(connection, locks)
        self.rewriting = SqlRewriting(connection, locks)
        self.rows = SqlStoredRows(connection, locks)
