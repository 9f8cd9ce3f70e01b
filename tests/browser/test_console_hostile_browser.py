"""A hostile room in a real browser, on a phone's width: no script of it runs, nothing is fetched, every page holds."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

from bench.pictures.live import listening

import roomlore
from browser_rig import in_chromium, looking
from hostile_room import NAMES, ROOM, TEXTS, hostile
from roomlore import Lore, Settings
from roomlore.core.memory.memory import Source
from roomlore_server.http import create_app

pytestmark = in_chromium
COUNT = 2 * len(TEXTS)


async def fill(lore: Lore) -> str:
    """The id of a message that others answer."""
    said = list(hostile(COUNT))
    await lore.messages.add(said)
    for number, text in enumerate(TEXTS[:12]):
        source = Source(ROOM, said[number].id)
        await lore.memories.add(
            f"group:{ROOM}", f"{text[:1_500]}{number}", sources=[source], memory_id=f"{TEXTS[0]}{number}"
        )
    await lore.sessions.write_turn(ROOM + "s", NAMES[0], NAMES[6], TEXTS[0], TEXTS[2])
    return said[-7].id


def pages(message_id: str) -> dict[str, str]:
    asked = {
        "/room": {"id": ROOM, "limit": 500},
        "/thread": {"id": ROOM, "message": message_id},
        "/context": {"room": ROOM, "message": message_id},
        "/memories": {},
        "/memory": {"id": ROOM},
        "/memory/one": {"id": f"{TEXTS[0]}1"},
        "/memory/change": {"what": "delete", "id": f"{TEXTS[0]}1"},
        "/recall": {"scopes": f"group:{ROOM}", "q": TEXTS[0]},
        "/sessions": {},
        "/session": {"id": ROOM + "s"},
        "/jobs": {},
        "/people": {},
        "/person": {"id": NAMES[0]},
        "/search": {"q": TEXTS[0]},
        "/places": {},
        "": {},
    }
    return {path: f"/console{path}?{urlencode(query)}" for path, query in asked.items()}


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[str, str]]:
    async with roomlore.open("sqlite://", settings=Settings(durable_work="process")) as lore:
        message_id = await fill(lore)
        async with listening(create_app(lore)) as address:
            yield address, message_id


async def test_a_hostile_room_is_inert_on_every_page(browser):
    asked: list[str] = []
    dialogs: list[str] = []
    wrong: dict[str, object] = {}
    async with (
        serving() as (address, message_id),
        looking(browser, "dark", "zh-CN", 390) as page,
    ):
        page.context.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        for name, path in pages(message_id).items():
            answer = await page.goto(address + path)
            await page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
            await page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            told = await page.evaluate(
                """() => ({
                    taken: window.taken ?? null,
                    wider: document.documentElement.scrollWidth - innerWidth > 0,
                    landmarks: ['header', 'main'].map(one => document.querySelectorAll(one).length),
                    nav: document.querySelectorAll('header nav').length,
                    odd: document.querySelectorAll('main :is(script, img, iframe, object, style, base)').length,
                })"""
            )
            right = {"taken": None, "wider": False, "landmarks": [1, 1], "nav": 2, "odd": 0}
            if told != right or answer is None or answer.status != 200:
                wrong[name] = (answer and answer.status, told)
            if name == "/room":
                assert await page.get_by_role("article").count() == COUNT
    assert wrong == {}
    assert [one for one in asked if not one.startswith(address)] == []
    assert dialogs == []
