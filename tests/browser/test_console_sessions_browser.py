"""The console's pages of sessions and of facts in a real browser: their main jobs, and no serious fault in any look."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright

import roomlore
from roomlore import Lore, Settings
from roomlore.surfaces.http import create_app

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: `make system-packages` installs it")

PATIENCE_MS = 120_000
SAID = (
    ("I feel dizzy. What should I do?", "Sit down first and drink some water."),
    ("我还有高血压，要注意什么？", "请按时服药，早晚各量一次血压。"),
    ("<script>document.title = 'taken'</script>\u202e" + "z" * 500, "Please say that again."),
)
PAGES = {
    "sessions": "/console/sessions",
    "none-found": "/console/sessions?find=nobody",
    "session": "/console/session?id=conv-1",
    "session-new": "/console/session?id=conv-2",
    "too-small": "/console/session?id=conv-1&window=10",
    "summarise": "/console/session/change?what=summarise&id=conv-1",
    "reset": "/console/session/change?what=reset&id=conv-1",
    "facts": "/console/memory?id=user:ann",
    "facts-gone": "/console/memory?id=user:ann&status=deprecated&kind=fact",
    "write": "/console/memory/write?scope=user:ann",
    "edit": "/console/memory/write?id=f1",
}
LOOKS = [("light", "en-GB", 1200), ("dark", "zh-CN", 1200), ("light", "zh-CN", 320), ("dark", "en-GB", 320)]


async def fill(lore: Lore) -> None:
    for turn in range(2):
        for n, (query, answer) in enumerate(SAID):
            await lore.sessions.write_turn("conv-1", "ann", "triage", query, answer, turn_id=f"{turn}-{n}")
        if not turn:
            summary = "头晕，有高血压；建议休息喝水。"
            await lore.sessions.checkpoint("conv-1", summary, recent_turns=1, covers_through="0-2-answer")
    await lore.sessions.patch_state("conv-1", {"global_state": {"current_intent": "退款"}})
    await lore.sessions.create_session("conv-2", "ben")
    await lore.memories.add(
        "user:ann", "安娜喜欢喝绿茶", confidence=0.9, category="偏好", tags=["茶", "drink"], memory_id="f1"
    )
    gone = await lore.memories.add("user:ann", "Ann rides a bike to work")
    await lore.memories.delete(gone.memory_id, "moved")


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[str, Lore]]:
    settings = Settings(durable_work="process", model_context_window=1_000, recent_turns=2)
    async with roomlore.open("sqlite://", settings=settings) as lore:
        await fill(lore)
        config = uvicorn.Config(create_app(lore), port=0, log_config=None, access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        door = config.bind_socket()
        running = asyncio.create_task(server.serve([door]))
        try:
            yield f"http://127.0.0.1:{door.getsockname()[1]}", lore
        finally:
            server.should_exit = True
            await running
            door.close()


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    async with async_playwright() as started:
        browser = await started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"], timeout=PATIENCE_MS
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def looking(browser: Browser, theme: str = "light", language: str = "en-GB", width: int = 1200, **more):
    context = await browser.new_context(
        locale=language, color_scheme=theme, viewport={"width": width, "height": 800}, **more
    )
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    try:
        yield page
    finally:
        await context.close()


async def faults(page: Page) -> list[str]:
    found = (await Axe().run(page)).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['target']}" for one in found if one["impact"] in ("serious", "critical")]


async def test_every_page_in_every_look_has_no_serious_fault():
    wrong: dict[str, object] = {}
    async with serving() as (address, _), browsing() as browser:
        for theme, language, width in LOOKS:
            async with looking(browser, theme, language, width) as page:
                for name, path in PAGES.items():
                    await page.goto(address + path)
                    seen = await faults(page)
                    wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
                    if seen or wider > 0:
                        wrong[f"{name} {theme} {language} {width}"] = (seen, wider)
                    assert "taken" not in await page.title()
    assert wrong == {}


async def test_the_gauge_is_drawn_as_its_words_say():
    refused: list[str] = []
    async with serving() as (address, lore), browsing() as browser, looking(browser) as page:
        page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
        await page.goto(f"{address}/console")
        await page.get_by_role("link", name="Sessions", exact=True).click()
        await page.get_by_role("main").get_by_role("link", name="conv-1", exact=True).click()
        context = await lore.sessions.preview_context("conv-1")
        await page.get_by_text(f"{context.estimated_tokens} of 1,000 tokens").wait_for()
        gauge = page.get_by_role("img", name="Tokens: summary")
        whole = (await gauge.bounding_box())["width"]
        drawn = [(await gauge.locator(f".{part}").bounding_box())["width"] for part in ("summary", "turns")]
        assert sum(drawn) / whole == pytest.approx(context.token_ratio, abs=0.01)
        assert (
            len(set(await gauge.locator("rect").evaluate_all("all => all.map(one => getComputedStyle(one).fill)"))) == 3
        )
        await page.get_by_label("Tokens the model takes").fill("100")
        await page.get_by_role("button", name="See what fits").click()
        await page.get_by_text("A checkpoint is advised: the window").wait_for()
        await page.get_by_role("link", name="To the room").click()
        await page.get_by_role("link", name="Its session").click()
        await page.get_by_role("heading", name="What a model would be shown").wait_for()
    assert refused == []


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
async def test_a_session_is_summarised_and_begins_anew(scripted):
    async with (
        serving() as (address, lore),
        browsing() as browser,
        looking(browser, java_script_enabled=scripted) as page,
    ):
        await page.goto(f"{address}/console/session?id=conv-1")
        await page.get_by_role("link", name="Summarise now").click()
        await page.get_by_role("button", name="Summarise it").click()
        await page.get_by_text("The summary stands for 6 turns").wait_for()
        await page.get_by_role("link", name="To the session").click()
        await page.get_by_role("heading", name="Checkpoint 2").wait_for()
        await page.get_by_role("link", name="Begin anew").click()
        await page.get_by_role("button", name="Begin anew").click()
        await page.get_by_text("The conversation begins anew.").wait_for()
        assert [one.kind for one in await lore.sessions.checkpoints("conv-1")] == ["reset", "summary", "summary"]


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
async def test_a_fact_is_written_mended_and_found(scripted):
    async with (
        serving() as (address, lore),
        browsing() as browser,
        looking(browser, java_script_enabled=scripted, language="zh-CN") as page,
    ):
        await page.goto(f"{address}/console/memory?id=user:ann")
        await page.get_by_role("link", name="添加记忆").click()
        await page.get_by_label("内容").fill("安娜对花生过敏")
        await page.get_by_label("置信度").fill("很确定")
        await page.get_by_role("button", name="记住").click()
        await page.get_by_text("请填 0 到 1 之间的数").wait_for()
        assert await page.get_by_label("内容").input_value() == "安娜对花生过敏"
        await page.get_by_label("置信度").fill("0.8")
        await page.get_by_role("button", name="记住").click()
        await page.get_by_text("已记住。").wait_for()
        await page.get_by_role("link", name="修改").click()
        await page.get_by_label("内容").fill("安娜对花生和杏仁过敏")
        await page.get_by_role("button", name="保存为新版本").click()
        await page.get_by_text("已保存为新版本。").wait_for()
        await page.get_by_role("link", name="ann", exact=True).click()
        await page.get_by_role("link", name="事实", exact=True).click()
        await page.wait_for_url("**kind=fact**")
        newest, *rest = found = await lore.memories.page("user:ann")
        assert (newest.statement, newest.confidence, len(rest)) == ("安娜对花生和杏仁过敏", 0.8, 1)
        assert await page.locator("#then .statement").all_inner_texts() == [one.statement for one in found]
