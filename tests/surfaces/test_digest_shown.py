"""Digests over HTTP, in the command line and for MCP: the same one, and only for who may see the room."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

import roomlore
from mcp_rig import ask, on_a_port, over_http, refusal
from roomlore.core.models import Message
from roomlore.core.records import parse_time
from roomlore.surfaces.cli.app import app
from roomlore_server.http import create_mcp_app

SAID = [
    ("m1", "ann", "Ann", "Which tea shall we buy for the office?"),
    ("m2", "bob", "小波", "绿茶比较好，办公室的人都爱喝绿茶"),
    ("m3", "cat", "", "@bob 你能订下周一的会议室吗？"),
    ("m4", "dan", "Dan \x1b[2J", "We decided that the picnic moves to Friday at 12:30."),
]
QUERY = {"since": "2024-05-01"}
NOTHING = "Nothing new since {} last wrote or marked messages as read."


def messages() -> list[Message]:
    return [
        Message(
            id=name,
            room_id="tea",
            sender_id=who,
            sender_name=called,
            text=text,
            sent_at=parse_time(f"2024-05-01T1{at}:00Z"),
        )
        for at, (name, who, called, text) in enumerate(SAID)
    ]


async def test_http_gives_what_the_library_gives(http, lore):
    await lore.messages.add(messages())
    made = await lore.digest("tea", since=parse_time("2024-05-01"), for_user="bob")
    answer = (await http.get("/rooms/tea/digest", params=QUERY | {"for_user": "bob", "render": "prompt"})).json()
    assert answer["rendered"] == made.to_prompt()
    assert [entry["title"] for entry in answer["entries"]] == [entry.title for entry in made.entries]
    first = answer["entries"][0]
    assert (first["why"], first["state"]) == ("waits", "open")
    assert [line["message_id"] for line in first["lines"] if line["why"] == "waits"] == ["m3"]
    assert "rendered" not in (await http.get("/rooms/-/digest", params=QUERY | {"room_id": "tea"})).json()


async def test_http_begins_after_the_mark(http, lore):
    await lore.messages.add(messages())
    marked = await http.post("/rooms/tea/read", json={"user_id": "eve", "message_id": "m3"})
    assert marked.json() == {"room_id": "tea", "user_id": "eve", "read_up_to": 3}
    answer = (await http.get("/rooms/tea/digest", params={"for_user": "eve"})).json()
    assert (answer["messages"], answer["after"]) == (1, 3)
    assert (await http.post("/rooms/tea/read", json={"user_id": "eve"})).json()["read_up_to"] == 4
    assert (await http.get("/rooms/tea/digest", params={"for_user": "eve"})).json()["entries"] == []


@pytest.mark.parametrize(
    ("asked", "status"),
    [({"max_tokens": 1}, 422), ({"since": "soon"}, 422), ({"for_user": "a", "viewer": "user:b"}, 422)],
)
async def test_http_refuses_what_makes_no_sense(http, lore, asked, status):
    await lore.messages.add(messages())
    assert (await http.get("/rooms/tea/digest", params=asked)).status_code == status


async def test_http_shows_it_to_who_may_see_the_room_alone(connect, lore):
    await lore.messages.add([*messages(), Message(id="1", room_id="den", sender_id="eve", text="hi")])
    _, secret = await lore.keys.create("reader", scopes=["read"])
    async with connect(key=secret) as client:
        assert (await client.get("/rooms/tea/digest", params=QUERY)).status_code == 403
        shown = await client.get("/rooms/tea/digest", params=QUERY | {"viewer": "room:tea"})
        assert shown.json()["messages"] == 4
        for viewer in ("room:den", "user:eve"):
            hidden = await client.get("/rooms/tea/digest", params=QUERY | {"viewer": viewer})
            assert hidden.status_code == 404
        assert (await client.post("/rooms/tea/read", json={"user_id": "eve"})).status_code == 403


async def test_mcp_tells_it_as_text_with_ids(lore):
    await lore.messages.add(messages())
    async with on_a_port(create_mcp_app(lore)) as url, over_http(url) as client:
        shown = await ask(client, "room_digest", room_id="tea", since="2024-05-01T00:00:00Z", for_user="bob")
        assert shown["text"].startswith("@ ")
        assert "[m3]" in shown["text"]
        assert (shown["messages"], shown["left"]) == (4, 0)
        few = await ask(client, "room_digest", room_id="tea", since="2024-05-01T00:00:00Z", max_tokens=50)
        assert few["left"]
        assert "max_tokens" in few["hint"]
        assert "There is no room" in await refusal(client, "room_digest", room_id="nowhere")


@pytest.fixture
def run():
    async def fill() -> None:
        async with roomlore.open("chat.db") as opened:
            await opened.messages.add(messages())

    asyncio.run(fill())

    def invoke(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["--db", "chat.db", *arguments])
        assert result.exit_code == code, (result.output, result.exception)
        return result.output

    return invoke


def test_the_command_line_groups_by_what_matters(run):
    shown = run("digest", "tea", "--since", "2024-05-01", "--for", "bob")
    headings = ["Waits for you", "Decided", "Open questions"]
    places = [shown.index(heading) for heading in headings if heading in shown]
    assert places == sorted(places)
    assert shown.startswith("Waits for you")
    assert "会议室" in shown
    assert "[m3]" in shown
    assert "\x1b[2J" not in shown
    assert "new messages" in shown


def test_the_command_line_marks_as_read(run):
    assert "[m4]" in run("digest", "tea", "--for", "cat", "--mark-read")
    assert run("digest", "tea", "--for", "cat").strip() == NOTHING.format("cat")
    assert run("digest", "tea", "--since", "2024-05-02T08:30").startswith("Nothing new since 2024-05-02 08:30 (")
    assert "needs --for" in run("digest", "tea", "--mark-read", code=2)


def test_the_command_line_gives_json_and_a_prompt(run):
    made = json.loads(run("digest", "tea", "--json"))
    assert {line["message_id"] for entry in made["entries"] for line in entry["lines"]} >= {"m3", "m4"}
    assert sum(entry["messages"] for entry in made["entries"]) == made["messages"] == 4
    text = run("digest", "tea", "--prompt")
    assert "[m4]" in text
    assert "\x1b" not in text
    assert "leave out --json" in run("digest", "tea", "--prompt", "--json", code=2)
    assert "--since is 'soon'" in run("digest", "tea", "--since", "soon", code=1)
    assert "Looked for in chat.db; `roomlore rooms` lists the rooms." in run("digest", "nowhere", code=1)


def test_the_command_line_takes_a_name(run):
    assert json.loads(run("digest", "tea", "--for", "小波", "--json"))["for_user"] == "bob"
    assert run("digest", "tea", "--for", "小波", "--mark-read")
    assert run("digest", "tea", "--for", "bob").strip() == NOTHING.format("bob")
    assert "Nobody in room 'tea' has the id or the name 'eve'" in run("digest", "tea", "--for", "eve", code=1)


@pytest.mark.parametrize("since", ["2024-05-01T12:30", "yesterday", "昨天", "3 days ago", "since last week"])
def test_the_command_line_takes_times_in_words(run, since):
    shown = run("digest", "tea", "--since", since)
    assert ("[m4]" in shown) is since.startswith("2024")
    assert shown.startswith(("Nothing new since ", "Decided"))


def test_the_command_line_counts_as_people_do(run):
    assert "\n1 new message · 1 thread shown · " in run("digest", "tea", "--since", "2024-05-01T12:30")
    assert "\n4 new messages · " in run("digest", "tea", "--since", "2024-05-01")
    few = run("digest", "tea", "--since", "2024-05-01", "--max-tokens", "50")
    assert "left out; a larger --max-tokens shows more" in few


def test_threads_are_listed_by_title(run):
    assert "绿茶" in run("threads", "tea")
    assert all(one["title"] for one in json.loads(run("threads", "tea", "--json")))


async def test_http_takes_words_names_and_a_mode(http, lore):
    await lore.messages.add(messages())
    asked = {"since": "2024-05-01T12:30+01:00", "for_user": "小波"}
    answer = (await http.get("/rooms/tea/digest", params=asked)).json()
    assert (answer["for_user"], answer["messages"]) == ("bob", 2)
    for since in ("yesterday", "3 days ago", "昨天"):
        assert (await http.get("/rooms/tea/digest", params={"since": since})).json()["messages"] == 0
    assert (await http.get("/rooms/tea/digest", params={"mode": "offline"})).json()["messages"] == 4
    assert (await http.get("/rooms/tea/digest", params={"mode": "fast"})).status_code == 422
    refused = await http.get("/rooms/tea/digest", params={"mode": "llm"})
    assert (refused.status_code, "'rules'" in refused.json()["detail"]) == (503, True)
    assert (await http.get("/rooms/tea/digest", params={"for_user": "eve"})).status_code == 404


async def test_mcp_takes_words_and_names(lore):
    await lore.messages.add(messages())
    async with on_a_port(create_mcp_app(lore)) as url, over_http(url) as client:
        shown = await ask(client, "room_digest", room_id="tea", since="2024-05-01T12:30", for_user="小波")
        assert shown["messages"] == 1
        assert (await ask(client, "room_digest", room_id="tea", since="昨天"))["messages"] == 0
        assert "Nobody in room" in await refusal(client, "room_digest", room_id="tea", for_user="eve")
        assert "write one time" in await refusal(client, "room_digest", room_id="tea", since="soon")


def test_the_command_line_says_if_a_model_is_missing(run):
    assert "'rules'" in run("digest", "tea", "--mode", "llm", code=1)
    assert "[m4]" in run("digest", "tea", "--mode", "offline")


async def test_http_gives_the_headings_of_messages(http, connect, lore):
    await lore.messages.add(messages())
    made = await lore.rooms.headings("tea", ["m1", "m3"])
    answer = await http.get("/rooms/tea/headings", params={"message_id": ["m1", "m3", "nowhere"]})
    assert answer.json()["headings"] == [
        {"message_id": name, "title": made[name].title, "state": made[name].state} for name in ("m1", "m3")
    ]
    assert (await http.get("/rooms/nowhere/headings", params={"message_id": "m1"})).status_code == 404
    _, secret = await lore.keys.create("reader", scopes=["read"])
    async with connect(key=secret) as client:
        hidden = await client.get("/rooms/tea/headings", params={"message_id": "m1", "viewer": "user:eve"})
        assert hidden.status_code == 404


async def test_mcp_names_threads(lore):
    await lore.messages.add(messages())
    made = await lore.rooms.headings("tea", ["m3"])
    async with on_a_port(create_mcp_app(lore)) as url, over_http(url) as client:
        found = await ask(client, "search_messages", query="会议室", room_id="tea")
        assert {one["message_id"]: one["thread"] for one in found["messages"]}["m3"] == made["m3"].title
        shown = await ask(client, "room_context", room_id="tea", message_id="m3")
        assert shown["thread"] == made["m3"].title


def test_the_command_line_names_threads(run):
    title = json.loads(run("threads", "tea", "--json"))[0]["title"]
    assert f"thread: {title[:20]}" in run("search", "tea", "office", "tea")
    assert f"thread: {title[:20]}" in run("context", "tea", "m1")
    assert "m1" in run("search", "tea", "tea", "--since", "2024-04-30")
    assert "No message is from that time" in run("search", "tea", "tea", "--since", "yesterday")
    assert all(one["state"] in ("open", "answered", "closed") for one in json.loads(run("threads", "tea", "--json")))


async def name_threads(lore: roomlore.Lore) -> None:
    """Store a title for every thread, as a model would have written it."""
    named = {arrival: ("Tea 采购 <b>", 9) for arrival, _ in await lore.rooms.threads("tea")}
    async with lore.storage.writing(lore.tenant) as work:
        await work.rooms.lock(room_id="tea", now=parse_time("2024-05-02"))
        await work.titles.put(room_id="tea", titles=named, made_by="p/m", now=parse_time("2024-05-02"))


async def test_a_title_by_a_model_is_shown_by_http_the_console_and_mcp(http, lore):
    await lore.messages.add(messages())
    await name_threads(lore)
    threads = (await http.get("/rooms/tea/threads")).json()["threads"]
    headings = (await http.get("/rooms/tea/headings", params={"message_id": "m2"})).json()["headings"]
    digest = (await http.get("/rooms/tea/digest", params=QUERY)).json()["entries"]
    assert {one["title"] for one in (*threads, *headings, *digest)} == {"Tea 采购 <b>"}
    for page in ("/console/room?id=tea", "/console/digest?id=tea&since=2024-05-01"):
        assert "Tea 采购 &lt;b&gt;" in (await http.get(page)).text, page
    async with on_a_port(create_mcp_app(lore)) as url, over_http(url) as client:
        found = await ask(client, "search_messages", query="绿茶", room_id="tea")
        assert "Tea 采购 <b>" in json.dumps(found, ensure_ascii=False)
        told = await ask(client, "room_context", room_id="tea")
        assert "Tea 采购 <b>" in json.dumps(told, ensure_ascii=False)


def test_a_title_by_a_model_is_shown_by_the_command_line(run):
    async def name() -> None:
        async with roomlore.open("chat.db") as opened:
            await name_threads(opened)

    asyncio.run(name())
    for command in (
        ("threads", "tea"), ("search", "tea", "绿茶"), ("context", "tea", "m2"),
        ("digest", "tea", "--since", "2024-05-01"),
    ):  # fmt: skip
        assert "Tea 采购" in run(*command), command


def test_the_command_line_finds_a_room_by_name_also_for_who_sees_a_part_of_it(run):
    run("rename", "tea", "Tea Party")
    run("audience", "tea", "--kind", "private", "--member", "bob")
    assert "Tea Party" not in run("digest", "Tea Party", "--viewer", "user:bob")


ATTACHED = {
    "of a picture": ("Who knows this hut?", "picture", "look at the hut with the red roof"),
    "of a recording": ("", "voice", "The hut is booked for Friday, says Bob"),
    "of a picture, in Chinese": ("谁认识这个小屋？", "picture", "湖边有一座红顶小屋"),
}


@pytest.mark.parametrize(("text", "kind", "described"), ATTACHED.values(), ids=ATTACHED)
def test_what_was_said_of_attachments_is_shown(tmp_path, text, kind, described):
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    held = {"attachments": [{"type": kind, "name": "a.bin", "description": described}]}
    with roomlore.open_sync(url) as lore:
        lore.messages.add(Message(id="1", room_id="tea", sender_id="ann", text=text, metadata=held))
        lore.messages.add(Message(id="2", room_id="tea", sender_id="bob", text="Should we book the hut? 订小屋吗？"))
    for words in (["context"], ["digest", "--prompt"], ["digest"]):
        told = CliRunner().invoke(app, ["--db", url, words[0], "tea", *words[1:]]).stdout
        assert described in told, told
    assert ("[图片 a.bin：" in told) == ("谁" in text), "a digest is in the language of its text"
