"""The pages of memories: those of a scope now and at a time, its log with word-level diffs, two points of it compared,
the history of one memory, recall, and what a room sees."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Literal

from starlette.responses import Response

from roomlore.core.audience import check_viewer, public_windows
from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.requests import strength_at
from roomlore.core.memory.log import TextPiece, words_diff
from roomlore.core.memory.memory import (
    Blame,
    BlamedVersion,
    Change,
    Memory,
    MemoryKind,
    MemoryStatus,
    Revised,
    Scope,
    check_scope,
)
from roomlore.core.memory.writing import scope_of
from roomlore.core.recall.recollection import Recollection, scopes_of
from roomlore.core.visibility import Visibility, is_for_all
from roomlore.services.memories.history import scopes_of as scopes_about
from roomlore.services.memories.history import visible_to
from roomlore.surfaces.people_named import blame_with_people_named
from roomlore.verbs.facts import page_of
from roomlore.wiring import Lore
from roomlore_console.choosing import choice_in, offered
from roomlore_console.frame import Page, Tried
from roomlore_console.frame import visible as visible_text
from roomlore_console.shell import name_scopes

_SCOPES = 50
_SCOPE_MEMORIES = 100
_SCOPE_CHANGES = 40
_SLIDER_STEPS = 100
_COMPARISON_ENTRIES = 100
"""The newest entries that the form of a comparison offers; older ones are named by a link or by their time."""
_BEFORE_FIRST_ENTRY = 0
_USUAL_RECALL_TOKENS = 500
_MAX_RECALL_TOKENS = 1_000_000
_MAX_RECALL_SCOPES = 10
_OFFERED_SCOPES = 24
"""Boxes to tick on the page of recall; others are typed."""
_ROOMS_WITH_PEOPLE = 12
"""Rooms whose people are named where it is said who sees a memory."""
_AUDIENCE_MEMORIES = 200
_AUDIENCE_SCOPES = 200
"""Scopes whose memories a room's page looks at; others are named."""
_HIDDEN_ROOMS = 50


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of the log with its statement, word by word."""

    change: Change
    pieces: tuple[TextPiece, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Successive entries of the log by one evolution, the newest first; None: by people or programs."""

    evolution_id: str | None
    entries: list[LogEntry]


@dataclass(frozen=True, slots=True)
class SelectedMoment:
    """The selected moment. `at`: None for now. `step`: the position of the slider, from 0 to 100."""

    at: datetime | None
    step: int
    begins: datetime | None


@dataclass(frozen=True, slots=True)
class SelectedMemories:
    """The selected memories: the offset; and of the current ones, the kind ('' for all) and the status."""

    kind: str
    status: Literal["active", "deprecated"]
    offset: int

    @property
    def status_asked(self) -> str | None:
        """The requested status, None for the default."""
        return None if self.status == "active" else self.status

    @property
    def chosen(self) -> bool:
        return bool(self.kind or self.status_asked or self.offset)


async def scopes(page: Page) -> Response:
    """Return the page of all whose memories there are, by kind; a name or an id that is looked for leads on."""
    after, tried = page.asked("after") or None, Tried({})
    chosen = await choice_in(page, tried, "find")
    if chosen:
        return page.go("/memory", id=chosen.scope)
    held = await _held(page, after)
    following = held[-1][0] if page.is_admin and len(held) == _SCOPES else None
    return page.show(
        "memories.html",
        tried.status,
        held=held,
        newest={
            scope: (await page.lore.memories.latest_changes(scope, before=changes + 1, limit=1))[0]
            for scope, _, changes in held
            if changes
        },
        next=following,
        after=after,
        tried=tried,
        find=page.asked("find"),
        offered=await offered(page),
    )


async def _held(page: Page, after: str | None = None) -> list[tuple[str, int, int | None]]:
    """Return a page of the scopes with memories that the viewer sees: how many are active, and for an administrator
    the number of changes. Names are looked up."""
    lore, viewer = page.lore, page.viewer
    if viewer is not None:
        shown = Counter(seen.memory.scope for seen in await lore.memories.visible(viewer) if seen.shown)
        return [(scope, active, None) for scope, active in sorted(shown.items())]
    async with lore.storage.reading(lore.tenant) as work:
        stored = await work.memories.scopes(after=after, limit=_SCOPES)
    await name_scopes(page, [row.scope for row in stored])
    return [(row.scope, row.active, row.changes) for row in stored]


async def memory(page: Page) -> Response:
    """Return the page of a scope: its memories now, and for an administrator also at a time, and the newest entries of
    its log, or those up to a number."""
    lore, scope, viewer = page.lore, scope_of(page.needed("id")), page.viewer
    named = await lore.rooms.scope_named(scope, viewer=viewer)
    if named != scope:
        return page.go("/memory", **{**page.request.query_params, "id": named})
    if viewer is not None and any(map(page.asked, ("at", "step", "to"))):
        page.need("admin")
    stored = await _stored_scope(lore, scope) if viewer is None else None
    tried = Tried({})
    at = tried.read("at", lambda: read_moment(page, "at", "memory.at"), None)
    if viewer is None and scope.startswith("group:"):
        await lore.rooms.check_there(scope)
    then = await _selected_moment(page, lore, scope, at) if stored else SelectedMoment(None, _SLIDER_STEPS, None)
    newest = stored.changes if stored else 0
    last = min(page.number("to") or newest, newest)
    changes = await lore.memories.latest_changes(scope, before=last + 1, limit=_SCOPE_CHANGES) if last else []
    selection = _selected_memories(page)
    memories, total = await _memories_on_page(lore, scope, then.at, selection, viewer)
    await name_scopes(page, [scope])
    return page.show(
        "memory.html",
        tried.status,
        tried=tried,
        typed=page.asked("at"),
        scope=scope,
        found=memories,
        locked=await locked(lore, memories) if viewer is None else {},
        total=total,
        asked=selection,
        then=then,
        stretches=_stretches(changes),
        undone={later.undoes for later in await _logged(lore, [change.memory for change in changes]) if later.undoes},
        older=last - _SCOPE_CHANGES if last > _SCOPE_CHANGES else None,
        newer=min(last + _SCOPE_CHANGES, newest) if last < newest else None,
        done=page.asked("done"),
        group=scope.removeprefix("group:") if scope.startswith("group:") else None,
    )


async def _logged(lore: Lore, memories: Sequence[Memory]) -> list[Change]:
    """Return all changes of some versions, ascending."""
    async with lore.storage.reading(lore.tenant) as work:
        return await work.memories.changes_of_memories(memory_ids=[memory.memory_id for memory in memories])


async def lineage(page: Page) -> Response:
    """Return the page of a memory's history: its versions, their differences, and the messages that support it."""
    blame = await blame_with_people_named(page.lore, await _shown_lineage(page, page.needed("id")))
    versions = [(version, _lineage_pieces(version, blame)) for version in blame.versions]
    memory = blame.memory
    alive = memory.status is MemoryStatus.ACTIVE
    seen = await page.lore.memories.seen_in(memory.memory_id) if alive and page.is_admin else None
    ends = reversed(await _logged(page.lore, [memory]) if page.is_admin and not alive else [])
    rooms = await page.lore.rooms.page(limit=_HIDDEN_ROOMS, viewer=None) if seen and seen.hidden_in else []
    shared = [_scope_of_share(target) for target in memory.shared_with]
    await name_scopes(page, [memory.scope, *shared, *(f"group:{room}" for room in (seen.rooms if seen else ()))])
    return page.show(
        "lineage.html",
        memory=memory,
        strength=strength_at(memory, page.lore.now()),
        versions=versions,
        alive=alive,
        ended=next((change for change in ends if change.memory.status is MemoryStatus.DEPRECATED), None),
        done=page.asked("done"),
        seen=seen,
        hidden=[room for room in rooms if seen and room.room_id not in seen.rooms],
        shared=shared,
        people=await _people_of(page.lore, seen.rooms[:_ROOMS_WITH_PEOPLE] if seen else ()),
    )


async def locked(lore: Lore, memories: Sequence[Memory]) -> Mapping[str, tuple[str, ...]]:
    """Return the rooms whose people may see each memory, by its id; without memories that are for all."""
    named = {one.room_id for memory in memories for one in memory.evidence}
    async with lore.storage.reading(lore.tenant) as work:
        found = await work.rooms.people(room_ids=named, persons=[])
    public = {room_id: public_windows(room) for room_id, room in found.items()}
    return {
        memory.memory_id: (
            *(source.room_id for source in memory.evidence),
            *(target.removeprefix("room:") for target in memory.shared_with),
        )
        for memory in memories
        if not is_for_all(memory, public)
    }


def _scope_of_share(target: str) -> str:
    """Return the scope of whom a memory is shared with: 'room:team' shares with the people of 'group:team'."""
    return target.replace("room:", "group:", 1) if target.startswith("room:") else target


async def _people_of(lore: Lore, room_ids: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the names of the people of some rooms, by the room's id; ids of people without a name."""
    async with lore.storage.reading(lore.tenant) as work:
        people = await work.rooms.people(room_ids=set(room_ids))
        ids = {person for room in people.values() for person in room.people}
        names = await work.rooms.names_of(room_ids=set(room_ids), sender_ids=ids)
    return {
        room_id: sorted(names.get(room_id, {}).get(person) or person for person in room.people)
        for room_id, room in people.items()
    }


async def _shown_lineage(page: Page, memory_id: str) -> Blame:
    """Return the versions of a memory that the page may show; for an administrator all, with what they come from."""
    memories, viewer = page.lore.memories, page.viewer
    if viewer is None:
        return await memories.blame(memory_id)
    head = await memories.head(memory_id, viewer=viewer)
    versions = reversed(await memories.history(memory_id, viewer=viewer))
    return Blame(head, tuple(BlamedVersion(version, None, None) for version in versions))


async def _stored_scope(lore: Lore, scope: str) -> Scope | None:
    async with lore.storage.reading(lore.tenant) as work:
        return await work.memories.scope(scope=scope)


async def _selected_moment(page: Page, lore: Lore, scope: str, at: datetime | None) -> SelectedMoment:
    first = await lore.memories.changes(scope, limit=1)
    begins, now = first[0].at if first else None, lore.now()
    if begins is None or (at is None and not page.asked("step")):
        return SelectedMoment(at, _SLIDER_STEPS, begins)
    if at is not None:
        whole = (now - begins).total_seconds() or 1.0
        step = round(_SLIDER_STEPS * (at - begins).total_seconds() / whole)
        return SelectedMoment(at, max(0, min(_SLIDER_STEPS, step)), begins)
    step = _slider_step(page.asked("step"))
    at = None if step == _SLIDER_STEPS else begins + (now - begins) * step / _SLIDER_STEPS
    return SelectedMoment(at, step, begins)


def read_moment(page: Page, name: str, called: str) -> datetime | None:
    """Return a date or a time in the form of a browser's field, in the reader's zone. Raise `InvalidInput`, which calls
    the field by the word `called`."""
    if not (text := page.asked(name)):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=page.zone)
    except ValueError as error:
        raise InvalidInput(page.tongue.say("wrong.moment", field=page.tongue.say(called))) from error


def _slider_step(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and int(text) <= _SLIDER_STEPS):
        raise InvalidInput("step_outside", value=f"{text!r:.40}", most=_SLIDER_STEPS)
    return int(text)


def _selected_memories(page: Page) -> SelectedMemories:
    kind = page.choice("kind", ("", *MemoryKind))
    status = page.choice("status", ("active", "deprecated"), "active")
    return SelectedMemories(kind, "active" if status == "active" else "deprecated", page.number("offset") or 0)


async def _memories_on_page(
    lore: Lore, scope: str, at: datetime | None, selection: SelectedMemories, viewer: str | None
) -> tuple[list[Memory], int]:
    """Return a page of memories, and their number on all pages."""
    if at is not None:
        then = await lore.memories.as_of(scope, at)
        return then[selection.offset : selection.offset + _SCOPE_MEMORIES], len(then)
    kinds = [selection.kind] if selection.kind else MemoryKind
    return await page_of(lore, viewer, scope, kinds, selection.status, limit=_SCOPE_MEMORIES, offset=selection.offset)


def _stretches(changes: Sequence[Change]) -> list[Stretch]:
    together = groupby(changes, key=lambda change: change.evolution_id)
    return [
        Stretch(evolution_id, [LogEntry(change, log_pieces(change)) for change in run])
        for evolution_id, run in together
    ]


def log_pieces(change: Change) -> tuple[TextPiece, ...]:
    here = change.memory
    if here.status is MemoryStatus.DEPRECATED:
        return (TextPiece("gone", here.statement),)
    if change.old_statement is None or change.old_statement == here.statement:
        return (TextPiece("new" if change.old_statement is None else "same", here.statement),)
    return words_diff(change.old_statement, here.statement)


def _lineage_pieces(version: BlamedVersion, blame: Blame) -> tuple[TextPiece, ...]:
    """Return the difference from the version before, if that is known."""
    before = {other.memory.memory_id: other.memory for other in blame.versions}
    parent = before.get(version.memory.parent_id or "")
    if parent is None:
        return (TextPiece("same", version.memory.statement),)
    return words_diff(parent.statement, version.memory.statement)


@dataclass(frozen=True, slots=True)
class ComparisonPoint:
    """A point of the log that is compared. `number`: of its last entry, 0 before the first one, None for now and for a
    time that was typed. `change`: that entry. `typed`: True for a time that was typed."""

    at: datetime
    number: int | None = None
    change: Change | None = None
    typed: bool = False


@dataclass(frozen=True, slots=True)
class Reworded:
    """A memory that differs between both points, word by word."""

    revised: Revised
    pieces: tuple[TextPiece, ...]


async def compare(page: Page) -> Response:
    """Return the page of the differences between two points, the earlier one first; by default what the last evolution
    or change did."""
    lore, scope = page.need("admin", "read"), scope_of(page.needed("id"))
    newest = await lore.memories.latest_changes(scope, limit=_COMPARISON_ENTRIES)
    if not newest:
        return page.show("compare.html", scope=scope, found=None, points=[], changed=(), start=None, end=None)
    await name_scopes(page, [scope])
    points = _comparison_points(newest)
    before = _number_before_last_change(newest)
    tried = Tried({})
    start = await _point_in_address(page, scope, "from", tried) or await _point_after_entry(lore, scope, before)
    end = await _point_in_address(page, scope, "to", tried) or ComparisonPoint(lore.now())
    if end.at < start.at and not tried.wrong:
        start, end = end, start
    difference = await lore.memories.diff(scope, min(start.at, end.at), max(start.at, end.at))
    return page.show(
        "compare.html",
        tried.status,
        tried=tried,
        typed={"from": page.asked("from_at"), "to": page.asked("to_at")},
        scope=scope,
        found=difference,
        changed=[
            Reworded(revised, words_diff(revised.before.statement, revised.after.statement))
            for revised in difference.changed
        ],
        points=_with_chosen_points(points, start, end),
        week=(lore.now() - timedelta(days=7)).isoformat(timespec="minutes"),
        start=start,
        end=end,
    )


def _comparison_points(newest: Sequence[Change]) -> list[ComparisonPoint]:
    """Return the moments of these entries, the newest first. Entries of one moment are one change."""
    points: dict[datetime, ComparisonPoint] = {}
    for change in newest:
        points.setdefault(change.at, ComparisonPoint(change.at, change.number, change))
    return list(points.values())


def _with_chosen_points(points: Sequence[ComparisonPoint], *chosen: ComparisonPoint) -> list[ComparisonPoint]:
    """Return the points with those that are chosen, so that the form can show them."""
    known = {point.number for point in points}
    others = {point.number: point for point in chosen if point.change is not None and point.number not in known}
    return sorted((*points, *others.values()), key=lambda point: point.number or 0, reverse=True)


def _number_before_last_change(newest: Sequence[Change]) -> int:
    """Return the number of the last entry before the last evolution, or before the last change by hand."""
    last = newest[0]
    before = (
        change
        for change in newest
        if change.at != last.at and (not last.evolution_id or change.evolution_id != last.evolution_id)
    )
    return next((change.number for change in before), max(_BEFORE_FIRST_ENTRY, newest[-1].number - 1))


async def _point_in_address(page: Page, scope: str, name: str, tried: Tried) -> ComparisonPoint | None:
    """Return the point that the address gives, a time before an entry; None if it gives none."""
    lore, field = page.lore, f"{name}_at"
    at = tried.read(field, lambda: read_moment(page, field, f"compare.{name}"), None)
    if at is not None:
        return ComparisonPoint(at, typed=True)
    given = page.asked(name)
    if not given:
        return None
    if given == "now":
        return ComparisonPoint(lore.now())
    if not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise InvalidInput("log_place_invalid", name=name, value=f"{given!r:.40}")
    return await _point_after_entry(lore, scope, int(given))


async def _point_after_entry(lore: Lore, scope: str, number: int) -> ComparisonPoint:
    """Return the point after this entry. Raise `InvalidInput` if the log does not have it."""
    changes = await lore.memories.changes(scope, after=max(0, number - 1), limit=1)
    if not changes or changes[0].number != max(1, number):
        raise InvalidInput("log_entry_not_in_log", scope=f"{scope!r:.80}", number=number)
    (change,) = changes
    if number == _BEFORE_FIRST_ENTRY:
        return ComparisonPoint(change.at - timedelta(microseconds=1), _BEFORE_FIRST_ENTRY)
    return ComparisonPoint(change.at, number, change)


async def recall(page: Page) -> Response:
    """Return the page of recall: whose facts may be chosen, and what a reply would be told of them. Nothing is recalled
    until somebody is chosen, or while a field has an error."""
    query, room, tried = page.asked("q"), page.asked("place"), Tried({})
    tokens = tried.read("tokens", lambda: page.number("tokens", most=_MAX_RECALL_TOKENS), None)
    picked = [*page.every("whose"), *page.asked("scopes").replace(",", " ").split()]
    other = await choice_in(page, tried, "who")
    if other:
        page.names.setdefault(other.scope, other.title)
        picked.append(other.scope)
    if page.request.query_params and not picked:
        tried.wrong.setdefault("who", page.tongue.say("recall.nobody"))
    checked: list[str] = tried.read("who", lambda: scopes_of(_few(picked)), [])
    if not checked and "tokens" in page.request.query_params:
        tried.wrong.setdefault("who", page.tongue.say("recall.nobody"))
    recollection: Recollection | None = None
    if checked and not tried.wrong:
        messages = [{"role": "user", "content": query}] if query else []
        most = tokens or _USUAL_RECALL_TOKENS
        recollection = await page.lore.recall.build(
            checked, messages, max_tokens=most, viewer=page.viewer or (room and f"room:{room}") or None
        )
    held = [scope for scope, *_ in await _held(page)][:_OFFERED_SCOPES]
    await name_scopes(page, checked)
    return page.show(
        "recall.html",
        tried.status,
        found=recollection,
        tried=tried,
        query=query,
        room=room,
        weights=page.lore.settings.recall,
        tokens=page.asked("tokens") or _USUAL_RECALL_TOKENS,
        checked=checked if page.request.query_params else held[:1],
        held=[scope for scope in dict.fromkeys([*checked, *held]) if visible_text(scope) == scope],
        odd=[scope for scope in checked if visible_text(scope) != scope],
        who="" if other else page.asked("who"),
        offered=await offered(page),
    )


def _few(scopes: list[str]) -> list[str]:
    """Return the scopes. Raise `InvalidInput` if they are too many for a page."""
    if len(scopes) > _MAX_RECALL_SCOPES:
        raise InvalidInput("scopes_shown_too_many", count=len(scopes), most=_MAX_RECALL_SCOPES)
    return scopes


async def visible(page: Page) -> Response:
    """Return the page of a room with the memories it is shown, or those withheld from it, by their reasons: of all
    people and rooms, of those whom the room is about, or of one."""
    lore, room_id, whose = page.need("admin", "read"), page.needed("id"), page.asked("whose")
    room = await lore.rooms.get(room_id)
    viewer = check_viewer(f"room:{room_id}")
    async with lore.storage.reading(lore.tenant) as work:
        stored = [row.scope for row in await work.memories.scopes(after=None, limit=_AUDIENCE_SCOPES) if row.active]
        about = await scopes_about(work, viewer=viewer)
        scopes = {"": list(dict.fromkeys([*about, *stored])), "here": about}.get(whose) or [check_scope(whose)]
        every = await visible_to(work, viewer=viewer, scopes=scopes, now=lore.now())
    withheld = page.asked("withheld") == "1"
    offset = page.number("offset") or 0
    chosen = [seen_memory for seen_memory in every if seen_memory.shown is not withheld]
    memories = chosen[offset : offset + _AUDIENCE_MEMORIES]
    shares = [reason.target for seen in memories for reason in seen.reasons if reason.target]
    await name_scopes(page, [*stored, whose, *map(_scope_of_share, shares)])
    return page.show(
        "visible.html",
        share=_scope_of_share,
        names=(await _people_of(lore, [room_id]))[room_id],
        room=room,
        offered=[
            scope for scope in dict.fromkeys([*stored, *about, whose]) if ":" in scope and visible_text(scope) == scope
        ],
        whose=whose,
        groups=_by_reason(memories),
        shown=len(every) - len(chosen) if withheld else len(chosen),
        hidden=len(chosen) if withheld else len(every) - len(chosen),
        withheld=withheld,
        people=await lore.rooms.people(room_id),
        offset=offset,
        next=offset + _AUDIENCE_MEMORIES if offset + _AUDIENCE_MEMORIES < len(chosen) else None,
    )


def _by_reason(memories: Sequence[Visibility]) -> list[list[Visibility]]:
    """Return the memories in groups that are shown or withheld for the same reasons."""
    groups: dict[object, list[Visibility]] = {}
    for seen in memories:
        reasons = ((why.kind, why.target, why.evidence and why.evidence.room_id) for why in seen.reasons)
        groups.setdefault(tuple(reasons), []).append(seen)
    return list(groups.values())
