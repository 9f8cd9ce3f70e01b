"""The console's pages for an API key: with the scope `write` alone nothing stored is shown; and no refusal
is written as Python writes its values."""

import html
import re
from contextlib import asynccontextmanager
from itertools import product
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from console_rig import LANGUAGES, asking, page
from evolution_rig import create, lines, opened
from roomlore import Message
from roomlore.core.memory.memory import Source
from roomlore_console import live
from roomlore_console.frame import ROOT
from roomlore_server.http.console_route import console_pages
from roomlore_testkit.model_server import ModelServer

TOLD = {
    "en": ("Anna hides hidden-regatta tea", "Anna now hides hidden-regatta coffee", "They sail the hidden-regatta"),
    "zh": ("安娜藏着机密茶会的茶", "安娜如今藏着机密茶会的咖啡", "大家去机密茶会"),
}
MARKS = {"en": "hidden-regatta", "zh": "机密茶会"}
LACKS = {"en": "lacks the scope", "zh": "没有权限"}
SHOWS = [
    "/rooms",
    "",
    "/room?id=tea",
    "/room/live?id=tea",
    "/room/threads?id=tea",
    "/room/delete?id=tea",
    "/side",
    "/search?q=anna",
    "/suggest?q=an",
    "/places",
    "/people",
    "/person?id=anna",
    "/forget?who=an",
    "/thread?id=tea&message=m1",
    "/digest?id=tea",
    "/context?room=tea&message=m2",
    "/sessions",
    "/session?id=tea",
    "/session/change?what=reset&id=tea",
    "/session/change?what=summarise&id=tea",
    "/session/summarising?id=tea&job={job}",
    "/memories",
    "/memory?id=user:anna",
    "/memory?id=user:anna&status=deprecated",
    "/memory?id=user:anna&step=50",
    "/memory?id=user:anna&at=2126-01-01",
    "/memory/one?id={old}",
    "/memory/compare?id=user:anna&from=0",
    "/memory/evolving?id=tea&job={job}&evolution={evolution}",
    "/memory/forgetting?id=anna",
    "/memory/forgetting/would?id=anna",
    "/memory/change?what=delete&id={new}",
    "/memory/change?what=restore&id={old}",
    "/memory/change?what=revert&id={evolution}",
    "/memory/change?what=evolve&id=tea",
    "/memory/change?what=forget&id=anna",
    "/memory/write?scope=user:anna",
    "/memory/write?id={new}",
    "/visible?id=tea",
    "/recall?scopes=user:anna&q=tea",
    "/jobs",
    "/usage",
    "/health",
    "/health/findings",
    "/sign-in",
    "/viewer",
]
TELL_TEXT = {
    "", "/rooms",
    "/room", "/thread", "/context", "/session", "/session/summarising", "/memory", "/memory/one", "/memory/change",
    "/memory/write", "/visible", "/recall", "/room/live", "/room/threads", "/people", "/person", "/forget", "/search",
    "/digest", "/memory/compare", "/memories", "/suggest", "/sessions",
}  # fmt: skip
"""Pages on which a key that may read sees what is stored."""
SENDS = [
    ("/look", {"roomlore_theme": "dark"}),
    ("/sign-in", {"key": "none"}),
    ("/memory/write?scope=user:anna", {"statement": "  "}),
    ("/memory/write?scope=user:anna", {"statement": "{statement}"}),
    ("/memory/write?id={new}", {"statement": "x", "confidence": "9"}),
    ("/memory/write?id={new}", {"statement": "x", "expected": "{old}"}),
    ("/memory/write?id={old}", {"statement": "{statement}", "expected": ""}),
    ("/memory/change?what=forget&id=anna", {"typed": "ann"}),
    ("/memory/change?what=evolve&id=tea", {}),
    ("/memory/change?what=restore&id={old}", {"reason": "r"}),
    ("/memory/change?what=delete&id={new}", {"expected": "{old}"}),
    ("/memory/change?what=revert&id={evolution}", {}),
    ("/memory/change?what=delete&id={new}", {}),
    ("/room/delete?id=tea", {"typed": "tee"}),
    ("/room/delete?id=tea", {"typed": "tea"}),
    ("/jobs/retry?id={job}", {}),
    ("/jobs/retry", {"ids": "{job}"}),
    ("/session/change?what=summarise&id=tea", {}),
    ("/session/change?what=reset&id=tea", {}),
    ("/memory/change?what=forget&id=anna", {"typed": "anna"}),
    ("/link?room=tea&message=m2", {"said": "nothing"}),
    ("/viewer", {"viewer": "room:tea"}),
    ("/sign-out", {}),
]
SHOWS_ON_ASKING = ("/memory/write", "what=delete", "what=restore", "/link")
"""In addresses of forms that show what is stored before they are sent: they need the scope `read` too."""
FOR_ADMINISTRATORS = ("what=evolve", "what=revert", "what=forget", "/jobs/retry", "/room/delete")
OF_ANYBODY = ("/look", "/sign-in", "/viewer", "/sign-out")
both = pytest.mark.parametrize("language", LANGUAGES)
ODD = ("0001-01-01T00:00+08:00", "'\"茶" + "9" * 400)
MORE = ("/room?id=tea&before=1", "/session?id=tea&window=1", "/jobs?status=done", "/recall?scopes=user:anna&tokens=1")
MORE_OF_A_SCOPE = tuple(f"/memory?id=tea&{name}=1" for name in ("at", "step", "to", "kind", "offset"))
MORE_OF_POINTS = tuple(f"/memory/compare?id=user:anna&{name}=1" for name in ("from", "to", "from_at", "to_at"))
PYTHON = re.compile(r"\w\.\w+\(|<\w+[ .:]|<class|object at 0x|\bb'|Traceback|\bNone\b|tzinfo")


@asynccontextmanager
async def stored(language: str):
    """A roomlore in which everything stored has the mark of its language, and the ids that addresses need."""
    first, second, third = TOLD[language]
    async with ModelServer(default=lines(create(third, "c1"))) as server, opened(server, seconds=60) as lore:
        spoken = {"room_id": "tea", "sender_id": "anna", "sender_name": MARKS[language]}
        await lore.messages.add([Message(id=f"m{n}", text=f"{first} {n}", **spoken) for n in (1, 2)])
        await lore.sessions.write_turn("tea", "anna", "bot", f"{first}?", f"{second}.", turn_id="t1")
        await lore.sessions.checkpoint("tea", f"summary: {first}", covers_through="t1-answer")
        await lore.sessions.patch_state("tea", {"note": first})
        begun = await lore.memories.begin_evolution("tea")
        assert (await lore.jobs.wait(begun.job_id, 60)).status == "done"
        known = {"category": MARKS[language], "tags": [MARKS[language]], "sources": [Source("tea", "m1")]}
        old = await lore.memories.add("user:anna", first, **known)
        gone = await lore.memories.add("user:anna", f"{first} {second}")
        await lore.memories.delete(gone.memory_id, first)
        new = await lore.memories.update(old.memory_id, statement=second, reason=first)
        ids = {"old": old.memory_id, "new": new.memory_id, "evolution": begun.evolution_id, "job": begun.job_id}
        yield lore, {**ids, "statement": second}


@pytest.fixture(autouse=True)
def _streams_end(monkeypatch):
    monkeypatch.setattr(live, "STREAM_SECONDS", 0.01)


async def key_of(lore, *scopes: str) -> str:
    return (await lore.keys.create("somebody", scopes=scopes))[1]


def test_every_page_is_looked_at():
    listed = {"GET": SHOWS, "POST": [path for path, _ in SENDS]}
    for method, paths in listed.items():
        there = {one.path.removeprefix(ROOT) for one in console_pages() if method in one.methods}
        assert {path for path in there if path != "/" and "{" not in path} == {urlsplit(path).path for path in paths}


@both
async def test_a_key_that_may_only_write_sees_nothing_that_is_stored(language):
    telling = set()
    async with stored(language) as (lore, ids):
        writer, admin = await key_of(lore, "write"), await key_of(lore, "admin")
        async with asking(lore, writer) as blind, asking(lore, admin) as seeing:
            for path in SHOWS:
                address = ROOT + path.format(**ids)
                unseen = await blind.get(address, headers=LANGUAGES[language])
                assert MARKS[language] not in unseen.text, address
                seen = await seeing.get(address, headers=LANGUAGES[language])
                if seen.status_code == 200 and MARKS[language] in seen.text:
                    telling.add(urlsplit(path).path)
                    assert unseen.status_code == 403, address
                    assert LACKS[language] in unseen.text
    assert telling == TELL_TEXT


@both
async def test_a_form_sent_with_such_a_key_shows_nothing_either(language):
    async with stored(language) as (lore, ids), asking(lore, await key_of(lore, "write")) as http:
        token = re.search(r'name="token" value="([^"]+)"', await page(http, "/console/sign-in"))[1]
        for path, fields in SENDS:
            typed = {name: value.format(**ids) for name, value in fields.items()}
            answer = await http.post(ROOT + path.format(**ids), data={**typed, "token": token})
            told = answer.text if "location" not in answer.headers else ""
            assert MARKS[language] not in told, path
            assert "not sent from a page" not in told, path
            refused = (*SHOWS_ON_ASKING, *FOR_ADMINISTRATORS)
            assert (answer.status_code == 403) is any(part in path for part in refused), path


def needing(scope: str) -> list[tuple[str, dict[str, str]]]:
    """Return the forms that need this scope."""
    if scope == "read":
        return [(path, fields) for path, fields in SENDS if any(part in path for part in SHOWS_ON_ASKING)]
    return [
        (path, fields)
        for path, fields in SENDS
        if not path.startswith(OF_ANYBODY) and not any(part in path for part in FOR_ADMINISTRATORS)
    ]


async def kept(lore) -> list:
    """Return the stored data that those forms would change."""
    jobs = [job for kind in ("evolution", "summary") for job in await lore.jobs.page(kind=kind)]
    session = await lore.sessions.get_session("tea")
    logs = [await lore.memories.changes(scope) for scope in ("user:anna", "group:tea")]
    return [logs, jobs, session, await lore.messages.page("tea")]


@both
@pytest.mark.parametrize(("has", "lacks"), [("read", "write"), ("write", "read")])
async def test_a_key_without_a_scope_that_a_form_needs_changes_nothing(language, has, lacks):
    async with stored(language) as (lore, ids):
        before = await kept(lore)
        async with asking(lore, await key_of(lore, has)) as http:
            token = re.search(r'name="token" value="([^"]+)"', await page(http, "/console/sign-in"))[1]
            for path, fields in needing(lacks):
                address = ROOT + path.format(**ids)
                typed = {name: value.format(**ids) for name, value in fields.items()}
                sent = await http.post(address, data={**typed, "token": token}, headers=LANGUAGES[language])
                assert (sent.status_code, f"{LACKS[language]} {lacks}" in sent.text) == (403, True), path
                if "what=" in path:
                    assert (await http.get(address)).status_code == 403, path
        assert await kept(lore) == before
        async with asking(lore, await key_of(lore, "read", "write"), "user:anna") as http:
            token = re.search(r'name="token" value="([^"]+)"', await page(http, "/console/sign-in"))[1]
            for path, fields in SENDS:
                if any(part in path for part in FOR_ADMINISTRATORS):
                    sent = await http.post(ROOT + path.format(**ids), data={**fields, "token": token})
                    assert (sent.status_code, "lacks the scope admin" in sent.text) == (403, True), path
            assert await kept(lore) == before
            shown = await page(http, address := f"{ROOT}/memory/change?what=delete&id={ids['new']}")
            token = re.search(r'name="token" value="([^"]+)"', shown)[1]
            assert (await http.post(address, data={"token": token})).status_code == 303
        assert await kept(lore) != before, "the same form is followed where the key has both"


# Refusals.


async def test_no_refusal_is_written_as_python_writes_its_values():
    refused = 0
    async with stored("zh") as (lore, ids), asking(lore) as http:
        for path in (*SHOWS, *MORE, *MORE_OF_A_SCOPE, *MORE_OF_POINTS):
            given = dict(parse_qsl(urlsplit(path.format(**ids)).query))
            for name, odd in product(given, ODD):
                address = f"{ROOT}{urlsplit(path).path}?{urlencode({**given, name: odd})}"
                answer = await http.get(address, headers=LANGUAGES["en"])
                assert answer.status_code < 500, address
                refused += answer.status_code >= 400
                told = html.unescape(answer.text.partition('role="alert"')[2].partition("</p>")[0])
                assert PYTHON.search(told) is None, (address, told)
    assert refused > 50


@both
async def test_a_moment_beyond_the_calendar_is_refused_with_what_to_write_instead(language):
    async with stored(language) as (lore, _), asking(lore) as http:
        shown = await page(http, "/console/memory?id=tea&at=0001-01-01T00:00%2B08:00", 422, language)
    assert f"at {'is' if language == 'en' else '是'} 0001-01-01T00:00:00+08:00" in shown
    assert f"{'such as' if language == 'en' else '请写成'} 2024-05-01T12:00Z" in shown
