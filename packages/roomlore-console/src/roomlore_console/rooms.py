"""The pages of rooms, threads, messages and digests, and the messages that arrive while a room is open."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from starlette.responses import Response

from roomlore.core.dates import moment
from roomlore.core.errors import InvalidInput, NotFound, RoomloreError
from roomlore.core.models import Entry, Heading, Room, StoredMessage, TalkState
from roomlore.surfaces.people_named import with_people_named
from roomlore.wiring import Lore
from roomlore_console.frame import LONGEST, Page, visible, width_of
from roomlore_console.live import Live, stream
from roomlore_console.threads import Row, Strand, lanes, strands

_USUAL_MESSAGES = 60
MAX_MESSAGES = 10_000
_MESSAGE_LIMITS = (_USUAL_MESSAGES, 500, MAX_MESSAGES)
_MESSAGES_AT_ONCE = 500
_THREAD_MESSAGES = 200
_THREADS = 30
_MAX_NEW_MESSAGES = 60
_MAX_QUOTED = 1_000
_QUOTED_AT_ONCE = 130
_PAUSE = timedelta(minutes=10)
_ARRIVAL_DIGITS = 19
_PART_MESSAGES = 50
_MIN_TEXT_CHARS = 200
_PAGE_TEXT_CHARS = 500_000
_PAGE_CHARS = 40_000_000
_CHARS_AROUND_MESSAGE = 3_000
_MAX_ESCAPE_CHARS = 9
"""Characters: of texts on a page, of a page, in addition for each message, and the most for a character that cannot be
shown."""
_KEPT_METADATA = ("caption", "media_type", "type", "mime_type", "photo", "file", "attachments")
"""What is kept of a message without words: what it holds."""
_DIGEST_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class Quote:
    """The message that another one most likely answers. `here`: it is on the page."""

    message: StoredMessage
    here: bool


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message and its place on a page. `quote`: what it answers, unless that stands just above. `begins`: its speaker
    or the day is another than before, or time passed. `day`: if it is the first one of it. `opens`: it is the first one
    of its thread on the page."""

    entry: Entry
    row: Row
    quote: Quote | None
    begins: bool
    day: date | None
    opens: bool


@dataclass(frozen=True, slots=True)
class ShownConversation:
    """The messages of a page, and their threads."""

    said: Sequence[ShownMessage]
    threads: Sequence[Strand]

    @property
    def first(self) -> int:
        return self.said[0].entry.message.arrival if self.said else 0

    @property
    def last(self) -> int:
        return self.said[-1].entry.message.arrival if self.said else 0


async def room(page: Page) -> Response:
    """Return the page of the newest messages, of those before an arrival, or of those around one, in order of arrival;
    60, or `limit`."""
    lore, room_id, before, around = page.lore, await page.room(), page.number("before"), page.number("around")
    limit = page.number("limit", most=MAX_MESSAGES) or _USUAL_MESSAGES
    known = await lore.rooms.get(room_id)
    if before is None and around is not None and around + limit // 2 < known.next_arrival:
        before = around + limit // 2
    longest = _max_text_chars(limit)
    entries, is_session = await _read_messages(lore, room_id, limit, before, longest)
    shown = await _shown_conversation(page, room_id, _fitting_entries(entries, longest))
    later = shown.last + limit + 1
    return page.show(
        "room.html",
        streamed=True,
        room=known,
        room_id=room_id,
        is_session=is_session,
        said=shown.said,
        threads=page.later(_titled_threads(page, room_id, shown.threads[:_THREADS])),
        part=_PART_MESSAGES,
        alone=None,
        lanes=len(shown.said[0].row.cells) if shown.said else 0,
        longest=longest,
        limit=None if limit == _USUAL_MESSAGES else limit,
        limits=_MESSAGE_LIMITS,
        at=limit,
        cut=len(shown.said) < len(entries) or longest < LONGEST,
        older=shown.first if shown.first > 1 else None,
        newer=later if before is not None and later < known.next_arrival else None,
        newest=before is None or shown.last + 1 >= known.next_arrival,
        last=shown.last,
        before=before,
    )


async def ask_delete(page: Page) -> Response:
    """Return a page that says what deleting a room removes and what stays, with a form that does it; or, once it is
    `done`, that it goes."""
    lore, room_id = page.need("admin"), page.needed("id")
    would = None if page.asked("done") else await lore.rooms.delete(room_id, dry_run=True)
    wrong = page.request.method == "POST"
    return page.show("room_delete.html", 422 if wrong else 200, room_id=room_id, report=would, wrong=wrong)


async def delete(page: Page) -> Response:
    """Delete a room, only if its id was typed again: it cannot be undone."""
    lore, room_id = page.need("admin"), page.needed("id")
    if page.form.get("typed", "") != room_id:
        return await ask_delete(page)
    await lore.rooms.begin_deletion(room_id)
    return page.go("/room/delete", id=room_id, done="1")


async def _read_messages(
    lore: Lore, room_id: str, limit: int, before: int | None, longest: int
) -> tuple[list[Entry], bool]:
    """Return messages, read in parts so that other requests are served, with each text cut to what is shown: a room may
    be larger than memory."""
    parts: list[list[Entry]] = []
    missing, at_once = limit, _USUAL_MESSAGES
    async with lore.storage.reading(lore.tenant) as work:
        while missing:
            count = min(missing, at_once)
            part = await work.messages.tail(room_id=room_id, limit=count, before=before)
            parts.append([_shortened_entry(entry, longest) for entry in part])
            at_once = (
                _MESSAGES_AT_ONCE
                if sum(len(entry.message.text) for entry in part) < _PAGE_TEXT_CHARS
                else _USUAL_MESSAGES
            )
            if len(part) < count:
                break
            missing, before = missing - count, part[0].message.arrival
        session = await work.sessions.find(conversation_id=room_id)
    return [entry for part in reversed(parts) for entry in part], bool(session and session.version)


def _shortened_entry(entry: Entry, longest: int) -> Entry:
    """Return the entry cut to one character more than is shown, which tells that there is more."""
    message = entry.message
    if len(message.text) <= longest and not message.metadata:
        return entry
    metadata = (
        {}
        if message.text.strip()
        else {key: _shortened_value(value) for key, value in message.metadata.items() if key in _KEPT_METADATA}
    )
    return replace(entry, message=replace(message, text=message.text[: longest + 1], metadata=metadata))


def _shortened_value(value: object) -> object:
    return value[:_MIN_TEXT_CHARS] if isinstance(value, str) else value[:1] if isinstance(value, list) else None


def _max_text_chars(limit: int) -> int:
    """Return how many characters of each text are shown: the more messages, the fewer."""
    return max(_MIN_TEXT_CHARS, min(LONGEST, _PAGE_TEXT_CHARS // limit))


def _fitting_entries(entries: Sequence[Entry], longest: int) -> Sequence[Entry]:
    """Return the newest messages that fit on a page, whatever their texts and ids hold; at least one."""
    left = _PAGE_CHARS
    for place in range(len(entries) - 1, -1, -1):
        message = entries[place].message
        left -= _CHARS_AROUND_MESSAGE + _MAX_ESCAPE_CHARS * (
            min(len(message.text), longest) + 3 * len(message.room_id + message.id + message.sender_id)
        )
        if left < 0:
            return entries[min(place + 1, len(entries) - 1) :]
    return entries


async def live(page: Page) -> Response:
    """Return the stream of what is new in the room after an arrival: pieces of a page, each with at most 60 messages.
    The key and what the viewer may see are looked at again before each."""
    lore, room_id = page.lore, await page.room()
    await lore.rooms.get(room_id)
    known: Live = page.request.app.state.live

    async def may_see() -> bool:
        try:
            await page.check_key()
            await lore.rooms.check_shown(room_id, page.viewer)
        except RoomloreError:
            return False
        return True

    news = known.news(
        lore,
        room_id,
        after=_last_arrival_on_page(page),
        look=(page.tongue.language, page.zone.key),
        write=partial(_new_messages, page, lore),
        may_see=may_see,
    )
    return stream(news)


def _last_arrival_on_page(page: Page) -> int:
    """Return the arrival that the page shows last: when a browser asks again by itself, its header says it."""
    last_seen = page.request.headers.get("last-event-id", "")
    again = int(last_seen) if last_seen.isascii() and last_seen.isdecimal() and len(last_seen) < _ARRIVAL_DIGITS else 0
    return max(again, page.number("after") or 0)


async def _new_messages(page: Page, lore: Lore, known: Room, after: int) -> str:
    room_id = known.room_id
    count = max(0, min(_MAX_NEW_MESSAGES, known.next_arrival - 1 - after))
    async with lore.storage.reading(lore.tenant) as work:
        # Up to what was known: of those that came meanwhile the next piece tells, and none pushes another one out.
        found = await work.messages.tail(room_id=room_id, limit=count + 1, before=known.next_arrival)
    entries = [_shortened_entry(entry, LONGEST) for entry in found]
    shown = await _shown_conversation(page, room_id, entries)
    new = [message for message in shown.said if message.entry.message.arrival > after][-_MAX_NEW_MESSAGES:]
    missed = new[0].entry.message.arrival - after - 1 if len(new) == _MAX_NEW_MESSAGES else 0
    return page.written(
        "since.html", room_id=room_id, said=new, longest=LONGEST, missed=missed, messages=known.messages
    )


async def threads(page: Page) -> Response:
    """Return the list of the threads of a room's newest messages as a piece, to renew it beside an open room."""
    lore, room_id = page.lore, await page.room()
    await lore.rooms.get(room_id)
    newest, _ = await _read_messages(lore, room_id, _USUAL_MESSAGES, None, LONGEST)
    strands_shown = await _titled_threads(page, room_id, strands(await _named(page, newest))[:_THREADS])
    return page.show("threads.html", room_id=room_id, threads=lambda: strands_shown, alone=None)


async def thread(page: Page) -> Response:
    """Return the page of one thread alone, beside the threads of the newest messages of its room."""
    lore, room_id, message_id = page.lore, await page.room(), page.needed("message")
    entries = [
        _shortened_entry(entry, LONGEST)
        for entry in await lore.rooms.thread(room_id, message_id, limit=_THREAD_MESSAGES)
    ]
    known = await lore.rooms.get(room_id)
    newest, is_session = await _read_messages(lore, room_id, _USUAL_MESSAGES, None, LONGEST)
    shown, others = await _shown_conversation(page, room_id, entries), await _shown_conversation(page, room_id, newest)
    return page.show(
        "room.html",
        streamed=True,
        room=known,
        room_id=room_id,
        is_session=is_session,
        said=shown.said,
        threads=page.later(_titled_threads(page, room_id, others.threads[:_THREADS])),
        part=_PART_MESSAGES,
        alone=(await _titled_threads(page, room_id, shown.threads[:1]))[0],
        lanes=1,
        longest=LONGEST,
        cut=False,
        older=None,
        newer=None,
        newest=False,
        last=shown.last,
        limit=None,
        most=_THREAD_MESSAGES,
    )


async def _shown_conversation(page: Page, room_id: str, entries: Sequence[Entry]) -> ShownConversation:
    lore = page.lore
    entries = await _named(page, entries)
    here = {entry.message.arrival: entry.message for entry in entries}
    answered = {_answered_arrival(entry) for entry in entries}
    wanted = sorted(arrival for arrival in answered if arrival is not None and arrival not in here)
    beyond = {message.arrival: message for message in await _quoted_messages(lore, room_id, wanted[-_MAX_QUOTED:])}
    rows = await asyncio.to_thread(shown_messages, entries, beyond, page.zone)
    return ShownConversation(rows, strands(entries))


async def _named(page: Page, entries: Sequence[Entry]) -> list[Entry]:
    named = await with_people_named(page.lore, [entry.message for entry in entries])
    return [replace(entry, message=message) for entry, message in zip(entries, named, strict=True)]


async def _titled_threads(page: Page, room_id: str, threads: Sequence[Strand]) -> list[Strand]:
    """Return the threads with their titles and states; without them if they cannot be read."""
    made: Mapping[str, Heading] = {}
    with suppress(RoomloreError):
        made = await page.lore.rooms.headings(room_id, [strand.message_id for strand in threads], viewer=page.viewer)
    named = ((strand, made.get(strand.message_id)) for strand in threads)
    return [
        replace(strand, title=its.title, open=its.state is TalkState.OPEN) if its else strand for strand, its in named
    ]


async def _quoted_messages(lore: Lore, room_id: str, arrivals: Sequence[int]) -> list[StoredMessage]:
    """Return messages that are quoted, read in parts, with each text cut to what is shown of it."""
    found: list[StoredMessage] = []
    async with lore.storage.reading(lore.tenant) as work:
        for start in range(0, max(1, len(arrivals)), _QUOTED_AT_ONCE):
            part = arrivals[start : start + _QUOTED_AT_ONCE]
            read = await work.messages.messages_by_arrival(room_id=room_id, arrivals=part)
            found += [replace(message, text=message.text[:_MIN_TEXT_CHARS], metadata={}) for message in read]
    return await with_people_named(lore, found)


def shown_messages(entries: Sequence[Entry], beyond: Mapping[int, StoredMessage], zone: ZoneInfo) -> list[ShownMessage]:
    """Return messages as they are shown. `beyond`: messages that they answer and that are not among them."""
    here = {entry.message.arrival: entry.message for entry in entries}
    rows = lanes([(entry.link.thread, width_of(entry.link)) for entry in entries])
    shown_rows: list[ShownMessage] = []
    opened: set[int] = set()
    before: StoredMessage | None = None
    for entry, row in zip(entries, rows, strict=True):
        message, thread = entry.message, entry.link.thread
        day, new_day = message.at.astimezone(zone).date(), before is None
        if before is not None:
            new_day = before.at.astimezone(zone).date() != day
        begins = before is None or new_day or before.sender_id != message.sender_id or message.at - before.at > _PAUSE
        quote = _quote(entry, before, here, beyond)
        shown_rows.append(ShownMessage(entry, row, quote, begins, day if new_day else None, thread not in opened))
        opened.add(thread)
        before = message
    return shown_rows


def _quote(
    entry: Entry, before: StoredMessage | None, here: Mapping[int, StoredMessage], beyond: Mapping[int, StoredMessage]
) -> Quote | None:
    parent = _answered_arrival(entry)
    if parent is None or (before is not None and before.arrival == parent):
        return None
    message = here.get(parent) or beyond.get(parent)
    return None if message is None else Quote(message, parent in here)


def _answered_arrival(entry: Entry) -> int | None:
    return None if entry.link.kind == "new" else entry.link.parent


async def digest(page: Page) -> Response:
    """Return the page of a room's last day, of what was said since a time, or since a person last wrote or read."""
    room_id = page.needed("id")
    reader, since = page.asked("for").strip() or None, page.asked("since").strip()
    by_model = page.asked("model") == "1"
    people = await _people(page, room_id)
    given: dict[str, Any] = {
        "room_id": room_id,
        "reader": reader or "",
        "since": since,
        "by_model": by_model,
        "people": people,
        "has_model": await page.lore.models.has_provider(page.lore.settings.digests.digest_model),
    }
    try:
        called, now = page.tongue.say("digest.since"), page.lore.now()
        begin = moment(called, since, now=now, zone=page.zone, edge="start") if since else None
        made = await page.lore.digest(
            room_id,
            since=begin,
            for_user=reader,
            max_tokens=_DIGEST_TOKENS,
            viewer=page.viewer,
            mode="auto" if by_model else "offline",
        )
    except (InvalidInput, NotFound) as error:
        unknown = isinstance(error, NotFound)
        if unknown and not reader:
            raise
        return page.show("digest.html", 404 if unknown else 422, problem=str(error), digest=None, **given)
    name = people.get(made.for_user or "") or reader
    return page.show("digest.html", problem="", digest=made, name=name, **given)


async def _people(page: Page, room_id: str) -> Mapping[str, str]:
    """Return the names of those who spoke in a room by their ids; none if the viewer may not see all of it."""
    lore = page.lore
    with suppress(NotFound):
        await lore.rooms.check_shown(room_id, page.viewer)
        async with lore.storage.reading(lore.tenant) as work:
            people = await work.rooms.participants(room_id=room_id)
            return {
                person: name or person for person, name in people.items() if visible(person + name) == person + name
            }
    return {}
