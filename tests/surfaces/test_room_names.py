"""Rooms have names: from exports, or given by hand; they are shown wherever a room is, and ids stay visible."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from mcp import Client
from typer.testing import CliRunner

import roomlore
from console_rig import page
from mcp_rig import ask, refusal
from roomlore import InvalidInput, Message, NotFound
from roomlore.surfaces.cli.app import app as program
from roomlore.surfaces.jsonable import to_jsonable
from roomlore.surfaces.texts import text_of
from roomlore_server.mcp.server import make_server
from roomlore_server.mcp.tools import Visitor

TELEGRAM = {
    "name": "菜园 Allotment", "type": "private_group", "id": 4242,
    "messages": [
        {"id": 1, "type": "message", "date_unixtime": "1780304400", "from": "Ann", "from_id": "u1", "text": "hi"}
    ],
}  # fmt: skip
DISCORD = {
    "guild": {"id": "1", "name": "Harbour"}, "channel": {"id": "77", "type": "GuildTextChat", "name": "general"},
    "messages": [
        {"id": "5", "type": "Default", "timestamp": "2024-05-01T12:00:00+00:00", "content": "hi",
         "author": {"id": "9", "name": "ann"}}
    ],
}  # fmt: skip
CHATGPT = [
    {
        "title": "Trip to Kyoto", "create_time": 1.0, "conversation_id": "c-1", "id": "c-1", "current_node": "b",
        "mapping": {
            "b": {"id": "b", "parent": None, "children": [], "message": {
                "id": "b", "author": {"role": "user"}, "create_time": 1.0,
                "content": {"content_type": "text", "parts": ["hello"]}}}
        },
    }
]  # fmt: skip
EXPORTS = {
    "telegram": (TELEGRAM, "4242", "菜园 Allotment"),
    "discord": (DISCORD, "77", "general"),
    "chatgpt": (CHATGPT, "c-1", "Trip to Kyoto"),
}


def _write(export: object) -> None:
    Path("export.json").write_text(json.dumps(export), encoding="utf-8")


@pytest.mark.parametrize("form", EXPORTS)
async def test_an_import_names_rooms_that_have_no_name(lore, form):
    export, room_id, name = EXPORTS[form]
    _write(export)
    await lore.imports.run("export.json", format=form)
    assert (await lore.rooms.get(room_id)).name == name
    await lore.rooms.rename(room_id, "mine")
    await lore.imports.run("export.json", format=form)
    assert (await lore.rooms.get(room_id)).name == "mine"
    await lore.imports.run("export.json", format=form, room_id="other")
    assert (await lore.rooms.get("other")).name == ""


async def test_what_a_name_may_be(lore):
    await lore.messages.add(Message(id="1", room_id="tea", sender_id="ann", text="hi"))
    room = await lore.rooms.rename("tea", "  王敏的   茶会 ")
    assert (room.name, room.title) == ("王敏的 茶会", "王敏的 茶会")
    assert await lore.rooms.rename("tea", "王敏的 茶会") == room, "nothing changed"
    assert (await lore.rooms.rename("tea", "")).title == "tea"
    for name in ("x" * 201, None, 5):
        with pytest.raises(InvalidInput, match="name is"):
            await lore.rooms.rename("tea", name)
    with pytest.raises(NotFound):
        await lore.rooms.rename("nowhere", "x")


async def test_over_http(http, make_message):
    await http.post("/messages", json=make_message())
    assert (await http.patch("/rooms/tea", json={"name": "茶会"})).json()["name"] == "茶会"
    assert (await http.get("/rooms/tea")).json()["name"] == "茶会"
    for path, body, status in (
        ("/rooms/tea", {"name": "x" * 201}, 422),
        ("/rooms/tea", {}, 422),
        ("/rooms/none", {"name": "x"}, 404),
    ):
        assert (await http.patch(path, json=body)).status_code == status


async def test_a_name_that_no_room_has_may_be_the_id_of_a_new_one(lore):
    await lore.messages.add([Message(id="1", room_id="tea", sender_id="ann", text="hello")])
    await lore.rooms.rename("tea", "Tea party")
    assert await lore.rooms.named("tea party", or_new=True) == "tea"
    assert await lore.rooms.named("cake", or_new=True) == "cake"
    with pytest.raises(NotFound):
        await lore.rooms.named("cake")


async def test_the_console_shows_names_and_finds_by_them(lore, http, make_message):
    await http.post("/messages", json=make_message())
    await lore.rooms.rename("tea", "茶会 <b>Tea</b>")
    shown = "<bdi>茶会 &lt;b&gt;Tea&lt;/b&gt;</bdi>"
    for path in ("/console/rooms", "/console/room?id=tea", "/console/search?q=茶会", "/console/person?id=ann"):
        text = await page(http, path)
        assert shown in text, path
        assert "<b>Tea" not in text
    for path in ("/console/rooms", "/console/room?id=tea"):
        assert "<code>tea</code>" in await page(http, path)


def test_on_the_command_line():
    _write(TELEGRAM)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(program, ["--db", "chat.db", *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    run("import", "export.json")
    assert run("rooms").splitlines()[1].split()[:3] == ["4242", "菜园", "Allotment"]
    assert "4242" in run("rooms", "菜")
    assert run("rename", "4242", "园子") == "4242: 园子\n"
    assert json.loads(run("rooms", "--json"))[0]["name"] == "园子"
    assert run("rename", "4242", "") == "4242: (no name)\n"


async def test_a_name_goes_with_the_person_it_names():
    async with roomlore.open("sqlite://", background=False) as lore:
        await lore.messages.add(
            [
                Message(id="1", room_id="tea", sender_id="u7", sender_name="王敏", text="hi"),
                Message(id="2", room_id="tea", sender_id="bob", text="hello"),
            ]
        )
        await lore.rooms.rename("tea", "王敏的茶会")
        await lore.privacy.forget("u7")
        assert "王敏" not in (await lore.rooms.get("tea")).name


@pytest.mark.parametrize(("language", "wanted"), [("en", "Sticker: <bdi>🦊</bdi>"), ("zh", "表情: <bdi>🦊</bdi>")])
async def test_a_message_without_words_says_what_it_holds(http, make_message, language, wanted):
    told = {"caption": "🦊", "media_type": "sticker"}
    batch = [make_message(1, text=" ", metadata=told), make_message(2, text="", metadata={"x": 1})]
    await http.post("/messages", json={"messages": batch})
    text = await page(http, "/console/room?id=tea", language=language)
    assert wanted in text
    assert {"en": "(no text)", "zh": "（没有文字）"}[language] in text
    assert wanted in await page(http, "/console/person?id=ann", language=language)


async def test_the_likelier_a_link_the_thicker_its_line(http, make_message):
    batch = [make_message(1), make_message(2, reply_to="m1"), make_message(3, reply_to="m2")]
    await http.post("/messages", json={"messages": batch})
    text = await page(http, "/console/room?id=tea")
    assert 'class="lane last c1 a4"' in text
    assert 'class="lane middle c1 a4 b4"' in text
    assert 'class="lane first c1 b4"' in text
    assert text.count('data-width="4"') == 2


def test_every_command_takes_the_name_of_a_room(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with roomlore.open_sync("sqlite:///chat.db", background=False) as lore:
        lore.messages.add(Message(id="1", room_id="42", sender_id="ann", text="hello"))
        lore.rooms.rename("42", "茶友群 Tea")

    def told(*words: str) -> str:
        done = CliRunner().invoke(program, ["--db", "chat.db", *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    assert '"room_id": "42"' in told("export", "--room", "茶友群 tea")
    assert "weighted" in told("settings", "茶友群 Tea", "--set", "strategy=weighted")
    assert "group:42" in told("facts", "add", "group:茶友群 Tea", "Biscuits at four", "--json")
    assert "Biscuits" in told("facts", "list", "group:茶友群 Tea")
    assert "Biscuits" in told("memory", "list", "茶友群 Tea")
    assert "Biscuits" in told("memory", "log", "茶友群 Tea")
    assert "Biscuits" in told("memory", "search", "茶友群 Tea", "biscuits", "--threshold", "0")
    assert "Biscuits" in told("memory", "as-of", "茶友群 Tea", "now")
    assert told("archive", "run", "--older-than", "0", "--room", "茶友群 Tea") == "archived 1 message of 1 room\n"
    assert [one["room_id"] for one in json.loads(told("archive", "list", "--room", "茶友群 tea", "--json"))] == ["42"]
    assert told("archive", "restore", "--room", "茶友群 Tea") == "brought back 1 message of 1 room\n"
    assert told("rename", "茶友群 Tea", "Tea").startswith("42: Tea")


async def test_http_takes_the_name_of_a_room_that_its_viewer_may_see(lore, http):
    await lore.messages.add([Message(id="1", room_id=one, sender_id="ann", text="hello") for one in ("42", "43", "44")])
    await lore.rooms.rename("42", "Tea")
    await lore.rooms.rename("43", "Tea")
    for one in ("42", "44"):
        await lore.rooms.set_kind(one, "public")
    await lore.rooms.rename("44", "Cake")
    assert (await http.get("/rooms/cake")).json()["room_id"] == "44"
    assert (await http.get("/rooms/Tea")).status_code == 422
    seen = await http.get("/rooms/Tea", params={"viewer": "user:bob"})
    assert (seen.status_code, seen.json()["room_id"]) == (200, "42"), "the other one is hidden from bob"
    assert (await http.patch("/rooms/Cake", json={"name": "Pie"})).json()["room_id"] == "44"
    assert (await http.get("/rooms/Bread")).status_code == 404
    found = (await http.get("/messages", params={"room_id": "Pie"})).json()
    assert [one["room_id"] for one in found["messages"]] == ["44"]
    for name in ("chat_id", "room_id"):
        hits = (await http.get("/messages/search", params={name: "Pie", "q": "hello"})).json()["hits"]
        assert [one["message"]["room_id"] for one in hits] == ["44"]
    assert (await http.get("/messages", params={"room_id": "Tea"})).status_code == 422, "two rooms have the name"
    hers = await http.get("/messages", params={"room_id": "Tea", "viewer": "user:bob"})
    assert [one["room_id"] for one in hers.json()["messages"]] == ["42"]
    told = await http.patch("/rooms/Pie/audience", json={"add": ["bob"]})
    assert (told.status_code, told.json()["room_id"]) == (200, "44")
    made = await http.patch("/rooms/Scones/audience", json={"kind": "private"})
    assert (made.status_code, made.json()["room_id"]) == (200, "Scones"), "a room that is not there is made"
    # What is stored under an id is never taken for a name.
    await http.post("/messages", json={"messages": [{"id": "9", "room_id": "Pie", "sender_id": "bo", "text": "hi"}]})
    assert (await http.get("/rooms/Pie")).json()["room_id"] == "Pie"


def test_forget_takes_an_id_that_is_a_name_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with roomlore.open_sync("sqlite:///chat.db", background=False) as lore:
        lore.messages.add(Message(id="1", room_id="tea", sender_id="7", sender_name="ann", text="hello"))
    asked = ["--db", "chat.db", "forget", "ann", "--dry-run"]
    refused = CliRunner().invoke(program, asked)
    assert refused.exit_code == 1
    assert "'ann' is a name, not an id. Type `roomlore --db chat.db forget 7`, or add --id" in refused.stderr
    meant = CliRunner().invoke(program, [*asked, "--id"])
    assert (meant.exit_code, meant.stdout) == (1, "Nothing of ann is here.\n"), "taken for an id, by which nothing is"
    with roomlore.open_sync("sqlite:///chat.db", background=False) as lore:
        lore.rooms.add_members("tea", ["ann"])
    assert CliRunner().invoke(program, asked).exit_code == 0, "a member who wrote nothing"


@pytest.fixture
async def anns(lore):
    """Three people called Ann, in different rooms, one of whom has another name elsewhere; and one whose id it is
    nearly."""
    spoke = (("U03", "tea", "Ann"), ("U04", "cake", "ANN"), ("U05", "pie", "Ann"), ("U05", "tea", "Anneliese"))
    for number, (person, room, name) in enumerate((*spoke, ("U06", "tea", "Anna"))):
        said = Message(id=f"{number}", room_id=room, sender_id=person, sender_name=name, text="hello")
        await lore.messages.add(said)
    return lore


async def test_forgetting_asks_who_of_several_people_of_one_name_is_meant(anns, http):
    with pytest.raises(InvalidInput, match="Nobody has the id 'ann'") as refused:
        await anns.privacy.forget("ann", dry_run=True)
    assert all(one in str(refused.value) for one in ("U03", "U04", "U05"))
    assert "U06" not in str(refused.value)
    for more in ({"dry_run": True}, {"confirm": True}, {}):
        answer = await http.post("/privacy/forget", json={"user_id": "@Ann", **more})
        assert answer.status_code == 422, answer.text
        assert "it is the name of" in answer.json()["detail"]
        assert "Add `is_id: true`" in answer.json()["detail"]
    meant = await http.post("/privacy/forget", json={"user_id": "Ann", "dry_run": True, "is_id": True})
    assert (meant.status_code, meant.json()["places"].get("messages")) == (200, None)
    await anns.memories.add("user:Ann", "Ann drinks oolong")
    assert (await anns.privacy.forget("Ann", dry_run=True)).retired, "what is an id is forgotten, whoever is called so"
    assert (await anns.privacy.forget("nobody")).places == {}


async def test_forgetting_a_scope_hints_at_the_id(anns, http):
    with pytest.raises(InvalidInput, match=r"'user:U03' is a scope; the id of the person is 'U03'\."):
        await anns.privacy.forget("user:U03")
    answer = await http.post("/privacy/forget", json={"user_id": "user:U03", "confirm": True})
    assert (answer.status_code, "'U03'" in answer.json()["detail"]) == (422, True)
    await anns.messages.add(Message(id="9", room_id="tea", sender_id="user:U03", text="that is my id"))
    assert (await anns.privacy.forget("user:U03")).places["messages"] == 1


async def test_checking_what_is_not_there_is_an_error(twins, http):
    for scope in ("group:cake", "user:eve", "agent:bot", "group:ann"):
        with pytest.raises(NotFound, match="There is nothing to check"):
            await twins.privacy.verify(scope)
    for there in ("group:one", "user:ann"):
        assert (await twins.privacy.verify(there)).sound, "it is there, and nothing is remembered of it"
    assert (await http.get("/privacy/verify?group_id=cake")).status_code == 404
    await twins.memories.add("group:three", "Boats come at four")
    told = await http.get("/privacy/verify?group_id=harbour")
    assert (told.status_code, told.json()["checked"].get("memories")) == (200, 1)
    assert names_both((await http.get("/privacy/verify?group_id=茶会 Tea")).text)


def test_verify_says_that_there_is_no_such_group(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with roomlore.open_sync("sqlite:///chat.db", background=False) as lore:
        lore.messages.add(Message(id="1", room_id="42", sender_id="ann", text="hello"))
        lore.rooms.rename("42", "Tea")
        lore.memories.add("group:42", "Tea at four")
    missing = CliRunner().invoke(program, ["--db", "chat.db", "verify", "cake"])
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "There is nothing to check in 'group:cake'" in missing.stderr
    found = CliRunner().invoke(program, ["--db", "chat.db", "verify", "tea"])
    assert (found.exit_code, "1 memory," in found.stdout) == (0, True), found.output


def test_threads_lists_no_notices_of_the_platform(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with roomlore.open_sync("sqlite:///chat.db", background=False) as lore:
        said = [
            ("1", "ann", roomlore.Role.USER, "Who brings the biscuits?"),
            ("2", "7", roomlore.Role.SYSTEM, "7 joined"),
        ]
        for message_id, sender, role, text in said:
            lore.messages.add(Message(id=message_id, room_id="tea", sender_id=sender, role=role, text=text))
    shown = CliRunner().invoke(program, ["--db", "chat.db", "threads", "tea"]).stdout
    assert "biscuits" in shown
    assert "joined" not in shown


@pytest.fixture
async def twins(lore):
    """Two rooms of one name, and one whose name is its own."""
    for room_id, name in (("one", "茶会 Tea"), ("two", "茶会 tea"), ("three", "Harbour")):
        await lore.messages.add(Message(id="1", room_id=room_id, sender_id="ann", text="乌龙茶 oolong"))
        await lore.rooms.rename(room_id, name)
    return lore


def names_both(text: str) -> bool:
    return "Several rooms are called" in text and "one" in text and "two" in text


async def test_no_face_chooses_between_rooms_of_one_name(twins, http):
    with pytest.raises(InvalidInput) as refused:
        await twins.rooms.named("茶会 Tea")
    assert names_both(str(refused.value))
    assert await twins.rooms.named("harbour") == "three"

    for path in ("", "/digest", "/threads", "/threads/1", "/audience", "/visible", "/corrections", "/settings"):
        answer = await http.get(f"/rooms/茶会 Tea{path}")
        assert answer.status_code == 422, (path, answer.text)
        assert names_both(answer.json()["detail"]), path
    assert names_both((await http.get("/messages/茶会 Tea/1")).json()["detail"])
    for path in ("", "/digest", "/audience", "/visible"):
        assert (await http.get(f"/rooms/HARBOUR{path}")).json().get("room_id", "three") == "three", path
    assert (await http.get("/messages/HARBOUR/1")).json()["message"]["room_id"] == "three"

    text = await page(http, "/console/search?q=茶会")
    assert "<code>one</code>" in text or "id=one" in text
    assert "<code>two</code>" in text or "id=two" in text

    async with Client(make_server(Visitor(lore=twins))) as client:
        asked = {
            "room_digest": {},
            "room_context": {"message_id": "1"},
            "search_messages": {"query": "oolong"},
            "add_memory": {"scope": "user:ann", "statement": "Ann drinks oolong", "message_ids": ["1"]},
        }
        for tool, more in asked.items():
            assert names_both(await refusal(client, tool, room_id="茶会 TEA", **more)), tool
            await ask(client, tool, room_id="harbour", **more)
        assert "There is no room" in await refusal(client, "room_digest", room_id="tea")


async def test_mcp_finds_names_among_the_rooms_that_its_viewer_may_see(twins):
    await twins.rooms.set_kind("one", "private")
    await twins.rooms.set_kind("two", "public")
    async with Client(make_server(Visitor(lore=twins, viewer="user:eve"))) as client:
        assert (await ask(client, "room_digest", room_id="茶会 Tea"))["room_id"] == "two"
        await twins.rooms.set_kind("two", "private")
        told = await refusal(client, "room_digest", room_id="茶会 Tea")
        assert "one" not in told.replace("None", "")


def test_no_command_chooses_between_rooms_of_one_name():
    with roomlore.open_sync("sqlite:///chat.db", background=False) as lore:
        for room_id in ("one", "two"):
            lore.messages.add(Message(id="1", room_id=room_id, sender_id="ann", text="乌龙茶 oolong"))
            lore.rooms.rename(room_id, "Tea")
    for command in (
        ["context", "tea", "1"], ["digest", "tea"], ["threads", "tea"], ["search", "tea", "oolong"],
        ["links", "log", "tea"], ["links", "undo", "tea", "1"], ["audience", "tea"], ["rename", "tea", "x"],
        ["export", "--room", "tea"], ["digest", "one", "--viewer", "room:tea"],
    ):  # fmt: skip
        result = CliRunner().invoke(program, ["--db", "chat.db", *command])
        assert result.exit_code == 1, (command, result.output)
        assert names_both(result.output), (command, result.output)


HARBOUR = [
    ("GET", "/facts?scope=group:HARBOUR", None),
    ("GET", "/memory/list/harbour", None),
    ("GET", "/memory/search/harbour?q=boats&threshold=0", None),
    ("GET", "/memory/changes/harbour", None),
    ("GET", "/memory/as-of/group:Harbour?at=2100-01-01", None),
    ("GET", "/memory/diff/harbour?from=2000-01-01", None),
    ("GET", "/rooms/three/visible?scope=group:harbour", None),
    ("POST", "/recall", {"scopes": ["group:harbour"]}),
]
"""Requests that name the scope of a room by the room's name."""


@pytest.mark.parametrize("first", ["http", "cli", "mcp"])
async def test_every_face_finds_the_scope_of_a_room_by_the_rooms_name(twins, http, first):
    async with Client(make_server(Visitor(lore=twins))) as client:
        fact = {"scope": "group:HARBOUR", "statement": "Boats come at four"}
        if first == "http":
            (made,) = (await http.post("/facts", json=fact)).json()["facts"]
        elif first == "mcp":
            made = (await ask(client, "add_memory", **fact))["memory"]
        else:
            made = to_jsonable(
                await twins.memories.add(await twins.rooms.scope_named(fact["scope"]), fact["statement"])
            )
        assert made["scope"] == "group:three"
        for method, path, body in HARBOUR:
            answer = await http.request(method, path, json=body)
            assert (answer.status_code, "Boats come" in answer.text) == (200, True), (path, answer.text)
        assert (await ask(client, "get_memories", scope="group:harbour"))["total"] == 1
        assert (await ask(client, "search_memories", scope="group:harbour", query="boats", threshold=0))["memories"]
        assert "Boats" in (await ask(client, "memory_prompt", scopes=["group:harbour"]))["text"]

        for method, path, body in (*HARBOUR, ("POST", "/facts", fact), ("POST", "/memory/evolve/HARBOUR", None)):
            several = json.loads(json.dumps(body).replace("HARBOUR", "茶会 tea").replace("harbour", "茶会 tea"))
            named = path.replace("HARBOUR", "茶会 tea").replace("Harbour", "茶会 tea").replace("harbour", "茶会 tea")
            answer = await http.request(method, named, json=several)
            assert (answer.status_code, names_both(answer.text)) == (422, True), (path, answer.text)
        assert names_both(await refusal(client, "get_memories", scope="group:茶会 Tea"))
        assert names_both(await refusal(client, "memory_prompt", scopes=["group:茶会 Tea"]))
    await twins.messages.add(Message(id="9", room_id="harbour", sender_id="bo", text="hi"))
    assert (await http.get("/memory/list/harbour")).json()["scope"] == "group:harbour", (
        "an id is never taken for a name"
    )


async def test_the_name_of_an_evolved_group_is_that_of_its_room(twins, http):
    done = (await http.post("/memory/evolve/harbour")).json()
    assert (done["group_id"], done["scope"]) == ("harbour", "group:three")


async def test_a_scope_in_which_anything_is_remembered_is_no_name(twins, http):
    for viewer, seen in ((None, {}), ("user:eve", {"viewer": "user:eve"})):
        await twins.memories.add("group:Reading list", "Books of May")
        await twins.rooms.rename("three", "Reading list")
        await twins.rooms.set_kind("three", "public")
        assert await twins.rooms.scope_named("group:Reading list", viewer=viewer) == "group:Reading list"
        assert (await http.get("/memory/list/Reading list", params=seen)).json()["scope"] == "group:Reading list"
        assert await twins.rooms.scope_named("group:reading LIST", viewer=viewer) == "group:three"
    source = roomlore.Source("one", "1")
    await twins.rooms.set_kind("one", "private")
    await twins.memories.add("group:Secret", "Said behind a closed door", sources=[source])
    await twins.rooms.rename("three", "Secret")
    assert await twins.rooms.scope_named("group:Secret") == "group:Secret"
    told = await twins.rooms.scope_named("group:Secret", viewer="user:eve")
    assert told == "group:three", "a viewer learns nothing of what it may not see"


async def test_a_scope_of_no_room_stays_and_what_is_none_is_refused(twins):
    for scope in ("group:cake", "user:Harbour", "agent:harbour", "group:three"):
        assert await twins.rooms.scope_named(scope) == scope
    for wrong in ("Harbour", "room:three", "group:", None):
        with pytest.raises(InvalidInput, match="A scope is"):
            await twins.rooms.scope_named(wrong)


async def test_bodies_take_the_name_of_a_room_that_is_there(twins, http):
    context = await http.post("/context", json={"room_id": "harbour", "message_id": "1"})
    assert (context.status_code, context.json()["room_id"]) == (200, "three")
    several = await http.post("/context", json={"chat_id": "茶会 Tea"})
    assert (several.status_code, names_both(several.text)) == (422, True)
    assert (await http.post("/context", json={"room_id": "cake"})).status_code == 404

    said = [{"room_id": "HARBOUR", "message_id": "1"}]
    fact = {"scope": "user:ann", "statement": "Ann drinks oolong", "sources": said}
    (made,) = (await http.post("/facts", json=fact)).json()["facts"]
    assert made["sources"] == [{"room_id": "three", "message_id": "1"}]
    assert names_both((await http.post("/facts", json=fact | {"sources": [said[0] | {"room_id": "茶会 tea"}]})).text)
    plain = await twins.memories.add("user:ann", "Ann likes rain")
    changed = await http.patch(f"/facts/{plain.memory_id}", json={"sources": said})
    assert changed.json()["sources"] == [{"room_id": "three", "message_id": "1"}], changed.text

    memory = f"/memory/{plain.memory_id}/share"
    shared = (await http.put(memory, json={"with": "room:harbour"})).json()["memory"]["shared_with"]
    assert shared == ["room:three"]
    assert names_both((await http.put(memory, json={"with": "room:茶会 Tea"})).text)
    ended = (await http.delete(memory, params={"with": "room:harbour"})).json()["memory"]["shared_with"]
    assert ended == []


async def test_what_stores_messages_takes_ids_alone(twins, http):
    """Else the rooms of two platforms could become one."""
    said = {"id": "2", "room_id": "Harbour", "sender_id": "bo", "text": "Which boats?"}
    told = (await http.post("/messages", json=said)).json()
    assert told["new_rooms"] == {"Harbour": ["three"]}
    assert told["hint"].startswith("Room 'Harbour' is new; it is also the name of room three.")
    assert "hint" not in (await http.post("/messages", json=said | {"id": "3"})).json(), "it is there by now"
    report = await twins.messages.add(Message(id="1", room_id="茶会 TEA", sender_id="bo", text="茶"))
    assert set(report.new_rooms["茶会 TEA"]) == {"one", "two"}
    both = [said | {"room_id": name} for name in ("茶会 tEa", "HarBour")]
    several = (await http.post("/messages", json={"messages": both}, headers={"Accept-Language": "zh"})).json()
    listed = re.fullmatch(r"新建的房间与其他房间同名：(.+)。消息按给出的房间 id 存储。", several["hint"])
    assert listed, several["hint"]
    for room_id, others in several["new_rooms"].items():
        assert f"{room_id!r} ({', '.join(others)})" in listed[1]
    assert (await twins.rooms.get("three")).messages == 1
    assert (await twins.rooms.get("Harbour")).messages == 2
    await http.post("/sessions", json={"conversation_id": "HARBOUR", "user_id": "bo"})
    assert (await twins.sessions.get_session("HARBOUR")).meta.conversation_id == "HARBOUR"


async def test_a_writer_is_not_told_of_rooms_that_it_may_not_see(twins, connect):
    _, secret = await twins.keys.create("bot", scopes=("read", "write"))
    async with connect(key=secret) as client:
        said = {"id": "2", "room_id": "Harbour", "sender_id": "bo", "text": "Which boats?"}
        told = (await client.post("/messages", json=said)).json()
        assert (told["new_rooms"], "hint" in told) == ({"Harbour": []}, False)
        await twins.rooms.set_kind("one", "public")
        for viewer, meant in (("user:mo", "'one' ('茶会 Tea')?"), ("user:ann", "'one' ('茶会 Tea')?")):
            asked = await client.get("/messages", params={"room_id": "茶会 Te", "viewer": viewer})
            assert (asked.status_code, asked.json()["detail"].endswith(f"Did you mean {meant}")) == (404, True)


async def test_every_face_says_that_there_is_no_room_and_which_was_meant(twins, http):
    said = "There is no room 'Harbor'; a room appears with its first message. Did you mean 'three' ('Harbour')?"
    answers = [
        await http.post("/context", json={"room_id": "Harbor"}),
        await http.post("/context", json={"room_id": "Harbor", "message_id": "1"}),
        await http.get("/messages?room_id=Harbor"),
        await http.get("/messages/search?room_id=Harbor&q=tea"),
        await http.get("/rooms/Harbor/threads"),
    ]
    assert [(one.status_code, one.json()["detail"]) for one in answers] == [(404, said)] * len(answers)
    chinese = await http.post("/context", json={"room_id": "Harbor"}, headers={"Accept-Language": "zh"})
    assert chinese.json()["detail"].endswith("是不是 'three' ('Harbour')？")
    both = (await http.get("/messages?room_id=茶会 te")).json()["detail"]
    assert "'one' ('茶会 Tea')" in both
    assert "'two' ('茶会 tea')" in both, "rooms of one name are told apart by their ids"
    assert (await http.get("/messages?room_id=zzz")).json()["detail"].endswith("with its first message.")
    with pytest.raises(NotFound, match=r"^There is no room 'Harbor'; a room appears with its first message\.$"):
        await twins.context.build("Harbor")
    await twins.rooms.set_kind("empty", "public")
    with pytest.raises(NotFound, match="Room 'empty' has no message of a user"):
        await twins.context.build("empty")
    async with Client(make_server(Visitor(lore=twins))) as client:
        assert await refusal(client, "room_context", room_id="Harbor") == said


async def test_models_and_programs_are_told_that_a_viewer_is_unknown(twins, http):
    await twins.rooms.set_kind("three", "public")
    said = "The viewer is unknown: there is no room 'Harbor'. Did you mean 'three' ('Harbour')?"
    assert (await http.get("/messages/search?q=boats&viewer=room:Harbor")).json()["hint"] == said
    async with Client(make_server(Visitor(lore=twins, viewer="room:Harbor"))) as client:
        assert (await ask(client, "search_messages", query="boats"))["hint"] == said
        hidden, gone = [await refusal(client, "room_digest", room_id=name) for name in ("one", "once")]
    assert hidden.replace("'one'", "'once'") == gone
    assert gone.startswith("There is no room 'once' that the viewer may see;")


def test_a_command_says_which_room_was_meant():
    with roomlore.open_sync("chat.db", background=False) as lore:
        lore.messages.add(Message(id="1", room_id="4242", sender_id="u1", sender_name="Ann", text="the pump leaks"))
        lore.rooms.rename("4242", "Allotment")
        lore.rooms.add_members("4242", ["silent"])

    def run(*arguments: str, code: int = 0):
        result = CliRunner().invoke(program, ["--db", "chat.db", *arguments])
        assert result.exit_code == code, result.output
        return result

    said = "There is no room 'Alotment'; a room appears with its first message. Did you mean '4242' ('Allotment')?"
    for command in (("context", "Alotment"), ("search", "Alotment", "pump"), ("threads", "Alotment")):
        assert run(*command, code=1).stderr.startswith(f"roomlore: {said} Looked for in ")
    for given in ("Ann", "@ann"):
        assert run("search", "4242", "pump", "--sender", given).stderr == f"Taking {given} as the name of user:u1.\n"
    misspelt = run("search", "4242", "pump", "--sender", "Anne", code=1).stderr
    assert misspelt.startswith("roomlore: Nobody who wrote here has the id 'Anne'; did you mean 'u1' ('Ann')?")
    assert run("search", "4242", "pump", "--sender", "u1").stderr == ""
    for command in (("facts", "list"), ("memory", "list")):
        told = run(*command, "user:Anne").stderr
        assert told == "Nobody who wrote here has the id 'Anne'; did you mean 'u1' ('Ann')?\n"
        assert run(*command, "group:Alotment").stderr == f"{said}\n"
        assert run(*command, "user:u1").stderr == ""
        assert run(*command, "user:Ann").stderr == "Taking Ann as the name of user:u1.\n"
        assert run(*command, "group:4242").stderr == ""
    zed = run("search", "4242", "pump", "--sender", "zed", "--json", code=1).stderr
    assert zed.startswith("roomlore: Nobody who wrote here has the id 'zed'. Looked for in ")
    nobody = "Nobody who wrote here has the id 'Anne'; did you mean 'u1' ('Ann')?\n"
    for command in (("search", "pump"), ("digest", "4242"), ("context", "4242"), ("session", "list")):
        assert run(*command, "--viewer", "room:Alotment", code=1).stderr.startswith(f"roomlore: {said} Looked for in ")
        told = run(*command, "--viewer", "user:Anne", code=1).stderr
        assert told.startswith(f"roomlore: The viewer is unknown. {nobody.strip()} Looked for in ")
        assert run(*command, "--viewer", "room:Allotment").stderr == ""
    assert run("search", "pump", "--viewer", "user:silent").stderr == "", "a member is known who said nothing"
    for options in (["--yes"], ["--dry-run"], []):
        assert run("forget", "Anne", *options, code=1).stderr == nobody
    assert run("forget", "u1", "--dry-run").stderr == ""
    for scope, meant in (("Alotment", said), ("user:Anne", nobody.strip())):
        checked = run("verify", scope, code=1).stderr
        assert f"nothing is remembered, and nobody has this id. {meant} Looked for in " in checked
    nothing = run("rooms", "Alotment")
    assert nothing.stdout == "No room has Alotment in its id or name.\n"
    assert nothing.stderr == "Did you mean '4242' ('Allotment')?\n"
    assert run("rooms", "zzz").stderr == run("rooms", "lot").stderr == ""


def test_what_is_meant_is_said_in_chinese():
    viewer = "There is no room '茶管' that the viewer may see; a room appears with its first message."
    for said, told in (
        ("Did you mean '茶馆'?", "是不是 '茶馆'？"),
        (viewer, "没有查看者可以看到的房间 '茶管'；收到第一条消息时自动创建。"),
        (
            f"{viewer} Did you mean '茶馆'?",
            "没有查看者可以看到的房间 '茶管'；收到第一条消息时自动创建。是不是 '茶馆'？",
        ),
        (
            "The viewer is unknown: there is no room '茶管'. Did you mean '茶馆'?",
            "没有这个查看者：不存在房间 '茶管'。是不是 '茶馆'？",
        ),
        (
            "The viewer is unknown. Nobody who wrote here has the id '小玉'; did you mean '小王'?",
            "没有这个查看者。这里没有 id 为 '小玉' 的发言者；是不是 '小王'？",
        ),
        (
            "The viewer is unknown. Nobody who wrote here has the id '小玉'. Looked for in chat.db.",
            "没有这个查看者。这里没有 id 为 '小玉' 的发言者。查找范围：chat.db。",
        ),
        (
            "There is nothing to check in 'user:小玉': nothing is remembered, and nobody has this id. "
            "Nobody who wrote here has the id '小玉'; did you mean '小王'? Looked for in a.db.",
            "'user:小玉' 没有可检查的内容：没有记忆，也没有这个 id。这里没有 id 为 '小玉' 的发言者；是不是 '小王'？"
            "查找范围：a.db。",
        ),
    ):
        assert text_of(said, "zh") == told


async def test_the_id_of_a_room_of_which_a_viewer_may_see_a_part_is_no_name(twins, http):
    await twins.rooms.set_kind("three", "private")
    await twins.rooms.set_members("three", [roomlore.Member("eve", joined_at=datetime(2030, 1, 1, tzinfo=UTC))])
    await twins.rooms.set_kind("one", "public")
    await twins.rooms.rename("one", "three")
    late = Message(id="2", room_id="three", sender_id="bo", text="late boats", sent_at=datetime(2031, 1, 1, tzinfo=UTC))
    await twins.messages.add(late)
    assert await twins.rooms.named("three", viewer="user:eve") == "three"
    assert await twins.rooms.named("three", viewer="user:mo") == "one", "mo may see nothing of the room with this id"
