"""Keeps a service under load for half an hour while each of its parts is killed in turn, and checks all that it holds.

PostgreSQL, Redis, a scripted model, `roomlore serve --no-work` and `roomlore worker` are processes of their own. First
the bench measures what the server bears, then it sends a share of that, paced, and kills a part with SIGKILL every
minute. A client repeats a write with the same id until it is acknowledged. Exit code 1 if an acknowledged write is
lost, there twice or different, or if a client was told anything but what the documentation says of a part that is down.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from typing import IO, Protocol
from uuid import uuid4

import roomlore
from bench.chatter import chat
from bench.databases import PostgresProcess
from bench.http_load import ROOMS, Route, fill
from bench.many_processes import family_ms
from bench.redis_process import free_port, redis_process
from bench.reply_latency import PROGRAM, settings
from bench.soak_load import ALLOWED, BROKEN, LAST_SECONDS, MIX, MOST_OPEN, Answered, Load, Outage
from roomlore.core.models import StoredMessage
from roomlore.core.replies.reply import BROKEN_OFF, about
from roomlore_testkit.model_server import Asked, ModelServer, Says

KILLED = ("worker", "server", "PostgreSQL", "Redis", "model")
_FILLED = 500
"""Messages of each room at the beginning: more than a session shows, so that rooms do not get slower during the run."""
_LOOK_SECONDS = 1.0
_MODEL = "from bench.soak import serve_model; serve_model()"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--share", type=float, default=0.8, help="of the requests a second that the server bears")
    parser.add_argument("--measure", type=float, default=20.0, help="seconds to measure these")
    parser.add_argument("--every", type=float, default=60.0, help="seconds from one kill to the next")
    parser.add_argument("--down", type=float, default=3.0, help="seconds that a part stays away")
    parser.add_argument("--log", type=Path, help="what the server and the worker say, by default nowhere")


class Part(Protocol):
    """What is killed and started again, at the same address."""

    def start(self) -> None: ...

    def kill(self) -> None: ...


class Program:
    """A command that prints a line once it is ready. `lives`: its resident memory in kB, each second of each life."""

    def __init__(self, command: Sequence[str], log: IO[bytes] | None) -> None:
        self._command, self._log = command, log
        self._process: Popen[bytes] | None = None
        self.lives: list[list[int]] = []

    def start(self) -> None:
        self._process = Popen(self._command, stdout=PIPE, stderr=self._log)
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise SystemExit(f"{' '.join(self._command[-4:])} did not start; --log says why")
        self.lives.append([])

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def ended(self) -> bool:
        """Return True if it ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def look(self) -> None:
        """Note the memory of the process and of those that it started, if it runs."""
        if self._process is not None and self.lives:
            self.lives[-1].append(sum(map(resident_kb, family_ms(self._process.pid))))


async def run(arguments: argparse.Namespace) -> None:
    with ExitStack() as closing:
        postgres = PostgresProcess()
        closing.callback(postgres.close)
        redis = closing.enter_context(redis_process())
        folder = Path(closing.enter_context(TemporaryDirectory(prefix="roomlore-bench-")))
        port, models = free_port(), free_port()
        own = {**settings(f"http://127.0.0.1:{models}/v1", 5), "durable_work": "dbos", "redis_url": redis.url}
        own |= {"auto_checkpoint": True, "log_level": "warning"}
        (folder / "roomlore.yaml").write_text(json.dumps({"memory": own}), encoding="utf-8")
        log = closing.enter_context((arguments.log or folder / "log").open("wb"))
        program = [*PROGRAM, "--db", postgres.url, "--config", str(folder / "roomlore.yaml")]
        programs = {
            "model": Program([sys.executable, "-c", _MODEL, str(models)], log),
            "server": Program([*program, "serve", "--no-work", "--port", str(port)], log),
            "worker": Program([*program, "worker"], log),
        }
        await fill(postgres.url, _FILLED)
        async with roomlore.open(postgres.url, background=False) as lore:
            for number in range(ROOMS):
                await lore.sessions.create_session(f"room-{number}", "person-0")
        for started in programs.values():
            closing.callback(started.kill)
            await asyncio.to_thread(started.start)
        load = Load(port)
        await load.closed(arguments.measure / 4)
        bears = await load.closed(arguments.measure)
        rate, load.answered = bears * arguments.share, []
        print(f"the server bears {bears:.1f} requests/s; {rate:.1f} for {arguments.minutes:g} minutes", flush=True)
        begun = time.monotonic()
        looking = asyncio.create_task(_look(list(programs.values())))
        async with asyncio.TaskGroup() as group:
            parts: Mapping[str, Part] = {**programs, "PostgreSQL": postgres, "Redis": redis}
            killing = group.create_task(kill(parts, load, arguments))
            group.create_task(load.paced(rate, arguments.minutes * 60, killing.done))
        looking.cancel()
        tell(load, time.monotonic() - begun)
        tell_memory(programs)
        wrong = await check(load, postgres.url)
    if wrong or load.errors:
        raise SystemExit(1)


async def _look(programs: Sequence[Program]) -> None:
    while True:
        for program in programs:
            program.look()
        await asyncio.sleep(_LOOK_SECONDS)


async def kill(parts: Mapping[str, Part], load: Load, arguments: argparse.Namespace) -> None:
    """Kill the parts in turn, each once at least. A part that ended by itself is an error."""
    begun = time.monotonic()
    for number in range(max(len(KILLED), int(arguments.minutes * 60 / arguments.every))):
        await asyncio.sleep(begun + (number + 0.5) * arguments.every - time.monotonic())
        part = KILLED[number % len(KILLED)]
        outage = Outage(part, time.monotonic())
        load.outages.append(outage)
        await asyncio.to_thread(parts[part].kill)
        await asyncio.sleep(arguments.down)
        await asyncio.to_thread(parts[part].start)
        outage.back = time.monotonic()
        ended = [name for name, one in parts.items() if isinstance(one, Program) and one.ended()]
        load.errors += [f"the {name} ended by itself" for name in ended]
        away = f"{part} was away for {outage.back - outage.began:.1f} s"
        print(f"{away}; {len(load.errors)} errors so far", *load.errors[-1:], file=sys.stderr, flush=True)


def tell(load: Load, seconds: float) -> None:
    def outside(answered: Answered) -> bool:
        return not any(outage.covers(answered.due, answered.ended) for outage in load.outages)

    print("\n| request | answered | a second | p50, ms | p99 | p99, also while a part was down | longest |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in dict.fromkeys(MIX):
        of_route = [answered for answered in load.answered if answered.route == name]
        took = sorted(1000 * (answered.ended - answered.due) for answered in of_route)
        calm = sorted(1000 * (answered.ended - answered.due) for answered in of_route if outside(answered))
        cells = (at(calm, 0.5), at(calm, 0.99), at(took, 0.99), at(took, 1.0))
        print(f"| {name} | {len(took):,} | {len(took) / seconds:.1f} | {' | '.join(cells)} |")
    print("\n| part | killed | away, seconds | answers 503 | in a reply | refused or broken |")
    print("|---|---:|---:|---:|---:|---:|")
    for part in KILLED:
        outages = [outage for outage in load.outages if outage.part == part]
        counts = sum((outage.told for outage in outages), Counter[str]())
        away = f"{median(outage.back - outage.began for outage in outages):.1f}" if outages else "-"
        print(
            f"| {part} | {len(outages)} | {away} | {' | '.join(f'{counts[what]:,}' for what in (*ALLOWED, BROKEN))} |"
        )
    print(f"\n{load.not_stored:,} replies waited for the database and were asked for again")
    print(f"{load.left_out} requests left out since {MOST_OPEN:,} were open; {len(load.errors)} errors")
    for error, times in Counter(load.errors).most_common(10):
        print(f"  {times} times {error}: {load.reasons.get(error, '')}".rstrip(": "), flush=True)


def at(values: Sequence[float], share: float) -> str:
    return f"{values[min(len(values) - 1, int(len(values) * share))]:,.0f}" if values else "-"


def tell_memory(programs: Mapping[str, Program]) -> None:
    """Print the memory in each life: after a quarter of it, when caches are in use, and in its last
    seconds: the most of them, since a process that is being killed has less."""
    for name in ("server", "worker"):
        lives = [life for life in programs[name].lives if life]
        ranges = ", ".join(f"{life[len(life) // 4] / 1024:.0f} to {max(life[-5:]) / 1024:.0f} MB" for life in lives)
        print(f"memory of the {name}, in each of its lives: {ranges}", flush=True)


def resident_kb(pid: int) -> int:
    """Return the resident memory of a process, 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


async def check(load: Load, url: str) -> list[str]:
    """Print and return what is wrong in the database, once the worker has nothing to do."""
    await _idle(load)
    expected = {**load.acknowledged}
    for number in range(ROOMS):
        expected |= {(message.room_id, message.id): message.text for message in chat(f"room-{number}", _FILLED)}
    async with roomlore.open(url, background=False) as lore:
        stored = [message async for message in lore.messages.export()]
        report = await lore.privacy.verify()
    wrong = compared(stored, expected, load.asked)
    wrong += [f"{what}: {times} faults" for what, times in report.counts.items()]
    print(f"{len(expected):,} messages were acknowledged and {len(stored):,} are stored: {len(wrong)} are wrong")
    print(*wrong[:10], f"verified: {dict(report.checked)}, {'sound' if report.sound else 'NOT SOUND'}", sep="\n")
    return wrong


def compared(
    stored: Iterable[StoredMessage], expected: Mapping[tuple[str, str], str], ids_asked: set[str]
) -> list[str]:
    """Return what is lost, there twice, different, or there without having been acknowledged. `ids_asked`: the messages
    that have replies; one that broke off stays beside the whole one."""
    seen, replies, wrong = Counter[tuple[str, str]](), Counter[str](), list[str]()
    for message in stored:
        place = message.room_id, message.id
        seen[place] += 1
        if place in expected and message.text != expected[place]:
            wrong.append(f"{place} has another text")
        if message.reply_to in ids_asked and about(message):
            replies[message.reply_to] += not about(message).get(BROKEN_OFF)
        elif place not in expected:
            wrong.append(f"{place} was never acknowledged")
    wrong += [f"{place} is lost" for place in expected.keys() - seen.keys()]
    wrong += [f"{place} is there {times} times" for place, times in seen.items() if times > 1]
    return wrong + [f"{message_id} has {times} replies" for message_id, times in replies.items() if times > 1]


async def _idle(load: Load) -> None:
    """Wait until no job waits or runs, a minute at most, and print how many there are."""
    ends, jobs = time.monotonic() + LAST_SECONDS, dict[str, int]()
    while time.monotonic() < ends:
        for status in ("waiting", "running", "failed"):
            status_code, body, _ = await load.ask(Route("", "GET", f"/jobs?status={status}&limit=200").request(0))
            jobs[status] = len(json.loads(body)["jobs"]) if status_code == "200" else -1
        if not jobs["waiting"] and not jobs["running"]:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    print(", ".join(f"{count} jobs {status}" for status, count in jobs.items()), flush=True)


def serve_model() -> None:
    """Serve a model at the port of the command line. No two of its answers are the same."""

    def answer(_: Asked) -> Says:
        return Says(text=f"That was settled on Monday, as note {uuid4().hex} says.", between=0.01)

    async def serve() -> None:
        async with ModelServer(answer, port=int(sys.argv[1])) as server:
            print(server.url, flush=True)
            await asyncio.Event().wait()

    asyncio.run(serve())
