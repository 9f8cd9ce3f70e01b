"""Whether the service is well: health and metrics."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from roomlore.surfaces.http import views
from roomlore.surfaces.http.guard import Admin
from roomlore.surfaces.http.replies import reply
from roomlore.surfaces.plain import plain

service = APIRouter(tags=["service"])


@service.get("/health/live", response_model=views.Health)
async def live() -> Response:
    """The process answers. Needs no key."""
    return reply({"status": "ok"})


@service.get("/health/ready", response_model=views.Health)
async def ready(request: Request) -> Response:
    """The database answers and takes writes. Needs no key. Search goes on by words where vectors cannot be had: /index
    tells."""
    await request.app.state.lore.ready()
    return reply({"status": "ok"})


@service.get("/index", response_model=views.IndexView)
async def index(lore: Admin) -> Response:
    """How the indexes of search stand, over all tenants: whole, behind, being rebuilt, or out of reach, and what to
    do."""
    return reply(plain(await lore.index.status()))


@service.get("/metrics", response_class=Response)
async def metrics(lore: Admin) -> Response:
    """What this process measured, in Prometheus' text format, over all tenants."""
    return Response(lore.prometheus(), media_type="text/plain; version=0.0.4; charset=utf-8")
