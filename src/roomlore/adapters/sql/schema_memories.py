"""The tables of memories: their log, what made them, how far work on rooms has come, and who is at it.

Written as `schema` is. Everything of a scope is found by `scope_key`; its row is what a writer locks.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
)

from roomlore.adapters.sql.schema import Key, Name, metadata

scopes = Table(
    "memory_scopes",
    metadata,
    Column("scope_key", Key, primary_key=True),
    Column("tenant", Name, nullable=False),
    Column("scope", Name, nullable=False),
    Column("changes", BigInteger, nullable=False),
    Column("active", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("index_version", BigInteger, nullable=False, server_default="0"),
    UniqueConstraint("tenant", "scope"),
)
"""`changes`: the number of the last entry of the scope's log. `active`: how many of its memories are. `index_version`:
as that of `rooms`."""

memories = Table(
    "memories",
    metadata,
    Column("memory_key", Key, primary_key=True),
    Column("scope_key", Key, ForeignKey("memory_scopes.scope_key"), nullable=False),
    Column("tenant", Name, nullable=False),
    Column("memory_id", Name, nullable=False),
    Column("lineage_id", Name, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("head", Boolean, nullable=False),
    Column("merged_into", Name),
    Column("status", Name, nullable=False),
    Column("kind", Name, nullable=False),
    Column("statement", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("strength", Double, nullable=False),
    Column("confidence", Double),
    Column("parents", Text, nullable=False),
    Column("sources", Text, nullable=False),
    Column("change_summary", Text, nullable=False),
    Column("evolution_id", Name),
    Column("made_by", Text, nullable=False),
    Column("fallback", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("supported_at", BigInteger, nullable=False),
    UniqueConstraint("tenant", "memory_id"),
    UniqueConstraint("tenant", "lineage_id", "version"),
    CheckConstraint("head OR status = 'deprecated'", name="ck_memories_active_is_head"),
)
"""One row a version. `head`: the version of its lineage that is active or, where none is, the one that last was; so
that a lineage has one head, and at most one active version. `merged_into`, on heads only: the lineage that this one was
merged into."""


def _where(condition: Any) -> dict[str, Any]:
    return {"sqlite_where": condition, "postgresql_where": condition}


ACTIVE = memories.c.status == literal_column("'active'")
"""Written out, as an index on part of the rows is only walked by who asks for just that part."""
WAITS_FOR_A_MODEL = memories.c.fallback & ACTIVE

Index("uq_memories_head", memories.c.tenant, memories.c.lineage_id, unique=True, **_where(memories.c.head))
Index(
    "ix_memories_scope",
    memories.c.scope_key,
    memories.c.head,
    memories.c.kind,
    memories.c.status,
    memories.c.updated_at,
    memories.c.memory_id,
)
Index("ix_memories_fallback", memories.c.tenant, memories.c.memory_id, **_where(WAITS_FOR_A_MODEL))

sources = Table(
    "memory_sources",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("room_id", Name, primary_key=True),
    Column("message_id", Name, primary_key=True),
    Column("memory_key", Key, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)
"""Which versions a message supports, deprecated ones too."""

changes = Table(
    "memory_changes",
    metadata,
    Column("scope_key", Key, ForeignKey("memory_scopes.scope_key"), primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("action", Text, nullable=False),
    Column("memory_id", Name, nullable=False),
    Column("memory", Text, nullable=False),
    Column("closes", Text, nullable=False),
    Column("old_statement", Text),
    Column("reason", Text, nullable=False),
    Column("evolution_id", Name),
    Column("undoes", Name),
    Column("actor", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
)
"""The log. `memory`: the whole version as it was after the change, so that the log alone gives the tables back."""
Index("ix_memory_changes_at", changes.c.scope_key, changes.c.at)
Index("ix_memory_changes_memory", changes.c.tenant, changes.c.memory_id)
Index(
    "ix_memory_changes_evolution",
    changes.c.tenant,
    changes.c.evolution_id,
    **_where(changes.c.evolution_id.is_not(None)),
)

outbox = Table(
    "memory_outbox",
    metadata,
    Column("scope_key", Key, primary_key=True, autoincrement=False),
    Column("memory_key", Key, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("queued", BigInteger, nullable=False),
    Column("leased_until", BigInteger),
    Column("lease", BigInteger),
    sqlite_with_rowid=False,
)
"""Versions of memories whose vectors are due, as `index_outbox` has messages."""
Index("ix_memory_outbox_queued", outbox.c.queued, outbox.c.scope_key, outbox.c.memory_key)

evolutions = Table(
    "evolutions",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("evolution_id", Name, primary_key=True),
    Column("scope", Name, nullable=False),
    Column("kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("room_id", Name, nullable=False),
    Column("first_arrival", BigInteger, nullable=False),
    Column("last_arrival", BigInteger, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("prompt_name", Text, nullable=False),
    Column("prompt_hash", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("raw_answer", Text, nullable=False),
    Column("quarantined", Text, nullable=False),
    Column("facts", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger, nullable=False),
)
Index("ix_evolutions_scope", evolutions.c.tenant, evolutions.c.scope, evolutions.c.evolution_id)

watermarks = Table(
    "watermarks",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("room_id", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("arrival", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

rooms_due = Table(
    "rooms_due",
    metadata,
    Column("work", Name, primary_key=True),
    Column("tenant", Name, primary_key=True),
    Column("room_id", Name, primary_key=True),
    Column("noted", BigInteger, nullable=False),
    Column("noted_at", BigInteger, nullable=False),
    Column("leased_until", BigInteger),
    sqlite_with_rowid=False,
)
"""Rooms that some work is due for. `noted`: how often; `noted_at`: when first, since it was last done."""
Index("ix_rooms_due_noted_at", rooms_due.c.work, rooms_due.c.noted_at)

leases = Table(
    "leases",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("holder", Name, nullable=False),
    Column("until", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""Who works on what, until when. One that ran out stays until the same name is taken again."""
