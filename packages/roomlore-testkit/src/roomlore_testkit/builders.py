"""Values with sensible defaults: a test names only the fields it is about."""

from datetime import UTC, datetime, timedelta
from typing import Any

from roomlore.core.memory.memory import Action, Change, Evolution, Memory, MemoryKind
from roomlore.core.models import ContextUsageRecord, Entry, Link, LinkKind, MessageFeatures, StoredMessage
from roomlore.core.sessions.session import Checkpoint, Session

START = datetime(2024, 5, 1, 9, 0, tzinfo=UTC)


def message(arrival: int = 1, **fields: Any) -> StoredMessage:
    """Return a stored message `m<arrival>` of ann in "room", sent `arrival` minutes after `START`."""
    given: dict[str, Any] = {
        "id": f"m{arrival}",
        "room_id": "room",
        "sender_id": "ann",
        "text": f"text {arrival}",
        "sent_at": START + timedelta(minutes=arrival),
        "tokens": 3,
    }
    return StoredMessage(arrival=arrival, **(given | fields))


def features(**fields: Any) -> MessageFeatures:
    """Return the features of a plain remark."""
    return MessageFeatures(**fields)


def link(thread: int = 1, parent: int | None = None, **fields: Any) -> Link:
    """Return a guessed link if there is a parent, else the start of a thread."""
    kind = LinkKind.NEW if parent is None else LinkKind.GUESS
    given: dict[str, Any] = {"kind": kind, "parent_probability": 0.0 if parent is None else 0.75}
    return Link(thread=thread, parent=parent, **(given | fields))


def entry(
    arrival: int = 1, *, features: MessageFeatures | None = None, link: Link | None = None, **fields: Any
) -> Entry:
    """Return `message(arrival, **fields)` as an entry that starts a thread of its own by default."""
    return Entry(
        message=message(arrival, **fields),
        features=features or MessageFeatures(),
        link=link or Link(kind=LinkKind.NEW, thread=arrival),
    )


def usage_record(context_id: str = "c1", **fields: Any) -> ContextUsageRecord:
    """Return the usage record of a context of two messages."""
    given: dict[str, Any] = {
        "room_id": "room",
        "user_id": "ann",
        "trigger_message_id": "m3",
        "strategy": "threaded",
        "context_message_ids": ("m1", "m2"),
        "relevance_scores": {"m1": 0.25, "m2": 0.5},
        "tokens": 6,
        "window_tokens": 60,
        "build_ms": 1.5,
        "created_at": START,
    }
    return ContextUsageRecord(context_id=context_id, **(given | fields))


def session(version: int = 1, **fields: Any) -> Session:
    """Return the session of "room" in the tenant "acme" before any message."""
    given: dict[str, Any] = {
        "tenant": "acme",
        "conversation_id": "room",
        "revision": 0,
        "next_arrival": 1,
        "user_id": "ann",
        "created_at": START,
        "updated_at": START,
    }
    return Session(version=version, **(given | fields))


def checkpoint(number: int = 1, **fields: Any) -> Checkpoint:
    """Return the summary `c<number>` of "room", made `number` hours after `START`."""
    given: dict[str, Any] = {
        "checkpoint_id": f"c{number}",
        "conversation_id": "room",
        "summary": f"summary {number}",
        "created_at": START + timedelta(hours=number),
    }
    return Checkpoint(number=number, **(given | fields))


def memory(memory_id: str = "f1", **fields: Any) -> Memory:
    """Return the first version of an active fact about ann."""
    given: dict[str, Any] = {
        "lineage_id": memory_id,
        "scope": "user:ann",
        "kind": MemoryKind.FACT,
        "statement": f"statement {memory_id}",
        "created_at": START,
        "updated_at": START,
        "supported_at": START,
    }
    return Memory(memory_id=memory_id, **(given | fields))


def change(number: int = 1, memory: Memory | None = None, **fields: Any) -> Change:
    """Return entry `number` of the log of the memory's scope, which creates it, `number` minutes after `START`."""
    made = memory or _first_memory
    given: dict[str, Any] = {
        "scope": made.scope,
        "action": Action.CREATE,
        "memory": made,
        "at": START + timedelta(minutes=number),
    }
    return Change(number=number, **(given | fields))


_first_memory = memory()


def evolution(evolution_id: str = "e1", **fields: Any) -> Evolution:
    """Return the record of reading the first three messages of "room" for facts about ann."""
    given: dict[str, Any] = {
        "scope": "user:ann",
        "kind": "extraction",
        "status": "applied",
        "room_id": "room",
        "first_arrival": 1,
        "last_arrival": 3,
        "messages": 3,
        "started_at": START,
        "finished_at": START + timedelta(seconds=2),
    }
    return Evolution(evolution_id=evolution_id, **(given | fields))
