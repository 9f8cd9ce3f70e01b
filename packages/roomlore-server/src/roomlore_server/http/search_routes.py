"""The route that searches messages."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Depends, Query

from roomlore.core.errors import InvalidInput
from roomlore.core.search.hits import SearchAnswer, SearchMode
from roomlore.services.messages.search import MAX_HITS, MAX_QUERY_CHARS
from roomlore_server.http.guard import Reader, ShownTo
from roomlore_server.http.paths import (
    GivenRoom,
    in_room,
)
from roomlore_server.http.routers import Router
from roomlore_server.http.times import TIME_IN_QUERY, Moment, read_time

search = Router(tags=["messages"])

_Bound = Annotated[Moment | None, Query(description=f"{TIME_IN_QUERY}, from its beginning.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """The time of the question, and conditions on the messages that may answer it."""

    senders: list[str] | None
    since: datetime | None
    until: datetime | None
    asked_at: datetime | Literal["newest"] | None


async def read_asked(
    lore: Reader,
    sender_id: Annotated[list[str] | None, Query(description="Only what they said; may be repeated.")] = None,
    since: _Bound = None,
    until: _Bound = None,
    asked_at: Annotated[
        Moment | Literal["newest"] | None,
        Query(description="What 'yesterday' is seen from: a time, or `newest` for the room's newest message; now."),
    ] = None,
) -> Asked:
    return Asked(
        senders=sender_id,
        since=read_time(lore, "since", since),
        until=read_time(lore, "until", until),
        asked_at="newest" if asked_at == "newest" else read_time(lore, "asked_at", asked_at),
    )


@search.get("/messages/search")
async def search_messages(
    lore: Reader,
    viewer: ShownTo,
    room: GivenRoom,
    asked: Annotated[Asked, Depends(read_asked)],
    q: Annotated[
        str, Query(description="A few words or a question. Needed.", json_schema_extra={"maxLength": MAX_QUERY_CHARS})
    ] = "",
    limit: Annotated[
        int, Query(ge=1, le=MAX_HITS, description="Maximum number of messages; those far below the best are left out.")
    ] = 10,
    mode: Annotated[SearchMode, Query(description="By words and meaning, or by words alone.")] = "hybrid",
    conversation: Annotated[
        bool, Query(description="Bring the messages of its conversation around each hit too, at most 12.")
    ] = False,
) -> SearchAnswer:
    """Return the messages that answer the question best, best first, each with score, signals and reason.

    Without a room, all rooms that the viewer may see are searched as one: at most the 200 used last.
    """
    if not q:
        raise InvalidInput("q is missing: say what to look for, as in /messages/search?room_id=tea&q=green+tea.")

    async def search_in(room_id: str | None = None) -> SearchAnswer:
        return await lore.messages.search(
            room_id,
            q,
            viewer=viewer,
            limit=limit,
            mode=mode,
            sender_ids=asked.senders,
            since=asked.since,
            until=asked.until,
            asked_at=asked.asked_at,
            conversation=conversation,
        )

    return await (search_in() if room is None else in_room(lore, room, viewer, search_in))
