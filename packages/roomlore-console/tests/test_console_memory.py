"""Memories on the console's pages: looking, going back in time, and changes that are asked back first."""

import asyncio
import html
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

import roomlore
from console_rig import asking
from evolution_rig import CHINESE, ENGLISH, create, lines, opened, remember, talk, update
from roomlore import Message, NewMemory
from roomlore.core.errors import StorageUnavailable
from roomlore.core.memory.memory import Source
from roomlore.core.privacy import ForgetReport
from roomlore.services.privacy import MessageEraser
from roomlore.surfaces.long_work import MAX_AT_A_TIME
from roomlore_console import memory_editing
from roomlore_console.frame import tongue
from roomlore_server.http import create_app
from roomlore_testkit.model_server import ModelServer

SECONDS = 60
LANGUAGES = {"en": {"Accept-Language": "en"}, "zh": {"Accept-Language": "zh"}}
both = pytest.mark.parametrize(("said", "language"), [(CHINESE, "zh"), (ENGLISH, "en")], ids=["zh", "en"])


@pytest.fixture
async def server():
    async with ModelServer(default="nothing") as running:
        yield running


@pytest.fixture
async def lore(server):
    async with opened(server, seconds=SECONDS) as there:
        yield there


@pytest.fixture
async def http(lore):
    transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        yield asking


async def page(http, path: str, status: int = 200, language: str = "en") -> str:
    answer = await http.get(path, headers=LANGUAGES[language])
    assert answer.status_code == status, answer.text[:500]
    return answer.text


async def send(http, path: str, status: int = 303, **fields) -> httpx.Response:
    """As a browser without a script sends the form of a page: with its token and hidden fields."""
    shown = await page(http, path)
    form = shown.partition('class="stack"')[2]
    hidden = {name: html.unescape(value) for name, value in re.findall(r'hidden" name="(\w+)" value="([^"]*)"', form)}
    answer = await http.post(path, data={**hidden, **fields})
    assert answer.status_code == status, answer.text[:500]
    return answer


def says(language: str, key: str, **values) -> str:
    return html.escape(tongue(language).say(key, **values), quote=False)


def words(shown: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", shown))


# Looking.


@pytest.mark.parametrize("language", LANGUAGES)
async def test_where_nothing_is_remembered_it_says_what_to_do(http, lore, language):
    assert says(language, "memories.empty.next") in await page(http, "/console/memories", language=language)
    unknown = await http.get("/console/memory?id=tea", headers={"Accept-Language": language})
    assert (unknown.status_code, "what=evolve" in unknown.text) == (404, False), "no room is invented"
    await lore.messages.add(Message(id="1", room_id="tea", sender_id="ann", text="好"))
    shown = await page(http, "/console/memory?id=tea", language=language)
    assert says(language, "memory.empty.next") in shown
    assert "what=evolve" in shown
    assert 'type="range"' not in shown


@both
async def test_changes_are_shown_word_by_word(http, lore, said, language):
    memory = await lore.memories.add("group:g", said.known[0])
    await lore.memories.update(memory.memory_id, statement=said.better[0], reason=said.why)
    shown = await page(http, "/console/memory?id=g", language=language)
    log = shown.partition('<ol class="log">')[2]
    first = re.search(r'<span class="diff"[^>]*>(.*?)</span>', log)[1]
    assert "<del>" in first
    assert "<ins>" in first
    assert words(re.sub("<ins>.*?</ins>", "", first)) == said.known[0]
    assert words(re.sub("<del>.*?</del>", "", first)) == said.better[0]
    assert said.why in words(log)
    assert says(language, "action.update") in log


@both
async def test_blame_goes_down_to_the_messages(http, lore, said, language):
    await lore.messages.add([Message(id=one, room_id="g", sender_id="ann", text=said.new[0]) for one in ("c1", "gone")])
    memory = await lore.memories.add(
        "group:g", said.known[0], sources=[Source("g", "c1"), Source("g", "gone")], memory_id="f1"
    )
    await lore.messages.delete("g", "gone")
    shown = await page(http, f"/console/memory/one?id={memory.memory_id}", language=language)
    assert said.new[0] in words(shown)
    assert says(language, "lineage.lost") in shown
    address = html.unescape(re.search(r'href="(/console/room[^"]+)"', shown)[1])
    assert said.new[0] in words(await page(http, address))


async def test_a_long_log_is_paged(http, lore):
    for n in range(1, 91):
        await lore.memories.add("group:g", f"statement no {n} of many")
    seen, address = [], "/console/memory?id=g"
    while address:
        shown = (await page(http, address)).partition('<ol class="log">')[2]
        seen += [int(n) for n in re.findall(r"#(\d+) ·", shown)]
        links = [html.unescape(one) for one in re.findall(r'href="(/console/memory\?[^"]*to=\d+)"', shown)]
        address = next((one for one in links if int(one.rpartition("=")[2]) < seen[-1]), None)
    assert seen == list(range(90, 0, -1))


async def test_scopes_are_listed(http, lore):
    for scope in ("group:茶", "user:anna", "agent:<b>"):
        await lore.memories.add(scope, "something")
    shown = await page(http, "/console/memories")
    addresses = [html.unescape(one) for one in re.findall(r'href="(/console/memory\?[^"]+)"', shown)]
    assert [parse_qs(urlsplit(one).query)["id"][0] for one in addresses] == ["agent:<b>", "group:茶", "user:anna"]
    for address in addresses:
        assert "something" in await page(http, address)


async def test_a_hostile_memory_renders_inert(http, lore):
    memory = await lore.memories.add("group:<b>", '"><script>alert(1)</script> we \u202edrink tea')
    await lore.memories.update(memory.memory_id, statement="<script>alert(2)</script> we drink", reason="<img src=x>")
    for address in (
        "/console/memory?id=group:%3Cb%3E",
        f"/console/memory/one?id={memory.memory_id}",
        f"/console/memory/change?what=delete&id={memory.memory_id}",
    ):
        main = (await page(http, address)).partition('<main id="main"')[2]
        assert re.search(r"<(script|img|b>)", main) is None
        assert "\u202e" not in main


# Another time.


async def test_the_slider_and_the_date_go_back(http, lore):
    memory = await lore.memories.add("group:g", "we drink green tea")
    first = (await lore.memories.changes("group:g"))[0].at
    await lore.memories.update(memory.memory_id, statement="we drink black coffee")
    now = await page(http, "/console/memory?id=g&step=100")
    assert "black coffee" in listed(now)
    begun = await page(http, "/console/memory?id=g&step=0")
    assert 'value="0"' in begun
    assert "green tea" in listed(begun)
    day_before = (first - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    assert says("en", "memory.empty.then") in await page(http, f"/console/memory?id=g&at={day_before}")
    later = (lore.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    assert "black coffee" in listed(await page(http, f"/console/memory?id=g&at={later}"))


@both
@pytest.mark.parametrize("way", ["at", "step"])
async def test_many_memories_of_another_time_are_paged_and_the_moment_stays(http, lore, said, language, way):
    known = [f"{said.known[0]} ({n})" for n in range(250)]
    await lore.memories.add_all([NewMemory(scope="group:g", statement=one) for one in known])
    then = lore.now().isoformat()
    for one in (await lore.memories.page("group:g", limit=3))[::2]:
        await lore.memories.delete(one.memory_id, said.why)
    await lore.memories.add("group:g", said.new[0])
    address = f"/console/memory?{urlencode({'id': 'g', way: then if way == 'at' else 0})}"
    pages, moments = [], set()
    while address:
        there = listed(await page(http, address, language=language))
        pages.append(re.findall(r'<p class="statement" dir="auto"><a[^>]*>(.*?)</a></p>', there))
        assert says(language, "memory.total", shown=len(pages[-1]), total=250) in there
        assert (says(language, "frame.first") in there) == (len(pages) > 1)
        following = re.search(r'rel="next" href="([^"]+)"', there)
        address = html.unescape(following[1]) if following else None
        moments |= set(parse_qs(urlsplit(address).query)["at"]) if address else set()
    assert [len(one) for one in pages] == [100, 100, 50]
    assert [html.unescape(one) for found in pages for one in found] == known
    assert len(moments) == 1
    assert way == "step" or moments == {then}
    beyond = await page(http, f"/console/memory?{urlencode({'id': 'g', 'at': then, 'offset': 900})}", language=language)
    assert says(language, "memory.empty.then") not in beyond
    first = html.unescape(re.search(rf'href="([^"]+)">{says(language, "frame.first")}<', beyond)[1])
    assert known[0] in words(await page(http, first))


def listed(shown: str) -> str:
    return shown.partition('<section id="then"')[2].partition("</section>")[0]


@pytest.mark.parametrize("query", ["step=x", "step=101", "step=-1", "at=soon", "to=0x1"])
async def test_what_is_no_time_is_refused(http, lore, query):
    await lore.memories.add("group:g", "we drink green tea")
    await page(http, f"/console/memory?id=g&{query}", 422)


# Changing.


async def test_nothing_is_done_by_looking_at_the_question(http, lore):
    memory = await lore.memories.add("group:g", "we drink green tea")
    before = await lore.memories.changes("group:g")
    for what, name in (("delete", memory.memory_id), ("restore", memory.memory_id), ("evolve", "g"), ("forget", "ann")):
        shown = await page(http, f"/console/memory/change?what={what}&id={name}")
        assert says("en", f"confirm.{what}.do") in shown
        answer = await http.post(f"/console/memory/change?what={what}&id={name}", data={})
        assert answer.status_code == 403
    assert await lore.memories.changes("group:g") == before
    assert await lore.jobs.page() == []


async def test_a_group_that_nobody_knows_does_not_evolve(http, lore):
    await send(http, "/console/memory/change?what=evolve&id=nowhere")
    (job,) = await lore.jobs.page()
    assert (await lore.jobs.wait(job.job_id)).progress.startswith("There is no room 'nowhere' yet")
    assert await lore.memories.evolutions("group:nowhere") == []


async def test_deleting_and_bringing_back(http, lore):
    memory = await lore.memories.add("group:g", "we drink green tea")
    gone = await send(http, f"/console/memory/change?what=delete&id={memory.memory_id}", reason="moved on")
    assert await lore.memories.page("group:g") == []
    shown = await page(http, gone.headers["location"])
    assert says("en", "done.delete") in shown
    restore = html.unescape(re.search(r'href="(/console/memory/change\?what=restore[^"]+)"', shown)[1])
    back = await send(http, restore, reason="after all")
    assert says("en", "done.restore") in await page(http, back.headers["location"])
    assert [one.statement for one in await lore.memories.page("group:g")] == ["we drink green tea"]
    assert [one.reason for one in await lore.memories.changes("group:g")][1:] == ["moved on", "after all"]


async def test_what_changed_since_the_question_is_not_deleted(http, lore):
    memory = await lore.memories.add("group:g", "we drink green tea")
    path = f"/console/memory/change?what=delete&id={memory.memory_id}"
    token = re.search(r'name="token" value="([^"]+)"', await page(http, path))[1]
    await lore.memories.update(memory.memory_id, statement="we drink black coffee")
    answer = await http.post(path, data={"token": token, "expected": memory.memory_id})
    assert answer.status_code == 409
    assert len(await lore.memories.page("group:g")) == 1


@both
async def test_evolving_is_followed_and_taken_back(http, lore, server, said, language):
    (known,) = await remember(lore, said.known[:1])
    server.script = [lines(update("m1", said.better[0], "c2"), create(said.new[0], "c1"))]
    await talk(lore, said, range(1, 6))
    begun = await send(http, "/console/memory/change?what=evolve&id=g")
    job = parse_qs(urlsplit(begun.headers["location"]).query)["job"][0]
    assert (await lore.jobs.wait(job, SECONDS)).status == "done"
    over = await page(http, begun.headers["location"], language=language)
    stats = {"kept": 0, "updated": 1, "created": 1, "deleted": 0}
    assert says(language, "evolving.stats", messages=5, **stats) in over
    assert "http-equiv" not in over
    shown = await page(http, "/console/memory?id=g", language=language)
    assert said.new[0] in words(shown)
    revert = html.unescape(re.search(r'href="(/console/memory/change\?what=revert[^"]+)"', shown)[1])
    assert said.new[0] in words(await page(http, revert))
    done = await send(http, revert, reason="wrong")
    after = await page(http, done.headers["location"])
    assert says("en", "done.revert") in after
    assert "what=revert" not in after, "an update that was undone cannot be undone again"
    assert [one.memory_id for one in await lore.memories.page("group:g")] == [known.memory_id]


@both
async def test_an_update_says_that_no_worker_runs_and_how_much_is_new(server, said, language):
    async with opened(server, seconds=SECONDS, background=False) as lore, asking(lore) as http:
        await lore.messages.add(Message(id="m0", room_id="g", sender_id="ann", text=said.new[0]))
        path = "/console/memory/change?what=evolve&id=g"
        asked = await page(http, path, language=language)
        assert says(language, "health.works.elsewhere") in asked
        assert says(language, "confirm.evolve.first") in asked
        followed = (await send(http, path)).headers["location"]
        waiting = await page(http, followed, language=language)
        assert says(language, "health.works.elsewhere") in waiting
        assert "<progress" not in waiting
        job_id = parse_qs(urlsplit(followed).query)["job"][0]
        jobs = html.unescape(re.search(r'href="(/console/jobs[^"]+)"', waiting.partition("<main")[2])[1])
        assert jobs.endswith(f"#{job_id}")
        listed_jobs = await page(http, jobs, language=language)
        assert f'id="{job_id}"' in listed_jobs
        assert says(language, "jobs.waits.worker") in listed_jobs
        assert f"{says(language, 'jobs.status.waiting')} 1</a>" in listed_jobs
        await lore.jobs.catch_up()
        for count, key in ((0, "none"), (1, "new.one"), (2, "new")):
            assert says(language, f"confirm.evolve.{key}", count=count) in await page(http, path, language=language)
            await lore.messages.add(Message(id=f"m{count + 1}", room_id="g", sender_id="ann", text=said.new[0]))


@both
async def test_a_deleted_memory_says_when_and_why_and_its_versions_are_told_apart(http, lore, said, language):
    gone, kept = [
        await lore.memories.add("group:g", text, kind="group") for text in ("we row at six", "we row in June")
    ]
    await lore.memories.delete(gone.memory_id, said.why)
    shown = await page(http, f"/console/memory/one?id={gone.memory_id}", language=language)
    day = f"{lore.now():%Y-%m-%d}"
    assert says(language, "lineage.ended.delete", day=day) + says(language, "lineage.because") in shown
    assert said.why in words(shown)
    assert '<h1 dir="auto"><bdi>we row at six</bdi></h1>' in shown
    assert says(language, "lineage.because") not in await page(http, f"/console/memory/one?id={kept.memory_id}")


async def test_where_nothing_was_said_the_evolution_says_so(http, lore):
    await lore.memories.add("group:g", "we drink green tea")
    begun = await send(http, "/console/memory/change?what=evolve&id=g")
    job = parse_qs(urlsplit(begun.headers["location"]).query)["job"][0]
    await lore.jobs.wait(job, SECONDS)
    assert says("en", "evolving.nothing") in await page(http, begun.headers["location"])


async def test_a_person_is_forgotten_only_where_the_id_is_typed(http, lore):
    await lore.messages.add([Message(id=f"m{n}", room_id="g", sender_id="ann", text=f"word {n}") for n in range(3)])
    path = "/console/memory/change?what=forget&id=ann"
    assert "<td>3</td>" in await page(http, path)
    wrong = await send(http, path, 422, typed="anna")
    assert says("en", "forget.wrong") in wrong.text
    assert len(await lore.messages.page("g")) == 3
    right = await send(http, path, 200, typed="ann")
    assert says("en", "forgotten.complete") in right.text
    assert await lore.rooms.page() == []
    again = await http.get("/console/memory/forgetting?id=ann", headers={**LANGUAGES["en"], "HX-Request": "true"})
    assert says("en", "forget.nothing") in again.text


@pytest.mark.parametrize("language", LANGUAGES)
async def test_forgetting_that_takes_long_is_followed_and_done_once(http, lore, monkeypatch, language):
    await lore.messages.add([Message(id=f"m{n}", room_id="g", sender_id="安", text=f"word {n}") for n in range(3)])
    begun, may_end, erase = [], asyncio.Event(), MessageEraser.erase

    async def slow(its, person, tally):
        if not tally.dry:
            begun.append(person.user_id)
            await may_end.wait()
        await erase(its, person, tally)

    monkeypatch.setattr(MessageEraser, "erase", slow)
    monkeypatch.setattr(memory_editing, "_WAITED", 0.01)
    path = "/console/memory/change?what=forget&id=%E5%AE%89"
    for _ in range(2):
        follow = (await send(http, path, typed="安")).headers["location"]
        shown = await page(http, follow, language=language)
        assert says(language, "forgetting.going") in shown
        assert 'hx-trigger="load' in shown
        assert 'http-equiv="refresh"' in shown
    may_end.set()
    ended = (await http.get(follow, headers={**LANGUAGES[language], "HX-Request": "true"})).text
    assert says(language, "forgotten.complete") in ended
    assert "hx-trigger" not in ended
    assert begun == ["安"]
    assert await lore.rooms.page() == []


async def test_a_page_that_follows_a_request_begins_nothing(monkeypatch):
    """Somebody else's request, as before a restart. This process does no work, so nobody does it until `catch_up`."""
    erase, errors = MessageEraser.erase, [StorageUnavailable("The disk is full; make room.")]

    async def fails_first(*given):
        if errors:
            raise errors.pop()
        await erase(*given)

    monkeypatch.setattr(MessageEraser, "erase", fails_first)
    follow = "/console/memory/forgetting?id=ann"
    async with roomlore.open("sqlite://", background=False) as lore, asking(lore) as http:
        await lore.messages.add([Message(id="m1", room_id="g", sender_id="ann", text="word")])
        job = await lore.privacy.begin_forgetting("ann")
        lore._resources.durable._opened._pauses = ()
        assert says("en", "forgetting.going") in await page(http, follow)
        assert (await lore.jobs.get(job)).attempts == 0
        await lore.jobs.catch_up(seconds=SECONDS)
        for _ in range(2):
            assert "The disk is full; make room." in await page(http, follow)
        assert ((await lore.jobs.get(job)).attempts, len(await lore.messages.page("g"))) == (1, 1)
        await lore.jobs.retry(job)
        ended = asyncio.create_task(http.get(follow, headers={"HX-Request": "true", **LANGUAGES["en"]}))
        await lore.jobs.catch_up(seconds=SECONDS)
        assert says("en", "forgotten.complete") in (await ended).text
        assert says("en", "forget.nothing") in (await http.get(follow, headers={"HX-Request": "true"})).text
        assert len(await lore.jobs.page(kind="forgetting")) == 1


@pytest.mark.parametrize("language", LANGUAGES)
async def test_counting_what_would_go_keeps_nobody_waiting(http, lore, monkeypatch, language):
    await lore.messages.add([Message(id="m1", room_id="g", sender_id="ann", text="word")])
    counted, may_end, forget = [], asyncio.Event(), lore.privacy.forget

    async def slow(user_id: str, *, dry_run: bool = False, same_words: bool = False, is_id: bool = False):
        counted.append(dry_run)
        await may_end.wait()
        return await forget(user_id, dry_run=dry_run, is_id=is_id)

    monkeypatch.setattr(lore.privacy, "forget", slow)
    monkeypatch.setattr(memory_editing, "_WAITED", 0.01)
    asked = await page(http, "/console/memory/change?what=forget&id=ann", language=language)
    piece = "/console/memory/forgetting/would?id=ann"
    assert f'hx-get="{piece}"' in asked
    assert says(language, "confirm.forget.do") in asked
    assert says(language, "forget.counting") not in asked, "without a script nothing counts here"
    assert f'href="{piece}">{says(language, "forget.look")}</a>' in asked
    assert says(language, "forget.counting") in await page(http, piece, language=language)
    may_end.set()
    told = (await http.get(piece, headers={**LANGUAGES[language], "HX-Request": "true"})).text
    assert "<td>1</td>" in told
    assert "hx-trigger" not in told
    assert counted == [True]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_is_removed_and_what_is_kept_without_the_person_are_two_tables(http, lore, language):
    said = (("ann", "I keep the spare key in the shed"), ("bob", "ann says it again: I keep the spare key in the shed"))
    for number, (who, text) in enumerate(said):
        await lore.messages.add(Message(id=f"m{number}", room_id="g", sender_id=who, sender_name=who, text=text))
    shown = await page(http, "/console/memory/forgetting/would?id=ann", language=language)
    removed, _, kept = shown.partition(f">{says(language, 'forget.kept')}<")
    assert removed.index(says(language, "place.messages")) > removed.index(says(language, "forget.place"))
    assert says(language, "place.messages of others") in kept
    assert says(language, "place.messages of others") not in removed


@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_more_is_counted_at_a_time_for_a_tenant_than_there_may_be(lore, monkeypatch, language):
    """Whoever asks for one count too many is told what to do, and gets it once another has ended."""
    counted, may_end = [], {f"人{n}": asyncio.Event() for n in range(10)}

    async def slow(self, user_id: str, *, dry_run: bool = False, same_words: bool = False, is_id: bool = False):
        counted.append(user_id)
        await may_end[user_id].wait()
        return ForgetReport(user_id=user_id, dry_run=dry_run, started_at=lore.now(), finished_at=lore.now())

    monkeypatch.setattr(type(lore.privacy), "forget", slow)
    monkeypatch.setattr(memory_editing, "_WAITED", 0.01)
    monkeypatch.setattr(memory_editing, "_WAITED_AGAIN", 0.01)
    _, our_key = await lore.keys.create("us", scopes=("admin",))
    _, their_key = await lore.for_tenant("other").keys.create("them", scopes=("admin",))
    full, counting = says(language, "forget.full"), says(language, "forget.counting")
    transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:

        async def told(person: str, path: str = "/console/memory/forgetting/would", key: str = our_key, **more):
            headers = {**LANGUAGES[language], "Authorization": f"Bearer {key}", **more}
            return await http.get(f"{path}?{urlencode({'what': 'forget', 'id': person})}", headers=headers)

        allowed = [f"人{n}" for n in range(MAX_AT_A_TIME)]
        for person in (*allowed, *allowed):
            assert counting in (await told(person)).text
        assert len(counted) == len(allowed)
        for n in range(MAX_AT_A_TIME, 10):
            refused = await told(f"人{n}")
            assert (refused.status_code, full in refused.text) == (429, True)
            assert not re.search("hx-trigger|http-equiv", refused.text)
        assert (await told("人9", "/console/memory/forgetting")).status_code == 429
        asked = await told("人9", "/console/memory/change")
        assert (asked.status_code, full in asked.text) == (200, True)
        piece = await told("人9", **{"HX-Request": "true"})
        assert (piece.status_code, full in piece.text) == (200, True), "a script shows no piece of another status"
        assert counted == allowed
        assert counting in (await told("人9", key=their_key)).text, "others count as if nobody else did"
        may_end["人0"].set()
        assert says(language, "forget.nothing") in (await told("人0")).text
        assert counting in (await told("人9")).text
        assert (await told("人8")).status_code == 429
        for person in (*allowed[1:], "人9"):
            may_end[person].set()
            assert says(language, "forget.nothing") in (await told(person)).text
        assert says(language, "forget.nothing") in (await told("人9", key=their_key)).text


async def test_forgetting_that_fails_says_so_and_what_is_left(http, lore, monkeypatch):
    await lore.messages.add([Message(id="m1", room_id="g", sender_id="ann", text="word")])
    erase = MessageEraser.erase

    async def fails(its, person, tally):
        if not tally.dry:
            raise StorageUnavailable("The disk is full; make room.")
        await erase(its, person, tally)

    monkeypatch.setattr(MessageEraser, "erase", fails)
    await lore.jobs.page()  # opens it
    monkeypatch.setattr(lore._resources.durable._opened, "_pauses", (0.0, 0.0))
    told = await send(http, "/console/memory/change?what=forget&id=ann", 200, typed="ann")
    assert "The disk is full" in told.text
    for _ in range(2):
        again = await http.get("/console/memory/forgetting?id=ann", headers={**LANGUAGES["en"], "HX-Request": "true"})
        assert "The disk is full" in again.text
        assert says("en", "forgetting.again") in again.text
    (job,) = await lore.jobs.page(kind="forgetting")
    assert (job.status, job.attempts) == ("failed", 3), "a look at the page tries nothing again"
    left = await http.get("/console/memory/forgetting/would?id=ann", headers={**LANGUAGES["en"], "HX-Request": "true"})
    assert "<td>1</td>" in left.text


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_is_not_there_cannot_be_changed(http, language):
    for what, status in (("delete", 404), ("restore", 404), ("revert", 404), ("explode", 422)):
        await page(http, f"/console/memory/change?what={what}&id=none", status, language)
    await page(http, "/console/memory/one?id=none", 404, language)
    await page(http, "/console/memory/evolving?id=g&job=none&evolution=none", 404, language)


async def test_a_reader_is_offered_no_change(lore):
    await lore.memories.add("group:g", "we drink green tea", memory_id="f1")
    _, secret = await lore.keys.create("reader", scopes=("read",))
    async with asking(lore, secret, "room:g") as http:
        for path in ("/console/memories", "/console/memory?id=g", "/console/memory/one?id=f1"):
            assert "/console/memory/change" not in (await http.get(path)).text
        path = "/console/memory/change?what=delete&id=f1"
        assert (await http.get(path)).status_code == 403
        token = re.search(r'name="token" value="([^"]+)"', (await http.get("/console")).text)[1]
        assert (await http.post(path, data={"token": token})).status_code == 403
    assert len(await lore.memories.page("group:g")) == 1


@pytest.mark.parametrize("name", ["Summer party", "发布小组"])
async def test_a_group_with_a_name_is_called_by_it_and_its_id_stays(lore, http, name):
    await lore.messages.add(Message(id="1", room_id="g-77", sender_id="ann", text="tea 茶"))
    await lore.rooms.rename("g-77", name)
    shown = (await http.get("/console/memory?id=group:g-77")).text
    assert f"<h1><bdi>{name}</bdi></h1>" in shown
    assert "<code>g-77</code>" in shown


async def test_where_the_slider_begins_is_a_time_that_the_browser_can_put_in_its_zone(lore, http):
    await lore.memories.add("group:tea", "Tea is at four 四点喝茶")
    shown = (await http.get("/console/memory?id=group:tea")).text
    assert re.search(r'class="ends"><time datetime="[^"]+\+00:00">[^<]+</time><input type="range"', shown)
