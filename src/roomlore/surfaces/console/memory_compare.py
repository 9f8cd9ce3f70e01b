"""The page that compares what a scope remembered at two points: entries of its log, or times."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.log import Piece, words_diff
from roomlore.core.memory.memory import Change, Revised
from roomlore.core.memory.writing import scope_of
from roomlore.surfaces.console.frame import Page
from roomlore.surfaces.console.memories import read_moment
from roomlore.surfaces.console.shell import name_scopes
from roomlore.wiring import Lore

_POINTS = 100
"""The newest entries that the form offers; older ones are named by a link or by their time."""
_BEFORE_ALL = 0


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the log. `number`: of its last entry, 0 before the first one, None for now and for a time that was
    typed. `change`: that entry. `typed`: True for a time that was typed."""

    at: datetime
    number: int | None = None
    change: Change | None = None
    typed: bool = False


@dataclass(frozen=True, slots=True)
class Reworded:
    """A memory that differs between both points, word by word."""

    revised: Revised
    pieces: tuple[Piece, ...]


async def compare(page: Page) -> Response:
    """Return the page of the differences between two points, the earlier one first; by default what the last evolution
    or change did."""
    lore, scope = page.need("admin", "read"), scope_of(page.needed("id"))
    newest = await lore.memories.latest_changes(scope, limit=_POINTS)
    if not newest:
        return page.show("compare.html", scope=scope, found=None, points=[], changed=(), start=None, end=None)
    await name_scopes(page, [scope])
    points = _points(newest)
    start = await _point(page, lore, scope, "from") or await _entry(lore, scope, _before_last(newest))
    end = await _point(page, lore, scope, "to") or Point(lore.now())
    if end.at < start.at:
        start, end = end, start
    found = await lore.memories.diff(scope, start.at, end.at)
    return page.show(
        "compare.html",
        scope=scope,
        found=found,
        changed=[Reworded(one, words_diff(one.before.statement, one.after.statement)) for one in found.changed],
        points=_with(points, start, end),
        start=start,
        end=end,
    )


def _points(newest: Sequence[Change]) -> list[Point]:
    """Return the moments of these entries, the newest first. Entries of one moment are one change."""
    found: dict[datetime, Point] = {}
    for change in newest:
        found.setdefault(change.at, Point(change.at, change.number, change))
    return list(found.values())


def _with(points: Sequence[Point], *chosen: Point) -> list[Point]:
    """Return the points with those that are chosen, so that the form can show them."""
    known = {one.number for one in points}
    others = {one.number: one for one in chosen if one.change is not None and one.number not in known}
    return sorted((*points, *others.values()), key=lambda one: one.number or 0, reverse=True)


def _before_last(newest: Sequence[Change]) -> int:
    """Return the number of the last entry before the last evolution, or before the last change by hand."""
    last = newest[0]
    before = (one for one in newest if one.at != last.at and (not last.evolution_id or not _with_it(one, last)))
    return next((one.number for one in before), max(_BEFORE_ALL, newest[-1].number - 1))


def _with_it(one: Change, last: Change) -> bool:
    return one.evolution_id == last.evolution_id


async def _point(page: Page, lore: Lore, scope: str, name: str) -> Point | None:
    """Return the point that the address gives, a time before an entry; None if it gives none."""
    at = read_moment(page.asked(f"{name}_at"), page.zone)
    if at is not None:
        return Point(at, typed=True)
    given = page.asked(name)
    if not given:
        return None
    if given == "now":
        return Point(lore.now())
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise InvalidInput(f"{name} is {given!r:.40}; it must be the number of an entry of the log, 0, or now.")
    return await _entry(lore, scope, int(given))


async def _entry(lore: Lore, scope: str, number: int) -> Point:
    """Return the point after this entry. Raise `InvalidInput` if the log does not have it."""
    found = await lore.memories.changes(scope, after=max(0, number - 1), limit=1)
    if not found or found[0].number != max(1, number):
        raise InvalidInput(f"The log of {scope!r:.80} has no entry {number}; choose one from the list.")
    (change,) = found
    if number == _BEFORE_ALL:
        return Point(change.at - timedelta(microseconds=1), _BEFORE_ALL)
    return Point(change.at, number, change)
