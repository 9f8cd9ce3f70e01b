"""Routes of jobs, models and usage records, and of the service itself: health, index and metrics."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, Literal

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from roomlore.core.chat import ModelStatus
from roomlore.core.json_values import json_line
from roomlore.services.indexing import IndexStatus
from roomlore.verbs import operations as verbs
from roomlore.wiring import Lore
from roomlore_server.http.derived import add_route
from roomlore_server.http.guard import Admin, Reader
from roomlore_server.http.paths import PageLimit
from roomlore_server.http.routers import Router


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """The models that replies and background work can use."""

    models: Sequence[ModelStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of the service."""

    status: Literal["ok"] = "ok"


jobs = Router(tags=["jobs"])
add_route(jobs, verbs.LIST_JOBS, "list_jobs")
add_route(jobs, verbs.GET_JOB, "get_job")
add_route(jobs, verbs.RETRY_JOB, "retry_job")
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


@service.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request, lore: Admin) -> Response:
    """Return the metrics over all tenants, in Prometheus' text format: of this process, or of all processes of
    `roomlore serve --workers N`, each with the label `process`."""
    together = request.app.state.process_metrics
    text = await together.render(lore) if together else lore.prometheus()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


usage = Router(tags=["context"])


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


def _lines(_: Lore, rows: AsyncIterator[Mapping[str, Any]], __: Mapping[str, Any]) -> JsonLines:
    return JsonLines(json_line(row) async for row in rows)


add_route(usage, verbs.LIST_USAGE, "list_usage", also={"limit": (PageLimit, Parameter.empty)})
add_route(usage, verbs.REPORT_USAGE, "report_usage")
add_route(
    usage,
    verbs.EXPORT_USAGE,
    "export_usage",
    shown=_lines,
    gives=JsonLines,
    response_class=JsonLines,
    responses={
        200: {"content": {JsonLines.media_type: {"itemSchema": {"$ref": "#/components/schemas/ContextUsageRecord"}}}}
    },
)
