"""Facts over HTTP."""

import json

import httpx
import pytest

import roomlore
from roomlore import Settings
from roomlore.core.memory.memory import MemoryKind
from roomlore_server.http import create_app
from roomlore_testkit.case_table import all_cases

TEA = {"scope": "user:anna", "statement": "Likes green tea"}


async def add(http, **fields):
    answer = await http.post("/facts", json=TEA | fields)
    assert answer.status_code == 200, answer.text
    return answer.json()["facts"][0]


async def test_a_fact_goes_round(http):
    source = {"room_id": "茶", "message_id": "m/1"}
    await http.post("/messages", json={"id": "m/1", "room_id": "茶", "sender_id": "anna"})
    made = await add(http, statement="对猫过敏", confidence=0, category="健康", tags=["x", "x"], sources=[source])
    assert (made.pop("outcome"), made["confidence"], made["tags"], made["sources"]) == ("added", 0.0, ["x"], [source])
    assert (made.pop("notes"), made.pop("people_meant")) == ([], [])
    assert (await http.get(f"/facts/{made['memory_id']}")).json() == made
    assert (await http.get("/facts", params={"scope": "user:anna"})).json() == {
        "facts": [made],
        "total": 1,
        "next": None,
    }
    same = {"outcome": "unchanged", "notes": [], "people_meant": []}
    assert (await add(http, statement=" 对猫过敏", sources=[source])) == made | same
    for_all = await add(http, statement="对猫过敏")
    assert for_all["outcome"] == "added", "what one room heard keeps nothing from all others"


async def test_several_at_once(http):
    batch = [
        TEA,
        TEA | {"statement": "喜欢咖啡"},
        {"scope": "agent:bot", "statement": "is polite", "kind": "group"},
        TEA,
    ]
    answer = await http.post("/facts", json={"facts": batch})
    assert [one["outcome"] for one in answer.json()["facts"]] == ["added", "added", "added", "unchanged"]
    assert (await http.get("/facts?scope=agent:bot")).json()["total"] == 0, "a fact unless told"
    shown = (await http.get("/facts?scope=agent:bot&kind=group&kind=fact")).json()
    assert [one["statement"] for one in shown["facts"]] == ["is polite"]


async def test_an_id_with_other_content_is_a_conflict(http):
    await add(http, memory_id="f1")
    assert (await add(http, memory_id="f1"))["outcome"] == "unchanged"
    answer = await http.post(
        "/facts", json={"facts": [TEA | {"statement": "new"}, TEA | {"memory_id": "f1", "kind": "group"}]}
    )
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:roomlore:conflict")
    assert (await http.get("/facts?scope=user:anna")).json()["total"] == 1


async def test_a_change_leaves_what_it_does_not_name(http):
    made = await add(http, confidence=0.5, category="drink")
    path = f"/facts/{made['memory_id']}"
    for sent, kept in (
        ({"confidence": 0}, 0.0),
        ({"category": None, "statement": "likes oolong"}, 0.0),
        ({"confidence": None}, None),
        ({"tags": ["a"], "reason": "因为"}, None),
    ):
        answer = await http.patch(path, json=sent)
        assert (answer.status_code, answer.json()["confidence"]) == (200, kept), answer.text
    now = answer.json()
    assert (now["statement"], now["category"], now["tags"], now["version"]) == ("likes oolong", "drink", ["a"], 5)
    assert now["change_summary"] == "因为"
    assert (await http.get(path)).json() == now, "any version's id will do"
    versions = (await http.get(f"{path}/history")).json()["versions"]
    assert [one["version"] for one in versions] == [1, 2, 3, 4, 5]
    assert versions[-1] == now
    stale = await http.patch(path, json={"confidence": 1, "expected": made["memory_id"]})
    assert (stale.status_code, now["memory_id"] in stale.json()["detail"]) == (409, True)


async def test_a_deleted_fact_stays_in_its_history(http):
    made = await add(http, memory_id="a/b ?")
    path = "/facts/a%2Fb%20%3F"
    assert (await http.delete(path, params={"expected": "other"})).status_code == 409
    for _ in range(2):
        assert (await http.delete(path, params={"reason": "stale"})).status_code == 204
    gone = (await http.get(path)).json()
    assert (gone["status"], gone["change_summary"], gone["statement"]) == ("deprecated", "stale", made["statement"])
    assert (await http.get("/facts?scope=user:anna")).json()["facts"] == []
    assert (await http.get("/facts?scope=user:anna&status=all")).json()["facts"] == [gone]
    assert (await http.patch(path, json={"confidence": 1})).status_code == 409


async def test_pages(http):
    await http.post("/facts", json={"facts": [TEA | {"statement": str(n)} for n in range(5)]})
    seen, offset = [], 0
    while offset is not None:
        page = (await http.get(f"/facts?scope=user:anna&limit=2&offset={offset}")).json()
        assert page["total"] == 5
        seen += [one["statement"] for one in page["facts"]]
        offset = page["next"]
    assert sorted(seen) == list("01234")
    assert len(set(seen)) == 5
    assert (await http.get("/facts?scope=user:anna&offset=99")).json() == {"facts": [], "total": 5, "next": None}


NO_FACTS = [
    (TEA | {"confidence": 1.5}, 422, "confidence"),
    (TEA | {"confidence": True}, 422, "confidence"),
    (TEA | {"confidence": "0.5"}, 422, "confidence"),
    (TEA | {"statment": "x"}, 422, "statment"),
    (TEA | {"statement": " "}, 422, "empty"),
    (TEA | {"statement": "茶" * 4_001}, 422, "4000"),
    (TEA | {"scope": "anna"}, 422, "user:<id>"),
    (TEA | {"kind": "long"}, 422, "kind"),
    (TEA | {"memory_id": "\x00"}, 422, "NUL"),
    (TEA | {"sources": [{"room_id": "r"}]}, 422, "message_id"),
    (TEA | {"sources": [{"room_id": "r", "message_id": "gone"}]}, 422, "no message 'gone' of room 'r'"),
    (TEA | {"tags": ["x" * 65]}, 422, "64"),
    ({"facts": []}, 422, "facts"),
    ({"facts": [TEA, TEA | {"confidence": 2}]}, 422, "facts.1.confidence must"),
    ({"facts": [TEA], "scope": "user:anna"}, 422, "scope"),
    ([TEA], 422, "object"),
    ({}, 422, "scope"),
]


async def test_what_is_no_fact_says_what_to_mend(http):
    with all_cases() as case:
        for body, status, said in NO_FACTS:
            with case(body):
                answer = await http.post("/facts", json=body)
                assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.text
                assert answer.headers["content-type"] == "application/problem+json"
                assert (await http.get("/facts?scope=user:anna&status=all")).json()["total"] == 0


async def test_what_is_no_change_is_refused(http):
    made = await add(http)
    with all_cases() as case:
        for body in ({}, {"expected": "x"}, {"statement": None}, {"confidence": 2}, {"scope": "user:bob"}, []):
            with case(body):
                assert (await http.patch(f"/facts/{made['memory_id']}", json=body)).status_code == 422


@pytest.mark.parametrize(
    "query", ["", "?scope=", "?scope=anna", "?scope=user:a&kind=x", "?scope=user:a&status=x", "?scope=user:a&offset=-1"]
)
async def test_what_cannot_be_listed_is_refused(http, query):
    answer = await http.get(f"/facts{query}")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:roomlore:invalid-input")


async def test_nothing_is_found_where_nothing_is(http):
    for method, path in (("GET", "/facts/x"), ("DELETE", "/facts/x"), ("GET", "/facts/x/history")):
        assert (await http.request(method, path)).status_code == 404
    assert (await http.patch("/facts/x", json={"confidence": 0})).status_code == 404


@pytest.mark.parametrize("text", ["a\x00b", "\x1a0", "‮x", "e\u0301 👨‍👩‍👧‍👦"])
async def test_odd_characters_survive(http, lore, text):
    content = json.dumps(TEA | {"statement": text, "category": text, "tags": [text]}).encode()
    answer = await http.post("/facts", content=content, headers={"Content-Type": "application/json"})
    made = answer.json()["facts"][0]
    assert (made["statement"], made["category"], made["tags"]) == (text, text, [text])
    [kept] = await lore.memories.page("user:anna", kinds=[MemoryKind.FACT])
    assert kept.statement == text


async def test_half_a_character_is_refused(http):
    content = json.dumps(TEA | {"statement": "\ud800 lone"}).encode()
    answer = await http.post("/facts", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("statement must")


async def test_a_day_counts_to_its_end_in_the_zone_of_the_room():
    async with roomlore.open("sqlite://", settings=Settings(time_zone="Asia/Shanghai")) as lore:
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            made = await add(http, valid_from="2024-05-01", valid_until="2024-05-01")
            later = (await http.patch(f"/facts/{made['memory_id']}", json={"valid_until": "2024/05/02"})).json()
            exact = (await http.patch(f"/facts/{made['memory_id']}", json={"valid_until": "2024-05-02T00:00Z"})).json()
    assert (made["valid_from"], made["valid_until"]) == ("2024-04-30T16:00:00+00:00", "2024-05-01T16:00:00+00:00")
    assert later["valid_until"] == "2024-05-02T16:00:00+00:00"
    assert exact["valid_until"] == "2024-05-02T00:00:00+00:00"


async def test_what_has_ended_is_for_who_asks_for_the_past(http):
    made = await add(http, owner="anna", said_by=["ben"], valid_from="2024-05-01", valid_until="2024-05-20T12:00+02:00")
    assert (made["owner"], made["said_by"]) == ("anna", ["ben"])
    assert (made["valid_from"], made["valid_until"]) == ("2024-05-01T00:00:00+00:00", "2024-05-20T10:00:00+00:00")
    path, fact = "/memory/search/user:anna?q=green+tea&threshold=0", f"/facts/{made['memory_id']}"
    asked = {"scopes": ["user:anna"], "messages": []}
    for status, total in (("active", 0), ("ended", 1), ("deprecated", 0), ("all", 1)):
        assert (await http.get(f"/facts?scope=user:anna&status={status}")).json()["total"] == total
        assert (await http.get(f"/memory/list/user:anna?status={status}")).json()["total"] == total
    assert (await http.get(path)).json()["results"] == []
    (found,) = (await http.get(f"{path}&include_ended=true")).json()["results"]
    assert found["valid_until"] == made["valid_until"]
    assert (await http.post("/recall", json=asked)).json()["facts"] == []
    assert len((await http.post("/recall", json=asked | {"include_ended": True})).json()["facts"]) == 1
    back = (await http.patch(fact, json={"valid_until": None})).json()
    assert (back["version"], back["valid_from"], back["valid_until"]) == (2, made["valid_from"], None)
    assert len((await http.get(path)).json()["results"]) == 1
    refused = await http.patch(fact, json={"valid_until": "soon"})
    assert "valid_until: 'soon' is no time; give a day" in refused.json()["detail"]
    assert (refused.status_code, "2024-05-01" in refused.text) == (422, True)
