"""The screenshots' servers and pages, without the camera."""

import re

import httpx
from bench.pictures import live
from bench.pictures.screenshots import SHOTS, serving

SOON_SECONDS = 0.5


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
