"""Times the main routes over HTTP beside a bare FastAPI route that gets the same request.

`roomlore serve` and the bare application, on uvicorn as it comes, run as processes of their own. Each is asked over one
kept connection, in turn with the other, so that the ratios hold where the times do not. The bare route reads the body
as JSON and answers with the same number of bytes: no answer over HTTP is faster.
"""

import argparse
import http.client
import json
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode, urlsplit

import uvicorn
from fastapi import FastAPI, Request, Response

import roomlore
from bench import databases
from bench.chatter import chat
from bench.reply_latency import PROGRAM, listening
from bench.session_speed import ratio, rotated, shown

ROOM, SCOPE = "floor", "user:ann"
FACTS = 50
_WARM = 20
_KEEP_SECONDS = 75
"""As long as roomlore keeps an idle connection: each server waits while the other one answers."""
_BARE = "from bench.http_floor import serve_bare; serve_bare()"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=1_000, help="messages of the room")
    parser.add_argument("--requests", type=int, default=300, help="requests of each route to each server")
    databases.add_argument(parser)


@dataclass(slots=True)
class Route:
    """A route of roomlore, with the seconds that its requests took, and those that the bare route took for the same."""

    name: str
    method: str
    path: str
    body: dict[str, Any] | None = None
    took: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    def sent(self, number: int) -> bytes | None:
        """Return the body of request `number`. A message has an id of its own."""
        if self.body is None:
            return None
        return json.dumps({**self.body, "id": f"sent-{number}"} if self.path == "/messages" else self.body).encode()


def routes(words: str) -> list[Route]:
    message = {"room_id": ROOM, "sender_id": "ann", "text": words}
    asked = {"scopes": [SCOPE], "messages": [{"role": "user", "content": words}]}
    return [
        Route("health", "GET", "/health/live"),
        Route("add a message", "POST", "/messages", message),
        Route("context", "POST", "/context", {"room_id": ROOM}),
        Route("search", "GET", f"/messages/search?{urlencode({'room_id': ROOM, 'q': words})}"),
        Route("recall", "POST", "/recall", asked),
    ]


async def run(arguments: argparse.Namespace) -> None:
    with ExitStack() as closing:
        url = closing.enter_context(databases.database(arguments.database))
        words = await fill(url, arguments.messages)
        config = Path(closing.enter_context(TemporaryDirectory(prefix="roomlore-bench-"))) / "roomlore.yaml"
        config.write_text("memory:\n  log_level: error\n", encoding="utf-8")
        ours = [*PROGRAM, "--db", url, "--config", str(config), "serve", "--port", "0"]
        served = closing.enter_context(listening(ours))
        bare = closing.enter_context(listening([sys.executable, "-c", _BARE]))
        measured = routes(words)
        ours_asked, bare_asked = (closing.enter_context(connected(url)) for url in (served, bare))
        measure(measured, ours_asked, bare_asked, arguments.requests)
        tell(measured, arguments)


async def fill(url: str, messages: int) -> str:
    """Store a room and facts. Return words that somebody said."""
    async with roomlore.open(url, background=False) as lore:
        said = list(chat(ROOM, messages))
        await lore.messages.add(said)
        for number in range(FACTS):
            await lore.memories.add(SCOPE, f"{number}: {said[number % messages].text}")
        return " ".join(said[messages // 2].text.split()[:4])


@contextmanager
def connected(url: str) -> Iterator[http.client.HTTPConnection]:
    client = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        yield client
    finally:
        client.close()


def measure(
    measured: Sequence[Route], served: http.client.HTTPConnection, bare: http.client.HTTPConnection, requests: int
) -> None:
    for number in range(-_WARM, requests):
        for route in rotated(measured, number):
            took, length = ask(served, route, number, route.path)
            floor, _ = ask(bare, route, number, f"/bare?length={length}")
            if number >= 0:
                route.took.append(took)
                route.bare.append(floor)


def ask(client: http.client.HTTPConnection, route: Route, number: int, path: str) -> tuple[float, int]:
    """Return the seconds until the whole answer was there, and its length."""
    headers: Mapping[str, str] = {"Content-Type": "application/json"}
    body, begun = route.sent(number), time.perf_counter()
    client.request(route.method, path, body, headers if body else {})
    answer = client.getresponse()
    length = len(answer.read())
    took = time.perf_counter() - begun
    if answer.status != 200 or answer.will_close:
        raise SystemExit(f"{route.method} {path} answers {answer.status}, or ends its connection")
    return took, length


def tell(measured: Sequence[Route], arguments: argparse.Namespace) -> None:
    print(f"A room of {arguments.messages:,} messages, {arguments.requests:,} requests of each route over one kept")
    print("connection. Medians in ms [middle half]\n")
    print("| route | roomlore | bare FastAPI | ratio | on top |")
    print("|---|---|---|---|---|")
    for route in measured:
        top = 1000 * (median(route.took) - median(route.bare))
        row = f"{shown(route.took)} | {shown(route.bare)} | {ratio(route.took, route.bare)} | {top:.2f}"
        print(f"| {route.name} | {row} |")


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
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_keep_alive=_KEEP_SECONDS)
        uvicorn.Server(config).run([door])
