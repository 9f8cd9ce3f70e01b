"""Moves a large store from SQLite to PostgreSQL and back: how fast, and whether it answers the same afterwards.

The store is moved once each way without a kill, for the speed. Then it is moved with kills: each time the process that
moves it is killed after another time, and the source is changed. At the end all answers of source and target are
compared: ids in their order, and scores within 1e-6.
"""

import argparse
import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import roomlore
from bench import databases
from bench.copied_store import build
from bench.made_up import MadeUpEmbedder
from bench.moved_answers import Answers, asked, unlike
from bench.progress import Progress
from roomlore import Message
from roomlore.core.memory.writing import NewMemory
from roomlore.wiring.moving import move

_SETTINGS = roomlore.Settings(enable_async_data_collection=False, vectors="sql")
"""Both sides compare vectors exactly: pgvector has similarities to seven digits."""
_QUESTIONS = (
    "when is the release",
    "who broke the build",
    "lunch",
    "数据库 迁移",
    "what was decided of the budget",
)
_GROUPS = 20
_FAR = 300
"""Contexts are asked of messages that follow so many of their room."""
_MOVER = """
import sys
from bench.move import SETTINGS_OF
from roomlore.wiring.moving import move

source, target = sys.argv[1:]
report = move(SETTINGS_OF(source), SETTINGS_OF(target), told=lambda *_: None, noticed=print)
print(report.sound, report.caught_up, flush=True)
"""


def SETTINGS_OF(url: str) -> roomlore.Settings:  # noqa: N802 - of the program above
    return _SETTINGS.changed(database_url=url)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--memories", type=int, default=5_000)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--dimensions", type=int, default=64, help="of the vectors")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--asked", type=int, default=300, help="questions of each kind")


async def run(arguments: argparse.Namespace) -> None:
    embedder, wrong = MadeUpEmbedder(arguments.dimensions), 0
    with ExitStack() as stack:
        server = databases.PostgresProcess()
        stack.callback(server.close)
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="roomlore-bench-")))
        first = databases.named(folder, None, "first")
        await _fill(first, arguments, embedder)
        before = await _answers(first, arguments, embedder)
        there, back = databases.named(folder, server.url, "there"), databases.named(folder, None, "back")
        for source, target in ((first, there), (there, back)):
            await asyncio.to_thread(_timed, source, target, arguments.messages)
            wrong += _told(before, await _answers(target, arguments, embedder))
        killed = databases.named(folder, server.url, "killed"), databases.named(folder, None, "killed")
        for source, target in ((first, killed[0]), (killed[0], killed[1])):
            await _with_kills(source, target, arguments.kills // 2, embedder)
            ours, theirs = [await _answers(url, arguments, embedder) for url in (source, target)]
            wrong += _told(ours, theirs)
    if wrong:
        sys.exit(f"{wrong} answers differ.")


async def _fill(url: str, arguments: argparse.Namespace, embedder: MadeUpEmbedder) -> None:
    await build(url, arguments.messages, big=arguments.messages // 10)
    async with _opened(url, embedder) as lore:
        each = arguments.memories // _GROUPS
        for group in range(_GROUPS):
            made = [
                NewMemory(scope=f"group:room-{group}", statement=f"{group} decided {number} of 数据库 {number * 7}")
                for number in range(each)
            ]
            held = await lore.memories.add_all(made)
            for remembered in held[:: max(1, each // 50)]:
                memory = remembered.memory
                await lore.memories.update(memory.memory_id, statement=f"{memory.statement}, again", reason="changed")
        for number in range(arguments.sessions):
            name = f"chat-{number}"
            for turn in range(3):
                await lore.sessions.write_turn(name, "ann", "guide", f"Question {turn}", "Answer", turn_id=f"t{turn}")
            await lore.sessions.checkpoint(name, "They asked questions", covers_through="t1-answer")
        progress, done = Progress("vectors", arguments.messages + arguments.memories), 0
        async for step in lore.index.rebuild(part="vectors"):
            done = step.done
            progress.at(done)
        progress.end(done)


def _opened(url: str, embedder: MadeUpEmbedder):  # type: ignore[no-untyped-def]  # noqa: ANN202
    return roomlore.open(url, settings=_SETTINGS, embedder=embedder, background=False)


async def _answers(url: str, arguments: argparse.Namespace, embedder: MadeUpEmbedder) -> Answers:
    async with _opened(url, embedder) as lore:
        rooms = [room.room_id for room in await lore.rooms.page(after="room-", limit=60)]
        ends = {room: [one.id for one in await lore.messages.page(room, after=_FAR, limit=20)] for room in rooms}
        pairs = [(room, ends[room][-1 - turn]) for turn in range(8) for room in rooms if len(ends[room]) > turn]
        scopes = [f"group:room-{group}" for group in range(_GROUPS)]
        questions = [f"{question} {number}" for number in range(99) for question in _QUESTIONS]
        made_at = (await lore.memories.page("group:room-0", limit=1))[0].created_at
        times = [made_at + timedelta(minutes=minutes) for minutes in range(-7, 8)]
        most = arguments.asked
        return await asked(
            lore,
            contexts=pairs[:most],
            searches=list(zip(itertools.cycle(rooms), questions, strict=False))[:most],
            recalls=list(zip(itertools.cycle(scopes), questions, strict=False))[:most],
            past=list(itertools.product(scopes, times))[:most],
        )


def _timed(source: str, target: str, messages: int) -> None:
    begun, at = time.perf_counter(), dict[str, float]()

    def told(what: str, done: int, total: int) -> None:
        at.setdefault(what, time.perf_counter())

    report = move(SETTINGS_OF(source), SETTINGS_OF(target), told=told, noticed=print)
    copied, opened, ended = at["comparing"] - begun, at["verifying"] - begun, report.seconds
    kinds = " to ".join(url.partition(":")[0] for url in (source, target))
    rows = sum(here for _, here in report.rows.values())
    print(f"{kinds}: {messages:,} messages, {rows:,} rows; sound: {report.sound}")
    print(f"  copied in {copied:.1f} s, {messages / copied:,.0f} messages a second")
    print(f"  compared and open in {opened:.1f} s, {messages / opened:,.0f} messages a second")
    print(f"  with verify on both sides in {ended:.1f} s, {messages / ended:,.0f} messages a second", flush=True)


def _told(before: Answers, after: Answers) -> int:
    wrong = unlike(before, after)
    kinds: Mapping[str, int] = {kind: sum(name.startswith(kind) for name in before) for kind in _KINDS}
    same = len(before) - len(wrong)
    print(f"  the same answers: {same} of {len(before)} {json.dumps(kinds)}", *wrong[:5], flush=True)
    return len(wrong)


_KINDS = ("context", "search", "recall", "memories", "as of", "blame")


async def _with_kills(source: str, target: str, kills: int, embedder: MadeUpEmbedder) -> None:
    """Move a store with so many kills, after each of which the source is changed."""
    for number in range(kills):
        mover = subprocess.Popen([sys.executable, "-c", _MOVER, source, target])  # noqa: ASYNC220
        await asyncio.sleep(1.5 + number * 1.7)
        os.kill(mover.pid, signal.SIGKILL)
        mover.wait()
        async with _opened(source, embedder) as lore:
            await _change(lore, number)
    done = subprocess.run([sys.executable, "-c", _MOVER, source, target], capture_output=True, text=True, check=True)  # noqa: ASYNC221
    sound, rows = done.stdout.split()
    print(f"after {kills} kills: sound {sound}, {rows} rows caught up", flush=True)


async def _change(lore: roomlore.Lore, number: int) -> None:
    room = f"room-{1 + number}"
    last = (await lore.messages.page(room, after=_FAR, limit=1))[0]
    new = Message(id=f"new-{number}-{os.getpid()}-{time.time_ns()}", room_id=room, sender_id="eve", text="After a kill")
    await lore.messages.add(new)
    await lore.messages.edit(room, last.id, text=f"Edited after kill {number}")
    memories = await lore.memories.page(f"group:{room}", limit=2)
    await lore.memories.update(memories[0].memory_id, statement=f"Changed after kill {number}", reason="a kill")
    if number % 5 == 4:
        await lore.privacy.forget(last.sender_id, is_id=True)
    async for _ in lore.index.drain():
        pass
