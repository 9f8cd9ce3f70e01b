"""Forgetting a person, and checking what is stored, over HTTP."""

import asyncio

import pytest

from evolution_rig import CHINESE, talk
from roomlore.core.errors import StorageUnavailable
from roomlore.services.privacy import MessageEraser
from roomlore.surfaces.long_work import LongWork
from roomlore_server.http import privacy_routes

U1 = {"user_id": "u1"}


@pytest.fixture
async def known(lore):
    """A room where u1 spoke, and what is known of u1."""
    await talk(lore, CHINESE, range(1, 7))
    return await lore.memories.add("user:u1", "喜欢绿茶")


async def test_forgetting_asks_first(http, lore, known):
    refused = await http.post("/privacy/forget", json=U1)
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:roomlore:invalid-input")
    for part in (
        "confirm",
        "Forgetting 'u1' would remove or change",
        "messages of the person: 2,",
        "memories that are retired: 1",
    ):
        assert part in refused.json()["detail"]
    chinese = await http.post("/privacy/forget", json=U1, headers={"Accept-Language": "zh"})
    assert "遗忘 'u1' 会删除或修改：" in chinese.json()["detail"]
    assert "此人的消息: 2" in chinese.json()["detail"]
    assert (await lore.memories.get(known.memory_id)).statement == "喜欢绿茶"


async def test_a_dry_run_changes_nothing_and_a_confirmed_one_is_done(http, lore, known):
    would = (await http.post("/privacy/forget", json=U1 | {"dry_run": True, "confirm": True})).json()
    assert (would["success"], would["dry_run"], would["places"]["messages"]) == (True, True, 2)
    assert await lore.memories.count("user:u1") == 1
    done = await http.post("/privacy/forget", json=U1 | {"confirm": True})
    assert done.status_code == 200, done.text
    told = done.json()
    assert (told["success"], told["dry_run"], told["complete"], told["left"]) == (True, False, True, [])
    assert await lore.memories.count("user:u1") == 0
    stayed = (await http.get("/messages", params={"room_id": "g"})).json()["messages"]
    assert {one["sender_id"] for one in stayed} == {"u0", "u2"}
    again = (await http.post("/privacy/forget", json=U1 | {"dry_run": True})).json()
    assert again["places"] == {}


async def test_an_id_that_nobody_has_is_said_to_be_none(http, known):
    for more in ({"dry_run": True}, {"confirm": True}):
        told = (await http.post("/privacy/forget", json={"user_id": "u11", **more})).json()
        assert (told["found"], told["message"].startswith("Nothing of 'u11' is here.")) == (False, True)
    asked = await http.post("/privacy/forget", json={"user_id": "u11"}, headers={"Accept-Language": "zh"})
    assert (asked.status_code, asked.json()["detail"].startswith("这里没有 'u11' 的任何内容。")) == (404, True)
    there = (await http.post("/privacy/forget", json=U1 | {"dry_run": True})).json()
    assert (there["found"], there["message"]) == (True, "")


@pytest.mark.parametrize(
    "body", [{}, {"user_id": ""}, {"user_id": "u1", "confirm": "yes"}, {"user": "u1"}, []], ids=str
)
async def test_what_cannot_be_forgotten_is_refused(http, lore, known, body):
    assert (await http.post("/privacy/forget", json=body)).status_code == 422
    assert await lore.memories.count("user:u1") == 1


async def test_what_holds_together_is_checked(http, known):
    for query in ("", "?group_id=g", "?group_id=user%3Au1"):
        told = (await http.get(f"/privacy/verify{query}")).json()
        assert (told["success"], told["sound"], told["faults"]) == (True, True, []), query
    assert (await http.get("/privacy/verify?group_id=")).status_code == 422


async def test_only_an_administrator_counts_over_all_rooms(connect, lore, known):
    _, key = await lore.keys.create("other", scopes=("read", "write"))
    async with connect(key=key) as client:
        assert (await client.get("/privacy/verify")).status_code == 403
        for body in (U1, U1 | {"dry_run": True}, U1 | {"confirm": True}):
            answer = await client.post("/privacy/forget", json=body)
            assert answer.status_code == 403
            assert "lacks the scope admin" in answer.json()["detail"]
    assert await lore.memories.count("user:u1") == 1


async def test_another_tenant_forgets_its_own(connect, lore, known):
    _, key = await lore.for_tenant("other").keys.create("theirs", scopes=("admin",))
    async with connect(key=key) as client:
        told = (await client.post("/privacy/forget", json=U1 | {"confirm": True})).json()
        assert (told["success"], told["places"]) == (True, {})
    assert await lore.memories.count("user:u1") == 1


async def test_what_takes_long_goes_on_and_is_waited_for(http, lore, known, monkeypatch):
    begun, may_end, erase = [], asyncio.Event(), MessageEraser.erase

    async def slow(its, person, tally) -> None:
        begun.append(person.user_id)
        await may_end.wait()
        await erase(its, person, tally)

    monkeypatch.setattr(MessageEraser, "erase", slow)
    monkeypatch.setattr(privacy_routes, "_MAX_WAITED", 0.01)
    for _ in range(2):
        answer = await http.post("/privacy/forget", json=U1 | {"confirm": True})
        assert (answer.status_code, answer.json()["status"]) == (202, "running")
        assert await lore.privacy.is_being_forgotten("u1"), "it is recorded before it is answered"
    (job,) = (await http.get("/jobs", params={"kind": "forgetting"})).json()["jobs"]
    assert job["status"] in ("waiting", "running")
    assert "u1" not in str(job)
    monkeypatch.setattr(privacy_routes, "_MAX_WAITED", 60.0)
    may_end.set()
    told = (await http.post("/privacy/forget", json=U1 | {"confirm": True})).json()
    assert (told["complete"], told["places"]["messages"], begun) == (True, 2, ["u1"])
    assert (await http.get(f"/jobs/{job['job_id']}")).json()["status"] == "done"
    assert await lore.memories.count("user:u1") == 0


async def test_long_work_that_fails_tells_who_waits_and_can_be_asked_for_again():
    work = LongWork()

    async def fails() -> None:
        raise StorageUnavailable

    async def does() -> str:
        return "done"

    with pytest.raises(StorageUnavailable):
        await work.wait("name", fails, seconds=60)
    assert await work.wait("name", does, seconds=60) == "done"


async def test_work_under_way_is_counted_by_how_its_name_begins():
    work, may_end = LongWork(), asyncio.Event()
    for name in (
        ("count", "茶", "安"),
        ("count", "茶", "ann"),
        ("count", "tea", "ann"),
        ("forget", "茶", "安"),
        "count",
    ):
        assert await work.wait(name, may_end.wait, seconds=0) is None
    assert [work.under_way(*one) for one in (("count", "茶"), ("count",), ("c",), ("count", "茶", "安", "x"))] == [
        2,
        3,
        0,
        0,
    ]
    may_end.set()
    assert await work.wait(("count", "茶", "安"), may_end.wait, seconds=60)
    async with work.ending():
        assert await work.wait("count", may_end.wait, seconds=60)
    assert work.under_way() == 0


async def test_long_work_ends_with_the_server():
    work, ended = LongWork(), []

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async with work.ending():
        assert await work.wait("name", hangs, seconds=0.01) is None
    assert ended == [True]
