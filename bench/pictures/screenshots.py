"""Takes the screenshots of the console from a real server, in a real browser: `python -m bench screenshots`.

Needs playwright, Chromium, fonts with Chinese and emoji, and pngquant where the pictures are to be small.
"""

import argparse
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.pictures import every_page, nights, threads
from bench.pictures.console_store import RECENT, SESSION, SUMMARY, WINDOW, fill
from bench.pictures.drawing import FOLDER
from bench.pictures.held import held
from bench.pictures.live import listening, live
from roomlore import Lore
from roomlore.samples import DEMO_ROOM
from roomlore_server.http import create_app
from roomlore_testkit.model_server import ModelServer

_PATIENCE_MS = 60_000
_ZONE = "Asia/Shanghai"


@dataclass(frozen=True)
class Shot:
    """A page as it is photographed. `at`: what is scrolled to, a selector; '' for the top."""

    name: str
    path: str
    language: str
    theme: str
    height: int = 860
    at: str = ""
    opened: str = ""
    live: bool = False
    """True for a busy server with a running clock."""


SHOTS = (
    Shot("console-today.png", "/console?since=month&for=noor", "en-GB", "light", height=760),
    Shot("console-today-zh.png", "/console?since=month&for=noor", "zh-CN", "dark", height=760),
    Shot("console-room.png", f"/console/room?id={DEMO_ROOM}", "en-GB", "light", height=960),
    Shot(
        "console-context.png",
        f"/console/context?room={DEMO_ROOM}&message={threads.LAST[1]}",
        "en-GB",
        "dark",
        height=1000,
        opened=".weighed > li:nth-child(3) summary",
    ),
    Shot("console-memory.png", f"/console/memory?id={nights.ROOM}", "zh-CN", "light", at="#log"),
    Shot("console-compare.png", f"/console/memory/compare?id={nights.ROOM}&from=3&to=now", "en-GB", "light"),
    Shot("console-past.png", f"/console/memory?id={nights.ROOM}&step=20", "en-GB", "light"),
    Shot("console-sessions.png", f"/console/session?id={SESSION}", "zh-CN", "dark"),
    Shot("console-recall.png", "/console/recall?scopes=user:ann&q=妈妈的生日怎么办&tokens=160", "zh-CN", "dark"),
    Shot("console-health.png", "/console/health?still=yes", "en-GB", "dark", height=1000, at="#measured", live=True),
    Shot("console-room-zh.png", "/console/room?id=dev_group", "zh-CN", "dark"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=FOLDER, help="a folder; by default docs/pictures")
    parser.add_argument("--wide", type=int, default=1280, help="pixels")
    parser.add_argument("--every", action="store_true", help="every page in each language, theme and width instead")


async def run(arguments: argparse.Namespace) -> None:
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.every:
        async with filled() as lore, every_page.serving(lore) as address, _browsing("en-GB") as browser:
            print(f"{await every_page.take_all(browser, lore, address, arguments.out):,} pictures in {arguments.out}")
        return
    for opened, shots in (
        (serving, [picture for picture in SHOTS if not picture.live]),
        (live, [picture for picture in SHOTS if picture.live]),
    ):
        async with opened() as address:
            for shot in shots:
                path = arguments.out / shot.name
                async with _browsing(shot.language) as browser:
                    await _take(browser, shot, address, path, arguments.wide)
                _make_small(path)
                print(f"{path}: {path.stat().st_size:,} bytes")


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """The address of a server with the store, whose clock stands still."""
    async with filled() as lore, listening(create_app(lore)) as address:
        yield address


@asynccontextmanager
async def filled() -> AsyncIterator[Lore]:
    async with ModelServer(nights.Script()) as model:
        settings = nights.settings(
            model,
            time_zone=_ZONE,
            model_context_window=WINDOW,
            recent_turns=RECENT,
        )
        async with held(settings, summary_tokens=SUMMARY) as (lore, clock):
            await fill(lore, clock)
            yield lore


@asynccontextmanager
async def _browsing(language: str) -> AsyncIterator[Any]:
    playwright: Any = import_module("playwright.async_api")
    async with playwright.async_playwright() as started:
        browser = await started.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-dev-shm-usage", f"--lang={language}"],
            env={"LANGUAGE": language.replace("-", "_")},
        )
        try:
            yield browser
        finally:
            await browser.close()


async def _take(browser: Any, shot: Shot, address: str, path: Path, wide: int) -> None:
    context = await browser.new_context(
        locale=shot.language,
        color_scheme=shot.theme,
        timezone_id=_ZONE,
        viewport={"width": wide, "height": shot.height},
        device_scale_factor=1.5,
    )
    page = await context.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    await page.goto(address + shot.path, wait_until="networkidle")
    if shot.opened:
        await page.locator(shot.opened).first.click()
    if shot.at:
        await page.locator(shot.at).first.evaluate("one => one.scrollIntoView()")
    await page.screenshot(path=path)
    await context.close()


def _make_small(path: Path) -> None:
    quantiser = shutil.which("pngquant")
    if quantiser:
        subprocess.run([quantiser, "--force", "--speed", "1", "--strip", "--output", path, "128", path], check=True)
