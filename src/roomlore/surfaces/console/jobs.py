"""Durable work: what waits, runs, is done or failed, and trying again what failed."""

from typing import Any, get_args

from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.ports.durable import RETRIABLE, WorkStatus
from roomlore.surfaces.console.frame import Page

_JOBS = 50
_STATUSES = get_args(WorkStatus)


async def listed(page: Page) -> Response:
    status: Any = page.asked("status") or None
    if status not in (None, *_STATUSES):
        raise InvalidInput(f"status is {status!r:.40}; it is one of {', '.join(_STATUSES)}.")
    offset = page.number("offset") or 0
    found = await page.lore.jobs.page(status=status, limit=_JOBS, offset=offset)
    return page.show(
        "jobs.html",
        jobs=found,
        chosen=status,
        statuses=_STATUSES,
        retriable=RETRIABLE,
        offset=offset,
        next=offset + _JOBS if len(found) == _JOBS else None,
        done=page.asked("done"),
    )


async def retry(page: Page) -> Response:
    await page.need("write").jobs.retry(page.needed("id"))
    return page.go("/jobs", done="retry")
