"""Ids in paths and pages in queries.

An id may hold any character, `/` too, when it is percent-encoded (`%2F`): routing works on the path as it was sent, and
only then is each id decoded.
"""

from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Query
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from roomlore.core.errors import InvalidInput
from roomlore.surfaces.http.bodies import one_room

MOST = 2**63 - 1
_USUAL = 100


class IdConvertor(Convertor[str]):
    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", IdConvertor())


class RawPaths:
    """Routes by the path as sent, so that an encoded slash stays inside its id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            scope["path"] = scope["raw_path"].decode("ascii", "replace")
        await self._app(scope, receive, send)


RoomId = Annotated[str, Path(description="The room's id, percent-encoded.")]
MessageId = Annotated[str, Path(description="The message's id, percent-encoded.")]
After = Annotated[int, Query(ge=0, le=MOST, description="The `next` of the page before; 0 begins.")]
PAGE_LIMIT = "Most items in the page"
Limit = Annotated[int, Query(ge=1, le=MOST, description=f"{PAGE_LIMIT}; at most the setting max_page.")]


def page_limit(request: Request, limit: Limit | None = None) -> int:
    """By default 100, or `max_page` where that is less."""
    most: int = request.app.state.settings.max_page
    if limit is None:
        return min(_USUAL, most)
    if limit > most:
        raise InvalidInput(f"limit is {limit}; it must be a whole number from 1 to {most} (setting max_page).")
    return limit


def queried_room(
    room_id: Annotated[str | None, Query(description="The room. Needed.")] = None,
    group_id: Annotated[str | None, Query(description="Another name for room_id.")] = None,
    chat_id: Annotated[str | None, Query(description="Another name for room_id.")] = None,
    conversation_id: Annotated[str | None, Query(description="Another name for room_id.")] = None,
) -> str:
    given = {"room_id": room_id, "group_id": group_id, "chat_id": chat_id, "conversation_id": conversation_id}
    room: str | None = one_room(given).get("room_id")
    if not room:
        raise InvalidInput("room_id is missing: say whose messages, as in /messages?room_id=tea.")
    return room


PageLimit = Annotated[int, Depends(page_limit)]
QueriedRoom = Annotated[str, Depends(queried_room)]
