"""The console's page of what was missed in a room, in both languages."""

import re
from html import escape

import httpx
import pytest

import roomlore
from reply_rig import reply_settings
from roomlore import Message
from roomlore.core.records import parse_time
from roomlore_console.frame import tongue
from roomlore_server.http import create_app
from roomlore_testkit.model_server import Fails, ModelServer

SAID = [
    ("m1", "ann", "Which tea shall we buy for the office?"),
    ("m2", "bob", "@ann 你能订下周一的会议室吗？"),
    ("m3", "<b>dan", "We decided that the picnic moves to Friday at 12:30."),
]


@pytest.fixture
async def filled(lore):
    await lore.messages.add(
        [
            Message(id=name, room_id="tea", sender_id=who, text=text, sent_at=parse_time(f"2024-05-01T1{at}:00Z"))
            for at, (name, who, text) in enumerate(SAID)
        ]
    )


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_it_groups_by_what_matters(http, filled, language):
    say = tongue(language).say
    answer = await http.get("/console/digest?id=tea&for=ann", headers={"Accept-Language": language})
    assert answer.status_code == 200
    shown = answer.text
    places = [shown.index(f"<h2>{say(key, name='ann')}</h2>") for key in ("digest.waits", "digest.decision")]
    assert places == sorted(places)
    assert "会议室" in shown
    assert "<b>dan" not in shown
    assert "/console/context?room=tea&amp;message=m2" in shown
    room = (await http.get("/console/room?id=tea", headers={"Accept-Language": language})).text
    assert say("digest.title") in room
    assert "/console/digest?id=tea" in room


@pytest.mark.parametrize(
    ("language", "one", "three"), [("en", "1 message", "3 new messages."), ("zh", "1 条消息", "3 条新消息。")]
)
async def test_one_message_is_not_called_messages(http, filled, language, one, three):
    shown = (await http.get("/console/digest?id=tea", headers={"Accept-Language": language})).text
    assert one in shown
    assert three in shown
    assert "1 messages" not in shown


async def test_a_thread_is_titled_by_a_whole_line_that_is_not_shown_twice(http, lore):
    talk = ("The printer on the second floor is out of paper again.", "I put a new pack beside it this morning.")
    await lore.messages.add(
        [
            Message(id=f"m{n}", room_id="den", sender_id=who, text=text, reply_to=f"m{n - 1}" if n else None)
            for n, (who, text) in enumerate(zip(("ann", "bob"), talk, strict=True))
        ]
    )
    shown = (await http.get("/console/digest?id=den&since=2000-01-01")).text.partition("<main")[2]
    title = shown.partition("<h3>")[2].partition("</h3>")[0]
    assert any(f"<bdi>{text}</bdi>" in title for text in talk)
    assert all(shown.count(text) <= 1 for text in talk)


async def test_nothing_new_and_bad_times_are_told(http, filled):
    for since in ("2025-01-01", "yesterday", "昨天", "3 days ago"):
        assert "Nothing new." in (await http.get("/console/digest", params={"id": "tea", "since": since})).text
    wrong = await http.get("/console/digest?id=tea&since=soon")
    assert wrong.status_code == 422
    assert (await http.get("/console/digest?id=nowhere")).status_code == 404
    unknown = await http.get("/console/digest?id=tea&for=eve")
    assert unknown.status_code == 404
    assert "Nobody in room" in unknown.text
    for answer, field in (
        (wrong, 'name="since" maxlength="64" value="soon"'),
        (unknown, '<option value="eve" selected>'),
    ):
        assert field in answer.text, "what was typed stays in the form"
    assert "Choose an earlier time" in (await http.get("/console/digest?id=tea&since=2025-01-01")).text


async def test_the_rail_names_threads_as_every_other_list_does(http, lore, filled):
    shown = (await http.get("/console/room?id=tea")).text
    for _, thread in await lore.rooms.threads("tea"):
        assert escape(thread.title) in shown
        alone = (await http.get(f"/console/thread?id=tea&message={thread.thread_id}")).text
        assert f"{escape(thread.title)}</" in alone


async def test_a_day_begins_where_the_reader_is(http, filled):
    """Find the last message new since 19:30 in Shanghai, and nothing since 19:30 in UTC."""
    since = "/console/digest?id=tea&since=2024-05-01T19:30"
    shown = (await http.get(since, headers={"Cookie": "roomlore_zone=Asia%2FShanghai"})).text
    assert "picnic" in shown
    assert "会议室" not in shown
    assert "Nothing new." in (await http.get(since, headers={"Cookie": "roomlore_zone=UTC"})).text


async def test_a_viewer_is_shown_what_they_may_see(connect, lore, filled):
    await lore.messages.add(Message(id="1", room_id="den", sender_id="eve", text="hi"))
    _, secret = await lore.keys.create("reader", scopes=["read"])
    async with connect(key=secret) as client:
        cookie = {"Cookie": "roomlore_viewer=room%3Aden"}
        assert (await client.get("/console/digest?id=tea", headers=cookie)).status_code in (303, 404)
        mine = await client.get("/console/digest?id=tea", headers={"Cookie": "roomlore_viewer=room%3Atea"})
        assert mine.status_code in (200, 303)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_model_writes_it_if_asked(language):
    async with ModelServer([Fails()] * 3) as server:
        written = reply_settings(server, digest_model="chat")
        async with roomlore.open("sqlite://", settings=written, background=False) as other:
            await other.messages.add(
                [Message(id="m1", room_id="tea", sender_id="ann", text=SAID[0][2], sent_at=parse_time("2024-05-01"))]
            )
            transport = httpx.ASGITransport(create_app(other))
            headers = {"Accept-Language": language}
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
                assert "Which tea" in (await client.get("/console/digest?id=tea")).text
                assert server.requests == []
                shown = (await client.get("/console/digest?id=tea&model=1")).text
                assert server.requests
                assert escape(tongue(language).say("digest.degraded")).replace("&#x27;", "&#39;") in shown
                assert "Which tea" in shown


@pytest.mark.parametrize(
    ("query", "key"),
    [("", "digest.from.day"), ("&for=ann", "digest.from.reader"), ("&since=2024-04-01", "digest.from.time")],
)
async def test_it_says_since_when_and_that_no_model_is_set_up(http, filled, query, key):
    say = tongue("en").say
    shown = (await http.get(f"/console/digest?id=tea{query}")).text
    first = "11:00" if "ann" in query else "10:00"
    assert say(key, name="ann", at=f"2024-05-01 {first}") in shown
    assert re.search(r'name="model" value="1" disabled', shown)
    assert escape(say("digest.no_model")) in shown
