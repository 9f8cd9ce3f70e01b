"""Times a context against the plain newest-rows query, a large store against a small one, and ingest.

All figures of one run come from the same machine, port and process, with the kinds of call taken in turn, so the ratios
hold where absolute times do not. The stores are filled through the storage with a room that was really ingested
once and is then repeated under other names.
"""

import argparse
import random
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import roomlore
from bench.chatter import chat
from bench.took import timed
from roomlore.core import DEFAULT_TENANT
from roomlore.core.linking.calibration import Linked
from roomlore.core.models import Entry
from roomlore.storage import connect

ROOM = 1_000
BATCH = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=10_000, help="messages of the small store")
    parser.add_argument("--large", type=int, default=1_000_000, help="messages of the large store")
    parser.add_argument("--ingest", type=int, default=5_000, help="messages added to each store to time ingest")
    parser.add_argument("--reads", type=int, default=1_000, help="contexts built on each store")


@dataclass(slots=True)
class Subject:
    """One store and what was timed on it, in seconds (processor seconds a message for `ingest`)."""

    lore: roomlore.Lore
    messages: int
    plain: list[float] = field(default_factory=list)
    built: list[float] = field(default_factory=list)
    ingest: list[float] = field(default_factory=list)


async def run(arguments: argparse.Namespace) -> None:
    settings = quiet()
    entries, linked = await ingested(ROOM)
    with tempfile.TemporaryDirectory() as folder:
        urls = []
        for size in (arguments.messages, arguments.large):
            urls.append(f"sqlite:///{Path(folder) / f'{size}.db'}")
            started = time.perf_counter()
            await fill(urls[-1], entries, size, linked)
            print(f"filled a store with {size:,} messages in {time.perf_counter() - started:.0f} s", flush=True)
        async with (
            roomlore.open(urls[0], settings=settings) as small,
            roomlore.open(urls[1], settings=settings) as large,
        ):
            subjects = [Subject(small, arguments.messages), Subject(large, arguments.large)]
            await time_reads(subjects, arguments.reads)
            await time_ingest(subjects, arguments.ingest)
    report(*subjects)


def quiet() -> roomlore.Settings:
    return roomlore.Settings(enable_async_data_collection=False, fallback_on_error=False)


async def ingested(count: int) -> tuple[list[Entry], Linked]:
    """A room's entries and the model that linked them: in a store that does not tell it they would be linked anew, and
    the processor time of that would count as ingest."""
    async with roomlore.open("sqlite://", settings=quiet()) as lore:
        await lore.messages.add(list(chat("seed", count)))
        entries = [await lore.messages.get("seed", str(number)) for number in range(count)]
        return entries, (await lore.rooms.get("seed")).linked


async def fill(url: str, entries: list[Entry], size: int, linked: Linked) -> None:
    storage = await connect(url)
    try:
        for number in range(size // len(entries)):
            room_id = f"room-{number}"
            copies = [replace(entry, message=replace(entry.message, room_id=room_id)) for entry in entries]
            async with storage.writing(DEFAULT_TENANT) as work:
                await work.rooms.lock(room_id=room_id, now=copies[0].message.at)
                await work.messages.append(room_id=room_id, entries=copies, linked=linked)
    finally:
        await storage.close()


async def last_rows(lore: roomlore.Lore, room_id: str, before: int) -> object:
    async with lore.storage.reading(DEFAULT_TENANT) as work:
        return await work.messages.recent(room_id=room_id, limit=20, before=before)


async def time_reads(subjects: list[Subject], reads: int) -> None:
    rng = random.Random(11)
    for turn in range(reads):
        for subject in subjects:
            room, number = f"room-{rng.randrange(subject.messages // ROOM)}", rng.randrange(100, ROOM)
            plain, build = last_rows(subject.lore, room, number + 1), subject.lore.context.build(room, str(number))
            if turn % 2:
                subject.plain.append(await timed(plain))
                subject.built.append(await timed(build))
            else:
                subject.built.append(await timed(build))
                subject.plain.append(await timed(plain))


async def time_ingest(subjects: list[Subject], messages: int) -> None:
    """In batches of 500, one new room for each 1,000 messages, by processor time: one core's worth."""
    for start in range(0, messages, ROOM):
        batch = list(chat(f"new-{start}", ROOM, seed=start))
        for subject in subjects:
            for first in range(0, ROOM, BATCH):
                used = time.process_time()
                await subject.lore.messages.add(batch[first : first + BATCH])
                subject.ingest.append((time.process_time() - used) / BATCH)


def report(small: Subject, large: Subject) -> None:
    for subject in (small, large):
        plain, built = median(subject.plain), median(subject.built)
        print(
            f"{subject.messages:>9,} messages: last 20 rows {plain * 1e3:.2f} ms, context {built * 1e3:.2f} ms, ratio "
            f"{built / plain:.2f}; ingest {median(subject.ingest) * 1e6:.0f} us of one core a message, "
            f"{1 / median(subject.ingest):,.0f} messages/s"
        )
    print(f"context, large store against small: {median(large.built) / median(small.built):.2f}")
    print(f"ingest a message, large store against small: {median(large.ingest) / median(small.ingest):.2f}")
