"""Sessions on the console's pages: the window, what a model would see, checkpoints, and changes that are asked back."""

import asyncio
import html
import re
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

import roomlore
from console_rig import LANGUAGES, asking, page
from roomlore import Message, Settings
from roomlore_console.frame import tongue
from roomlore_testkit.case_table import all_cases
from session_rig import ScriptedSummarizer, summarise_all

SECONDS = 60
SAID = {"en": ("question {}: how long did it take?", "answer {}"), "zh": ("第{}问：花了多久？", "第{}答：很快。")}
SMALL = Settings(model_context_window=200, recent_turns=2)
EVIL = '"><script>alert(1)</script>\u202e'
both = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture
async def lore():
    async with roomlore.open("sqlite://", settings=SMALL) as opened:
        yield opened


@pytest.fixture
async def http(lore):
    async with asking(lore) as client:
        yield client


async def send(http, path: str, status: int = 303) -> httpx.Response:
    token = re.search(r'name="token" value="([^"]+)"', await page(http, path))[1]
    answer = await http.post(path, data={"token": token})
    assert answer.status_code == status, answer.text[:500]
    return answer


async def talk(lore, count: int, language: str = "en", room: str = "conv") -> None:
    query, answer = SAID[language]
    for n in range(count):
        await lore.sessions.write_turn(room, "ann", "bot", query.format(n), answer.format(n), turn_id=f"t{n}")


def says(language: str, key: str, **values) -> str:
    return html.escape(tongue(language).say(key, **values), quote=False)


def links(shown: str, path: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(rf'href="({path}[^"]*)"', shown)]


def region(shown: str, name: str) -> str:
    return shown.partition(f'aria-labelledby="{name}"')[2].partition("</section>")[0]


# The list.


@both
async def test_without_sessions_it_says_what_to_do_next(http, lore, language):
    await lore.messages.add(Message(id="m1", room_id="tea", sender_id="ann", text="no session"))
    shown = await page(http, "/console/sessions", language=language)
    assert says(language, "sessions.empty.next") in shown
    assert links(shown, "/console/session\\?") == []


@both
async def test_sessions_are_listed_and_found_by_how_they_begin(http, lore, language):
    for room in ("conv-1", "conv-10", "会话-1", "conv-2"):
        await talk(lore, 1, language, room)
    shown = await page(http, "/console/sessions", language=language)
    rooms = [parse_qs(urlsplit(one).query)["id"][0] for one in links(shown, "/console/session\\?")]
    assert rooms == ["conv-1", "conv-10", "conv-2", "会话-1"]
    assert shown.count(says(language, "sessions.mode.FULL_HISTORY")) == 4
    for text, found in (("conv-1", ["conv-1", "conv-10"]), ("会话", ["会话-1"]), ("conv-2", ["conv-2"]), ("zz", [])):
        shown = await page(http, f"/console/sessions?find={text}", language=language)
        listed = [parse_qs(urlsplit(one).query)["id"][0] for one in links(shown, "/console/session\\?")]
        assert listed == found
    assert says(language, "sessions.none") in shown


@pytest.mark.parametrize("find", ["", "&find=conv-"])
async def test_many_sessions_are_paged(http, lore, find):
    rooms = [f"conv-{n:03}" for n in range(55)]
    for room in rooms:
        await lore.sessions.create_session(room)
    seen, address = [], f"/console/sessions?x={find}"
    while address:
        shown = await page(http, address)
        seen += re.findall(r"/console/session\?id=(conv-\d+)", shown)
        following = re.search(r'rel="next" href="([^"]+)"', shown)
        address = html.unescape(following[1]) if following else None
    assert seen == rooms


# One session.


@both
async def test_a_session_shows_its_window_and_what_a_model_would_see(http, lore, language):
    await talk(lore, 3, language)
    context = await lore.sessions.preview_context("conv")
    shown = await page(http, "/console/session?id=conv", language=language)
    used = {"tokens": context.estimated_tokens, "window": 200, "percent": f"{100 * context.token_ratio:.1f}"}
    assert says(language, "session.used", **used) in shown
    gauge = {"summary": 0, "turns": context.estimated_tokens, "free": 200 - context.estimated_tokens, "threshold": 150}
    assert f'role="img" aria-label="{says(language, "session.gauge", **gauge)}"' in shown
    said = re.findall(r'<p class="text" dir="auto">([^<]+)</p>', region(shown, "view"))
    assert said == [one["content"] for one in context.messages]
    assert says(language, "session.never.next") in shown
    assert says(language, "session.advised") not in shown
    assert says(language, "session.role.assistant") in shown


async def test_looking_at_a_session_notes_nothing(lore):
    settings = SMALL.changed(auto_checkpoint=True)
    async with roomlore.open("sqlite://", settings=settings, background=False) as lore, asking(lore) as http:
        await talk(lore, 30)
        shown = await page(http, "/console/session?id=conv")
        assert says("en", "session.advised") in shown
        assert says("en", "session.truncated") in shown
        assert (await lore.sessions.page())[0].due is None
        await lore.sessions.query_context("conv")
        assert (await lore.sessions.page())[0].due is not None
        assert says("en", "sessions.due") in await page(http, "/console/session?id=conv")


@both
async def test_after_a_checkpoint_the_summary_stands_before_the_turns(http, lore, language):
    await talk(lore, 5, language)
    summary = "五次备份都很快" if language == "zh" else "five backups were quick"
    await lore.sessions.checkpoint("conv", summary, covers_through="t3-answer")
    shown = await page(http, "/console/session?id=conv", language=language)
    view = region(shown, "view")
    assert summary in view.partition("</blockquote>")[0]
    assert says(language, "session.covers", turns=4) in view
    assert view.count('<li class="user">') == 2
    assert view.count(says(language, "session.covered")) == 2, "the turn before it stays beside the summary"
    made = (await lore.sessions.checkpoints("conv"))[0]
    assert f'<rect class="summary" width="{round(1000 * made.tokens / 200)}"' in shown
    until = links(region(shown, "past"), "/console/room")[0]
    assert SAID[language][1].format(3) in await page(http, until)
    assert SAID[language][1].format(4) not in await page(http, until)
    assert says(language, "session.by.caller") in region(shown, "past")


async def test_another_window_and_what_is_said_next_are_tried(http, lore):
    await talk(lore, 6)
    narrow = await page(http, "/console/session?id=conv&window=60")
    assert says("en", "session.truncated") in narrow
    more = await lore.sessions.preview_context("conv", "and 现在呢?", model_context_window=5000)
    shown = await page(http, "/console/session?id=conv&window=5000&q=and 现在呢?")
    assert says("en", "session.used", tokens=more.estimated_tokens, window="5,000", percent="2.3") in shown
    assert 'value="and 现在呢?"' in shown
    await summarise_all(lore, "conv", "word " * 100)
    small = await page(http, "/console/session?id=conv&window=20")
    assert says("en", "session.too_small") in small
    assert "word word" in small


async def test_a_long_session_shows_its_newest_messages(lore):
    async with roomlore.open("sqlite://", settings=Settings()) as lore, asking(lore) as http:
        await talk(lore, 30)
        view = region(await page(http, "/console/session?id=conv"), "view")
        assert view.count("<li class=") == 40
        assert says("en", "session.more", count=20) in view
        assert "answer 29<" in view
        (earlier,) = links(view, "/console/room")
        assert "answer 9<" in await page(http, earlier)
        assert "question 10:" not in await page(http, earlier)


async def test_checkpoints_and_resets_are_paged(http, lore):
    for n in range(1, 26):
        await lore.sessions.write_turn("conv", "ann", "bot", f"question {n}", "yes")
        if n == 13:
            await lore.sessions.reset("conv")
        else:
            await summarise_all(lore, "conv", f"what was said up to {n}.")
    seen, address = [], "/console/session?id=conv"
    while address:
        past = region(await page(http, address), "past")
        seen += re.findall(r"<h3>(.*?) ·", past)
        older = re.search(r'rel="next" href="([^"]+)"', past)
        address = html.unescape(older[1]) if older else None
    assert seen == [says("en", f"session.kind.{'reset' if n == 13 else 'summary'}", number=n) for n in range(25, 0, -1)]


async def test_state_is_shown_as_text(http, lore):
    await lore.sessions.create_session("conv", "ann")
    assert 'aria-labelledby="state"' not in await page(http, "/console/session?id=conv")
    await lore.sessions.patch_state("conv", {"global_state": {"current_intent": "退款 <b>"}})
    assert "退款 &lt;b&gt;" in region(await page(http, "/console/session?id=conv"), "state")


async def test_a_hostile_session_renders_inert(http, lore):
    room = f"conv{EVIL}"
    await lore.sessions.write_turn(room, EVIL, EVIL, EVIL, EVIL)
    await summarise_all(lore, room, f"summary {EVIL}")
    await lore.sessions.patch_state(room, {"own": {EVIL: EVIL}})
    address = links(await page(http, "/console/sessions"), "/console/session\\?")[0]
    for path in (
        "/console/sessions",
        address,
        address.replace("/session?", "/session/change?what=reset&"),
        f"{address}&q={EVIL}",
    ):
        main = (await page(http, path)).partition('<main id="main"')[2]
        assert re.search(r"<(script|img)", main) is None
        assert "\u202e" not in re.sub(r'<input type="hidden"[^>]*>', "", main)


async def test_room_and_session_lead_to_each_other(http, lore):
    await lore.messages.add(Message(id="m1", room_id="tea", sender_id="ann", text="no session"))
    await talk(lore, 1)
    assert links(await page(http, "/console/room?id=tea"), "/console/session\\?") == []
    (there,) = links(await page(http, "/console/room?id=conv"), "/console/session\\?")
    assert "/console/room?id=conv" in await page(http, there)


NOT_THERE = [
    ("session?id=none", 404), ("session/change", 422), ("session?id=conv&window=x", 422),
    ("session?id=conv&before=x", 422), ("session?id=conv&window=999999999", 422),
    ("session/change?what=burn&id=conv", 422),
    ("session/change?what=reset&id=none", 404), ("session/summarising?id=conv&job=none", 404),
]  # fmt: skip


async def test_what_is_not_there_is_said(http, lore):
    await talk(lore, 1)
    with all_cases() as case:
        for path, status in NOT_THERE:
            with case(path):
                await page(http, f"/console/{path}", status)


# Changing.


@both
async def test_summarising_is_followed_until_it_is_over(language):
    summarizer = ScriptedSummarizer(answer="摘要 summary {}", gate=asyncio.Event())
    async with roomlore.open("sqlite://", settings=SMALL, summarizer=summarizer) as lore, asking(lore) as http:
        await talk(lore, 5, language)
        begun = (await send(http, "/console/session/change?what=summarise&id=conv")).headers["location"]
        await asyncio.wait_for(summarizer.asked.wait(), SECONDS)
        going = await page(http, begun, language=language)
        assert "<progress" in going
        assert 'http-equiv="refresh"' in going
        assert says(language, "job.running") in going
        summarizer.gate.set()
        await lore.jobs.wait(parse_qs(urlsplit(begun).query)["job"][0], SECONDS)
        over = await page(http, begun, language=language)
        made = (await lore.sessions.checkpoints("conv"))[0]
        assert says(language, "summarising.made", turns=5, tokens=made.tokens) in over
        assert "摘要 summary 1" in over
        assert "<progress" not in over
        assert says(language, "lineage.made", by="scripted") in await page(
            http, "/console/session?id=conv", language=language
        )
        again = (await send(http, "/console/session/change?what=summarise&id=conv")).headers["location"]
        await lore.jobs.wait(parse_qs(urlsplit(again).query)["job"][0], SECONDS)
        assert says(language, "summarising.nothing") in await page(http, again, language=language)


async def test_a_session_is_reset_once_that_is_confirmed(http, lore):
    await talk(lore, 3)
    path = "/console/session/change?what=reset&id=conv"
    await page(http, path)
    assert (await http.post(path, data={})).status_code == 403
    assert await lore.sessions.checkpoints("conv") == []
    gone = await send(http, path)
    shown = await page(http, gone.headers["location"])
    assert says("en", "session.done.reset") in shown
    assert says("en", "session.nothing.next") in shown
    before = links(region(shown, "view"), "/console/room")[0]
    assert "answer 2" in await page(http, before)
    assert len(await lore.messages.page("conv")) == 6


async def test_a_reader_looks_and_changes_nothing(lore):
    await talk(lore, 2)
    _, secret = await lore.keys.create("reader", scopes=("read",))
    async with asking(lore, secret, "room:conv") as http:
        assert "/console/session/change" not in await page(http, "/console/session?id=conv")
        for what in ("summarise", "reset"):
            path = f"/console/session/change?what={what}&id=conv"
            await page(http, path, 403)
            token = re.search(r'name="token" value="([^"]+)"', await page(http, "/console"))[1]
            assert (await http.post(path, data={"token": token})).status_code == 403
    assert await lore.sessions.checkpoints("conv") == []
    assert await lore.jobs.page() == []


async def test_sessions_of_others_are_not_there(lore):
    await talk(lore, 2)
    _, secret = await lore.for_tenant("other").keys.create("other", scopes=("admin",))
    async with asking(lore, secret) as http:
        assert links(await page(http, "/console/sessions"), "/console/session\\?") == []
        assert links(await page(http, "/console/sessions?find=conv"), "/console/session\\?") == []
        await page(http, "/console/session?id=conv", 404)
        await page(http, "/console/session/change?what=reset&id=conv", 404)
