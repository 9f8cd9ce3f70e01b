"""Memories, changes and what became of them, as /memory answers."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from roomlore.core.evolution.result import EvolutionResult
from roomlore.core.evolution.strength import strength_at
from roomlore.core.memory.models import Action, Change, Evolution, Memory, MemoryStatus
from roomlore.core.memory.past import BlamedVersion, Evidence, MemoryDiff, Revised
from roomlore.core.memory.words_diff import words_diff
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

_MADE_BY = (
    "evolution_id", "kind", "room_id", "messages", "prompt_name", "prompt_hash", "model", "started_at", "finished_at",
)  # fmt: skip


def memory(one: Memory, lore: Lore) -> dict[str, Any]:
    now = strength_at(one, lore.now(), lore.settings.strength_half_life_days)
    return {**plain(one), "parent_id": one.parent_id, "strength_now": round(now, 6)}


def memories(found: Iterable[Memory], lore: Lore) -> list[dict[str, Any]]:
    return [memory(one, lore) for one in found]


def version(one: Memory) -> dict[str, Any]:
    """A version in a history."""
    names = ("version", "memory_id", "statement", "status", "created_at", "updated_at", "parent_id")
    return {name: plain(getattr(one, name)) for name in (*names, "change_summary", "made_by")}


def current(versions: list[Memory]) -> Memory:
    """The version in force, or the last one of a memory that was deleted."""
    return next((one for one in versions if one.status is MemoryStatus.ACTIVE), versions[-1])


def change(one: Change) -> dict[str, Any]:
    """An entry of the log, without what it has nothing to say of."""
    told = {
        "number": one.number,
        "timestamp": plain(one.at),
        "action": one.action.value,
        "memory_id": one.memory.memory_id,
        **_said(one),
        "change_reason": one.reason,
        "version": one.memory.version,
        "strength": one.memory.strength if one.action is Action.STRENGTH else None,
        "evolution_id": one.evolution_id,
        "undoes": one.undoes,
        "actor": one.actor,
    }
    return {name: value for name, value in told.items() if value is not None}


def changes(found: Iterable[Change]) -> list[dict[str, Any]]:
    return [change(one) for one in found]


def _said(one: Change) -> dict[str, Any]:
    """Which versions, and what they say: what was there before and what is there now."""
    here, closed = one.memory, list(one.closes)
    if one.action in (Action.STRENGTH, Action.REDACT):
        return {"statement": here.statement}
    if here.status is MemoryStatus.DEPRECATED:
        return {"old_id": here.memory_id, "old_statement": here.statement}
    if not closed:
        return {"new_id": here.memory_id, "statement": here.statement}
    several = {"old_ids": closed} if len(closed) > 1 else {}
    old = {"old_id": closed[0], "old_statement": one.old_statement}
    return {**old, **several, "new_id": here.memory_id, "new_statement": here.statement}


def evolved(group_id: str, result: EvolutionResult) -> dict[str, Any]:
    return {
        "success": True,
        "group_id": group_id,
        "scope": result.scope,
        "evolution_id": result.evolution_id,
        "evolution_time": plain(result.at),
        "stats": plain(result.stats),
        "changes": changes(result.changes),
        "message": result.message,
        "messages": result.messages,
        "remaining": result.remaining,
        "rejected": plain(result.rejected),
        "mode": result.mode,
        "model": result.model,
    }


def difference(found: MemoryDiff, lore: Lore) -> dict[str, Any]:
    return {
        "start": plain(found.start),
        "end": plain(found.end),
        "added": memories(found.added, lore),
        "removed": memories(found.removed, lore),
        "changed": [_revised(one, lore) for one in found.changed],
        "unchanged": found.unchanged,
    }


def _revised(one: Revised, lore: Lore) -> dict[str, Any]:
    return {
        "before": memory(one.before, lore),
        "after": memory(one.after, lore),
        "words": plain(words_diff(one.before.statement, one.after.statement)),
        "changes": changes(one.changes),
    }


def blamed(one: BlamedVersion, lore: Lore) -> dict[str, Any]:
    return {
        "memory": memory(one.memory, lore),
        "change": None if one.change is None else change(one.change),
        "evolution": None if one.evolution is None else _made_by(one.evolution),
        "evidence": [_evidence(found) for found in one.evidence],
    }


def _made_by(one: Evolution) -> dict[str, Any]:
    return {name: plain(getattr(one, name)) for name in _MADE_BY}


def _evidence(found: Evidence) -> dict[str, Any]:
    return {**plain(found.source), "message": plain(found.message)}


def period(since: datetime, now: datetime) -> str:
    return f"{since:%Y-%m-%d} to {now:%Y-%m-%d}"
