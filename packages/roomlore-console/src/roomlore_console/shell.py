"""The shell around every page: the rooms by last activity, one search over everything, and the page of all places."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from operator import attrgetter
from typing import Any
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape
from starlette.responses import Response

from roomlore.core.audience import ALWAYS, BEGINNING, END, check_viewer
from roomlore.core.dates import TimeSpan
from roomlore.core.errors import InvalidInput, RoomloreError
from roomlore.core.memory.memory import Memory, Scope
from roomlore.core.models import Entry, Room, Speaker, StoredMessage
from roomlore.core.search.hits import SearchAnswer
from roomlore.core.search.telling import BETWEEN, WEAK, ends_of
from roomlore.ports.audience import rooms_shown
from roomlore.surfaces.excerpts import excerpt, matches
from roomlore.surfaces.people_named import answer_with_people_named, with_people_named
from roomlore.wiring import Lore
from roomlore_console.frame import NoViewer, Page, Tongue, Tried, clipped, compile_pages, in_tongue, visible

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
_LOOKED_AT = 50
"""The rooms, people and memories among which those that fit a search best are chosen."""
_MESSAGES = 20
_READ_BY_PERSON = 200
"""The newest messages of a room among which those of a person are looked for."""
_MEMORIES = 5
_MAX_WORDS = 4
_NAMED = 150
_LONGEST_QUERY = 400
_LATIN_ENDS = 0x2FF
_PICKED = 100
"""The most people that a filter offers."""
_EXCERPT = 320
_READ = 20_000
"""Characters of a message in which words are marked."""


@dataclass(frozen=True, slots=True)
class Picked:
    """The limits of a search: a room, a person, the days from `since` to `until`, both included; '' for all."""

    room: str = ""
    who: str = ""
    since: str = ""
    until: str = ""

    @property
    def any(self) -> bool:
        return bool(self.room or self.who or self.since or self.until)


@dataclass(frozen=True, slots=True)
class Found:
    """The results of one search. `held`: the memories, counted, of the rooms and people among them.
    `answer`: with the messages; None if these could not be searched."""

    rooms: Sequence[Room] = ()
    people: Sequence[Speaker] = ()
    held: Sequence[Scope] = ()
    memories: Sequence[Memory] = ()
    answer: SearchAnswer | None = None
    problems: Sequence[str] = field(default=())


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
        shown_to = check_viewer(viewer)
        shown = await rooms_shown(work, viewer=shown_to, now=lore.now(), most=most)
    return [room for room, windows in shown.rooms if windows == ALWAYS][offset : offset + limit]


async def rooms_among(page: Page) -> list[str] | None:
    """Return the ids of the rooms to whose people the page is limited; None for an administrator, who sees all."""
    if page.viewer is None:
        return None
    return [room.room_id for room in await rooms_by_use(page, limit=_MAX_ROOMS)]


async def name_scopes(page: Page, scopes: Iterable[str]) -> None:
    """Look up the names of the rooms and people whose memories these scopes hold, at most 150, for an administrator."""
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
    """Return the page of the rooms, the one used last first, or of those with a part of a name or id."""
    offset, part = page.number("offset") or 0, page.asked("q").strip()
    page_rooms = await (
        rooms_named(page, part, limit=_ROOMS) if part else rooms_by_use(page, limit=_ROOMS + 1, offset=offset)
    )
    following = offset + _ROOMS if len(page_rooms) > _ROOMS else None
    rooms = await _with_news(page, page_rooms[:_ROOMS])
    return page.show("rooms.html", rooms=rooms, part=part, next=following, offset=offset, highest=_HIGHEST)


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
    picked = Picked(*(page.asked(one.name).strip() for one in fields(Picked)))
    rooms = await rooms_by_use(page, limit=_MAX_ROOMS)
    page.names.update({f"group:{room.room_id}": room.title for room in rooms})
    among = None if page.viewer is None else [room.room_id for room in rooms]
    async with page.lore.storage.reading(page.lore.tenant) as work:
        people = await work.rooms.speakers(
            part="", room_ids=[picked.room] if picked.room and among is None else among, limit=_PICKED
        )
    by_meaning, tried = page.lore.settings.search.embeddings != "off", Tried({})
    since = tried.read("since", lambda: _midnight(page, "since", picked.since), None)
    until = tried.read("until", lambda: _midnight(page, "until", picked.until, days=1), None)
    searched, wordless = query and not tried.wrong, picked.any and not (query or tried.wrong)
    return page.show(
        "search.html",
        streamed=True,
        tried=tried,
        query=query,
        picked=picked,
        rooms_offered=[room for room in rooms if visible(room.room_id) == room.room_id],
        people_offered=[one for one in people if visible(one.sender_id) == one.sender_id],
        found=page.later(_search_answer(page, query, picked, among, since, until)) if searched else None,
        newest=await _newest_within(page, rooms, picked, since, until) if wordless else None,
        by_date=page.asked("sort") == "date",
        weak_match=WEAK,
        mode="hybrid" if by_meaning else "lexical",
        excerpt=partial(marked_excerpt, query=query),
        reasons=lambda hit: [in_tongue(one, page.tongue)[0] for one in hit.reason.split(BETWEEN)],
        span=partial(span, zone=page.lore.settings.search.zone, tongue=page.tongue),
    )


def marked_excerpt(text: str, query: str) -> Markup:
    """Return the part of a message that has most words of the query, with these marked."""
    shown = visible(text[:_READ])
    cut, spans = excerpt(shown, matches(shown, query), _EXCERPT)
    parts, end = [], 0
    for at, to in spans:
        parts += [escape(cut[end:at]), Markup("<mark>{}</mark>").format(cut[at:to])]
        end = to
    return Markup("").join([*parts, escape(cut[end:])])


async def suggest(page: Page) -> Response:
    """Return rooms and people whose id or name contains what is typed, as options of the search. It is asked at each
    key, so people are looked for only in the rooms used last."""
    lore, part = page.lore, page.asked("q").strip()[:_LONGEST_QUERY]
    if len(part) < 2 and part <= chr(_LATIN_ENDS):
        return page.show("suggest.html", rooms=(), people=())
    recent = [room.room_id for room in await rooms_by_use(page, limit=_MAX_ROOMS)]
    rooms = await rooms_named(page, part)
    async with lore.storage.reading(lore.tenant) as work:
        people = await work.rooms.speakers(part=part, room_ids=recent, limit=_FOUND)
    return page.show("suggest.html", rooms=rooms, people=people)


def span(time_span: TimeSpan, zone: ZoneInfo, tongue: Tongue) -> str:
    """Return what a time in the query was taken for: whole days by their dates, both included."""
    first, last = ends_of(time_span, zone)
    form = "until" if not first else "day" if first == last else "days"
    return tongue.say(f"span.{form}", words=clipped(time_span.text, 40), first=first, last=last)


async def places(page: Page) -> Response:
    """Return the page of what does not fit into the bar of a phone."""
    return page.show("places.html")


async def _search_answer(
    page: Page, query: str, picked: Picked, among: list[str] | None, since: datetime | None, until: datetime | None
) -> Found:
    found = Found()
    try:
        if not picked.any:
            found = await _beside_messages(page, query, among)
        answer = await page.lore.messages.search(
            picked.room or None,
            query,
            viewer=page.viewer,
            limit=_MESSAGES,
            sender_ids=[picked.who] if picked.who else None,
            since=since,
            until=until,
            conversation=True,
        )
        answer = await answer_with_people_named(page.lore, answer)
        await name_scopes(page, [f"group:{hit.message.room_id}" for hit in answer.hits])
        return replace(found, answer=answer)
    except RoomloreError as error:
        return replace(found, problems=(str(error),))


async def _newest_within(
    page: Page, rooms: Sequence[Room], picked: Picked, since: datetime | None, until: datetime | None
) -> list[StoredMessage]:
    """Return the newest messages within the limits of a search without words, from the rooms used last."""
    lore, first, last = page.lore, since or BEGINNING, until - timedelta.resolution if until else END
    used = [room for room in rooms if picked.room in ("", room.room_id) and (room.last_sent_at or END) >= first]
    limit = _READ_BY_PERSON if picked.who else _MESSAGES
    entries: list[Entry] = []
    async with lore.storage.reading(lore.tenant) as work:
        for room in used[:_ROOMS]:
            entries += await work.messages.tail(room_id=room.room_id, limit=limit, since=first, until=last)
    messages = [entry.message for entry in entries if picked.who in ("", entry.message.sender_id)]
    return await with_people_named(lore, sorted(messages, key=attrgetter("at"), reverse=True)[:_MESSAGES])


async def _beside_messages(page: Page, query: str, among: list[str] | None) -> Found:
    """Return the rooms, people and memories that a search finds."""
    lore, memories = page.lore, await _memories(page, query)
    rooms = _exact_first(await rooms_named(page, query, limit=_LOOKED_AT), query, "room_id")
    async with lore.storage.reading(lore.tenant) as work:
        people = await work.rooms.speakers(part=query, room_ids=among, limit=_LOOKED_AT)
        people = _exact_first(people, query, "sender_id")
        subjects = [*(f"user:{one.sender_id}" for one in people), *(f"group:{room.room_id}" for room in rooms)]
        stored = [await work.memories.scope(scope=subject) for subject in subjects if page.is_admin]
    await name_scopes(page, [*subjects, *(memory.scope for memory in memories)])
    return Found(rooms, people, [scope for scope in stored if scope and scope.active], memories)


def _exact_first(them: Sequence[Any], query: str, own_id: str) -> list[Any]:
    """Return the first of them, those before all others whose whole name or id is the query."""
    wanted = query.casefold()
    return sorted(them, key=lambda one: wanted not in (one.name.casefold(), getattr(one, own_id).casefold()))[:_FOUND]


def _midnight(page: Page, name: str, day: str, *, days: int = 0) -> datetime | None:
    """Return the beginning of a day in the reader's zone, some days later; None for ''. Raise `InvalidInput`."""
    if not day:
        return None
    try:
        return datetime.combine(date.fromisoformat(day) + timedelta(days=days), time(), page.zone)
    except (ValueError, OverflowError):
        raise InvalidInput(page.tongue.say("search.no_day", field=page.tongue.say(f"search.{name}"))) from None


async def rooms_named(page: Page, part: str, *, limit: int = _FOUND, whole: bool = False) -> Sequence[Room]:
    """Return the rooms that the viewer sees whose id or name contains `part`. `whole`: is it."""
    if page.viewer is not None:
        by_use, wanted = await rooms_by_use(page, limit=_MAX_ROOMS), part.lower()
        return [room for room in by_use if wanted in room.room_id.lower() or wanted in room.name.lower()][:limit]
    async with page.lore.storage.reading(page.lore.tenant) as work:
        return await work.rooms.named_like(part=part, limit=limit, whole=whole)


async def _memories(page: Page, query: str) -> Sequence[Memory]:
    lore, viewer, words = page.lore, page.viewer, query.lower().split()[:_MAX_WORDS]
    if viewer is None:
        async with lore.storage.reading(lore.tenant) as work:
            known = await work.memories.saying(words=words, limit=_LOOKED_AT)
    else:
        known = [seen.memory for seen in await lore.memories.visible(viewer) if seen.shown]
    said = [memory for memory in known if all(_has_word(memory, word) for word in words)]
    return sorted(said, key=attrgetter("updated_at"), reverse=True)[:_MEMORIES]


def _has_word(memory: Memory, word: str) -> bool:
    """Return True if a memory has the whole word, in any form; what is no word for a search is taken as it is."""
    return bool(matches(memory.statement, word)) or not matches(word, word)


async def prepare(lore: Lore) -> None:
    """Make ready what the first visit would wait for: the pages, what reading a room loads, and the words by which the
    first page knows decisions."""
    await asyncio.to_thread(compile_pages)
    with suppress(RoomloreError):
        async with lore.storage.reading(lore.tenant) as work:
            newest = await work.rooms.used_last(limit=_BESIDE, offset=0)
            said = [await work.messages.tail(room_id=one.room_id, limit=1) for one in newest[:1]]
        for entries in said:
            for entry in entries:
                await lore.rooms.headings(entry.message.room_id, [entry.message.id], viewer=None)
        await lore.overview(since=lore.now() - timedelta(days=7), viewer=None)
