"""A request runs on the event loop: FastAPI would send a dependency that is a plain function to a thread and back."""

from inspect import iscoroutinefunction

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

import roomlore
from roomlore_server.http import app


def calls(dependant: Dependant) -> set[object]:
    own = {dependant.call} if dependant.call else set()
    return own.union(*map(calls, dependant.dependencies))


@pytest.mark.parametrize("make", [app.create_app, app.create_mcp_app])
def test_no_handler_or_dependency_needs_a_thread(make):
    found = [route for route in make(roomlore.Settings()).routes if isinstance(route, APIRoute)]
    assert found
    plain = {call for route in found for call in calls(route.dependant) if not iscoroutinefunction(call)}
    assert plain == set()
