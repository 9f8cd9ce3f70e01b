"""People, rooms and agents are chosen by name, forms keep what was typed, and pages of errors lead on."""

import re

import pytest

from audience_rig import heard_in, remember
from console_rig import LANGUAGES, asking, page
from roomlore import Message
from roomlore_console.frame import tongue
from roomlore_testkit import START
from roomlore_testkit.case_table import all_cases

both = pytest.mark.parametrize("language", LANGUAGES)
ALERT = re.compile(r'role="alert">(.*?)</p>', re.DOTALL)


async def fill(lore) -> None:
    said = (("tea", "u1", "王敏"), ("tea", "u2", "Marco"), ("dev", "u3", "Priya"), ("dev", "u4", "Marco"))
    await lore.messages.add(
        [
            Message(id=f"m{n}", room_id=room, sender_id=who, sender_name=name, text="茶 tea", sent_at=START)
            for n, (room, who, name) in enumerate(said)
        ]
    )
    await lore.rooms.rename("dev", "Build Team")
    await lore.memories.add("user:u1", "王敏喜欢乌龙茶")
    await lore.memories.add("group:dev", "They build at night")
    await lore.memories.add("agent:helper", "Be brief")


LEADS = [
    ("王敏", "user:u1"), ("U3", "user:u3"), ("build team", "group:dev"), ("tea", "group:tea"),
    ("helper", "agent:helper"), ("user:somebody", "user:somebody"), ("room:dev", "group:dev"), (" Priya ", "user:u3"),
]  # fmt: skip
NEAR = [
    ("Prya", "near", {"user:u3"}), ("Buid Team", "near", {"group:dev"}), ("Marco", "several", {"user:u2", "user:u4"}),
    ("Marc", "near", {"user:u2", "user:u4"}), ("zzzzzz", "nobody", set()), ('"><b>', "nobody", set()),
]  # fmt: skip


@both
async def test_whose_memory_is_read_is_chosen_by_name(http, lore, language):
    await fill(lore)
    with all_cases() as case:
        for typed, scope in LEADS:
            with case(typed):
                led = await http.get("/console/memories", params={"find": typed})
                assert led.status_code == 303
                assert led.headers["location"] == f"/console/memory?id={scope.replace(':', '%3A')}"
        for typed, how, near in NEAR:
            with case(typed):
                answer = await http.get("/console/memories", params={"find": typed}, headers=LANGUAGES[language])
                shown = answer.text.partition("<main")[2]
                assert answer.status_code == 422
                assert tongue(language).say(f"pick.{how}", name="§").split("§")[1] in ALERT.search(shown)[1]
                assert f'value="{typed.replace(chr(34), "&#34;").replace("<", "&lt;").replace(">", "&gt;")}"' in shown
                offered = shown.partition('class="near"')[2].partition("</ul>")[0]
                assert set(re.findall(r"id=(\w+)%3A(\w+)", offered)) == {tuple(one.split(":")) for one in near}


async def test_an_id_counts_before_the_same_name_of_another_person(http, lore):
    for who, name in (("anna", "Annette"), ("u9", "Anna")):
        await lore.messages.add(Message(id=who, room_id="tea", sender_id=who, sender_name=name, text="hi"))
    led = await http.get("/console/memories", params={"find": "anna"})
    assert (led.status_code, led.headers.get("location")) == (303, "/console/memory?id=user%3Aanna")
    assert '<option value="anna" selected>' in await page(http, "/console?for=anna")


@both
async def test_whose_facts_are_recalled_is_ticked_or_named(http, lore, language):
    await fill(lore)
    form = await page(http, "/console/recall", language=language)
    assert all(f'value="{scope}"' in form for scope in ("user:u1", "group:dev", "agent:helper"))
    shown = await page(http, "/console/recall?whose=group:dev&who=王敏&q=tea", language=language)
    assert re.findall(r'name="whose" value="([^"]+)" checked', shown) == ["group:dev", "user:u1"]
    assert all(fact in shown for fact in ("王敏喜欢乌龙茶", "They build at night"))
    assert 'name="who" maxlength="520" list="known" autocomplete="off" value=""' in shown


async def test_a_typo_keeps_the_form_of_recall(http, lore):
    await fill(lore)
    shown = await page(http, "/console/recall?whose=group:dev&who=Prya&q=my+words&tokens=many", 422)
    for kept in ('value="group:dev" checked', 'value="Prya"', 'value="my words"', 'value="many"', 'value="user:u3"'):
        assert kept in shown, kept
    assert all(f'aria-describedby="wrong-{name}"' in shown for name in ("who", "tokens"))
    assert "They build at night" not in shown


KEPT = [
    ("/memory?id=group:dev&at=soon", "at", ("soon",)),
    ("/memory/compare?id=group:dev&from_at=then&to_at=2026-05-01T10:00", "from_at", ("then", "2026-05-01T10:00")),
    ("/recall?q=my+words&tokens=300", "who", ("my words", "300")),
    ("/session?id=talk&window=much&q=my+words", "window", ("much", "my words")),
    ("/session?id=talk&window=999999999999&q=my+words", "window", ("999999999999", "my words")),
]


async def test_a_typo_keeps_every_form_and_is_told_beside_its_field(http, lore):
    await fill(lore)
    await lore.sessions.write_turn("talk", "u1", "helper", "hello", "hi")
    with all_cases() as case:
        for path, name, typed in KEPT:
            with case(path):
                shown = (await page(http, f"/console{path}", 422)).partition("<main")[2]
                assert f'aria-describedby="wrong-{name}"' in shown
                assert ALERT.search(shown.partition(f'id="wrong-{name}"')[2])
                assert all(f'value="{one}"' in shown for one in typed)
    shown = await page(http, "/console/search?q=tea&since=soon&room=tea")
    assert 'aria-describedby="wrong-since"' in shown
    assert '<option value="tea" selected>' in shown
    shown = await page(http, "/console/search?since=2026-05-01&room=tea")
    assert tongue("en").say("search.none") in shown, "days without words show the messages of these days"
    assert "/console/digest?id=tea&amp;since=2026-05-01" in shown
    shown = await page(http, "/console/forget?who=Prya")
    assert "what=forget&amp;id=u3" in shown


CALLED = [
    ("/memory?id=group:dev&at=soon", "memory.at", 422),
    ("/memory?id=group:dev&status=odd", "field.status", 422),
    ("/memory/compare?id=group:dev&from_at=then", "compare.from", 422),
    ("/memory/write", "field.scope", 422),
    ("/digest?id=dev&since=foo", "digest.since", 422),
    ("/jobs?status=odd", "field.status", 422),
    ("/recall?tokens=many&whose=group:dev", "field.tokens", 422),
    ("/recall?q=tea", "recall.nobody", 422),
    ("/context?room=dev&message=none", "wrong.message_unknown_for_context", 404),
]


@both
async def test_an_error_calls_a_field_by_its_label_in_the_language_of_the_page(http, lore, language):
    await fill(lore)
    for path, key, status in CALLED:
        shown = ALERT.findall(await page(http, f"/console{path}", status, language))
        assert len(shown) == 1, path
        assert tongue(language).say(key) in shown[0], path
        assert language == "en" or not re.search(r" is |lang=", shown[0]), path


PEOPLE = {"den": "ann", "team": "ann bo", "square": "ann eve"}


async def test_names_are_offered_only_of_what_the_viewer_sees():
    async with heard_in(PEOPLE, direct="den") as lore:
        _, key = await lore.keys.create("somebody", scopes=("read", "write"))
        async with asking(lore, key) as http:
            form = await page(http, "/console/viewer")
            known = form.partition("<datalist")[2].partition("</datalist>")[0]
            assert set(re.findall('value="([^"]+)"', known)) == {"square", "ann", "eve"}
            buttons = re.findall('<button name="viewer" value="([^"]+)"', form)
            assert set(buttons) == {"room:square", "user:ann", "user:eve"}
            token = re.search(r'name="token" value="([^"]+)"', form)[1]
            for typed, status, near in (("square", 303, ""), ("teem", 422, ""), ("squar", 422, "room:square")):
                answer = await http.post("/console/viewer", data={"token": token, "viewer": typed})
                assert answer.status_code == status, typed
                assert re.findall('<li><button name="viewer" value="([^"]+)"', answer.text) == ([near] if near else [])
                assert status == 303 or f'value="{typed}"' in answer.text
        async with asking(lore, key, "room:square") as http:
            for path in ("/memories?find=te", "/recall?who=te", "/memories?find=den"):
                shown = (await page(http, f"/console{path}", 422)).partition("<main")[2]
                assert not re.search(r">(team|den)<|:(team|den)\b|=(team|den)\b", shown), path


@both
async def test_a_page_that_cannot_be_shown_says_what_happened_and_leads_on(lore, language):
    await fill(lore)
    say = tongue(language).say
    async with asking(lore, (await lore.keys.create("chief", scopes=("admin", "read")))[1]) as http:
        for path, status, leads in (
            ("/nowhere", 404, ("/console/rooms", "/console/search")),
            ("/room?id=Buid%20Team", 404, ("/console/room?id=dev",)),
            ("/person?id=Prya", 404, ("/console/person?id=u3", "/console/people")),
            ("/memory/one?id=none", 404, ("/console/memories",)),
            ("/jobs?status=odd", 422, ("/console/jobs",)),
        ):
            shown = (await page(http, f"/console{path}", status, language)).partition("<main")[2]
            assert say(f"problem.title.{status}") in shown, path
            assert all(f'href="{one}"' in shown for one in leads), path
    async with asking(lore, (await lore.keys.create("reader", scopes=("read",)))[1], "room:tea") as http:
        shown = (await page(http, "/console/health", 403, language)).partition("<main")[2]
        assert say("problem.title.403") in shown
        assert 'href="/console/sign-in?next=%2Fconsole%2Fhealth"' in shown


@both
async def test_an_unforeseen_error_is_a_page_and_in_the_log(http, lore, language, monkeypatch):
    seen = []
    monkeypatch.setattr(type(lore.telemetry), "unforeseen", lambda _, error, **more: seen.append(error))
    monkeypatch.setattr(type(lore.jobs), "page", None)
    shown = await page(http, "/console/jobs", 500, language)
    assert tongue(language).say("problem.title.500") in shown
    assert "Traceback" not in shown
    assert [type(error) for error in seen] == [TypeError]


@both
async def test_sessions_show_the_names_of_rooms_people_and_agents(http, lore, language):
    await fill(lore)
    await lore.sessions.write_turn("talk", "u1", "u3", "hello", "hi")
    await lore.rooms.rename("talk", "茶话 Chat")
    for path in ("/sessions", "/sessions?find=chat", "/session?id=talk"):
        shown = (await page(http, f"/console{path}", language=language)).partition("<main")[2]
        assert all(f"<bdi>{name}</bdi>" in shown for name in ("茶话 Chat", "王敏", "Priya")), path
    assert "<bdi>茶话 Chat</bdi>" in await page(http, "/console/session/change?what=reset&id=talk", language=language)


async def test_who_sees_a_memory_is_said_in_names():
    async with heard_in({"team": "ann bo", "square": "ann"}, direct="none") as lore:
        await lore.messages.add(Message(id="x", room_id="team", sender_id="bo", sender_name="Bo Li", text="hi"))
        await lore.rooms.rename("team", "The Team")
        fact = await remember(lore, "likes tea", "team")
        shared = await remember(lore, "plays chess", "team")
        shared = (await lore.memories.share(shared, "room:square")).memory_id
        await lore.rooms.rename("square", "Market Square")
        async with asking(lore) as http:
            shown = (await page(http, f"/console/memory/one?id={fact}")).partition("<main")[2]
            assert "The Team</bdi></a>: <bdi>Bo Li</bdi>, <bdi>ann</bdi>" in shown
            shown = (await page(http, f"/console/memory/one?id={shared}")).partition("<main")[2]
            assert "room:square" not in shown
            assert shown.count("<bdi>Market Square</bdi>") >= 2
            shown = (await page(http, "/console/visible?id=team")).partition("<main")[2]
            assert "<bdi>Bo Li</bdi>, <bdi>ann</bdi>" in shown


async def test_a_context_has_one_percentage_a_message_and_saves_nothing_if_it_is_empty(http, lore):
    await fill(lore)
    await lore.messages.add(
        [
            Message(id="a", room_id="tea", sender_id="u2", text="Does the linker fail for anyone?", sent_at=START),
            Message(id="b", room_id="tea", sender_id="u1", text="yes, it fails too", reply_to="a", sent_at=START),
            Message(id="c", room_id="tea", sender_id="u2", text="then the linker flag is wrong", sent_at=START),
        ]
    )
    shown = await page(http, "/console/context?room=tea&message=c")
    rows = re.findall(r'<li class="(?:taken|left)">(.*?)</li>', shown, re.DOTALL)
    assert rows
    assert all(len(re.findall(r"\d %", row)) <= 1 for row in rows)
    first = await page(http, "/console/context?room=tea&message=m1&strategy=weighted")
    assert "100 %" not in first
