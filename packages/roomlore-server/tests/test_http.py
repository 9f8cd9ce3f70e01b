"""The HTTP service: every path, the words it takes, and what it says to bad input."""

import asyncio
import html
import json
import logging
import re
from datetime import UTC, datetime
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest

import roomlore
from mcp_rig import on_a_port
from roomlore import Message
from roomlore.core import errors
from roomlore.core.audience import Member
from roomlore.core.records import FIELDS
from roomlore.services.contexts.strategies import STRATEGIES, Strategy
from roomlore.surfaces import logs
from roomlore.surfaces.texts import text_of
from roomlore_server.http import create_app, problems
from roomlore_testkit.case_table import all_cases


async def test_a_message_goes_in_and_comes_out(http, make_message):
    sent = make_message(1, sent_at="2024-05-01T12:00:00Z", metadata={"a": [1]}, mentions=["bob"], text="NUL \0 你好 👍")
    answer = await http.post("/messages", json=sent)
    assert (answer.status_code, answer.json()) == (
        200,
        {"added": ["m1"], "duplicates": [], "conflicts": [], "new_rooms": {"tea": []}},
    )
    entry = (await http.get("/messages/tea/m1")).json()
    assert entry["message"]["text"] == sent["text"]
    assert entry["message"]["metadata"] == {"a": [1]}
    assert entry["message"]["sent_at"] == "2024-05-01T12:00:00+00:00"
    assert entry["message"]["arrival"] == 1
    assert entry["link"]["kind"] == "new"


async def test_a_message_may_use_the_names_of_other_systems(http):
    sent = {"message_id": "m1", "group_id": "tea", "user_id": "ann", "content": "你好", "timestamp": 1_714_564_800}
    assert (await http.post("/messages", json={"messages": [sent]})).json()["added"] == ["m1"]
    message = (await http.get("/messages/tea/m1")).json()["message"]
    assert (message["sender_id"], message["text"], message["sent_at"]) == ("ann", "你好", "2024-05-01T12:00:00+00:00")
    refused = await http.post("/messages", json={**sent, "text": "hello"})
    assert refused.status_code == 422


async def test_a_batch_and_its_duplicates_and_conflicts(http, make_message):
    batch = {"messages": [make_message(n) for n in range(3)]}
    assert (await http.post("/messages", json=batch)).json()["added"] == ["m0", "m1", "m2"]
    assert (await http.post("/messages", json=batch)).json()["duplicates"] == ["m0", "m1", "m2"]
    changed = {"messages": [make_message(1, text="other"), make_message(9)]}
    refused = await http.post("/messages", json=changed)
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:roomlore:conflict")
    report = await http.post("/messages?on_conflict=report", json=changed)
    assert report.json() == {"added": ["m9"], "duplicates": [], "conflicts": ["m1"], "new_rooms": {}}


async def test_a_room_has_four_names(http):
    with all_cases() as case:
        for word in ("room_id", "group_id", "chat_id", "conversation_id"):
            with case(word):
                room = f"room by {word}"
                await http.post("/messages", json={"id": "m1", word: room, "sender_id": "ann", "text": "x"})
                page = await http.get("/messages", params={word: room})
                assert [one["id"] for one in page.json()["messages"]] == ["m1"]
                built = await http.post("/context", json={word: room, "message_id": "m1"})
                assert built.json()["room_id"] == room


async def test_a_whole_number_may_be_written_with_a_point(http, make_message):
    await http.post("/messages", json=make_message(1))
    asked = {"room_id": "tea", "message_id": "m1"}
    assert (await http.post("/context", json=asked | {"max_messages": 20.0})).status_code == 200
    refused = await http.post("/context", json=asked | {"max_messages": 20.5})
    assert (refused.status_code, "max_messages" in refused.json()["detail"]) == (422, True)


async def test_two_names_for_two_rooms_are_refused(http):
    for answer in (
        await http.get("/messages?room_id=a&group_id=b"),
        await http.post("/context", json={"room_id": "a", "chat_id": "b"}),
    ):
        assert answer.status_code == 422
        assert "name different rooms" in answer.json()["detail"]


async def test_pages_follow_each_other(http, make_message):
    await http.post("/messages", json={"messages": [make_message(n) for n in range(5)]})
    seen, after = [], 0
    while after is not None:
        page = (await http.get("/messages", params={"room_id": "tea", "after": after, "limit": 2})).json()
        seen += [one["id"] for one in page["messages"]]
        after = page["next"]
    assert seen == [f"m{n}" for n in range(5)]


async def test_a_small_page_is_the_usual_one_too():
    async with roomlore.open("sqlite://", settings=roomlore.Settings(max_page=2)) as lore:
        await lore.messages.add([roomlore.Message(id=one, room_id="tea", sender_id="ann") for one in "abc"])
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            page = (await client.get("/messages?room_id=tea")).json()
    assert ([one["id"] for one in page["messages"]], page["next"]) == (["a", "b"], 2)


async def test_rooms_and_threads(http, make_message):
    await http.post("/messages", json={"messages": [make_message(1, room="a"), make_message(2, room="b")]})
    await http.post("/messages", json=make_message(3, room="a", reply_to="m1"))
    first = (await http.get("/rooms?limit=1")).json()
    assert ([room["room_id"] for room in first["rooms"]], first["next"]) == (["a"], "a")
    second = (await http.get("/rooms?limit=5&after=a")).json()
    assert ([room["room_id"] for room in second["rooms"]], second["next"]) == (["b"], None)
    room = (await http.get("/rooms/a")).json()
    assert room["messages"] == 2
    assert "tenant" not in room
    threads = (await http.get("/rooms/a/threads")).json()["threads"]
    assert [(thread["thread_id"], thread["messages"]) for thread in threads] == [("m1", 2)]
    entries = (await http.get("/rooms/a/threads/m3")).json()["entries"]
    assert [entry["message"]["id"] for entry in entries] == ["m1", "m3"]


async def test_settings_of_a_room(http, make_message):
    await http.post("/messages", json=make_message())
    before = (await http.get("/rooms/tea/settings")).json()["settings"]
    assert before["strategy"] == {"value": "threaded", "source": "default"}
    changed = await http.patch("/rooms/tea/settings", json={"strategy": "recent", "max_context_messages": 3})
    assert changed.json()["settings"]["strategy"] == {"value": "recent", "source": "room"}
    back = await http.patch("/rooms/tea/settings", json={"strategy": None})
    assert back.json()["settings"]["strategy"]["source"] == "default"
    assert back.json()["settings"]["max_context_messages"] == {"value": 3, "source": "room"}
    bad = await http.patch("/rooms/tea/settings", json={"max_context_messages": 0})
    assert bad.status_code == 422
    assert "max_context_messages is 0; it must be" in bad.json()["detail"]


async def test_a_context_its_answer_and_its_feedback(http, make_message):
    await http.post("/messages", json={"messages": [make_message(1), make_message(2, reply_to="m1", sender_id="bob")]})
    built = (await http.post("/context", json={"room_id": "tea", "message_id": "m2"})).json()
    assert [one["message"]["id"] for one in built["messages"]] == ["m1"]
    assert set(built["messages"][0]["signals"]) == {
        "reply_chain", "user_continuity", "time_decay", "mention_relation", "keyword_overlap",
    }  # fmt: skip
    assert built["parent"] == "m1"
    path = f"/context/{built['context_id']}"
    assert (await http.post(f"{path}/response", json={"text": "an answer"})).status_code == 204
    assert (await http.post(f"{path}/feedback", json={"text": "fine", "score": 0.8})).status_code == 204
    record = (await http.get(path)).json()
    assert (record["llm_response"], record["user_feedback"], record["success_indicator"]) == ("an answer", "fine", 0.8)
    assert record["context_message_ids"] == ["m1"]


async def test_without_a_message_the_newest_of_a_user_is_meant(http, make_message):
    batch = [make_message(1), make_message(2), make_message(3, role="assistant")]
    await http.post("/messages", json={"messages": batch})
    built = await http.post("/context", json={"room_id": "tea", "strategy": "recent", "max_messages": 1})
    assert (built.json()["message_id"], [one["message"]["id"] for one in built.json()["messages"]]) == ("m2", ["m1"])


async def test_every_wrong_field_of_every_message_is_named_at_once(http, make_message):
    bad = {"group_id": "tea", "text": 3, "role": "x", "sent_at": "soon", "txt": "", "titel": ""}
    told = (await http.post("/messages", json=bad)).json()["detail"]
    assert told == (
        f"unknown field 'txt', 'titel': put what is your own into metadata; known are {', '.join(FIELDS)}"
        "; also id is missing: a non-empty string is wanted; also sender_id is missing: a non-empty string is wanted"
        "; also text is 3: wanted is a string; also role is 'x': wanted is one of user, assistant, system, tool"
        "; also sent_at is 'soon'; give ISO 8601 such as 2024-05-01T12:30:00Z or a Unix time, or leave it out."
    )
    one = make_message(1)
    batch = {"messages": [one, {**one, "text": 3, "role": 4}, {**one, "id": ""}, {"id": "m4", "sender_id": "ann"}]}
    answer = await http.post("/messages", json=batch, headers={"Accept-Language": "zh"})
    assert answer.json()["detail"].split("；另外，") == [
        "messages[1] 有误：text 是 3，应为：字符串",
        "role 是 4，应为：user, assistant, system, tool 之一",
        "messages[2] 有误：id 是 ''，应为：非空字符串",
        "messages[3] 有误：缺少 room_id：请指明房间（也接受 group_id、chat_id、conversation_id）",
    ]
    both = {**one, "group_id": "other"}
    assert "name different rooms" in (await http.post("/messages", json=both)).json()["detail"]
    assert (await http.get("/rooms")).json()["rooms"] == []


async def test_a_strategy_of_the_callers_own_is_known_by_its_name(make_message):
    async def first(gatherer, target, options):
        return (await gatherer.recent(target, 10))[:1]

    async with (
        roomlore.open("sqlite://", strategies={"first": Strategy(first)}, background=False) as lore,
        httpx.AsyncClient(transport=httpx.ASGITransport(create_app(lore)), base_url="http://127.0.0.1") as http,
    ):
        await http.post("/messages", json={"messages": [make_message(number) for number in (1, 2, 3, 4)]})
        built = await http.post("/context", json={"room_id": "tea", "strategy": "first"})
        assert [one["message"]["id"] for one in built.json()["messages"]] == ["m1"]
        assert (await http.patch("/rooms/tea/settings", json={"strategy": "first"})).status_code == 200
        unknown = await http.post("/context", json={"room_id": "tea", "strategy": "second"})
        assert unknown.status_code == 422
        assert unknown.json()["detail"] == (
            "strategy is 'second'; it must be one of threaded, weighted, recent, first."
        )


async def test_a_context_is_rendered_if_asked_for(http, make_message):
    batch = [
        make_message(1, text="绿茶还是红茶？", sender_name="小雪"),
        make_message(2, text="Green.", sender_id="bot", role="assistant", reply_to="m1"),
        make_message(3, text="几度的水？", reply_to="m2", sender_name="小雪"),
    ]
    await http.post("/messages", json={"messages": [one | {"sent_at": "2026-05-01T09:00:00Z"} for one in batch]})
    asked = {"room_id": "tea", "message_id": "m3"}
    assert "rendered" not in (await http.post("/context", json=asked)).json()
    chat = (await http.post("/context", json={**asked, "render": "messages", "agent_id": "bot"})).json()
    assert [one["answers"] for one in chat["messages"]] == [None, "m1"]
    assert chat["rendered"] == [
        {"role": "user", "content": "[2026-05-01]\n[09:00] 小雪: 绿茶还是红茶？"},
        {"role": "assistant", "content": "Green."},
        {"role": "user", "content": "[09:00] 小雪 (回复 你 09:00): 几度的水？"},
    ]
    text = (await http.post("/context", json={**asked, "render": "prompt"})).json()["rendered"]
    assert text.splitlines()[2:] == [
        "[09:00] bot (回复 小雪 09:00): Green.",
        "[09:00] 小雪 (回复 bot 09:00): 几度的水？",
    ]
    small = (await http.post("/context", json={**asked, "max_tokens": 30, "render": "prompt"})).json()
    assert small["tokens"] <= 4
    assert [one["message"]["id"] for one in small["messages"]] == ["m2"]


async def test_a_context_that_takes_too_long_is_a_problem_where_nothing_simpler_may_be_given(make_message, monkeypatch):
    settings = roomlore.Settings(fallback_on_error=False, context_build_timeout_seconds=0.05)

    async def slow(*_):
        await asyncio.sleep(60)

    monkeypatch.setitem(STRATEGIES, "threaded", Strategy(slow))
    async with (
        roomlore.open("sqlite://", settings=settings) as lore,
        httpx.AsyncClient(transport=httpx.ASGITransport(create_app(lore)), base_url="http://localhost") as client,
    ):
        await client.post("/messages", json=make_message())
        answer = await client.post("/context", json={"room_id": "tea"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["type"] == "urn:roomlore:unavailable"
    assert "context_build_timeout_seconds (0.05)" in answer.json()["detail"]


async def test_edit_and_delete(http, make_message):
    await http.post("/messages", json=make_message())
    edited = await http.patch("/messages/tea/m1", json={"text": "better", "mentions": ["bob"]})
    assert (edited.json()["text"], edited.json()["mentions"]) == ("better", ["bob"])
    assert edited.json()["edited_at"]
    assert (await http.delete("/messages/tea/m1")).status_code == 204
    gone = [
        await http.get("/messages/tea/m1"),
        await http.patch("/messages/tea/m1", json={"text": "again"}),
    ]
    told = [(one.status_code, one.json()["type"], one.json()["detail"]) for one in gone]
    assert told == [(404, "urn:roomlore:not-found", "Message 'm1' of room 'tea' was deleted.")] * 2
    context = await http.post("/context", json={"room_id": "tea", "message_id": "m1"})
    assert (context.status_code, context.json()["detail"]) == (
        404,
        "Message 'm1' of room 'tea' was deleted.",
    )
    chinese = await http.get("/messages/tea/m1", headers={"Accept-Language": "zh"})
    assert chinese.json()["detail"] == "房间 'tea' 的消息 'm1' 已删除。"
    never = await http.delete("/messages/tea/m9")
    assert (never.status_code, never.json()["detail"]) == (404, "Room 'tea' has no message 'm9'.")


async def test_a_deleted_message_is_unknown_to_who_may_see_a_part_of_the_room(lore, http):
    await lore.rooms.set_kind("team", "private")
    await lore.rooms.set_members("team", [Member("ann"), Member("bob", joined_at=datetime(2030, 1, 1, tzinfo=UTC))])
    for number, year in ((1, 2029), (2, 2031)):
        sent = datetime(year, 1, 1, tzinfo=UTC)
        await lore.messages.add(Message(id=f"m{number}", room_id="team", sender_id="ann", text="hi", sent_at=sent))
    await lore.messages.delete("team", "m1")
    told = [(await http.get(f"/messages/team/{one}?viewer=user:bob")).json()["detail"] for one in ("m1", "m0")]
    assert told == ["Room 'team' has no message 'm1'.", "Room 'team' has no message 'm0'."]


ODD = ["/", "..", ".", "%2F", "a/../b", " ", "\u200b", "-", "//", "?", "#", "\n", "..%2F..", "茶/室"]


async def test_a_room_that_no_path_can_hold_is_named_in_the_query(lore):
    """Through a socket. The message has the same id as its room."""
    async with on_a_port(create_app(lore)) as url, httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as web:
        with all_cases() as case:
            for place, room_id in enumerate(ODD):
                with case(repr(room_id)):
                    await room_in_the_query(web, room_id)
                    links = re.findall(r'href="(/console/[^"]*)"', (await web.get("/console")).text)
                    rooms = [html.unescape(one) for one in links if one.startswith("/console/room?")]
                    leading = {parse_qs(urlsplit(one).query)["id"][0]: one for one in rooms}
                    assert set(leading) == set(ODD[: place + 1])
                    assert "Black tea" in (await web.get(leading[room_id])).text


async def room_in_the_query(web: httpx.AsyncClient, room_id: str) -> None:
    said = {"id": room_id, "room_id": room_id, "sender_id": "ann", "text": "Green tea is fine"}
    room, both = {"room_id": room_id}, {"room_id": room_id, "message_id": room_id}
    group, talk = {"group_id": room_id}, {"conversation_id": room_id}

    async def ask(method, path, params, **body):
        answer = await web.request(method, path, params=params, **body)
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    await ask("POST", "/messages", {}, json=said)
    assert (await ask("GET", "/rooms/-", room))["room_id"] == room_id
    assert (await ask("GET", "/messages/-/-", both))["message"]["id"] == room_id
    assert (await ask("PATCH", "/messages/-/-", both, json={"text": "Black tea"}))["text"] == "Black tea"
    assert len((await ask("GET", "/rooms/-/threads", room))["threads"]) == 1
    assert len((await ask("GET", "/rooms/-/threads/-", both))["entries"]) == 1
    own = await ask("PATCH", "/rooms/-/settings", room, json={"strategy": "recent"})
    assert (own["room_id"], own["settings"]["strategy"]["source"]) == (room_id, "room")
    assert (await ask("POST", "/context", {}, json=room))["room_id"] == room_id
    assert (await ask("POST", "/sessions/-/turns", talk, json={"user_query": "tea?"}))["conversation_id"] == room_id
    assert (await ask("GET", "/sessions/-", talk))["meta"]["conversation_id"] == room_id
    fact = await ask("POST", "/facts", {}, json={"scope": f"group:{room_id}", "statement": "x", "kind": "group"})
    listed = await ask("GET", "/memory/list/-", group)
    assert (listed["group_id"], listed["total"]) == (room_id, 1)
    assert (await ask("GET", "/facts/-", {"memory_id": fact["facts"][0]["memory_id"]}))["statement"] == "x"
    shown = await web.get("/console/room", params={"id": room_id})
    assert (shown.status_code, "Black tea" in shown.text) == (200, True)


async def test_an_id_in_the_path_counts_before_one_in_the_query(http, make_message):
    await http.post("/messages", json={"messages": [make_message(1), make_message(1, room_id="-")]})
    assert (await http.get("/rooms/tea", params={"room_id": "other"})).json()["room_id"] == "tea"
    assert (await http.get("/rooms/-")).json()["room_id"] == "-"
    assert (await http.get("/rooms/-", params={"room_id": "tea"})).json()["room_id"] == "tea"


async def test_any_id_can_be_asked_for(http):
    with all_cases() as case:
        for name in ("a/b", "a b", "100%", "a%2Fb", "你好", "?x=1#y", "a/../b", "m\\n", "x\0y", "threads", "+"):
            with case(repr(name)):
                await http.post("/messages", json={"id": name, "room_id": name, "sender_id": "ann", "text": "x"})
                coded = quote(name, safe="")
                entry = await http.get(f"/messages/{coded}/{coded}")
                assert entry.status_code == 200, entry.text
                assert (entry.json()["message"]["id"], entry.json()["message"]["room_id"]) == (name, name)
                assert (await http.get(f"/rooms/{coded}/threads")).json()["threads"][0]["thread_id"] == name
                assert (await http.get("/messages", params={"room_id": name})).json()["messages"][0]["id"] == name


async def test_a_lone_surrogate_survives(http):
    body = b'{"id": "m1", "room_id": "tea", "sender_id": "ann", "text": "broken \\ud83d"}'
    sent = await http.post("/messages", content=body, headers={"Content-Type": "application/json"})
    assert sent.status_code == 200
    assert (await http.get("/messages/tea/m1")).json()["message"]["text"] == "broken \ud83d"


def as_json(content: bytes) -> dict:
    return {"content": content, "headers": {"Content-Type": "application/json"}}


DEEP = b'{"id": "m", "room_id": "r", "sender_id": "s", "metadata": {"a": ' + b"[" * 40 + b"]" * 40 + b"}}"
BAD = [
    ("POST", "/messages", as_json(b""), 400, "not JSON"),
    ("POST", "/messages", as_json(b"{"), 400, "not JSON"),
    ("POST", "/messages", as_json(b'{"a": NaN}'), 400, "NaN is no JSON value"),
    ("POST", "/messages", as_json(b'{"a": 1e999}'), 400, "out of range"),
    ("POST", "/messages", as_json(b'{"a": ' + b"9" * 5000 + b"}"), 400, "not JSON"),
    ("POST", "/messages", as_json(b'{"a": "\xff"}'), 400, "not UTF-8"),
    ("POST", "/messages", as_json(DEEP), 422, "nested deeper than 32 levels"),
    ("POST", "/messages", as_json(b"[" * 50_000 + b"]" * 50_000), 422, "nested"),
    ("POST", "/messages", {"content": b"{}"}, 415, "Content-Type: application/json"),
    ("POST", "/messages", {"content": b"{}", "headers": {"Content-Type": "text/plain"}}, 415, "application/json"),
    ("POST", "/messages", {"json": []}, 422, "must be a JSON object"),
    ("POST", "/messages", {"json": {}}, 422, "id is missing"),
    ("POST", "/messages", {"json": {"messages": {}}}, 422, "A batch is"),
    ("POST", "/messages", {"json": {"room_id": "tea", "messages": []}}, 422, "room_id belongs in each message"),
    ("POST", "/messages", {"json": {"messages": [{"id": "a"}]}}, 422, "messages[0]: room_id is missing"),
    ("POST", "/messages", {"json": {"messages": [], "on_conflict": "report"}}, 422, "belongs in the address"),
    ("POST", "/messages?on_conflict=maybe", {"json": {"messages": []}}, 422, "on_conflict"),
    (
        "POST",
        "/messages",
        {"json": {"id": "m", "room_id": "r", "sender_id": "s", "txt": "x"}},
        422,
        "unknown field 'txt'",
    ),
    (
        "POST",
        "/messages",
        {"json": {"id": "m", "room_id": "r", "sender_id": "s", "text": "x" * 20_001}},
        422,
        "max_text_chars",
    ),
    (
        "POST",
        "/messages",
        {"json": {"id": "m", "room_id": "r", "sender_id": "s", "text": "x" * 200_000}},
        413,
        "max_body_bytes",
    ),
    ("GET", "/messages", {}, 422, "room_id is missing"),
    ("GET", "/messages?room_id=nowhere", {}, 404, "'nowhere'"),
    ("GET", "/messages?room_id=tea&limit=201", {}, 422, "limit is 201"),
    ("GET", "/messages?room_id=tea&limit=0", {}, 422, "limit"),
    ("GET", "/messages?room_id=tea&after=-1", {}, 422, "after"),
    ("GET", f"/messages?room_id=tea&after={2**63}", {}, 422, "after"),
    ("GET", "/messages/tea/nothing", {}, 404, "'nothing'"),
    ("PATCH", "/messages/tea/nothing", {"json": {"text": "x"}}, 404, ""),
    ("PATCH", "/messages/tea/m1", {"json": {}}, 422, "at least one of text"),
    ("PATCH", "/messages/tea/m1", {"json": {"text": 1}}, 422, "text"),
    ("DELETE", "/messages/tea/nothing", {}, 404, "'nothing'"),
    ("DELETE", "/messages/nowhere/m1", {}, 404, "'nowhere'"),
    ("POST", "/context", {"json": {"room_id": "nowhere"}}, 404, "'nowhere'"),
    ("POST", "/context", {"json": {"room_id": "tea", "message_id": "nothing"}}, 404, "'nothing'"),
    ("POST", "/context", {"json": {"room_id": "tea", "strategy": "clever"}}, 422, "threaded, weighted, recent"),
    ("POST", "/context", {"json": {"room_id": "tea", "max_messages": 0}}, 422, "max_messages"),
    ("POST", "/context", {"json": {"room_id": "tea", "max_mesages": 1}}, 422, "max_mesages"),
    ("POST", "/context", {"json": {"room_id": "tea", "max_tokens": 0}}, 422, "max_tokens"),
    ("POST", "/context", {"json": {"room_id": "tea", "render": "poem"}}, 422, "'messages' or 'prompt'"),
    ("POST", "/context", {"json": {}}, 422, "room_id"),
    ("POST", "/context", {"json": 3}, 422, "JSON object"),
    ("GET", "/context/nothing", {}, 404, "'nothing'"),
    ("POST", "/context/nothing/feedback", {"json": {"score": 1}}, 404, "'nothing'"),
    ("POST", "/context/nothing/feedback", {"json": {"score": 1.5}}, 422, "score"),
    ("POST", "/context/nothing/feedback", {"json": {}}, 422, "Give a text, a score"),
    ("POST", "/context/nothing/response", {"json": {"text": "x"}}, 404, "'nothing'"),
    ("GET", "/rooms/nowhere", {}, 404, "'nowhere'"),
    ("GET", "/rooms/nowhere/threads", {}, 404, "'nowhere'"),
    ("GET", "/rooms/tea/threads/nothing", {}, 404, "'nothing'"),
    ("GET", "/rooms/nowhere/settings", {}, 404, "'nowhere'"),
    ("PATCH", "/rooms/nowhere/settings", {"json": {"strategy": "recent"}}, 404, "'nowhere'"),
    ("PATCH", "/rooms/tea/settings", {"json": []}, 422, "Give settings by name"),
    ("PATCH", "/rooms/tea/settings", {"json": {"port": 1}}, 422, "'port'"),
    ("GET", "/nothing/here", {}, 404, "/openapi.json"),
    ("PUT", "/messages", {"json": {}}, 405, "/openapi.json"),
    ("GET", "/messages/tea/", {}, 404, ""),
]


async def test_bad_input_is_a_problem_that_says_what_to_do(http, make_message):
    await http.post("/messages", json=make_message())
    with all_cases() as case:
        for method, path, body, status, says in BAD:
            with case(method, path, body):
                answer = await http.request(method, path, **body)
                problem = answer.json()
                assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
                assert set(problem) == {"type", "title", "status", "detail", "instance", "request_id"}
                assert problem["status"] == status
                assert problem["instance"] == path.partition("?")[0]
                assert problem["request_id"] == answer.headers["x-request-id"]
                assert says in problem["detail"]


async def test_a_body_is_measured_while_it_streams(http):
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 10_000
            yield b" " * 10_000

    answer = await http.post("/messages", content=endless(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert sent <= 200_000


async def test_a_batch_has_a_limit(http, make_message):
    answer = await http.post("/messages", json={"messages": [make_message(n) for n in range(51)]})
    assert answer.status_code == 422
    assert "at most 50" in answer.json()["detail"]


@pytest.mark.parametrize("character", ["a", "你"])
async def test_a_text_of_a_mebibyte_is_taken_and_not_one_character_more(make_message, character):
    async with (
        roomlore.open("sqlite://") as lore,
        httpx.AsyncClient(transport=httpx.ASGITransport(create_app(lore)), base_url="http://localhost") as client,
    ):
        text = character * 1_048_576
        assert (await client.post("/messages", json=make_message(1, text=text))).status_code == 200
        assert (await client.get("/messages/tea/m1")).json()["message"]["text"] == text
        refused = await client.post("/messages", json=make_message(2, text=text + character))
        assert refused.status_code == 422
        assert "the limit is 1048576 (setting max_text_chars)" in refused.json()["detail"]


async def test_an_app_opens_its_own_store_when_it_starts(make_message):
    app = create_app(roomlore.Settings(database_url="sqlite:///own.db"))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        await client.post("/messages", json=make_message())
    async with roomlore.open("own.db") as lore:
        assert (await lore.rooms.get("tea")).messages == 1


async def test_a_client_that_goes_away_is_no_error(app, capfd):
    answered = []
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": "/messages", "raw_path": b"/messages",
        "root_path": "", "query_string": b"", "scheme": "http", "server": ("localhost", 80), "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }  # fmt: skip
    coming = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(coming)

    async def send(event):
        answered.append(event)

    await app(scope, receive, send)
    assert answered[0]["status"] == 400
    assert "request failed" not in "".join(capfd.readouterr())


def all_errors(kind=errors.RoomloreError):
    yield kind
    for below in kind.__subclasses__():
        yield from all_errors(below)


def test_every_error_has_a_status():
    assert set(all_errors()) == set(problems.STATUS)
    for kind, status in problems.STATUS.items():
        assert problems.status_of(kind()) == status
        assert 400 <= status < 600


async def test_health_and_a_database_that_is_gone(http, lore, monkeypatch):
    assert (await http.get("/health/live")).json() == {"status": "ok"}
    assert (await http.get("/health/ready")).json() == {"status": "ok"}

    async def gone() -> None:
        raise errors.StorageUnavailable("The database is away; start it.")

    monkeypatch.setattr(lore.storage, "ping", gone)
    answer = await http.get("/health/ready")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["detail"] == "The database is away; start it."
    assert (await http.get("/health/live")).status_code == 200


async def test_every_method_of_a_path_is_named_where_another_is_used(http):
    methods = {
        "/messages": "GET, POST", "/messages/tea/m1": "DELETE, GET, PATCH", "/rooms/tea/settings": "GET, PATCH",
        "/facts/f1": "DELETE, GET, PATCH", "/health/live": "GET", "/mcp": "POST",
    }  # fmt: skip
    answers = {path: await http.request("TRACE", path) for path in methods}
    assert {path: answer.headers.get("allow") for path, answer in answers.items()} == methods
    assert {answer.status_code for answer in answers.values()} == {405}


@pytest.fixture(scope="module")
def document():
    """The document as a service of 200 entries to a page answers it."""

    async def asked() -> dict:
        async with (
            roomlore.open("sqlite://", settings=roomlore.Settings(max_page=200)) as lore,
            httpx.AsyncClient(transport=httpx.ASGITransport(create_app(lore)), base_url="http://localhost") as client,
        ):
            return (await client.get("/openapi.json")).json()

    return asyncio.run(asked())


def test_openapi_says_who_may_ask_and_what_is_needed(document):
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    needed = {
        (path, parameter["name"])
        for path, operations in document["paths"].items()
        for operation in operations.values()
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and parameter["required"]
    }
    assert needed == {
        ("/messages/search", "q"), ("/facts", "scope"), ("/memory/search/{group_id}", "q"),
        ("/memory/as-of/{group_id}", "at"), ("/memory/diff/{group_id}", "from"),
            ("/messages", "room_id"), ("/rooms/{room_id}/headings", "message_id"),
        ("/memory/{memory_id}/share", "with"),
    }  # fmt: skip
    assert document["paths"]["/health/live"]["get"]["security"] == [{}]
    assert document["paths"]["/rooms"]["get"]["security"] == [{"key": []}, {}]
    (limit,) = [one for one in document["paths"]["/rooms"]["get"]["parameters"] if one["name"] == "limit"]
    assert limit["schema"]["anyOf"][0]["maximum"] == 200


async def test_a_time_of_editing_that_cannot_be_read_is_refused(http, make_message):
    with all_cases() as case:
        for edited_at in ("rubbish", "2024-13-01", True):
            with case(edited_at):
                answer = await http.post("/messages", json=make_message(edited_at=edited_at))
                assert answer.status_code == 422
                assert "edited_at" in answer.json()["detail"]


async def test_a_database_that_takes_no_writes_is_not_ready(http, lore):
    async with lore.storage.outside() as connection:
        await connection.run("PRAGMA query_only = ON")
    answer = await http.get("/health/ready")
    assert answer.status_code == 503
    assert "readonly" in answer.json()["detail"]
    assert (await http.get("/health/live")).status_code == 200


async def test_an_unforeseen_error_shows_nothing_of_itself(http, lore, monkeypatch, capfd):
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("somebody's secret words")

    monkeypatch.setattr(lore.rooms, "page", broken)
    answer = await http.get("/rooms", headers={"X-Request-Id": "trace-1"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "trace-1")
    assert "secret" not in answer.text
    told = capfd.readouterr()
    assert "ZeroDivisionError" in told.out + told.err
    assert "secret" not in told.out + told.err


async def test_a_strange_request_id_is_replaced(http):
    answer = await http.get("/health/live", headers={"X-Request-Id": "a b\tc"})
    assert answer.headers["x-request-id"].isalnum()


async def test_every_line_of_a_request_has_its_id(http, lore, monkeypatch, capfd):
    async def says(**_):
        logging.getLogger("roomlore.anywhere").warning(
            "something is odd: %s", "No room.", extra={"room": "茶室", "why": "No room."}
        )
        return []

    logs.configure(form="json", level="info")
    monkeypatch.setattr(lore.rooms, "page", says)
    await http.get("/rooms?after=secret-words", headers={"X-Request-Id": "trace-2"})
    told = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["event"], line["request_id"]) for line in told] == [
        ("something is odd", "trace-2"), ("request", "trace-2"),
    ]  # fmt: skip
    assert (told[0]["level"], told[0]["logger"], told[0]["room"]) == ("warning", "roomlore.anywhere", "茶室")
    assert told[0]["why"] == "No room.", "the reason has a place of its own"
    assert (told[1]["method"], told[1]["route"], told[1]["status"]) == ("GET", "/rooms", 200)
    assert "secret-words" not in json.dumps(told)


async def test_metrics_have_the_names_of_the_specification(http, make_message):
    await http.post("/messages", json={"messages": [make_message(1), make_message(2)]})
    await http.post("/context", json={"room_id": "tea"})
    answer = await http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    for name in (
        "avg_context_build_time_ms", "context_cache_hit_rate", "avg_relevance_score", "avg_context_message_count",
        "token_savings_rate", "contexts_built_per_hour", "unique_groups_served", "user_satisfaction_score",
        "context_effectiveness_rate", "degradation_rate", "error_rate",
    ):  # fmt: skip
        assert f"roomlore_{name} " in answer.text
    assert "roomlore_contexts_built_per_hour 1.0" in answer.text
    assert "roomlore_messages_added_total 2.0" in answer.text


def test_openapi_names_every_path(document):
    assert set(document["paths"]) == {
        "/models", "/jobs", "/jobs/{job_id}", "/jobs/{job_id}/retry", "/chat/sse",
        "/facts", "/facts/{memory_id}", "/facts/{memory_id}/history", "/recall", "/messages",
        "/messages/search", "/messages/{room_id}/{message_id}", "/context",
        "/context/{context_id}", "/index", "/context/{context_id}/response", "/context/{context_id}/feedback",
        "/usage", "/usage/report", "/usage/export", "/rooms", "/rooms/{room_id}",
        "/rooms/{room_id}/threads", "/rooms/{room_id}/threads/{message_id}", "/rooms/{room_id}/settings",
        "/rooms/{room_id}/digest", "/rooms/{room_id}/read", "/rooms/{room_id}/headings",
        "/rooms/{room_id}/audience", "/rooms/{room_id}/corrections", "/messages/{room_id}/{message_id}/link",
        "/sessions", "/sessions/{conversation_id}", "/sessions/{conversation_id}/state",
        "/sessions/{conversation_id}/context", "/sessions/{conversation_id}/turns",
        "/sessions/{conversation_id}/checkpoint", "/sessions/{conversation_id}/reset",
        "/sessions/{conversation_id}/checkpoints",
        "/memory/evolve/{group_id}", "/memory/evolution/{evolution_id}", "/memory/list/{group_id}",
        "/memory/search/{group_id}", "/memory/history/{memory_id}", "/memory/changes/{group_id}",
        "/memory/as-of/{group_id}", "/memory/diff/{group_id}", "/memory/blame/{memory_id}", "/memory/{memory_id}",
        "/memory/{memory_id}/restore", "/memory/{memory_id}/strength", "/memory/revert/{evolution_id}",
        "/memory/{memory_id}/share", "/memory/{memory_id}/visible", "/rooms/{room_id}/visible",
        "/privacy/forget", "/privacy/verify", "/health/live", "/health/ready", "/metrics",
    }  # fmt: skip
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (method, path)
            assert operation["responses"]["4XX"], (method, path)
    assert "{" in json.dumps(document["paths"]["/messages"]["post"]["requestBody"])


ZH = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}
TOLD_IN_CHINESE = [
    ("GET", "/rooms/none", None, 404, "没有房间 'none'；收到第一条消息时自动创建。"),
    ("GET", "/nowhere", None, 404, "这个路径不存在；/openapi.json 列出所有路径。"),
    ("DELETE", "/rooms", None, 405, "这个路径不支持这个方法；支持的方法见 /openapi.json。"),
    ("GET", "/messages?room_id=tea&lmit=3", None, 422, "这里没有参数 'lmit'；是不是 limit？"),
    ("GET", "/facts", None, 422, "缺少 scope：请说明是谁的记忆，写成 user:<id>、agent:<id> 或 group:<id>。"),
    (
        "GET",
        "/facts?scope=anna",
        None,
        422,
        "范围的写法是 group:<id>、user:<id> 或 agent:<id>，不是 'anna'；请写成 'group:anna' 或 'user:anna'。",
    ),
    ("POST", "/context", {}, 422, "缺少 room_id。"),
    ("POST", "/context", {"room_id": "none"}, 404, "没有房间 'none'；收到第一条消息时自动创建。"),
    (
        "POST",
        "/context",
        {"room_id": "tea", "viewer": "user:anna"},
        422,
        "请求体里没有字段 'viewer'；它要写在地址的问号之后。",
    ),
    ("POST", "/context", {"room_id": "tea", "message_id": 5}, 422, "message_id 必须是文本。"),
    (
        "POST",
        "/messages",
        {"id": "m1", "room_id": "tea", "sender_id": "anna", "text": "another text"},
        409,
        "已有 1 条消息以不同内容存储，或在这批中出现了两次，例如 'm1'；没有添加任何消息。要修改消息请编辑它；"
        "要添加其余消息请用 on_conflict=report。",
    ),
]


async def test_a_problem_is_told_in_the_language_of_the_request(http, make_message):
    await http.post("/messages", json=make_message())
    with all_cases() as case:
        for method, path, body, status, detail in TOLD_IN_CHINESE:
            with case(method, path, body):
                await told_in_both_languages(http, method, path, body, status, detail)


async def told_in_both_languages(http, method, path, body, status, detail):
    chinese = await http.request(method, path, json=body, headers=ZH)
    english = await http.request(method, path, json=body, headers={"Accept-Language": "de, en;q=0.5, zh;q=0.1"})
    assert (chinese.status_code, chinese.json()["detail"]) == (status, detail)
    assert (chinese.headers["content-language"], english.headers["content-language"]) == ("zh", "en")
    assert chinese.headers["vary"] == english.headers["vary"] == "Accept-Language"
    assert english.json()["detail"] == (await http.request(method, path, json=body)).json()["detail"] != detail
    for field in ("type", "status", "instance"):
        assert chinese.json()[field] == english.json()[field]
    assert chinese.json()["title"] == text_of(english.json()["title"], "zh") != english.json()["title"]


async def test_several_wrong_values_are_told_in_chinese(http):
    answer = await http.post("/context", json={"message_id": 5, "rom_id": "tea"}, headers=ZH)
    assert answer.json()["detail"] == "缺少 room_id。message_id 必须是文本。没有字段 'rom_id'；是不是 room_id？"
    answer = await http.post("/context", json={"room_id": "tea", "max_messages": -1, "max_tokens": "many"}, headers=ZH)
    assert answer.json()["detail"] == "max_messages 不能小于 1。max_tokens 必须是整数。"


async def test_a_parameter_in_the_body_is_answered_with_where_it_belongs(http, make_message):
    wrong = {"room_id": "tea", "viewer": "user:anna"}
    told = [(await http.post(path, json=wrong)).json()["detail"] for path in ("/context", "/privacy/forget")]
    assert "There is no field 'viewer' in the body; it belongs in the address, after a question mark." in told[0]
    assert "There is no field 'viewer'; " in told[1]
    conflict = await http.post("/messages", json={**make_message(), "on_conflict": "report"})
    assert (conflict.status_code, "as in ?on_conflict=report" in conflict.json()["detail"]) == (422, True)


def test_the_document_has_the_routes_that_a_program_adds(app):
    app.openapi_schema = None

    @app.get("/mine")
    async def mine() -> str:
        return "mine"

    assert {"/mine", "/messages"} <= app.openapi()["paths"].keys()


async def test_a_problem_without_a_chinese_text_is_in_english(http):
    tool = {"type": "function", "function": {"name": "no name"}}
    message = {"id": "m1", "room_id": "tea", "sender_id": "ann", "text": "Hi"}
    answer = await http.post("/chat/sse", json={"message": message, "agent_id": "bot", "tools": [tool]}, headers=ZH)
    assert (answer.status_code, answer.headers["content-language"]) == (422, "en")
    assert answer.json()["title"] == "The input cannot be used as it is"


def test_every_title_of_a_problem_has_a_chinese_text():
    assert [kind.title for kind in problems.KINDS if text_of(kind.title, "zh") == kind.title] == []


async def test_protocols_of_others_keep_their_english(http):
    answer = await http.post("/v1/chat/completions", json={}, headers=ZH)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].isascii()
