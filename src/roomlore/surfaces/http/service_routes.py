"""Routes of jobs and models, and of the service itself: health, index and metrics."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from roomlore.ports.durable import WorkStatus
from roomlore.services.jobs import KIND
from roomlore.surfaces.http import message_routes
from roomlore.surfaces.http.guard import Admin, Reader, Writer
from roomlore.surfaces.http.paths import MOST, After, PageLimit, addressed
from roomlore.surfaces.http.problems import reply
from roomlore.surfaces.plain import plain


class JobView(BaseModel):
    """A piece of background work."""

    job_id: str
    kind: str = Field(examples=["extraction"])
    room_id: str = Field(description="The room it is about; empty where it is about none.")
    status: Literal["waiting", "running", "done", "failed", "cancelled"]
    attempts: int = Field(description="How often it was begun.")
    progress: str = Field(description="What it last said of itself.")
    error: str = Field(description="Why it failed; empty unless it did.")
    created_at: datetime
    updated_at: datetime


class JobPage(BaseModel):
    jobs: list[JobView]
    next: int | None = Field(description="The `after` of the next page; null at the end.")


jobs = APIRouter(tags=["jobs"])

JobId = Annotated[str, Depends(addressed("job_id", "The job's id"))]
Status = Annotated[WorkStatus | None, Query(description="Only those that stand so.")]
Kind = Annotated[
    str | None,
    Query(
        description="Only those of this kind, such as extraction.", json_schema_extra={"pattern": f"^{KIND.pattern}$"}
    ),
]


@jobs.get("/jobs", response_model=JobPage)
async def list_jobs(
    lore: Reader, limit: PageLimit, after: After = 0, status: Status = None, kind: Kind = None
) -> Response:
    """Return the jobs, the newest first. `after`: how many to skip."""
    page = await lore.jobs.page(status=status, kind=kind, limit=limit, offset=after)
    following = after + limit if len(page) == limit and after + limit <= MOST else None
    return reply({"jobs": plain(page), "next": following})


@jobs.get("/jobs/{job_id:id}", response_model=JobView)
async def get_job(lore: Reader, job_id: JobId) -> Response:
    """Return the job."""
    return reply(plain(await lore.jobs.get(job_id)))


@jobs.post("/jobs/{job_id:id}/retry", response_model=JobView)
async def retry_job(lore: Writer, job_id: JobId) -> Response:
    """Run a failed or cancelled job again, and return it. Its finished steps are not repeated."""
    return reply(plain(await lore.jobs.retry(job_id)))


models = APIRouter(tags=["models"])


@models.get("/models", response_model=message_routes.ModelList)
async def list_models(lore: Reader) -> Response:
    """Return the models with their providers in order, and if each of these can be called: it has a key, or needs none.
    Keys are never returned."""
    return reply({"models": plain(await lore.models.list_available_models())})


service = APIRouter(tags=["service"])


@service.get("/health/live", response_model=message_routes.Health)
async def live() -> Response:
    """Return 200 if the process answers. Needs no key."""
    return reply({"status": "ok"})


@service.get("/health/ready", response_model=message_routes.Health)
async def ready(request: Request) -> Response:
    """Return 200 if the database answers and accepts writes. Needs no key. Without vectors search continues by words:
    see /index."""
    await request.app.state.lore.ready()
    return reply({"status": "ok"})


@service.get("/index", response_model=message_routes.IndexView)
async def index(lore: Admin) -> Response:
    """Return the state of the search indexes, over all tenants: complete, behind, being rebuilt, or unreachable, and
    what to do."""
    return reply(plain(await lore.index.status()))


@service.get("/metrics", response_class=Response)
async def metrics(lore: Admin) -> Response:
    """Return the metrics of this process over all tenants, in Prometheus' text format."""
    return Response(lore.prometheus(), media_type="text/plain; version=0.0.4; charset=utf-8")
