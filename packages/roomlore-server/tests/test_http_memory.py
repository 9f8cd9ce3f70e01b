"""Memories over HTTP: evolutions, lists, search, the past, and going back."""

import asyncio
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import httpx
import pytest

import roomlore
from evolution_rig import CHINESE, both, create, delete, keep, lines, opened, remember, talk, update
from roomlore import MemoryKind, Message
from roomlore_server.http import create_app
from roomlore_testkit import FrozenClock
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.model_server import Fails, ModelServer, Says

SECONDS = 60


@pytest.fixture
async def server():
    async with ModelServer(default="nothing") as running:
        yield running


@pytest.fixture
async def lore(server):
    async with opened(server, seconds=SECONDS) as there:
        yield there


def client(lore) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1)), base_url="http://127.0.0.1"
    )


@pytest.fixture
async def http(lore):
    async with client(lore) as asking:
        yield asking


async def ok(http, method: str, path: str, **more) -> dict:
    answer = await http.request(method, path, **more)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["success"] is True
    return told


# Evolving.


@both
async def test_an_evolution_answers_as_the_design_says(http, lore, server, said):
    server.script = [
        lines(
            keep("m3"),
            update("m1", said.better[0], "c1"),
            update("m2", said.better[1], "c2"),
            create(said.new[0], "c3"),
        )
        + "\n"
        + lines(delete("m9")),
        "[]",
    ]
    old = await remember(lore, said.known)
    await talk(lore, said, range(1, 13))
    told = await ok(http, "POST", "/memory/evolve/g?days=2")
    assert told["group_id"] == "g"
    assert told["stats"] == {"kept": 3, "updated": 2, "created": 1, "deleted": 0}
    assert datetime.fromisoformat(told["evolution_time"]).utcoffset() == timedelta(0)
    first, second, third = told["changes"]
    assert {name: first[name] for name in first.keys() - {"new_id", "timestamp"}} == {
        "action": "update",
        "old_id": old[0].memory_id,
        "memory_id": first["new_id"],
        "old_statement": said.known[0],
        "new_statement": said.better[0],
        "change_reason": "more",
        "version": 2,
        "number": 6,
        "evolution_id": told["evolution_id"],
        "actor": "first/tiny",
        "doubtful": "No cited message speaks of it.",
    }
    assert second["old_id"] == old[1].memory_id
    assert (third["action"], third["statement"], third["version"]) == ("create", said.new[0], 1)
    assert not {"old_id", "old_statement", "new_statement"} & third.keys()
    assert (told["mode"], told["model"], told["message"], told["messages"], told["remaining"]) == (
        "llm",
        "first/tiny",
        "",
        12,
        0,
    )
    assert [one["line"] for one in told["rejected"]] == [5]
    assert await ok(http, "GET", f"/memory/evolution/{told['evolution_id']}") == told


async def test_a_group_that_nobody_knows_is_told_of(http):
    told = await ok(http, "POST", "/memory/evolve/%E8%8C%B6")
    assert (told["message"], told["changes"]) == (
        "There is no room '茶' yet; a room appears with its first message.",
        [],
    )


async def test_messages_older_than_was_asked_for_are_told_of(http, lore):
    long_ago = lore.now() - timedelta(days=30)
    await lore.messages.add(Message(id="1", room_id="茶", sender_id="ann", text="绿茶", sent_at=long_ago))
    told = await ok(http, "POST", "/memory/evolve/%E8%8C%B6?days=2")
    assert told["message"] == "There are no messages of the last 2 days. Older ones are there: ask for more days."
    assert (told["mode"], told["model"]) == ("none", ""), "nobody read anything"
    asked = await http.post("/memory/evolve/%E8%8C%B6?days=2", headers={"Accept-Language": "zh-CN"})
    assert asked.json()["message"] == "最近 2 天没有消息，更早的有：请把 days 调大。"


async def test_where_nothing_is_new_nothing_is_done(http, lore, server):
    server.script = [lines(create("大家喝绿茶", "c1"))]
    await lore.messages.add(Message(id="1", room_id="茶", sender_id="ann", text="绿茶"))
    await ok(http, "POST", "/memory/evolve/%E8%8C%B6")
    told = await ok(http, "POST", "/memory/evolve/%E8%8C%B6")
    assert (told["group_id"], told["scope"], told["changes"]) == ("茶", "group:茶", [])
    assert told["message"] == "There are no new messages."
    assert told["stats"] == {"kept": 0, "updated": 0, "created": 0, "deleted": 0}
    asked = await http.get(f"/memory/evolution/{told['evolution_id']}")
    assert asked.status_code == 404


async def test_an_evolution_that_takes_longer_is_told_where_to_ask(http, lore, server):
    server.script = [Says(text=lines(create(CHINESE.new[0], "c1")), after=0.5)]
    await talk(lore, CHINESE, range(1, 4))
    answer = await http.post("/memory/evolve/g?wait=0")
    told = answer.json()
    assert (answer.status_code, told["success"], told["status"] in ("waiting", "running")) == (202, True, True)
    assert answer.headers["location"] == f"/jobs/{quote(told['job_id'], safe='')}"
    assert (await http.get(f"/memory/evolution/{told['evolution_id']}")).status_code == 404
    assert (await lore.jobs.wait(told["job_id"], SECONDS)).status == "done"
    assert (await http.get(answer.headers["location"])).json()["status"] == "done"
    done = await ok(http, "GET", f"/memory/evolution/{told['evolution_id']}")
    assert [one["statement"] for one in done["changes"]] == [CHINESE.new[0]]


async def test_a_server_that_does_no_work_still_hands_it_in(tmp_path, server):
    url = f"sqlite:///{tmp_path}/a.db"
    async with opened(server, url=url, background=False) as lore, client(lore) as http:
        answer = await http.post("/memory/evolve/g?wait=0")
        assert (answer.status_code, answer.json()["status"]) == (202, "waiting")


@pytest.mark.usefixtures("quick_retries")
async def test_a_model_that_does_not_answer_is_a_problem(http, lore, server):
    server.default = Fails(status=400)
    await talk(lore, CHINESE, range(1, 4))
    answer = await http.post("/memory/evolve/g?mode=llm")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json"), answer.text
    assert (await ok(http, "GET", "/memory/list/g"))["total"] == 0


async def test_without_a_model_rules_do():
    async with opened() as lore, client(lore) as http:
        await talk(lore, CHINESE, range(1, 4))
        refused = await http.post("/memory/evolve/g?mode=llm")
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:roomlore:unavailable")
        told = await ok(http, "POST", "/memory/evolve/g")
        assert (told["mode"], told["model"]) == ("offline", "")


async def test_what_no_evolution_can_be_asked_for(http):
    with all_cases() as case:
        for query in ("days=0", "days=-1", "days=nan", "days=9999", "mode=gpt", "wait=31", "wait=-1"):
            with case(query):
                answer = await http.post(f"/memory/evolve/g?{query}")
                assert (answer.status_code, answer.json()["type"]) == (422, "urn:roomlore:invalid-input"), answer.text


async def test_what_an_agent_remembers_does_not_evolve(http):
    answer = await http.post("/memory/evolve/agent%3Abot")
    assert (answer.status_code, "user:anna" in answer.json()["detail"]) == (422, True)


# Looking.


async def test_a_list_has_the_newest_versions(http, lore):
    known = await remember(lore, CHINESE.known)
    await lore.memories.update(known[0].memory_id, statement=CHINESE.better[0], reason="因为")
    await lore.memories.delete(known[1].memory_id)
    told = await ok(http, "GET", "/memory/list/g?limit=2")
    assert (told["group_id"], told["total"], len(told["memories"])) == ("g", 4, 2)
    first = told["memories"][0]
    assert (first["statement"], first["version"], first["parent_id"], first["status"]) == (
        CHINESE.better[0],
        2,
        known[0].memory_id,
        "active",
    )
    assert first["strength"] == 1.0
    assert 0.99 < first["strength_now"] <= 1.0
    assert first["change_summary"] == "因为"
    rest = await ok(http, "GET", "/memory/list/g?limit=2&offset=2")
    assert not {one["memory_id"] for one in rest["memories"]} & {one["memory_id"] for one in told["memories"]}
    assert (await ok(http, "GET", "/memory/list/group%3Ag?status=deprecated"))["total"] == 1
    assert (await ok(http, "GET", "/memory/list/g?status=all"))["total"] == 5
    assert (await ok(http, "GET", "/memory/list/g?kind=fact"))["total"] == 0
    assert (await ok(http, "GET", "/memory/list/nobody"))["memories"] == []


async def test_what_is_known_of_a_person_is_a_scope(http, lore):
    await lore.memories.add("user:安娜/1", "喜欢绿茶")
    told = await ok(http, "GET", f"/memory/list/{quote('user:安娜/1', safe='')}")
    assert (told["group_id"], told["scope"], told["total"]) == ("user:安娜/1", "user:安娜/1", 1)


async def test_a_history_has_every_version(http, lore):
    first = await lore.memories.add("group:g", "群组讨论动漫", kind=MemoryKind.GROUP)
    second = await lore.memories.update(first.memory_id, statement="每周五讨论动漫", reason="明确了时间")
    for known in (first, second):
        told = await ok(http, "GET", f"/memory/history/{known.memory_id}")
        assert (told["memory_id"], told["current_version"]) == (second.memory_id, 2)
        assert [(one["version"], one["memory_id"], one["parent_id"]) for one in told["history"]] == [
            (1, first.memory_id, None),
            (2, second.memory_id, first.memory_id),
        ]
        assert told["history"][1]["change_summary"] == "明确了时间"
    await lore.memories.restore(first.memory_id)
    told = await ok(http, "GET", f"/memory/history/{second.memory_id}")
    assert (told["memory_id"], told["current_version"]) == (first.memory_id, 1)


async def test_the_past_of_a_group_that_is_not_there_is_not_found(http, lore):
    await lore.messages.add([Message(id="m1", room_id="quiet", sender_id="ann", text="Hi")])
    await remember(lore, CHINESE.known)
    with all_cases() as case:
        for path in ("changes/{}", "as-of/{}?at=2024-05-01", "diff/{}?from=2024-05-01"):
            for known in ("g", "quiet", "user:ann"):
                with case(path, known):
                    assert (await http.get(f"/memory/{path.format(known)}")).status_code == 200
            for unknown, says in (("nix", "no room 'nix'"), ("user:nix", "nobody has this id")):
                with case(path, unknown):
                    answer = await http.get(f"/memory/{path.format(unknown)}")
                    assert (answer.status_code, answer.json()["type"]) == (404, "urn:roomlore:not-found")
                    assert says in answer.json()["detail"]


async def test_changes_come_in_order_and_in_pages(http, lore):
    known = await remember(lore, CHINESE.known)
    await lore.memories.update(known[0].memory_id, statement=CHINESE.better[0], reason="更准确")
    await lore.memories.strength(known[1].memory_id, 0.5, "half sure")
    await lore.memories.delete(known[2].memory_id, "过时")
    await lore.memories.restore(known[2].memory_id)
    told = await ok(http, "GET", "/memory/changes/g")
    assert [one["action"] for one in told["changes"]] == ["create"] * 5 + ["update", "strength", "delete", "restore"]
    update_, strength, gone, back = told["changes"][5:]
    assert (update_["old_statement"], update_["new_statement"], update_["change_reason"]) == (
        CHINESE.known[0],
        CHINESE.better[0],
        "更准确",
    )
    assert (strength["strength"], strength["statement"]) == (0.5, CHINESE.known[1])
    assert (gone["old_id"], gone["old_statement"]) == (known[2].memory_id, CHINESE.known[2])
    assert (back["new_id"], back["statement"]) == (known[2].memory_id, CHINESE.known[2])
    today = datetime.fromisoformat(told["changes"][0]["timestamp"])
    assert told["period"] == f"{today - timedelta(days=7):%Y-%m-%d} to {today:%Y-%m-%d}"
    seen, after = [], 0
    while after is not None:
        page = await ok(http, "GET", f"/memory/changes/g?limit=4&after={after}")
        seen += page["changes"]
        after = page["next"]
    assert seen == told["changes"]
    seen, before = [], ""
    while before is not None:
        page = await ok(http, "GET", f"/memory/changes/g?limit=4&newest_first=true{before and f'&before={before}'}")
        seen += page["changes"]
        before = page["next"]
    assert seen == told["changes"][::-1]


@pytest.mark.parametrize(
    ("asked", "needed"), [("newest_first=true&after=3", "`before`"), ("before=3", "newest_first=true")]
)
async def test_a_page_of_changes_in_the_other_direction_is_refused(http, asked, needed):
    answer = await http.get(f"/memory/changes/g?{asked}")
    assert answer.status_code == 422
    assert needed in answer.json()["detail"]
    chinese = await http.get(f"/memory/changes/g?{asked}", headers={"Accept-Language": "zh"})
    assert "翻页" in chinese.json()["detail"]


async def test_changes_older_than_the_days_asked_for_are_left_out(http, lore):
    await remember(lore, CHINESE.known)
    await asyncio.sleep(0.05)
    assert (await ok(http, "GET", "/memory/changes/g?days=0.0000001"))["changes"] == []


async def test_what_was_remembered_then(http, lore):
    first = await lore.memories.add("group:g", "Likes green tea", kind=MemoryKind.GROUP)
    then = lore.now().isoformat()
    await lore.memories.update(first.memory_id, statement="Likes black tea", reason="said so")
    added = await lore.memories.add("group:g", "周五聚餐", kind=MemoryKind.GROUP)
    told = await ok(http, "GET", "/memory/as-of/g", params={"at": then})
    assert (told["total"], [one["statement"] for one in told["memories"]]) == (1, ["Likes green tea"])
    assert told["memories"][0]["status"] == "active"
    found = await ok(http, "GET", "/memory/diff/g", params={"from": then})
    assert [one["memory_id"] for one in found["added"]] == [added.memory_id]
    (changed,) = found["changed"]
    assert [(one["became"], one["text"]) for one in changed["words"]] == [
        ("same", "Likes "),
        ("gone", "green"),
        ("new", "black"),
        ("same", " tea"),
    ]
    assert [one["change_reason"] for one in changed["changes"]] == ["said so"]
    assert (found["removed"], found["unchanged"]) == ([], 0)
    days = await http.get("/memory/diff/g?from=2024-05-02&to=2024-05-01", headers={"Accept-Language": "zh"})
    assert days.json()["detail"] == "to（'2024-05-01'）早于 from（'2024-05-02'）；请交换。"
    assert (await http.get("/memory/diff/g?from=2024-05-02&to=2024-05-02")).status_code == 200
    back = await http.get("/memory/diff/g", params={"from": lore.now().isoformat(), "to": then})
    assert back.status_code == 422


@pytest.mark.parametrize(
    ("asked", "at"),
    [
        ("yesterday", "2024-05-09T16:00"),
        ("昨天", "2024-05-09T16:00"),
        ("2024-05-08", "2024-05-08T16:00"),
        ("2024-05-10", "2024-05-10T09:30"),
        ("two hours ago", "2024-05-10T07:30"),
        ("2024-05-08T16:00:00", "2024-05-08T16:00"),
        ("2024-05-08T16:00:00+08:00", "2024-05-08T08:00"),
        ("1715184000", "2024-05-08T16:00"),
    ],
)
async def test_points_in_time_are_read_as_on_the_command_line(monkeypatch, asked, at):
    clock = FrozenClock(datetime(2024, 5, 10, 9, 30, tzinfo=UTC))
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: clock)
    settings = roomlore.Settings(database_url="sqlite://", time_zone="Asia/Shanghai")
    async with roomlore.open(settings=settings, background=False) as lore, client(lore) as http:
        await lore.memories.add("group:g", "茶")
        told = await ok(http, "GET", "/memory/as-of/g", params={"at": asked})
        assert told["at"] == f"{at}:00+00:00"
        found = await ok(http, "GET", "/memory/diff/g", params={"from": "2024-05-07", "to": asked})
        assert (found["start"], found["end"]) == ("2024-05-06T16:00:00+00:00", told["at"])
        for wrong in ("someday", "yesterday or today", "yesterday" + " " * 300):
            assert (await http.get("/memory/as-of/g", params={"at": wrong})).status_code == 422


async def test_a_time_is_needed_and_must_be_one(http):
    with all_cases() as case:
        for path in ("as-of/g", "as-of/g?at=someday", "diff/g", "diff/g?from=x", "diff/g?from=1&to=x"):
            with case(path):
                answer = await http.get(f"/memory/{path}")
                assert (answer.status_code, "2024-05-01" in answer.json()["detail"]) == (422, True)


@both
async def test_blame_goes_down_to_the_messages(http, lore, server, said):
    server.script = [lines(create(said.new[0], "c1", "c2")), lines(update("m1", f"{said.new[0]}; {said.new[1]}", "c1"))]
    for numbers in (range(1, 4), range(4, 6)):
        await talk(lore, said, numbers)
        told = await ok(http, "POST", "/memory/evolve/g")
    known = told["changes"][0]["new_id"]
    await lore.messages.delete("g", "c2")
    blamed = await ok(http, "GET", f"/memory/blame/{known}")
    assert blamed["memory_id"] == known
    second, first = blamed["versions"]
    assert [one["message_id"] for one in second["evidence"]] == ["c4"]
    assert second["evidence"][0]["message"]["text"] == said.says.format(4)
    assert [(one["message_id"], one["message"] is None) for one in first["evidence"]] == [("c1", False), ("c2", True)]
    assert first["change"]["action"] == "create"
    assert (second["evolution"]["evolution_id"], second["evolution"]["model"]) == (told["evolution_id"], "first/tiny")
    assert "raw_answer" not in second["evolution"]


# Going back.


async def test_an_evolution_is_taken_back(http, lore, server):
    server.script = [lines(update("m1", CHINESE.better[0], "c1"), create(CHINESE.new[0], "c2"), delete("m3"))]
    old = await remember(lore, CHINESE.known)
    await talk(lore, CHINESE, range(1, 4))
    evolved = await ok(http, "POST", "/memory/evolve/g")
    told = await ok(http, "POST", f"/memory/revert/{evolved['evolution_id']}?reason=wrong")
    assert {one["action"] for one in told["changes"]} == {"revert"}
    assert {one["undoes"] for one in told["changes"]} == {evolved["evolution_id"]}
    assert {one["change_reason"] for one in told["changes"]} == {"wrong"}
    now = await ok(http, "GET", "/memory/list/g")
    assert {one["memory_id"] for one in now["memories"]} == {one.memory_id for one in old}
    again = await ok(http, "POST", f"/memory/revert/{evolved['evolution_id']}", json={"reason": "twice"})
    assert (again["changes"], again["message"] != "") == ([], True)


async def test_what_was_changed_since_is_left(http, lore, server):
    server.script = [lines(update("m1", CHINESE.better[0], "c1"))]
    await remember(lore, CHINESE.known)
    await talk(lore, CHINESE, range(1, 4))
    evolved = await ok(http, "POST", "/memory/evolve/g")
    await lore.memories.update(evolved["changes"][0]["new_id"], statement="我改的")
    answer = await http.post(f"/memory/revert/{evolved['evolution_id']}")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:roomlore:conflict")


async def test_deleting_restoring_and_strength(http, lore):
    made = await lore.memories.add("group:g", "周五聚餐", kind=MemoryKind.GROUP, memory_id="a/茶")
    path = f"/memory/{quote('a/茶', safe='')}"
    assert (await http.delete(path, params={"expected": "other"})).status_code == 409
    for _ in range(2):
        gone = await ok(http, "DELETE", path, params={"reason": "过时"})
        assert (gone["memory_id"], gone["memory"]["status"], gone["memory"]["change_summary"]) == (
            made.memory_id,
            "deprecated",
            "过时",
        )
    assert (await http.put(f"{path}/strength", json={"strength": 0.5})).status_code == 409
    back = await ok(http, "PUT", f"{path}/restore")
    assert (back["memory_id"], back["memory"]["status"]) == (made.memory_id, "active")
    await ok(http, "DELETE", path)
    await ok(http, "PUT", f"{path}/restore", json={"reason": "仍然如此"})
    assert (await lore.memories.changes("group:g"))[-1].reason == "仍然如此"
    await ok(http, "DELETE", path)
    await ok(http, "PUT", f"{path}/restore?reason=here", json={"reason": "there"})
    assert (await lore.memories.changes("group:g"))[-1].reason == "here"
    assert (await http.put(f"{path}/restore", json={"raeson": "x"})).status_code == 422
    set_ = await ok(http, "PUT", f"{path}/strength", json={"strength": 0, "reason": "wrong"})
    assert (set_["memory"]["strength"], set_["memory"]["strength_now"]) == (0.0, 0.0)


async def test_what_no_strength_can_be(http, lore):
    await lore.memories.add("group:g", "茶", memory_id="f1")
    with all_cases() as case:
        for body in ({}, {"strength": 2}, {"strength": -0.1}, {"strength": "1"}, {"strength": True}, {"strong": 1}, []):
            with case(body):
                answer = await http.put("/memory/f1/strength", json=body)
                assert (answer.status_code, answer.json()["type"]) == (422, "urn:roomlore:invalid-input")
                assert (await lore.memories.get("f1")).strength == 1.0


# Who may do what.


async def test_nothing_is_found_where_nothing_is(http):
    for method, path in (
        ("GET", "history/x"),
        ("GET", "blame/x"),
        ("GET", "evolution/x"),
        ("DELETE", "x"),
        ("PUT", "x/restore"),
        ("POST", "revert/x"),
    ):
        answer = await http.request(method, f"/memory/{path}")
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:roomlore:not-found"), path
    assert (await http.put("/memory/x/strength", json={"strength": 1})).status_code == 404


async def test_another_tenant_sees_nothing(http, lore, server):
    server.script = [lines(create(CHINESE.new[0], "c1"))]
    await talk(lore, CHINESE, range(1, 4))
    evolved = await ok(http, "POST", "/memory/evolve/g")
    known = evolved["changes"][0]["new_id"]
    _, key = await lore.for_tenant("other").keys.create("theirs", scopes=("admin",))
    async with client(lore) as theirs:
        theirs.headers["Authorization"] = f"Bearer {key}"
        assert (await ok(theirs, "GET", "/memory/list/g"))["memories"] == []
        for method, path in (
            ("GET", "changes/g"),
            ("GET", "as-of/g?at=9999999999"),
            ("GET", f"history/{known}"),
            ("GET", f"blame/{known}"),
            ("DELETE", known),
            ("PUT", f"{known}/restore"),
            ("GET", f"evolution/{evolved['evolution_id']}"),
            ("POST", f"revert/{evolved['evolution_id']}"),
        ):
            assert (await theirs.request(method, f"/memory/{path}")).status_code == 404, path
    assert (await lore.memories.get(known)).status == "active"


async def test_a_key_that_reads_does_not_write(lore):
    await lore.memories.add("group:g", "茶", memory_id="f1")
    _, key = await lore.keys.create("reader", scopes=("read",))
    async with client(lore) as reading:
        reading.headers["Authorization"] = f"Bearer {key}"
        shown = {"viewer": "room:g"}
        await ok(reading, "GET", "/memory/list/g?viewer=room:g")
        for method, path, query in (
            ("POST", "evolve/g", {}),
            ("DELETE", "f1", shown),
            ("PUT", "f1/restore", shown),
            ("PUT", "f1/strength", shown),
            ("POST", "revert/x", {}),
        ):
            body = None if method == "DELETE" else {"strength": 0}
            asked = await reading.request(method, f"/memory/{path}", json=body, params=query)
            assert asked.status_code == 403, path
    assert (await lore.memories.get("f1")).status == "active"


async def test_an_evolution_that_forgetting_drops_is_a_conflict(http, lore, monkeypatch):
    """A regression: whoever waited for it was told that there is no such job."""
    await lore.messages.add([Message(id=str(n), room_id="g", sender_id="ann-77", text=f"tea {n}") for n in range(3)])
    begin = lore.memories.begin_evolution

    async def begin_and_forget(*given, **named):
        begun = await begin(*given, **named)
        await lore.jobs.wait(begun.job_id, 5)
        await lore.privacy.forget("ann-77")
        return begun

    monkeypatch.setattr(lore.memories, "begin_evolution", begin_and_forget)
    answer = await http.post("/memory/evolve/g?mode=offline&days=2")
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:roomlore:conflict")
    assert "ask again" in answer.json()["detail"]


async def test_a_reason_that_is_too_long_is_refused_also_where_the_query_has_one(lore, http):
    added = await lore.memories.add("user:ann", "Ann likes oolong tea")
    asked = {"params": {"reason": "short"}, "json": {"reason": "x" * 5_000}}
    answer = await http.put(f"/memory/{added.memory_id}/restore", **asked)
    assert (answer.status_code, "longer than" in answer.text) == (422, True)
