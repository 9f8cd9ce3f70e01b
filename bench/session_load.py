"""Drives many conversations from several processes while Redis is killed, restarted and held still; checks all of it.

Each writer is a process of its own. Redis goes away and comes back at fixed shares of the load. Afterwards everything
the writers were told is looked for in the database, and every session is read with Redis and without. Exit code 1 if an
error reached a caller, or if anything is lost, there twice or different.

Rates are turns that were acknowledged in a second, each with the read of its context. Those with Redis and without are
taken in rounds of their own, in turn and undisturbed, so that their ratio holds; those by what became of Redis are of
the one disturbed load.
"""

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Literal
from uuid import uuid4

import roomlore
from bench import databases
from bench.progress import Progress
from bench.redis_process import RedisProcess, redis_process
from bench.session_checks import Findings, check, gathered
from bench.session_writers import Call, Report, Task, settings, shares, started
from roomlore.adapters.redis import TIMEOUT_SECONDS

State = Literal["up", "killed", "paused"]
PLAN: Sequence[tuple[float, State]] = (
    (0.10, "killed"), (0.20, "up"), (0.28, "killed"), (0.285, "up"), (0.38, "paused"), (0.46, "up"),
    (0.55, "killed"), (0.65, "up"), (0.72, "killed"), (0.725, "up"), (0.80, "killed"), (0.85, "up"),
)  # fmt: skip
"""At which share of the turns Redis becomes what."""
MIN_PAUSE_SECONDS = 3.0
ROUNDS = 3
SLOWEST = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--turns", type=int, default=50, help="turns of each conversation")
    parser.add_argument("--writers", type=int, default=8, help="processes that write")
    parser.add_argument("--window", type=int, default=2_400, help="tokens that the model takes")
    parser.add_argument("--round", type=int, default=32, help="conversations of a round with Redis or without; 0: none")
    parser.add_argument("--no-kill", action="store_true", help="leave Redis alone")
    parser.add_argument("--redis-url", help="a Redis that may be written to, and is left alone")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    if not await asyncio.to_thread(load, arguments):
        raise SystemExit(1)


def load(arguments: argparse.Namespace) -> bool:
    """The whole bench; whether all is well."""
    own = nullcontext(None) if arguments.redis_url else redis_process()
    with databases.database(arguments.database) as url, own as redis:
        bench = SessionLoad(arguments, url, redis)
        return bench.run()


@dataclass(frozen=True, slots=True)
class Span:
    """A state of Redis, and its duration."""

    state: State
    began: float
    ended: float


class SessionLoad:
    """One database, one Redis, and loads on them."""

    def __init__(self, arguments: argparse.Namespace, url: str, redis: RedisProcess | None) -> None:
        self._given = arguments
        self._url = url
        self._redis = redis
        self._redis_url = redis.url if redis else arguments.redis_url
        self._name = f"load-{uuid4().hex[:8]}"

    def run(self) -> bool:
        given = self._given
        print(
            f"{self._url.partition(':')[0]}: {given.conversations} conversations x {given.turns} turns, "
            f"{given.writers} processes, window {given.window} tokens",
            flush=True,
        )
        disturbed = self._redis is not None and not given.no_kill
        asyncio.run(self._make_database())
        reports, spans = self._drive(self._name, given.conversations, self._redis_url, disturbed=disturbed)
        names = [f"{self._name}-{place}" for place in range(given.conversations)]
        findings, read = asyncio.run(self._check(reports, names))
        report(reports, spans, findings, read)
        if given.round:
            self._compare()
        return not findings.wrong and not any(each.errors or each.stale for each in reports)

    async def _make_database(self) -> None:
        async with roomlore.open(self._url, settings=settings("", self._given.window), background=False):
            pass

    def _drive(
        self, name: str, conversations: int, redis_url: str, *, disturbed: bool
    ) -> tuple[list[Report], list[Span]]:
        given = self._given
        tasks = [
            Task(self._url, redis_url, given.window, each)
            for each in shares(name, conversations, given.turns, given.writers)
        ]
        progress, total = Progress("turns", conversations * given.turns), conversations * given.turns
        with started(tasks) as (running, written):
            spans = self._disturb(running, written, progress, total if disturbed else None)
            reports = [each.result() for each in running]
        progress.end(sum(len(turns) for each in reports for turns in each.acknowledged.values()))
        return reports, spans

    def _disturb(
        self, running: Sequence[Future[Report]], written: Callable[[], int], progress: Progress, total: int | None
    ) -> list[Span]:
        """Follows the plan until the writers are done; at the end Redis is up."""
        plan = list(PLAN) if total else []
        spans: list[Span] = []
        state: State = "up"
        while not written() and not all(each.done() for each in running):
            time.sleep(0.01)
        began = time.monotonic()
        while not all(each.done() for each in running):
            done = written()
            progress.at(done)
            if total and done >= total:
                break
            due = plan and total and done >= plan[0][0] * total
            if due and (state != "paused" or time.monotonic() - began >= MIN_PAUSE_SECONDS):
                wanted = plan.pop(0)[1]
                self._become(wanted, state)
                now = time.monotonic()
                spans.append(Span(state, began, now))
                state, began = wanted, now
            time.sleep(0.01)
        spans.append(Span(state, began, time.monotonic()))
        self._become("up", state)
        return spans

    def _become(self, wanted: State, now: State) -> None:
        if self._redis is None or wanted == now:
            return
        if wanted == "killed":
            self._redis.kill()
        elif wanted == "paused":
            self._redis.pause()
        elif now == "paused":
            self._redis.go_on()
        else:
            self._redis.start()

    async def _check(self, reports: Sequence[Report], names: Sequence[str]) -> tuple[Findings, str]:
        async with AsyncExitStack() as closing:
            cached, plain = [
                await closing.enter_async_context(
                    roomlore.open(self._url, settings=settings(redis_url, self._given.window), background=False)
                )
                for redis_url in (self._redis_url, "")
            ]
            findings = await check(cached, plain, gathered(reports, names, self._given.turns))
            lines = [line for line in cached.prometheus().decode().splitlines() if "session_cache_total{" in line]
        return findings, ", ".join(line.partition('result="')[2].replace('"}', "") for line in lines)

    def _compare(self) -> None:
        rates: dict[str, list[float]] = {"with": [], "without": []}
        for number in range(2 * ROUNDS):
            way = ("with", "without")[(number + number // 2) % 2]
            redis_url = self._redis_url if way == "with" else ""
            reports, _ = self._drive(f"{self._name}-{number}", self._given.round, redis_url, disturbed=False)
            rates[way].append(rate([call for each in reports for call in each.calls]))
        redis, other = median(rates["with"]), median(rates["without"])
        print(
            f"undisturbed, {ROUNDS} rounds of {self._given.round} conversations each: with Redis {redis:.0f} turns/s, "
            f"without {other:.0f}, ratio {redis / other:.2f}"
        )


def rate(calls: Sequence[Call]) -> float:
    """Turns written in a second, from the first call to the end of the last."""
    ended = max(call.began + call.seconds for call in calls)
    return sum(call.name == "write_turn" for call in calls) / (ended - min(call.began for call in calls))


def report(reports: Sequence[Report], spans: Sequence[Span], findings: Findings, read: str) -> None:
    calls = [call for each in reports for call in each.calls]
    errors = [error for each in reports for error in each.errors]
    cache = sum((each.cache for each in reports), Counter[str]())
    print(f"errors that reached a caller: {len(errors)}", *errors[:SLOWEST], sep="\n  ")
    print(f"contexts without what their writer had just said: {sum(len(each.stale) for each in reports)}")
    print(f"turns: {findings.turns:,} acknowledged, {findings.found:,} found, each once")
    print(
        f"checkpoints: {findings.checkpoints:,}, {findings.checkpoints / max(1, findings.conversations):.1f} a "
        f"conversation; conflicts: {sum(each.conflicts for each in reports)} of racing ones"
    )
    print(
        f"{findings.conversations} conversations read with Redis and without, and beside what the writers know: "
        f"{len(findings.wrong)} differences",
        *findings.wrong[:SLOWEST],
        sep="\n  ",
    )
    print(f"lookups in the cache, during the load: {shares_text(cache)}; while checking: {read}")
    report_speed(reports, calls, spans)


def shares_text(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def report_speed(reports: Sequence[Report], calls: Sequence[Call], spans: Sequence[Span]) -> None:
    print(f"turns a second: {rate(calls):.0f}")
    for state in ("up", "killed", "paused"):
        held = [span for span in spans if span.state == state]
        seconds = sum(span.ended - span.began for span in held)
        if held:
            turns = sum(call.name == "write_turn" and state_at(spans, call.began) == state for call in calls)
            print(f"  Redis {state}, {len(held)} times, {seconds:.0f} s in all: {turns / seconds:.0f}")
    print(f"calls, median and 99th percentile in ms, and the longest, by Redis: (time-out {timeout_ms():.0f} ms)")
    for name in sorted({call.name for call in calls}):
        print(f"  {name}: " + "; ".join(times(name, state, calls, spans) for state in ("up", "killed", "paused")))
    slowest = sorted(calls, key=lambda call: -call.seconds)[:SLOWEST]
    print("slowest calls: " + ", ".join(f"{c.name} {c.seconds * 1e3:.0f} ms ({touched(spans, c)})" for c in slowest))
    report_pauses(reports, spans)


def report_pauses(reports: Sequence[Report], spans: Sequence[Span]) -> None:
    """Return how many calls waited for the paused Redis: of each process those on the way, then one in a second."""
    for span in spans:
        if span.state == "paused":
            failures = [sum(span.began <= moment < span.ended for moment in each.failures) for each in reports]
            print(
                f"Redis paused for {span.ended - span.began:.1f} s: {max(failures)} calls of one process at most "
                f"waited out its time, {sum(failures)} of all"
            )


def timeout_ms() -> float:
    return TIMEOUT_SECONDS * 1e3


def times(name: str, state: State, calls: Sequence[Call], spans: Sequence[Span]) -> str:
    seconds = sorted(call.seconds * 1e3 for call in calls if call.name == name and state_at(spans, call.began) == state)
    if not seconds:
        return f"{state} -"
    return f"{state} {median(seconds):.1f}, {seconds[int(len(seconds) * 0.99)]:.0f}, {seconds[-1]:.0f}"


def state_at(spans: Sequence[Span], moment: float) -> State:
    return next((span.state for span in spans if moment < span.ended), "up")


def touched(spans: Sequence[Span], call: Call) -> str:
    """Return the state of Redis during the call."""
    ended = call.began + call.seconds
    states = [span.state for span in spans if span.began < ended and call.began < span.ended]
    return " and ".join(dict.fromkeys(states)) or "up"
