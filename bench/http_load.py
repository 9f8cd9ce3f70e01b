"""Times the main routes over HTTP beside a bare FastAPI route that gets the same request, with 1 to 64 connections.

`roomlore serve` and the bare application, on uvicorn as it comes, run as processes of their own. They are asked in
turn, so that the ratios hold where the times do not. The bare route reads the body as JSON and answers with the same
number of bytes: no answer over HTTP is faster. Where the system tells it, the processor time of each server is
printed, which holds on a shared machine.
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode, urlsplit

import uvicorn
from fastapi import FastAPI, Request, Response

import roomlore
from bench import databases
from bench.chatter import chat
from bench.reply_latency import PROGRAM, serving

ROOMS = 10
SCOPE = "user:ann"
FACTS = 50
_BARE = "from bench.http_load import serve_bare; serve_bare()"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=1_000, help=f"messages of each of {ROOMS} rooms")
    parser.add_argument("--requests", type=int, default=400, help="requests of each route to each server in a turn")
    parser.add_argument("--warm", type=int, default=40, help="requests of each route to each server before the turns")
    parser.add_argument("--turns", type=int, default=5, help="turns; medians over them are printed")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--log", action="store_true", help="log requests as a server does by default, to a file")
    databases.add_argument(parser)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: requests a second, the processor time of the server per request in ms if known, and the seconds that
    each request took."""

    rate: float
    processor: float | None
    took: list[float]


@dataclass(slots=True)
class Route:
    """A route, with the turns of roomlore and of the bare route."""

    name: str
    method: str
    path: str
    body: dict[str, Any] | None = None
    served: list[Turn] = field(default_factory=list)
    bare: list[Turn] = field(default_factory=list)

    def request(self, number: int, length: int | None = None) -> bytes:
        """Return request `number` as it is sent; with `length`, to the bare route, for an answer of that length. A
        message has an id of its own, and the rooms take turns."""
        room = f"room-{number % ROOMS}"
        path = self.path.replace("ROOM", room) if length is None else f"/bare?length={length}"
        body = b""
        if self.body is not None:
            body_of_room = {**self.body, "room_id": room} if "room_id" in self.body else self.body
            body = json.dumps(
                {**body_of_room, "id": f"sent-{number}"} if self.path == "/messages" else body_of_room
            ).encode()
        head = f"{self.method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        return f"{head}Content-Type: application/json\r\n\r\n".encode() + body


class Failed(Exception):
    """A request was not answered with 200. Ends the bench."""


def routes(words: str) -> list[Route]:
    message = {"room_id": "", "sender_id": "ann", "text": words}
    recall_body = {"scopes": [SCOPE], "messages": [{"role": "user", "content": words}]}
    return [
        Route("health", "GET", "/health/live"),
        Route("add a message", "POST", "/messages", message),
        Route("context", "POST", "/context", {"room_id": ""}),
        Route("search", "GET", f"/messages/search?{urlencode({'room_id': 'ROOM', 'q': words})}"),
        Route("recall", "POST", "/recall", recall_body),
    ]


async def run(arguments: argparse.Namespace) -> None:
    with ExitStack() as closing:
        url = closing.enter_context(databases.database(arguments.database))
        words = await fill(url, arguments.messages)
        folder = Path(closing.enter_context(TemporaryDirectory(prefix="roomlore-bench-")))
        config = folder / "roomlore.yaml"
        config.write_text("" if arguments.log else "memory:\n  log_level: error\n", encoding="utf-8")
        log = closing.enter_context((folder / "log").open("wb")) if arguments.log else None
        ours = [*PROGRAM, "--db", url, "--config", str(config), "serve", "--port", "0"]
        served = closing.enter_context(serving(ours, log))
        bare = closing.enter_context(serving([sys.executable, "-c", _BARE]))
        numbers = iter(range(10**9))
        tell_head(arguments)
        for connections in arguments.connections:
            measured = routes(words)
            for turn in range(-1, arguments.turns):
                for route in measured:
                    requests = arguments.requests if turn >= 0 else arguments.warm
                    ours_now = await ask(served, route, connections, requests, numbers)
                    theirs = await ask(bare, route, connections, requests, numbers, ours_now[1])
                    if turn >= 0:
                        route.served.append(ours_now[0])
                        route.bare.append(theirs[0])
            tell(measured, connections)


async def fill(url: str, messages: int) -> str:
    """Store rooms and facts. Return words that somebody said."""
    async with roomlore.open(url, background=False) as lore:
        for number in range(ROOMS):
            said = list(chat(f"room-{number}", messages))
            await lore.messages.add(said)
        for number in range(FACTS):
            await lore.memories.add(SCOPE, f"{number}: {said[number % messages].text}")
        return " ".join(said[messages // 2].text.split()[:4])


async def ask(
    server: tuple[int, str], route: Route, connections: int, requests: int, numbers: Iterator[int], length: int = -1
) -> tuple[Turn, int]:
    """Send requests over that many connections at once. Return what they took, and the length of the last answer."""
    pid, address = server
    host, port = urlsplit(address).hostname, urlsplit(address).port
    opened = [await asyncio.open_connection(host, port) for _ in range(connections)]
    left, took, lengths = iter(range(requests)), list[float](), [0]

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in left:
            request = route.request(next(numbers), None if length < 0 else length)
            begun = time.perf_counter()
            writer.write(request)
            lengths[0] = await read_answer(reader, route)
            took.append(time.perf_counter() - begun)

    before, begun = processor_ms(pid), time.perf_counter()
    try:
        await asyncio.gather(*(talk(*opened_talk) for opened_talk in opened))
    finally:
        for _, writer in opened:
            writer.close()
    seconds, after = time.perf_counter() - begun, processor_ms(pid)
    spent = None if before is None or after is None else (after - before) / requests
    return Turn(requests / seconds, spent, took), lengths[0]


async def read_answer(reader: asyncio.StreamReader, route: Route) -> int:
    """Read one answer and return the length of its body. Raise `Failed` for a failed request."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise Failed(f"{route.method} {route.path} answers {head.split(maxsplit=2)[1].decode()}")
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return length


def processor_ms(pid: int) -> float | None:
    """Return the processor time of a process so far, where the system has `/proc`."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return 1000 * (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def tell_head(arguments: argparse.Namespace) -> None:
    print(
        f"{ROOMS} rooms of {arguments.messages:,} messages; {arguments.turns} turns of {arguments.requests:,} requests"
    )
    print("of each route to each server. Times in ms\n")
    print("| connections | route | requests/s | p50 | p95 | p99 | processor | bare FastAPI: requests/s | p99 | ratio |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")


def tell(measured: Sequence[Route], connections: int) -> None:
    for route in measured:
        rate, floor = (median(sample.rate for sample in side) for side in (route.served, route.bare))
        p50, p95, p99 = percentiles(route.served)
        known = [sample.processor for sample in route.served if sample.processor is not None]
        spent = f"{median(known):.2f}" if known else "-"
        ours = f"{rate:,.0f} | {p50:.1f} | {p95:.1f} | {p99:.1f} | {spent}"
        print(f"| {connections} | {route.name} | {ours} | {floor:,.0f} | {percentiles(route.bare)[2]:.1f} | ", end="")
        print(f"{floor / rate:.1f} |", flush=True)


def percentiles(turns: Sequence[Turn]) -> tuple[float, float, float]:
    """Return the 50th, 95th and 99th percentile of all requests, in ms."""
    cuts = quantiles([1000 * took for turn in turns for took in turn.took], n=100)
    return cuts[49], cuts[94], cuts[98]


def serve_bare() -> None:
    app = FastAPI()

    @app.get("/bare")
    async def get(length: int) -> Response:
        return Response(b" " * length, media_type="application/json")

    @app.post("/bare")
    async def post(length: int, request: Request) -> Response:
        await request.json()
        return Response(b" " * length, media_type="application/json")

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        print(f"http://127.0.0.1:{door.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run([door])
