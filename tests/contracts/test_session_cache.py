"""One contract, every session cache."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from roomlore.adapters.redis import open_redis
from roomlore.ports.coordination import SessionCache
from roomlore_testkit import FrozenClock, InMemorySessionCache
from roomlore_testkit.contracts import SessionCacheContract


class TestInMemorySessionCache(SessionCacheContract):
    @pytest.fixture
    def clock(self) -> FrozenClock:
        return FrozenClock()

    @pytest.fixture
    def cache(self, clock: FrozenClock) -> SessionCache:
        return InMemorySessionCache(clock)

    @pytest.fixture
    def let_pass(self, clock: FrozenClock) -> Callable[[float], Awaitable[None]]:
        async def advance(seconds: float) -> None:
            clock.advance(seconds)

        return advance


class TestRedis(SessionCacheContract):
    @pytest.fixture
    async def cache(self, redis_url: str) -> AsyncIterator[SessionCache]:
        opened = open_redis(redis_url, timeout_seconds=10)
        yield opened
        await opened.close()

    @pytest.fixture
    def let_pass(self) -> Callable[[float], Awaitable[None]]:
        return asyncio.sleep
