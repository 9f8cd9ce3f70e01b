"""What the tests of pages in a real browser share: Chromium and the faults that axe finds in each look."""

import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Browser, Page, async_playwright

CHROMIUM = shutil.which("chromium")
in_chromium = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: `make system-packages` installs it"),
    pytest.mark.asyncio(loop_scope="session"),  # the loop on which `browser` was started
]
PATIENCE_MS = 120_000
WIDE, CONTRAST = 1200, "color-contrast"
LOOKS = {"en-GB": (("light", WIDE), ("dark", 320)), "zh-CN": (("light", 320), ("dark", WIDE))}
"""By language, the themes and widths of a page: it is loaded in the first and then changed to the second."""
CHECK = "([inside, options]) => axe.run(inside ?? document, options)"
WIDER = "document.documentElement.scrollWidth - innerWidth"


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
async def looking(
    browser: Browser, theme: str = "light", language: str = "en-GB", width: int = 1200, **more: Any
) -> AsyncIterator[Page]:
    context = await browser.new_context(
        locale=language, color_scheme=theme, viewport={"width": width, "height": 800}, **more
    )
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    try:
        yield page
    finally:
        await context.close()


async def faults(page: Page, *rules: str, but: str = "", inside: str = "") -> list[str]:
    """Return the serious and critical faults that axe finds by some of its rules, or by all except one; on the whole
    page, or inside what a selector chooses."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = rules
    if but:
        options["rules"] = {but: {"enabled": False}}
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    found = (await page.evaluate(CHECK, [inside or None, options]))["violations"]
    return [f"{one['id']}: {one['nodes'][0]['target']}" for one in found if one["impact"] in ("serious", "critical")]


async def faults_of_look(page: Page, theme: str, width: int, *, wide: str = "") -> list[str]:
    """Return the faults that no other look shows: colours are those of the theme, all else changes with the width. In a
    wide window, look only inside what the selector `wide` chooses, if there is one."""
    if width >= WIDE:
        return await faults(page, inside=wide) if theme == "light" else await faults(page, CONTRAST, inside=wide)
    return await faults(page, but=CONTRAST) if theme == "light" else []


async def faults_in_every_look(browser: Browser, address: str, pages: Mapping[str, str]) -> dict[str, object]:
    """Return, by page and look, the serious faults, the pixels by which the page is wider than the window, and its
    title, where there are any or a script of what is shown set the title to `taken`."""
    wrong: dict[str, object] = {}
    for language, looks in LOOKS.items():
        async with looking(browser, language=language) as page:
            for name, path in pages.items():
                await look_like(page, *looks[0])
                await page.goto(address + path)
                for theme, width in looks:
                    await look_like(page, theme, width)
                    seen = await faults_of_look(page, theme, width)
                    wider, title = await page.evaluate(WIDER), await page.title()
                    if seen or wider > 0 or title == "taken":
                        wrong[f"{name} {theme} {language} {width}"] = (seen, wider, title)
    return wrong


async def look_like(page: Page, theme: str, width: int) -> None:
    await page.emulate_media(color_scheme=theme)
    await page.set_viewport_size({"width": width, "height": 800})
