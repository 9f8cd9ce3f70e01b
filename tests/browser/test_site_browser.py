"""The documentation's site in a real browser: found in both languages, nothing from elsewhere, no serious fault."""

import asyncio
import functools
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from browser_rig import WIDE, WIDER, faults_of_look, in_chromium, looking

pytestmark = in_chromium

ROOT = Path(__file__).parents[2]
PAGES = {"": "", "quickstart/": "", "quickstart.zh/": "", "explanation/soft-threads/": "", "reference/cli/": "h1, h2"}
"""With what is checked in a wide window, if not all. The last page is the longest and takes as long as all the others
there, which have what it has, but for a command as a heading."""
SETTLED = """() => document.readyState === 'complete' &&
    [...document.querySelectorAll('article table:not([class])')].every(one => one.closest('.md-typeset__table'))"""
"""The theme puts each table into a frame some time after the page is loaded. Meanwhile a link in it has no name."""
LOOKS = [("light", WIDE), ("dark", WIDE), ("light", 360)]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=500, capture_output=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_search_finds_pages_in_both_languages_without_leaving(browser, address):
    async with looking(browser) as page:
        asked, troubles = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        await page.goto(address)
        for question, place in (
            ("forget a person", "how-to/forget/"),
            ("记忆", "README.zh/"),
            ("evolve", "evolution/"),
        ):
            await page.fill(".md-search__input", question)
            await page.press(".md-search__input", "End")
            await page.wait_for_selector(f".md-search-result__link[href*='{place}']", state="attached")
        assert [url for url in asked if not url.startswith((address, "blob:", "data:"))] == []
        assert troubles == []


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
async def test_pages_have_no_serious_fault_and_fit_their_width(browser, address, scheme, width):
    async with looking(browser, scheme, width=width) as page:
        answers: list[tuple[int, str]] = []
        page.on("response", lambda response: answers.append((response.status, response.url)))
        for place, wide in PAGES.items():
            await page.goto(address + place, wait_until="networkidle")
            await page.wait_for_function(SETTLED)
            assert (place, await faults_of_look(page, scheme, width, wide=wide)) == (place, [])
            assert await page.evaluate(WIDER) <= 0
        assert [(status, url) for status, url in answers if status >= 400] == []


CODE_PAGES = (
    "",
    "quickstart/",
    "quickstart.zh/",
    "reference/cli/",
    "project/readme/",
    "how-to/contexts/",
    "how-to/production/",
)
CUT = "[...document.querySelectorAll('pre code')].filter(one => one.scrollWidth > one.clientWidth + 1).length"

FOUND = "[...document.querySelectorAll('.md-search-result__item > a')].map(one => new URL(one.href).pathname)"


async def test_code_is_not_cut_and_a_chinese_page_has_a_chinese_frame(browser, address):
    async with looking(browser, width=1440) as page:
        for name in CODE_PAGES:
            await page.goto(address + name)
            assert await page.locator("pre code").count() > 0, name
            assert await page.evaluate(CUT) == 0, name
            chinese = name.endswith(".zh/")
            assert await page.locator("input.md-search__input").get_attribute("placeholder") == (
                "搜索" if chinese else "Search"
            )


@pytest.mark.parametrize(
    ("word", "first"), [("context", "how-to/contexts/"), ("forget", "how-to/forget/"), ("search", "how-to/search/")]
)
async def test_a_search_finds_the_how_to_before_the_field(browser, address, word, first):
    async with looking(browser) as page:
        await page.goto(address)
        await page.keyboard.press("/")
        await page.keyboard.type(word)
        before, found = list[str](), list[str]()
        async with asyncio.timeout(60):
            while not found or found != before:
                await page.wait_for_timeout(500)
                before, found = found, await page.evaluate(FOUND)
        assert found[0] == f"/{first}"
