"""Time the titles of the threads of a large room: made of their own sentences, and by a model in the background.

`python -m bench titles THREADS_DIR` fills a room with the messages of the labelled rooms, one after another and again
from the beginning. The model is a server on this machine that answers each request after `--model-seconds` with words
of the conversation. New messages are added in turn to the room with stored titles, and to a copy without.
"""

import argparse
import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import roomlore
from roomlore.core.models import Message
from roomlore.core.records import Bad
from roomlore.core.text import keywords
from roomlore.services.digest import titles
from roomlore.settings import Settings
from roomlore_importers import open_import
from roomlore_testkit.model_server import Asked, ModelServer, Says

_SUFFIX = ".messages.jsonl"
_SETS = ("irc_dev", "gitter", "slack_annot", "team_en", "team_zh")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_ROOM, _PAGE, _BATCH = "large", 500, 2_000
_CONVERSATION = re.compile(r"^(t\d+)$", re.MULTILINE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("threads_dir", type=Path, help="a folder of sets, each with rooms")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--model-seconds", type=float, default=1.0, help="time of the model for each request")
    parser.add_argument("--new", type=int, default=300, help="messages that are added one by one")


async def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain, titled = (Path(folder) / name for name in ("plain.db", "titled.db"))
        async with roomlore.open(f"sqlite:///{plain}", background=False) as lore:
            messages = list(islice(_messages_of(arguments.threads_dir), arguments.messages + arguments.new))
            began = time.perf_counter()
            for at in range(0, arguments.messages, _BATCH):
                await lore.messages.add(messages[at : min(at + _BATCH, arguments.messages)])
            print(f"{arguments.messages:,} messages stored in {time.perf_counter() - began:.0f} s", flush=True)
            await _extractive(lore)
        shutil.copy(plain, titled)
        await _written(titled, arguments.model_seconds)
        await _added(plain, titled, messages[arguments.messages :])


def _messages_of(folder: Path) -> Iterator[Message]:
    """Yield messages without end."""
    paths = [path for name in _SETS for path in sorted((folder / name).glob("*" + _SUFFIX))]
    for number, message in enumerate(one for path in cycle(paths) for one in _read(path)):
        at = _BEGIN + timedelta(seconds=20 * number)
        yield replace(message, id=f"n{number}", room_id=_ROOM, sent_at=at, reply_to=None, root_id=None)


def _read(path: Path) -> Iterator[Message]:
    with open_import(path, "jsonl") as export:
        yield from (item.message for item in export if not isinstance(item, Bad))


async def _extractive(lore: Any) -> None:
    began, used = time.perf_counter(), time.process_time()
    after, titles = 0, 0
    while page := await lore.rooms.threads(_ROOM, after=after, limit=_PAGE):
        after = page[-1][0]
        titles += sum(bool(thread.title) for _, thread in page)
    seconds = time.perf_counter() - began
    print(f"{titles:,} titles without a model: {seconds:.1f} s, of a processor {time.process_time() - used:.1f} s")


async def _written(path: Path, seconds: float) -> None:
    async with ModelServer(lambda request: Says(text=_answer(request), after=seconds)) as server:
        settings = Settings(
            providers={"p": {"base_url": server.url}},
            models={"chat": {"providers": [{"name": "p", "model_id": "m"}]}},
            digest_model="chat",
            extract_every=0,
        )
        titles.NEWEST_DAYS = 36_500
        async with roomlore.open(f"sqlite:///{path}", settings=settings, background=False) as lore:
            began, used = time.perf_counter(), time.process_time()
            await lore.jobs.catch_up(seconds=3_600)
            taken, processor = time.perf_counter() - began, time.process_time() - used
            async with lore.storage.reading("default") as work:
                due = await work.titles.grown(room_id=_ROOM, after=0, through=10**9)
                found = await work.titles.find(room_id=_ROOM, threads=[one.thread for one in due if one.titled])
    print(
        f"{len(found):,} titles by a model that takes {seconds:g} s: {taken:.1f} s, of a processor {processor:.1f} s "
        f"with the model's, {len(server.requests)} requests"
    )


def _answer(request: Asked) -> str:
    """Return the three longest words of the longest message of each conversation as its title."""
    parts = _CONVERSATION.split(request.prompt.partition("<conversations>\n")[2])
    lines = []
    for handle, text in zip(parts[1::2], parts[2::2], strict=True):
        longest = max((line.partition(": ")[2] for line in text.splitlines()), key=len, default="")
        words = sorted((word for word in keywords(longest) if word.isalpha()), key=len)[-3:]
        lines.append(json.dumps({"talk": handle, "title": " ".join(words)}, ensure_ascii=False))
    return "\n".join(lines)


async def _added(plain: Path, titled: Path, messages: list[Message]) -> None:
    """Add messages one by one to both rooms in turn."""
    taken: dict[Path, list[float]] = {plain: [], titled: []}
    async with (
        roomlore.open(f"sqlite:///{plain}", background=False) as first,
        roomlore.open(f"sqlite:///{titled}", background=False) as second,
    ):
        rooms = [(plain, first), (titled, second)]
        for number, message in enumerate(messages):
            for path, lore in rooms if number % 2 else reversed(rooms):
                used = time.process_time()
                await lore.messages.add([message])
                taken[path].append(time.process_time() - used)
    before, after = median(taken[plain]) * 1e3, median(taken[titled]) * 1e3
    print(f"a new message: {before:.2f} ms of a processor without stored titles, {after:.2f} ms with them")
