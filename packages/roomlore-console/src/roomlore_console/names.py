"""Addresses with the name of a room or a person in place of an id: they lead to the one that has it, or to a choice."""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from starlette.responses import Response

from roomlore_console.choosing import Choice, meant
from roomlore_console.frame import Page, address

Near = Sequence[tuple[Choice, str]]
"""Who or what may be meant, each with the address of its page."""

_PARAMETERS: Mapping[str, str] = {
    "/room": "id",
    "/thread": "id",
    "/digest": "id",
    "/visible": "id",
    "/context": "room",
    "/person": "id",
}
"""The parameter that takes an id, by page."""


async def room(page: Page) -> Response:
    """Lead from `/rooms/NAME` to the page of the room with this id or name."""
    return await _from_path(page, "/room", "/rooms")


async def person(page: Page) -> Response:
    """Lead from `/people/NAME` to the page of the person with this id or name."""
    return await _from_path(page, "/person", "/people")


async def _from_path(page: Page, path: str, every: str) -> Response:
    name = unquote(page.request.path_params["name"])
    if not name:
        return page.go(every)
    return (await _led(page, path, {"id": name}))[0] or page.go(path, id=name)


async def instead(page: Page, path: str) -> tuple[Response | None, Near]:
    """Return a redirect or a choice if an id in the address of a page is unknown, and a name; else None, and what may
    be meant."""
    known = page.asked(_PARAMETERS.get(path, ""))
    return await _led(page, path, dict(page.request.query_params)) if known else (None, ())


async def _led(page: Page, path: str, query: Mapping[str, str]) -> tuple[Response | None, Near]:
    parameter = _PARAMETERS[path]
    name = query[parameter]
    called, like = await meant(page, name, ("user",) if path == "/person" else ("group",))
    if any(choice.own_id == name for choice in called):
        return None, ()
    leads = [(choice, address(path, **{**query, parameter: choice.own_id})) for choice in called or like]
    if len(called) == 1:
        return page.go(path, **{**query, parameter: called[0].own_id}), ()
    return (page.show("choose.html", choices=leads, name=name), ()) if called else (None, leads)
