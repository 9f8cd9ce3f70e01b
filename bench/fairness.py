"""Times the requests of a quiet tenant alone and beside one that floods the service, in turns against one server.

The quiet tenant sends one request after another, with a pause between them. The other one, a process of its own, keeps
as many connections busy as it is told. A second server without turns (`turns.py`) shows what would be.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import roomlore
from bench import databases
from bench.chatter import chat
from bench.reply_latency import PROGRAM, serving

_WITHOUT = (
    "import sys; from roomlore_server.http import turns; from roomlore.surfaces.cli import app; "
    "turns.AT_WORK = 10**9; turns.Turns._ahead = lambda *_: False; app.main()"
)
_FLOOD = "from bench.fairness import flood; flood()"
_ROOMS = 4
Work = tuple[str, str, dict[str, object]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=500, help=f"messages of each of {_ROOMS} rooms of each tenant")
    parser.add_argument("--requests", type=int, default=150, help="requests of the quiet tenant in a turn")
    parser.add_argument("--turns", type=int, default=4, help="turns, alone and beside the flood")
    parser.add_argument("--connections", type=int, default=32, help="connections that the flood keeps busy")
    parser.add_argument("--pause", type=float, default=0.02, help="seconds between two requests of the quiet tenant")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    print(f"a quiet tenant's requests in ms, and beside {arguments.connections} connections that flood\n")
    print("| server | request | alone: p50 | p95 | beside: p50 | p95 | p50 beside / alone | flood: requests/s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for name, program in (("with turns", PROGRAM), ("without", [sys.executable, "-c", _WITHOUT])):
        with ExitStack() as closing:
            url = closing.enter_context(databases.database(arguments.database))
            keys, works = await _filled(url, arguments.messages)
            folder = Path(closing.enter_context(TemporaryDirectory(prefix="roomlore-bench-")))
            config = folder / "roomlore.yaml"
            config.write_text("memory:\n  log_level: error\n", encoding="utf-8")
            served = [*program, "--db", url, "--config", str(config), "serve", "--port", "0"]
            address = closing.enter_context(serving(served, None))[1]
            for work in works:
                await _compare(name, work, address, keys, arguments)


async def _filled(url: str, messages: int) -> tuple[dict[str, str], list[Work]]:
    """Store both tenants' rooms and keys. Return the keys, and the requests of the quiet tenant."""
    keys = {}
    async with roomlore.open(url, background=False) as lore:
        for tenant in ("quiet", "loud"):
            its = lore.for_tenant(tenant)
            keys[tenant] = (await its.keys.create(tenant, scopes=("read", "write", "admin")))[1]
            for number in range(_ROOMS):
                said = list(chat(f"room-{number}", messages))
                await its.messages.add(said)
    words = " ".join(said[messages // 2].text.split()[:4])
    return keys, [
        ("context", "/context", {"room_id": "room-1"}),
        ("add", "/messages", {"room_id": "room-2", "sender_id": "ann", "text": words}),
    ]


async def _compare(name: str, work: Work, address: str, keys: dict[str, str], arguments: argparse.Namespace) -> None:
    took: dict[bool, list[float]] = {False: [], True: []}
    rates: list[float] = []
    await _ask(work, address, keys["quiet"], 20, arguments.pause)
    for turn in range(arguments.turns):
        took[False] += await _ask(work, address, keys["quiet"], arguments.requests, arguments.pause)
        with _flooding(address, keys["loud"], arguments.connections, turn, rates):
            await asyncio.sleep(1.0)
            took[True] += await _ask(work, address, keys["quiet"], arguments.requests, arguments.pause)
    alone, beside = ((median(times) * 1000, quantiles(times, n=20)[18] * 1000) for times in (took[False], took[True]))
    cells = f"{alone[0]:.2f} | {alone[1]:.2f} | {beside[0]:.2f} | {beside[1]:.2f} | {beside[0] / alone[0]:.2f}"
    print(f"| {name} | {work[0]} | {cells} | {median(rates):,.0f} |", flush=True)


async def _ask(work: Work, address: str, key: str, requests: int, pause: float) -> list[float]:
    reader, writer = await asyncio.open_connection(urlsplit(address).hostname, urlsplit(address).port)
    took = []
    try:
        for _ in range(requests):
            begun = time.perf_counter()
            writer.write(_request(work, key, f"quiet-{time.time_ns()}"))
            await _answered(reader)
            took.append(time.perf_counter() - begun)
            await asyncio.sleep(pause)
    finally:
        writer.close()
    return took


def _request(work: Work, key: str, new_id: str) -> bytes:
    body_of_message = {**work[2], "id": new_id} if work[1] == "/messages" else work[2]
    body = json.dumps(body_of_message).encode()
    head = f"POST {work[1]} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def _answered(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError(head.decode())
    await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]))


@contextmanager
def _flooding(address: str, key: str, connections: int, turn: int, rates: list[float]) -> Iterator[None]:
    """Flood from a process of its own while the block runs, and add its requests a second to `rates`."""
    command = [sys.executable, "-c", _FLOOD, address, key, str(connections), str(turn)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.stdin.close()
        rates.append(float(process.stdout.read()))


def flood() -> None:
    """Send messages over many connections until standard input ends, and print how many a second."""
    address, key, connections, turn = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    asyncio.run(_flood(address, key, connections, turn))


async def _flood(address: str, key: str, connections: int, turn: str) -> None:
    sent = 0

    async def talk(number: int) -> None:
        nonlocal sent
        work: Work = (
            "add",
            "/messages",
            {"room_id": f"room-{number % _ROOMS}", "sender_id": "bob", "text": "so much to say"},
        )
        reader, writer = await asyncio.open_connection(urlsplit(address).hostname, urlsplit(address).port)
        while True:
            writer.write(_request(work, key, f"{turn}-{number}-{time.time_ns()}"))
            await _answered(reader)
            sent += 1

    begun = time.perf_counter()
    talks = [asyncio.create_task(talk(number)) for number in range(connections)]
    print("begun", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    seconds = time.perf_counter() - begun
    for task in talks:
        task.cancel()
    failed = [one for one in await asyncio.gather(*talks, return_exceptions=True) if isinstance(one, RuntimeError)]
    print(f"{sent / seconds:.1f}", flush=True)
    if failed:
        raise failed[0]
