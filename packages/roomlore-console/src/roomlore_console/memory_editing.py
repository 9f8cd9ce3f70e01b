"""Pages that change memories: writing one by hand, and forms that confirm an evolution, a change or forgetting."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from roomlore.core.audience import RoomKind
from roomlore.core.errors import Conflict, NotFound, RoomloreError
from roomlore.core.evolution.requests import EvolutionResult
from roomlore.core.memory.log import words_diff
from roomlore.core.memory.memory import Memory, MemoryKind, check_scope
from roomlore.core.memory.writing import scope_of
from roomlore.core.privacy import ForgetReport
from roomlore.services.evolution.piece import EVOLUTION
from roomlore.services.evolution.reading import MOST_MESSAGES
from roomlore.surfaces import long_work
from roomlore.surfaces.long_work import LongWork
from roomlore.verbs.facts import ADD, CHANGE, REASON
from roomlore.verbs.memories import DELETE, RESTORE, REVERT
from roomlore.verbs.table import Argument, Choice
from roomlore.wiring import Lore
from roomlore_console.choosing import is_known, named_like
from roomlore_console.derived import Form, sent, shown
from roomlore_console.frame import Page, visible
from roomlore_console.shell import name_scopes

_CONTENT = tuple(ADD[name] for name in ("statement", "confidence", "category", "tags", "kind"))


async def write_form(page: Page) -> Response:
    """Return an empty form for a scope, or one with the content of a memory."""
    lore = page.need("read", "write")
    scope, head = await _subject(page, lore)
    if head is None:
        kind = MemoryKind.GROUP if scope.startswith("group:") else MemoryKind.FACT
        return await _form(page, scope, head, shown(page, _arguments(scope, head), {"kind": kind}))
    form = shown(page, _arguments(scope, head), {argument.name: getattr(head, argument.name) for argument in _CONTENT})
    return await _form(page, scope, head, form, expected=head.memory_id)


async def save_written(page: Page) -> Response:
    """Save a memory. If that fails, return the form with what was typed and the reason."""
    lore = page.need("read", "write")
    scope, head = await _subject(page, lore)
    form, expected = sent(page, _arguments(scope, head)), page.form.get("expected", "")
    if form.given is None:
        return await _form(page, scope, head, form, 422, expected=expected)
    try:
        if head is None:
            room_id = page.form.get("seen_in") if page.is_admin else None
            added = await ADD(lore, f"room:{room_id}" if room_id else page.viewer, scope=scope, **form.given)
            return page.go("/memory/one", id=added.memory_id, done="add" if added.outcome == "added" else "there")
        changed = await CHANGE(lore, page.viewer, memory_id=head.memory_id, expected=expected or None, **form.given)
    except Conflict as error:
        now = await lore.memories.head(head.memory_id, viewer=page.viewer) if head else None
        return await _form(page, scope, now, form, 409, expected=expected, problem=str(error))
    return page.go("/memory/one", id=changed.memory_id, done="same" if changed.memory_id == expected else "update")


async def _subject(page: Page, lore: Lore) -> tuple[str, Memory | None]:
    """Return the scope, and the memory that the address names, None without one. Raises `Forbidden` if that was only
    shared with the viewer."""
    head = None
    if memory_id := page.asked("id"):
        await lore.memories.check_changeable(memory_id, page.viewer)
        head = await lore.memories.head(memory_id, viewer=page.viewer)
    scope = head.scope if head else check_scope(page.needed("scope"))
    await name_scopes(page, [scope])
    return scope, head


def _arguments(scope: str, head: Memory | None) -> tuple[Argument, ...]:
    """Return the arguments of the form. The kind of a memory stays, and only a room has memories of a group."""
    statement, *more, kind = _CONTENT
    if not scope.startswith("group:"):
        kind = replace(kind, form=Choice(("fact", "short")))
    return (statement, *more, *(() if head else (kind,)), REASON)


async def _rooms_of(page: Page, scope: str) -> list[str]:
    """Return the rooms to whose people a new memory may be kept: the room itself, or those of the person."""
    kind, _, own_id = scope.partition(":")
    async with page.lore.storage.reading(page.lore.tenant) as work:
        its = (
            [await work.rooms.find(room_id=own_id)] if kind == "group" else await work.rooms.of_person(person_id=own_id)
        )
    return [room.room_id for room in its if room and visible(room.room_id) == room.room_id][:_ROOMS]


async def _heard_in(page: Page, scope: str) -> str:
    """Return the room to whose people a new memory is kept if nobody chooses: that of a group, unless it is public."""
    kind, _, room_id = scope.partition(":")
    is_kept = kind == "group" and (await page.lore.rooms.people(room_id)).kind is not RoomKind.PUBLIC
    return room_id if is_kept else ""


async def _form(
    page: Page, scope: str, head: Memory | None, form: Form, status: int = 200, *, expected: str = "", problem: str = ""
) -> Response:
    """Return the form. `expected` is the version shown, so that saving again replaces that one."""
    overtaken = head if problem and head and head.memory_id != expected else None
    seen = overtaken.memory_id if overtaken else expected
    values: Facts = {"head": head, "form": form, "expected": seen, "problem": problem, "overtaken": overtaken}
    values["rooms"] = await _rooms_of(page, scope) if page.is_admin and head is None else None
    values["seen_in"] = page.form.get("seen_in", "")
    if values["rooms"] and "seen_in" not in page.form:
        values["seen_in"] = await _heard_in(page, scope)
    memories = await page.lore.memories.page(scope, viewer=page.viewer)
    used = {memory.category for memory in memories if memory.category}
    values["categories"] = sorted(category for category in used if visible(category) == category)
    return page.show("write.html", status, scope=scope, **values)


_NAMED = 5
_ROOMS = 50
_WAITED = 2.0
_WAITED_AGAIN = 10.0
"""Seconds that a form, and a script that polls, wait for forgetting a person."""

_OVER_ALL_ROOMS = frozenset({"evolve", "revert", "forget"})
"""Changes for administrators, as they concern what was said in all rooms."""

Facts = dict[str, Any]


Counted = long_work.WorkResult[ForgetReport]


async def confirm_change(page: Page) -> Response:
    """Return a page that says what would be done, with a form that does it."""
    what, lore = _requested(page)
    return await _question(page, lore, what, shown(page, _REASONS.get(what, ()), {}))


async def apply_change(page: Page) -> Response:
    what, lore = _requested(page)
    form = sent(page, _REASONS.get(what, ()))
    if form.given is None:
        return await _question(page, lore, what, form, 422)
    return await _DO[what](page, lore, page.needed("id"), form.given)


async def _question(page: Page, lore: Lore, what: str, form: Form, status: int = 200) -> Response:
    facts = await _BEFORE[what](page, lore, page.needed("id"))
    await name_scopes(page, [facts["scope"]])
    facts |= {"what": what, "id": page.needed("id"), "undo": page.asked("undo")}
    return page.show("confirm.html", status, form=form, **facts)


async def evolving(page: Page) -> Response:
    """Return the progress of an evolution. The page reloads until it is over."""
    lore = page.need("admin", "read")
    job = await lore.jobs.get(page.needed("job"))
    over = job.status not in ("waiting", "running")
    result = await _result(lore, page.needed("evolution")) if job.status == "done" else None
    waits = job.status == "waiting" and not await lore.jobs.works_here()
    return page.show("evolving.html", job=job, over=over, waits=waits, result=result, group=page.needed("id"))


async def forgetting(page: Page) -> Response:
    """Return the progress of forgetting a person. The page reloads until it is over. If nothing was asked for, or the
    result was shown before, the stored data tell whether it was completed."""
    lore, user_id = page.need("admin"), page.needed("id")
    seconds = _seconds(page, at_first=0.0)
    if _long_work(page).knows(long_work.forgetting(lore, user_id)):
        return await _forgotten(page, lore, user_id, seconds)
    if (job_id := await lore.privacy.forgetting_job(user_id)) is not None:
        return await _followed(page, lore, user_id, job_id, seconds)
    left = await _would(page, lore, user_id, seconds)
    values: Facts = {"left": left.report, "full": left.full, "counting": left.report is None}
    return page.show("forgetting.html", _status(page, left), id=user_id, report=None, failed="", **values)


async def _followed(page: Page, lore: Lore, user_id: str, job_id: str, seconds: float) -> Response:
    """Return the progress of a job that this process did not begin, or not since its start. It may begin nothing."""
    report: ForgetReport | None = None
    failed = ""
    with suppress(NotFound):  # a request that was stored a moment ago
        job = await lore.jobs.wait(job_id, seconds)
        if job.status in ("failed", "cancelled"):
            failed = job.error or job.status
        elif job.status == "done" and not await lore.privacy.is_being_forgotten(user_id):
            report = await lore.privacy.forgotten(job_id, user_id)
    return _progress(page, user_id, report, failed)


async def would_go(page: Page) -> Response:
    """Return what forgetting a person would remove; in a large store counting takes long."""
    lore, user_id = page.need("admin"), page.needed("id")
    would = await _would(page, lore, user_id, _seconds(page, at_first=_WAITED))
    return page.show("would_go.html", _status(page, would), id=user_id, report=would.report, full=would.full)


def _requested(page: Page) -> tuple[str, Lore]:
    """Return the requested change and roomlore, after checking the scopes to do it and to see what it shows."""
    what = page.choice("what", _DO)
    return what, page.need("admin") if what in _OVER_ALL_ROOMS else page.need("read", "write")


async def _result(lore: Lore, evolution_id: str) -> EvolutionResult | None:
    """Return the result of an evolution; None if there was nothing to read."""
    try:
        return await lore.memories.evolved(evolution_id)
    except NotFound:
        return None


async def _before_evolving(page: Page, lore: Lore, group_id: str) -> Facts:
    """Return how many messages of a room are new, None if it was never read or it is about a person."""
    scope, new = scope_of(group_id), None
    room_id = scope.removeprefix("group:")
    if room_id != scope:
        async with lore.storage.reading(lore.tenant) as work:
            mark = (await work.progress.marks(room_id=room_id, names=[EVOLUTION])).get(EVOLUTION)
            new = None if mark is None else await work.messages.count(room_id=room_id, after=mark)
    works = await lore.jobs.works_here()
    return {"scope": scope, "back": _memory_page(scope), "new": new, "most": MOST_MESSAGES, "works_here": works}


async def _before_deleting(page: Page, lore: Lore, memory_id: str) -> Facts:
    head = await lore.memories.head(memory_id, viewer=page.viewer)
    return {"memory": head, "scope": head.scope, "back": _lineage_page(head.memory_id)}


async def _before_restoring(page: Page, lore: Lore, memory_id: str) -> Facts:
    await lore.memories.check_changeable(memory_id, page.viewer)
    version = await lore.memories.get(memory_id, viewer=page.viewer)
    head = await lore.memories.head(memory_id, viewer=page.viewer)
    return {"memory": version, "head": head, "scope": version.scope, "back": _lineage_page(version.memory_id)}


async def _before_reverting(page: Page, lore: Lore, evolution_id: str) -> Facts:
    record = await lore.memories.evolution(evolution_id)
    async with lore.storage.reading(lore.tenant) as work:
        changes = await work.memories.changes_of_evolution(evolution_id=evolution_id)
    back = [(change, words_diff(change.memory.statement, change.old_statement or "")) for change in changes]
    return {"evolution": record, "changes": back, "scope": record.scope, "back": _memory_page(record.scope)}


async def _before_forgetting(page: Page, lore: Lore, user_id: str) -> Facts:
    would = await _would(page, lore, user_id, _WAITED)
    known = await is_known(lore, user_id)
    named = [] if known else await named_like(page, user_id, limit=_NAMED)
    shown = {"report": would.report, "full": would.full, "known": known, "people": named}
    back = ("/person", {"id": user_id}) if known else ("/people", {})
    return {**shown, "scope": f"user:{user_id}", "back": back}


async def _evolve(page: Page, lore: Lore, group_id: str, _: Facts) -> Response:
    begun = await lore.memories.begin_evolution(group_id)
    return page.go("/memory/evolving", job=begun.job_id, evolution=begun.evolution_id, id=group_id)


async def _delete(page: Page, lore: Lore, memory_id: str, given: Facts) -> Response:
    gone = await DELETE(lore, page.viewer, memory_id=memory_id, expected=page.form.get("expected") or None, **given)
    return page.go("/memory/one", id=gone.memory_id, done="delete")


async def _restore(page: Page, lore: Lore, memory_id: str, given: Facts) -> Response:
    back = await RESTORE(lore, page.viewer, memory_id=memory_id, **given)
    return page.go("/memory/one", id=back.memory_id, done="restore")


async def _revert(page: Page, lore: Lore, evolution_id: str, given: Facts) -> Response:
    record = await lore.memories.evolution(evolution_id)
    changes = await REVERT(lore, page.viewer, evolution_id=evolution_id, **given)
    return page.go("/memory", id=record.scope, done="revert" if changes else "nothing")


async def _forget(page: Page, lore: Lore, user_id: str, _: Facts) -> Response:
    """Forget a person, only if the id was typed again: it cannot be undone."""
    if page.form.get("typed", "") != user_id:
        return await _question(page, lore, "forget", Form([], None), 422)
    return await _forgotten(page, lore, user_id, _WAITED)


async def _forgotten(page: Page, lore: Lore, user_id: str, seconds: float) -> Response:
    report: ForgetReport | None = None
    failed, sent = "", page.request.method == "POST"
    try:
        report = await long_work.forget(_long_work(page), lore, user_id, seconds=seconds, anew=sent)
    except RoomloreError as error:
        failed = str(error)
    if sent and report is None and not failed:
        return page.go("/memory/forgetting", id=user_id)
    return _progress(page, user_id, report, failed)


def _progress(page: Page, user_id: str, report: ForgetReport | None, failed: str) -> Response:
    values: Facts = {"report": report, "failed": failed, "left": None, "full": False, "counting": False}
    return page.show("forgetting.html", id=user_id, **values)


async def _would(page: Page, lore: Lore, user_id: str, seconds: float) -> Counted:
    """Return what would be removed. Repeated requests wait for the same count."""
    return await long_work.would_forget(_long_work(page), lore, user_id, seconds=seconds)


def _seconds(page: Page, *, at_first: float) -> float:
    """Return how long the page waits; longer for a request by its script."""
    return _WAITED_AGAIN if _by_script(page) else at_first


def _by_script(page: Page) -> bool:
    return "hx-request" in page.request.headers


def _status(page: Page, counted: Counted) -> int:
    """Return 429 if too many counts are running, but 200 to a script, which shows no other answer."""
    return 429 if counted.full and not _by_script(page) else 200


def _long_work(page: Page) -> LongWork:
    work: LongWork = page.request.app.state.long_work
    return work


def _memory_page(scope: str) -> tuple[str, Facts]:
    return "/memory", {"id": scope}


def _lineage_page(memory_id: str) -> tuple[str, Facts]:
    return "/memory/one", {"id": memory_id}


_BEFORE: Mapping[str, Callable[[Page, Lore, str], Awaitable[Facts]]] = {
    "evolve": _before_evolving,
    "delete": _before_deleting,
    "restore": _before_restoring,
    "revert": _before_reverting,
    "forget": _before_forgetting,
}
_DO: Mapping[str, Callable[[Page, Lore, str, Facts], Awaitable[Response]]] = {
    "evolve": _evolve,
    "delete": _delete,
    "restore": _restore,
    "revert": _revert,
    "forget": _forget,
}
_REASONS = {"delete": (DELETE["reason"],), "restore": (RESTORE["reason"],), "revert": (REVERT["reason"],)}
