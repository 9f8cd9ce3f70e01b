"""The jobs that people come to the console for, counted in clicks; and a room that stays open."""

import asyncio
from datetime import timedelta

import pytest
from playwright.async_api import Page
from test_console_browser import serving

from browser_rig import in_chromium, looking
from roomlore import Message, NewMemory
from roomlore_testkit import START

pytestmark = in_chromium

ROWS = "#flow .row"
SOON_MS = 500


class Hand:
    """A visitor whose clicks and confirmations by Enter are counted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    async def click(self, name: str, *, role: str = "link", inside: str = "body", exact: bool = False) -> None:
        self.clicks += 1
        await self.page.locator(inside).get_by_role(role, name=name, exact=exact).first.click()

    async def search(self, words: str) -> None:
        """Search from wherever the page is, with the key for it: counts as one click."""
        self.clicks += 1
        await self.page.keyboard.press("/")
        await self.page.keyboard.type(words)
        await self.page.keyboard.press("Enter")
        await self.page.wait_for_url("**/search?q=**")


async def told(lore, *texts: str, room: str = "tea", begin: int = 100) -> None:
    await lore.messages.add(
        [Message(id=f"new{n}", room_id=room, sender_id="ben", text=text) for n, text in enumerate(texts, begin)]
    )


async def scroll_to(page: Page, top: int) -> None:
    """Scroll the messages. The page knows it by the next frame, before which new messages would count as seen."""
    await page.locator("#scroll").evaluate(
        """(one, top) => { one.scrollTop = top; return new Promise(
            (done) => requestAnimationFrame(() => requestAnimationFrame(done))); }""",
        top,
    )


async def test_a_room_is_found_by_a_part_of_its_name_in_two_clicks(browser):
    async with serving() as (address, lore), looking(browser) as page:
        await told(lore, "hello", room="harbour-team")
        await page.goto(f"{address}/console/health")
        hand = Hand(page)
        await hand.search("HARB")
        await hand.click("harbour-team", inside="main")
        await page.get_by_role("heading", name="harbour-team").wait_for()
        assert hand.clicks == 2


async def test_a_message_is_found_by_its_words_in_two_clicks(browser):
    async with serving() as (address, _), looking(browser) as page:
        await page.goto(f"{address}/console")
        hand = Hand(page)
        await hand.search("compiler flag")
        await hand.click("I think it is the new compiler flag", inside="main")
        await page.locator("#m7:target").wait_for()
        assert hand.clicks == 2


@pytest.mark.parametrize(
    ("asked", "text"),
    [("umbrella last month", "who took my green umbrella?"), ("上个月 雨伞", "谁拿走了我的绿色雨伞？")],
    ids=["en", "zh"],
)
async def test_a_message_said_last_month_is_found_in_two_clicks(browser, asked, text):
    async with serving() as (address, lore), looking(browser) as page:
        last_month = lore.now().replace(day=1, hour=12) - timedelta(days=10)
        said = {"room_id": "tea", "sender_id": "ben", "sender_name": "Ben"}
        await lore.messages.add(
            [
                Message(id="old", text=text, sent_at=last_month, **said),
                Message(id="new", text=f"{text} 又来了 again", sent_at=lore.now(), **said),
            ]
        )
        await page.goto(f"{address}/console/people")
        hand = Hand(page)
        await hand.search(asked)
        hits = page.locator("main .hits .text")
        assert (await hits.all_inner_texts())[0] == text, "the one of last month comes first"
        await hand.click(text, inside="main")
        await page.locator("#m8:target").wait_for()
        assert hand.clicks == 2


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize(
    ("language", "revert", "do", "done"),
    [
        ("en-GB", "Undo", "Undo", "The update was undone."),
        ("zh-CN", "撤销", "撤销", "已撤销这次更新。"),
    ],
)
async def test_an_evolution_is_reverted_in_two_clicks_with_the_confirmation(
    browser, scripted, language, revert, do, done
):
    async with (
        serving() as (address, lore),
        looking(browser, language=language, java_script_enabled=scripted) as page,
    ):
        agreed = ("From now on we meet every Friday at six at the old pier", "agreed, Fridays at six at the old pier")
        await told(lore, *agreed, room="rowers")
        made = await lore.memories.evolve("rowers", mode="offline")
        assert made.changes
        await page.goto(f"{address}/console")
        hand = Hand(page)
        await hand.click(revert, inside="main")
        await hand.click(do, role="button", exact=True)
        await page.get_by_text(done).wait_for()
        assert hand.clicks == 2
        assert await lore.memories.page("group:rowers") == []


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
async def test_two_points_of_a_log_are_compared_with_a_form(browser, scripted):
    async with (
        serving() as (address, _),
        looking(browser, language="zh-CN", java_script_enabled=scripted) as page,
    ):
        await page.goto(f"{address}/console/memory?id=tea")
        await page.get_by_role("link", name="比较两个时间点").click()
        await page.get_by_role("group", name="从", exact=True).get_by_role("combobox").select_option("1")
        await page.get_by_role("group", name="到", exact=True).get_by_role("combobox").select_option("2")
        await page.get_by_role("button", name="比较", exact=True).click()
        await page.get_by_text("修改 1 条").wait_for()
        assert await page.locator("main ins").all_inner_texts() == ["三点在老地方"]


async def test_a_thread_is_followed_alone_in_one_click_from_the_room(browser):
    async with serving() as (address, _), looking(browser) as page:
        await page.goto(f"{address}/console/room?id=tea")
        hand = Hand(page)
        await hand.click("Does the build fail", inside="#rail")
        await page.get_by_role("heading", name="Does the build fail").wait_for()
        rows = page.locator("#alone .row")
        assert await rows.count() == 4
        assert hand.clicks == 1
        await page.get_by_text("4 messages.").wait_for()
        assert await rows.count() == 4, "what the server says of the thread replaces what was loaded"
        look = await page.locator("#alone .lane:not(.pass):not(.none) b").first.evaluate(
            "one => one.textContent + getComputedStyle(one).color"
        )
        assert "/thread?" in page.url
        await page.reload()
        assert await page.locator(ROWS).count() == 4, "its address leads to it"
        await page.goto(f"{address}/console/room?id=tea")
        row = page.locator("#m2 .lane:not(.pass):not(.none) b")
        assert await row.evaluate("one => one.textContent + getComputedStyle(one).color") == look


async def test_a_context_is_beside_the_room_in_one_click_and_goes_away_by_a_key(browser):
    async with serving() as (address, _), looking(browser, width=1440) as page:
        await page.goto(f"{address}/console/room?id=tea")
        hand = Hand(page)
        await page.locator("#m7").hover()
        await hand.click("Its context", inside="#m7")
        beside = page.locator("#beside-room")
        await beside.locator("meter").first.wait_for()
        assert hand.clicks == 1
        assert "I think it is the new compiler flag" in await beside.inner_text()
        await page.keyboard.press("Escape")
        await beside.wait_for(state="hidden")
        assert await page.locator("#rail").is_visible()


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
async def test_a_link_is_corrected_in_two_clicks_and_the_room_follows(browser, scripted, language):
    names = {
        "en-GB": ("Its context", "It answers this", "corrected", "Undo the correction", "It answers none of these"),
        "zh-CN": ("上下文", "更正为回复这条", "已更正", "撤销更正", "更正为没有回复任何一条"),
    }
    context, this, corrected, undo, nothing = names[language]
    async with (
        serving() as (address, lore),
        looking(browser, width=1440, language=language, java_script_enabled=scripted) as page,
    ):
        await page.goto(f"{address}/console/room?id=tea")
        hand = Hand(page)
        await page.locator("#m7").hover()
        await hand.click(context, inside="#m7")
        inside = "#beside-room" if scripted else "main"
        chosen = page.locator(f"{inside} .weighed li").filter(has=page.get_by_role("button", name=this)).first
        words = await chosen.locator(".text").inner_text()
        await hand.click(this, role="button", inside=inside)
        await page.locator(inside).get_by_role("button", name=undo).wait_for()
        assert hand.clicks == 2
        (one,) = await lore.links.corrections("tea")
        answered = (await lore.messages.get("tea", one.answers)).message
        assert (answered.text, one.by) == (words, "console")
        if scripted:
            await page.locator("#m7 .quote").get_by_text(corrected).wait_for()
            assert await page.locator("#m7").get_attribute("data-thread") == str(
                (await lore.messages.get("tea", one.message_id)).link.thread
            )
        await page.locator(inside).get_by_role("button", name=undo).click()
        await page.locator(inside).get_by_role("button", name=undo).wait_for(state="detached")
        await page.locator(inside).get_by_role("button", name=nothing).click()
        await page.locator(inside).get_by_role("button", name=undo).wait_for()
        assert [one.kind for one in await lore.links.corrections("tea")] == ["nothing", "undone", "answers"]


async def test_what_is_known_of_a_person_is_two_clicks_away(browser):
    async with serving() as (address, lore), looking(browser) as page:
        await lore.memories.add_all([NewMemory(scope="user:anna", statement="Anna drinks green tea")])
        await page.goto(f"{address}/console/room?id=tea")
        hand = Hand(page)
        await hand.click("People")
        await hand.click("Anna", inside="main")
        await page.get_by_text("Anna drinks green tea").wait_for()
        await page.get_by_role("link", name="下午三点，老地方").wait_for()
        assert hand.clicks == 2


@pytest.mark.parametrize(
    ("language", "memory", "open_", "recall"),
    [("en-GB", "Memory", "Open", "Recall"), ("zh-CN", "记忆", "打开", "召回")],
)
async def test_memory_and_recall_begin_with_a_list_and_a_typo_leads_on(browser, language, memory, open_, recall):
    async with serving() as (address, lore), looking(browser, language=language, java_script_enabled=False) as page:
        await lore.memories.add_all([NewMemory(scope="user:anna", statement="Anna drinks green tea")])
        await page.goto(f"{address}/console/recall")
        await page.get_by_role("checkbox", name="Anna").check()
        await page.get_by_role("main").get_by_role("button", name=recall).click()
        await page.get_by_role("row", name="Anna drinks green tea").wait_for()
        await page.goto(f"{address}/console")
        hand = Hand(page)
        await hand.click(memory, exact=True)
        await page.locator("main input[name=find]").fill("Ana")
        await hand.click(open_, role="button", inside="main")
        await page.get_by_role("alert").wait_for()
        assert await page.locator("main input[name=find]").input_value() == "Ana"
        await hand.click("Anna", inside="main .near")
        await page.get_by_text("Anna drinks green tea").first.wait_for()
        assert hand.clicks == 3


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
async def test_a_person_is_forgotten_in_three_clicks_and_a_confirmation(browser, scripted):
    async with (
        serving() as (address, lore),
        looking(browser, java_script_enabled=scripted) as page,
    ):
        await page.goto(f"{address}/console")
        hand = Hand(page)
        await hand.click("People")
        await hand.click("Dan", inside="main")
        await hand.click("Forget Dan")
        assert hand.clicks == 3
        await page.get_by_label("To confirm, type the id").fill("dan")
        await page.get_by_role("button", name="Forget for good").click()
        await page.get_by_text("Nothing of the person is left").wait_for()
        assert "dan" not in [one.sender_id for one in await lore.messages.page("tea")]


async def test_who_is_to_be_forgotten_is_chosen_among_people_that_exist(browser):
    async with serving() as (address, lore), looking(browser, language="zh-CN") as page:
        twins = [
            Message(id=f"w{n}", room_id="tea", sender_id=f"u{n}", sender_name="王敏", text="在", sent_at=START)
            for n in (1, 2)
        ]
        await lore.messages.add(twins)
        await page.goto(f"{address}/console/forget")
        await page.get_by_label("ID 或名称").fill("王敏")
        await page.get_by_role("button", name="查找").click()
        await page.get_by_role("alert").get_by_text("是哪一个？").wait_for()
        assert await page.locator("main code").all_inner_texts() == ["u1", "u2"]
        await page.goto(f"{address}/console/forget?who=没有这个人")
        await page.get_by_role("alert").wait_for()
        await page.goto(f"{address}/console/memory/change?what=forget&id=王敏")
        await page.get_by_role("alert").get_by_role("link", name="u1").wait_for()


async def test_new_messages_arrive_by_themselves_and_push_nothing_that_is_read(browser):
    async with serving() as (address, lore), looking(browser, width=1440) as page:
        await told(lore, *[f"line {n}" for n in range(80)], begin=200)
        await page.goto(f"{address}/console/room?id=tea")
        assert await page.locator("#flow .row").last.is_visible(), "it opens at the newest"
        await page.wait_for_timeout(SOON_MS)
        await told(lore, "seen at once", begin=300)
        await page.get_by_text("seen at once").wait_for()
        await page.locator(".top .count").get_by_text("88 messages", exact=True).wait_for()
        await scroll_to(page, -600)
        read = "() => document.elementFromPoint(600, 500).closest('.row').getBoundingClientRect().top"
        which = "() => document.elementFromPoint(600, 500).closest('.row').id"
        before = await page.evaluate(read), await page.evaluate(which)
        await told(lore, "one", "two", "three", begin=400)
        await page.get_by_role("button", name="3 new").wait_for()
        assert (await page.evaluate(read), await page.evaluate(which)) == before
        await page.get_by_role("button", name="3 new").click()
        assert await page.get_by_text("three", exact=True).is_visible()
        assert await page.locator(".top .count").inner_text() == "91 messages"
        assert await page.locator("#arrived").is_hidden()
        ids = await page.locator(ROWS).evaluate_all("all => all.map(one => Number(one.id.slice(1)))")
        assert ids == sorted(set(ids))


async def test_lanes_drawn_by_the_script_are_those_of_the_server(browser):
    async with serving() as (address, lore), looking(browser, width=1440) as page:
        await page.goto(f"{address}/console/room?id=tea")
        await lore.messages.add(
            [
                Message(id=f"x{n}", room_id="tea", sender_id="dan", text=text, reply_to=answered)
                for n, (text, answered) in enumerate((("更晚一点", "m4"), ("the flag is off now", "m6"), ("好", "m0")))
            ]
        )
        await page.locator("#m10").wait_for()
        drawn = "all => all.map(one => [...one.children].map(cell => cell.className + cell.textContent).join())"
        by_script = await page.locator("#flow .lanes").evaluate_all(drawn)
        await page.goto(f"{address}/console/room?id=tea")
        assert await page.locator("#flow .lanes").evaluate_all(drawn) == by_script


async def test_keys_move_and_open(browser):
    async with serving() as (address, _), looking(browser, width=1440) as page:
        await page.goto(f"{address}/console/room?id=tea")
        for key in ("k", "k", "j"):
            await page.keyboard.press(key)
        assert await page.evaluate("document.activeElement.closest('.row').id") == "m7"
        await page.keyboard.press("c")
        await page.locator("#beside-room meter").first.wait_for()
        await page.keyboard.press("?")
        await page.get_by_role("dialog").wait_for()
        await page.keyboard.press("Escape")
        await page.keyboard.press("Control+k")
        assert await page.evaluate("document.activeElement.id") == "find"
        await page.evaluate("document.activeElement.blur()")
        await page.keyboard.press("Escape")
        await page.locator("#m7 article").focus()
        await page.keyboard.press("t")
        await page.wait_for_url("**/thread?**")
        assert await page.evaluate("document.activeElement.closest('#alone .row').id") == "tm7"
        await page.keyboard.press("k")
        assert await page.evaluate("document.activeElement.closest('#alone .row').id") == "tm6"
        await page.keyboard.press("Escape")
        await page.wait_for_url("**/room?**")
        assert await page.locator("#alone").is_hidden()
        assert await page.evaluate("document.activeElement.closest('.row').id") == "m7"


async def test_times_are_in_the_zone_of_the_reader(browser):
    async with serving() as (address, _), looking(browser, timezone_id="Asia/Tokyo") as page:
        for _visit in range(2):
            await page.goto(f"{address}/console/room?id=tea")
            await page.wait_for_function("document.cookie.includes('roomlore_zone')")
            assert await page.locator("#m1 time").inner_text() == "18:00"
        assert await page.get_by_text("Times are in Asia/Tokyo.").is_visible()


@pytest.mark.parametrize("width", [390, 1440])
async def test_a_phone_has_one_pane_and_a_bar_below(browser, width):
    async with serving() as (address, _), looking(browser, width=width) as page:
        await page.goto(f"{address}/console/room?id=tea")
        bar = await page.get_by_role("navigation", name="Main pages").bounding_box()
        assert (bar["y"] > 700) is (width == 390)
        assert await page.get_by_role("link", name="More").is_visible() is (width == 390)
        assert await page.get_by_role("navigation", name="Rooms by last activity").is_visible() is (width == 1440)


async def test_a_followed_thread_grows_and_the_way_back_leads_to_the_same_place(browser):
    async with serving() as (address, lore), looking(browser, width=1440) as page:
        await page.goto(f"{address}/console/room?id=tea")
        await page.locator("#m1").hover()
        await page.locator("#m1").get_by_role("link", name="thread").click()
        await page.locator("#alone .row").nth(2).wait_for()
        await page.locator("#alone .count").get_by_text("3 messages.", exact=True).wait_for()
        listed = page.locator("#rail li").filter(has=page.locator("[aria-current]"))
        await listed.get_by_role("link").focus()
        await lore.messages.add([Message(id="more", room_id="tea", sender_id="dan", text="带上伞", reply_to="m4")])
        await page.locator("#alone").get_by_text("带上伞").wait_for()
        await page.locator("#alone .count").get_by_text("4 messages.", exact=True).wait_for()
        await listed.get_by_text("4 messages").wait_for()
        assert await listed.get_by_role("link").evaluate("one => one === document.activeElement")
        await page.go_back()
        await page.locator("#flow").get_by_text("带上伞").wait_for()
        assert await page.locator("#alone").is_hidden()
        await page.go_forward()
        await page.locator("#alone").get_by_text("带上伞").wait_for()
        await page.locator("#alone .trail a").click()
        await page.locator("#m1").wait_for()
        assert "/room?" in page.url


async def test_a_message_that_comes_while_a_thread_is_read_anew_stays(browser):
    async with serving() as (address, lore), looking(browser, width=1440) as page:

        async def answer_late(route):
            written = await route.fetch()
            await lore.messages.add([Message(id="more", room_id="tea", sender_id="dan", text="带上伞", reply_to="m4")])
            await page.locator("#alone").get_by_text("带上伞").wait_for()
            await route.fulfill(response=written)

        await page.route("**/console/thread?**", answer_late)
        await page.goto(f"{address}/console/room?id=tea")
        await page.locator("#m1").hover()
        await page.locator("#m1").get_by_role("link", name="thread").click()
        await page.locator("#alone .top h1 bdi").wait_for()
        assert await page.locator("#alone").get_by_text("带上伞").count() == 1
        assert await page.locator("#alone .count").inner_text() == "4 messages."
        assert await page.locator("#flow").get_by_text("带上伞").count() == 1


async def test_a_message_that_the_page_of_a_thread_has_already_is_not_added_again(browser):
    async with serving() as (address, lore), looking(browser, width=1440) as page:
        told = asyncio.Event()

        async def wait(route):
            await told.wait()
            await route.continue_()

        await page.route("**/console/room/live?**", wait)
        await page.goto(f"{address}/console/room?id=tea")
        await lore.messages.add([Message(id="more", room_id="tea", sender_id="dan", text="带上伞", reply_to="m4")])
        await page.locator("#m1").hover()
        await page.locator("#m1").get_by_role("link", name="thread").click()
        await page.locator("#alone").get_by_text("带上伞").wait_for()
        told.set()
        await page.locator("#flow").get_by_text("带上伞").wait_for(state="attached")
        assert await page.locator("#alone").get_by_text("带上伞").count() == 1


async def test_a_message_that_comes_while_a_link_is_corrected_stays(browser):
    async with serving() as (address, lore), looking(browser, width=1440) as page:
        await page.goto(f"{address}/console/room?id=tea")

        async def answer_late(route):
            written = await route.fetch()
            await lore.messages.add([Message(id="more", room_id="tea", sender_id="dan", text="带上伞")])
            await page.locator("#flow").get_by_text("带上伞").wait_for()
            await route.fulfill(response=written)

        await page.route("**/console/room?**", answer_late)
        await page.locator("#m7").hover()
        await page.locator("#m7").get_by_role("link", name="context").click()
        await page.get_by_role("button", name="It answers this").first.click()
        await page.locator("#m7 .quote").get_by_text("corrected").wait_for()
        assert await page.locator("#flow").get_by_text("带上伞").count() == 1


async def test_messages_that_do_not_fit_into_a_piece_count_as_new_too(browser):
    async with serving() as (address, lore), looking(browser, width=1440) as page:
        await told(lore, *[f"line {n}" for n in range(80)], begin=1000)
        await page.goto(f"{address}/console/room?id=tea")
        await scroll_to(page, -300)
        await told(lore, *[f"busy {n}" for n in range(130)], begin=2000)
        await page.get_by_role("button", name="130 new").wait_for()


async def test_a_tab_that_stays_open_holds_a_bounded_number_of_rows_wherever_its_reader_is(browser):
    async with serving() as (address, lore), looking(browser, width=1440) as page:
        await told(lore, *[f"line {n}" for n in range(50)], begin=1000)
        await told(lore, *[f"line {n}" for n in range(50)], begin=1050)
        await page.goto(f"{address}/console/room?id=tea")
        await scroll_to(page, -300)
        for begin in range(2000, 3200, 50):
            await told(lore, *[f"busy {n}" for n in range(begin, begin + 50)], begin=begin)
            await page.wait_for_timeout(50)
        await page.get_by_role("button", name="1,200 new").or_(page.get_by_role("button", name="1200 new")).wait_for()
        assert await page.locator(ROWS).count() < 1_000
        await page.locator("#arrived").click()
        await page.get_by_text("busy 3199").wait_for()
