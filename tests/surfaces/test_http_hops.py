"""A request runs on the event loop: FastAPI would send a dependency that is a plain function to a thread and back."""

from inspect import iscoroutinefunction

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

import roomlore
from roomlore.surfaces.http import app


def calls(dependant: Dependant) -> set[object]:
    own = {dependant.call} if dependant.call else set()
    return own.union(*map(calls, dependant.dependencies))


def routes(router: object) -> list[APIRoute]:
    held = [one for one in getattr(router, "routes", ()) if one is not router]
    inner = [getattr(one, "original_router", one) for one in held]
    own = [one for one in held if isinstance(one, APIRoute)]
    return own + [found for one in inner if not isinstance(one, APIRoute) for found in routes(one)]


@pytest.mark.parametrize("make", [app.create_app, app.create_mcp_app])
def test_no_handler_or_dependency_needs_a_thread(make):
    found = routes(make(roomlore.Settings()).router)
    assert found
    plain = {call for route in found for call in calls(route.dependant) if not iscoroutinefunction(call)}
    assert plain == set()
