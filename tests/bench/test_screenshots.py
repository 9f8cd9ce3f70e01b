"""The screenshots' servers and pages, without the camera."""

import re
from urllib.parse import urlsplit

import httpx
from bench.pictures import every_page, live
from bench.pictures.screenshots import SHOTS, filled, serving

from roomlore_server.http.console_route import console_pages

SOON_SECONDS = 0.5
NO_PAGES = {
    "/side", "/suggest", "/room/live", "/room/threads", "/static/{name}", "/", "/{rest:path}",  # pieces
    "/rooms/{name:path}", "/people/{name:path}", "/memory/evolving", "/session/summarising",  # on the way to others
}  # fmt: skip
TROUBLED = {"today-nobody": 404, "no-page": 404, "no-room": 404, "no-person": 404, "wrong-value": 422, "failure": 500}
TROUBLED |= dict.fromkeys(("memories-near", "memory-no-day", "recall-unknown"), 422)


async def found(address: str, shot) -> str:
    async with httpx.AsyncClient(base_url=address, timeout=60) as asking:
        answer = await asking.get(shot.path, headers={"Accept-Language": shot.language})
    assert answer.status_code == 200, f"{shot.path}: {answer.text[:300]}"
    assert f'lang="{shot.language[:2]}' in answer.text
    if shot.at:
        assert f'id="{shot.at.removeprefix("#")}"' in answer.text, shot.path
    return answer.text


async def test_every_page_of_the_store_is_there_and_shows_what_is_told_of_it():
    async with serving() as address:
        pages = {shot.name: await found(address, shot) for shot in SHOTS if not shot.live}
    assert "<summary>" in pages["console-context.png"].partition('class="weighed"')[2]
    assert "13 messages, 171 tokens" in pages["console-context.png"]
    assert "pirate hats" in pages["console-past.png"]
    assert len(re.findall("<del>", pages["console-memory.png"])) >= 4
    assert "242 / 560" in pages["console-sessions.png"]


async def test_a_busy_server_shows_how_it_is(monkeypatch):
    monkeypatch.setattr(live, "BUSY_SECONDS", SOON_SECONDS)
    (shot,) = (one for one in SHOTS if one.live)
    async with live.live() as address:
        assert "/console/health/findings" in await found(address, shot)


def test_both_looks_and_both_languages_are_taken():
    assert {(one.theme, one.language) for one in SHOTS} == {
        (theme, language) for theme in ("light", "dark") for language in ("en-GB", "zh-CN")
    }


async def test_every_page_of_the_console_is_taken_and_answers_as_it_should():
    async with filled() as lore, every_page.serving(lore) as address:
        pages = await every_page.pages_of(lore)
        async with httpx.AsyncClient(base_url=address, timeout=60) as asking:
            for name, path in pages.items():
                answer = await asking.get(f"/console{path}")
                assert answer.status_code == TROUBLED.get(name, 200), f"{path}: {answer.text[:300]}"
    shown = [*pages.values(), *every_page.WITH_A_KEY.values(), *every_page.WITHOUT_A_KEY.values()]
    routes = {route.path.removeprefix("/console") for route in console_pages() if "GET" in route.methods}
    assert routes - NO_PAGES - {urlsplit(path).path for path in shown} == set()
