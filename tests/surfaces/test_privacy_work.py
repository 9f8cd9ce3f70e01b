"""Checking and forgetting that outlast the request, over HTTP and in the console: done once, told once,
few at a time."""

import asyncio
import html
import re
from urllib.parse import quote

import pytest

from console_rig import LANGUAGES, page
from privacy_rig import SECONDS, ended, slow_over, until
from roomlore.core.errors import StorageUnavailable
from roomlore.surfaces.long_work import MAX_AT_A_TIME, LongWork
from roomlore_console.frame import tongue
from roomlore_server.http import create_app, privacy_routes

VERIFY = "/privacy/verify"
PEOPLE = [f"人{n}" for n in range(MAX_AT_A_TIME)]
both = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture
async def slow(lore):
    for person in (*PEOPLE, "安"):
        await lore.memories.add(f"user:{person}", "喜欢绿茶 and coffee")
    return slow_over(lore)


@pytest.fixture
def app(slow):
    return create_app(slow.lore)


@pytest.fixture
def hurried(monkeypatch):
    """No request waits for anything; `patient()` makes them wait."""
    monkeypatch.setattr(privacy_routes, "_MAX_WAITED", 0.01)
    return lambda: monkeypatch.setattr(privacy_routes, "_MAX_WAITED", SECONDS)


async def running(http, query: str = "") -> None:
    answer = await http.get(VERIFY + query)
    assert (answer.status_code, answer.json()) == (202, {"success": True, "status": "running"})


def said(language: str, key: str) -> str:
    return html.escape(tongue(language).say(key), quote=False)


def checks_begun(slow) -> int:
    return slow.gate.calls.count("progress.index_state")


async def test_a_check_that_takes_long_goes_on_and_is_waited_for(http, slow, hurried):
    for _ in range(3):
        await running(http)
    assert slow.gate.calls == ["reading"]
    hurried()
    slow.gate.open.set()
    told = await http.get(VERIFY)
    assert (told.status_code, told.json()["sound"]) == (200, True), told.text
    assert told.json()["checked"]["memories"] == 4
    assert checks_begun(slow) == 1
    assert (await http.get(VERIFY)).status_code == 200
    assert checks_begun(slow) == 2, "what was told is not told again"


async def test_what_a_check_found_while_nobody_waited_is_told_to_who_asks_next(http, app, slow, hurried):
    await running(http, "?group_id=user:安")
    slow.gate.open.set()
    await ended(app.state.long_work)
    told = await http.get(VERIFY, params={"group_id": "user:安"})
    assert (told.status_code, told.json()["checked"]["memories"]) == (200, 1)
    assert checks_begun(slow) == 1


async def test_a_check_that_failed_while_nobody_waited_says_so_and_is_done_again(http, app, slow, hurried):
    await running(http)
    slow.gate.fail("memories.scopes", StorageUnavailable("The disk is full; make room."))
    slow.gate.open.set()
    await ended(app.state.long_work)
    refused = await http.get(VERIFY)
    assert (refused.status_code, "disk is full" in refused.json()["detail"]) == (503, True)
    slow.gate.heal()
    hurried()
    assert (await http.get(VERIFY)).json()["sound"] is True


async def test_no_more_is_checked_at_a_time_for_a_tenant_than_there_may_be(connect, slow, hurried):
    _, our_key = await slow.lore.keys.create("us", scopes=("admin",))
    _, their_key = await slow.lore.for_tenant("other").keys.create("them", scopes=("admin",))
    async with connect(key=our_key) as ours, connect(key=their_key) as theirs:
        for person in (*PEOPLE, *PEOPLE):
            await running(ours, f"?group_id=user:{person}")
        for query in ("", "?group_id=user:安"):
            refused = await ours.get(VERIFY + query)
            assert (refused.status_code, refused.json()["type"]) == (429, "urn:roomlore:too-many")
            assert int(refused.headers["retry-after"]) > 0
            assert refused.headers["content-type"] == "application/problem+json"
        await running(theirs)
        assert slow.gate.calls == ["reading"] * (MAX_AT_A_TIME + 1)
        hurried()
        slow.gate.open.set()
        for query in (f"?group_id=user:{PEOPLE[0]}", "", "?group_id=user:安"):
            assert (await ours.get(VERIFY + query)).status_code == 200


def test_the_document_names_what_a_caller_must_understand(app):
    paths = app.openapi()["paths"]
    for operation in (paths[VERIFY]["get"], paths["/privacy/forget"]["post"]):
        assert {"200", "202", "429"} <= set(operation["responses"])
        later = operation["responses"]["202"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        assert app.openapi()["components"]["schemas"][later]["properties"]["status"]["const"] == "running"


# Forgetting.


def forgettings(slow) -> int:
    return sum(not dry_run for _, _, dry_run in slow.forgetter.begun)


async def would(http, person: str, **more):
    return await http.post("/privacy/forget", json={"user_id": person, "dry_run": True, **more})


@both
async def test_counts_of_both_faces_are_the_same_and_few_at_a_time(http, slow, hurried, language):
    for person in (*PEOPLE, *PEOPLE):
        answer = await would(http, person)
        assert (answer.status_code, answer.json()["status"]) == (202, "running")
    assert len(slow.forgetter.begun) == MAX_AT_A_TIME
    refused = await would(http, "安")
    assert (refused.status_code, refused.json()["type"]) == (429, "urn:roomlore:too-many")
    await page(http, f"/console/memory/forgetting/would?id={quote('安')}", 429, language)
    await page(http, f"/console/memory/forgetting?id={quote(PEOPLE[0])}", 200, language)
    unconfirmed = await would(http, "安", dry_run=False)
    assert unconfirmed.status_code == 422
    assert {"confirm", "dry_run"} <= set(unconfirmed.json()["detail"].replace("`", " ").replace(":", " ").split())
    assert len(slow.forgetter.begun) == MAX_AT_A_TIME
    assert (await would(http, "安", dry_run=False, confirm=True)).status_code == 202, "forgetting is never refused"
    slow.forgetter.may_end[PEOPLE[0], True].set()
    hurried()
    assert (await would(http, PEOPLE[0])).json()["dry_run"] is True


async def test_a_count_from_before_the_forgetting_is_not_told_after_it(http, app, slow, hurried):
    assert (await would(http, "安")).status_code == 202
    for dry_run in (True, False):
        slow.forgetter.may_end["安", dry_run].set()
    await ended(app.state.long_work)
    hurried()
    assert (await would(http, "安", dry_run=False, confirm=True)).status_code == 200
    assert (await would(http, "安")).status_code == 200
    assert [dry_run for _, _, dry_run in slow.forgetter.begun] == [True, False, True]


@pytest.mark.parametrize("scope", ["", "?group_id=user:安"], ids=["all", "one"])
async def test_what_a_check_found_before_a_forgetting_is_not_told_after_it(http, app, slow, hurried, scope):
    """It may name the person."""
    await running(http, scope)
    slow.gate.open.set()
    await ended(app.state.long_work)
    slow.forgetter.may_end["安", False].set()
    hurried()
    assert (await would(http, "安", dry_run=False, confirm=True)).status_code == 200
    assert (await http.get(VERIFY + scope)).status_code == 200
    assert checks_begun(slow) == 2


@both
@pytest.mark.parametrize("fails", [False, True], ids=["done", "failed"])
async def test_what_came_of_forgetting_is_told_though_nothing_can_be_counted(http, app, slow, hurried, language, fails):
    """It ended between two looks at the page, while as many counts were under way as there may be."""
    assert (await would(http, "安", dry_run=False, confirm=True)).status_code == 202
    for person in PEOPLE:
        assert (await would(http, person)).status_code == 202
    shown, full = f"/console/memory/forgetting?id={quote('安')}", said(language, "forget.full")
    assert said(language, "forgetting.going") in await page(http, shown, language=language)
    if fails:
        slow.forgetter.errors["安", False] = StorageUnavailable("The disk is full; make room.")
    slow.forgetter.may_end["安", False].set()
    await ended(app.state.long_work, "forget")
    told = await page(http, shown, language=language)
    assert ("The disk is full" if fails else said(language, "forgotten.complete")) in told
    assert full not in told
    again = await page(http, shown, 429, language)
    assert full in again
    assert said(language, "forgetting.over") in again


async def test_forgetting_asked_for_again_is_told_once_and_in_the_console_done_anew(http, app, slow, hurried):
    path, confirmed = f"/console/memory/change?what=forget&id={quote('安')}", {"dry_run": False, "confirm": True}
    slow.forgetter.may_end["安", True].set()
    token = re.search(r'name="token" value="([^"]+)"', await page(http, path))[1]
    for begun in (1, 2):
        slow.forgetter.may_end["安", False].clear()
        assert (await would(http, "安", **confirmed)).status_code == 202
        slow.forgetter.may_end["安", False].set()
        await ended(app.state.long_work)
        if begun == 1:
            told = await would(http, "安", **confirmed)
            assert (told.status_code, told.json()["complete"]) == (200, True)
        assert forgettings(slow) == begun
    done = await http.post(path, data={"typed": "安", "token": token}, headers=LANGUAGES["en"])
    assert said("en", "forgotten.complete") in done.text
    assert forgettings(slow) == 3


# What came of work.


class Held:
    """Work that ends when a test says so."""

    def __init__(self, work: LongWork) -> None:
        self.work = work
        self.begun = 0
        self._may_end = asyncio.Event()

    async def begin(self) -> int:
        self.begun += 1
        await self._may_end.wait()
        return self.begun

    async def begun_unwatched(self) -> None:
        self._may_end.clear()
        assert await self.work.wait(("tea", "茶"), self.begin, seconds=0) is None

    async def ended_unwatched(self) -> None:
        await self.begun_unwatched()
        self._may_end.set()
        await ended(self.work)

    async def asked(self, *, anew: bool = False) -> int | None:
        return await self.work.wait(("tea", "茶"), self.begin, seconds=SECONDS, anew=anew)

    def known(self) -> bool:
        return self.work.knows(("tea", "茶"))


async def test_what_came_of_work_is_kept_until_it_is_told_or_done_anew():
    held = Held(LongWork())
    await held.ended_unwatched()
    assert held.known()
    assert not held.work.goes_on(("tea", "茶"))
    assert [await held.asked(), held.known()] == [1, False]
    assert [await held.asked(), held.known()] == [2, False], "who waited was told"
    await held.ended_unwatched()
    assert [await held.asked(anew=True), held.known()] == [4, False]


@pytest.mark.parametrize("when", ["under way", "ended"])
async def test_nothing_is_kept_of_work_that_is_dropped(when):
    held = Held(LongWork())
    if when == "ended":
        await held.ended_unwatched()
        assert held.known()
        held.work.drop("tea")
    else:
        await held.begun_unwatched()
        held.work.drop("tea")
        assert held.known()
        await held.ended_unwatched()
        assert held.begun == 1
    assert not held.known()


async def test_what_nobody_asks_for_is_let_go_of():
    held = Held(LongWork(kept_seconds=0.001))
    await held.ended_unwatched()
    await until(lambda: not held.known())
    held = Held(LongWork())
    async with held.work.ending():
        await held.ended_unwatched()
        assert held.known()
    assert not held.known()
