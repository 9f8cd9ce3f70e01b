"""The page of what happened in a room: by the reader, by a time, by open questions and decisions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from starlette.responses import Response

from roomlore.core.dates import moment
from roomlore.core.digest.digest import DigestEntry, Why
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.surfaces.console.frame import Page
from roomlore.surfaces.console.shell import texts_with_names
from roomlore.wiring import Lore

_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class Group:
    """The entries that are shown for one reason."""

    why: Why
    entries: Sequence[DigestEntry]


async def digest(page: Page) -> Response:
    """Return the page of a room's last day, of what was said since a time, or since a person last wrote or read."""
    room_id = page.needed("id")
    reader, since = page.asked("for").strip() or None, page.asked("since").strip()
    by_model = page.asked("model") == "1"
    asked: dict[str, Any] = {"room_id": room_id, "reader": reader or "", "since": since, "by_model": by_model}
    try:
        begin = moment("since", since, now=page.lore.now(), zone=page.zone, edge="start") if since else None
        made = await page.lore.digest(
            room_id,
            since=begin,
            for_user=reader,
            max_tokens=_TOKENS,
            viewer=page.viewer,
            mode="auto" if by_model else "offline",
        )
    except (InvalidInput, NotFound) as error:
        unknown = isinstance(error, NotFound)
        if unknown and not reader:
            raise
        return page.show("digest.html", 404 if unknown else 422, problem=str(error), digest=None, groups=[], **asked)
    entries = await _with_people_named(page.lore, room_id, made.entries)
    groups = [Group(why, tuple(its)) for why, its in groupby(entries, key=lambda entry: entry.why)]
    return page.show("digest.html", problem="", digest=made, groups=groups, **asked)


async def _with_people_named(lore: Lore, room_id: str, entries: Sequence[DigestEntry]) -> list[DigestEntry]:
    """Return the entries with names in place of the ids of people whom titles and lines mention."""
    titles, said = [one.title for one in entries], [line.text for one in entries for line in one.lines]
    named = await texts_with_names(lore, room_id, [*titles, *said])
    return [
        replace(one, title=named[one.title], lines=tuple(replace(line, text=named[line.text]) for line in one.lines))
        for one in entries
    ]
