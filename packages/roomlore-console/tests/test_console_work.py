"""The console's pages of recall and of durable work."""

import html
import re

import pytest

from evolution_rig import create, lines, opened
from roomlore import Message, Source
from roomlore_console.frame import tongue
from roomlore_testkit.model_server import Fails, ModelServer

SECONDS = 60
LANGUAGES = {"en": {"Accept-Language": "en"}, "zh": {"Accept-Language": "zh"}}
in_both = pytest.mark.parametrize("language", LANGUAGES)


async def page(http, path: str, status: int = 200, language: str = "en") -> str:
    answer = await http.get(path, headers=LANGUAGES[language])
    assert answer.status_code == status, answer.text[:500]
    return answer.text


def says(language: str, key: str, **values) -> str:
    return html.escape(tongue(language).say(key, **values), quote=False)


@in_both
async def test_recall_shows_what_fits_with_its_scores(http, lore, language):
    await lore.memories.add("user:anna", "Anna rides a bike to work", confidence=0.9)
    await lore.memories.add("user:anna", "安娜喜欢乌龙茶", confidence=0.8)
    shown = await page(http, "/console/recall?scopes=user:anna&q=乌龙茶&tokens=200", language=language)
    assert says(language, "recall.found", taken=2, considered=2) in shown
    assert len(re.findall(r"\b\d\.\d\d(?: ·|</td>)", shown)) == 6
    fitting, _, others = shown.partition("</tbody>")
    assert "乌龙茶</a>" in fitting
    assert says(language, "recall.hardly", count=1) in others, "a line stands before what hardly fits"
    assert "安娜喜欢乌龙茶" in shown.partition("<pre")[2]
    for room in ("den", "hut"):
        await lore.messages.add(Message(id="1", room_id=room, sender_id=f"bo-{room}", text="好"))
    await lore.memories.add("user:anna", "乌龙茶太贵", sources=[Source("hut", "1")])
    for room, withheld in (("hut", False), ("den", True)):
        shown = await page(http, f"/console/recall?scopes=user:anna&q=乌龙茶&place={room}", language=language)
        assert f'<option value="{room}" selected>' in shown
        assert ("太贵" in shown.partition("<pre")[2], "喜欢" in shown.partition("<pre")[2]) == (not withheld, True)
    none = await page(http, "/console/recall?scopes=user:anna&tokens=1", language=language)
    assert says(language, "recall.empty.next") in none


@in_both
async def test_recall_waits_until_somebody_is_named(http, language):
    assert says(language, "recall.about") in await page(http, "/console/recall", language=language)


@pytest.mark.parametrize(
    "query", ["scopes=anna", "scopes=user:a&tokens=x", "scopes=user:a&tokens=9999999", "scopes=" + "user:a+" * 11]
)
async def test_what_cannot_be_recalled_is_refused(http, query):
    await page(http, f"/console/recall?{query}", 422)


async def test_what_is_recalled_is_inert(http, lore):
    await lore.memories.add("user:<b>", "<script>alert(1)</script> \u202e tea")
    shown = (await page(http, '/console/recall?scopes=user:%3Cb%3E&q="><script>')).partition('<main id="main"')[2]
    assert re.search(r"<(script|b>)", shown) is None
    assert "\u202e" not in shown


@in_both
async def test_without_jobs_it_says_what_would_be_here(http, language):
    assert says(language, "jobs.empty.next") in await page(http, "/console/jobs", language=language)


async def test_what_is_no_status_is_refused(http):
    await page(http, "/console/jobs?status=lost", 422)
    await page(http, "/console/jobs?offset=x", 422)


@pytest.mark.usefixtures("quick_retries")
@in_both
async def test_a_job_that_failed_is_tried_again(connect_to, language):
    async with ModelServer(default=Fails(status=400)) as server, opened(server, seconds=SECONDS) as lore:
        await lore.messages.add(Message(id="m1", room_id="tea", sender_id="ann", text="hello there"))
        begun = await lore.memories.begin_evolution("tea", mode="llm")
        failed = await lore.jobs.wait(begun.job_id, SECONDS)
        assert failed.status == "failed"
        async with connect_to(lore) as http:
            shown = await page(http, "/console/jobs?status=failed", language=language)
            assert begun.job_id in shown
            assert says(language, "jobs.status.failed") in shown
            assert says(language, "jobs.empty") in await page(http, "/console/jobs?status=done", language=language)
            action = html.unescape(re.search(r'action="(/console/jobs/retry[^"]+)"', shown)[1])
            assert (await http.post(action, data={})).status_code == 403
            token = re.search(r'name="token" value="([^"]+)"', shown)[1]
            assert '<input type="hidden" name="status" value="failed">' in shown
            answer = await http.post(action, data={"token": token, "status": "failed"})
            assert (answer.status_code, answer.headers["location"]) == (303, "/console/jobs?status=failed&done=retry")
            assert (await lore.jobs.wait(begun.job_id, SECONDS)).attempts > failed.attempts
            none = await http.post("/console/jobs/retry?id=none", data={"token": token})
            assert none.status_code == 404


@pytest.mark.usefixtures("quick_retries")
@in_both
async def test_jobs_that_failed_alike_are_retried_with_one_click(connect_to, language):
    async with ModelServer(default=Fails(status=400)) as server, opened(server, seconds=SECONDS) as lore:
        begun = []
        for room in ("tea", "茶"):
            await lore.messages.add(Message(id="m1", room_id=room, sender_id="ann", text="hello there 你好"))
            begun.append(await lore.memories.begin_evolution(room, mode="llm"))
        before = [await lore.jobs.wait(one.job_id, SECONDS) for one in begun]
        assert {one.status for one in before} == {"failed"}
        async with connect_to(lore) as http:
            shown = await page(http, "/console/jobs?status=failed", language=language)
            assert says(language, "jobs.retry.all", count=2) in shown
            token = re.search(r'name="token" value="([^"]+)"', shown)[1]
            ids = html.unescape(re.search(r'name="ids" value="([^"]+)"', shown)[1])
            assert sorted(ids.split()) == sorted(one.job_id for one in begun)
            form = {"token": token, "status": "failed", "ids": f"{ids}none\n".replace("\n", "\r\n")}
            answer = await http.post("/console/jobs/retry", data=form)
            assert answer.headers["location"] == "/console/jobs?status=failed&done=retry&count=2"
            after = await page(http, answer.headers["location"], language=language)
            assert says(language, "jobs.retried.all", count=2) in after
        for job in before:
            assert (await lore.jobs.wait(job.job_id, SECONDS)).attempts > job.attempts


@in_both
async def test_what_came_of_a_job_is_shown(connect_to, language):
    made = {"en": "They drink green tea", "zh": "他们喝绿茶"}[language]
    async with ModelServer(default=lines(create(made, "c1"))) as server, opened(server, seconds=SECONDS) as lore:
        await lore.messages.add(Message(id="m1", room_id="tea", sender_id="ann", text=made))
        begun = await lore.memories.begin_evolution("tea")
        await lore.jobs.wait(begun.job_id, SECONDS)
        async with connect_to(lore) as http:
            shown = await page(http, "/console/jobs", language=language)
    told = {
        "en": "1 message read; memories: 1 new, 0 changed, 0 removed, 0 kept.",
        "zh": "读取 1 条消息；记忆：新增 1，修改 0，删除 0，保留 0。",
    }[language]
    assert told in shown


@pytest.fixture
def connect_to():
    import httpx

    from roomlore_server.http import create_app

    def make(lore) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    return make
