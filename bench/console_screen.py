"""Times the console in Chromium: new messages on the screen, key presses in a long page, first paints, memory of a tab.

A server of its own serves a store of a million messages, made by `bench.copied_store`. Messages are added by this
process, as by another process of the application, one call each. A message counts from just before the call that adds
it, which is before its commit, until the frame that shows it. One machine cannot draw twenty pages as twenty visitors'
machines do: `--drawn` of the open pages are drawn by Chromium, and the others ask the server for all that a page asks
for. Beside times by the clock stands what the server's process and the tab's main thread used of a processor: that
holds on a busy machine too. Needs Linux, playwright and Chromium.
"""

import argparse
import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import roomlore
from bench import copied_store
from bench.built_store import opened
from bench.pictures.live import served

_LIVE = "live"
_BIG = "room-0"
_WORDS = ("see you at the pier", "周五晚上见", "the build is green again", "好的，我带茶", "who has the key?")
_WATCHING = """
addEventListener('DOMContentLoaded', () => {
  const flow = document.querySelector('#flow');
  if (!flow) return;
  window.seen = [];
  new MutationObserver((records) => {
    const added = records.flatMap((one) => [...one.addedNodes]).filter((one) => one.matches?.('.row'));
    const numbers = added.map((row) => Number(/#(\\d+)$/.exec(row.querySelector('.text').textContent)?.[1] ?? -1));
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => { const now = Date.now(); for (const one of numbers) seen.push([one, now]); };
      channel.port2.postMessage(0);
    });
  }).observe(flow, { childList: true, subtree: true });
});
window.pressed = [];
addEventListener('keydown', (event) => {
  const at = event.timeStamp;
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => pressed.push(performance.now() - at);
    channel.port2.postMessage(0);
  });
}, true);
"""
_FIRST_PAINT = """() => new Promise((told) => {
  const known = () => performance.getEntriesByName('first-contentful-paint')[0];
  if (known()) told(known().startTime);
  else new PerformanceObserver(() => { if (known()) told(known().startTime); })
    .observe({ type: 'paint', buffered: true });
})"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages of the store")
    parser.add_argument("--loaded", type=int, default=10_000, help="messages on the page on which keys are pressed")
    parser.add_argument("--room", type=int, default=1_000, help="messages of every other room")
    parser.add_argument("--pages", type=int, default=20, help="open pages")
    parser.add_argument("--drawn", type=int, default=2, help="of these, pages that Chromium draws")
    parser.add_argument("--rate", type=float, default=50.0, help="messages a second")
    parser.add_argument("--seconds", type=float, default=20.0, help="of messages")
    parser.add_argument("--long", type=int, default=4_000, help="messages that arrive in one tab")
    parser.add_argument("--turns", type=int, default=7, help="visits of each page, and presses of each key")
    parser.add_argument("--store", type=Path, help="a file that keeps the store for the next run")


async def run(arguments: argparse.Namespace) -> None:
    with TemporaryDirectory(prefix="roomlore-screen-") as folder:
        url = await _stored(arguments, Path(folder))
        async with opened(url, plain=True) as lore, served(url, folder) as address, _browsing() as browser:
            await _add(lore, -1)
            if arguments.turns:
                await _first_paints(browser, address, arguments.turns)
            if arguments.turns:
                await _keys(browser, address, arguments)
            await _live(browser, address, lore, arguments)
            await _long(browser, address, lore, arguments.long)


async def _stored(arguments: argparse.Namespace, folder: Path) -> str:
    store: Path = arguments.store or folder / "screen.db"
    url = f"sqlite:///{store}"
    await copied_store.build(url, arguments.messages, big=arguments.loaded + 200, room=arguments.room)
    return url


@asynccontextmanager
async def _browsing() -> AsyncIterator[Any]:
    playwright: Any = import_module("playwright.async_api")
    async with playwright.async_playwright() as started:
        browser = await started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def _page(browser: Any) -> AsyncIterator[Any]:
    """Yield a page of a visitor who was never here, in a window of its own."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    await context.add_init_script(_WATCHING)
    try:
        yield await context.new_page()
    finally:
        await context.close()


async def _first_paints(browser: Any, address: str, turns: int) -> None:
    pages = {
        "rooms": "/rooms",
        "a room": f"/room?id={_BIG}",
        "a thread": f"/thread?id={_BIG}&message=100",
        "a context": f"/context?room={_BIG}&message=100",
        "people": "/people",
        "search": "/search?q=wymicha15",
        "memories": "/memories",
        "health": "/health?still=yes",
    }
    print("First contentful paint of a visitor without a cache, ms\n")
    print("| page | first | median | worst after the first | server, processor: first | median |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, path in pages.items():
        took, worked = [], []
        for _ in range(turns + 1):
            async with _page(browser) as page:
                before = _server_ms()
                await page.goto(f"{address}/console{path}")
                took.append(float(await page.evaluate(_FIRST_PAINT)))
                worked.append(_server_ms() - before)
        print(
            f"| {name} | {took[0]:.0f} | {_rank(took[1:], 0.5):.0f} | {max(took[1:]):.0f} | {worked[0]:.0f} "
            f"| {_rank(worked[1:], 0.5):.0f} |"
        )


async def _keys(browser: Any, address: str, arguments: argparse.Namespace) -> None:
    async with _page(browser) as page:
        page.set_default_timeout(120_000)
        begun = time.perf_counter()
        await page.goto(f"{address}/console/room?id={_BIG}&limit={arguments.loaded}")
        loaded, rows = time.perf_counter() - begun, await page.locator("#flow .row").count()
        print(f"\nFrom a key to the next frame with {rows:,} messages loaded ({loaded:.1f} s), ms\n")
        print("| key | median | worst | tab, processor: mean |\n|---|---:|---:|---:|")
        tab = await _watched(page)
        for key, shows, back in _KEYS:
            took, before = [], await _tab_ms(tab)
            presses = arguments.turns if shows else 3 * arguments.turns
            for _ in range(presses):
                took.append(await _press(page, key))
                if shows:
                    await page.locator(shows).first.wait_for()
                if back:
                    await _press(page, back)
            worked = (await _tab_ms(tab) - before) / presses
            print(f"| {key} | {_rank(took, 0.5):.0f} | {max(took):.0f} | {worked:.0f} |")


async def _press(page: Any, key: str) -> float:
    """Return the ms from the press of a key to the next frame, a tenth of a second later at least, when the page has
    come to rest."""
    await page.evaluate("pressed.length = 0")
    await page.keyboard.press(key)
    if not await _holds(page, "pressed.length > 0"):
        raise RuntimeError(f"no frame after {key}")
    return float(await page.evaluate("pressed[0]"))


_KEYS = (
    ("k", "", ""),
    ("j", "", ""),
    ("t", "#alone .row", "Escape"),
    ("c", "#beside-room #inspector", "Escape"),
    ("?", "dialog[open]", "Escape"),
    ("/", "", ""),
)
"""Keys, what each shows, and the key that takes it away. The last one leaves the messages."""


def _server_ms() -> float:
    """Return the processor time that the server, a child of this process, has used."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid() and b"serve" in (stat.parent / "cmdline").read_bytes().split(b"\0"):
                return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    raise RuntimeError("the server does not run")


async def _watched(page: Any) -> Any:
    tab = await page.context.new_cdp_session(page)
    await tab.send("Performance.enable", {"timeDomain": "threadTicks"})
    return tab


async def _tab_ms(tab: Any) -> float:
    """Return the processor time that the tab's main thread has used."""
    metrics = (await tab.send("Performance.getMetrics"))["metrics"]
    return next(1000 * float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


async def _live(browser: Any, address: str, lore: roomlore.Lore, arguments: argparse.Namespace) -> None:
    async with AsyncExitStack() as open_pages:
        pages = [await open_pages.enter_async_context(_page(browser)) for _ in range(arguments.drawn)]
        for page in pages:
            await page.goto(f"{address}/console/room?id={_LIVE}")
        others = [asyncio.create_task(_read_along(address)) for _ in range(arguments.pages - arguments.drawn)]
        await asyncio.sleep(1)
        tabs = [await _watched(page) for page in pages]
        worked, drew = _server_ms(), [await _tab_ms(tab) for tab in tabs]
        sent = await _send(lore, arguments.rate, arguments.seconds)
        for page in pages:
            await _holds(page, f"new Set(seen.map(([number]) => number)).size >= {len(sent)}")
        worked, drew = _server_ms() - worked, [await _tab_ms(tab) - was for tab, was in zip(tabs, drew, strict=True)]
        seen = [{int(number): at for number, at in await page.evaluate("seen")} for page in pages]
        for other in others:
            other.cancel()
        ended = await asyncio.gather(*others, return_exceptions=True)
    for end in ended:
        if not isinstance(end, asyncio.CancelledError):
            raise RuntimeError(f"a reader stopped: {end!r}")
    took = [
        arrivals_seen[number] - at for arrivals_seen in seen for number, at in sent.items() if number in arrivals_seen
    ]
    missing = len(sent) * len(pages) - len(took)
    print(f"\n{len(sent):,} messages at {arguments.rate:g} a second, {arguments.pages} pages open, {len(pages)} drawn")
    print(
        f"On the screen after {_rank(took, 0.5):.0f} ms (p50), {_rank(took, 0.95):.0f} ms (p95), {max(took):.0f} ms at "
        f"most; not shown: {missing}"
    )
    print(
        f"Processor time for a message: server {worked / len(sent):.1f} ms for all pages, a tab "
        f"{sum(drew) / len(drew) / len(sent):.1f} ms"
    )


async def _holds(page: Any, condition: str) -> bool:
    """Return True once a condition holds in the page, False after half a minute. The page's content security policy
    forbids `wait_for_function`."""
    for _ in range(300):
        await asyncio.sleep(0.1)
        if await page.evaluate(condition):
            return True
    return False


async def _read_along(address: str) -> None:
    """Ask for what an open page asks for, for ever; without a client library, whose work would be counted."""
    host, _, port = address.removeprefix("http://").partition(":")
    stream, asks = await asyncio.open_connection(host, int(port), limit=2**24)
    try:
        asks.write(_request(f"/console/room/live?id={_LIVE}&after=1", address))
        head = await stream.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise RuntimeError(f"the server answered {head[:80]!r}")
        while await stream.read(2**16):
            pass
        raise RuntimeError("the stream ended")
    finally:
        asks.close()


def _request(path: str, address: str) -> bytes:
    host = address.removeprefix("http://")
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nHX-Request: true\r\n\r\n".encode()


async def _send(lore: roomlore.Lore, rate: float, seconds: float) -> dict[int, float]:
    """Add messages at an even rate. Return when each was about to be added, in ms since the epoch."""
    loop = asyncio.get_running_loop()
    begun, sent = loop.time(), dict[int, float]()
    for number in count():
        if number / rate >= seconds:
            return sent
        await asyncio.sleep(max(0.0, begun + number / rate - loop.time()))
        sent[number] = time.time() * 1000
        await _add(lore, number)
    raise AssertionError("the count has no end")


async def _add(lore: roomlore.Lore, *numbers: int) -> None:
    await lore.messages.add(
        [
            roomlore.Message(
                id=f"{time.time_ns()}-{number}",
                room_id=_LIVE,
                sender_id=f"user{number % 7}",
                text=f"{_WORDS[number % len(_WORDS)]} #{number}" if number >= 0 else "hello",
            )
            for number in numbers
        ]
    )


async def _long(browser: Any, address: str, lore: roomlore.Lore, messages: int) -> None:
    """Let messages arrive in one tab, and tell what it holds."""
    print("\n| messages arrived in a tab | rows | nodes | heap, MiB |\n|---:|---:|---:|---:|")
    async with _page(browser) as page:
        await page.goto(f"{address}/console/room?id={_LIVE}")
        tab = await page.context.new_cdp_session(page)
        await tab.send("Performance.enable")
        for arrived in range(0, messages + 1, 25):
            if arrived % max(25, messages // 4) == 0:
                await asyncio.sleep(1)
                print(f"| {arrived:,} | {await page.locator('#flow .row').count():,} | {await _held(tab)} |")
            await _add(lore, *range(arrived, arrived + 25))
            await asyncio.sleep(0.25)


async def _held(tab: Any) -> str:
    await tab.send("HeapProfiler.collectGarbage")
    metrics = {metric["name"]: metric["value"] for metric in (await tab.send("Performance.getMetrics"))["metrics"]}
    return f"{metrics['Nodes']:,.0f} | {metrics['JSHeapUsedSize'] / 2**20:.1f}"


def _rank(values: Sequence[float], rank: float) -> float:
    return sorted(values)[min(len(values) - 1, int(rank * len(values)))]
