"""Turns of tenants: who waits for whom."""

import asyncio

import pytest

from roomlore_server.http.turns import AT_WORK, Turns


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def turns(clock):
    return Turns(clock)


class Requests:
    """Requests that stay at work until they are told to end."""

    def __init__(self, turns):
        self.turns = turns
        self.begun = []
        self.ends = {}
        self.tasks = []

    async def send(self, tenant, count=1):
        for _ in range(count):
            name = f"{tenant}-{len(self.tasks)}"
            self.ends[name] = asyncio.Event()
            self.tasks.append(asyncio.create_task(self._work(tenant, name)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _work(self, tenant, name):
        async with self.turns.turn(tenant):
            self.begun.append(name)
            await self.ends[name].wait()

    async def end(self, name):
        self.ends[name].set()
        for _ in range(4):
            await asyncio.sleep(0)

    async def close(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def requests(turns):
    made = Requests(turns)
    yield made
    await made.close()


async def test_a_tenant_alone_is_let_in_up_to_the_most_at_work(requests, turns):
    await requests.send("loud", AT_WORK + 3)
    assert len(requests.begun) == AT_WORK
    assert turns.waiting("loud") == 3
    await requests.end(requests.begun[0])
    assert len(requests.begun) == AT_WORK + 1


async def _heavy(requests, clock, count=4):
    """Have the loud tenant use much of the server, with that many requests waiting after it."""
    await requests.send("loud", AT_WORK)
    clock.now += 0.2
    for name in list(requests.begun):
        await requests.end(name)
    requests.begun.clear()


async def test_one_that_used_much_waits_while_another_is_at_work(requests, clock):
    await _heavy(requests, clock)
    await requests.send("quiet")
    await requests.send("loud", 3)
    assert requests.begun == ["quiet-16"]
    await requests.end("quiet-16")
    assert requests.begun == ["quiet-16", "loud-17"], "one of its requests at a time"


async def test_the_other_is_let_in_at_once_beside_it(requests, clock):
    await _heavy(requests, clock)
    await requests.send("quiet")
    await requests.end("quiet-16")
    await requests.send("loud", 3)
    assert requests.begun == ["quiet-16", "loud-17"]
    await requests.send("quiet")
    assert requests.begun[-1] == "quiet-20"


async def test_after_each_there_is_a_pause_as_long_as_it_took(requests, clock):
    await _heavy(requests, clock)
    await requests.send("quiet")
    await requests.end("quiet-16")
    await requests.send("loud", 3)
    clock.now += 0.01
    await requests.end("loud-17")
    assert requests.begun == ["quiet-16", "loud-17"]
    clock.now += 0.011
    await asyncio.sleep(0.05)
    assert requests.begun == ["quiet-16", "loud-17", "loud-18"]


async def test_with_no_other_tenant_there_it_waits_no_more(requests, clock):
    await _heavy(requests, clock)
    await requests.send("quiet")
    await requests.end("quiet-16")
    clock.now += 10
    await requests.send("loud", 3)
    assert len(requests.begun) == 4


async def test_two_that_flood_are_served_in_turn(requests, clock):
    await requests.send("loud", AT_WORK)
    await requests.send("noisy", AT_WORK)
    clock.now += 0.2
    for name in list(requests.begun):
        await requests.end(name)
    await requests.send("quiet")
    requests.begun.clear()
    await requests.send("loud", 3)
    await requests.send("noisy", 3)
    await requests.end("quiet-32")
    for _ in range(3):
        clock.now += 0.001
        await requests.end(requests.begun[-1])
        clock.now += 0.002
        await asyncio.sleep(0.02)
    assert [name.split("-")[0] for name in requests.begun] == ["loud", "noisy", "loud", "noisy"]


async def test_a_long_request_gives_its_turn_back(turns, requests):
    await requests.send("loud", AT_WORK + 1)
    assert turns.waiting("loud") == 1
    await asyncio.sleep(0.4)
    assert turns.waiting("loud") == 0, "requests that wait for a model do not hold up the tenant's others"


async def test_a_request_that_is_cancelled_leaves_the_line(turns, requests):
    await requests.send("loud", AT_WORK + 2)
    requests.tasks[AT_WORK].cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert turns.waiting("loud") == 1
    await requests.end(requests.begun[0])
    assert requests.begun[-1] == f"loud-{AT_WORK + 1}"
