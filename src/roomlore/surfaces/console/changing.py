"""Changing what is remembered: each wish is asked back first, on a page of its own."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import Response

from roomlore.core.errors import InvalidInput, NotFound, RoomloreError
from roomlore.core.evolution.result import EvolutionResult
from roomlore.core.memory.intake import scope_of
from roomlore.core.privacy.report import ForgetReport
from roomlore.surfaces import privacy_work
from roomlore.surfaces.console.frame import Page
from roomlore.surfaces.long_work import LongWork
from roomlore.wiring import Lore

_WAITED = 2.0
_WAITED_AGAIN = 10.0
"""Seconds that a form, and a script that asks again, wait for a person to be forgotten."""

_TELLS_NO_TEXT = frozenset({"evolve", "forget"})
"""Of what can be wished for: all else shows what is stored, and needs the scope for reading too."""

Facts = dict[str, Any]


Counted = privacy_work.Asked[ForgetReport]


async def asked(page: Page) -> Response:
    """What would be done, with a form that does it."""
    what, lore = _wish(page)
    facts = await _BEFORE[what](page, lore, page.needed("id"))
    return page.show("confirm.html", what=what, id=page.needed("id"), wrong=False, **facts)


async def done(page: Page) -> Response:
    what, lore = _wish(page)
    return await _DO[what](page, lore, page.needed("id"), page.form.get("reason", "").strip())


async def evolving(page: Page) -> Response:
    """How far an evolution is; a browser asks again by itself until it is over."""
    job = await page.lore.jobs.get(page.needed("job"))
    over = job.status not in ("waiting", "running")
    result = await _result(page.lore, page.needed("evolution")) if job.status == "done" else None
    return page.show("evolving.html", job=job, over=over, result=result, group=page.needed("id"))


async def forgetting(page: Page) -> Response:
    """How forgetting a person stands; a browser asks again by itself until it is over. Where nothing is under way and
    what came of it was told, what is still stored of the person says whether it came to its end."""
    lore, user_id = page.need("write"), page.needed("id")
    seconds = _seconds(page, at_first=0.0)
    if _long_work(page).knows(privacy_work.forgetting(lore, user_id)):
        return await _forgotten(page, lore, user_id, seconds)
    left = await _would(page, lore, user_id, seconds)
    told: Facts = {"left": left.report, "full": left.full, "counting": left.report is None}
    return page.show("forgetting.html", _status(page, left), id=user_id, report=None, failed="", **told)


async def would_go(page: Page) -> Response:
    """What forgetting a person would remove; in a large store counting it takes its time."""
    lore, user_id = page.need("write"), page.needed("id")
    would = await _would(page, lore, user_id, _seconds(page, at_first=_WAITED))
    return page.show("would_go.html", _status(page, would), id=user_id, report=would.report, full=would.full)


def _wish(page: Page) -> tuple[str, Lore]:
    """What is to be done, for who may do it and see what is shown of it."""
    what = page.asked("what")
    if what not in _DO:
        raise InvalidInput(f"what is {what!r:.40}; it is one of {', '.join(_DO)}.")
    return what, page.need("write") if what in _TELLS_NO_TEXT else page.need("read", "write")


async def _result(lore: Lore, evolution_id: str) -> EvolutionResult | None:
    """None where there was nothing to read."""
    try:
        return await lore.memories.evolved(evolution_id)
    except NotFound:
        return None


async def _before_evolving(page: Page, lore: Lore, group_id: str) -> Facts:
    scope = scope_of(group_id)
    return {"scope": scope, "back": _memory_page(scope)}


async def _before_deleting(page: Page, lore: Lore, memory_id: str) -> Facts:
    head = await lore.memories.head(memory_id)
    return {"memory": head, "scope": head.scope, "back": _lineage_page(head.memory_id)}


async def _before_restoring(page: Page, lore: Lore, memory_id: str) -> Facts:
    version, head = await lore.memories.get(memory_id), await lore.memories.head(memory_id)
    return {"memory": version, "head": head, "scope": version.scope, "back": _lineage_page(version.memory_id)}


async def _before_reverting(page: Page, lore: Lore, evolution_id: str) -> Facts:
    record = await lore.memories.evolution(evolution_id)
    async with lore.storage.reading() as work:
        changes = await work.memory_log.of_evolution(tenant=lore.tenant, evolution_id=evolution_id)
    return {"evolution": record, "changes": changes, "scope": record.scope, "back": _memory_page(record.scope)}


async def _before_forgetting(page: Page, lore: Lore, user_id: str) -> Facts:
    would = await _would(page, lore, user_id, _WAITED)
    shown = {"report": would.report, "full": would.full}
    return {**shown, "scope": f"user:{user_id}", "back": ("/memories", {})}


async def _evolve(page: Page, lore: Lore, group_id: str, reason: str) -> Response:
    begun = await lore.memories.begin_evolution(group_id)
    return page.go("/memory/evolving", job=begun.job_id, evolution=begun.evolution_id, id=group_id)


async def _delete(page: Page, lore: Lore, memory_id: str, reason: str) -> Response:
    gone = await lore.memories.delete(memory_id, reason, expected=page.form.get("expected") or None)
    return page.go("/memory/one", id=gone.memory_id, done="delete")


async def _restore(page: Page, lore: Lore, memory_id: str, reason: str) -> Response:
    back = await lore.memories.restore(memory_id, reason)
    return page.go("/memory/one", id=back.memory_id, done="restore")


async def _revert(page: Page, lore: Lore, evolution_id: str, reason: str) -> Response:
    record = await lore.memories.evolution(evolution_id)
    changes = await lore.memories.revert(evolution_id, reason)
    return page.go("/memory", id=record.scope, done="revert" if changes else "nothing")


async def _forget(page: Page, lore: Lore, user_id: str, reason: str) -> Response:
    """Only where the id was typed once more: it cannot be undone."""
    if page.form.get("typed", "") != user_id:
        facts = await _before_forgetting(page, lore, user_id)
        return page.show("confirm.html", 422, what="forget", id=user_id, wrong=True, **facts)
    return await _forgotten(page, lore, user_id, _WAITED)


async def _forgotten(page: Page, lore: Lore, user_id: str, seconds: float) -> Response:
    report: ForgetReport | None = None
    failed, sent = "", page.request.method == "POST"
    try:
        report = await privacy_work.forget(_long_work(page), lore, user_id, seconds=seconds, anew=sent)
    except RoomloreError as error:
        failed = str(error)
    if sent and report is None and not failed:
        return page.go("/memory/forgetting", id=user_id)
    told: Facts = {"report": report, "failed": failed, "left": None, "full": False, "counting": False}
    return page.show("forgetting.html", id=user_id, **told)


async def _would(page: Page, lore: Lore, user_id: str, seconds: float) -> Counted:
    """What would go. Who asks again waits for the same count."""
    return await privacy_work.would_forget(_long_work(page), lore, user_id, seconds=seconds)


def _seconds(page: Page, *, at_first: float) -> float:
    """What a page waits for is waited for longer by the script in it that asks again."""
    return _WAITED_AGAIN if _by_script(page) else at_first


def _by_script(page: Page) -> bool:
    return "hx-request" in page.request.headers


def _status(page: Page, counted: Counted) -> int:
    """Of a page that was asked for the count alone; a script shows what comes with 200 only."""
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
_DO: Mapping[str, Callable[[Page, Lore, str, str], Awaitable[Response]]] = {
    "evolve": _evolve,
    "delete": _delete,
    "restore": _restore,
    "revert": _revert,
    "forget": _forget,
}
