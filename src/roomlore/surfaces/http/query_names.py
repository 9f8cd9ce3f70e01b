"""The parameters that a query may have: any other is refused, since a misspelt `viewer` would show everything."""

from collections.abc import Callable, Coroutine, Iterator
from difflib import get_close_matches
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from roomlore.core.errors import InvalidInput

_NEAR = 0.5


class StrictRoute(APIRoute):
    """A route that answers 422 if the query has a parameter that the route does not read."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        shown, known = self._names()

        async def answer(request: Request) -> Response:
            for name in request.query_params:
                if name not in known:
                    raise _unknown(name, shown)
            return await handler(request)

        return answer

    def _names(self) -> tuple[list[str], frozenset[str]]:
        """Return the names that the route documents, and all that it reads."""
        found = list(_parameters(self.dependant))
        documented = [one.alias for one in found if getattr(one.field_info, "include_in_schema", True)]
        return sorted(set(documented)), frozenset(one.alias for one in found)


def _parameters(dependant: Dependant) -> Iterator[Any]:
    yield from dependant.query_params
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def _unknown(name: str, shown: list[str]) -> InvalidInput:
    said = f"There is no parameter {name!r:.60} here"
    near = get_close_matches(name.lower(), shown, n=1, cutoff=_NEAR)
    if near:
        return InvalidInput(f"{said}; did you mean {near[0]}?")
    return InvalidInput(f"{said}; there are {', '.join(shown)}." if shown else f"{said}; leave it out.")
