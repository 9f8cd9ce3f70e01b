"""What is remembered: of a scope now and at a time, its log with word-level diffs, and what made one memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Literal
from zoneinfo import ZoneInfo

from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.strength import strength_at
from roomlore.core.memory.intake import scope_of
from roomlore.core.memory.models import Change, Memory, MemoryKind, MemoryStatus, Scope
from roomlore.core.memory.past import Blame, BlamedVersion
from roomlore.core.memory.words_diff import Piece, words_diff
from roomlore.surfaces.console.frame import Page
from roomlore.wiring import Lore

_SCOPES = 50
_MEMORIES = 100
_CHANGES = 40
_STEPS = 100


@dataclass(frozen=True, slots=True)
class Told:
    """An entry of the log with what it says, word by word."""

    change: Change
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Entries of the log, the newest first, that one evolution made one after the other; None: people or programs."""

    evolution_id: str | None
    told: list[Told]


@dataclass(frozen=True, slots=True)
class Then:
    """Which moment is looked at. `at`: None for now. `step`: where the slider stands, of 0 to 100."""

    at: datetime | None
    step: int
    begins: datetime | None


@dataclass(frozen=True, slots=True)
class Asked:
    """Which of the memories: from where on; and of those there are now, of a kind, '' for all, in force or not."""

    kind: str
    status: Literal["active", "deprecated"]
    offset: int

    @property
    def kinds(self) -> list[MemoryKind]:
        return [MemoryKind(self.kind)] if self.kind else list(MemoryKind)

    @property
    def status_asked(self) -> str | None:
        """None for what is shown unless somebody asks."""
        return None if self.status == "active" else self.status

    @property
    def chosen(self) -> bool:
        return bool(self.kind or self.status_asked or self.offset)


async def scopes(page: Page) -> Response:
    lore, after = page.lore, page.asked("after") or None
    async with lore.storage.reading() as work:
        found = await work.memory_log.scopes(tenant=lore.tenant, after=after, limit=_SCOPES)
    following = found[-1].scope if len(found) == _SCOPES else None
    return page.show("memories.html", found=found, next=following, after=after)


async def memory(page: Page) -> Response:
    """A scope's memories now or at a time, and the newest of its log, or those up to an entry's number."""
    lore, scope = page.lore, scope_of(page.needed("id"))
    async with lore.storage.reading() as work:
        stored = await work.memory_log.scope(tenant=lore.tenant, scope=scope)
    then = await _then(page, lore, scope)
    last = min(page.number("to") or _last(stored), _last(stored))
    changes = await _changes(lore, scope, last)
    asked = _asked(page)
    found, total = await _remembered(lore, scope, then.at, asked)
    return page.show(
        "memory.html",
        scope=scope,
        found=[(one, _strength(lore, one, then.at)) for one in found],
        total=total,
        asked=asked,
        then=then,
        stretches=_stretches(changes),
        older=last - _CHANGES if last > _CHANGES else None,
        newer=min(last + _CHANGES, _last(stored)) if last < _last(stored) else None,
        done=page.asked("done"),
        group=scope.removeprefix("group:") if scope.startswith("group:") else None,
    )


async def lineage(page: Page) -> Response:
    """What made a memory: its versions, how each differs from the one before, and the messages it rests on."""
    found = await page.lore.memories.blame(page.needed("id"))
    versions = [(one, _against(one, found)) for one in found.versions]
    alive = found.memory.status is MemoryStatus.ACTIVE
    return page.show("lineage.html", memory=found.memory, versions=versions, alive=alive, done=page.asked("done"))


async def _then(page: Page, lore: Lore, scope: str) -> Then:
    first = await lore.memories.changes(scope, limit=1)
    begins, now = first[0].at if first else None, lore.now()
    zone = ZoneInfo(lore.settings.time_zone)
    at = _read(page.asked("at"), zone)
    if begins is None or (at is None and not page.asked("step")):
        return Then(at, _STEPS, begins)
    if at is not None:
        whole = (now - begins).total_seconds() or 1.0
        return Then(at, max(0, min(_STEPS, round(_STEPS * (at - begins).total_seconds() / whole))), begins)
    step = _step(page.asked("step"))
    return Then(None if step == _STEPS else begins + (now - begins) * step / _STEPS, step, begins)


def _read(text: str, zone: ZoneInfo) -> datetime | None:
    """A day or a time as a browser's field has it, in the zone of the settings. Raises `InvalidInput`."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=zone)
    except ValueError as error:
        raise InvalidInput(f"at is {text!r:.40}; give a day or a time such as 2024-05-01T12:00.") from error


def _step(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and int(text) <= _STEPS):
        raise InvalidInput(f"step is {text!r:.40}; it must be a whole number from 0 to {_STEPS}.")
    return int(text)


def _last(stored: Scope | None) -> int:
    return stored.changes if stored else 0


async def _changes(lore: Lore, scope: str, last: int) -> list[Change]:
    """Up to the entry with this number, the newest first."""
    if last < 1:
        return []
    return await lore.memories.latest_changes(scope, before=last + 1, limit=_CHANGES)


def _asked(page: Page) -> Asked:
    kind, status = page.asked("kind"), page.asked("status", "active")
    for name, given, known in (("kind", kind, ("", *MemoryKind)), ("status", status, ("active", "deprecated"))):
        if given not in known:
            raise InvalidInput(f"{name} is {given!r:.40}; it is one of {', '.join(filter(None, known))}.")
    return Asked(kind, "active" if status == "active" else "deprecated", page.number("offset") or 0)


async def _remembered(lore: Lore, scope: str, at: datetime | None, asked: Asked) -> tuple[list[Memory], int]:
    """A page of them, and how many there are on all pages."""
    if at is not None:
        then = await lore.memories.as_of(scope, at)
        return then[asked.offset : asked.offset + _MEMORIES], len(then)
    which: Any = {"kinds": asked.kinds, "status": asked.status}
    found = await lore.memories.page(scope, limit=_MEMORIES, offset=asked.offset, **which)
    return found, await lore.memories.count(scope, **which)


def _strength(lore: Lore, one: Memory, at: datetime | None) -> float:
    return strength_at(one, at or lore.now(), lore.settings.strength_half_life_days)


def _stretches(changes: Sequence[Change]) -> list[Stretch]:
    together = groupby(changes, key=lambda one: one.evolution_id)
    return [Stretch(evolution_id, [Told(one, _pieces(one)) for one in run]) for evolution_id, run in together]


def _pieces(one: Change) -> tuple[Piece, ...]:
    here = one.memory
    if here.status is MemoryStatus.DEPRECATED:
        return (Piece("gone", here.statement),)
    if one.old_statement is None or one.old_statement == here.statement:
        return (Piece("new" if one.old_statement is None else "same", here.statement),)
    return words_diff(one.old_statement, here.statement)


def _against(one: BlamedVersion, found: Blame) -> tuple[Piece, ...]:
    """Against the version before, where that is known."""
    before = {other.memory.memory_id: other.memory for other in found.versions}
    parent = before.get(one.memory.parent_id or "")
    if parent is None:
        return (Piece("same", one.memory.statement),)
    return words_diff(parent.statement, one.memory.statement)
