"""Requests with a key without the scope admin, over HTTP and MCP, tell nothing its viewer may not see: writing too."""

import httpx
import pytest

from audience_rig import heard_in, remember
from roomlore import Message, Source
from roomlore_server.http import create_app
from roomlore_testkit import START
from roomlore_testkit.case_table import all_cases

SECRET = "wants another job"
NUTS = {
    "scope": "user:ann",
    "statement": "allergic to nuts",
    "sources": [{"room_id": "team", "message_id": "team-ann"}],
}
TEAM = {"viewer": "room:team"}


@pytest.fixture
async def lore():
    async with heard_in({"dm": "ann", "team": "ann bo", "square": "ann eve"}, direct="dm") as opened:
        yield opened


@pytest.fixture
async def http(lore):
    """A client whose key may read and write."""
    _, key = await lore.keys.create("bot", scopes=("read", "write"))
    transport = httpx.ASGITransport(create_app(lore))
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def shape(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("detail", "")


async def test_a_change_into_the_words_of_a_hidden_memory_is_no_conflict(lore, http):
    nuts, hidden = await remember(lore, "allergic to nuts", "team"), await remember(lore, SECRET, "dm")
    answer = await http.patch(f"/facts/{nuts}", json={"statement": SECRET}, params=TEAM)
    assert answer.status_code == 200
    assert hidden not in answer.text


async def test_nor_is_one_said_in_the_same_room_after_the_person_left(lore, http):
    nuts = await remember(lore, "allergic to nuts", "team")
    await lore.rooms.remove_members("team", ["bo"])
    later = Message(id="later", room_id="team", sender_id="ann", text="x", sent_at=lore.now())
    await lore.messages.add(later)
    hidden = await lore.memories.add("user:ann", SECRET, sources=[Source("team", "later")])
    bo = {"viewer": "user:bo"}
    assert (await http.get(f"/facts/{hidden.memory_id}", params=bo)).status_code == 404
    answer = await http.patch(f"/facts/{nuts}", json={"statement": SECRET}, params=bo)
    assert answer.status_code == 200
    assert hidden.memory_id not in answer.text


async def test_a_restored_version_in_the_words_of_a_hidden_memory_is_no_conflict(lore, http):
    first = await remember(lore, SECRET, "team")
    second = (await lore.memories.update(first, statement="allergic to nuts")).memory_id
    hidden = await remember(lore, SECRET, "dm")
    assert hidden not in (first, second)
    answer = await http.put(f"/memory/{first}/restore", params=TEAM)
    assert answer.status_code == 200
    assert hidden not in answer.text


@pytest.mark.parametrize("message_id", ["dm-ann", "nothing"])
async def test_a_hidden_message_is_cited_like_one_that_is_not_there(lore, http, message_id):
    await remember(lore, SECRET, "dm")
    nuts = await remember(lore, "allergic to nuts", "team")
    cited = {"sources": [{"room_id": "dm", "message_id": message_id}]}
    added = await http.post("/facts", json={"scope": "user:ann", "statement": SECRET, **cited}, params=TEAM)
    changed = await http.patch(f"/facts/{nuts}", json=cited, params=TEAM)
    for answer in (added, changed):
        assert shape(answer) == (422, shape(answer)[1])
        assert f"There is no message '{message_id}' of room 'dm'" in shape(answer)[1]


async def test_what_the_viewer_saw_may_be_cited(lore, http):
    said = Message(id="m", room_id="team", sender_id="bo", text="x", sent_at=START)
    await lore.messages.add(said)
    cited = {"sources": [{"room_id": "team", "message_id": "m"}]}
    fact = {"scope": "user:bo", "statement": "likes tea", **cited}
    for viewer in ("room:team", "user:bo", "user:ann"):
        answer = await http.post("/facts", json=fact, params={"viewer": viewer})
        assert answer.status_code == 200, answer.text
    assert (await http.post("/facts", json=fact, params={"viewer": "user:eve"})).status_code == 422


async def test_an_added_fact_is_not_answered_with_a_hidden_one(lore, http):
    hidden = await remember(lore, SECRET, "dm")
    answer = await http.post("/facts", json={"scope": "user:ann", "statement": SECRET}, params=TEAM)
    assert answer.json()["facts"][0]["outcome"] == "added"
    assert hidden not in answer.text


ABOUT_WHAT_IS_HIDDEN = [
    ("GET", "/facts/{id}", None),
    ("GET", "/facts/{id}/history", None),
    ("GET", "/memory/history/{id}", None),
    ("PATCH", "/facts/{id}", {"statement": "x"}),
    ("PATCH", "/facts/{id}", {"statement": "x", "expected": "nothing"}),
    ("DELETE", "/facts/{id}", None),
    ("DELETE", "/facts/{id}?expected=nothing", None),
    ("DELETE", "/memory/{id}", None),
    ("PUT", "/memory/{id}/restore", None),
    ("PUT", "/memory/{id}/strength", {"strength": 0.5}),
    ("GET", "/messages/dm/dm-ann", None),
    ("PATCH", "/messages/dm/dm-ann", {"text": "x"}),
    ("DELETE", "/messages/dm/dm-ann", None),
    ("GET", "/messages?room_id=dm", None),
    ("GET", "/messages/search?room_id=dm&q=job", None),
    ("POST", "/context", {"room_id": "dm", "message_id": "dm-ann"}),
    ("GET", "/rooms/dm", None),
    ("GET", "/rooms/dm/threads", None),
    ("GET", "/rooms/dm/threads/dm-ann", None),
    ("GET", "/rooms/dm/settings", None),
    ("PATCH", "/rooms/dm/settings", {"strategy": "recent"}),
    ("GET", "/sessions/dm", None),
    ("GET", "/sessions/dm/checkpoints", None),
    ("POST", "/sessions/dm/context", {}),
    ("POST", "/sessions/dm/checkpoint", {"summary": "x"}),
    ("POST", "/sessions/dm/reset", None),
    ("PATCH", "/sessions/dm/state", {"mine": 1}),
]


async def test_what_is_hidden_is_answered_like_what_is_not_there(lore, http):
    hidden = await remember(lore, SECRET, "dm")
    await lore.sessions.create_session("dm")
    with all_cases() as case:
        for method, path, body in ABOUT_WHAT_IS_HIDDEN:
            with case(method, path, body):
                there = await http.request(method, path.format(id=hidden), params=TEAM | query(path), json=body)
                gone = path.replace("dm-ann", "x-ann").replace("/dm", "/xx").replace("room_id=dm", "room_id=xx")
                other = {**body, "room_id": "xx"} if body and "room_id" in body else body
                absent = await http.request(
                    method, gone.format(id="f" * len(hidden)), params=TEAM | query(gone), json=other
                )
                assert there.status_code == absent.status_code == 404
                masked = [
                    shape(one)[1].replace(hidden, "ID").replace("f" * len(hidden), "ID").replace("'xx'", "'dm'")
                    for one in (there, absent)
                ]
                assert masked[0].replace("dm-ann", "x-ann") == masked[1].replace("dm-ann", "x-ann")
                assert SECRET not in there.text


def query(path: str) -> dict[str, str]:
    """Return the parameters of a path, which httpx drops if it is given others."""
    return dict(httpx.URL(f"http://x{path}").params)


OVER_ALL_ROOMS = [
    ("GET", "/jobs"), ("GET", "/rooms"), ("GET", "/sessions"), ("GET", "/index"), ("GET", "/metrics"),
    ("GET", "/memory/changes/user:ann"), ("GET", "/memory/as-of/user:ann?at=2126-01-01"),
    ("GET", "/memory/diff/user:ann?from=2026-01-01"), ("GET", "/privacy/verify"),
    ("GET", "/privacy/verify?group_id=user:ann"), ("POST", "/memory/evolve/user:ann"),
]  # fmt: skip


async def test_what_counts_over_all_rooms_is_for_administrators(lore, http):
    await remember(lore, SECRET, "dm")
    with all_cases() as case:
        for method, path in OVER_ALL_ROOMS:
            with case(method, path):
                answer = await http.request(method, path)
                assert answer.status_code == 403
                assert "lacks the scope admin" in answer.text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/facts/{id}", {"tags": ["food"]}),
        ("PUT", "/memory/{id}/strength", {"strength": 0.5}),
        ("PUT", "/memory/{id}/restore", None),
        ("DELETE", "/memory/{id}", None),
        ("POST", "/facts", NUTS),
    ],
)
async def test_the_answer_to_a_change_tells_no_other_room(lore, http, method, path, body):
    nuts = await remember(lore, "allergic to nuts", "team")
    await lore.memories.share(nuts, "room:secret-board")
    answer = await http.request(method, path.format(id=nuts), params=TEAM, json=body)
    assert answer.status_code == 200, answer.text
    assert "secret-board" not in answer.text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/facts/{id}", {"statement": "x"}),
        ("PATCH", "/facts/{id}", {"statement": "fond of tea"}),
        ("DELETE", "/facts/{id}", None),
        ("PUT", "/memory/{id}/strength", {"strength": 0.5}),
    ],
)
async def test_what_was_only_shared_is_not_changed_and_confirms_no_guess(lore, http, method, path, body):
    hidden = await remember(lore, "fond of tea", "dm")
    shared = await remember(lore, SECRET, "dm")
    await lore.memories.share(shared, "room:team")
    answer = await http.request(method, path.format(id=shared), params=TEAM, json=body)
    assert answer.status_code == 403
    assert hidden not in answer.text


@pytest.mark.parametrize("guess", ["allergic to nuts", "something else"])
async def test_an_id_that_was_seen_once_does_not_tell_what_the_memory_says_now(lore, http, guess):
    known = await remember(lore, "allergic to nuts", "dm")
    await lore.memories.share(known, "room:team")
    assert (await http.get(f"/facts/{known}", params=TEAM)).status_code == 200
    await lore.memories.unshare(known, "room:team")
    now = (await lore.memories.update(known, statement=SECRET)).memory_id
    fact = {"memory_id": known, "scope": "user:ann", "statement": guess, "sources": []}
    answer = await http.post("/facts", json=fact, params=TEAM)
    assert answer.status_code == 409
    assert SECRET not in answer.text
    assert now not in answer.text


@pytest.mark.parametrize("guess", [SECRET, "想去柏林"])
@pytest.mark.parametrize("was_shared", [True, False])
async def test_nor_does_it_lead_to_a_guess_that_took_its_place(lore, http, guess, was_shared):
    """A fact for all takes the place of the same fact known to fewer, which would tell that the guess was right."""
    known = await remember(lore, "allergic to nuts" if was_shared else SECRET, "dm")
    if was_shared:
        await lore.memories.share(known, "room:team")
        await lore.memories.update(known, statement=SECRET)
    added = await http.post("/facts", json={"scope": "user:ann", "statement": guess}, params={"viewer": "user:bo"})
    assert added.json()["facts"][0]["evidence"] == []
    for method, path, body in (
        ("GET", "/facts/{id}", None),
        ("GET", "/v1/memories/{id}/", None),
        ("PATCH", "/facts/{id}", {"statement": "x"}),
        ("DELETE", "/facts/{id}", None),
    ):
        header = {"X-Roomlore-Viewer": "room:team"}
        answer = await http.request(method, path.format(id=known), params=TEAM, json=body, headers=header)
        assert answer.status_code == 404, path
    again = {"memory_id": known, "scope": "user:ann", "statement": "something else"}
    refused = await http.post("/facts", json=again, params=TEAM)
    assert shape(refused)[0] == 409
    assert added.json()["facts"][0]["memory_id"] not in refused.text


async def test_an_id_leads_to_what_its_memory_was_merged_into_if_all_of_it_is_seen(lore, http):
    known = await remember(lore, "allergic to nuts", "team")
    bo = {"viewer": "user:bo"}
    added = await http.post("/facts", json={"scope": "user:ann", "statement": "allergic to nuts"}, params=bo)
    new = added.json()["facts"][0]["memory_id"]
    assert new != known
    assert (await http.get(f"/facts/{known}", params=TEAM)).json()["memory_id"] == new


@pytest.mark.parametrize("statement", [SECRET, "想换工作"])
async def test_what_a_room_adds_without_a_message_was_said_there(lore, http, statement):
    """An agent that notes down a private talk must not bring it up in a group."""
    fact = {"scope": "user:ann", "statement": statement}
    for viewer, rooms in (("room:dm", ["dm"]), ("room:dm", ["dm"])):
        added = await http.post("/facts", json=fact, params={"viewer": viewer})
        assert [one["room_id"] for one in added.json()["facts"][0]["evidence"]] == rooms
    for viewer, total in (("room:dm", 1), ("user:ann", 1), ("room:team", 0), ("user:bo", 0), ("room:square", 0)):
        listed = await http.get("/facts", params={"scope": "user:ann", "viewer": viewer})
        assert listed.json()["total"] == total, viewer


async def test_what_a_room_says_otherwise_without_a_message_was_said_there(lore, http):
    """Changed in a private talk, a fact that others know stays for them what it was."""
    paris = await lore.memories.add("user:ann", "lives in Paris", sources=[Source("square", "square-ann")])
    tea = await lore.memories.add("user:ann", "likes tea")
    dm = {"viewer": "room:dm"}
    await http.patch(f"/facts/{paris.memory_id}", json={"statement": "搬到了柏林"}, params=dm)
    await http.patch(f"/facts/{tea.memory_id}", json={"tags": ["drinks"]}, params=TEAM)
    for viewer, known in (
        ("room:dm", {"搬到了柏林", "likes tea"}),
        ("user:ann", {"搬到了柏林", "likes tea"}),
        ("room:square", {"lives in Paris", "likes tea"}),
        ("user:bo", {"lives in Paris", "likes tea"}),
    ):
        listed = (await http.get("/facts", params={"scope": "user:ann", "viewer": viewer})).json()["facts"]
        assert {one["statement"] for one in listed} == known, viewer


async def test_the_person_shares_and_ends_it(lore, http):
    job = await remember(lore, "想换工作", "dm")
    shared = {"with": "room:team", "reason": "可以说了"}
    for viewer, status in (("user:bo", 404), ("room:team", 404), ("room:dm", 403), ("user:ann", 200)):
        answer = await http.put(f"/memory/{job}/share", json=shared, params={"viewer": viewer})
        assert answer.status_code == status, viewer
    assert (await http.get(f"/facts/{job}", params=TEAM)).json()["evidence"] == []
    ended = await http.delete(f"/memory/{job}/share", params={"with": "room:team", "viewer": "user:ann"})
    assert ended.json()["memory"]["shared_with"] == []
    assert (await http.get(f"/facts/{job}", params=TEAM)).status_code == 404
    assert [(one.action, one.reason) for one in await lore.memories.changes("user:ann")][1:] == [
        ("share", "可以说了"),
        ("share", ""),
    ]


async def test_a_person_shares_only_what_is_about_them(lore, http):
    nuts = await remember(lore, "allergic to nuts", "team")
    refused = await http.put(f"/memory/{nuts}/share", json={"with": "everyone"}, params={"viewer": "user:bo"})
    assert refused.status_code == 403
    assert (await lore.memories.get(nuts)).shared_with == ()
    wrong = await http.put(f"/memory/{nuts}/share", json={"with": "user:bo"}, params={"viewer": "user:ann"})
    assert wrong.status_code == 422


async def test_an_administrator_shares_and_sees_who_is_shown_what(lore, http):
    job = await remember(lore, "想换工作", "dm")
    paths = (f"/memory/{job}/visible", "/rooms/team/visible")
    for path in paths:
        assert (await http.get(path)).status_code == 403
    _, key = await lore.keys.create("platform", scopes=("admin",))
    http.headers["Authorization"] = f"Bearer {key}"
    assert (await http.get(paths[0])).json()["rooms"] == ["dm"]
    withheld = (await http.get(paths[1], params={"scope": "user:ann"})).json()["memories"][0]
    assert (withheld["shown"], withheld["reasons"][0]["kind"]) == (False, "unheard")
    await http.put(f"/memory/{job}/share", json={"with": "everyone"})
    assert (await http.get(paths[0])).json()["everyone"] is True
    assert (await http.get("/rooms/team/visible")).json()["memories"][0]["reasons"][0]["kind"] == "shared"
    assert (await http.get("/rooms/nowhere/visible")).status_code == 404
    assert (await http.get("/rooms/team/visible", params={"scope": ""})).status_code == 422


async def test_an_administrator_tells_who_can_see_a_room(lore):
    hidden = await remember(lore, SECRET, "dm")
    _, key = await lore.keys.create("platform", scopes=("admin",))
    transport, headers = httpx.ASGITransport(create_app(lore)), {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as admin:
        ann = {"person_id": "ann", "joined_at": "2025-01-01T00:00:00Z"}
        asked = {"kind": "private", "since": "2025-01-01", "members": [ann]}
        told = await admin.patch("/rooms/私聊/audience", json=asked)
        assert told.status_code == 200, told.text
        assert (told.json()["kind"], told.json()["complete"]) == ("private", True)
        assert told.json()["people"]["ann"]["stays"][0]["joined_at"].startswith("2025-01-01T00:00:00")
        shown = {"viewer": "room:私聊"}
        assert (await admin.get(f"/facts/{hidden}", params=shown)).status_code == 200
        moved = await admin.patch("/rooms/私聊/audience", json={"add": ["bo", "eve"], "remove": ["eve"]})
        assert moved.json() == (await admin.get("/rooms/私聊/audience")).json()
        assert (await admin.get(f"/facts/{hidden}", params=shown)).status_code == 404
        for wrong, why in (
            ({"kind": "public", "since": "2999-01-01"}, "to come"),
            ({"since": "2025-01-01"}, "give kind"),
            ({"kind": "secret"}, "kind"),
            ({"members": [""]}, "members"),
        ):
            answer = await admin.patch("/rooms/私聊/audience", json=wrong)
            assert (answer.status_code, why in answer.text) == (422, True), answer.text
        assert (await admin.get("/rooms/none/audience")).status_code == 404
