"""Compares two installations of roomlore on the same work, such as an earlier release and what lies here.

Each is named by its Python. They take turns, the first of a round being the second of the next, each with an empty
database for each piece of work, so that the ratios hold where the times do not. The work is that of
`bench.two_builds_side`, and:

http    `roomlore serve` of both, on the same content, asked in turn over 16 connections: processor time of a request
import  `roomlore import` of a made-up export, with the processor time of all its processes
size    bytes a message in each table of SQLite, after VACUUM
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench import databases, http_load, storage_size
from bench.chatter import chat
from bench.many_processes import ROUTES
from bench.reply_latency import serving
from bench.session_speed import rotated
from bench.two_builds_side import ROOM, Figures, said_in

ROOT = Path(__file__).parents[1]
COUNTS = {"add": 2_000, "batch": 10_000, "context": 1_000, "search": 1_000, "memory": 25}
"""How much of each is done; `memory`: messages of each small room."""
CONNECTIONS = 16
_WARM = 64
_APART = ("env", "-u", "PYTHONPATH")
"""What it names is this installation's. The processes of an import would take it from there too."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = (*COUNTS, "http", "import", "size")
    parser.add_argument("--before", required=True, help="the Python of one installation")
    parser.add_argument("--after", help="that of the other; by default this one, with its PYTHONPATH")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--what", nargs="+", default=list(COUNTS), choices=what)
    parser.add_argument("--calls", type=int, help="adds, messages, contexts and searches of a round")
    parser.add_argument("--requests", type=int, default=400, help="requests of each route to each server in a round")
    parser.add_argument("--messages", type=int, default=100_000, help="messages that are imported")
    parser.add_argument("--processes", type=int, default=2, help="processes of an import")
    parser.add_argument("--stored", type=int, default=10_000, help="messages of the store of `http` and of `size`")
    databases.add_argument(parser)


@dataclass(frozen=True, slots=True)
class Build:
    """An installation. `python`: the words that start its Python."""

    name: str
    python: tuple[str, ...]

    def does(self, url: str, kind: str, count: int) -> Figures:
        figures: Figures = json.loads(self.ran("-m", "bench.two_builds_side", url, kind, str(count), folder=ROOT))
        return figures

    def ran(self, *words: str, folder: Path) -> str:
        """Return what it prints."""
        ended = subprocess.run((*self.python, *words), cwd=folder, capture_output=True, text=True)
        if ended.returncode:
            raise SystemExit(f"{self.name}: {ended.stderr}")
        return ended.stdout

    def program(self, *words: str) -> list[str]:
        """Return the command that runs `roomlore`."""
        return [*self.python, "-m", "roomlore", *words]


Rounds = Mapping[str, list[Figures]]
"""What was measured in each round, by the name of the build."""


async def run(arguments: argparse.Namespace) -> None:
    after = (*_APART, arguments.after) if arguments.after else (sys.executable,)
    builds = (Build("before", (*_APART, arguments.before)), Build("after", after))
    for build in builds:
        print(f"{build.name}: {build.ran('-c', 'import roomlore; print(roomlore.__file__)', folder=ROOT)}", end="")
    print("\n| work | figure | before | after | ratio | in the rounds |\n|---|---|---:|---:|---:|---|", flush=True)
    with ExitStack() as stack:
        server = stack.enter_context(databases.database(arguments.database)) if arguments.database else None
        work = Work(builds, arguments, server, Path(stack.enter_context(TemporaryDirectory(prefix="roomlore-bench-"))))
        for what in arguments.what:
            measured = await work.over_http() if what == "http" else work.in_turn(what)
            for line in lines(measured):
                print(f"| {what} | {line} |", flush=True)


@dataclass(frozen=True, slots=True)
class Work:
    """`server`: a PostgreSQL, None for SQLite. `folder`: for what both are given."""

    builds: Sequence[Build]
    arguments: argparse.Namespace
    server: str | None
    folder: Path

    def in_turn(self, what: str) -> Rounds:
        measured: dict[str, list[Figures]] = {build.name: [] for build in self.builds}
        for number in range(self.arguments.rounds):
            for build in rotated(self.builds, number):
                with databases.fresh(None if what == "size" else self.server) as url:
                    measured[build.name].append(self._once(build, what, url))
        return measured

    def _once(self, build: Build, what: str, url: str) -> Figures:
        if what == "import":
            return self._import(build, url)
        if what == "size":
            build.does(url, "batch", self.arguments.stored)
            return sizes(url, self.arguments.stored)
        count = None if what == "memory" else self.arguments.calls
        return build.does(url, what, count or COUNTS[what])

    def _import(self, build: Build, url: str) -> Figures:
        export = self.folder / "export.jsonl"
        if not export.exists():
            write_export(export, self.arguments.messages)
        words = ("--db", url, "import", str(export), "--processes", str(self.arguments.processes), "--json")
        begun, worked = time.perf_counter(), _of_children()
        told = json.loads(build.ran("-m", "roomlore", *words, folder=self.folder))
        figures = {"wall s": time.perf_counter() - begun, "processor s": _of_children() - worked}
        if told["added"] != self.arguments.messages // ROOM * ROOM:
            raise SystemExit(f"{build.name} imported {told['added']:,} messages")
        return figures

    async def over_http(self) -> Rounds:
        measured: dict[str, list[Figures]] = {build.name: [] for build in self.builds}
        query = " ".join(said_in(0, 1)[0].text.split()[:4])
        routes = [route for route in http_load.routes(query) if route.name in ROUTES]
        numbers = iter(range(10**9))
        with ExitStack() as stack:
            servers = {build: stack.enter_context(self._served(build)) for build in self.builds}
            for number in range(-1, self.arguments.rounds):
                told: dict[str, Figures] = {build.name: {} for build in self.builds}
                for route in routes:
                    for build in rotated(self.builds, number + 1):
                        requests = self.arguments.requests if number >= 0 else _WARM
                        turn, _ = await http_load.ask(servers[build], route, CONNECTIONS, requests, numbers)
                        told[build.name] |= {
                            f"{route.name}: processor ms": turn.processor or 0.0,
                            f"{route.name}: requests/s": turn.rate,
                        }
                for name, figures in told.items() if number >= 0 else ():
                    measured[name].append(figures)
        return measured

    @contextmanager
    def _served(self, build: Build) -> Iterator[tuple[int, str]]:
        config = self.folder / "roomlore.yaml"
        config.write_text("memory:\n  log_level: error\n", encoding="utf-8")
        with databases.fresh(self.server) as url:
            build.does(url, "batch", self.arguments.stored)
            command = build.program("--db", url, "--config", str(config), "serve", "--port", "0")
            with serving(command) as served:
                yield served


def write_export(path: Path, messages: int) -> None:
    """Write rooms of `ROOM` messages as roomlore exports them."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(messages // ROOM):
            for message in chat(f"room-{number}", ROOM, seed=number, words=7):
                record = {name: getattr(message, name) for name in ("id", "room_id", "sender_id", "text")}
                sent_at = message.sent_at.isoformat() if message.sent_at else None
                file.write(json.dumps({**record, "sent_at": sent_at}, ensure_ascii=False) + "\n")


def _of_children() -> float:
    """Return the processor seconds of the processes that ended, and of those that they waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sizes(url: str, messages: int) -> Figures:
    written = Path(url.removeprefix("sqlite:///")).stat().st_size
    tables = {f"`{name}`": size / messages for name, size, _ in storage_size.tables(url)}
    shown = {name: size for name, size in tables.items() if size >= storage_size.SHOWN}
    return {"bytes, as written": written / messages, "bytes, after VACUUM": sum(tables.values()), **shown}


def lines(rounds: Rounds) -> Iterator[str]:
    """Yield a line for each figure: medians, and how many times the second build is better, in the rounds from the
    least to the most."""
    before, after = rounds.values()
    for name in dict.fromkeys(name for figures in (*before, *after) for name in figures):
        pairs = [(one.get(name, 0.0), other.get(name, 0.0)) for one, other in zip(before, after, strict=True)]
        first, second = (median(values) for values in zip(*pairs, strict=True))
        ratios = [_better(name, *pair) for pair in pairs]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        yield f"{name} | {first:,.2f} | {second:,.2f} | {_better(name, first, second):.2f} | {spread}"


def _better(name: str, before: float, after: float) -> float:
    if name.endswith("requests/s"):
        before, after = after, before
    return before / after if after else float("nan")
