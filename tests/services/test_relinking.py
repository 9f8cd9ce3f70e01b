"""Making links anew that another link model made."""

import asyncio

import pytest

from engines import ENGINES
from relink_rig import EARLIER, ROOM, TODAY, exported, fresh, opened, relinked, stored, told


@pytest.fixture(params=ENGINES)
def url(request) -> str:
    return request.getfixturevalue(request.param)


async def earlier_store(url: str, count: int, **opening: object) -> None:
    async with opened(url, EARLIER) as lore:
        await lore.messages.add([told(number) for number in range(count)])


async def test_a_room_longer_than_what_is_kept_in_memory(url):
    await earlier_store(url, 900)
    async with opened(url, TODAY, piece=130) as lore:
        for number in (7, 8, 450):
            await lore.messages.edit(ROOM, str(number), text=f"ann: 缓存 {number}?")
        await lore.messages.delete(ROOM, ["0", "13", "450", "451", "899"])
        before = (await lore.messages.get(ROOM, "600")).link
        assert (await lore.index.status()).rooms_to_link == 1
        assert await relinked(lore) == 895
        after = await stored(lore)
        assert after == await fresh(await exported(lore))
        assert (await lore.messages.get(ROOM, "600")).link != before
        assert after[1].asked > 20
        assert (await lore.index.status()).rooms_to_link == 0
        assert await relinked(lore) == 0
        await lore.messages.add([told(number) for number in range(900, 1000)])
        assert await stored(lore) == await fresh(await exported(lore)), "it goes on as if nothing had been"
        assert (await lore.index.status()).rooms_to_link == 0


async def test_messages_go_on_arriving_all_the_while(url):
    await earlier_store(url, 120)
    async with opened(url, TODAY, piece=5) as lore:

        async def talk() -> None:
            for number in range(120, 160):
                await lore.messages.add(told(number))
                await asyncio.sleep(0)

        talking = asyncio.create_task(talk())
        while not talking.done() or (await lore.index.status()).rooms_to_link:
            await relinked(lore)
        await talking
        assert await stored(lore) == await fresh([told(number) for number in range(160)])


async def test_two_processes_share_the_rooms(url):
    async with opened(url, EARLIER) as lore:
        rooms = [f"room {number}" for number in range(5)]
        for room_id in rooms:
            await lore.messages.add([told(number, room_id=room_id) for number in range(12)])
    async with opened(url, TODAY) as one, opened(url, TODAY) as other:
        done = await asyncio.gather(relinked(one), relinked(other))
        assert sum(done) == 60, "no piece is done twice"
        found = [(await stored(one, room_id))[1] for room_id in rooms]
        assert found == [(await fresh([told(number) for number in range(12)]))[1]] * 5


async def test_it_runs_by_itself_in_the_background(url):
    await earlier_store(url, 40)
    async with opened(url, TODAY, background=True) as lore:
        async with asyncio.timeout(60):
            while (await lore.index.status()).rooms_to_link:  # noqa: ASYNC110 - a store tells nobody
                await asyncio.sleep(0.02)
        assert await stored(lore) == await fresh([told(number) for number in range(40)])


async def test_of_two_versions_side_by_side_the_later_one_links(url):
    """And what the earlier one goes on adding is linked anew by the later one."""
    async with opened(url, EARLIER) as old:
        await old.messages.add([told(number) for number in range(20)])
        assert await relinked(old) == 0
        async with opened(url, TODAY) as new:
            assert await relinked(new) == 20
            assert await relinked(old) == 0, "it would go to and fro"
            await old.messages.add([told(number) for number in range(20, 30)])
            assert (await new.index.status()).rooms_to_link == 1
            assert await relinked(new) == 10
            assert await stored(new) == await fresh([told(number) for number in range(30)])
    async with opened(url, EARLIER) as rolled_back:
        assert await relinked(rolled_back) == 30


async def test_a_room_that_is_removed_meanwhile_is_passed_over(url):
    await earlier_store(url, 30)
    async with opened(url, TODAY) as lore:
        walk = lore.index.relink()
        await anext(walk)
        await lore.messages.delete(ROOM, [str(number) for number in range(30)])
        await walk.aclose()
        await relinked(lore)
        assert (await lore.index.status()).rooms_to_link == 0


async def test_links_of_a_half_walked_room_are_used(url):
    await earlier_store(url, 60)
    async with opened(url, TODAY) as lore:
        walk = lore.index.relink()
        await anext(walk)
        await walk.aclose()
        context = await lore.context.build(ROOM, message_id="59")
        assert context.degraded is None
        await lore.messages.add(told(60))
        assert (await lore.context.build(ROOM, message_id="60")).degraded is None
        assert (await lore.index.status()).rooms_to_link == 1
