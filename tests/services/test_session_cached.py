"""What stands in the cache follows every change, and a cache that fails is tried by one call at a time."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from roomlore.core.errors import CacheUnavailable
from roomlore.core.sessions.state import from_text
from session_rig import Rig, open_rig


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


async def write(rig: Rig, count: int) -> None:
    for number in range(count):
        await rig.sessions.write_turn("c", "ann", "bot", f"asked {number}", f"答 {number}", turn_id=f"t{number}")


async def test_what_the_cache_shows_is_the_session_after_every_change(rig, kept):
    async def shown() -> dict[str, object]:
        return {name: value for name, value in json.loads(kept.texts["c"]).items() if name != "roomlore"}

    await write(rig, 30)
    assert (await shown())["flow_context"]["turn_count"] == 30
    await rig.sessions.patch_state("c", {"global_state": {"current_intent": "refund"}})
    assert (await shown())["global_state"]["current_intent"] == "refund"
    await rig.sessions.checkpoint("c", "they spoke", covers_through="t20-answer")
    assert (await shown())["message_context"]["summary"] == "they spoke"
    assert await shown() == (await rig.sessions.get_session("c")).to_json()
    await rig.sessions.reset("c")
    assert (await shown())["message_context"]["window_messages"] == []
    assert from_text(kept.texts["c"]).messages == ()


async def test_a_checkpoint_makes_the_cached_text_shorter(rig, kept):
    await write(rig, 60)
    assert len(from_text(kept.texts["c"]).messages) == 120
    await rig.sessions.checkpoint("c", "they spoke", covers_through="t55-answer")
    assert len(from_text(kept.texts["c"]).messages) < 40


async def test_a_state_with_a_field_of_our_own_name_hides_nothing(rig, kept):
    await rig.sessions.create_session("c", "ann", session={"roomlore": {"form": 2}, "other": ', "roomlore": '})
    await rig.sessions.write_turn("c", "ann", "bot", ', "roomlore": {"form": 1}', '"}', turn_id="t")
    assert [message.text for message in from_text(kept.texts["c"]).messages] == [', "roomlore": {"form": 1}', '"}']
    assert (await rig.sessions.get_session("c")).extra["roomlore"] == {"form": 2}


@pytest.mark.parametrize(
    "spoiled",
    [
        lambda text: text[:-5],
        lambda text: text.replace('"form": 2', '"form": 1'),
        lambda text: text.replace('"roles": ["user"', '"roles": ["god"'),
        lambda text: text.replace('"revision": ', '"revision": true, "was": '),
        lambda text: text.replace('"texts": ["', '"texts": [7, "'),
        lambda text: text.replace('"ids": ["t0-query", ', '"ids": ['),
        lambda text: text.replace("roomlore", "other"),
        lambda text: "[1, 2]",
        lambda text: "",
    ],
)
async def test_a_text_that_is_not_as_it_was_written_counts_as_none(rig, kept, spoiled):
    await write(rig, 1)
    whole = kept.texts["c"]
    kept.texts["c"] = spoiled(whole)
    assert from_text(whole) is not None
    assert from_text(kept.texts["c"]) is None
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
