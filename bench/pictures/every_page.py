"""Every page of the console in each look, for somebody to look at: `python -m bench screenshots --every --out FOLDER`.

A picture is named `PAGE-LANGUAGE-THEME-WIDTH.png` and shows the whole page. The pages are of the store of the pictures
in the documentation; pages of errors, and of a visitor with a key, are among them.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.pictures import nights, threads
from bench.pictures.console_store import SESSION
from bench.pictures.live import listening
from roomlore import Lore
from roomlore.samples import DEMO_ROOM
from roomlore_console.frame import KEY_COOKIE, ROOT, VIEWER_COOKIE
from roomlore_server.http import create_app

LANGUAGES = ("en-GB", "zh-CN")
THEMES = ("light", "dark")
WIDTHS = (1280, 390)
_HEIGHT = 860
_PATIENCE_MS = 60_000
_ZONE = "Asia/Shanghai"

PAGES: Mapping[str, str] = {
    "today": "",
    "today-person": "?for=priya",
    "today-nobody": "?for=Prya",
    "rooms": "/rooms",
    "room": f"/room?id={DEMO_ROOM}",
    "thread": f"/thread?id={DEMO_ROOM}&message={threads.LAST[1]}",
    "context": f"/context?room={DEMO_ROOM}&message={threads.LAST[1]}",
    "context-weighted": f"/context?room={DEMO_ROOM}&message={threads.LAST[1]}&strategy=weighted",
    "room-delete": f"/room/delete?id={DEMO_ROOM}",
    "digest": f"/digest?id={DEMO_ROOM}",
    "visible": f"/visible?id={DEMO_ROOM}",
    "visible-withheld": f"/visible?id={DEMO_ROOM}&withheld=1",
    "search": "/search",
    "search-found": "/search?q=release",
    "search-nothing": "/search?q=zzzz&since=2026-06-40",
    "people": "/people",
    "people-none": "/people?q=zzzz",
    "person": "/person?id=ann",
    "forget": "/forget",
    "forget-near": "/forget?who=Prya",
    "forget-question": "/memory/change?what=forget&id=ann",
    "forget-count": "/memory/forgetting/would?id=ann",
    "forgetting": "/memory/forgetting?id=ann",
    "memories": "/memories",
    "memories-near": "/memories?find=Anm",
    "memory": f"/memory?id={nights.ROOM}",
    "memory-then": f"/memory?id={nights.ROOM}&step=20",
    "memory-no-day": f"/memory?id={nights.ROOM}&at=soon",
    "memory-person": "/memory?id=user:ann",
    "memory-empty": f"/memory?id=group:{DEMO_ROOM}",
    "compare": f"/memory/compare?id={nights.ROOM}&from=3&to=now",
    "evolve": f"/memory/change?what=evolve&id={nights.ROOM}",
    "write": "/memory/write?scope=user:ann",
    "recall": "/recall",
    "recall-found": "/recall?scopes=user:ann&q=妈妈的生日怎么办&tokens=160",
    "recall-unknown": "/recall?whose=group:rowers&who=Anm&q=birthday&tokens=many",
    "sessions": "/sessions",
    "session": f"/session?id={SESSION}",
    "session-reset": f"/session/change?what=reset&id={SESSION}",
    "jobs": "/jobs",
    "experiments": "/usage",
    "health": "/health?still=yes",
    "findings": "/health/findings",
    "more": "/places",
    "no-page": "/nowhere",
    "no-room": "/room?id=harbor-team",
    "no-person": "/person?id=Marko",
    "wrong-value": "/jobs?status=odd",
    "failure": "/fails",
}

WITH_A_KEY: Mapping[str, str] = {"viewer": "/viewer", "viewer-people": "/people", "no-right": "/health"}
"""Pages of a visitor whose key may not see everything. All but the first are shown to the room of the demo."""
WITHOUT_A_KEY: Mapping[str, str] = {"sign-in": "/sign-in", "signed-out": "/people"}


@asynccontextmanager
async def serving(lore: Lore) -> AsyncIterator[str]:
    """Yield the address of a server on a filled store. One of its pages always fails."""

    async def fail(page: Any) -> Any:
        raise RuntimeError("this page always fails")

    with patch.dict("roomlore_console.routes._SHOWN", {"/fails": fail}):
        app = create_app(lore)
    async with listening(app) as address:
        yield address


async def take_all(browser: Any, lore: Lore, address: str, folder: Path) -> int:
    """Take each page in each look; return the number of pictures. The store has a key at the end."""
    count = await _take(browser, address, await pages_of(lore), folder)
    key = {KEY_COOKIE: (await lore.keys.create("looking", scopes=("read",)))[1]}
    first, *others = WITH_A_KEY.items()
    count += await _take(browser, address, WITHOUT_A_KEY, folder)
    count += await _take(browser, address, dict([first]), folder, **key)
    viewer = {VIEWER_COOKIE: f"room:{DEMO_ROOM}"}
    return count + await _take(browser, address, dict(others), folder, **key, **viewer)


async def pages_of(lore: Lore) -> Mapping[str, str]:
    """Return the pages of a visitor without a key, with those of one memory."""
    memory = (await lore.memories.page(f"group:{nights.ROOM}", limit=1))[0].memory_id
    return {
        **PAGES,
        "lineage": f"/memory/one?id={memory}",
        "lineage-change": f"/memory/write?id={memory}",
        "lineage-delete": f"/memory/change?what=delete&id={memory}",
    }


async def _take(browser: Any, address: str, pages: Mapping[str, str], folder: Path, **cookies: str) -> int:
    """Take pages in each look: a page is loaded once in a language, and then changes its theme and width."""
    for language in LANGUAGES:
        context = await browser.new_context(locale=language, timezone_id=_ZONE)
        context.set_default_timeout(_PATIENCE_MS)
        kept = [{"name": name, "value": value, "url": address + ROOT} for name, value in cookies.items()]
        await context.add_cookies(kept)
        page = await context.new_page()
        for name, path in pages.items():
            await page.goto(address + ROOT + path, wait_until="networkidle")
            for theme in THEMES:
                await page.emulate_media(color_scheme=theme)
                for width in WIDTHS:
                    await page.set_viewport_size({"width": width, "height": _HEIGHT})
                    await page.screenshot(path=folder / f"{name}-{language[:2]}-{theme}-{width}.png", full_page=True)
        await context.close()
    return len(LANGUAGES) * len(THEMES) * len(WIDTHS) * len(pages)
