"""Searching a room over HTTP."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.records import parse_time
from roomlore.core.search import SearchMode
from roomlore.services.messages.search import MAX_HITS
from roomlore.surfaces.http import views
from roomlore.surfaces.http.guard import Reader
from roomlore.surfaces.http.paths import QueriedRoom
from roomlore.surfaces.http.replies import reply
from roomlore.surfaces.plain import plain

search = APIRouter(tags=["messages"])

_UNCODED_PLUS = re.compile(r"(:\d\d(?:\.\d+)?) (\d\d(?::?\d\d)?)$")

Moment = Annotated[str | None, Query(description="ISO 8601 or a Unix time; without a zone it is UTC.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """When the question is asked, and which messages may answer it."""

    senders: list[str] | None
    since: datetime | None
    until: datetime | None
    asked_at: datetime | Literal["newest"] | None


def read_asked(
    sender_id: Annotated[list[str] | None, Query(description="Only what they said; may be repeated.")] = None,
    since: Moment = None,
    until: Moment = None,
    asked_at: Annotated[
        str | None,
        Query(description="What 'yesterday' is seen from: a time, or `newest` for the room's newest message; now."),
    ] = None,
) -> Asked:
    return Asked(
        senders=sender_id,
        since=read_time("since", since),
        until=read_time("until", until),
        asked_at="newest" if asked_at == "newest" else read_time("asked_at", asked_at),
    )


@search.get("/messages/search", response_model=views.SearchView)
async def search_messages(
    lore: Reader,
    room_id: QueriedRoom,
    asked: Annotated[Asked, Depends(read_asked)],
    q: Annotated[str, Query(description="A few words or a question. Needed.")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_HITS, description="Most messages.")] = 10,
    mode: Annotated[SearchMode, Query(description="By words and meaning, or by words alone.")] = "hybrid",
    conversation: Annotated[
        bool, Query(description="Bring the messages of its conversation around each hit too, at most 12.")
    ] = False,
) -> Response:
    """Return the messages of a room that answer the question best, best first, each with score, signals and reason."""
    if not q:
        raise InvalidInput("q is missing: say what to look for, as in /messages/search?room_id=tea&q=green+tea.")
    answer = await lore.messages.search(
        room_id,
        q,
        limit=limit,
        mode=mode,
        sender_ids=asked.senders,
        since=asked.since,
        until=asked.until,
        asked_at=asked.asked_at,
        conversation=conversation,
    )
    return reply(plain(answer))


def read_time(name: str, text: str | None) -> datetime | None:
    """A time of a query; None where none is given. A `+` that nobody percent-encoded has become a space and is read as
    the `+` it was. Raises `InvalidInput`."""
    if text is None:
        return None
    moment = parse_time(_UNCODED_PLUS.sub(r"\1+\2", text))
    if moment is None:
        raise InvalidInput(
            f"{name} is {text[:60]!r}; give a day or a time, such as 2024-05-01 or 2024-05-01T12:30:00Z."
        )
    return moment
