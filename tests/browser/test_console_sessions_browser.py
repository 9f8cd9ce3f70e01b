"""The console's pages of sessions and of facts in a real browser: their main jobs, and no serious fault in any look."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from bench.pictures.live import listening

import roomlore
from browser_rig import faults_in_every_look, in_chromium, looking
from roomlore import Lore, Settings
from roomlore_server.http import create_app

pytestmark = in_chromium
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
        async with listening(create_app(lore)) as address:
            yield address, lore


async def test_every_page_in_every_look_has_no_serious_fault(browser):
    async with serving() as (address, _):
        assert await faults_in_every_look(browser, address, PAGES) == {}


async def test_the_gauge_is_drawn_as_its_words_say(browser):
    refused: list[str] = []
    async with serving() as (address, lore), looking(browser) as page:
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
async def test_a_session_is_summarised_and_reset(browser, scripted):
    async with (
        serving() as (address, lore),
        looking(browser, java_script_enabled=scripted) as page,
    ):
        await page.goto(f"{address}/console/session?id=conv-1")
        await page.get_by_role("link", name="Summarise now").click()
        await page.get_by_role("button", name="Summarise it").click()
        await page.get_by_text("The summary stands for 6 turns").wait_for()
        await page.get_by_role("link", name="To the session").click()
        await page.get_by_role("heading", name="Checkpoint 2").wait_for()
        await page.get_by_role("link", name="Reset").click()
        await page.get_by_role("button", name="Reset").click()
        await page.get_by_text("The session was reset.").wait_for()
        assert [one.kind for one in await lore.sessions.checkpoints("conv-1")] == ["reset", "summary", "summary"]


@pytest.mark.parametrize("scripted", [True, False], ids=["script", "no-script"])
async def test_a_fact_is_written_mended_and_found(browser, scripted):
    async with (
        serving() as (address, lore),
        looking(browser, java_script_enabled=scripted, language="zh-CN") as page,
    ):
        await page.goto(f"{address}/console/memory?id=user:ann")
        await page.get_by_role("link", name="添加记忆").click()
        await page.get_by_label("内容").fill("安娜对花生过敏")
        await page.locator("main summary").click()
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
