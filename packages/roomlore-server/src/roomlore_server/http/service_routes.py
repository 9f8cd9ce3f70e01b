"""Routes of jobs, models and usage records, and of the service itself: health, index and metrics."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from roomlore.core.experiments import UsageReport
from roomlore.core.json_values import json_line
from roomlore.core.models import ContextUsageRecord
from roomlore.ports.durable import WorkStatus
from roomlore.services.contexts.usage_service import MAX_DAYS
from roomlore.services.indexing import IndexStatus
from roomlore.services.jobs import KIND, Job
from roomlore.services.models import ModelStatus
from roomlore_server.http.guard import Admin, Reader
from roomlore_server.http.paths import MOST, AdminsAnyRoom, After, PageLimit, addressed
from roomlore_server.http.routers import Router


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """A page of jobs. `next`: the `after` of the next page; null at the end."""

    jobs: Sequence[Job]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """The models that replies and background work can use."""

    models: Sequence[ModelStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of the service."""

    status: Literal["ok"] = "ok"


jobs = Router(tags=["jobs"])

JobId = Annotated[str, Depends(addressed("job_id", "The job's id"))]
Status = Annotated[WorkStatus | None, Query(description="Only those that stand so.")]
Kind = Annotated[
    str | None,
    Query(
        description="Only those of this kind, such as extraction.", json_schema_extra={"pattern": f"^{KIND.pattern}$"}
    ),
]


@jobs.get("/jobs")
async def list_jobs(
    lore: Admin, limit: PageLimit, after: After = 0, status: Status = None, kind: Kind = None
) -> JobPage:
    """Return the jobs, the newest first. `after`: how many to skip."""
    page = await lore.jobs.page(status=status, kind=kind, limit=limit, offset=after)
    following = after + limit if len(page) == limit and after + limit <= MOST else None
    return JobPage(jobs=page, next=following)


@jobs.get("/jobs/{job_id:id}")
async def get_job(lore: Admin, job_id: JobId) -> Job:
    """Return the job."""
    return await lore.jobs.get(job_id)


@jobs.post("/jobs/{job_id:id}/retry")
async def retry_job(lore: Admin, job_id: JobId) -> Job:
    """Run a failed or cancelled job again, and return it. Its finished steps are not repeated."""
    return await lore.jobs.retry(job_id)


models = Router(tags=["models"])


@models.get("/models")
async def list_models(lore: Reader) -> ModelList:
    """Return the models with their providers in order, and if each of these can be called: it has a key, or needs none.
    Keys are never returned."""
    return ModelList(models=await lore.models.list_available_models())


service = Router(tags=["service"], strict=False)


@service.get("/health/live")
async def live() -> Health:
    """Return 200 if the process answers. Needs no key."""
    return Health()


@service.get("/health/ready")
async def ready(request: Request) -> Health:
    """Return 200 if the database answers and accepts writes. Needs no key. Without vectors search continues by words:
    see /index."""
    await request.app.state.lore.ready()
    return Health()


@service.get("/index")
async def index(lore: Admin) -> IndexStatus:
    """Return the state of the search indexes, over all tenants: complete, behind, being rebuilt, or unreachable, and
    what to do."""
    return await lore.index.status()


@service.get("/metrics", response_class=Response)
async def metrics(request: Request, lore: Admin) -> Response:
    """Return the metrics over all tenants, in Prometheus' text format: of this process, or of all processes of
    `roomlore serve --workers N`, each with the label `process`."""
    together = request.app.state.process_metrics
    text = await together.render(lore) if together else lore.prometheus()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


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
    room_id: AdminsAnyRoom,
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
