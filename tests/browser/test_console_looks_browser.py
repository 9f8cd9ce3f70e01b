"""Where things stand on the console's pages, measured in the browser."""

from test_console_browser import serving

from browser_rig import browsing, looking, needs_chromium
from roomlore import Message

pytestmark = needs_chromium

ENDS = "all => all.map(one => Math.round(one.getBoundingClientRect().right))"


async def test_titles_of_threads_fill_the_rail_and_the_last_one_is_not_cut():
    async with serving() as (address, lore), browsing() as browser:
        said = {"room_id": "long", "sender_id": "ann"}
        texts = [f"how would topic{n} of the {'very ' * 20}long list be called {n}?" for n in range(9)]
        await lore.messages.add([Message(id=f"m{n}", text=text, **said) for n, text in enumerate(texts)])
        async with looking(browser) as page:
            await page.goto(f"{address}/console/room?id=long")
            titles = await page.locator("#rail .title").evaluate_all(ENDS)
            assert set(titles) == set(await page.locator("#rail .facts").evaluate_all(ENDS))
        async with looking(browser, width=390) as page:
            await page.goto(f"{address}/console/room?id=long")
            await page.locator("#rail").evaluate("rail => rail.scrollTo(99999, 0)")
            assert (await page.locator("#rail li").evaluate_all(ENDS))[-1] <= 390 - 8
