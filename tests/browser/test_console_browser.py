"""The console in a real browser: every page in both themes and languages without a serious fault, and the main jobs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from bench.pictures.live import listening

import roomlore
from browser_rig import WIDER, faults, faults_in_every_look, in_chromium, looking
from roomlore import Lore, Message, NewMemory, Settings
from roomlore.core.memory.memory import Source
from roomlore_server.http import create_app
from roomlore_server.http.app import beside
from roomlore_server.http.console_route import console_pages

pytestmark = in_chromium
BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
TALK = (
    ("anna", "周五谁去喝茶？", None),
    ("ben", "Does the build fail for anyone else?", None),
    ("carla", "我去！几点？", "m0"),
    ("dan", "@ben yes, the linker step fails since noon", "m1"),
    ("anna", "下午三点，老地方", "m2"),
    ("mallory", "<script>document.title = 'taken'</script>\u202e" + "z" * 3_000, None),
    ("ben", "I think it is the new compiler flag", "m3"),
)
PAGES = {
    "today": "/console?since=2026-01-01",
    "today-for-one": "/console?for=anna&since=2026-01-01",
    "today-quiet": "/console",
    "rooms": "/console/rooms",
    "digest": "/console/digest?id=tea&for=Ben",
    "room": "/console/room?id=tea",
    "room-500": "/console/room?id=tea&limit=500",
    "no-such-room": "/console/room?id=none",
    "room-delete": "/console/room/delete?id=tea",
    "thread": "/console/thread?id=tea&message=m3",
    "context": "/console/context?room=tea&message=m6",
    "weighted": "/console/context?room=tea&message=m6&strategy=weighted",
    "search": "/console/search?q=tea",
    "search-nothing": "/console/search?q=zzzz",
    "people": "/console/people",
    "person": "/console/person?id=anna",
    "whom-to-forget": "/console/forget?who=a",
    "nobody-to-forget": "/console/forget?who=zzzz",
    "more": "/console/places",
    "memories": "/console/memories",
    "memory": "/console/memory?id=tea",
    "memory-then": "/console/memory?id=tea&step=50",
    "memory-compared": "/console/memory/compare?id=tea&from=0",
    "memory-empty": "/console/memory?id=nothing",
    "blame": "/console/memory/one?id=f1",
    "evolve": "/console/memory/change?what=evolve&id=tea",
    "delete": "/console/memory/change?what=delete&id=f1",
    "forget": "/console/memory/change?what=forget&id=mallory",
    "recall": "/console/recall",
    "recalled": "/console/recall?scopes=group:tea&q=tea",
    "jobs": "/console/jobs",
    "experiments": "/console/usage",
    "health": "/console/health",
    "findings": "/console/health/findings",
    "sign-in": "/console/sign-in",
    "signed-out": "/console/sign-in?next=/console/people",
    "viewer": "/console/viewer",
    "no-page": "/console/nowhere",
    "nobody-near": "/console/person?id=Dam",
    "visible": "/console/visible?id=tea",
    "withheld": "/console/visible?id=tea&withheld=1",
    "search-no-day": "/console/search?q=tea&since=soon",
    "memories-near": "/console/memories?find=Ana",
    "memory-no-time": "/console/memory?id=tea&at=soon",
    "compared-no-time": "/console/memory/compare?id=tea&from_at=soon",
    "recall-typo": "/console/recall?whose=group:tea&who=Ana&tokens=many",
    "forget-typo": "/console/forget?who=Malory",
    "counted": "/console/memory/forgetting/would?id=mallory",
    "forgetting": "/console/memory/forgetting?id=mallory",
    "links-changed": "/console/context?room=tea&message=m6&relinked=2",
}
ELSEWHERE = {
    "/sessions", "/session", "/session/change", "/memory/write",  # test_console_sessions_browser.py
    # Pieces and redirects.
    "/side", "/suggest", "/room/live", "/room/threads", "/rooms/{name:path}", "/people/{name:path}",
    "/memory/evolving", "/session/summarising",  # pages of a job
    "/static/{name}", "/{rest:path}", "/",
}  # fmt: skip


async def fill(lore: Lore) -> None:
    messages = [
        Message(
            id=f"m{n}",
            room_id="tea",
            sender_id=who,
            sender_name=who.title(),
            text=text,
            reply_to=answered,
            sent_at=BEGIN + timedelta(minutes=n),
        )
        for n, (who, text, answered) in enumerate(TALK)
    ]
    await lore.messages.add(messages)
    await lore.memories.add("group:tea", "成员每周五下午喝茶", sources=[Source("tea", "m0")], memory_id="f1")
    await lore.memories.update(
        "f1", statement="成员每周五下午三点在老地方喝茶", sources=[Source("tea", "m4")], reason="more"
    )
    await lore.memories.add("group:tea", "The build fails since the new compiler flag", memory_id="f2")


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[str, Lore]]:
    settings = Settings(durable_work="process")
    async with roomlore.open("sqlite://", settings=settings) as lore:
        await fill(lore)
        app = create_app(lore)
        async with listening(app) as address, beside(app, lore):
            yield address, lore


async def test_every_page_is_among_those_that_are_looked_at():
    paths = {one.path.removeprefix("/console") for one in console_pages() if "GET" in one.methods}
    assert paths - ELSEWHERE == {urlsplit(path).path.removeprefix("/console") for path in PAGES.values()} - {"/nowhere"}


async def test_every_page_in_every_look_has_no_serious_fault(browser):
    async with serving() as (address, _):
        assert await faults_in_every_look(browser, address, PAGES) == {}


async def test_a_room_leads_to_a_context_and_asks_for_nothing_elsewhere(browser):
    asked: list[str] = []
    refused: list[str] = []
    async with serving() as (address, _), looking(browser) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
        await page.goto(f"{address}/")
        await page.get_by_role("heading", name="Today").wait_for()
        await page.get_by_role("link", name="Rooms", exact=True).click()
        await page.get_by_role("main").get_by_role("link", name="tea", exact=True).click()
        await page.locator("#m7").wait_for()
        assert await page.get_by_role("article").count() == len(TALK)
        assert await page.title() == "tea · roomlore"
        lines = page.locator(".lane:not(.none):not(.pass)")
        assert len(set(await lines.evaluate_all("all => all.map(one => getComputedStyle(one).color)"))) >= 2
        assert len(set(await lines.all_inner_texts())) >= 2
        await page.locator("#m7").hover()
        await page.locator("#m7").get_by_role("link", name="Its context").click()
        await page.get_by_role("complementary", name="The context of a message").get_by_role("heading").first.wait_for()
        assert "/room?" in page.url, "it is beside the room"
        await page.get_by_role("link", name="The three strategies side by side").click()
        await page.get_by_role("heading", name="The three strategies side by side").wait_for()
        await page.get_by_role("link", name="Weighted").click()
        await page.get_by_text("Strongest signal").first.click()
        assert await page.locator("details[open] meter").count() == 5
    assert asked
    assert [one for one in asked if not one.startswith(address)] == []
    assert refused == []


async def test_the_keyboard_alone_gets_to_the_content(browser):
    async with serving() as (address, _), looking(browser) as page:
        await page.goto(f"{address}/console/room?id=tea")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.className") == "skip"
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.closest('main') !== null")


async def test_the_slider_goes_back_without_leaving_the_page(browser):
    async with serving() as (address, _), looking(browser) as page:
        await page.goto(f"{address}/console/memory?id=tea")
        await page.get_by_text("At another time").click()
        async with page.expect_response(lambda answer: "step=0" in answer.url):
            await page.get_by_role("slider").focus()
            await page.keyboard.press("Home")
        await page.get_by_role("heading", name="Remembered on").wait_for()
        assert "step" not in page.url


@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
async def test_the_slider_has_room_on_a_phone_and_goes_where_it_is_touched(browser, language):
    async with serving() as (address, _), looking(browser, language=language, width=390) as page:
        await page.goto(f"{address}/console/memory?id=tea")
        await page.locator(".past summary").click()
        slider, form = page.get_by_role("slider"), page.locator("form").filter(has=page.get_by_role("slider"))
        track, button = await slider.bounding_box(), await form.get_by_role("button").bounding_box()
        assert track["width"] >= 90
        assert track["x"] + track["width"] <= button["x"] or track["y"] + track["height"] <= button["y"]
        async with page.expect_response(lambda answer: "step=" in answer.url):
            await page.mouse.click(track["x"] + track["width"] / 2, track["y"] + track["height"] / 2)
        await page.locator("#then h2 + p").wait_for()
        assert 40 <= int(await slider.input_value()) <= 60
        assert await page.evaluate(WIDER) <= 0


async def test_another_time_is_paged_with_the_keyboard_on_a_phone(browser):
    async with serving() as (address, lore), looking(browser, "dark", "zh-CN", 320) as page:
        many = [NewMemory(scope="user:anna", statement=f"安娜喝过第 {n} 种茶") for n in range(130)]
        await lore.memories.add_all(many)
        await page.goto(f"{address}/console/memory?id=user:anna")
        await page.locator(".past summary").click()
        async with page.expect_response(lambda answer: "step=0" in answer.url):
            await page.get_by_role("slider").focus()
            await page.keyboard.press("Home")
        await page.get_by_text("130 条中的 100 条").wait_for()
        await page.get_by_role("link", name="下一页").focus()
        await page.keyboard.press("Enter")
        await page.get_by_text("130 条中的 30 条").wait_for()
        assert await page.locator("#then .statement").first.inner_text() == many[100].statement
        assert await page.evaluate(WIDER) <= 0
        assert await faults(page) == []


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
async def test_a_memory_is_deleted_and_brought_back(browser, scripted):
    async with (
        serving() as (address, lore),
        looking(browser, java_script_enabled=scripted) as page,
    ):
        await page.goto(f"{address}/console/memory/one?id=f2")
        await page.get_by_role("link", name="Delete").click()
        await page.get_by_label("Why").fill("mended")
        await page.get_by_role("button", name="Delete it").click()
        await page.get_by_text("It stays in the history").wait_for()
        assert [one.memory_id for one in await lore.memories.page("group:tea")] != ["f2"]
        assert len(await lore.memories.page("group:tea")) == 1
        await page.get_by_role("link", name="Bring this version back").click()
        await page.get_by_role("button", name="Bring it back").click()
        await page.get_by_text("Brought back.").wait_for()
        assert len(await lore.memories.page("group:tea")) == 2


async def test_language_and_colours_are_chosen_without_a_script(browser):
    async with serving() as (address, _), looking(browser, java_script_enabled=False) as page:
        await page.goto(f"{address}/console")
        await page.get_by_role("button", name="中文").click()
        await page.get_by_role("heading", name="今日").wait_for()
        await page.get_by_role("button", name="深色").click()
        await page.locator("html[data-theme=dark]").wait_for()
        assert await page.get_by_role("button", name="深色").get_attribute("aria-pressed") == "true"


async def test_health_draws_what_is_measured_and_asks_again_by_itself(browser):
    async with serving() as (address, lore), looking(browser, "dark", "zh-CN", 390) as page:
        await page.goto(f"{address}/console/health")
        await page.get_by_text("处值得留意：").wait_for()
        drawn = page.get_by_role("img", name="每分钟存储的消息")
        assert await drawn.count() == 0
        await lore.messages.add([Message(id="new", room_id="tea", sender_id="anna", text="再来一杯")])
        await drawn.wait_for()
        assert await page.evaluate(WIDER) <= 0
        await page.get_by_role("link", name="不再自动刷新").click()
        await page.get_by_role("link", name="每 10 秒自动刷新").wait_for()
        assert await page.locator("#now[hx-trigger^=every]").count() == 0
