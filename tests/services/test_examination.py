"""Probes side by side: what hangs, fails or breaks hides none of the others."""

import asyncio
import time

from roomlore.adapters.inprocess import SystemClock
from roomlore.core.errors import CacheUnavailable, InvalidInput
from roomlore.core.health import Finding, say
from roomlore.services.health import Probe, examine

WELL = say("langfuse.answers", name="好 well")


class Ticks:
    """A clock whose time grows by a second at each look."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        raise AssertionError("nobody asks for the time of day")

    def monotonic(self):
        self.seconds += 1
        return self.seconds


def probe(part, error=None, **more):
    async def look():
        if error is not None:
            raise error
        return [Finding(part, "ok", WELL)]

    return Probe(part, look, **more)


async def test_what_goes_wrong_is_a_finding_in_its_place():
    started = asyncio.Event()

    async def hang():
        started.set()
        await asyncio.Event().wait()

    async def after():
        await started.wait()
        return [Finding("last", "ok", WELL), Finding("more", "warn", WELL, say("clock.do"))]

    found = await examine(
        [
            Probe("stuck", hang),
            probe("down", CacheUnavailable("Redis could not be reached.")),
            probe("wrong", InvalidInput("This URL is none.")),
            probe("broken", KeyError("a secret")),
            Probe("last", after),
        ],
        clock=Ticks(),
        timeout_seconds=1,
    )
    assert [(one.part, one.verdict) for one in found] == [
        ("stuck", "fail"), ("down", "fail"), ("wrong", "fail"), ("broken", "fail"), ("last", "ok"), ("more", "warn"),
    ]  # fmt: skip
    assert found[0].told == "no answer within 1 s"
    assert found[1].told == "Redis could not be reached."
    assert found[3].told == "KeyError"
    assert all(one.advice for one in found if one.verdict != "ok")


async def test_what_others_held_up_is_looked_at_again_alone():
    looks = []

    async def answers():
        looks.append("answers")
        async with asyncio.timeout(0.05):
            await asyncio.sleep(0.01)
        return [Finding("quick", "ok", WELL)]

    async def loads():
        looks.append("loads")
        await asyncio.sleep(0)
        time.sleep(0.2)  # noqa: ASYNC251 - as an import does
        return [Finding("heavy", "ok", WELL)]

    probes = [Probe("quick", answers, slow_ms=50_000), Probe("heavy", loads)]
    found = await examine(probes, clock=SystemClock(), timeout_seconds=20)
    assert [one.verdict for one in found] == ["ok", "ok"]
    assert looks == ["answers", "loads", "answers"]


async def test_what_is_down_is_looked_at_twice_and_what_costs_once():
    looks = []

    async def down(part):
        looks.append(part)
        raise CacheUnavailable("Redis could not be reached.")

    probes = [Probe("redis", lambda: down("redis"), slow_ms=50), Probe("models", lambda: down("models"))]
    found = await examine(probes, clock=SystemClock(), timeout_seconds=20)
    assert [one.verdict for one in found] == ["fail", "fail"]
    assert looks == ["redis", "models", "redis"]


async def test_a_slow_look_is_a_warning_and_one_that_asks_nobody_has_no_time():
    slow, quick, idle = await examine(
        [probe("slow", slow_ms=999), probe("quick", slow_ms=1_000_000), probe("idle")],
        clock=Ticks(),
        timeout_seconds=60,
    )
    assert (slow.verdict, quick.verdict) == ("warn", "ok")
    assert slow.ms >= 1000
    assert quick.ms >= 1000
    assert idle.ms is None
