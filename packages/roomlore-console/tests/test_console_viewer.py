"""The console of a key without the scope admin: it names its viewer once, and each page shows what that viewer may
know."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from audience_rig import heard_in, remember
from console_rig import LANGUAGES, asking, page
from roomlore import Message, Source
from roomlore_console import live
from roomlore_console.frame import ROOT
from roomlore_testkit import START
from roomlore_testkit.case_table import all_cases

PEOPLE = {"dm": "ann", "team": "ann bo", "square": "ann eve"}
SECRET = "wants another job"
PAGES = [
    "",
    "/memories",
    "/memory?id=user:ann",
    "/memory?id=user:ann&status=deprecated",
    "/memory?id=user:ann&kind=fact&offset=1",
    "/memory?id=group:team",
    "/memory?id=group:dm",
    "/memory/one?id={nuts}",
    "/memory/write?id={nuts}",
    "/memory/write?scope=user:ann",
    "/memory/change?what=delete&id={nuts}",
    "/memory/change?what=restore&id={nuts}",
    "/recall?scopes=user:ann&q=job",
    "/recall?scopes=user:ann,group:dm,agent:bot&q=job&tokens=5000",
    "/room?id=team",
    "/room?id=square",
    "/room?id=dm",
    "/room/live?id=team",
    "/room/live?id=dm",
    "/side",
    "/people",
    "/people?q=an",
    "/person?id=ann",
    "/person?id=bo",
    "/search?q=job",
    "/search?q=an",
    "/places",
    "/thread?id=team&message=team-ann",
    "/thread?id=dm&message=dm-ann",
    "/context?room=team&message=team-bo",
    "/context?room=dm&message=dm-ann",
    "/session?id=team",
    "/session?id=dm",
    "/session/change?what=reset&id=dm",
    "/session/summarising?id=dm&job=summary:x",
    "/viewer",
]
FOR_ADMINISTRATORS = [
    "/sessions",
    "/sessions?find=dm",
    "/visible?id=team",
    "/visible?id=dm",
    "/jobs",
    "/jobs?status=failed",
    "/health",
    "/health/findings",
    "/forget?who=ann",
    "/memory?id=user:ann&at=2126-01-01",
    "/memory?id=user:ann&step=50",
    "/memory?id=user:ann&to=1",
    "/memory/evolving?id=dm&job=x&evolution=y",
    "/memory/forgetting?id=ann",
    "/memory/forgetting/would?id=ann",
    "/memory/change?what=forget&id=ann",
    "/memory/change?what=evolve&id=dm",
    "/memory/change?what=revert&id=x",
]


@pytest.fixture(autouse=True)
def _streams_end(monkeypatch):
    monkeypatch.setattr(live, "STREAM_SECONDS", 0.01)


@pytest.fixture
async def lore():
    async with heard_in(PEOPLE, direct="dm") as opened:
        yield opened


async def key_of(lore) -> str:
    return (await lore.keys.create("somebody", scopes=("read", "write")))[1]


def said(at: Source, number: int) -> Message:
    text = f"{SECRET} {number}"
    return Message(id=at.message_id, room_id=at.room_id, sender_id="ann", text=text, sent_at=START)


async def shown_to(viewer: str, *, secrets: int) -> dict[str, tuple[int, str]]:
    """Return every page in a store where so many secrets were told in the direct room, with ids and times masked."""
    async with heard_in(PEOPLE, direct="dm") as lore:
        nuts = (await lore.memories.add("user:ann", "allergic to nuts", sources=[TEAM], memory_id="nuts")).memory_id
        for number in range(secrets):
            at = Source("dm", f"secret-{number}")
            await lore.messages.add(said(at, number))
            kept = await lore.memories.add("user:ann", f"{SECRET} {number}", sources=[at])
            await lore.memories.add("group:dm", f"{SECRET} {number}", sources=[at])
            if number % 2:
                await lore.memories.delete(kept.memory_id)
        if secrets:
            await lore.sessions.write_turn("dm", "ann", "bot", SECRET, "Oh", turn_id="t1")
            await lore.sessions.checkpoint("dm", SECRET, covers_through="t1-answer")
        async with asking(lore, await key_of(lore), viewer) as http:
            found = {}
            for path in PAGES:
                answer = await http.get(ROOT + path.format(nuts=nuts), headers=LANGUAGES["en"])
                found[path] = answer.status_code, MASKED.sub("", answer.text)
            return found


TEAM = Source("team", "team-ann")
MASKED = re.compile(r'name="token" value="[^"]*"|<time[^>]*>[^<]*</time>|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?')


@pytest.mark.parametrize("viewer", ["room:team", "user:bo", "room:square", "room:nowhere"])
async def test_each_page_is_the_same_whatever_was_said_elsewhere(viewer):
    without, with_secrets = await shown_to(viewer, secrets=0), await shown_to(viewer, secrets=5)
    for path in PAGES:
        assert without[path] == with_secrets[path], path
    assert SECRET not in re.sub("</?mark>", "", str(with_secrets))


async def test_the_same_pages_tell_the_person_it(lore):
    told = await shown_to("user:ann", secrets=5)
    telling = {path for path, (_, text) in told.items() if SECRET in re.sub("</?mark>", "", text)}
    assert telling >= {
        "/memory?id=user:ann",
        "/recall?scopes=user:ann&q=job",
        "/room?id=dm",
        "/room/live?id=dm",
        "/session?id=dm",
        "/person?id=ann",
        "/search?q=job",
    }


async def test_what_concerns_all_rooms_is_for_administrators(lore):
    async with asking(lore, await key_of(lore), "room:team") as http:
        first = await page(http, ROOT)
        with all_cases() as case:
            for path in FOR_ADMINISTRATORS:
                with case(path):
                    assert "lacks the scope admin" in await page(http, ROOT + path, 403)
                    assert f'href="{ROOT}{urlsplit(path).path}"' not in first


async def test_only_rooms_that_the_viewer_sees_are_listed(lore):
    key = await key_of(lore)
    for viewer, rooms in {
        "room:team": {"team", "square"},
        "user:ann": {"dm", "square"},
        "room:dm": {"dm", "square"},
        "user:nobody": {"square"},
    }.items():
        async with asking(lore, key, viewer) as http:
            found = set(re.findall(r"/console/room\?id=(\w+)", await page(http, ROOT)))
            assert found == rooms, viewer
            for room in PEOPLE:
                await page(http, f"{ROOT}/room?id={room}", 200 if room in rooms else 404)


async def test_a_viewer_finds_their_rooms_by_name_and_no_others(lore):
    await lore.rooms.rename("team", "周末爬山群")
    await lore.rooms.rename("dm", "爬山的秘密")
    async with asking(lore, await key_of(lore), "room:team") as http:
        text = await page(http, f"{ROOT}/search?q=爬山")
    assert "周末爬山群" in text
    assert "爬山的秘密" not in text


async def test_a_hidden_memory_is_neither_changed_nor_told_from_none(lore):
    hidden = await remember(lore, SECRET, "dm")
    async with asking(lore, await key_of(lore), "room:team") as http:
        token = re.search(r'name="token" value="([^"]+)"', await page(http, ROOT))[1]
        for path in ("/memory/change?what=delete", "/memory/change?what=restore", "/memory/write?x=1"):
            for method in ("GET", "POST"):
                texts = set()
                for memory_id in (hidden, "f" * len(hidden)):
                    address = f"{ROOT}{path}&id={memory_id}"
                    answer = await http.request(method, address, data={"token": token, "statement": "x"})
                    assert answer.status_code == 404, address
                    texts.add(MASKED.sub("", answer.text.replace(memory_id, "")))
                assert len(texts) == 1
    assert (await lore.memories.get(hidden)).statement == SECRET
    assert len(await lore.memories.changes("user:ann")) == 1


async def test_what_was_only_shared_is_not_written_anew_and_confirms_no_guess(lore):
    """The words of a hidden memory of the same talk would be a conflict that names it."""
    hidden = await remember(lore, SECRET, "dm")
    shared = await remember(lore, "想学日语 wants to learn Japanese", "dm")
    await lore.memories.share(shared, "room:team", by="ann")
    async with asking(lore, await key_of(lore), "room:team") as http:
        token = re.search(r'name="token" value="([^"]+)"', await page(http, ROOT))[1]
        address = f"{ROOT}/memory/write?id={shared}"
        for statement in (SECRET, "something else"):
            answer = await http.post(address, data={"token": token, "statement": statement, "kind": "fact"})
            assert answer.status_code == 403
            assert hidden not in answer.text
        await page(http, address, 403)
    assert len(await lore.memories.history(shared)) == 1


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_visitor_is_asked_once_to_whom_the_pages_are_shown(lore, language):
    await remember(lore, SECRET, "dm")
    async with asking(lore, await key_of(lore)) as http:
        turned = await http.get(f"{ROOT}/memory?id=user:ann", headers=LANGUAGES[language])
        assert turned.status_code == 303
        address = turned.headers["location"]
        assert parse_qs(urlsplit(address).query)["next"] == [f"{ROOT}/memory?id=user:ann"]
        form = await page(http, address, language=language)
        token = re.search(r'name="token" value="([^"]+)"', form)[1]
        for wrong in ("", "team", "group:team", "room:"):
            refused = await http.post(address, data={"token": token, "viewer": wrong})
            assert refused.status_code == 422
            assert 'role="alert"' in refused.text
        done = await http.post(address, data={"token": token, "viewer": ' room:团队;="x '})
        assert (done.status_code, done.headers["location"]) == (303, f"{ROOT}/memory?id=user:ann")
        kept = done.headers["set-cookie"].lower()
        assert all(part in kept for part in ("httponly", "samesite=strict", "path=/console"))
        shown = await page(http, done.headers["location"], language=language)
        assert "<bdi>团队;=&#34;x</bdi>" in shown
        assert SECRET not in shown
        await http.post(f"{ROOT}/sign-out", data={"token": token})
        assert (await http.get(ROOT)).headers["location"].startswith(f"{ROOT}/viewer")


async def test_an_administrator_is_not_asked(lore):
    await remember(lore, SECRET, "dm")
    _, key = await lore.keys.create("chief", scopes=("admin",))
    async with asking(lore, key, "room:team") as http:
        assert SECRET in await page(http, f"{ROOT}/memory?id=user:ann")


async def test_a_job_of_another_room_is_not_told_of(lore):
    await lore.sessions.write_turn("team", "bo", "bot", "hello", "hi", turn_id="t1")
    await lore.sessions.write_turn("dm", "ann", "bot", "hello", "hi", turn_id="t2")
    job = await lore.sessions.begin_summary("dm")
    async with asking(lore, await key_of(lore), "room:team") as http:
        await page(http, f"{ROOT}/session/summarising?id=team&job={job}", 404)
        own = await lore.sessions.begin_summary("team")
        await page(http, f"{ROOT}/session/summarising?id=team&job={own}")
