"""The tables, once for SQLite and PostgreSQL.

Times are whole microseconds since 1970-01-01 UTC. Lists and mappings are JSON as text. Texts are stored as `escape`
writes them. The rows of one room are found by `room_key`, short and local; every row also has its tenant, and every
query checks it.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    literal_column,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Name = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that is compared and sorted by code point on both engines."""

Key = BigInteger().with_variant(Integer, "sqlite")
"""A number that SQLite can assign by itself."""

BEING_DELETED = "deleted"


def _where(condition: Any) -> dict[str, Any]:
    """Return the arguments of an index of the rows under this condition alone."""
    return {"sqlite_where": condition, "postgresql_where": condition}


rooms = Table(
    "rooms",
    metadata,
    Column("room_key", Key, primary_key=True),
    Column("tenant", Name, nullable=False),
    Column("room_id", Name, nullable=False),
    Column("next_arrival", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_sent_at", BigInteger),
    Column("settings", Text, nullable=False),
    Column("words", BigInteger, nullable=False, server_default="0"),
    Column("index_version", BigInteger, nullable=False, server_default="0"),
    Column("linked_by", Name, nullable=False, server_default=""),
    Column("link_walk", Name, nullable=False, server_default=""),
    Column("link_walked", BigInteger, nullable=False, server_default="0"),
    Column("calibration", Text, nullable=False, server_default=""),
    Column("kind", Name, nullable=False, server_default=""),
    Column("members_told", Boolean, nullable=False, server_default=false()),
    Column("past_kinds", Text, nullable=False, server_default=""),
    Column("room_name", Text, nullable=False, server_default=""),
    Column("pending_from", BigInteger),
    UniqueConstraint("tenant", "room_id"),
)
"""`index_version`: the last version given to a task of the outbox, so that each is used once. `linked_by`, `link_walk`,
`link_walked`, `calibration`: `core.linking.calibration.Linked`. `kind`: '' if unknown, `BEING_DELETED` once somebody
deletes the room. `members_told`: all members are told. `past_kinds`: '' if it had no other kind, else JSON: each kind,
and until when it was so. `pending_from`: the first arrival that may be pending in `message_words`; NULL if none is."""
Index("ix_rooms_linked_by", rooms.c.linked_by)

messages = Table(
    "messages",
    metadata,
    Column("room_key", Key, ForeignKey("rooms.room_key"), primary_key=True, autoincrement=False),
    Column("arrival", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("message_id", Name, nullable=False),
    Column("sender_id", Name, nullable=False),
    Column("sender_name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("sent_at", BigInteger, nullable=False),
    Column("sent_at_estimated", Boolean, nullable=False),
    Column("reply_to", Name),
    Column("root_id", Name),
    Column("turn_id", Name),
    Column("mentions", Text, nullable=False),
    Column("has_tool_calls", Boolean, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("edited_at", BigInteger),
    Column("deleted_at", BigInteger),
    Column("heard_from", BigInteger),
    Column("heard_until", BigInteger),
    Column("topic_id", Name),
    UniqueConstraint("room_key", "message_id"),
)
"""`heard_from`, `heard_until`: of estimated messages, the time within which they were said."""


Index("ix_messages_sent_at", messages.c.room_key, messages.c.sent_at, messages.c.arrival)
for _column in (messages.c.reply_to, messages.c.root_id, messages.c.topic_id, messages.c.turn_id):
    _given = _where(_column.is_not(None))
    Index(f"ix_messages_{_column.name}", messages.c.room_key, _column, messages.c.arrival, **_given)

features = Table(
    "message_features",
    metadata,
    Column("room_key", Key, primary_key=True, autoincrement=False),
    Column("arrival", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("message_type", Text, nullable=False),
    Column("mentions", Text, nullable=False),
    Column("addressed", Text, nullable=False),
    Column("mentions_all", Boolean, nullable=False),
    Column("keywords", Text, nullable=False),
    Column("reply", Text),
    Column("partners", Text, nullable=False),
    Column("link_kind", Text, nullable=False),
    Column("thread", BigInteger, nullable=False),
    Column("parent", BigInteger),
    Column("parent_probability", Double, nullable=False),
    Column("new_probability", Double, nullable=False),
    Column("thread_candidates", LargeBinary, nullable=False),
    ForeignKeyConstraint(["room_key", "arrival"], ["messages.room_key", "messages.arrival"]),
)
Index("ix_message_features_thread", features.c.room_key, features.c.thread, features.c.arrival)
Index("ix_message_features_parent", features.c.room_key, features.c.parent)

link_corrections = Table(
    "link_corrections",
    metadata,
    Column("room_key", Key, primary_key=True, autoincrement=False),
    Column("arrival", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("kind", Text, nullable=False),
    Column("answers", BigInteger),
    Column("standing", Boolean, nullable=False),
    Column("corrected_by", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("model", Text, nullable=False),
    Column("errors", Text, nullable=False),
    ForeignKeyConstraint(["room_key", "arrival"], ["messages.room_key", "messages.arrival"]),
    sqlite_with_rowid=False,
)
"""The log of the links that people corrected, numbered from 1 for each room. `answers`: the arrival of the message that
is answered. `standing`: in force; one for each message at most. `model`, `errors`: what it added to the calibration of
which link model."""
Index("ix_link_corrections_number", link_corrections.c.room_key, link_corrections.c.number, unique=True)

thread_titles = Table(
    "thread_titles",
    metadata,
    Column("room_key", Key, ForeignKey("rooms.room_key"), primary_key=True, autoincrement=False),
    Column("thread", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("title", Text, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""The titles of threads that a model wrote. `title`: empty if its answer could not be used. `messages`: how many the
thread had then; 0 if the title is to be made again: one of them was changed since, or the model did not answer."""
Index("ix_thread_titles_stale", thread_titles.c.room_key, **_where(thread_titles.c.messages == 0))

participants = Table(
    "participants",
    metadata,
    Column("room_key", Key, ForeignKey("rooms.room_key"), primary_key=True, autoincrement=False),
    Column("sender_id", Name, primary_key=True),
    Column("tenant", Name, nullable=False),
    Column("name", Text, nullable=False),
    Column("first_arrival", BigInteger, nullable=False),
    Column("last_arrival", BigInteger, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("first_spoke_at", BigInteger),
    Column("last_spoke_at", BigInteger),
    Column("answers", Boolean, nullable=False, server_default=false()),
    sqlite_with_rowid=False,
)
"""`first_spoke_at`, `last_spoke_at`: of the messages with the role user, the times between which some were said for
certain; NULL if there are none. `answers`: there are some with the role assistant or tool."""
Index("ix_participants_sender", participants.c.tenant, participants.c.sender_id)
Index("ix_participants_last_spoke_at", participants.c.tenant, participants.c.last_spoke_at)

room_members = Table(
    "room_members",
    metadata,
    Column("room_key", Key, ForeignKey("rooms.room_key"), primary_key=True, autoincrement=False),
    Column("person_id", Name, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("told_at", BigInteger, nullable=False),
    Column("joined_at", BigInteger),
    Column("left_at", BigInteger),
    sqlite_with_rowid=False,
)
"""The stays of people in a room, numbered from 1 for each person. `joined_at`: NULL if unknown. `left_at`: NULL if the
person is still there."""
Index("ix_room_members_person", room_members.c.tenant, room_members.c.person_id)

keyword_counts = Table(
    "keyword_counts",
    metadata,
    Column("room_key", Key, ForeignKey("rooms.room_key"), primary_key=True, autoincrement=False),
    Column("keyword", Name, primary_key=True),
    Column("tenant", Name, nullable=False),
    Column("messages", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

usage_records = Table(
    "context_usage_records",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("context_id", Name, primary_key=True),
    Column("room_id", Name, nullable=False),
    Column("user_id", Name, nullable=False),
    Column("trigger_message_id", Name, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("context_message_ids", Text, nullable=False),
    Column("relevance_scores", Text, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("window_tokens", BigInteger, nullable=False),
    Column("build_ms", Double, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("degraded", Text),
    Column("arm", Text),
    Column("llm_response", Text),
    Column("user_feedback", Text),
    Column("success_indicator", Double),
    Column("mean_score", Double),
)
Index("ix_context_usage_records_room", usage_records.c.tenant, usage_records.c.room_id, usage_records.c.context_id)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", Name, primary_key=True),
    Column("tenant", Name, nullable=False),
    Column("name", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("secret_hash", Name, nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("name", Name, primary_key=True),
    Column("secret", Text, nullable=False),
)

tenant_limits = Table(
    "tenant_limits",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("limits", Text, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
)
"""The limits of a tenant that differ from the settings: JSON, each a number or null for none."""

tenant_counts = Table(
    "tenant_counts",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("period", BigInteger, nullable=False),
    Column("amount", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""How much a tenant used of a limit in the period that began at `period`, the last one in which it used any."""

archives = Table(
    "archives",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("archive_id", Name, primary_key=True),
    Column("room_id", Name, nullable=False),
    Column("phase", Text, nullable=False),
    Column("file", Text, nullable=False),
    Column("first_arrival", BigInteger, nullable=False),
    Column("last_arrival", BigInteger, nullable=False),
    Column("messages", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("checksum", Text, nullable=False),
    Column("archived_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""The files that messages were archived to. `phase`: 'writing' until the messages are deleted here, 'kept' then, and
'gone' once they were brought back, until the file is deleted. `archived_at`: the time of the deletion of its
messages."""
Index("ix_archives_room", archives.c.tenant, archives.c.room_id, archives.c.first_arrival)

import_positions = Table(
    "import_positions",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("source", Name, primary_key=True),
    Column("position", Text, nullable=False),
    Column("saved_at", BigInteger, nullable=False),
)

message_words = Table(
    "message_words",
    metadata,
    Column("room_key", Key, primary_key=True, autoincrement=False),
    Column("arrival", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("length", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("words", Text().with_variant(TSVECTOR(), "postgresql"), nullable=False),
    Column("pending", Boolean, nullable=False, server_default=false()),
    ForeignKeyConstraint(["room_key", "arrival"], ["messages.room_key", "messages.arrival"]),
    sqlite_with_rowid=False,
)
"""The indexed words of each message; deleted messages have a row without words. `changed`: the room's revision of the
last change to data of the message that ranking uses. `pending`: its keywords are not in `keyword_counts` yet, nor on
SQLite its words in the index: those of many messages are written at once (`storage.pending`)."""
Index("ix_message_words_changed", message_words.c.room_key, message_words.c.changed)
Index(
    "ix_message_words_words", message_words.c.words, postgresql_using="gin", postgresql_with={"fastupdate": "off"}
).ddl_if(dialect="postgresql")

index_outbox = Table(
    "index_outbox",
    metadata,
    Column("room_key", Key, primary_key=True, autoincrement=False),
    Column("arrival", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("queued", BigInteger, nullable=False),
    Column("leased_until", BigInteger),
    Column("lease", BigInteger),
    ForeignKeyConstraint(["room_key", "arrival"], ["messages.room_key", "messages.arrival"]),
    sqlite_with_rowid=False,
)
"""Messages with pending vectors. `queued`: a growing number, so that the oldest comes first. `lease`: a random number
of the claim that holds the task."""
Index("ix_index_outbox_queued", index_outbox.c.queued, index_outbox.c.room_key, index_outbox.c.arrival)

index_states = Table(
    "index_states",
    metadata,
    Column("name", Name, primary_key=True),
    Column("model", Text, nullable=False),
    Column("dimensions", BigInteger, nullable=False),
    Column("generation", Text, nullable=False),
    Column("cursor", Text),
    Column("updated_at", BigInteger, nullable=False),
)

vector_collections = Table(
    "vector_collections",
    metadata,
    Column("collection", Name, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("dimensions", BigInteger, nullable=False),
    Column("generation", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
)
"""`kind`: the store of the vectors, 'sql' (the table `vectors`) or 'pgvector' (a table of the collection's own).
`epoch` grows whenever the collection is created again; scopes of earlier epochs are obsolete."""

vector_scopes = Table(
    "vector_scopes",
    metadata,
    Column("scope_key", Key, primary_key=True),
    Column("collection", Name, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("tenant", Name, nullable=False),
    Column("scope", Name, nullable=False),
    Column("stamp", BigInteger, nullable=False),
    UniqueConstraint("collection", "epoch", "tenant", "scope"),
    sqlite_autoincrement=True,
)
"""`stamp` grows with every vector written to the scope. A key is never used again: a search that still loads a scope
dropped meanwhile finds nothing under its key."""

vectors = Table(
    "vectors",
    metadata,
    Column("vector_key", Key, primary_key=True, autoincrement=False),
    Column("scope_key", Key, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("tenant", Name, nullable=False),
    Column("vector", LargeBinary),
    UniqueConstraint("scope_key", "number"),
)
"""`vector`: float16, little-endian; NULL if it was removed, which tells caches of it. `vector_key` consists of the
scope's key and its stamp (`vector_rows.first_key`): SQLite stores the rows of a scope together, in the order in which
they were written."""

sessions = Table(
    "sessions",
    metadata,
    Column("room_key", Key, ForeignKey("rooms.room_key"), primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("user_id", Name, nullable=False),
    Column("enterprise_id", Name),
    Column("patient_id", Name),
    Column("agent_key", Name, nullable=False),
    Column("boundary", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("checkpoint", BigInteger),
    Column("version", BigInteger, nullable=False),
    Column("marks", BigInteger, nullable=False),
    Column("due_at", BigInteger),
    Column("due_tries", BigInteger, nullable=False),
    Column("due_window", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)
"""`checkpoint`: number of the one in force. `marks`: the number of checkpoints and resets."""
Index("ix_sessions_due_at", sessions.c.due_at, **_where(sessions.c.due_at.is_not(None)))

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("room_key", Key, ForeignKey("rooms.room_key"), primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("checkpoint_id", Name, nullable=False),
    Column("kind", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("covers_arrival", BigInteger, nullable=False),
    Column("covers_through", Name),
    Column("turns", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("recent_turns", BigInteger, nullable=False),
    Column("language", Text, nullable=False),
    Column("made_by", Name, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("room_key", "checkpoint_id"),
)


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
"""`changes`: the number of the last entry of the scope's log. `active`: the number of active memories. `index_version`:
as in `rooms`."""

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
    Column("doubtful", Text, nullable=False, server_default=""),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("supported_at", BigInteger, nullable=False),
    Column("evidence", Text, nullable=False, server_default="[]"),
    Column("shared_with", Text, nullable=False, server_default="[]"),
    Column("owner", Name, nullable=False, server_default=""),
    Column("said_by", Text, nullable=False, server_default="[]"),
    Column("valid_from", BigInteger),
    Column("valid_until", BigInteger),
    UniqueConstraint("tenant", "memory_id"),
    UniqueConstraint("tenant", "lineage_id", "version"),
    CheckConstraint("head OR status = 'deprecated'", name="ck_memories_active_is_head"),
)
"""One row for each version. `head`: the active version of its lineage or, if there is none, the last active one; so a
lineage has one head and at most one active version. `merged_into`, on heads only: the lineage that this one was merged
into."""


ACTIVE = memories.c.status == literal_column("'active'")
"""A literal, as a partial index is only used by a query with the same condition."""
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
    memories.c.valid_until,
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
"""The versions that a message supports, deprecated ones included."""

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
"""The log. `memory`: the whole version after the change, so that the tables can be rebuilt from the log alone."""
Index("ix_memory_changes_at", changes.c.scope_key, changes.c.at)
Index("ix_memory_changes_memory", changes.c.tenant, changes.c.memory_id)
Index(
    "ix_memory_changes_evolution",
    changes.c.tenant,
    changes.c.evolution_id,
    **_where(changes.c.evolution_id.is_not(None)),
)

snapshots = Table(
    "memory_snapshots",
    metadata,
    Column("scope_key", Key, ForeignKey("memory_scopes.scope_key"), primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("reached_from", BigInteger, nullable=False),
    Column("in_force", Text, nullable=False),
)
"""The state of a log after some of its entries, derived from it, so that the past is not read from the beginning.
`in_force`: the numbers of the entries that made the present state of the active versions, as JSON."""
Index("ix_memory_snapshots_reached_from", snapshots.c.scope_key, snapshots.c.reached_from, snapshots.c.number)

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
"""Versions of memories with pending vectors, like `index_outbox` for messages."""
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
"""Rooms with pending work. `noted`: how often it was requested; `noted_at`: the first request since it was last
done."""
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
"""The holder of each piece of work, and until when. An expired lease stays until the same name is taken again."""
