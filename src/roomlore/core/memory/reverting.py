"""Taking back what an evolution did."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from roomlore.core.errors import Conflict
from roomlore.core.memory.log import replay
from roomlore.core.memory.models import Action, Change, Memory, MemoryStatus
from roomlore.core.privacy.traces import is_mark

_ACTIVE, _DEPRECATED = MemoryStatus.ACTIVE, MemoryStatus.DEPRECATED
_NAMED = 10


def is_redacted(memory: Memory) -> bool:
    """Whether nothing is left of what it said: it says so, and must not come into force again."""
    return not memory.statement or is_mark(memory.statement)


def touched(changes: Iterable[Change]) -> list[str]:
    """The ids of the versions that changes made, touched or closed, each once, the first one first."""
    return list(dict.fromkeys(name for change in changes for name in (*change.closes, change.memory.memory_id)))


def reverted(
    own: Sequence[Change],
    *,
    logged: Sequence[Change],
    versions: Sequence[Memory],
    number: int,
    reason: str,
    now: datetime,
) -> list[Change]:
    """The changes that take back an evolution: every version that it touched is as it was before, and those that it
    made are in force no more. Nothing where it was taken back already.

    `own`: its changes; an evolution restores nothing. `logged`: what became of the versions that these touch, its own
    changes included. `versions`: as they are, with what is in force of their lineages. `number`: of the scope's last
    change. Raises `Conflict`, which names what was changed since.
    """
    evolution_id = own[0].evolution_id
    if any(change.undoes == evolution_id for change in logged):
        return []
    there = {memory.memory_id: memory for memory in versions}
    back = _as_before(own, logged)
    _check_untouched(own, logged, there, back)
    steps = _steps(touched(own), there, back, reason)
    return [
        Change(
            number=at,
            scope=memory.scope,
            action=Action.REVERT,
            memory=memory,
            closes=closes,
            old_statement=_said(memory, closes, there),
            reason=reason,
            undoes=evolution_id,
            at=now,
        )
        for at, (memory, closes) in enumerate(steps, start=number + 1)
    ]


def _said(memory: Memory, closes: tuple[str, ...], there: Mapping[str, Memory]) -> str | None:
    """What the lineage said so far; None where it was not in force."""
    old = there[closes[0]] if closes else there[memory.memory_id]
    return old.statement if old.status is _ACTIVE else None


def _check_untouched(
    own: Sequence[Change], logged: Sequence[Change], there: Mapping[str, Memory], back: Mapping[str, Memory]
) -> None:
    """`Conflict` unless the versions are as the evolution left them, and nothing else is in force in their place."""
    left, names = replay(own, there), touched(own)
    lineages = {left[name].lineage_id for name in names}
    others = [one for name, one in there.items() if name not in names and one.lineage_id in lineages]
    later = [one for one in logged if one.number > own[-1].number and one.action is Action.REDACT]
    changed = [name for name in names if there[name] != left[name]]
    changed += [one.memory_id for one in others if _is_active(one)]
    changed += [change.memory.memory_id for change in later]
    changed += [name for name, memory in back.items() if is_redacted(memory) and _goes(memory, there[name])]
    if changed:
        shown = ", ".join(f"{name!r:.80}" for name in list(dict.fromkeys(changed))[:_NAMED])
        raise Conflict(
            f"Memories that this evolution touched were changed since: {shown}. Revert what came later first, or "
            "change them by hand; nothing was reverted."
        )


def _as_before(own: Sequence[Change], logged: Iterable[Change]) -> dict[str, Memory]:
    """The versions that were there before the evolution touched them, as they were."""
    last = {change.memory.memory_id: change.memory for change in logged if change.number < own[0].number}
    found: dict[str, Memory] = {}
    for change in own:
        for name in (*change.closes, change.memory.memory_id):
            if name in last and name not in found:
                found[name] = replace(last[name], status=_status_before(change, name))
    return found


def _status_before(change: Change, name: str) -> MemoryStatus:
    ended = name in change.closes or change.action is Action.DELETE
    return _ACTIVE if ended else change.memory.status


def _steps(
    names: Sequence[str], there: Mapping[str, Memory], back: Mapping[str, Memory], reason: str
) -> Iterator[tuple[Memory, tuple[str, ...]]]:
    """Each version as it is to be, with what it takes the place of; the last touched first."""
    wanted = {name: back.get(name) or _gone(there[name], reason) for name in names}
    ends = {one.lineage_id: name for name, one in wanted.items() if _goes(there[name], one)}
    comes = {one.lineage_id for name, one in wanted.items() if _goes(one, there[name])}
    for name, one in reversed(wanted.items()):
        if _goes(there[name], one):
            if one.lineage_id not in comes:
                yield one, ()
        elif _goes(one, there[name]):
            yield one, (ends[one.lineage_id],) if one.lineage_id in ends else ()
        elif name in back and one != there[name]:
            yield one, ()


def _goes(one: Memory, other: Memory) -> bool:
    return _is_active(one) and not _is_active(other)


def _is_active(memory: Memory | None) -> bool:
    return memory is not None and memory.status is _ACTIVE


def _gone(memory: Memory, reason: str) -> Memory:
    return replace(memory, status=_DEPRECATED, change_summary=reason or memory.change_summary)
