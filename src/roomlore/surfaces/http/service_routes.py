"""Routes of jobs and models, and of the service itself: health, index and metrics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from starlette.responses import Response

from roomlore.ports.durable import WorkStatus
from roomlore.services.indexing import IndexStatus
from roomlore.services.jobs import KIND, Job
from roomlore.services.models import ModelStatus
from roomlore.surfaces.http.answers import Router
from roomlore.surfaces.http.guard import Admin, Reader
from roomlore.surfaces.http.paths import MOST, After, PageLimit, addressed


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
