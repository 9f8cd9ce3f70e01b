"""The console's pages without a browser: rooms and contexts, words, what a hostile room does, who may look."""

import asyncio
import hashlib
import html
import json
import re
import time
from importlib.resources import files

import httpx
import pytest
from jinja2 import Environment

from roomlore import Message
from roomlore_console import live
from roomlore_console.frame import clipped, preferred, tongue, visible
from roomlore_console.threads import LANES, lanes
from roomlore_server.http import create_app
from roomlore_testkit.case_table import all_cases

PACKAGE = files("roomlore_console")
TEMPLATES = {one.name: one.read_text(encoding="utf-8") for one in PACKAGE.joinpath("templates").iterdir()}
HTMX = "71ea67185bfa8c98c39d31717c6fce5d852370fcdfd129db4543774d3145c0de"
ENGLISH, CHINESE = {"Accept-Language": "en"}, {"Accept-Language": "zh-CN,zh;q=0.9"}
both = pytest.mark.parametrize("spoken", [ENGLISH, CHINESE], ids=["en", "zh"])
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }} {% raw %} ${x}",
    "javascript:alert(1)",
    "safe \u202eexe.gpj",
    "zero\u200b\u200b\u200bwidth",
    "Z" + "\u0351" * 5_000,
    "长" * 15_000,
    "w" * 19_000,
    "\u2066" * 10_000,
    "\x1b[31m\x07",
)


def said(texts, room="tea", sender="ann") -> list[Message]:
    return [Message(id=f"m{n}", room_id=room, sender_id=sender, text=text) for n, text in enumerate(texts, 1)]


async def page(http, path: str, status: int = 200, **more) -> str:
    answer = await http.get(path, **more)
    assert answer.status_code == status, answer.text[:500]
    return answer.text


def says(language: str, key: str, **values) -> str:
    return html.escape(tongue(language).say(key, **values), quote=False)


# Words.


def test_both_languages_say_the_same_things():
    words = {name: json.loads(PACKAGE.joinpath("words", f"{name}.json").read_text("utf-8")) for name in ("en", "zh")}
    assert list(words["en"]) == list(words["zh"])
    fields = {key: [sorted(re.findall(r"\{(\w+)\}", words[one][key])) for one in ("en", "zh")] for key in words["en"]}
    assert {key: both for key, both in fields.items() if both[0] != both[1]} == {}
    assert all(text.strip() for language in words.values() for text in language.values())


def test_every_key_of_a_template_is_there_and_every_key_is_used():
    known = set(tongue("en").words)
    code = "".join(one.read_text("utf-8") for one in PACKAGE.iterdir() if one.name.endswith(".py"))
    used = set(re.findall(r"""\bt\(["']([\w.]+)["'][,)]""", "".join(TEMPLATES.values())))
    used |= set(re.findall(r"""tongue\.say\("([\w.]+)\"""", code))
    begun = set(re.findall(r"""t\(["']([\w.]+\.)["'] ~""", "".join(TEMPLATES.values())))
    begun |= {"ago.", "left.", "place.", "reason.", "strategy.", "outcome.", "failure.", "span.", "label."}
    begun |= {"field.", "hint.", "wrong.", "pick.", "problem.title."}
    assert used - known == set()
    used |= {f"{key}.one" for key in used}
    assert {key for key in known - used if not key.startswith(tuple(begun))} == set()
    assert 'f"ago.' in code
    assert 'f"left.' in code
    assert 'f"place.' in code
    assert 'f"outcome.' in code
    assert 'f"field.' in code
    assert 'f"hint.' in code
    assert 'f"wrong.' in code
    assert 'f"pick.' in code
    assert 'f"problem.title.' in code
    assert 'f"failure.' in code
    assert 'f"span.' in code
    assert 'f"strategy.' in code
    assert 'f"reason.' in code
    assert 'f"label.' in code


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"), ("zh", "zh"), ("zh-TW,en;q=0.5", "zh"), ("en;q=0.5,zh;q=0.9", "zh"), ("fr, zh;q=0", "en"),
        ("de,zh;q=0.1", "zh"), ("*", "en"), ("zh;q=x", "en"), (";;,,=", "en"), ("en,zh", "en"),
    ],
)  # fmt: skip
def test_the_language_a_browser_asks_for(header, language):
    assert preferred(header) == language


def test_templates_take_nothing_from_elsewhere_and_run_nothing():
    for name, text in TEMPLATES.items():
        assert "//" not in text.replace("localhost:", ""), name
        assert "| safe" not in text, name
        assert re.search(r"\son[a-z]+=|style=|<style|hx-on|javascript:", text) is None, name
        assert re.findall(r"<script(?! src=\"/console/static/(?:htmx.min|console).js\" defer>)", text) == [], name
    css = PACKAGE.joinpath("static", "console.css").read_text("utf-8")
    assert re.search(r"url\(|@import|@font-face", css) is None


def test_the_packaged_htmx_is_the_one_that_was_published():
    assert hashlib.sha256(PACKAGE.joinpath("static", "htmx.min.js").read_bytes()).hexdigest() == HTMX


def test_templates_are_read():
    assert len(TEMPLATES) > 10
    assert all(Environment(autoescape=True).parse(text) for text in TEMPLATES.values())


# Inert text.


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 茶 é\n\tok", "plain 茶 é\n\tok"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\u200b\u200b\u200b", "⟨U+200B×3⟩"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("a\u200db", "a⟨U+200D⟩b"),
        ("\x00\x1b", "⟨U+0000⟩⟨U+001B⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("e" + "\u0301" * 9, "e" + "\u0301" * 4),
        ("क\u094d\u200dष", "क\u094d\u200dष"),
    ],
)
def test_what_hides_is_written_out(text, shown):
    assert visible(text) == shown


def test_long_texts_are_cut():
    assert clipped("茶" * 10, 4) == "茶茶茶茶…"
    assert clipped("茶茶", 2) == "茶茶"


# Lanes.


def test_threads_that_overlap_run_in_lanes_of_their_own():
    rows = lanes([(1, 1), (2, 1), (1, 1), (2, 1), (5, 1)])
    assert [[cell.part for cell in row.cells] for row in rows] == [
        ["first", "none"],
        ["pass", "first"],
        ["last", "pass"],
        ["none", "last"],
        ["only", "none"],
    ]
    assert [row.look.number for row in rows] == [1, 2, 1, 2, 5]


def test_a_line_has_one_thickness_from_a_message_to_the_next_of_its_thread():
    rows = lanes([(1, 4), (2, 1), (1, 3), (2, 2), (5, 4), (2, 4)])
    lines = [[(cell.above, cell.below) for cell in row.cells] for row in rows]
    assert lines == [
        [(0, 3), (0, 0)],
        [(0, 3), (0, 2)],
        [(3, 0), (0, 2)],
        [(0, 0), (2, 4)],
        [(0, 0), (0, 4)],
        [(0, 0), (4, 0)],
    ]


def test_a_hundred_and_four_threads_in_a_row_all_look_different():
    looks = {(row.look.colour, row.look.shape) for row in lanes([(n, 1) for n in range(1, 105)])}
    assert len(looks) == 104


def test_a_thread_looks_the_same_on_every_page():
    (alone,), among = lanes([(7, 1)]), lanes([(n, 1) for n in range(3, 9)])
    assert alone.look in [row.look for row in among]


def test_more_threads_than_lanes_leave_some_without():
    crowd = [(n % 9, 1) for n in range(36)]
    rows = lanes(crowd)
    assert {len(row.cells) for row in rows} == {LANES}
    assert any(all(cell.part in ("pass", "none") for cell in row.cells) for row in rows)
    assert lanes([]) == []


# Rooms.


@both
async def test_without_rooms_it_says_what_to_do_next(http, spoken):
    language = "zh" if spoken is CHINESE else "en"
    shown = await page(http, "/console", headers=spoken)
    assert f'<html lang="{"zh-Hans" if language == "zh" else "en"}"' in shown
    assert says(language, "rooms.empty.next") in shown
    assert "roomlore import" in shown


async def test_the_root_leads_to_the_console(http):
    answer = await http.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console")


@both
async def test_a_room_shows_its_threads_apart(http, lore, spoken):
    language = "zh" if spoken is CHINESE else "en"
    first, *rest = said(["Who makes tea?", "The build fails", "我来泡茶"])
    reply = Message(id="m4", room_id="tea", sender_id="bo", text="I do", reply_to="m1")
    await lore.messages.add([first, *rest, reply])
    shown = await page(http, "/console/room?id=tea", headers=spoken)
    assert [shown.index(text) for text in ("Who makes tea?", "The build fails", "我来泡茶", "I do")] == sorted(
        shown.index(text) for text in ("Who makes tea?", "The build fails", "我来泡茶", "I do")
    )
    for _, thread in await lore.rooms.threads("tea"):
        assert shown.partition('id="rail"')[2].count(html.escape(thread.title)) == 1
    assert says(language, "room.replies") in shown
    assert 'href="#m1"' in shown
    only = await page(http, "/console/thread?id=tea&message=m4", headers=spoken)
    assert "Who makes tea?" in only
    assert 'class="thread ' in shown
    assert 'class="thread ' not in only, "no link to the page itself"
    made = await lore.rooms.headings("tea", ["m1"])
    assert html.escape(made["m1"].title) in only.partition("<h1>")[2].partition("</h1>")[0]


async def test_pages_of_a_room_hold_every_message_once(http, lore):
    for start in range(1, 151, 50):
        await lore.messages.add(
            [Message(id=f"n{n}", room_id="long", sender_id="ann", text=f"No. {n}.") for n in range(start, start + 50)]
        )
    await lore.messages.delete("long", "n60")
    seen, address = [], "/console/room?id=long"
    while address:
        shown = await page(http, address)
        seen = [int(n) for n in re.findall(r'dir="auto">No\. (\d+)\.', shown)] + seen
        older = re.search(r'rel="prev" href="([^"]+)"', shown)
        address = html.unescape(older[1]) if older else None
    assert seen == [n for n in range(1, 151) if n != 60]
    oldest = await page(http, "/console/room?id=long&before=61")
    newer = html.unescape(re.search(r'rel="next" href="([^"]+)"', oldest)[1])
    assert "No. 61." in await page(http, newer)


async def test_many_rooms_are_paged(http, lore):
    rooms = [f"r{n:03}" for n in range(60)]
    for start in range(0, 60, 50):
        await lore.messages.add(
            [Message(id="m", room_id=room, sender_id="ann", text="x") for room in rooms[start : start + 50]]
        )
    first = await page(http, "/console/rooms")
    following = html.unescape(re.search(r'rel="next" href="([^"]+)"', first)[1])
    second = await page(http, following)
    shown = [one.partition("<main")[2] for one in (first, second)]
    assert sorted(re.findall(r"/console/room\?id=(r\d+)", "".join(shown))) == rooms


async def test_the_messages_since_another_are_a_piece_of_the_page(http, lore, monkeypatch):
    monkeypatch.setattr(live, "STREAM_SECONDS", 0.0)
    await lore.messages.add(said(["one", "two", "three"]))
    assert 'aria-live="polite"' in await page(http, "/console/room?id=tea")
    piece = await page(http, "/console/room/live?id=tea&after=1")
    assert re.findall(r'<li id="m(\d)"', piece) == ["2", "3"]
    assert 'class="row begins"' not in piece, "ann goes on speaking"
    assert "<li" not in await page(http, "/console/room/live?id=tea&after=3")


async def test_a_stream_tells_of_messages_of_any_process(http, lore, monkeypatch):
    monkeypatch.setattr(live, "STREAM_SECONDS", 1.0)
    await lore.messages.add(said(["one", "two"]))
    asking = asyncio.create_task(http.get("/console/room/live?id=tea&after=2"))
    await asyncio.sleep(0.3)
    await lore.messages.add(Message(id="m3", room_id="tea", sender_id="bo", text="three"))
    answer = await asking
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert re.findall(r"^id: (\d+)\nevent: news\ndata: ", answer.text, re.M) == ["3"]
    assert "three" in answer.text
    assert (await http.get("/console/room/live?id=none")).status_code == 404


@pytest.mark.parametrize("room", ["a/b?c=d&e#f", "..", "茶 <b>", "%2F", 'q"uote', "odd\u202e"])
async def test_any_id_of_a_room_leads_to_its_page(http, lore, room):
    await lore.messages.add(said(["hello there"], room=room))
    address = html.unescape(re.search(r'href="(/console/room\?[^"]+)"', await page(http, "/console/rooms"))[1])
    shown = await page(http, address)
    assert "hello there" in shown
    context = html.unescape(re.search(r'href="(/console/context[^"]+)"', shown)[1])
    assert "hello there" in await page(http, context)


NOT_SHOWN = [
    ("/console/room?id=none", 404), ("/console/context", 422), ("/console/room?id=tea&before=x", 422),
    ("/console/room?id=tea&before=99999999999999999999", 422), ("/console/nothing", 404),
    ("/console/thread?id=tea&message=none", 404), ("/console/context?room=tea&message=none", 404),
    ("/console/context?room=tea&message=m1&strategy=best", 422), ("/console/static/frame.html", 404),
]  # fmt: skip


async def test_what_cannot_be_shown_says_so(http, lore):
    await lore.messages.add(said(["hello"]))
    with all_cases() as case:
        for address, status in NOT_SHOWN:
            with case(address):
                await page(http, address, status)


# Contexts.


@both
async def test_a_context_shows_each_candidate_and_the_strategies(http, lore, spoken):
    language = "zh" if spoken is CHINESE else "en"
    talk = said(["Who makes the tea?", "The build fails", "今晚一起吃饭吗？"])
    await lore.messages.add([*talk, Message(id="m4", room_id="tea", sender_id="bo", text="I do", reply_to="m1")])
    shown = await page(http, "/console/context?room=tea&message=m4", headers=spoken)
    for strategy in ("threaded", "weighted", "recent"):
        assert says(language, f"strategy.{strategy}") in shown
    assert says(language, "reason.platform") in shown
    assert says(language, "context.left") in shown
    assert shown.count(says(language, "signal.reply_chain")) >= 3
    weighted = await page(http, "/console/context?room=tea&message=m4&strategy=weighted", headers=spoken)
    assert says(language, "context.threshold", least="0.30") in weighted


@both
async def test_a_correction_lists_what_moved_and_is_not_offered_twice(http, lore, spoken):
    language = "zh" if spoken is CHINESE else "en"
    talk = said(["Who makes the tea?", "The build fails", "今晚一起吃饭吗？"])
    answers = [Message(id=f"m{n}", room_id="tea", sender_id="bo", text="I do", reply_to=f"m{n - 3}") for n in (4, 7)]
    await lore.messages.add([*talk, *answers])
    path = "/console/context?room=tea&message=m4"
    token = re.search(r'name="token" value="([^"]+)"', await page(http, path, headers=spoken))[1]
    for form, done, offered in (("nothing", "correct", True), ("undo", "undo", False)):
        sent = await http.post("/console/link?room=tea&message=m4", data={"token": token, "said": form}, headers=spoken)
        shown = await page(http, sent.headers["location"], headers=spoken)
        assert says(language, f"link.done.{done}") in shown
        assert says(language, "link.moved", count=1) in shown
        assert "message=m7" in shown.partition('role="status"')[2].partition("<blockquote")[0]
        assert ('name="answers" value="m1"' in shown) is offered, "not what it answers already"
    await page(http, f"{path}&done=x", 422, headers=spoken)


@pytest.mark.parametrize("strategy", ["threaded", "weighted", "recent"])
async def test_every_reason_is_said_in_chinese(http, lore, strategy):
    talk = [
        Message(
            id=f"m{n}",
            room_id="tea",
            sender_id=f"u{n % 3}",
            text=f"@u{(n + 1) % 3} 周五喝茶吗",
            reply_to=f"m{n - 2}" if n % 4 == 3 else None,
        )
        for n in range(24)
    ]
    await lore.messages.add(talk)
    for n in (3, 11, 23):
        shown = await page(http, f"/console/context?room=tea&message=m{n}&strategy={strategy}", headers=CHINESE)
        reasons = re.findall(r'<p class="why">([^<]*)</p>', shown)
        assert reasons
        assert [one for one in reasons if re.search(r"[a-z]{3}", one)] == []


async def test_the_first_message_has_nothing_before_it(http, lore):
    await lore.messages.add(said(["hello"]))
    assert says("en", "context.empty.next") in await page(http, "/console/context?room=tea&message=m1", headers=ENGLISH)


# Hostile rooms.


async def test_a_hostile_room_renders_inert_and_quickly(http, lore):
    evil = '"><script>alert(2)</script>\u202e'
    await lore.messages.add(
        [
            Message(id=f"{evil}{n}", room_id="tea", sender_id=evil, sender_name=evil, text=HOSTILE[n % len(HOSTILE)])
            for n in range(50)
        ]
    )
    begun = time.process_time()
    shown = await page(http, "/console/room?id=tea")
    assert time.process_time() - begun < 5
    inside = shown.partition('<main id="main"')[2]
    assert re.search(r"<(script|img|iframe|svg|style)", inside) is None
    assert re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00-\x08\x1b]", shown) is None
    assert "⟨U+202E⟩" in shown
    assert "{{ 7 * 7 }}" in shown
    assert len(shown) < 1_000_000
    context = html.unescape(re.findall(r'href="(/console/context[^"]+)"', shown)[-1])
    assert re.search(r"<(script|img)", (await page(http, context)).partition('<main id="main"')[2]) is None


async def test_every_page_forbids_what_it_does_not_need(http):
    with all_cases() as case:
        for path in ("/console", "/console/sign-in", "/console/none", "/console/room?id=none"):
            with case(path):
                headers = (await http.get(path)).headers
                policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
                assert policy["default-src"] == "'none'"
                assert policy["frame-ancestors"] == "'none'"
                assert {value for name, value in policy.items() if name.endswith("-src")} == {"'none'", "'self'"}
                assert headers["cache-control"] == "no-store"
                assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["console.css", "console.js", "htmx.min.js", "icon.svg"])
async def test_files_are_served_to_everybody(connect, lore, name):
    await lore.keys.create("bot")
    async with connect() as client:
        answer = await client.get(f"/console/static/{name}")
        assert answer.status_code == 200
        assert answer.content == PACKAGE.joinpath("static", name).read_bytes()


# How it looks.


def token_of(shown: str) -> str:
    return re.search(r'name="token" value="([^"]+)"', shown)[1]


@pytest.mark.parametrize(("theme", "language"), [("dark", "zh"), ("light", "en"), ("auto", "zh")])
async def test_language_and_colours_are_kept_without_a_script(http, theme, language):
    token = token_of(await page(http, "/console"))
    for name, value in (("roomlore_theme", theme), ("roomlore_language", language)):
        answer = await http.post("/console/look?next=/console/memories", data={"token": token, name: value})
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/memories")
        kept = answer.headers["set-cookie"].lower()
        assert "httponly" in kept
        assert "samesite=strict" in kept
        assert "path=/console" in kept
    shown = await page(http, "/console")
    assert f'data-theme="{theme}"' in shown
    assert says(language, "rooms.empty") in shown


async def test_nobody_is_sent_elsewhere(http):
    token = token_of(await page(http, "/console"))
    with all_cases() as case:
        for target in ("https://evil.example", "//evil.example", "/console\\..", "/consoles", "", "/rooms"):
            with case(target):
                answer = await http.post("/console/look", params={"next": target}, data={"token": token})
                assert answer.headers["location"] == "/console"


# Forms.


async def test_a_form_that_was_not_sent_from_here_does_nothing(http):
    token = token_of(await page(http, "/console"))
    for data, headers in (
        ({}, {}),
        ({"token": "x"}, {}),
        ({"token": token}, {"Origin": "http://localhost:9"}),
        ({"token": token}, {"Origin": f"chrome-extension://{http.base_url.netloc.decode()}"}),
        ({"token": token}, {"Sec-Fetch-Site": "cross-site"}),
        ({"token": token}, {"Sec-Fetch-Site": "same-site"}),
    ):
        answer = await http.post("/console/look", data={**data, "roomlore_theme": "dark"}, headers=headers)
        assert answer.status_code == 403
        assert "roomlore_theme" not in answer.headers.get("set-cookie", "")
    http.cookies.clear()
    assert (await http.post("/console/look", data={"token": token})).status_code == 403


async def test_a_form_that_is_too_large_is_refused(http):
    assert (await http.post("/console/look", data={"token": "x" * 70_000})).status_code == 422


# Who may look.


async def test_with_keys_a_person_signs_in_and_out(connect, lore):
    ours = lore.for_tenant("ours")
    await ours.messages.add(said(["ours alone"]))
    _, secret = await ours.keys.create("person", scopes=("read",))
    async with connect() as client:
        turned = await client.get("/console/room?id=tea")
        assert turned.status_code == 303
        assert turned.headers["location"] == "/console/sign-in?next=%2Fconsole%2Froom%3Fid%3Dtea"
        asked = await page(client, turned.headers["location"], headers=ENGLISH)
        wrong = await client.post(turned.headers["location"], data={"token": token_of(asked), "key": "rl_wrong"})
        assert wrong.status_code == 401
        assert 'role="alert"' in wrong.text
        right = await client.post(turned.headers["location"], data={"token": token_of(asked), "key": f" {secret} "})
        assert (right.status_code, right.headers["location"]) == (303, "/console/room?id=tea")
        client.cookies.set("roomlore_viewer", "room%3Atea", domain="127.0.0.1", path="/console")
        kept = right.headers["set-cookie"].lower()
        assert all(part in kept for part in ("httponly", "samesite=strict", "path=/console"))
        shown = await page(client, "/console/room?id=tea")
        assert "ours alone" in shown
        assert secret not in shown
        assert (await client.get("/rooms")).status_code == 401, "the cookie is for the console alone"
        assert (await client.post("/console/sign-out", data={"token": token_of(shown)})).status_code == 303
        assert (await client.get("/console")).status_code == 303


async def test_another_tenant_sees_nothing_of_it(connect, lore):
    await lore.for_tenant("ours").messages.add(said(["ours alone"]))
    memory = await lore.for_tenant("ours").memories.add("group:tea", "ours alone")
    _, secret = await lore.for_tenant("theirs").keys.create("theirs", scopes=("admin",))
    paths = ["/console", "/console/memories", "/console/memory?id=tea", "/console/room?id=tea"]
    paths += [
        "/console/context?room=tea&message=m1",
        "/console/thread?id=tea&message=m1",
        "/console/people",
        "/console/search?q=ours",
    ]
    paths += [f"/console/memory/one?id={memory.memory_id}"]
    paths += [f"/console/memory/change?what={what}&id={memory.memory_id}" for what in ("delete", "restore")]
    async with connect(key=secret) as client:
        for path in paths:
            answer = await client.get(path)
            assert answer.status_code in (200, 404), path
            assert "ours alone" not in answer.text


async def test_a_revoked_key_leads_back_to_the_door(connect, lore):
    key, secret = await lore.keys.create("person", scopes=("read",))
    async with connect() as client:
        client.cookies.set("roomlore_key", secret, domain="127.0.0.1", path="/console")
        client.cookies.set("roomlore_viewer", "room%3Atea", domain="127.0.0.1", path="/console")
        assert (await client.get("/console")).status_code == 200
        await lore.keys.revoke(key.key_id)
        assert (await client.get("/console")).headers["location"].startswith("/console/sign-in")


async def test_a_key_without_the_scope_is_told_so(connect, lore):
    _, secret = await lore.keys.create("writer", scopes=("write",))
    async with connect(key=secret) as client:
        assert "lacks the scope read" in await page(client, "/console", 403)


async def test_without_keys_only_this_machine_under_its_own_name_may_look(app):
    for client, base in (("203.0.113.9", "http://127.0.0.1"), ("127.0.0.1", "http://evil.example")):
        transport = httpx.ASGITransport(app, client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url=base) as http:
            assert (await http.get("/console")).status_code == 403


async def test_the_address_of_mcp_alone_has_no_console(lore):
    from roomlore_server.http.app import create_mcp_app

    transport = httpx.ASGITransport(create_mcp_app(lore), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        assert (await http.get("/console")).status_code == 404
    assert any(getattr(route, "path", "") == "/console" for route in create_app(lore).routes)


async def test_people_mentioned_by_their_ids_have_their_names_in_a_room(http, lore, monkeypatch):
    monkeypatch.setattr(live, "STREAM_SECONDS", 0.0)
    await lore.messages.add(
        [
            Message(id="a", room_id="群", sender_id="10001", sender_name="小明", text="在"),
            Message(id="b", room_id="群", sender_id="bo", text="@10001 看下日志", mentions=["10001"]),
        ]
    )
    for path in ("/console/room?id=群", "/console/room/live?id=群&after=1", "/console/thread?id=群&message=b"):
        text = (await http.get(path)).text
        assert "@小明 看下日志" in text
        assert "@10001" not in text
    assert (await lore.messages.get("群", "b")).message.text == "@10001 看下日志"


@pytest.mark.parametrize(("language", "told"), [("en", "has no page at this address"), ("zh-CN", "控制台没有这个页面")])
async def test_an_address_without_a_page_is_told_in_the_readers_language(http, language, told):
    answer = await http.get("/console/nothing", headers={"accept-language": language})
    assert (answer.status_code, told in answer.text) == (404, True)
