"""Read from storage what the headings of threads are made of, and have core make them. All services share this."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

from roomlore.core.digest.talks import Talk, WordRarity, title_of
from roomlore.core.mentions import with_names
from roomlore.core.models import Entry, Heading, Room
from roomlore.storage import UnitOfWork

NEWEST = 16
"""The messages of a thread that its heading is made of."""


async def headings_of(work: UnitOfWork, room: Room, threads: Sequence[int]) -> dict[int, Heading]:
    """Return the headings of these threads (the arrivals of their first messages), without unknown threads. A title
    is the one that a model wrote, if there is one."""
    written = await work.titles.find(room_id=room.room_id, threads=threads)
    entries = await work.messages.members_of(room_id=room.room_id, threads=threads, each=NEWEST)
    keywords = sorted({word for entry in entries for word in entry.features.keywords})
    counts = await work.messages.keyword_counts(room_id=room.room_id, keywords=keywords)
    people = await work.rooms.participants(room_id=room.room_id) if entries else {}
    words = WordRarity(counts, texts=room.messages, people=people)
    return await asyncio.to_thread(_headings, entries, words, written)


def _headings(entries: Sequence[Entry], words: WordRarity, written: Mapping[int, str]) -> dict[int, Heading]:
    members: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        members[entry.link.thread].append(entry)
    talks = {thread: Talk(thread, tuple(its)) for thread, its in members.items()}
    return {
        thread: Heading(
            title=with_names(written.get(thread, ""), words.people, ()) or title_of(talk, words), state=talk.state
        )
        for thread, talk in talks.items()
    }
