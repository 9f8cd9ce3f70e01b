"""Routes of usage records: pages, export for training, and the report for each arm."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import Depends, Query
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from roomlore.core.experiments import UsageReport
from roomlore.core.json_values import json_line
from roomlore.core.models import ContextUsageRecord
from roomlore.services.contexts.usage_service import MAX_DAYS
from roomlore.surfaces.http.answers import Router
from roomlore.surfaces.http.guard import Admin
from roomlore.surfaces.http.paths import AnyRoom, PageLimit

usage = Router(tags=["context"])


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePage:
    """A page of usage records. `next`: the `after` of the next page; null at the end."""

    records: Sequence[ContextUsageRecord]
    next: str | None


class JsonLines(StreamingResponse):
    """JSON objects, one a line, made as the client reads them. It ends if the client reads nothing for a minute."""

    media_type = "application/x-ndjson"
    patience_seconds = 60.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def patiently(message: Message) -> None:
            async with asyncio.timeout(self.patience_seconds):
                await send(message)

        with suppress(TimeoutError, ClientDisconnect):
            await super().__call__(scope, receive, patiently)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The arguments of `lore.usage` that select records."""

    room_id: str | None
    arm: str | None
    judged: bool
    days: float | None


_Days = Annotated[float | None, Query(gt=0, le=MAX_DAYS, description="Only those of the last days.")]


async def read_selected(
    room_id: AnyRoom,
    arm: Annotated[str | None, Query(description="Only those of this arm of the experiment.")] = None,
    judged: Annotated[bool, Query(description="Only those with a feedback score.")] = False,
    days: _Days = None,
) -> Selected:
    return Selected(room_id=room_id, arm=arm, judged=judged, days=days)


_Selected = Annotated[Selected, Depends(read_selected)]


@usage.get("/usage")
async def list_usage(
    lore: Admin,
    selected: _Selected,
    limit: PageLimit,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> UsagePage:
    """Return the contexts that were used, the oldest first, with the model's answers and the feedback."""
    page = await lore.usage.page(**asdict(selected), after=after, limit=limit)
    return UsagePage(records=page, next=page[-1].context_id if len(page) == limit else None)


@usage.get("/usage/report")
async def report_usage(
    lore: Admin, days: Annotated[float, Query(gt=0, le=MAX_DAYS, description="Over the last days.")] = 30
) -> UsageReport:
    """Return the figures of each arm of the experiment: contexts, tokens, scores, feedback and degradation."""
    return await lore.usage.report(days=days)


@usage.get("/usage/export", response_class=JsonLines)
async def export_usage(lore: Admin, selected: _Selected) -> JsonLines:
    """Return JSON lines for training: each context with its message, the messages chosen, their features and scores,
    the model's answer and the feedback. Contexts for messages that were deleted, or whose senders were forgotten, are
    left out."""
    rows = lore.usage.export(**asdict(selected))
    first = await anext(rows, None)  # An error is answered with a problem as long as nothing was sent.
    return JsonLines(_lines(first, rows))


async def _lines(first: Mapping[str, Any] | None, others: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    if first is not None:
        yield json_line(first)
    async for row in others:
        yield json_line(row)
