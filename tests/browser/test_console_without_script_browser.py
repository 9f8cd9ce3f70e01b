"""The jobs that people come to the console for, in a browser that runs no script."""

from datetime import timedelta

import pytest
from bench.pictures.live import listening
from playwright.async_api import Page
from test_console_browser import BEGIN, serving

from browser_rig import in_chromium, looking
from evolution_rig import opened
from roomlore import Message, NewMemory
from roomlore_server.http import create_app
from roomlore_testkit.model_server import Fails, ModelServer

pytestmark = in_chromium

WORDS = {
    "en-GB": {
        "search": "Search",
        "context": "Its context",
        "strategies": "The three strategies side by side",
        "people": "People",
        "memory": "Memory",
        "show": "Show",
        "at": "At a date",
        "retry": "Retry",
        "retried": "The job is retried.",
        "recall": "Recall",
        "whose": "Whose facts",
        "said": "What is being said",
    },
    "zh-CN": {
        "search": "搜索",
        "context": "上下文",
        "strategies": "三种策略并列",
        "people": "成员",
        "memory": "记忆",
        "show": "查看",
        "at": "某个日期",
        "retry": "重试",
        "retried": "正在重试。",
        "recall": "召回",
        "whose": "谁的事实",
        "said": "正在说什么",
    },
}
languages = pytest.mark.parametrize("language", WORDS)


async def search(page: Page, words: str, name: str) -> None:
    """Search by the field in the frame, from any page that has one."""
    await page.locator("#find").fill(words)
    await page.locator("#find").press("Enter")
    await page.get_by_role("heading", name=name, level=1).wait_for()


@languages
async def test_a_room_a_thread_and_the_reasons_of_a_context_are_found(browser, language):
    say = WORDS[language]
    async with (
        serving() as (address, lore),
        looking(browser, language=language, java_script_enabled=False) as page,
    ):
        await lore.messages.add(
            [Message(id="h1", room_id="harbour", sender_id="ben", text="hello"), *old_and_new(lore)]
        )
        await page.goto(f"{address}/console/people")
        await search(page, "harb", say["search"])
        await page.locator("main").get_by_role("link", name="harbour").click()
        await page.get_by_role("heading", name="harbour").wait_for()
        await page.goto(f"{address}/console/room?id=tea&around=7")
        await page.locator("#rail").get_by_role("link", name="Does the build fail").click()
        await page.wait_for_url("**/console/thread?**")
        assert await page.locator("#flow .row").count() == 4
        row = page.locator("#flow .row").last
        await row.hover()
        await row.get_by_role("link", name=say["context"]).click()
        await page.wait_for_url("**/console/context?**")
        why = page.locator(".weighed .taken .why")
        assert await why.count() >= 1
        assert all(await why.all_inner_texts())
        await page.get_by_role("link", name=say["strategies"]).click()
        await page.get_by_role("heading", name=say["strategies"]).wait_for()
        await search(page, "umbrella last month", say["search"])
        await page.locator("main .hits .text").first.wait_for()
        assert (await page.locator("main .hits .text").all_inner_texts())[0] == OLD
        await page.locator("main .hits .text a").first.click()
        await page.locator(".row:target").get_by_text(OLD).wait_for()


OLD = "who took my green umbrella?"


def old_and_new(lore) -> list[Message]:
    last_month = lore.now().replace(day=1, hour=12) - timedelta(days=10)
    said = {"room_id": "tea", "sender_id": "ben", "sender_name": "Ben"}
    return [
        Message(id="old", text=OLD, sent_at=last_month, **said),
        Message(id="new", text=f"{OLD} again", sent_at=lore.now(), **said),
    ]


@languages
async def test_what_is_known_of_a_person_and_what_was_remembered_earlier_is_read(browser, language):
    say = WORDS[language]
    async with (
        serving() as (address, lore),
        looking(browser, language=language, java_script_enabled=False) as page,
    ):
        await lore.memories.add_all([NewMemory(scope="user:anna", statement="Anna drinks green tea")])
        await page.goto(f"{address}/console")
        await page.get_by_role("navigation").get_by_role("link", name=say["people"], exact=True).click()
        await page.locator("main").get_by_role("link", name="Anna").click()
        await page.get_by_role("link", name="Anna drinks green tea").click()
        await page.get_by_role("heading", name="Anna drinks green tea").wait_for()
        await search(page, "green tea", say["search"])
        await page.locator("main").get_by_role("link", name="Anna drinks green tea").wait_for()
        await page.get_by_role("navigation").get_by_role("link", name=say["recall"], exact=True).click()
        await page.get_by_role("group", name=say["whose"]).get_by_role("checkbox", name="Anna").check()
        await page.get_by_label(say["said"]).fill("tea or coffee?")
        await page.get_by_role("button", name=say["recall"]).click()
        await page.get_by_role("link", name="Anna drinks green tea").wait_for()
        await page.get_by_role("navigation").get_by_role("link", name=say["memory"], exact=True).click()
        await page.locator("main").get_by_role("link", name="tea", exact=True).click()
        await page.locator("#then .lines > li").nth(1).wait_for()
        assert await page.locator("#then .lines > li").count() == 2
        await page.locator(".past summary").click()
        await page.get_by_label(say["at"]).fill((BEGIN - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M"))
        await page.get_by_role("button", name=say["show"]).last.click()
        await page.locator("#then h2").get_by_text("2026-01-04").wait_for()
        await page.wait_for_load_state()
        assert await page.locator("#then .lines > li").count() == 0


@pytest.mark.usefixtures("quick_retries")
@languages
async def test_a_job_is_retried_among_those_that_failed(browser, language):
    say = WORDS[language]
    async with ModelServer(default=Fails(status=400)) as server, opened(server, seconds=60) as lore:
        await lore.messages.add(Message(id="m1", room_id="tea", sender_id="ann", text="hello there"))
        begun = await lore.memories.begin_evolution("tea", mode="llm")
        failed = await lore.jobs.wait(begun.job_id, 60)
        assert failed.status == "failed"
        async with (
            listening(create_app(lore)) as address,
            looking(browser, language=language, java_script_enabled=False) as page,
        ):
            await page.goto(f"{address}/console/jobs?status=failed")
            await page.get_by_role("button", name=say["retry"]).first.click()
            await page.get_by_text(say["retried"]).wait_for()
            assert "status=failed" in page.url, "the list is still that of failed jobs"
            assert (await lore.jobs.wait(begun.job_id, 60)).attempts > failed.attempts


async def test_a_key_of_the_keyboard_is_named_only_where_it_works(browser):
    async with serving() as (address, _):
        for scripted in (True, False):
            async with looking(browser, java_script_enabled=scripted) as page:
                await page.goto(f"{address}/console")
                assert await page.locator(".find kbd").is_visible() is scripted
