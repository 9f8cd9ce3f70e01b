"""Rows of memories and their log to values and back, by position."""

from collections.abc import Mapping
from typing import Any

from roomlore.adapters.sql import schema_memories
from roomlore.adapters.sql.drivers import Row
from roomlore.adapters.sql.values import (
    escape,
    escape_or_none,
    from_micros,
    list_text,
    mapping_text,
    pairs_text,
    read_list,
    read_mapping,
    read_pairs,
    to_micros,
    unescape,
    unescape_or_none,
)
from roomlore.core.memory.models import Action, Change, Memory, MemoryKind, MemoryStatus, Scope, Source

_s, _m, _c = schema_memories.scopes, schema_memories.memories, schema_memories.changes

SCOPE_COLUMNS = (_s.c.scope, _s.c.changes, _s.c.active, _s.c.created_at)
MEMORY_COLUMNS = (
    _m.c.memory_id,
    _m.c.lineage_id,
    _s.c.scope,
    _m.c.kind,
    _m.c.statement,
    _m.c.version,
    _m.c.parents,
    _m.c.status,
    _m.c.tags,
    _m.c.category,
    _m.c.strength,
    _m.c.confidence,
    _m.c.sources,
    _m.c.change_summary,
    _m.c.evolution_id,
    _m.c.made_by,
    _m.c.fallback,
    _m.c.created_at,
    _m.c.updated_at,
    _m.c.supported_at,
)
CHANGE_COLUMNS = (
    _c.c.number,
    _c.c.action,
    _c.c.memory,
    _c.c.closes,
    _c.c.old_statement,
    _c.c.reason,
    _c.c.evolution_id,
    _c.c.undoes,
    _c.c.actor,
    _c.c.at,
)
_KINDS: Mapping[str, MemoryKind] = {kind.value: kind for kind in MemoryKind}
_STATES: Mapping[str, MemoryStatus] = {status.value: status for status in MemoryStatus}
_ACTIONS: Mapping[str, Action] = {action.value: action for action in Action}
_TIMES = ("created_at", "updated_at", "supported_at")


def to_scope(tenant: str, row: Row) -> Scope:
    return Scope(tenant=tenant, scope=unescape(row[0]), changes=row[1], active=row[2], created_at=from_micros(row[3]))


def sources_text(sources: tuple[Source, ...]) -> str:
    return pairs_text([(source.room_id, source.message_id) for source in sources])


def read_sources(text: str) -> tuple[Source, ...]:
    return tuple(Source(room_id, message_id) for room_id, message_id in read_pairs(text))


def content_values(memory: Memory) -> dict[str, Any]:
    """What a version says, by column: all that may change in its row but its status."""
    return {
        "kind": memory.kind.value,
        "statement": escape(memory.statement),
        "tags": list_text(memory.tags),
        "category": escape(memory.category),
        "strength": float(memory.strength),
        "confidence": None if memory.confidence is None else float(memory.confidence),
        "parents": list_text(memory.parents),
        "sources": sources_text(memory.sources),
        "change_summary": escape(memory.change_summary),
        "evolution_id": escape_or_none(memory.evolution_id),
        "made_by": escape(memory.made_by),
        "fallback": memory.fallback,
        "created_at": to_micros(memory.created_at),
        "updated_at": to_micros(memory.updated_at),
        "supported_at": to_micros(memory.supported_at),
    }


def memory_text(memory: Memory) -> str:
    """The whole version as JSON, as the log keeps it."""
    told = {
        "memory_id": memory.memory_id,
        "lineage_id": memory.lineage_id,
        "version": memory.version,
        "status": memory.status.value,
        "kind": memory.kind.value,
        "statement": memory.statement,
        "parents": memory.parents,
        "tags": memory.tags,
        "category": memory.category,
        "strength": memory.strength,
        "confidence": memory.confidence,
        "sources": [(source.room_id, source.message_id) for source in memory.sources],
        "change_summary": memory.change_summary,
        "evolution_id": memory.evolution_id,
        "made_by": memory.made_by,
        "fallback": memory.fallback,
    }
    return mapping_text(told | {name: to_micros(getattr(memory, name)) for name in _TIMES})


def read_memory(text: str, scope: str) -> Memory:
    """Undoes `memory_text`. Written out, as logs are long."""
    told = read_mapping(text)
    return Memory(
        memory_id=told["memory_id"],
        lineage_id=told["lineage_id"],
        scope=scope,
        kind=_KINDS[told["kind"]],
        statement=told["statement"],
        version=told["version"],
        parents=tuple(told["parents"]),
        status=_STATES[told["status"]],
        tags=tuple(told["tags"]),
        category=told["category"],
        strength=told["strength"],
        confidence=told["confidence"],
        sources=tuple([Source(room_id, message_id) for room_id, message_id in told["sources"]]),
        change_summary=told["change_summary"],
        evolution_id=told["evolution_id"],
        made_by=told["made_by"],
        fallback=told["fallback"],
        created_at=from_micros(told["created_at"]),
        updated_at=from_micros(told["updated_at"]),
        supported_at=from_micros(told["supported_at"]),
    )


def to_memory(row: Row) -> Memory:
    return Memory(
        memory_id=unescape(row[0]),
        lineage_id=unescape(row[1]),
        scope=unescape(row[2]),
        kind=MemoryKind(row[3]),
        statement=unescape(row[4]),
        version=row[5],
        parents=read_list(row[6]),
        status=MemoryStatus(row[7]),
        tags=read_list(row[8]),
        category=unescape(row[9]),
        strength=row[10],
        confidence=row[11],
        sources=read_sources(row[12]),
        change_summary=unescape(row[13]),
        evolution_id=unescape_or_none(row[14]),
        made_by=unescape(row[15]),
        fallback=bool(row[16]),
        created_at=from_micros(row[17]),
        updated_at=from_micros(row[18]),
        supported_at=from_micros(row[19]),
    )


def change_values(change: Change) -> dict[str, Any]:
    return {
        "number": change.number,
        "action": change.action.value,
        "memory_id": escape(change.memory.memory_id),
        "memory": memory_text(change.memory),
        "closes": list_text(change.closes),
        "old_statement": escape_or_none(change.old_statement),
        "reason": escape(change.reason),
        "evolution_id": escape_or_none(change.evolution_id),
        "undoes": escape_or_none(change.undoes),
        "actor": escape(change.actor),
        "at": to_micros(change.at),
    }


def to_change(scope: str, row: Row) -> Change:
    return Change(
        number=row[0],
        scope=scope,
        action=_ACTIONS[row[1]],
        memory=read_memory(row[2], scope),
        closes=read_list(row[3]),
        old_statement=unescape_or_none(row[4]),
        reason=unescape(row[5]),
        evolution_id=unescape_or_none(row[6]),
        undoes=unescape_or_none(row[7]),
        actor=unescape(row[8]),
        at=from_micros(row[9]),
    )
