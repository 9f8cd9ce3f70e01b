"""Times replies over HTTP while the summaries of extractions hang, beside replies with extraction switched off.

Two servers, each a process of its own on a database of its own, take turns: one makes a memory of every few replies
with a model that hangs, the other makes none. Both get their answers from the same scripted model, which answers at
once, so what is timed is roomlore. The ratios hold where the times do not.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import httpx

from bench import databases
from bench.chatter import chat
from bench.progress import Progress
from bench.session_speed import ratio, rotated, shown
from roomlore_testkit.model_server import Answer, Asked, ModelServer, Says, serve_models

ROOMS = 10
WAYS = ("hanging", "off")
PROGRAM = (sys.executable, "-c", "from roomlore.surfaces.cli import main; main()")
_SUMMARY = "summary"
_WARM_SECONDS = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--replies", type=int, default=300, help="replies of each kind")
    parser.add_argument("--every", type=int, default=5, help="replies after which a memory is due")
    parser.add_argument("--hang", type=float, default=10.0, help="seconds that each summary takes")
    databases.add_argument(parser)


@dataclass(slots=True)
class Side:
    """One server, and the seconds its replies took: to the first words, to the end, and to the end where one made an
    extraction due."""

    client: httpx.Client
    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    due: list[float] = field(default_factory=list)

    def took(self, first: float, whole: float, *, due: bool) -> None:
        self.first.append(first)
        self.whole.append(whole)
        if due:
            self.due.append(whole)


async def run(arguments: argparse.Namespace) -> None:
    with ExitStack() as closing:
        model = closing.enter_context(serve_models(answering(arguments.hang)))
        every = {"hanging": arguments.every, "off": 0}
        sides = {way: closing.enter_context(side(model, every[way], arguments.database)) for way in WAYS}
        warm(sides, model, arguments.every)
        talk(sides, arguments.replies, arguments.every)
        tell(sides, model, arguments)


def answering(hang: float) -> Callable[[Asked], Answer]:
    def answer(request: Asked) -> Answer:
        if request.model == _SUMMARY:
            return Says(text="They talked about the release.", after=hang)
        return Says(text="That was settled on Monday: the release goes out as planned.")

    return answer


@contextmanager
def side(model: ModelServer, every: int, database: str | None) -> Iterator[Side]:
    """A server that is told to listen on a free port."""
    with ExitStack() as closing:
        url = closing.enter_context(databases.database(database))
        config = Path(closing.enter_context(TemporaryDirectory(prefix="roomlore-bench-"))) / "roomlore.yaml"
        config.write_text(json.dumps({"memory": settings(model.url, every)}), encoding="utf-8")
        served = listening([*PROGRAM, "--db", url, "--config", str(config), "serve", "--port", "0"])
        address = closing.enter_context(served)
        yield Side(closing.enter_context(httpx.Client(base_url=address, timeout=60)))


@contextmanager
def listening(command: Sequence[str]) -> Iterator[str]:
    """Start a server that prints its address, yield the address, and end the server."""
    with serving(command) as (_, address):
        yield address


@contextmanager
def serving(command: Sequence[str], log: IO[bytes] | None = None) -> Iterator[tuple[int, str]]:
    """Start a server that prints its address, yield its process id and the address, and end it. `log`: where what it
    says on standard error goes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        match = re.search(r"http://[^\s,;]+", process.stdout.readline())
        if match is None:
            raise SystemExit("the server did not start; what it says is above")
        yield process.pid, match.group()
    finally:
        process.kill()
        process.communicate()


def settings(model_url: str, every: int) -> dict[str, object]:
    return {
        "models": {
            "chat": {"providers": [{"name": "here", "model_id": "chat"}]},
            "memory-summary-model": {"internal": True, "providers": [{"name": "here", "model_id": _SUMMARY}]},
        },
        "providers": {"here": {"base_url": model_url}},
        "extract_every": every,
        "summary_timeout_seconds": 60,
        "log_level": "error",
    }


def warm(sides: Mapping[str, Side], model: ModelServer, every: int) -> None:
    """Has everything loaded, and returns once a summary hangs."""
    for number in range(every):
        for one in sides.values():
            reply(one.client, "warm", number, "Is everybody there?")
    ends = time.perf_counter() + _WARM_SECONDS
    while not summaries(model):
        if time.perf_counter() > ends:
            raise SystemExit("nothing was extracted; is the extra `durable` installed?")
        time.sleep(0.05)


def talk(sides: Mapping[str, Side], replies: int, every: int) -> None:
    progress = Progress("replies", replies)
    lines = [message.text for message in chat("latency", replies, 5)]
    for number, text in enumerate(lines):
        due = (number // ROOMS + 1) % every == 0
        for way in rotated(WAYS, number):
            sides[way].took(*reply(sides[way].client, f"room {number % ROOMS}", number, text), due=due)
        progress.at(number + 1)
    progress.end(replies)


def reply(client: httpx.Client, room: str, number: int, text: str) -> tuple[float, float]:
    """Seconds to the first words and to the end."""
    message = {"id": f"m{number}", "room_id": room, "sender_id": "ann", "text": text}
    first, begun, last = 0.0, time.perf_counter(), ""
    with client.stream("POST", "/chat/sse", json={"message": message}) as answer:
        for line in answer.iter_lines():
            if line.startswith("event: "):
                last = line
                first = first or (time.perf_counter() - begun if line == "event: text" else 0.0)
    if last != "event: done":
        raise SystemExit(f"a reply ended with {last!r}")
    return first, time.perf_counter() - begun


def summaries(model: ModelServer) -> int:
    return sum(request.model == _SUMMARY for request in model.requests)


def tell(sides: Mapping[str, Side], model: ModelServer, arguments: argparse.Namespace) -> None:
    print(f"{arguments.replies:,} replies of each kind, a memory due every {arguments.every}; summaries asked for")
    print(f"meanwhile: {summaries(model)}, each of which hangs {arguments.hang:g} s. Medians in ms [middle half]\n")
    print("| a reply over HTTP | summaries hang | extraction off | ratio |")
    print("|---|---|---|---|")
    rows: Sequence[tuple[str, Callable[[Side], list[float]]]] = (
        ("to its first words", lambda latency: latency.first),
        ("to its end", lambda latency: latency.whole),
        ("to its end, where it makes a memory due", lambda latency: latency.due),
    )
    for name, times in rows:
        hanging, off = (times(sides[way]) for way in WAYS)
        print(f"| {name} | {shown(hanging)} | {shown(off)} | {ratio(hanging, off)} |")
