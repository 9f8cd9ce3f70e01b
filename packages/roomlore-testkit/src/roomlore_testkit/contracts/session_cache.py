"""The contract of `SessionCache`."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest

from roomlore.ports.coordination import SessionCache
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.contracts.hard_texts import HARD_TEXTS

_VALUES = [*HARD_TEXTS, "", " ", "\n", '{"摘要": "花生过敏", "turns": 3}', "OK", "-1", "部" * 400_000]
_ODD_TENANTS = ["", "default:", "a", "a:short_term_memory", "%61", "A", "short_term_memory", "甲", "a\x00", "\ud800"]


async def _put(cache: SessionCache, conversation: str, value: str, tenant: str = "default", seconds: int = 60) -> None:
    await cache.put(tenant=tenant, conversation_id=conversation, value=value, seconds=seconds)


async def _get(cache: SessionCache, conversation: str, *, tenant: str = "default") -> str | None:
    return await cache.get(tenant=tenant, conversation_id=conversation)


class SessionCacheContract:
    @pytest.fixture
    def name(self) -> str:
        """A conversation that no one else has."""
        return uuid4().hex

    async def test_what_was_never_put_is_unknown(self, cache: SessionCache, name: str) -> None:
        assert await _get(cache, name) is None

    async def test_a_value_comes_back_as_it_went_in(self, cache: SessionCache, name: str) -> None:
        with all_cases() as case:
            for value in _VALUES:
                with case(value[:12]):
                    await _put(cache, name, value)
                    assert await _get(cache, name) == value
                    assert await _get(cache, name) == value

    async def test_the_last_value_stands(self, cache: SessionCache, name: str) -> None:
        for value in ("first", "第二", "third"):
            await _put(cache, name, value)
            assert await _get(cache, name) == value

    async def test_what_is_dropped_is_unknown(self, cache: SessionCache, name: str) -> None:
        await _put(cache, name, "kept")
        await _put(cache, name + "2", "kept too")
        await cache.drop(tenant="default", conversation_id=name)
        await cache.drop(tenant="default", conversation_id=name)
        assert await _get(cache, name) is None
        assert await _get(cache, name + "2") == "kept too"

    async def test_tenants_are_strangers(self, cache: SessionCache, name: str) -> None:
        tenants = ["default", *_ODD_TENANTS]
        for tenant in tenants:
            assert await _get(cache, name, tenant=tenant) is None
            await _put(cache, name, f"of {tenant}", tenant=tenant)
        assert [await _get(cache, name, tenant=tenant) for tenant in tenants] == [f"of {tenant}" for tenant in tenants]
        await cache.drop(tenant="a", conversation_id=name)
        assert await _get(cache, name, tenant="a") is None
        assert await _get(cache, name) == "of default"

    async def test_conversations_are_strangers(self, cache: SessionCache, name: str) -> None:
        ids = [name + odd for odd in (*HARD_TEXTS, "", " ", ":", "%3A", "%", "会话", "x" * 5000)]
        for number, conversation in enumerate(ids):
            await _put(cache, conversation, str(number))
        assert [await _get(cache, conversation) for conversation in ids] == [str(number) for number in range(len(ids))]

    async def test_a_value_lives_as_long_as_it_was_given(
        self, cache: SessionCache, name: str, let_pass: Callable[[float], Awaitable[None]]
    ) -> None:
        await _put(cache, name + "short", "1", seconds=1)
        await _put(cache, name + "longer again", "1", seconds=1)
        await _put(cache, name + "longer again", "2", seconds=60)
        await _put(cache, name + "shorter again", "1", seconds=60)
        await _put(cache, name + "shorter again", "2", seconds=1)
        assert await _get(cache, name + "short") == "1"
        await let_pass(1.2)
        assert await _get(cache, name + "short") is None
        assert await _get(cache, name + "longer again") == "2"
        assert await _get(cache, name + "shorter again") is None

    async def test_calls_at_the_same_time_do_not_mix(self, cache: SessionCache, name: str) -> None:
        ids = [f"{name} {number}" for number in range(200)]
        await asyncio.gather(*(_put(cache, conversation, f"value of {conversation}") for conversation in ids))
        got = await asyncio.gather(*(_get(cache, conversation) for conversation in ids))
        assert got == [f"value of {conversation}" for conversation in ids]

    async def test_cancelled_calls_leave_nothing_to_the_next(self, cache: SessionCache, name: str) -> None:
        chance = random.Random(7)  # noqa: S311 - no secret
        ids = [f"{name} {number}" for number in range(40)]
        for conversation in ids:
            await _put(cache, conversation, conversation)
        for _ in range(15):
            calls = [asyncio.create_task(_get(cache, conversation)) for conversation in ids]
            for call in chance.sample(calls, 30):
                await asyncio.sleep(chance.choice([0, 0, 0.0002]))
                call.cancel()
            ended = await asyncio.gather(*calls, return_exceptions=True)
            for conversation, answer in zip(ids, ended, strict=True):
                assert answer == conversation or isinstance(answer, asyncio.CancelledError)
            assert await asyncio.gather(*(_get(cache, conversation) for conversation in ids)) == ids

    async def test_closing_twice_is_the_same_as_once(self, cache: SessionCache, name: str) -> None:
        await _put(cache, name, "something")
        await cache.close()
        await cache.close()
