"""The first page: what waits for a person, what was decided, what changed in memory and what fails, over all rooms."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from itertools import groupby
from typing import Any
from urllib.parse import quote, unquote

from starlette.responses import Response

from roomlore.core.audience import BEGINNING, check_viewer
from roomlore.core.digest.digest import Why
from roomlore.core.digest.overview import MOST_PARTS, Overview
from roomlore.core.errors import InvalidInput, RoomloreError
from roomlore.core.memory.log import TextPiece
from roomlore.core.memory.memory import Action, Change, Memory
from roomlore.core.models import Room
from roomlore.services.digest.digest_service import read_up_to
from roomlore.surfaces.people_named import with_people_named
from roomlore_console.choosing import Choice, choice_in, meant, offered
from roomlore_console.frame import Page, Tried, address
from roomlore_console.health import Group, Notice, failure, grouped, notices_now, standing_now
from roomlore_console.memories import log_pieces
from roomlore_console.shell import name_scopes, rooms_by_use

_PERIODS = {"yesterday": 1, "week": 6, "last_week": 7, "month": 29}
"""The days before today with which a period begins; that of `last_week` before the Monday of this week."""
_USUAL = "week"
_PERSON_COOKIE, _REMEMBERED = "roomlore_person", 30 * 86_400
"""Who was chosen last, and for how many seconds that is remembered."""
_WHYS: tuple[Why, ...] = ("waits", "question", "decision")
_CHANGES = 200
_ROOMS = 20
"""The rooms used last, of which it is told whether a person has read them."""
_FAILED = 50
_NOT_FAILING = ("no_model", "work_failed")
"""Notices that are left out: what is not set up, and failed jobs, which are listed."""
_UNDONE_BY = {Action.CREATE: "delete", Action.RESTORE: "delete", Action.DELETE: "restore", Action.UPDATE: "restore"}


@dataclass(frozen=True, slots=True)
class ChangedMemory:
    """A memory that changed. `action`: of the log, '' if the viewer may not see that. `pieces`: its statement, word by
    word. `undo`: the parameters of the page that undoes the change, None if there is none."""

    memory: Memory
    action: str
    pieces: tuple[TextPiece, ...]
    undo: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """What one evolution, one that was reverted, or one change by hand changed in the memories of a scope. `undo`: the
    parameters of the page that undoes all of it, None if there is none."""

    scope: str
    at: datetime
    undo: dict[str, str] | None
    memories: Sequence[ChangedMemory]


@dataclass(frozen=True, slots=True)
class Failing:
    """What fails now. `problem`: why that cannot be told."""

    notices: Sequence[Notice] = ()
    jobs: Sequence[Group] = ()
    problem: str = ""


async def today(page: Page) -> Response:
    """Return the first page, for the person and since the time that the address says."""
    since = _since(page)
    given: dict[str, Any] = {"since": since, "asked": page.asked("since") or _USUAL, "periods": _PERIODS}
    tried = Tried({})
    person, people = await _people(page, tried)
    given |= {"person": person, "people": people, "tried": tried}
    if tried.wrong:
        near = [(choice, address("", **{"for": choice.own_id, "since": given["asked"]})) for choice in tried.near]
        return page.show("today.html", 404, typed=page.asked("for"), near=near, **given)
    part = page.number("part", most=MOST_PARTS) or 1
    whose = person.own_id if person else None
    overview = await _named(page, await page.lore.overview(since=since, person=whose, viewer=page.viewer, part=part))
    changes = await _changed(page, whose)
    changed: dict[str, list[Changed]] = {}
    for change in changes:
        if change.at >= since:
            changed.setdefault(change.scope, []).append(change)
    await name_scopes(page, changed)
    last = overview.last_at.astimezone(page.zone) if overview.last_at else None
    page.names.update({f"group:{point.message.room_id}": point.title for point in overview.points})
    answer = page.show(
        "today.html",
        streamed=True,
        typed="",
        overview=overview,
        points={why: [point for point in overview.points if point.why == why] for why in _WHYS},
        changed=changed,
        last_change=changes[0].at.astimezone(page.zone).date() if changes else None,
        unread=await _unread(page, person.own_id) if person else (),
        part=part,
        further=bool(overview.back_to) and part < MOST_PARTS,
        last_week=last and (last - timedelta(days=_PERIODS["week"])).date(),
        failing=page.later(_failing(page)) if page.is_admin else None,
        failure=partial(failure, tongue=page.tongue),
        kind_named=lambda kind: page.tongue.words.get(f"job.kind.{kind}", kind),
        **given,
    )
    if "for" in page.request.query_params:
        page.keep(answer, _PERSON_COOKIE, quote(whose or ""), seconds=_REMEMBERED)
    return answer


def _since(page: Page) -> datetime:
    """Return the beginning of the period in the address, in the reader's zone: one of three, or a day. Raise
    `InvalidInput`."""
    chosen = page.asked("since") or _USUAL
    day = page.lore.now().astimezone(page.zone).date()
    try:
        last = day - timedelta(days=day.weekday()) if chosen == "last_week" else day
        first = last - timedelta(days=_PERIODS[chosen]) if chosen in _PERIODS else date.fromisoformat(chosen)
        return datetime.combine(first, time(), page.zone)
    except (ValueError, OverflowError):
        raise InvalidInput(page.tongue.say("today.since.wrong", known=", ".join(_PERIODS))) from None


async def _people(page: Page, tried: Tried) -> tuple[Choice | None, Sequence[Choice]]:
    """Return the person in the address, by id or name, by default the one whom the page is shown to or who was chosen
    last, None for everybody; and the people of whom the page can be for one. A person sees no page of another."""
    viewer = None if page.viewer is None else check_viewer(page.viewer)
    own = viewer.id if viewer is not None and viewer.kind == "user" else ""
    given = "for" in page.request.query_params
    typed = page.asked("for").strip() if given else own or unquote(page.request.cookies.get(_PERSON_COOKIE, ""))
    if not own:
        person = await choice_in(page, tried if given else Tried({}), "for", of=("user",), typed=typed)
        return person, await offered(page, of=("user",))
    known = [choice for choice in (await meant(page, own, ("user",)))[0] if choice.own_id == own]
    if typed not in ("", own):
        tried.wrong["for"] = page.tongue.say("pick.nobody", name=f"{typed:.80}")
    return (known[0] if known and typed == own else None), known


async def _named(page: Page, overview: Overview) -> Overview:
    """Return the overview with names in place of the ids of people in its messages."""
    messages = await with_people_named(page.lore, [point.message for point in overview.points])
    points = (replace(point, message=message) for point, message in zip(overview.points, messages, strict=True))
    return replace(overview, points=tuple(points))


async def _unread(page: Page, person: str) -> list[Room]:
    """Return the rooms of a person, the one used last first, in which something was said after they wrote or read."""
    used = await rooms_by_use(page, limit=_ROOMS)
    async with page.lore.storage.reading(page.lore.tenant) as work:
        theirs = {room.room_id: room.next_arrival - 1 for room in await work.rooms.of_person(person_id=person)}
        read = {name: await read_up_to(work, room_id=name, user_id=person) for name in theirs}
    return [room for room in used if read.get(room.room_id, room.next_arrival) < theirs.get(room.room_id, 0)]


async def _changed(page: Page, person: str | None) -> list[Changed]:
    """Return what changed in memory, the newest first: of each memory its last change. A viewer who may not see logs is
    shown the newest memories."""
    lore, viewer = page.lore, page.viewer
    if viewer is not None:
        seen = [seen_memory.memory for seen_memory in await lore.memories.visible(viewer) if seen_memory.shown]
        new = sorted(seen, key=lambda memory: memory.updated_at)
        return [
            Changed(memory.scope, memory.updated_at, None, [ChangedMemory(memory, "", ())])
            for memory in new[: -_CHANGES - 1 : -1]
        ]
    async with lore.storage.reading(lore.tenant) as work:
        scopes = None
        if person is not None:
            rooms = await work.rooms.of_person(person_id=person)
            scopes = [f"user:{person}", *(f"group:{room.room_id}" for room in rooms)]
        changes = await work.memories.latest_in(scopes=scopes, since=BEGINNING, limit=_CHANGES)
    latest: dict[str, Change] = {}
    for change in changes:
        latest.setdefault(change.memory.lineage_id, change)
    parted = {change.evolution_id for change in changes if latest[change.memory.lineage_id] is not change}
    return [_change_of(list(run), parted) for _, run in groupby(latest.values(), key=_together)]


def _together(change: Change) -> tuple[str, object]:
    """Return what is equal for changes that were made at once."""
    at_once = change.at if change.action is Action.REVERT else change.number
    return change.memory.scope, change.evolution_id or at_once


def _change_of(run: Sequence[Change], parted: Set[str | None]) -> Changed:
    """Return what was changed at once. `parted`: the evolutions that cannot be undone whole, as a part was changed
    since."""
    first = run[0]
    memories = [
        ChangedMemory(change.memory, change.action.value, log_pieces(change), _undo_of(change)) for change in run
    ]
    undo = memories[0].undo if len(run) == 1 else None
    if first.evolution_id and first.evolution_id not in parted:
        undo = {"what": "revert", "id": first.evolution_id}
    return Changed(first.memory.scope, first.at, undo, memories)


def _undo_of(change: Change) -> dict[str, str] | None:
    """Return the parameters of the page that undoes one change."""
    what = _UNDONE_BY.get(change.action)
    undone = change.closes[0] if change.action is Action.UPDATE and change.closes else change.memory.memory_id
    return {"what": what, "id": undone, "undo": "1"} if what else None


async def _failing(page: Page) -> Failing:
    """Return what fails now; nothing of what is only not set up."""
    try:
        lore = page.lore
        known = [it for it in await notices_now(lore, await standing_now(lore)) if it.name not in _NOT_FAILING]
        jobs = grouped(await lore.jobs.page(status="failed", limit=_FAILED))
        await name_scopes(page, [f"group:{job.room_id}" for group in jobs for job in group.jobs if job.room_id])
        return Failing(known, jobs)
    except RoomloreError as error:
        return Failing(problem=str(error))
