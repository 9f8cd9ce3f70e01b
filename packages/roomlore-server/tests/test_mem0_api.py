"""The HTTP API of mem0's platform, asked by mem0's own clients on a real socket."""

import asyncio
import importlib
import threading
import warnings
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

import roomlore
from evolution_rig import create, lines
from roomlore.core.errors import InvalidInput
from roomlore.settings import Settings
from roomlore_server.http import create_app
from roomlore_server.http.mem0_routes import alternatives, unnested
from roomlore_testkit.model_server import serve_models

ANNA = {"user_id": "安娜"}


@pytest.fixture(scope="module")
def mem0(tmp_path_factory):
    """mem0's package, which tells nobody that it is used and keeps its files here."""
    with pytest.MonkeyPatch.context() as patching, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patching.setenv("MEM0_TELEMETRY", "False")
        patching.setenv("MEM0_DIR", str(tmp_path_factory.mktemp("mem0")))
        yield importlib.import_module("mem0")


@pytest.fixture
def served(tmp_path):
    """A function that serves a store with these settings; gives its address."""
    with contextmanager(_serving)(f"sqlite:///{tmp_path / 'memories.db'}") as address:
        yield address


def _serving(url: str, **more):
    settings = Settings(database_url=url, log_level="error", **more)
    service = uvicorn.Server(uvicorn.Config(create_app(settings), port=0, log_config=None, access_log=False))
    thread = threading.Thread(target=lambda: asyncio.run(service.serve()))
    thread.start()
    while not service.started:
        threading.Event().wait(0.01)
    try:
        yield f"http://127.0.0.1:{service.servers[0].sockets[0].getsockname()[1]}"
    finally:
        service.should_exit = True
        thread.join()


@pytest.fixture
def client(mem0, served):
    made = mem0.MemoryClient(api_key="any", host=served)
    yield made
    made.client.close()


def said(answer) -> list[str]:
    return sorted(one["memory"] for one in answer["results"])


def test_a_memory_lives_through_every_call(client):
    added = client.add("我对花生过敏", **ANNA, metadata={"source": "form"}, infer=False)["results"][0]
    assert (added["memory"], added["event"]) == ("我对花生过敏", "ADD")
    got = client.get(added["id"])
    assert (got["memory"], got["user_id"], got["metadata"], got["agent_id"]) == (
        "我对花生过敏",
        "安娜",
        {"source": "form"},
        None,
    )
    assert client.search("花生过敏吗？", filters=ANNA)["results"][0]["id"] == added["id"]
    changed = client.update(added["id"], text="对花生和核桃过敏", metadata={"seen": True})
    assert (changed["memory"], changed["metadata"]) == ("对花生和核桃过敏", {"source": "form", "seen": True})
    assert [row["event"] for row in client.history(added["id"])][:2] == ["ADD", "UPDATE"]
    client.delete(added["id"])
    with pytest.raises(Exception, match="was deleted") as gone:
        client.get(added["id"])
    assert type(gone.value).__name__ == "MemoryNotFoundError"
    assert client.get_all(filters=ANNA)["results"] == []


def test_a_conversation_without_a_model_is_kept_word_for_word(client):
    talk = [{"role": "user", "content": "I drink oolong only"}, {"role": "assistant", "content": "Noted."}]
    assert said(client.add(talk, **ANNA, agent_id="tea-bot")) == ["I drink oolong only"]
    assert said(client.get_all(filters={"AND": [ANNA, {"agent_id": "tea-bot"}]})) == ["I drink oolong only"]


def test_a_model_reads_what_is_added(mem0, tmp_path):
    answers = [lines(create("Drinks oolong", "c1", confidence=0.9))]
    with serve_models(answers, default="[]") as model:
        named = {"memory-evolve-model": {"internal": True, "providers": [{"name": "here", "model_id": "m"}]}}
        more = {"models": named, "providers": {"here": {"base_url": model.url}}}
        with contextmanager(_serving)(f"sqlite:///{tmp_path / 'm.db'}", **more) as address:
            client = mem0.MemoryClient(api_key="any", host=address)
            done = client.add("I only drink oolong", **ANNA)
            assert [(one["event"], one["memory"]) for one in done["results"]] == [("ADD", "Drinks oolong")]
            client.client.close()


def test_filters_name_owners_as_the_platform_takes_them(client):
    for user, run, text in (("a", "1", "one"), ("a", "2", "two"), ("b", "1", "three"), ("c", "3", "four")):
        client.add(text, user_id=user, run_id=run, app_id="shop", infer=False, metadata={"n": len(text)})
    asked = {
        "one user": ({"user_id": "a"}, ["one", "two"]),
        "of several": ({"OR": [{"user_id": "a"}, {"user_id": "b"}]}, ["one", "three", "two"]),
        "in": ({"user_id": {"in": ["b", "c"]}}, ["four", "three"]),
        "and": ({"AND": [{"user_id": "a"}, {"run_id": "2"}]}, ["two"]),
        "anybody": ({"user_id": "*", "run_id": "1"}, ["one", "three"]),
        "metadata": ({"user_id": "a", "app_id": "shop", "n": {"gte": 3}}, ["one", "two"]),
        "nothing": ({"AND": [{"user_id": "a"}, {"n": 9}]}, []),
    }
    for name, (filters, texts) in asked.items():
        assert said(client.get_all(filters=filters)) == texts, name


def test_pages_tell_what_follows(client):
    for number in range(5):
        client.add(f"Fact number {number}", **ANNA, infer=False)
    first = client.get_all(filters=ANNA, page=1, page_size=2)
    assert (first["count"], first["previous"], len(first["results"])) == (5, None, 2)
    assert "page=2" in first["next"]
    last = client.get_all(filters=ANNA, page=3, page_size=2)
    assert (last["next"], len(last["results"])) == (None, 1)
    assert "page=2" in last["previous"]


def test_memories_of_one_owner_are_deleted_and_no_others(client):
    for user in ("anna", "bob"):
        client.add(f"{user} drinks tea", user_id=user, infer=False)
    client.delete_all(user_id="anna")
    assert said(client.get_all(filters={"OR": [{"user_id": "anna"}, {"user_id": "bob"}]})) == ["bob drinks tea"]
    with pytest.raises(Exception, match="user_id"):
        client.delete_all()


def test_the_client_that_awaits_gets_the_same(mem0, served):
    async def use() -> list[str]:
        client = mem0.AsyncMemoryClient(api_key="any", host=served)
        await client.add("Plays chess", **ANNA, infer=False)
        found = await client.search("chess", filters=ANNA, top_k=3)
        await client.async_client.aclose()
        return said(found)

    assert asyncio.run(use()) == ["Plays chess"]


def test_a_key_is_a_token_and_needs_its_scopes(mem0, served, tmp_path):
    with roomlore.open_sync(f"sqlite:///{tmp_path / 'memories.db'}") as lore:
        secrets = {scope: lore.keys.create("app", scopes=scope.split())[1] for scope in ("read", "read write", "admin")}
    with httpx.Client() as web, pytest.raises(ValueError, match="unknown or revoked"):
        mem0.MemoryClient(api_key="any", host=served, client=web)
    reader, app, admin = (mem0.MemoryClient(api_key=secret, host=served) for secret in secrets.values())
    with pytest.raises(Exception, match="lacks the scope write"):
        reader.add("x", **ANNA)
    kept = app.add("Plays chess", **ANNA, infer=False)["results"][0]
    assert said(app.search("chess", filters=ANNA)) == ["Plays chess"]
    assert admin.get(kept["id"])["memory"] == "Plays chess"
    with pytest.raises(Exception, match="X-Roomlore-Viewer"):
        app.get(kept["id"])
    app.client.headers["X-Roomlore-Viewer"] = "user:bob"
    with pytest.raises(Exception, match="no memory"):
        app.get(kept["id"])
    app.client.headers["X-Roomlore-Viewer"] = "user:%E9%98%BF%E8%8A%B3"
    with pytest.raises(Exception, match="no memory"):
        app.get(kept["id"])
    app.client.headers["X-Roomlore-Viewer"] = "user:%E5%AE%89%E5%A8%9C"
    assert app.get(kept["id"])["memory"] == "Plays chess"
    for one in (reader, app, admin):
        one.client.close()


def test_what_cannot_be_taken_is_refused_with_the_reason(client, served):
    with pytest.raises(Exception, match="Say whose"):
        client.search("tea", filters={"source": "form"})
    with pytest.raises(Exception, match="timestamp"):
        client.add("x", **ANNA, timestamp=1_700_000_000)
    with httpx.Client(base_url=served) as web:
        wrong = web.post("/v3/memories/search/", json={"filters": ANNA})
        assert (wrong.status_code, wrong.headers["content-type"]) == (422, "application/json")
        assert wrong.json()["detail"] == "query is missing."


def test_filters_that_would_never_end_are_refused():
    with pytest.raises(InvalidInput, match="more than 20"):
        alternatives({"AND": [{"OR": [{"user_id": "a"}, {"agent_id": "b"}]}] * 40})
    with pytest.raises(InvalidInput, match="two values"):
        alternatives({"user_id": "a", "AND": [{"user_id": "b"}]})


def test_calls_beside_memories_are_refused_with_a_reason(client):
    for call in (client.users, lambda: client.batch_delete([{"memory_id": "a"}])):
        with pytest.raises(Exception, match="calls on memories only"):
            call()


def test_a_filter_of_metadata_may_be_nested(client):
    """As mem0's platform writes it; only fields of the metadata, not owners."""
    for seat in (1, 2):
        client.add([{"role": "user", "content": f"座位 {seat}"}], **ANNA, metadata={"seat": seat}, infer=False)
    for filters in (
        {"AND": [ANNA, {"metadata": {"seat": 2}}]},
        {**ANNA, "metadata": {"seat": {"gte": 2}}},
        {"AND": [ANNA, {"NOT": [{"metadata": {"seat": 1}}]}]},
    ):
        assert [one["memory"] for one in client.get_all(filters=filters)["results"]] == ["座位 2"]
    assert unnested({"metadata": {"contains": "x"}}) == {"metadata": {"contains": "x"}}
    for wrong in ({**ANNA, "metadata": {"user_id": "bob"}}, {"seat": 1, "metadata": {"seat": 2}}):
        with pytest.raises(InvalidInput, match="twice, or as metadata"):
            unnested(wrong)
