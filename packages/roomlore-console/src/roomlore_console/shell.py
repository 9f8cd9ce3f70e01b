"""The shell around every page: the rooms by last activity, one search over everything, and the page of all places."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import regex
from starlette.responses import Response

from roomlore.core.audience import ALWAYS, check_viewer
from roomlore.core.dates import FAR_PAST, TimeSpan
from roomlore.core.errors import RoomloreError
from roomlore.core.memory.memory import Memory
from roomlore.core.models import Room, Speaker, StoredMessage
from roomlore.core.search.hits import SearchHit, SearchMode
from roomlore.core.search.ranking import LOWERED
from roomlore.core.text import words as words_of
from roomlore.ports.audience import rooms_shown
from roomlore.surfaces.people_named import with_people_named
from roomlore.wiring import Lore
from roomlore_console.frame import NoViewer, Page, Tongue, clipped, clock, compile_pages

_BESIDE = 14
_ROOMS = 50
_MAX_ROOMS = 200
"""Rooms of a viewer among which people and rooms are searched, as in a search of messages."""
_DAYS = 14
_STEPS = (1, 5, 15, 50)
"""Messages of a day from which its bar is a step higher."""
_HIGHEST = 4 * len(_STEPS)
_BUSY = _STEPS[-1]
_PREVIEW = 200
"""Characters that are read of a room's newest message."""
_FOUND = 5
_MESSAGES = 20
_MEMORIES = 5
_MAX_WORDS = 4
_NAMED = 50
_LONGEST_QUERY = 400
_MARKED = 12
_LATIN_ENDS = 0x2FF
_DAY = len("2024-05-01")
_LEAST = 0.05
"""A signal below it is no reason."""


@dataclass(frozen=True, slots=True)
class Found:
    """The results of one search. `mode`: how messages were searched. `degraded`: why they were searched in a simpler
    way; '' if they were not. `times`: the times that the query names."""

    rooms: Sequence[Room] = ()
    people: Sequence[Speaker] = ()
    messages: Sequence[SearchHit] = ()
    memories: Sequence[Memory] = ()
    degraded: str = ""
    times: Sequence[TimeSpan] = ()
    mode: SearchMode = "lexical"
    problems: Sequence[str] = field(default=())

    @property
    def nothing(self) -> bool:
        return not (self.rooms or self.people or self.messages or self.memories)


@dataclass(frozen=True, slots=True)
class ListedRoom:
    """A room in the list, with its newest message, and its number of messages on each of the last days, at most
    `_BUSY`."""

    room: Room
    last: StoredMessage | None
    days: Sequence[int]

    @property
    def said(self) -> str:
        """The number of messages on these days."""
        return f"{sum(self.days):,}{'+' if _BUSY in self.days else ''}"

    @property
    def bars(self) -> str:
        """The bars of the days as a path, four units high for each step; '' if nothing was said."""
        heights = [4 * sum(count >= step for step in _STEPS) for count in self.days]
        return "".join(f"M{5 * day} {_HIGHEST}v-{high}h4v{high}z" for day, high in enumerate(heights) if high)

    @property
    def quiet(self) -> str:
        """The days on which nothing was said, as a path."""
        return "".join(f"M{5 * day} {_HIGHEST}v-1h4v1z" for day, count in enumerate(self.days) if not count)


async def rooms_beside(page: Page) -> Sequence[Room]:
    """Return the rooms beside a page; none if they cannot be read or the visitor has not said who is shown the page."""
    try:
        return await rooms_by_use(page, limit=_BESIDE)
    except (NoViewer, RoomloreError):
        return ()


async def rooms_by_use(page: Page, *, limit: int, offset: int = 0) -> Sequence[Room]:
    """Return the rooms that the viewer may see wholly, the one used last first."""
    lore, viewer = page.lore, page.viewer
    async with lore.storage.reading(lore.tenant) as work:
        if viewer is None:
            return await work.rooms.used_last(limit=limit, offset=offset)
        most = min(_MAX_ROOMS, offset + limit)
        whom = check_viewer(viewer)
        shown = await rooms_shown(work, viewer=whom, now=lore.now(), most=most)
    return [room for room, windows in shown.rooms if windows == ALWAYS][offset : offset + limit]


async def rooms_among(page: Page) -> list[str] | None:
    """Return the ids of the rooms to whose people the page is limited; None for an administrator, who sees all."""
    if page.viewer is None:
        return None
    return [room.room_id for room in await rooms_by_use(page, limit=_MAX_ROOMS)]


async def name_scopes(page: Page, scopes: Iterable[str]) -> None:
    """Look up the names of the rooms and people whose memories these scopes hold, at most 50, for an administrator."""
    if not page.is_admin:
        return
    lore = page.lore
    async with lore.storage.reading(lore.tenant) as work:
        for scope in list(dict.fromkeys(scopes))[:_NAMED]:
            kind, _, whose = scope.partition(":")
            name = ""
            if kind == "group":
                room = await work.rooms.find(room_id=whose)
                name = room.name if room else ""
            elif whose:
                voices = await work.rooms.voices(sender_id=whose)
                name = next((one.name for one in voices if one.name), "")
            if name:
                page.names[scope] = name


async def side(page: Page) -> Response:
    """Return the rooms beside a page as a piece, to renew them."""
    return page.show("side.html", rooms=await rooms_beside(page))


async def listed(page: Page) -> Response:
    offset = page.number("offset") or 0
    page_rooms = await rooms_by_use(page, limit=_ROOMS + 1, offset=offset)
    following = offset + _ROOMS if len(page_rooms) > _ROOMS else None
    rooms = await _with_news(page, page_rooms[:_ROOMS])
    return page.show("rooms.html", rooms=rooms, next=following, offset=offset, highest=_HIGHEST)


async def _with_news(page: Page, rooms: Sequence[Room]) -> list[ListedRoom]:
    """Return the rooms with what was said last and how much lately: two queries, whatever the number of rooms."""
    lore, ids = page.lore, [room.room_id for room in rooms]
    today = lore.now().astimezone(page.zone).date()
    ends = [today + timedelta(days=day) for day in range(1 - _DAYS, 2)]
    midnights = [datetime.combine(one, time(), page.zone) for one in ends]
    async with lore.storage.reading(lore.tenant) as work:
        last = await work.messages.newest_of(room_ids=ids, characters=_PREVIEW)
        days = await work.messages.sent_between(room_ids=ids, times=midnights, most=_BUSY)
    named = {one.room_id: one for one in await with_people_named(lore, last.values())}
    return [ListedRoom(one, named.get(one.room_id), days.get(one.room_id, (0,) * _DAYS)) for one in rooms]


async def search(page: Page) -> Response:
    """Return the page of one search over rooms, people, messages and memories, within what the viewer may see."""
    query = page.asked("q").strip()[:_LONGEST_QUERY]
    if not query:
        by_meaning = page.lore.settings.search.embeddings != "off"
        return page.show("search.html", query=query, found=None, mode="hybrid" if by_meaning else "lexical")
    page.need("read")
    among = await rooms_among(page)
    parts = [part for part in regex.split(r"[\s\p{P}]+", query) if len(part) > 1 or ord(part or " ") > _LATIN_ENDS]
    words = [part for part in parts if words_of(part)] or parts
    answer = page.later(_search_answer(page, query, among))
    return page.show(
        "search.html",
        streamed=True,
        query=query,
        found=answer,
        words=words[:_MARKED],
        reasons=reasons,
        span=partial(span, zone=page.lore.settings.search.zone, tongue=page.tongue),
    )


async def suggest(page: Page) -> Response:
    """Return rooms and people whose id or name contains what is typed, as options of the search. It is asked at each
    key, so people are looked for only in the rooms used last."""
    lore, part = page.lore, page.asked("q").strip()[:_LONGEST_QUERY]
    if len(part) < 2 and part <= chr(_LATIN_ENDS):
        return page.show("suggest.html", rooms=(), people=())
    recent = [room.room_id for room in await rooms_by_use(page, limit=_MAX_ROOMS)]
    rooms = await _rooms_named(page, part)
    async with lore.storage.reading(lore.tenant) as work:
        people = await work.rooms.speakers(part=part, room_ids=recent, limit=_FOUND)
    return page.show("suggest.html", rooms=rooms, people=people)


def reasons(signals: Mapping[str, float], at: datetime, times: Sequence[TimeSpan]) -> list[str]:
    """Return why a message was found, as keys of texts, the strongest reason first. A message that is only near the
    times of the query was not said then. Last comes what lowered it."""
    then = any(span_of_time.start <= at < span_of_time.end for span_of_time in times)
    signal_names = sorted((-value, name) for name, value in signals.items() if value >= _LEAST and name != "kind")
    lowered = ["kind"] if signals.get("kind", 1.0) <= LOWERED else []
    return [name for _, name in signal_names if name != "time" or then] + lowered


def span(time_span: TimeSpan, zone: ZoneInfo, tongue: Tongue) -> str:
    """Return what a time in the query was taken for: whole days by their dates, both included."""
    start, end = (
        moment if moment <= FAR_PAST else moment.astimezone(zone) for moment in (time_span.start, time_span.end)
    )
    whole = not any((start.hour, start.minute, end.hour, end.minute))
    last = clock(end - timedelta(days=1), zone)[:_DAY] if whole else clock(end, zone)
    if time_span.start <= FAR_PAST:
        return tongue.say("span.until", words=clipped(time_span.text, 40), last=last)
    first = clock(start, zone)[:_DAY] if whole else clock(start, zone)
    form = "day" if first == last else "days"
    return tongue.say(f"span.{form}", words=clipped(time_span.text, 40), first=first, last=last)


async def places(page: Page) -> Response:
    """Return the page of what does not fit into the bar of a phone."""
    return page.show("places.html")


async def _search_answer(page: Page, query: str, among: list[str] | None) -> Found:
    try:
        answer = await _searched(page, query, among)
        await name_scopes(page, [memory.scope for memory in answer.memories])
        return answer
    except RoomloreError as error:
        return Found(problems=(str(error),))


async def _searched(page: Page, query: str, among: list[str] | None) -> Found:
    lore, viewer = page.lore, page.viewer
    rooms = await _rooms_named(page, query)
    async with lore.storage.reading(lore.tenant) as work:
        people = await work.rooms.speakers(part=query, room_ids=among, limit=_FOUND)
    memories = await _memories(page, query)
    try:
        answer = await lore.messages.search(query=query, viewer=viewer, limit=_MESSAGES)
    except RoomloreError as error:
        return Found(rooms, people, (), memories, problems=(str(error),))
    messages = await with_people_named(lore, [hit.message for hit in answer.hits])
    hits = [replace(hit, message=message) for hit, message in zip(answer.hits, messages, strict=True)]
    return Found(rooms, people, hits, memories, answer.degraded or "", answer.times, answer.mode)


async def _rooms_named(page: Page, part: str) -> Sequence[Room]:
    """Return the rooms that the viewer sees whose id or name contains `part`."""
    if page.viewer is not None:
        by_use, wanted = await rooms_by_use(page, limit=_MAX_ROOMS), part.lower()
        return [room for room in by_use if wanted in room.room_id.lower() or wanted in room.name.lower()][:_FOUND]
    async with page.lore.storage.reading(page.lore.tenant) as work:
        return await work.rooms.named_like(part=part, limit=_FOUND)


async def _memories(page: Page, query: str) -> Sequence[Memory]:
    lore, viewer, words = page.lore, page.viewer, query.lower().split()[:_MAX_WORDS]
    if viewer is None:
        async with lore.storage.reading(lore.tenant) as work:
            return await work.memories.saying(words=words, limit=_MEMORIES)
    visible = (one.memory for one in await lore.memories.visible(viewer) if one.shown)
    said = [memory for memory in visible if all(word in memory.statement.lower() for word in words)]
    return sorted(said, key=lambda one: one.updated_at, reverse=True)[:_MEMORIES]


async def prepare(lore: Lore) -> None:
    """Make ready what the first visit would wait for: the pages, and what reading a room loads. Durable work is opened
    when somebody asks for the jobs: it takes 24 MB."""
    await asyncio.to_thread(compile_pages)
    with suppress(RoomloreError):
        async with lore.storage.reading(lore.tenant) as work:
            newest = await work.rooms.used_last(limit=_BESIDE, offset=0)
            said = [await work.messages.tail(room_id=one.room_id, limit=1) for one in newest[:1]]
        for entries in said:
            for entry in entries:
                await lore.rooms.headings(entry.message.room_id, [entry.message.id], viewer=None)
