"""Seed 002, the routes below /memory with their bodies, the payload of a memory, the log, and the functions."""

import asyncio
import inspect
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from group_memory import GROUP, KNOWN, create, delete, evolving, jsonl, keep, remember, talk, update
from rig import command, held_clock, served

import roomlore
from qdrant_stand_in import QdrantStandIn
from roomlore import MemoryStatus
from roomlore_testkit.embedding import HashEmbedder
from roomlore_testkit.model_server import Asked, ModelServer

BETTER = "每周五晚上讨论新番动漫，偏好科幻题材"
NEW = "成员普遍从事前端开发工作"
WHY = "新讨论明确了偏好类型"
TALK = ["这周的新番怎么样？", "科幻题材最合胃口", "周五晚上继续聊新番", "我是做前端开发的", "我也是前端开发"]
PAYLOAD = {"memory_id", "statement", "version", "created_at", "updated_at", "parent_id", "change_summary", "status"}
OPTIONAL = {"tags", "strength"}


def at(text: str) -> datetime:
    """A time of an answer, which has its zone."""
    moment = datetime.fromisoformat(text)
    assert moment.utcoffset() == timedelta()
    return moment


@pytest.fixture
async def evolved():
    """A group of five memories whose evolution updates one and creates one: the client, and what evolve answered."""
    answer = jsonl(keep("m1"), update("m2", BETTER, "c2", "c3", reason=WHY), create(NEW, "c4", "c5", tags=["习惯"]))
    async with ModelServer([answer]) as server, evolving(server) as lore, served(lore) as http:
        await remember(lore, KNOWN)
        await talk(lore, TALK)
        response = await http.post(f"/memory/evolve/{GROUP}")
        assert response.status_code == 200
        yield http, response.json()


# 1. 触发记忆演进


async def test_evolve_answers_with_success_group_time_and_stats(evolved):
    _, body = evolved
    assert (body["success"], body["group_id"]) == (True, GROUP)
    assert abs(at(body["evolution_time"]) - datetime.now(UTC)) < timedelta(minutes=1)
    assert body["stats"] == {"kept": 4, "updated": 1, "created": 1, "deleted": 0}


async def test_evolve_tells_of_an_update_both_versions_and_the_reason(evolved):
    http, body = evolved
    change = next(one for one in body["changes"] if one["action"] == "update")
    assert (change["old_statement"], change["new_statement"]) == (KNOWN[1], BETTER)
    assert (change["change_reason"], change["version"]) == (WHY, 2)
    listed = (await http.get(f"/memory/list/{GROUP}")).json()["memories"]
    head = next(one for one in listed if one["statement"] == BETTER)
    assert (change["new_id"], change["old_id"]) == (head["memory_id"], head["parent_id"])


async def test_evolve_tells_of_a_create_its_statement_and_the_reason(evolved):
    _, body = evolved
    change = next(one for one in body["changes"] if one["action"] == "create")
    assert (change["statement"], change["version"]) == (NEW, 1)
    assert (change["change_reason"], "old_id" in change) == ("多次讨论中验证的稳定特征", False)
    assert change["new_id"] == change["memory_id"]


async def test_evolve_without_new_messages_says_so(evolved):
    http, _ = evolved
    again = await http.post(f"/memory/evolve/{GROUP}", headers={"Accept-Language": "zh"})
    assert again.status_code == 200
    assert again.json()["message"] == "没有新消息。"
    assert (again.json()["changes"], again.json()["success"]) == ([], True)


async def test_evolve_takes_days_in_the_query_and_no_body():
    async with (
        ModelServer(default=jsonl(create(BETTER, "c1"))) as server,
        evolving(server) as lore,
        served(lore) as http,
    ):
        await talk(lore, TALK[:3], ago=[6, 3, 0.1])
        assert (await http.post(f"/memory/evolve/{GROUP}?days=7")).json()["messages"] == 3
        await talk(lore, TALK[:3], ago=[6, 3, 0.1], group="other", first=11)
        assert (await http.post("/memory/evolve/other")).json()["messages"] == 1


async def test_an_evolution_that_takes_long_is_a_202_with_the_address_of_its_result():
    gate = asyncio.Event()

    async def slowly(_: Asked) -> str:
        await gate.wait()
        return jsonl(create(NEW, "c4", "c5"))

    async with ModelServer(slowly) as server, evolving(server) as lore, served(lore) as http:
        await talk(lore, TALK)
        begun = await http.post(f"/memory/evolve/{GROUP}?wait=0")
        body = begun.json()
        job = (await http.get(begun.headers["Location"])).json()
        assert (begun.status_code, job["job_id"]) == (202, body["job_id"])
        gate.set()
        assert (await lore.jobs.wait(body["job_id"])).status == "done"
        done = (await http.get(f"/memory/evolution/{body['evolution_id']}")).json()
        assert done["stats"] == {"kept": 0, "updated": 0, "created": 1, "deleted": 0}


@pytest.mark.parametrize("days", ["0", "-1", "many"])
async def test_evolve_refuses_days_that_are_no_number_above_zero(days):
    async with evolving() as lore, served(lore) as http:
        refused = await http.post(f"/memory/evolve/{GROUP}?days={days}")
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:roomlore:invalid-input")
        assert "days" in refused.json()["detail"]


# 2. 列出群组记忆


@pytest.fixture
async def many():
    """Twenty-five active memories and a deprecated one."""
    async with evolving() as lore, served(lore) as http:
        ids = await remember(lore, [f"约定{n}：发链接要写第{n}种简介" for n in range(26)])
        await lore.memories.delete(ids[0], "已经过时")
        yield http


async def test_list_shows_every_field_of_a_memory(evolved):
    http, _ = evolved
    body = (await http.get(f"/memory/list/{GROUP}")).json()
    assert (body["success"], body["group_id"], body["total"], len(body["memories"])) == (True, GROUP, 6, 6)
    head = next(one for one in body["memories"] if one["statement"] == BETTER)
    assert head.keys() >= PAYLOAD | OPTIONAL
    assert (head["version"], head["status"], head["change_summary"]) == (2, "active", WHY)
    assert (head["scope"], "group_id" in head) == (f"group:{GROUP}", False)
    assert at(head["created_at"]) <= at(head["updated_at"])
    assert 0 < head["strength"] <= 1
    made = next(one for one in body["memories"] if one["statement"] == NEW)
    assert (made["version"], made["parent_id"], made["tags"]) == (1, None, ["习惯"])


async def test_list_shows_twenty_active_memories_unless_asked_otherwise(many):
    body = (await many.get(f"/memory/list/{GROUP}")).json()
    assert (body["total"], len(body["memories"])) == (25, 20)
    assert {one["status"] for one in body["memories"]} == {"active"}


@pytest.mark.parametrize(("status", "total"), [("active", 25), ("deprecated", 1), ("all", 26)])
async def test_list_by_status(many, status, total):
    body = (await many.get(f"/memory/list/{GROUP}?status={status}&limit=100")).json()
    assert (body["total"], len(body["memories"])) == (total, total)


async def test_list_goes_on_by_limit_and_offset(many):
    pages = [
        (await many.get(f"/memory/list/{GROUP}?limit=10&offset={skip}")).json()["memories"] for skip in (0, 10, 20)
    ]
    assert [len(page) for page in pages] == [10, 10, 5]
    assert len({one["memory_id"] for page in pages for one in page}) == 25


# 3. 语义搜索记忆


async def test_search_answers_with_query_and_scored_results(evolved):
    http, _ = evolved
    body = (await http.get(f"/memory/search/{GROUP}", params={"q": "每周五晚上讨论新番动漫"})).json()
    assert (body["success"], body["query"]) == (True, "每周五晚上讨论新番动漫")
    first = body["results"][0]
    assert {"memory_id", "statement", "score", "version", "updated_at"} <= first.keys()
    assert (first["statement"], first["version"], 0.7 <= first["score"] <= 1) == (BETTER, 2, True)


async def test_search_needs_a_query(many):
    refused = await many.get(f"/memory/search/{GROUP}")
    assert (refused.status_code, refused.json()["detail"].startswith("q is missing")) == (422, True)


async def test_search_returns_five_unless_asked_otherwise(many):
    ask = {"q": "发链接要写简介", "threshold": 0}
    assert len((await many.get(f"/memory/search/{GROUP}", params=ask)).json()["results"]) == 5
    assert len((await many.get(f"/memory/search/{GROUP}", params={**ask, "limit": 8})).json()["results"]) == 8


async def test_search_leaves_out_what_scores_below_0_7_unless_asked_otherwise(evolved):
    http, _ = evolved
    ask = {"q": "前端开发"}
    usual = (await http.get(f"/memory/search/{GROUP}", params=ask)).json()["results"]
    every = (await http.get(f"/memory/search/{GROUP}", params={**ask, "threshold": 0})).json()["results"]
    assert [one["memory_id"] for one in usual] == [one["memory_id"] for one in every if one["score"] >= 0.7]
    assert len(every) > len(usual)


async def test_search_finds_nothing_deprecated(many):
    ask = {"q": "约定0：发链接要写第0种简介", "threshold": 0, "limit": 100}
    found = (await many.get(f"/memory/search/{GROUP}", params=ask)).json()["results"]
    assert len(found) == 25
    assert "约定0：发链接要写第0种简介" not in {one["statement"] for one in found}


# 4. 查看记忆演进历史


async def test_history_lists_every_version_from_the_first_with_its_parent():
    async with evolving() as lore, served(lore) as http:
        (first,) = await remember(lore, ["群组讨论动漫"])
        second = await lore.memories.update(first, statement=KNOWN[1], reason="明确了时间规律")
        third = await lore.memories.update(first, statement=BETTER, reason=WHY)
        body = (await http.get(f"/memory/history/{first}")).json()
        assert (body["success"], body["memory_id"], body["current_version"]) == (True, third.memory_id, 3)
        shown = [(v["version"], v["memory_id"], v["statement"], v["parent_id"]) for v in body["history"]]
        assert shown == [
            (1, first, "群组讨论动漫", None),
            (2, second.memory_id, KNOWN[1], first),
            (3, third.memory_id, BETTER, second.memory_id),
        ]
        assert [v["change_summary"] for v in body["history"][1:]] == ["明确了时间规律", WHY]
        assert at(body["history"][0]["created_at"]) <= at(body["history"][2]["updated_at"])


async def test_history_of_an_unknown_memory_is_a_404(many):
    missing = await many.get("/memory/history/nobody")
    assert (missing.status_code, missing.json()["type"]) == (404, "urn:roomlore:not-found")


# 5. 查看最近变更


async def test_changes_lists_what_was_done_with_reason_and_time(evolved):
    http, _ = evolved
    body = (await http.get(f"/memory/changes/{GROUP}")).json()
    today = datetime.now(UTC)
    assert (body["success"], body["group_id"]) == (True, GROUP)
    assert body["period"] == f"{today - timedelta(days=7):%Y-%m-%d} to {today:%Y-%m-%d}"
    assert [one["action"] for one in body["changes"]] == [*["create"] * 5, "update", "create"]
    update_ = body["changes"][5]
    told = {"old_statement": KNOWN[1], "new_statement": BETTER, "change_reason": WHY, "version": 2}
    assert {name: update_[name] for name in told} == told
    assert update_["memory_id"] == update_["new_id"]
    assert abs(at(update_["timestamp"]) - today) < timedelta(minutes=1)


async def test_changes_reach_back_seven_days_unless_asked_otherwise():
    with held_clock(datetime(2026, 3, 6, tzinfo=UTC)) as clock:
        async with evolving() as lore, served(lore) as http:
            await remember(lore, KNOWN[:1])
            clock.advance(8 * 86_400)
            await remember(lore, KNOWN[1:2])
            body = (await http.get(f"/memory/changes/{GROUP}")).json()
            assert (body["period"], len(body["changes"])) == ("2026-03-07 to 2026-03-14", 1)
            assert len((await http.get(f"/memory/changes/{GROUP}?days=9")).json()["changes"]) == 2


async def test_the_log_has_update_create_and_delete_and_never_keep():
    answers = [jsonl(keep("m1"), update("m1", BETTER, "c2", "c3")), jsonl(keep("m1")), jsonl(delete("m1", "c1"))]
    async with ModelServer(answers) as server, evolving(server) as lore, served(lore) as http:
        await remember(lore, KNOWN[1:2])
        for place, texts in enumerate((TALK, ["早上好"], ["每周五晚上不再讨论新番动漫了，科幻题材也不看了"])):
            await talk(lore, texts, first=10 * place)
            await http.post(f"/memory/evolve/{GROUP}")
        log = (await http.get(f"/memory/changes/{GROUP}")).json()["changes"]
        assert [one["action"] for one in log] == ["create", "update", "delete"]
        assert [one["number"] for one in log] == [1, 2, 3]
        assert (log[2]["old_statement"], "new_statement" in log[2]) == (BETTER, False)


# 6. 手动管理接口


async def test_delete_deprecates_a_memory_and_keeps_it_in_the_history(many):
    (one,) = (await many.get(f"/memory/list/{GROUP}?limit=1")).json()["memories"]
    body = (await many.delete(f"/memory/{one['memory_id']}?reason=过时")).json()
    assert (body["success"], body["memory"]["status"], body["memory"]["change_summary"]) == (True, "deprecated", "过时")
    assert (await many.get(f"/memory/list/{GROUP}")).json()["total"] == 24
    assert (await many.get(f"/memory/history/{one['memory_id']}")).json()["history"][0]["status"] == "deprecated"


async def test_restore_brings_a_deleted_memory_back_under_its_id(many):
    (gone,) = (await many.get(f"/memory/list/{GROUP}?status=deprecated")).json()["memories"]
    body = (await many.put(f"/memory/{gone['memory_id']}/restore")).json()
    assert (body["success"], body["memory_id"], body["memory"]["status"]) == (True, gone["memory_id"], "active")
    assert (await many.get(f"/memory/list/{GROUP}")).json()["total"] == 26


async def test_strength_is_set_by_hand(many):
    (one,) = (await many.get(f"/memory/list/{GROUP}?limit=1")).json()["memories"]
    body = (await many.put(f"/memory/{one['memory_id']}/strength", json={"strength": 0.85})).json()
    assert (body["success"], body["memory"]["strength"]) == (True, 0.85)
    refused = await many.put(f"/memory/{one['memory_id']}/strength", json={"strength": 1.5})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:roomlore:invalid-input")


# 核心函数签名

VERBS = {
    "evolve_memories": ("evolve", {"days": 1}),
    "get_active_memories": ("page", {"limit": 100, "status": "active"}),
    "search_memories": ("search", {"limit": 5, "threshold": 0.7}),
    "get_memory_history": ("history", {}),
    "update_memory": ("update", {"reason": ""}),
    "create_memory": ("add", {}),
    "deprecate_memory": ("delete", {"reason": ""}),
}


@pytest.mark.parametrize("function", VERBS)
async def test_each_function_of_the_document_is_a_verb_with_its_defaults(function):
    name, defaults = VERBS[function]
    async with evolving() as lore:
        verb = inspect.signature(getattr(lore.memories, name))
        assert {option: verb.parameters[option].default for option in defaults} == defaults


def test_the_verbs_serve_programs_that_are_not_async():
    with roomlore.open_sync("sqlite://") as lore:
        first = lore.memories.add(f"group:{GROUP}", KNOWN[1], kind=roomlore.MemoryKind.GROUP)
        made = lore.memories.update(first.memory_id, statement=BETTER, reason=WHY)
        assert (made.version, made.parent_id, made.change_summary) == (2, first.memory_id, WHY)
        assert [one.statement for one in lore.memories.history(made.memory_id)] == [KNOWN[1], BETTER]
        assert [hit.memory.statement for hit in lore.memories.search(GROUP, "每周五晚上讨论新番动漫").hits] == [BETTER]
        assert lore.memories.delete(made.memory_id, "过时").status is MemoryStatus.DEPRECATED
        assert lore.memories.page(f"group:{GROUP}") == []


def test_the_command_line_lists_searches_and_logs_the_memories():
    with roomlore.open_sync("sqlite:///group.db", background=False) as lore:
        lore.memories.add(f"group:{GROUP}", KNOWN[1], kind=roomlore.MemoryKind.GROUP)
    for words in (["list", GROUP], ["search", GROUP, "新番动漫"], ["log", GROUP]):
        shown = command("--db", "group.db", "memory", *words)
        assert (shown.exit_code, KNOWN[1] in shown.output) == (0, True), shown.output


# 数据一致性, 向量库


async def test_vectors_of_memories_lie_in_the_collection_group_memories():
    async with QdrantStandIn() as qdrant:
        own = {"embedder": HashEmbedder(dimensions=1536), "qdrant_url": qdrant.url}
        async with evolving(background=False, **own) as lore, served(lore):
            await remember(lore, KNOWN)
            _ = [one async for one in lore.index.drain()]
            async with httpx.AsyncClient(base_url=qdrant.url) as client:
                aliases = (await client.get("/aliases")).json()["result"]["aliases"]
                name = next(one["collection_name"] for one in aliases if one["alias_name"] == "group_memories")
                counted = await client.post(f"/collections/{name}/points/count", json={"exact": True})
            assert (counted.json()["result"]["count"], name.endswith(".1536")) == (5, True)


async def test_with_the_vector_store_down_memories_are_written_and_found_by_words():
    async with QdrantStandIn() as qdrant:
        own = {"embedder": HashEmbedder(), "qdrant_url": qdrant.url}
        async with evolving(background=False, **own) as lore:
            await qdrant.stop()
            await remember(lore, KNOWN)
            answer = await lore.memories.search(GROUP, "每周五晚上讨论新番动漫")
            assert [hit.memory.statement for hit in answer.hits] == [KNOWN[1]]
            assert (answer.mode, bool(answer.degraded)) == ("lexical", True)


async def test_a_model_that_is_down_changes_nothing_and_the_messages_stay_unread(quick_retries):
    async with ModelServer() as server, evolving(server) as lore, served(lore) as http:
        await remember(lore, KNOWN[:1])
        await talk(lore, TALK)
        await server.stop()
        began = time.monotonic()
        failed = await http.post(f"/memory/evolve/{GROUP}?mode=llm")
        assert (failed.status_code, failed.json()["type"]) == (503, "urn:roomlore:unavailable")
        assert time.monotonic() - began < 30
        assert [one["action"] for one in (await http.get(f"/memory/changes/{GROUP}")).json()["changes"]] == ["create"]


async def test_evolutions_are_counted():
    async with ModelServer([jsonl(create(NEW, "c4", "c5"))]) as server, evolving(server) as lore, served(lore) as http:
        await talk(lore, TALK)
        await http.post(f"/memory/evolve/{GROUP}")
        assert 'roomlore_evolutions_total{mode="llm",result="applied"} 1.0' in (await http.get("/metrics")).text
