"""Where things stand on the console's pages, and what its search suggests, in the browser."""

from test_console_browser import serving

from browser_rig import faults, in_chromium, looking
from roomlore import Message

pytestmark = in_chromium

ENDS = "all => all.map(one => Math.round(one.getBoundingClientRect().right))"


async def test_titles_of_threads_fill_the_rail_and_the_last_one_is_not_cut(browser):
    async with serving() as (address, lore):
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


async def test_rooms_and_people_are_suggested_while_one_types(browser):
    async with serving() as (address, lore), looking(browser) as page:
        await lore.messages.add(
            [Message(id="1", room_id="harbour-team", sender_id="h1", sender_name="Harry", text="x")]
        )
        await page.goto(f"{address}/console/health")
        await page.keyboard.press("/")
        await page.keyboard.type("har")
        box = page.get_by_role("combobox")
        options = page.get_by_role("listbox").get_by_role("option")
        await options.first.wait_for()
        assert await options.all_inner_texts() == ["harbour-team\nRoom", "Harry h1\nPerson"]
        assert await faults(page) == []
        await page.keyboard.press("Escape")
        assert await box.get_attribute("aria-expanded") == "false"
        assert await box.input_value() == "har"
        await page.keyboard.type("r")
        await options.first.wait_for()
        await page.keyboard.press("ArrowDown")
        assert await box.get_attribute("aria-activedescendant") == await options.first.get_attribute("id")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/person?id=h1")
        await page.keyboard.press("/")
        await page.keyboard.type("harb")
        await options.first.wait_for()
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/console/search?q=harb")


async def test_a_field_and_its_button_share_a_row_on_a_phone(browser):
    async with serving() as (address, _), looking(browser, width=390, language="zh-CN") as page:
        for path in ("/search", "/people", "/memories", "/forget"):
            await page.goto(f"{address}/console{path}")
            field = await page.locator("main .line input:not([type=hidden])").bounding_box()
            button = await page.locator("main .line button").bounding_box()
            assert button["x"] >= field["x"] + field["width"], path
            assert abs(button["y"] - field["y"]) < 8, path


async def test_more_is_marked_on_a_phone_for_the_pages_behind_it(browser):
    async with serving() as (address, _), looking(browser, width=390) as page:
        more = page.get_by_role("link", name="More")
        for path, marked in (("/jobs", "true"), ("/places", "page"), ("/people", None)):
            await page.goto(f"{address}/console{path}")
            assert await more.get_attribute("aria-current") == marked, path


async def test_the_checks_have_one_heading_on_each_page(browser):
    async with serving() as (address, _), looking(browser) as page:
        for path, level in (("/health", 2), ("/health/findings", 1)):
            await page.goto(f"{address}/console{path}")
            await page.get_by_text("checks passed").wait_for()
            assert await page.get_by_role("heading", name="Checks").count() == 1
            assert await page.get_by_role("heading", name="Checks", level=level).count() == 1


async def test_a_followed_thread_adds_no_containment_of_style(browser):
    """Chromium walks the whole page for its counters when one comes or goes: half a second with 10,000 messages."""
    async with serving() as (address, _), looking(browser, width=1440) as page:
        await page.goto(f"{address}/console/room?id=tea")
        before = await page.locator(".room").get_attribute("class")
        await page.keyboard.press("t")
        await page.locator("#alone .row").first.wait_for()
        styles = "all => all.flatMap(one => [getComputedStyle(one).contain, getComputedStyle(one).contentVisibility])"
        seen = set(await page.locator("#alone, #alone *, .room > .top").evaluate_all(styles))
        assert not any(word in one for one in seen for word in ("strict", "content", "style", "auto", "hidden"))
        assert await page.locator(".room").get_attribute("class") == before, "no style of all rows is looked at"
        assert await page.locator(".room > .top").is_hidden()
