"""Redis down, killed, paused, slow or talking rubbish: `CacheUnavailable` or the right value, in bounded time."""

import asyncio
import random
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from scripted_redis import Command, Reply, ScriptedRedis, bulk

from redis_server import RedisServer
from roomlore.adapters.redis import open_redis
from roomlore.adapters.redis.cache import session_key
from roomlore.core.errors import CacheUnavailable
from roomlore.ports.coordination import SessionCache

SHORT = 0.5
BUSY = 5
"""Seconds that a busy machine may take for it."""
LONG = 20.0
SECRET = "allergic to peanuts"


async def put(cache: SessionCache, name: str = "c", value: str = SECRET) -> None:
    await cache.put(tenant="default", conversation_id=name, value=value, seconds=60)


async def get(cache: SessionCache, name: str = "c") -> str | None:
    return await cache.get(tenant="default", conversation_id=name)


async def drop(cache: SessionCache, name: str = "c") -> None:
    await cache.drop(tenant="default", conversation_id=name)


async def assert_all_fail(cache: SessionCache, text: str, *, calls: int = 1) -> None:
    """With a text that says what to do, shows nothing, and together."""
    start = time.monotonic()
    asked = [verb(cache) for verb in (get, put, drop) for _ in range(calls)]
    for ended in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(ended, CacheUnavailable)
        assert re.search(text, str(ended))
        assert SECRET not in str(ended)
    assert time.monotonic() - start < BUSY


@asynccontextmanager
async def opened(url: str, *, seconds: float = LONG) -> AsyncIterator[SessionCache]:
    cache = open_redis(url, timeout_seconds=seconds)
    try:
        yield cache
    finally:
        await cache.close()


@pytest.fixture
async def patient(redis_server: RedisServer) -> AsyncIterator[SessionCache]:
    """Waits long, so that what is seen is no time-out."""
    async with opened(redis_server.url) as cache:
        yield cache


@pytest.fixture
async def hasty(redis_server: RedisServer) -> AsyncIterator[SessionCache]:
    async with opened(redis_server.url, seconds=SHORT) as cache:
        yield cache


async def test_down_from_the_start(redis_server, patient):
    redis_server.kill()
    await assert_all_fail(patient, "could not be reached")
    redis_server.start()
    await put(patient)
    assert await get(patient) == SECRET


async def test_killed_between_calls_and_started_again(redis_server, patient):
    await put(patient)
    redis_server.kill()
    await assert_all_fail(patient, "could not be reached")
    redis_server.start()
    assert await get(patient) is None
    await put(patient)
    assert await get(patient) == SECRET


async def test_a_restart_nobody_noticed_is_not_felt(redis_server, patient):
    """Many connections are open; the loop does not run while the server is replaced."""
    await asyncio.gather(*(put(patient, str(number)) for number in range(60)))
    redis_server.restart()
    assert await asyncio.gather(*(get(patient, str(number)) for number in range(60))) == [None] * 60
    await put(patient)
    redis_server.restart()
    await put(patient)
    assert await get(patient) == SECRET


async def test_killed_in_the_middle_of_a_call(redis_server, patient):
    await put(patient)
    redis_server.pause()
    calls = [asyncio.create_task(get(patient)) for _ in range(40)]
    await asyncio.sleep(0.1)
    redis_server.kill()
    for ended in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(ended, CacheUnavailable)
    redis_server.start()
    assert await get(patient) is None


async def test_started_again_in_the_middle_of_a_call(redis_server, patient):
    await put(patient)
    redis_server.pause()
    call = asyncio.create_task(put(patient, value="newer"))
    await asyncio.sleep(0.05)
    redis_server.restart()
    await call
    assert await get(patient) == "newer"


async def test_paused(redis_server, hasty):
    await put(hasty)
    redis_server.pause()
    await assert_all_fail(hasty, "in time")
    await assert_all_fail(hasty, "in time", calls=50)
    redis_server.resume()
    await put(hasty)
    assert await get(hasty) == SECRET


async def test_paused_with_more_on_the_way_than_the_system_buffers(redis_server, hasty):
    """Nothing of it stays behind: no connection lingers until the server takes it."""
    before = open_sockets()
    await put(hasty)
    redis_server.pause()
    with pytest.raises(CacheUnavailable, match="in time"):
        await put(hasty, value="x" * 16_000_000)
    await hasty.close()
    await asyncio.sleep(0)
    assert open_sockets() == before


async def test_closing_while_paused_is_bounded(redis_server, hasty):
    await put(hasty)
    redis_server.pause()
    calls = [asyncio.create_task(get(hasty)) for _ in range(50)]
    await asyncio.sleep(0)
    start = time.monotonic()
    await hasty.close()
    assert time.monotonic() - start < BUSY
    for ended in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(ended, CacheUnavailable)
    await assert_all_fail(hasty, "closed")


async def test_what_a_paused_server_says_later_reaches_nobody(redis_server, patient):
    for number in range(40):
        await put(patient, str(number), str(number))
    for _ in range(3):
        redis_server.pause()
        calls = [asyncio.create_task(get(patient, str(number))) for number in range(40)]
        await asyncio.sleep(0.02)
        for call in random.Random(1).sample(calls, 20):
            call.cancel()
        await asyncio.sleep(0.02)
        redis_server.resume()
        await asyncio.gather(*calls, return_exceptions=True)
        got = await asyncio.gather(*(get(patient, str(number)) for number in range(40)))
        assert got == [str(number) for number in range(40)]


async def test_calls_cancelled_at_any_instant_leave_nothing_to_the_next():
    """Every answer is late, and each tells which question it answers."""
    chance = random.Random(5)

    async def late(command: Command) -> Reply:
        await asyncio.sleep(chance.random() * 0.01)
        return bulk(command[1])

    async with ScriptedRedis(late) as server, opened(server.url) as cache:
        for _ in range(12):
            calls = [asyncio.create_task(get(cache, str(number))) for number in range(60)]
            for call in chance.sample(calls, 40):
                await asyncio.sleep(chance.random() * 0.0008)
                call.cancel()
            for number, answer in enumerate(await asyncio.gather(*calls, return_exceptions=True)):
                assert answer == own(number) or isinstance(answer, asyncio.CancelledError)
            got = await asyncio.gather(*(get(cache, str(number)) for number in range(60)))
            assert got == [own(number) for number in range(60)]


def open_sockets() -> int:
    return sum(path.is_socket() for path in Path("/proc/self/fd").iterdir())


def own(number: int) -> str:
    return session_key(tenant="default", conversation_id=str(number)).decode()


def always(reply: Reply) -> Callable[[Command], Awaitable[Reply]]:
    async def answer(command: Command) -> Reply:
        return reply

    return answer


REFUSALS = [
    (b"-OOM command not allowed when used memory > 'maxmemory'.\r\n", "its memory"),
    (b"-READONLY You can't write against a read only replica.\r\n", "who may write"),
    (b"-MISCONF Redis is configured to save RDB snapshots\r\n", "refuses the command"),
    (b"-LOADING Redis is loading the dataset in memory\r\n", "still loading"),
    (b"-NOAUTH Authentication required.\r\n", "user and password"),
    (b"-NOPERM this user has no permissions\r\n", "user and password"),
    (b"-MOVED 3999 127.0.0.1:6381\r\n", "refuses the command"),
    (f"-ERR unknown command, with args beginning with: '{SECRET}'\r\n".encode(), "refuses the command"),
]

RUBBISH = [
    b"\r\n",
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"$x\r\n",
    b":12x\r\n",
    b"$99999999999\r\nabc",
    b"*x\r\n",
    b"*2\r\n$1\r\na\r\n",
    b"*1\r\n" * 5000,
    b"+" + b"x" * 200_000,
    b"%1\r\n+a\r\n+b\r\n",
    b"*1\r\n$2\r\nOK\r\n",
    b"\x00\xff\xfe" * 500 + b"\r\n",
    b"\x16\x03\x01\x02\x00",
    b"$5\r\nhe",
    b"+O",
    b"",
]


@pytest.mark.parametrize(("reply", "text"), REFUSALS)
async def test_a_refusal_says_what_to_do(reply, text):
    async with ScriptedRedis(always(reply)) as server, opened(server.url) as cache:
        await assert_all_fail(cache, text)


@pytest.mark.parametrize("reply", RUBBISH, ids=lambda reply: ascii(reply[:12]))
async def test_rubbish_is_no_answer(reply):
    async with ScriptedRedis(always(reply)) as server, opened(server.url, seconds=SHORT) as cache:
        await assert_all_fail(cache, "Redis")


@pytest.mark.parametrize("reply", [None, b":1\r\n", b"*0\r\n"])
async def test_a_wrong_kind_of_answer_is_no_value(reply):
    async with ScriptedRedis(always(reply)) as server, opened(server.url) as cache:
        for call in (get, put):
            with pytest.raises(CacheUnavailable):
                await call(cache)


async def test_an_answer_too_many_is_not_taken_for_the_next():
    async def twice(command: Command) -> Reply:
        return bulk(command[1]) * 2

    async with ScriptedRedis(twice) as server, opened(server.url) as cache:
        for number in range(20):
            assert await get(cache, str(number)) == own(number)


async def test_a_connection_broken_after_the_question_is_replaced_once():
    asked = 0

    async def every_other(command: Command) -> Reply:
        nonlocal asked
        asked += 1
        return None if asked % 2 else bulk(command[1])

    async with ScriptedRedis(every_other) as server, opened(server.url) as cache:
        for number in range(10):
            assert await get(cache, str(number)) == own(number)
        assert asked == 20


async def test_a_question_is_never_asked_again_because_of_its_time():
    asked = 0

    async def never(command: Command) -> Reply:
        nonlocal asked
        asked += 1
        await asyncio.sleep(3600)
        return None

    async with ScriptedRedis(never) as server, opened(server.url, seconds=0.1) as cache:
        with pytest.raises(CacheUnavailable, match="in time"):
            await put(cache)
        assert asked == 1


def serve_once_a_drip(listener: socket.socket, sent: bytes) -> None:
    """One connection: a byte every 50 ms, so that no single wait is long."""
    connection, _ = listener.accept()
    with connection, suppress(OSError):
        for place in range(len(sent)):
            connection.sendall(sent[place : place + 1])
            time.sleep(0.05)


async def test_a_slow_drip_is_cut_off():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        drip = threading.Thread(target=serve_once_a_drip, args=(listener, b"+OK\r\n+OK\r\n$900\r\n" + b"x" * 900))
        drip.start()
        async with opened(f"redis://127.0.0.1:{listener.getsockname()[1]}", seconds=SHORT) as cache:
            start = time.monotonic()
            with pytest.raises(CacheUnavailable, match="in time"):
                await get(cache)
            assert time.monotonic() - start < BUSY
        await asyncio.to_thread(drip.join)


async def test_tls_towards_a_server_without(redis_server):
    async with opened(redis_server.url.replace("redis:", "rediss:"), seconds=SHORT) as cache:
        await assert_all_fail(cache, "Redis")
