"""Durable work over HTTP: seeing it, and having what failed done again."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from roomlore.ports.durable import WorkStatus
from roomlore.surfaces.http import job_views
from roomlore.surfaces.http.guard import Reader, Writer
from roomlore.surfaces.http.paths import MOST, After, PageLimit
from roomlore.surfaces.http.replies import reply
from roomlore.surfaces.plain import plain

jobs = APIRouter(tags=["jobs"])

JobId = Annotated[str, Path(description="The job's id, percent-encoded.")]
Status = Annotated[WorkStatus | None, Query(description="Only those that stand so.")]
Kind = Annotated[str | None, Query(description="Only those of this kind, such as extraction.")]


@jobs.get("/jobs", response_model=job_views.JobPage)
async def list_jobs(
    lore: Reader, limit: PageLimit, after: After = 0, status: Status = None, kind: Kind = None
) -> Response:
    """The jobs, the newest first. `after` counts how many were shown before."""
    page = await lore.jobs.page(status=status, kind=kind, limit=limit, offset=after)
    following = after + limit if len(page) == limit and after + limit <= MOST else None
    return reply({"jobs": plain(page), "next": following})


@jobs.get("/jobs/{job_id:id}", response_model=job_views.JobView)
async def get_job(lore: Reader, job_id: JobId) -> Response:
    """The job as it stands."""
    return reply(plain(await lore.jobs.get(job_id)))


@jobs.post("/jobs/{job_id:id}/retry", response_model=job_views.JobView)
async def retry_job(lore: Writer, job_id: JobId) -> Response:
    """Has a job done again that failed or was cancelled, and shows it. What it had finished is not repeated."""
    return reply(plain(await lore.jobs.retry(job_id)))
