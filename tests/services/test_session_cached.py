"""The cache of sessions follows every change, and one that fails is tried by one call at a time."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from redis_server import RedisServer
from roomlore import Message
from roomlore.adapters.redis import open_redis
from roomlore.core import DEFAULT_TENANT
from roomlore.core.errors import CacheUnavailable
from roomlore.core.sessions.window import Cached, from_text, signed, verified
from roomlore.ports.coordination import SessionCache
from roomlore.services.sessions import signing_key
from roomlore_testkit.case_table import all_cases
from session_rig import Rig, beside, open_rig


class Kept:
    """The port `SessionCache`: keeps texts, and raises while `down`; `asked` counts."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.down = False
        self.asked = 0

    async def get(self, *, tenant: str, conversation_id: str) -> str | None:
        await self._ask()
        return self.texts.get(conversation_id)

    async def put(self, *, tenant: str, conversation_id: str, value: str, seconds: int) -> None:
        await self._ask()
        self.texts[conversation_id] = value

    async def drop(self, *, tenant: str, conversation_id: str) -> None:
        await self._ask()
        self.texts.pop(conversation_id, None)

    async def close(self) -> None: ...

    async def _ask(self) -> None:
        self.asked += 1
        await asyncio.sleep(0)
        if self.down:
            raise CacheUnavailable("down")


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
async def rig(kept: Kept) -> AsyncIterator[Rig]:
    async with open_rig(cache=kept) as opened:
        yield opened


async def remembered(rig: Rig, kept: Kept) -> Cached | None:
    named = {"tenant": DEFAULT_TENANT, "conversation_id": "c"}
    whole = verified(kept.texts["c"], key=await signing_key(rig.storage), **named)
    return None if whole is None else from_text(whole)


async def write(rig: Rig, count: int) -> None:
    for number in range(count):
        await rig.sessions.write_turn("c", "ann", "bot", f"asked {number}", f"答 {number}", turn_id=f"t{number}")


async def test_what_the_cache_shows_is_the_session_after_every_change(rig, kept):
    async def shown() -> dict[str, object]:
        return {name: value for name, value in json.loads(kept.texts["c"]).items() if not name.startswith("roomlore")}

    await write(rig, 30)
    assert (await shown())["flow_context"]["turn_count"] == 30
    await rig.sessions.patch_state("c", {"global_state": {"current_intent": "refund"}})
    assert (await shown())["global_state"]["current_intent"] == "refund"
    await rig.sessions.checkpoint("c", "they spoke", covers_through="t20-answer")
    assert (await shown())["message_context"]["summary"] == "they spoke"
    assert await shown() == (await rig.sessions.get_session("c")).to_json()
    await rig.sessions.reset("c")
    assert (await shown())["message_context"]["window_messages"] == []
    assert (await remembered(rig, kept)).messages == ()


async def put_after(rig: Rig, kept: Kept, happens: Awaitable[Any]) -> Any:
    """Read the session while it is not cached; let this happen before it is put there. Return what came of that."""
    put, results = kept.put, []

    async def late(**entry: Any) -> None:
        if not results:
            results.append(await happens)
        await put(**entry)

    kept.texts.clear()
    kept.put = late
    await rig.sessions.get_session("c")
    return results[0]


async def test_what_was_read_before_a_person_is_forgotten_does_not_stay_cached(rig, kept):
    """A regression: it was written into the cache after everything of the person had been dropped from there."""
    await write(rig, 2)
    assert (await put_after(rig, kept, rig.lore.privacy.forget("ann"))).complete
    assert kept.texts == {}


async def test_a_state_that_names_who_is_forgotten_meanwhile_does_not_stay_cached(rig, kept):
    await write(rig, 2)
    await rig.sessions.patch_state("c", {"global_state": {"current_intent": "call zebra-lena back"}})
    await rig.sessions.write_turn("d", "zebra-lena", "bot", "I am here", "hello", turn_id="t")
    assert (await put_after(rig, kept, rig.lore.privacy.forget("zebra-lena", is_id=True))).complete
    assert kept.texts == {}


async def test_what_is_said_while_a_session_is_cached_leaves_it_cached(rig, kept):
    await write(rig, 2)
    more = Message(id="m", room_id="c", sender_id="ann", text="one more")
    assert (await put_after(rig, kept, rig.lore.messages.add(more))).added == ("m",)
    assert kept.texts


async def test_a_checkpoint_makes_the_cached_text_shorter(rig, kept):
    await write(rig, 60)
    assert len((await remembered(rig, kept)).messages) == 120
    await rig.sessions.checkpoint("c", "they spoke", covers_through="t55-answer")
    assert len((await remembered(rig, kept)).messages) < 40


async def test_a_state_with_a_field_of_our_own_name_hides_nothing(rig, kept):
    own = {"roomlore": {"form": 2}, "roomlore_signature": "0", "other": ', "roomlore": '}
    await rig.sessions.create_session("c", "ann", session=own)
    await rig.sessions.write_turn("c", "ann", "bot", ', "roomlore": {"form": 1}', '"}', turn_id="t")
    assert [message.text for message in (await remembered(rig, kept)).messages] == [', "roomlore": {"form": 1}', '"}']
    assert (await rig.sessions.get_session("c")).extra["roomlore"] == {"form": 2}


SPOILED = [
    lambda text: text[:-5],
    lambda text: text[:40],
    lambda text: text.replace("asked 0", "forged"),
    lambda text: text[: text.rindex(', "roomlore_signature"')] + "}",
    lambda text: text[:-66] + "0" * 64 + '"}',
    lambda text: text[:-3] + '甲"}',
    lambda text: text[:-3] + '\ud800"}',
    lambda text: " " + text,
    lambda text: text + " ",
    lambda text: text.replace('"form": 2', '"form": 1'),
    lambda text: text.replace('"roles": ["user"', '"roles": ["god"'),
    lambda text: text.replace('"revision": ', '"revision": true, "was": '),
    lambda text: text.replace('"texts": ["', '"texts": [7, "'),
    lambda text: text.replace('"ids": ["t0-query", ', '"ids": ['),
    lambda text: text.replace("roomlore", "other"),
    lambda text: "[1, 2]",
    lambda text: "",
]


async def test_a_text_that_is_not_as_it_was_written_counts_as_none(rig, kept):
    await write(rig, 1)
    whole = kept.texts["c"]
    with all_cases() as case:
        for place, spoil in enumerate(SPOILED):
            with case(place, repr(spoil(whole))[-100:]):
                kept.texts["c"] = spoil(whole)
                assert (await rig.sessions.get_session("c")).flow_context.turn_count == 1
                assert kept.texts["c"] == whole


async def test_of_many_calls_one_tries_a_cache_that_failed(rig, kept):
    await write(rig, 1)
    kept.down = True
    await rig.sessions.get_session("c")
    for _ in range(3):
        kept.asked = 0
        await asyncio.gather(*(rig.sessions.get_session("c") for _ in range(20)))
        assert kept.asked == 0
        rig.clock.advance(1.01)
        await asyncio.gather(*(rig.sessions.get_session("c") for _ in range(20)))
        assert kept.asked == 1
    kept.down = False
    rig.clock.advance(1.01)
    await rig.sessions.get_session("c")
    kept.asked = 0
    await asyncio.gather(*(rig.sessions.get_session("c") for _ in range(20)))
    assert kept.asked == 20


@pytest.fixture
async def redis(shared_redis: RedisServer) -> AsyncIterator[SessionCache]:
    shared_redis.wipe()
    opened = open_redis(shared_redis.url, timeout_seconds=10)
    yield opened
    await opened.close()


@pytest.fixture
async def on_redis(redis: SessionCache) -> AsyncIterator[Rig]:
    async with open_rig(cache=redis) as opened:
        yield opened


def results(rig: Rig) -> dict[str, float]:
    return {labels["result"]: count for labels, count in rig.lore.series("roomlore_session_cache_total")}


async def texts(rig: Rig, conversation: str = "c") -> list[str]:
    return [message["content"] for message in (await rig.sessions.query_context(conversation)).messages]


async def forge(redis: SessionCache, entry: str, *, tenant: str = DEFAULT_TENANT, conversation: str = "c") -> None:
    await redis.put(tenant=tenant, conversation_id=conversation, value=entry, seconds=60)


async def entry_of(redis: SessionCache, conversation: str = "c") -> str:
    entry = await redis.get(tenant=DEFAULT_TENANT, conversation_id=conversation)
    assert entry is not None
    return entry


async def test_words_written_into_redis_are_never_shown_and_are_replaced(on_redis, redis, caplog):
    await write(on_redis, 2)
    said, before = await texts(on_redis), results(on_redis).get("rejected", 0)
    whole = await entry_of(redis)
    with caplog.at_level(logging.WARNING):
        for entry in (whole.replace("asked 0", "wire the money"), whole.replace("asked 0", "forged")):
            assert entry != whole
            await forge(redis, entry)
            assert await texts(on_redis) == said
            assert await entry_of(redis) == whole
    assert results(on_redis)["rejected"] == before + 2
    told = [record for record in caplog.records if "not believed" in record.message]
    assert len(told) == 1
    assert "money" not in str(vars(told[0]))
    on_redis.clock.advance(60)
    await forge(redis, "{}")
    await texts(on_redis)
    assert len([record for record in caplog.records if "not believed" in record.message]) == 2


async def test_an_entry_of_another_session_or_tenant_is_not_believed(on_redis, redis):
    """Whoever moves an entry may put the new session's name and time into it: the signature is of the names."""
    await write(on_redis, 1)
    await on_redis.sessions.write_turn("d", "ben", "bot", "other", "than this", turn_id="t0")
    made = [re.search('"made": "[^"]+"', await entry_of(redis, conversation))[0] for conversation in "dc"]
    moved = (await entry_of(redis, "d")).replace('"conversation_id": "d"', '"conversation_id": "c"').replace(*made)
    for entry in (await entry_of(redis, "d"), moved):
        await forge(redis, entry)
        assert await texts(on_redis) == ["asked 0", "答 0"]
    elsewhere = on_redis.lore.for_tenant("acme")
    await elsewhere.sessions.write_turn("c", "ann", "bot", "of acme", None, turn_id="t0")
    await forge(redis, await entry_of(redis), tenant="acme")
    assert [m["content"] for m in (await elsewhere.sessions.query_context("c")).messages] == ["of acme"]


async def test_an_earlier_entry_of_the_session_is_brought_up_to_date(on_redis, redis):
    await write(on_redis, 3)
    earlier = await entry_of(redis)
    await on_redis.messages.edit("c", "t0-query", text="asked otherwise")
    await on_redis.messages.delete("c", "t1-query")
    await on_redis.sessions.write_turn("c", "ann", "bot", "new", None, turn_id="t9")
    said = ["asked otherwise", "答 0", "答 1", "asked 2", "答 2", "new"]
    assert await texts(on_redis) == said
    await forge(redis, earlier)
    assert await texts(on_redis) == said
    await on_redis.sessions.reset("c")
    await forge(redis, earlier)
    assert await texts(on_redis) == []


async def test_an_entry_of_the_version_before_is_a_miss(on_redis, redis):
    await write(on_redis, 1)
    whole = await entry_of(redis)
    named = {"tenant": DEFAULT_TENANT, "conversation_id": "c"}
    unsigned = verified(whole, key=await signing_key(on_redis.storage), **named)
    assert from_text(unsigned) is not None
    await forge(redis, unsigned)
    assert await texts(on_redis) == ["asked 0", "答 0"]
    assert await entry_of(redis) == whole


async def test_the_version_before_takes_a_signed_entry_for_none():
    assert from_text('{"a": 1, "roomlore": {"form": 2}}') is None
    assert from_text(signed('{"a": 1, "roomlore": {"form": 2}}', key=b"k", tenant="t", conversation_id="c")) is None


async def test_two_processes_on_a_database_believe_each_other_and_two_databases_do_not(on_redis, redis):
    await write(on_redis, 1)
    async with AsyncExitStack() as stack:
        other = await beside(on_redis.lore, stack, cache=redis)
        before = results(on_redis).get("hit", 0)
        assert await texts(other) == ["asked 0", "答 0"]
        assert results(on_redis)["hit"] == before + 1
    async with open_rig(cache=redis, clock=on_redis.clock) as stranger:
        await stranger.sessions.write_turn("c", "ann", "bot", "elsewhere", None, turn_id="t0")
        assert await texts(stranger) == ["elsewhere"]
        assert await signing_key(stranger.storage) != await signing_key(on_redis.storage)
    assert await texts(on_redis) == ["asked 0", "答 0"]
