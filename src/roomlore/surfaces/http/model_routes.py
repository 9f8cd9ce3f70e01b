"""The models of this service over HTTP."""

from fastapi import APIRouter
from starlette.responses import Response

from roomlore.surfaces.http import views
from roomlore.surfaces.http.guard import Reader
from roomlore.surfaces.http.replies import reply
from roomlore.surfaces.plain import plain

models = APIRouter(tags=["models"])


@models.get("/models", response_model=views.ModelList)
async def list_models(lore: Reader) -> Response:
    """The models to choose from, in the order configured, with their providers in order and whether these can be asked:
    they have a key, or need none. Never a key."""
    return reply({"models": plain(await lore.models.list_available_models())})
