"""What the tests of pages in a real browser share: Chromium and the faults that axe finds in each look."""

import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: `make system-packages` installs it")
PATIENCE_MS = 120_000
WIDE, CONTRAST = 1200, "color-contrast"
LOOKS = [("light", "en-GB", WIDE), ("dark", "zh-CN", WIDE), ("light", "zh-CN", 320), ("dark", "en-GB", 320)]
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


async def faults(page: Page, *rules: str, but: str = "") -> list[str]:
    """Return the serious and critical faults that axe finds by some of its rules, or by all except one."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = rules
    if but:
        options["rules"] = {but: {"enabled": False}}
    found = (await Axe().run(page, options=options)).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['target']}" for one in found if one["impact"] in ("serious", "critical")]


async def faults_of_look(page: Page, theme: str, width: int) -> list[str]:
    """Return the faults that no other look shows: colours are those of the theme, all else changes with the width."""
    if width >= WIDE:
        return await faults(page) if theme == "light" else await faults(page, CONTRAST)
    return await faults(page, but=CONTRAST) if theme == "light" else []


async def faults_in_every_look(browser: Browser, address: str, pages: Mapping[str, str]) -> dict[str, object]:
    """Return, by page and look, the serious faults, the pixels by which the page is wider than the window, and its
    title, where there are any or a script of what is shown set the title to `taken`."""
    wrong: dict[str, object] = {}
    for theme, language, width in LOOKS:
        async with looking(browser, theme, language, width) as page:
            for name, path in pages.items():
                await page.goto(address + path)
                seen = await faults_of_look(page, theme, width)
                wider, title = await page.evaluate(WIDER), await page.title()
                if seen or wider > 0 or title == "taken":
                    wrong[f"{name} {theme} {language} {width}"] = (seen, wider, title)
    return wrong
