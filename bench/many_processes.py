"""Times the main routes on `roomlore serve` with one process and with several, on one PostgreSQL.

The servers are asked in turns, so that the ratios hold where the times do not. The machine is shared with PostgreSQL
and with what sends the requests, so that the clock shows the gain only where there are processors for all of them. The
processor time shows it everywhere: a server takes requests until its busiest process has no time left, so with a
processor for each process it serves as many times the requests as the busiest process spends less on each.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from sqlalchemy import make_url

from bench import databases
from bench.http_load import ROOMS, Route, ask, fill, processor_ms, routes
from bench.reply_latency import PROGRAM, serving

ROUTES = ("add a message", "context", "search")
OWN = "add a message, a connection for each room"
"""As a bot does that keeps its connection. Over connections that share the rooms, any process adds to any room."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--processes", type=int, default=2, help="processes of the larger server")
    parser.add_argument("--messages", type=int, default=300, help=f"messages of each of {ROOMS} rooms")
    parser.add_argument("--requests", type=int, default=400, help="requests of each route to each server in a turn")
    parser.add_argument("--turns", type=int, default=5, help="turns; medians over them are printed")
    parser.add_argument(
        "--warm", type=int, default=64, help="requests of each route to each server before the first turn"
    )
    parser.add_argument("--connections", type=int, default=32)
    databases.add_argument(parser)


class Turn(NamedTuple):
    """Requests a second, and the processor time for each request in ms: of all processes of the server, of the busiest
    of them, and of PostgreSQL."""

    rate: float
    server: float
    busiest: float
    database: float


@dataclass(slots=True)
class Server:
    """A server that runs. `turns`: by route."""

    processes: int
    pid: int
    address: str
    turns: dict[str, list[Turn]] = field(default_factory=dict)


async def run(arguments: argparse.Namespace) -> None:
    if processor_ms(os.getpid()) is None:
        raise SystemExit("This bench reads processor times in /proc, which this system does not have.")
    with ExitStack() as closing:
        url = closing.enter_context(databases.database(arguments.database or databases.EMBEDDED))
        words = await fill(url, arguments.messages)
        config = Path(closing.enter_context(TemporaryDirectory(prefix="roomlore-bench-"))) / "roomlore.yaml"
        config.write_text("memory:\n  log_level: error\n", encoding="utf-8")
        servers = []
        for processes in (1, arguments.processes):
            command = [*PROGRAM, "--db", url, "--config", str(config), "serve", "--no-work", "--port", "0"]
            started = closing.enter_context(serving([*command, "--workers", str(processes)]))
            servers.append(Server(processes, *started))
        numbers = iter(range(10**9))
        postmaster = postmaster_of(url)
        tell_head(arguments)
        measured = [route for route in routes(words) if route.name in ROUTES]
        for route in (*measured, replace(measured[0], name=OWN)):
            for server in servers:
                await ask((server.pid, server.address), route, arguments.connections, arguments.warm, numbers)
            for _ in range(arguments.turns):
                for server in servers:
                    turn = await _turn(server, route, arguments, numbers, postmaster)
                    server.turns.setdefault(route.name, []).append(turn)
            tell(servers, route.name)


async def _turn(
    server: Server, route: Route, arguments: argparse.Namespace, numbers: Iterator[int], postmaster: int | None
) -> Turn:
    before, stored = family_ms(server.pid), family_ms(postmaster)
    server_at, requests, begun = (server.pid, server.address), arguments.requests, time.perf_counter()
    if route.name == OWN:
        requests -= requests % ROOMS
        first = (next(numbers) + 1) * 10**6
        one_each = (ask(server_at, route, 1, requests // ROOMS, count(first + room, ROOMS)) for room in range(ROOMS))
        await asyncio.gather(*one_each)
    else:
        await ask(server_at, route, arguments.connections, requests, numbers)
    rate = requests / (time.perf_counter() - begun)
    spent = [took - before.get(pid, 0) for pid, took in family_ms(server.pid).items()]
    database = sum(family_ms(postmaster).values()) - sum(stored.values())
    return Turn(rate, sum(spent) / requests, max(spent) / requests, database / requests)


def postmaster_of(url: str) -> int | None:
    """Return the process of a PostgreSQL of the bench's own; None for another."""
    place = Path(str(make_url(url).query.get("host", ""))) / "postmaster.pid"
    return int(place.read_text(encoding="utf-8").split("\n", 1)[0]) if place.is_file() else None


def family_ms(pid: int | None) -> dict[int, float]:
    """Return the processor time so far of a process and of those that it started and that run, by their ids."""
    if pid is None:
        return {}
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(place.parent.name)] = int(place.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        except (OSError, ValueError):  # it ended meanwhile
            continue
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return {process_id: spent for process_id in family if (spent := processor_ms(process_id)) is not None}


def tell_head(arguments: argparse.Namespace) -> None:
    print(f"{ROOMS} rooms of {arguments.messages:,} messages; {arguments.connections} connections;", end=" ")
    print(f"{arguments.turns} turns of {arguments.requests:,} requests of each route")
    print("to each server. Processor time in ms for each request. Gain: times the requests of one process\n")
    print("| route | processes | requests/s | all processes | busiest process | PostgreSQL | gain | by the clock |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)


def tell(servers: Sequence[Server], name: str) -> None:
    for server in servers:
        rate, spent, busiest, database = medians(server.turns[name])
        first = medians(servers[0].turns[name])
        print(f"| {name} | {server.processes} | {rate:,.0f} | {spent:.2f} | {busiest:.2f} |", end=" ")
        print(f"{database:.2f} | {first.busiest / busiest:.2f} | {rate / first.rate:.2f} |", flush=True)


def medians(turns: Sequence[Turn]) -> Turn:
    return Turn(*(median(values) for values in zip(*turns, strict=True)))
