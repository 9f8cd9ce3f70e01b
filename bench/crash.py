"""Kills a process that replies and extracts, evolves, or forgets, again and again, and checks all that is stored.

The process is killed with SIGKILL at instants drawn by chance, and started anew at once: while it opens the database
(and makes its tables), while it works, and while it closes. The model it asks lives outside of it and remembers every
request. In the end one more life comes to rest, and everything is compared: what was acknowledged with what is stored,
extractions with the replies they are due for, requests with what came of them. Exit status 1 where anything is lost,
there twice, or was paid for twice though its step was finished.
"""

import argparse
import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from bench import databases
from bench.crash_checks import Known
from bench.crash_model import Requests, url_of
from bench.crash_report import Life, report_lives, report_log, report_wrong
from bench.crash_victim import Said, Task
from bench.crash_what import WHATS, What
from bench.progress import Progress
from roomlore_testkit.model_server import serve_models

Aim = Literal["making", "any", "opening", "working", "moment", "closing"]
AIMS: Mapping[Aim, tuple[int, float]] = {
    "making": (0, 0.6),
    "any": (5, 2.0),
    "opening": (2, 0.1),
    "working": (8, 3.0),
    "moment": (3, 0.06),
    "closing": (2, 0.3),
}
"""The targets of kills: how often each, and within how many seconds. Of the life's first word, while the first ones
make the tables; of its start; of its first word; of the open database; of the moment that `What` names; of being told
to close."""
_FIRST_ARE_OPENINGS = 0.03
_WORK_FIRST_SECONDS = 1.5
_LOOK_SECONDS = 0.02
_LOOK_CLOSELY_SECONDS = 0.002
_LONGEST_LIFE_SECONDS = 60.0
_LAST_HANDS_IN = 8
"""The least number of messages in each room by the time of the last life: enough for an extraction and an evolution,
however short the lives before it were."""
_SETTLE_SECONDS = 600.0
"""A room's extractions are made one after the other, and kills leave many to be made."""
_SEED = 20261122


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=_SEED)
    parser.add_argument("--what", choices=list(WHATS), default="replies", help="what the killed process does")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    if not await asyncio.to_thread(crash, arguments):
        raise SystemExit(1)


def crash(arguments: argparse.Namespace) -> bool:
    """The whole bench; whether all is well."""
    what = WHATS[arguments.what]
    model = what.model(arguments.seed)
    with (
        databases.database(arguments.database) as url,
        serve_models(model) as server,
        TemporaryDirectory(prefix="roomlore-crash-") as folder,
    ):
        print(f"{url.partition(':')[0]}: {arguments.kills} kills, seed {arguments.seed}", flush=True)
        bench = Crash(what, url, server.url, model, seed=arguments.seed, log=Path(folder) / "log")
        bench.run(arguments.kills)
        stored: Any = asyncio.run(what.read(url))
        wrong = what.violations(bench.known, stored)
        report_lives(bench.lives, lambda life: what.where(life, bench.known.requests))
        what.report(bench.lives, bench.known, stored)
        report_log(bench.log)
        report_wrong(wrong)
    return not wrong


@dataclass(slots=True)
class Aimed:
    """The end planned for a life. `after`: seconds of work before that begins to count."""

    aim: Aim
    seconds: float
    after: float


class Crash:
    """One database, one model, and the lives on them."""

    def __init__(self, what: What, url: str, model_url: str, model: Requests, *, seed: int, log: Path) -> None:
        self._what = what
        self._url, self._model_url = url, model_url
        self._seed = seed
        self._chance = random.Random(seed)
        self.log = log
        self.lives: list[Life] = []
        self.known = Known({room.name: 0 for room in what.rooms}, requests=model.requests)
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["bench.crash_warm"])

    def run(self, kills: int) -> None:
        first = self._context.Process(target=time.sleep, args=(0,))
        first.start()
        first.join()  # by then what all are forked from is warm
        progress = Progress("kills", kills)
        killed = 0
        while killed < kills and not self.known.wrong:
            killed += self._end_one(self._aimed(first=killed < kills * _FIRST_ARE_OPENINGS))
            progress.at(killed)
        progress.end(killed)
        self._settle()

    def _aimed(self, *, first: bool) -> Aimed:
        weights = [weight for weight, _ in AIMS.values()]
        aim: Aim = "making" if first else self._chance.choices(list(AIMS), weights)[0]
        after = self._chance.uniform(0, _WORK_FIRST_SECONDS)
        return Aimed(aim, self._chance.uniform(0, AIMS[aim][1]), after)

    def _end_one(self, aimed: Aimed) -> bool:
        """One life; whether it was killed. One that is told to close may be quicker."""
        with self._living() as (process, pipe, life):
            if not self._follow(process, pipe, life, aimed):
                self.known.wrong.append(f"a process was not {aimed.aim} after {_LONGEST_LIFE_SECONDS:.0f} s")
            life.killed = self._kill(process, life)
            self._hear_all(pipe, life)
            if not life.killed and process.exitcode:
                self.known.wrong.append(f"a process ended by itself with status {process.exitcode}")
        return life.killed

    def _follow(self, process: ForkServerProcess, pipe: Connection, life: Life, aimed: Aimed) -> bool:
        """Listens until the instant of the kill, or until the process ends; False where neither comes."""
        until = life.began + _LONGEST_LIFE_SECONDS
        look = _LOOK_CLOSELY_SECONDS if aimed.aim == "moment" else _LOOK_SECONDS
        while (now := time.monotonic()) < until:
            if aimed.aim == "closing" and not life.told_to_close and now >= _worked(aimed, life, until):
                life.told_to_close = now
                pipe.send("end")
            due = self._due(aimed, life)
            if not process.is_alive() or (due is not None and now >= due):
                return True
            self._hear(pipe, life, seconds=min(look, max((due or until) - now, 0)))
        return False

    def _kill(self, process: ForkServerProcess, life: Life) -> bool:
        """Return True if it lived until then."""
        process.kill()
        life.ended = time.monotonic()
        process.join()
        return process.exitcode == -9

    def _settle(self) -> None:
        """A last life hands in what is open, and lives until nothing is due."""
        last = {room: max(count, _LAST_HANDS_IN) for room, count in self.known.handed_in.items()}
        with self._living(last=last) as (process, pipe, life):
            until = life.began + _SETTLE_SECONDS
            while time.monotonic() < until and process.is_alive():
                self._hear(pipe, life, seconds=0.5)
                if "idle" in life.marks and asyncio.run(self._what.is_settled(self._url)):
                    pipe.send("end")
                    process.join(_LONGEST_LIFE_SECONDS)
                    break
            else:
                self.known.wrong.append(f"work was left after {_SETTLE_SECONDS:.0f} s, or the last process died")
            self._hear_all(pipe, life)
            life.killed = self._kill(process, life)

    def _due(self, aimed: Aimed, life: Life) -> float | None:
        """The time to kill, None as long as what it is aimed at has not begun."""
        began: Mapping[Aim, float | None] = {
            "making": life.marks.get("begun"),
            "any": life.began,
            "opening": life.marks.get("begun"),
            "working": life.marks.get("open"),
            "moment": self._what.moment(life, self.known.requests, _worked(aimed, life, float("inf"))),
            "closing": life.told_to_close,
        }
        at = began[aimed.aim]
        return None if at is None else at + aimed.seconds

    @contextmanager
    def _living(self, last: Mapping[str, int] | None = None) -> Iterator[tuple[ForkServerProcess, Connection, Life]]:
        ours, theirs = self._context.Pipe()
        life = Life(number=len(self.lives), began=time.monotonic(), first=self._first())
        task = Task(
            url=self._url,
            model_url=url_of(self._model_url, life.number),
            seed=f"{self._seed} {life.number}",
            log=str(self.log),
            first=life.first,
            again=self._again(life.first),
            last=last,
        )
        process = self._context.Process(target=self._what.live, args=(theirs, task), daemon=True)
        process.start()
        theirs.close()
        self.lives.append(life)
        try:
            yield process, ours, life
        finally:
            process.kill()
            process.join()
            ours.close()
            life.ended = life.ended or time.monotonic()

    def _first(self) -> dict[str, int]:
        """The first number of each room that was not acknowledged."""
        acknowledged = Counter(room for room, _ in self.known.acknowledged)
        return {room.name: acknowledged[room.name] for room in self._what.rooms}

    def _again(self, first: Mapping[str, int]) -> dict[str, Sequence[int]]:
        """Numbers that were acknowledged: the last one, and any."""
        return {
            room: [number for number in (count - 1, self._chance.randrange(count)) if self._chance.random() < 0.5]
            if count
            else []
            for room, count in first.items()
        }

    def _hear_all(self, pipe: Connection, life: Life) -> None:
        while self._hear(pipe, life, seconds=0):
            pass

    def _hear(self, pipe: Connection, life: Life, *, seconds: float) -> bool:
        """Return True if something was said. A word that a kill cut short does not count."""
        try:
            report = pipe.recv() if pipe.poll(seconds) else None
        except (EOFError, ConnectionError):
            return False
        if report is not None:
            self._note(report, life)
        return report is not None

    def _note(self, report: Said, life: Life) -> None:
        known, place = self.known, (report.room, report.number)
        if report.what == "handing in":
            life.under_way.add(place)
            life.begun[report.room].append(time.monotonic())
            known.handed_in[report.room] = max(known.handed_in[report.room], report.number + 1)
        elif report.what == "done":
            life.under_way.discard(place)
            life.done += 1
            if place in known.acknowledged and report.gave not in (None, known.acknowledged[place]):
                known.wrong.append(f"{place}: was replied {known.acknowledged[place]} first, then {report.gave}")
            life.again += place in known.acknowledged
            known.acknowledged.setdefault(place, report.gave)
        else:
            life.marks.setdefault(report.what, time.monotonic())


def _worked(aimed: Aimed, life: Life, otherwise: float) -> float:
    """The time at which it has worked as long as it should before its end begins."""
    return life.marks["open"] + aimed.after if "open" in life.marks else otherwise
