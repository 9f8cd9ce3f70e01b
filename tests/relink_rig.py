"""Stores whose links an earlier link model made, and what they must come to."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import roomlore
from roomlore import Entry, Message
from roomlore.adapters.weights import load_link_model
from roomlore.core.linking.calibration import Calibration
from roomlore.core.linking.model import LinkModel
from roomlore.core.models import Room
from roomlore.services.indexing import rebuild
from roomlore.wiring import resources
from tuned import tuned

ROOM = "r"
START = datetime(2026, 1, 5, 8, tzinfo=UTC)
TODAY = load_link_model(compiled=True)
EARLIER = replace(TODAY, out=np.ascontiguousarray(TODAY.out[::-1]), new_bias=TODAY.new_bias + 2)
"""A model with other opinions."""


@asynccontextmanager
async def opened(
    url: str, model: LinkModel = TODAY, *, piece: int = 3, background: bool = False
) -> AsyncIterator[roomlore.Lore]:
    """A store where this model links, and links anew in pieces of this size."""
    with tuned(index_lease_seconds=0.2), pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "load_link_model", lambda **_: model)
        patch.setattr(rebuild, "_PIECE", piece)
        async with roomlore.open(url, background=background) as lore:
            yield lore


def told(number: int, **more: object) -> Message:
    """One message of a busy room of five people, some of whose replies the platform tells."""
    texts = (
        "deploy to nginx fails?",
        "ann: 试试缓存",
        "thanks",
        "why v1.2 and not v1.3",
        "午饭吃什么",
        "@bob look at the log",
    )
    given = {
        "id": str(number),
        "room_id": ROOM,
        "sender_id": ("ann", "bob", "小李", "eve", "bot")[number * 7 % 5],
        "sender_name": f"Name {number % 3}" if number % 4 else "",
        "text": f"{texts[number * 5 % 6]} {number % 13}",
        "sent_at": START + timedelta(seconds=40 * number + number * number % 97),
        "reply_to": str(number - 1 - number % 5) if number % 3 == 0 and number > 5 else None,
    }
    return Message(**(given | more))


async def relinked(lore: roomlore.Lore) -> int:
    """Return the number of messages that were linked anew."""
    return max([step.done async for step in lore.index.relink()], default=0)


Stored = tuple[dict[str, Entry], Calibration]


async def stored(lore: roomlore.Lore, room_id: str = ROOM) -> Stored:
    """Return the messages that are left, by id, with arrivals as if no other message had been there, and the
    calibration."""
    async with lore.storage.reading(lore.tenant) as work:
        room = await work.rooms.find(room_id=room_id)
        entries = await work.messages.tail(room_id=room_id, limit=100_000)
        keywords = sorted({word for entry in entries for word in entry.features.keywords})
        counted = await work.messages.keyword_counts(room_id=room_id, keywords=keywords)
    assert isinstance(room, Room)
    assert counted == {word: sum(word in one.features.keywords for one in entries) for word in keywords}
    places = {entry.message.arrival: place for place, entry in enumerate(entries, start=1)}
    return {entry.message.id: _placed(entry, places) for entry in entries}, room.linked.calibration


def _placed(entry: Entry, places: dict[int, int]) -> Entry:
    link, thread_candidates = entry.link, entry.link.thread_candidates
    arrivals = [places[arrival] for arrival in thread_candidates.arrivals.tolist()]
    return replace(
        entry,
        message=replace(entry.message, arrival=places[entry.message.arrival]),
        link=replace(
            link,
            thread=places[link.thread],
            parent=link.parent and places[link.parent],
            thread_candidates=type(thread_candidates).of(arrivals, thread_candidates.probabilities),
        ),
    )


async def fresh(messages: Sequence[Message]) -> Stored:
    """Return the messages and the calibration that a new store has of these messages."""
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(messages)
        return await stored(lore)


async def exported(lore: roomlore.Lore) -> list[Message]:
    return [message async for message in lore.messages.export(ROOM)]
