"""Parameters of routes: ids in paths and pages in queries.

An id may hold any character, `/` too, if it is percent-encoded (`%2F`): routing uses the path as sent, and only then
each id is decoded. But clients and proxies change some paths: they resolve `..` and decode `%2F`. So the path may have
`-` instead of an id, and the query the id: `/rooms/-/threads?room_id=..`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Depends, Path, Query
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import MAX_GROUP_CHARS
from roomlore.core.memory.writing import MAX_REASON, scope_of
from roomlore_server.http.bodies import one_room
from roomlore_server.http.guard import Admin, Caller, ShownTo, caller_of

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


IN_QUERY = "-"


def addressed(name: str, about: str, *, most: int | None = None) -> Callable[..., Awaitable[str]]:
    """Return a dependency that gives the id `name` of the path, or that of the query if the path has `-`. `most`: its
    maximum of characters, if longer ids are refused."""
    bound = {} if most is None else {"maxLength": most}
    in_path = Path(
        alias=name,
        description=f"{about}, percent-encoded; or `-` and `{name}` in the query.",
        json_schema_extra=bound,
    )
    in_query = Query(
        alias=name,
        min_length=1,
        max_length=most,
        description="Read where the path has `-`: for an id that paths do not keep, such as `..` or one with a `/`.",
    )

    async def read(path_value: Annotated[str, in_path], query_value: Annotated[str | None, in_query] = None) -> str:
        return path_value if query_value is None or path_value != IN_QUERY else query_value

    return read


RoomId = Annotated[str, Depends(addressed("room_id", "The room's id, or its name if no other room has it"))]
MessageId = Annotated[str, Depends(addressed("message_id", "The message's id"))]
After = Annotated[int, Query(ge=0, le=MOST, description="The `next` of the page before; 0 begins.")]
Limit = Annotated[
    int,
    Query(
        ge=1,
        le=MOST,
        description="Maximum number of items in the page; at most the setting max_page.",
        json_schema_extra={"maximum": "max_page"},
    ),
]


async def page_limit(request: Request, limit: Limit | None = None) -> int:
    """Return the limit of a page: by default 100, or `max_page` if that is less."""
    most: int = request.app.state.settings.limits.max_page
    if limit is None:
        return min(_USUAL, most)
    if limit > most:
        raise InvalidInput("page_limit_invalid", value=limit, most=most)
    return limit


_OtherName = Annotated[str | None, Query(include_in_schema=False)]


def query_of_room(about: str) -> Callable[..., Awaitable[str | None]]:
    """Return a dependency that gives the room of a query as it is given, None if it names none. `about`: the
    parameter's text."""

    async def named(
        room_id: Annotated[str | None, Query(description=about)] = None,
        group_id: _OtherName = None,
        chat_id: _OtherName = None,
        conversation_id: _OtherName = None,
    ) -> str | None:
        given = {"room_id": room_id, "group_id": group_id, "chat_id": chat_id, "conversation_id": conversation_id}
        room: str | None = one_room(given).get("room_id")
        return room or None

    return named


PageLimit = Annotated[int, Depends(page_limit)]


def shown(room_of: Any, *, by_name: bool = False) -> Callable[..., Awaitable[str]]:
    """Return a dependency that gives the id of a room, if the viewer may see all that was said there. `by_name`: the
    path may have the name of a room in place of its id."""

    async def check(caller: Annotated[Caller, Depends(caller_of)], viewer: ShownTo, room_id: room_of) -> str:
        room: str = await caller.lore.rooms.named(room_id, viewer=viewer, or_new=True) if by_name else room_id
        await caller.lore.rooms.check_shown(room, viewer)
        return room

    return check


async def _called(caller: Annotated[Caller, Depends(caller_of)], viewer: ShownTo, room_id: RoomId) -> str:
    return await caller.lore.rooms.named(room_id, viewer=viewer, or_new=True)


async def _called_by_admin(lore: Admin, room_id: RoomId) -> str:
    return await lore.rooms.named(room_id, or_new=True, viewer=None)


NamedRoom = Annotated[str, Depends(_called)]
"""A room by its id, or by a name among the rooms that the viewer may see; who asks checks what is shown."""
AdminsRoom = Annotated[str, Depends(_called_by_admin)]
ShownRoom = Annotated[str, Depends(shown(RoomId, by_name=True))]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a path. `group_id`: as it was asked for. `scope`: with the id of its room."""

    group_id: str
    scope: str


_GROUP = (
    "The group's id, or the name of its room if no other room has it; or a scope such as user:anna for what is known "
    "of anna"
)
_GroupId = Annotated[str, Depends(addressed("group_id", _GROUP, most=MAX_GROUP_CHARS))]


async def _group_for_admin(lore: Admin, group_id: _GroupId) -> Group:
    return Group(group_id, await lore.rooms.scope_named(scope_of(group_id), viewer=None))


AdminsGroup = Annotated[Group, Depends(_group_for_admin)]
MemoryId = Annotated[str, Depends(addressed("memory_id", "The id of any version of it"))]
EvolutionId = Annotated[str, Depends(addressed("evolution_id", "The evolution's id"))]
Reason = Annotated[str | None, Query(description="Why, for the history.", json_schema_extra={"maxLength": MAX_REASON})]
