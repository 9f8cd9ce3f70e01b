"""Times `/health/live` of a real `roomlore serve` while hostile requests of each kind run.

A process of its own asks for it all the time, over one connection that it makes anew where it is closed, first with
nothing else going on and then while the requests of one kind run at once. What is timed is how long the service keeps
everybody waiting, so what a request costs by itself does not count. The goal is under 250 ms at the 99th percentile.
"""

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any
from urllib.parse import quote, urlsplit

from bench import databases
from bench.chatter import chat
from bench.reply_latency import PROGRAM, listening

GOAL_SECONDS = 0.25
ROOM = "hostile"
_PAUSE_SECONDS = 0.005
_TIMEOUT_SECONDS = 120.0
_TEXT = 1_000_000
"""Characters of a hostile text: as many as a message may have, nearly."""
_SMALL_BODY, _BODY = 1_048_000, 16_777_000
"""Bytes: what a route that asks takes by default, and what one that writes takes."""
_CONNECTIONS_EACH = 20
_IMPORTED_LINES = 2_000
_IMPORTS_AT_ONCE = 2
_RUNS: Mapping[str, str] = {
    "question marks": "?",
    "sentence enders": "。",
    "ZWJ emoji": "👨\u200d👩\u200d👧\u200d",
    "numerals and dots": "三…",
    "combining marks": "\u0301",
    "angle brackets": "<@a ",
}

Attack = Callable[[int], str]
"""Sends request number so-and-so and returns what came of it, in a word."""


@dataclass(frozen=True, slots=True)
class Site:
    """The address of the service: its host and port, its database, and a folder for files to import."""

    host: str
    port: int
    database: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Sampled:
    """Seconds that `/health/live` took, each, and how often it was not answered with 200."""

    took: Sequence[float]
    refused: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=50, help="hostile requests of a kind at a time")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long those of a kind run")
    parser.add_argument(
        "--quiet", type=float, default=3.0, help="seconds sampled before each kind, nothing else going on"
    )
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind; may be given again")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    print("| hostile requests | done | p50 | p99 | longest | quiet: p50 | p99 | longest |", flush=True)
    print("|---|---|---:|---:|---:|---:|---:|---:|", flush=True)
    missed = [kind for kind in arguments.kind or KINDS if not measure(kind, arguments)]
    print(f"\nTimes of `/health/live` in ms; {arguments.requests} hostile requests of a kind at a time.")
    if missed:
        goal = f"{1000 * GOAL_SECONDS:.0f} ms"
        raise SystemExit(f"over {goal} at the 99th percentile, or not answered: {', '.join(missed)}")


def measure(kind: str, arguments: argparse.Namespace) -> bool:
    """Print how a server of its own fares, and return whether it keeps the goal."""
    with serving(arguments.database) as site, sampling(site) as pipe:
        warm(site)
        return fares(kind, pipe, KINDS[kind](site), arguments)


def fares(kind: str, pipe: Connection, attack: Attack, arguments: argparse.Namespace) -> bool:
    """Print a row: the times first with nothing else going on, and then under attack."""
    came: Counter[str] = Counter()
    quiet = sampled(pipe, lambda: time.sleep(arguments.quiet))
    beside = sampled(pipe, lambda: came.update(attacked(attack, arguments.requests, arguments.seconds)))
    done = ", ".join(f"{count:,} x {what}" for what, count in came.most_common())
    print(f"| {kind} | {done} | {_row(beside)} | {_row(quiet)} |", flush=True)
    return not beside.refused and percentile(beside.took, 0.99) < GOAL_SECONDS


@contextmanager
def serving(database: str | None) -> Iterator[Site]:
    """Start a server on a database of its own."""
    with ExitStack() as closing:
        url = closing.enter_context(databases.database(database))
        folder = Path(closing.enter_context(TemporaryDirectory(prefix="roomlore-bench-")))
        config = folder / "roomlore.yaml"
        config.write_text("memory:\n  log_level: error\n", encoding="utf-8")
        ours = [*PROGRAM, "--db", url, "--config", str(config), "serve", "--port", "0"]
        address = urlsplit(closing.enter_context(listening(ours)))
        yield Site(str(address.hostname), int(address.port or 80), url, folder)


def attacked(attack: Attack, requests: int, seconds: float) -> list[str]:
    """Keep so many requests going for so long. Return what came of each; those still open end with the server."""
    came: list[str] = []
    until = time.monotonic() + seconds

    def go_on(number: int) -> None:
        _step_back()
        while time.monotonic() < until:
            came.append(attack(number))

    threads = [Thread(target=go_on, args=(number,), daemon=True) for number in range(requests)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    return [*came, *("not yet answered" for one in threads if one.is_alive())]


def _step_back() -> None:
    """Leave the processors to the service: who attacks sits on another machine. On Linux this is for one thread."""
    os.nice(10 if sys.platform == "linux" else 0)


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def _row(sample: Sampled) -> str:
    shown = (percentile(sample.took, 0.5), percentile(sample.took, 0.99), max(sample.took))
    refused = f" ({sample.refused} refused)" if sample.refused else ""
    return " | ".join(f"{1000 * seconds:.1f}" for seconds in shown) + refused


@contextmanager
def sampling(site: Site) -> Iterator[Connection]:
    """Start the process that asks for `/health/live`, and yield the pipe to it."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=sample, args=(theirs, site), daemon=True)
    process.start()
    ours.recv()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


def sampled(pipe: Connection, meanwhile: Callable[[], None]) -> Sampled:
    pipe.send("begin")
    meanwhile()
    pipe.send("end")
    took, refused = pipe.recv()
    return Sampled(took, refused)


def sample(pipe: Connection, site: Site) -> None:
    """Until the process is ended: sample from 'begin' to 'end', then send the seconds and how many were refused."""
    connection = http.client.HTTPConnection(site.host, site.port, timeout=_TIMEOUT_SECONDS)
    pipe.send("ready")
    while pipe.recv() == "begin":
        took: list[float] = []
        refused = 0
        while not (took and pipe.poll(_PAUSE_SECONDS)):
            begun = time.perf_counter()
            refused += not _answered(connection)
            took.append(time.perf_counter() - begun)
        pipe.recv()
        pipe.send((took, refused))


def _answered(connection: http.client.HTTPConnection) -> bool:
    """Return whether it was answered with 200. A kept connection that was closed meanwhile is made anew, once."""
    for _ in range(2):
        try:
            connection.request("GET", "/health/live")
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
        else:
            return answer.status == 200
    return False


def warm(site: Site) -> None:
    """Have everything loaded, and a room to ask about."""
    messages = [{"id": m.id, "room_id": ROOM, "sender_id": m.sender_id, "text": m.text} for m in chat(ROOM, 200)]
    for path, body in (("/messages", {"messages": messages}), ("/context", {"room_id": ROOM})):
        if (came := answer_of(site, posted(path, body))) not in ("200", "201"):
            raise SystemExit(f"{path} answers {came}")


def posted(path: str, body: Any) -> bytes:
    return posted_bytes(path, json.dumps(body, ensure_ascii=False).encode())


def posted_bytes(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def answer_of(site: Site, request: bytes) -> str:
    """Return the status, or what happened instead."""
    try:
        with socket.create_connection((site.host, site.port), timeout=_TIMEOUT_SECONDS) as connection:
            with suppress(ConnectionError):  # it may be refused before it is sent whole
                connection.sendall(request)
            return received(connection)
    except OSError as error:
        return type(error).__name__


def received(connection: socket.socket) -> str:
    """Return the status, having read everything until the end."""
    first = b""
    with suppress(ConnectionError):
        while part := connection.recv(65_536):
            first = first or part
    return first[9:12].decode() or "closed"


def text_of(unit: str, site: Site) -> Attack:
    """One message, of a run of `unit` and an end that is another sign."""
    text = unit * (_TEXT // len(unit)) + "x"
    made = partial(_message, text=text)
    return lambda number: answer_of(site, posted("/messages", made(number)))


def batch_of(unit: str, site: Site) -> Attack:
    """Many middling messages, each in a room of its own."""
    text = unit * (19_900 // len(unit)) + "x"
    return lambda number: answer_of(site, posted("/messages", batch(number, 100, text)))


def searched(unit: str, site: Site) -> Attack:
    words = quote((unit * 2_000)[:6_000])[:48_000]
    request = f"GET /messages/search?room_id={ROOM}&q={words} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    return lambda _: answer_of(site, request.encode())


def recalled(unit: str, site: Site) -> Attack:
    body = {"scopes": ["user:ann"], "messages": [{"role": "user", "content": unit * (200_000 // len(unit)) + "x"}]}
    return lambda _: answer_of(site, posted("/recall", body))


def sent(path: str, make: Callable[[], bytes], site: Site) -> Attack:
    request = posted_bytes(path, make())
    return lambda _: answer_of(site, request)


@cache
def small_arrays(size: int) -> bytes:
    return b"[" + b"[]," * (size // 3 - 1) + b"[]]"


@cache
def deep(size: int) -> bytes:
    return b"[" * (size // 2) + b"]" * (size // 2)


@cache
def many_values(values: int) -> bytes:
    """Just as many values as a body may have, in one message's metadata."""
    message = {"id": "v", "room_id": ROOM, "sender_id": "ann", "text": "x", "metadata": {"v": [[]] * values}}
    return json.dumps(message, separators=(",", ":")).encode()


def half_sent(site: Site) -> Attack:
    """A head or a body that never arrives whole, held until the server ends it or all is over."""
    halves = (b"", b"GET /rooms HTTP/1.1\r\nhost: loc", posted_bytes("/messages", b'{"id":' + b" " * 1_000)[:-500])

    def attack(number: int) -> str:
        with socket.create_connection((site.host, site.port), timeout=_TIMEOUT_SECONDS) as connection:
            connection.sendall(halves[number % len(halves)])
            return received(connection)

    return attack


def many_connections(site: Site) -> Attack:
    """More connections at a time than there may be, each with a request begun, again and again."""

    def attack(number: int) -> str:
        for _ in range(_CONNECTIONS_EACH):
            with ExitStack() as closing:
                for _ in range(_CONNECTIONS_EACH * 2):
                    with suppress(OSError):
                        held = socket.create_connection((site.host, site.port), timeout=_TIMEOUT_SECONDS)
                        closing.enter_context(held)
                        held.sendall(b"GET /health/ready HTTP/1.1\r\n")
        return "opened and closed"

    return attack


def many_rooms(site: Site) -> Attack:
    return lambda number: answer_of(site, posted("/messages", batch(number, 10_000, "shall we meet at 10:30?")))


def imported(site: Site) -> Attack:
    """An import into the same database by a process beside the server, of lines that are hard to read."""
    units = list(_RUNS.values())

    def attack(number: int) -> str:
        if number >= _IMPORTS_AT_ONCE:
            time.sleep(_TIMEOUT_SECONDS)
        file = site.folder / f"chat-{number}.txt"
        lines = (f"[2026-01-05, 09:00:00] Ann: {units[at % len(units)] * 300}" for at in range(_IMPORTED_LINES))
        file.write_text("\n".join(lines), encoding="utf-8")
        command = [*PROGRAM, "--db", site.database, "import", str(file), "--format", "whatsapp"]
        ended = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
        return f"exit code {ended.returncode}"

    return attack


def batch(number: int, rooms: int, text: str) -> dict[str, Any]:
    return {"messages": [_message(number, text=text, place=place) for place in range(rooms)]}


def _message(number: int, *, text: str, place: int = 0) -> dict[str, str]:
    room = f"{ROOM}-{number}-{place}"
    return {"id": f"{time.monotonic_ns()}-{place}", "room_id": room, "sender_id": f"person-{number}", "text": text}


KINDS: Mapping[str, Callable[[Site], Attack]] = {
    **{f"a message of {name}": partial(text_of, unit) for name, unit in _RUNS.items()},
    "100 messages of question marks": partial(batch_of, "?"),
    "100 messages of sentence enders": partial(batch_of, "。"),
    "a search for numerals and dots": partial(searched, "三…"),
    "recall of question marks": partial(recalled, "?"),
    "small arrays to /context, 1 MB": partial(sent, "/context", partial(small_arrays, _SMALL_BODY)),
    "small arrays to /messages, 16 MB": partial(sent, "/messages", partial(small_arrays, _BODY)),
    "190,000 small arrays in a message": partial(sent, "/messages", partial(many_values, 190_000)),
    "deep JSON, 16 MB": partial(sent, "/messages", partial(deep, _BODY)),
    "half-sent requests": half_sent,
    "many connections": many_connections,
    "10,000 rooms in a batch": many_rooms,
    "imports beside the server": imported,
}
