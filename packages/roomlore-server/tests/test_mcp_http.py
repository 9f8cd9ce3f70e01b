"""MCP over HTTP: who may ask, for whom, and what becomes of requests that are none."""

import asyncio
import re
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
from mcp import Client

import roomlore
from forked_process import ForkedProgram
from mcp_rig import ANNA, DATABASE, TEAM, ask, messages, on_a_port, over_http, refusal
from roomlore import Message, Source
from roomlore.settings import Settings
from roomlore_server.http import create_app, create_mcp_app, serve
from roomlore_server.mcp import TOOLS
from roomlore_testkit.case_table import all_cases

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
READING = [tool.name for tool in TOOLS if not tool.writes]


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def test_serve_answers_mcp_beside_its_api(app, lore):
    async with on_a_port(app) as url:
        async with over_http(url) as client:
            assert len(await names(client)) == len(TOOLS)
            await ask(client, "add_memory", statement="安娜 likes tea", scope=ANNA)
        async with httpx.AsyncClient(base_url=url) as http:
            facts = (await http.get("/facts", params={"scope": ANNA})).json()["facts"]
    assert [fact["statement"] for fact in facts] == ["安娜 likes tea"]


async def test_the_scope_of_an_address_wins_over_that_of_the_server(lore):
    async with on_a_port(create_mcp_app(lore, scope=ANNA)) as url:
        async with over_http(url) as client:
            await ask(client, "add_memory", statement="for Anna 安娜")
        async with over_http(url, path=f"/mcp?scope={TEAM}") as client:
            await ask(client, "add_memory", statement="for the team 大家")
            named = await ask(client, "get_memories", scope=ANNA)
    assert [one["statement"] for one in named["memories"]] == ["for Anna 安娜"]
    assert [one.statement for one in await lore.memories.page(TEAM)] == ["for the team 大家"]


async def test_keys_say_whose_rooms_and_which_tools(lore):
    await lore.messages.add(messages())
    await lore.memories.add(ANNA, "默认的 secret tea")
    _, full = await lore.keys.create("full", scopes=["admin"])
    _, reading = await lore.keys.create("reading", scopes=["read"])
    _, writing = await lore.keys.create("writing", scopes=["write"])
    _, other = await lore.for_tenant("acme").keys.create("acme", scopes=["admin"])
    async with on_a_port(create_app(lore)) as url:
        async with over_http(url, key=reading, path="/mcp?viewer=room:tea") as client:
            assert await names(client) == READING
            assert "This server only reads for you" in await refusal(client, "delete_memory", memory_id="x")
        async with over_http(url, key=other) as client:
            assert (await ask(client, "get_memories", scope=ANNA))["total"] == 0
            assert (await ask(client, "memory_prompt", scopes=[ANNA]))["text"] == ""
            assert "There is no room 'tea'" in await refusal(client, "room_context", room_id="tea")
            theirs = await ask(client, "add_memory", statement="acme 的茶", scope=ANNA)
        async with over_http(url, key=full) as client:
            lost = await refusal(client, "get_memory", memory_id=theirs["memory"]["memory_id"])
            assert lost.startswith("There is no memory")
            assert (await ask(client, "search_memories", query="acme 的茶", scope=ANNA, threshold=0.9))[
                "memories"
            ] == []
        async with httpx.AsyncClient(base_url=url, headers=ACCEPT) as http:
            assert (await http.post("/mcp", json=PING)).status_code == 401
            guessed = {"Authorization": "Bearer rl_guess"}
            assert (await http.post("/mcp", json=PING, headers=guessed)).status_code == 401
            weak = await http.post("/mcp", json=PING, headers={"Authorization": f"Bearer {writing}"})
            assert (weak.status_code, weak.json()["type"]) == (403, "urn:roomlore:forbidden")


async def test_answers_are_for_the_viewer_of_the_address(lore):
    """And of the server, whose viewer no address changes."""
    await lore.rooms.set_kind("dm", "direct")
    said = [Message(id="d", room_id="dm", sender_id="anna", text="x"), *messages()]
    await lore.messages.add(said)
    secret = await lore.memories.add(ANNA, "Anna looks for a job 安娜找工作", sources=[Source("dm", "d")])
    await lore.memories.add(ANNA, "Anna likes tea 安娜爱喝茶")
    _, key = await lore.keys.create("bot")
    hidden = {"memory_id": secret.memory_id}
    async with on_a_port(create_app(lore)) as url:
        async with httpx.AsyncClient(base_url=url, headers={**ACCEPT, "Authorization": f"Bearer {key}"}) as http:
            unnamed = await http.post("/mcp", json=PING)
            assert unnamed.status_code == 403
            assert "add ?viewer=room:<id>" in unnamed.json()["detail"]
        async with over_http(url, key=key, path=f"/mcp?viewer=room:tea&scope={ANNA}") as client:
            await _knows_nothing_of_the_job(client, hidden)
            assert "There is no room" in await refusal(client, "room_context", room_id="dm", message_id="d")
            gone = await refusal(client, "delete_memory", **hidden)
            assert gone.startswith("There is no memory")
            await refusal(client, "update_memory", **hidden, statement="Anna has a job")
        async with over_http(url, key=key, path=f"/mcp?viewer=user:anna&scope={ANNA}") as client:
            assert (await ask(client, "get_memories"))["total"] == 2
            assert "job" in (await ask(client, "memory_prompt", query="a job?"))["text"]
    async with (
        on_a_port(create_mcp_app(lore, scope=ANNA, viewer="room:tea")) as url,
        over_http(url, key=key, path="/mcp?viewer=user:anna") as client,
    ):
        await _knows_nothing_of_the_job(client, hidden)


async def _knows_nothing_of_the_job(client: Client, hidden: dict[str, str]) -> None:
    assert (await ask(client, "get_memories"))["total"] == 1
    found = await ask(client, "search_memories", query="job 工作", threshold=0)
    assert [one["statement"] for one in found["memories"]] == ["Anna likes tea 安娜爱喝茶"]
    block = await ask(client, "memory_prompt", query="a job?")
    assert (block["considered"], "job" in block["text"]) == (1, False)
    for tool in ("get_memory", "memory_history"):
        assert (await refusal(client, tool, **hidden)).startswith("There is no memory")


async def test_two_tenants_at_once_stay_apart(lore):
    secrets = {name: (await lore.for_tenant(name).keys.create(name, scopes=["admin"]))[1] for name in ("acme", "茶馆")}

    async def visit(url: str, tenant: str) -> list[str]:
        async with over_http(url, key=secrets[tenant]) as client:
            for number in range(10):
                await ask(client, "add_memory", statement=f"{tenant} {number}", scope=ANNA)
            return [one["statement"] for one in (await ask(client, "get_memories", scope=ANNA))["memories"]]

    async with on_a_port(create_app(lore)) as url:
        seen = await asyncio.gather(visit(url, "acme"), visit(url, "茶馆"), visit(url, "acme"))
    assert [sorted(one) for one in seen] == [
        sorted(f"{tenant} {number}" for number in range(10)) for tenant in ("acme", "茶馆", "acme")
    ]


REFUSED = {
    "host": ({"headers": {"Host": "evil.example"}}, 403, "The Host header names another machine"),
    "origin": ({"headers": {"Origin": "http://evil.example"}}, 403, "A web page of another site"),
    "get": ({"method": "GET"}, 405, "does not take this method"),
    "delete": ({"method": "DELETE"}, 405, "does not take this method"),
    "viewer": ({"params": {"viewer": "anna"}}, 422, "A viewer is room:<id> or user:<id>"),
    "scope": ({"params": {"scope": "anna"}}, 422, "A scope is group:<id>"),
    "parameter": ({"params": {"tenant": "acme"}}, 422, "There is no parameter 'tenant'; /mcp takes scope"),
}


async def test_what_is_refused_is_a_problem(connect):
    async with connect() as http:
        with all_cases() as case:
            for name, (asked, status, said) in REFUSED.items():
                with case(name):
                    request = {"method": "POST", "json": PING, **asked}
                    headers = {**ACCEPT, **request.get("headers", {})}
                    answer = await http.request(url="/mcp", **{**request, "headers": headers})
                    assert answer.status_code == status
                    assert answer.headers["content-type"] == "application/problem+json"
                    assert said in answer.json()["detail"]


async def test_a_large_body_and_what_is_no_json_are_refused(connect):
    async with connect() as http:
        large = await http.post("/mcp", json={**PING, "params": {"x": "茶" * 100_000}}, headers=ACCEPT)
        broken = await http.post("/mcp", content=b"{", headers={**ACCEPT, "Content-Type": "application/json"})
        other = await http.post("/mcp", content=b"x=1", headers={**ACCEPT, "Content-Type": "text/plain"})
    assert (large.status_code, broken.status_code, other.status_code) == (413, 400, 400)


async def test_the_log_knows_the_path_and_tells_nothing(connect, capsys):
    async with connect() as http:
        call = {"name": "add_memory", "arguments": {"statement": "the vault opens with 7319", "scope": "user:vault"}}
        answer = await http.post("/mcp", json={**PING, "method": "tools/call", "params": call}, headers=ACCEPT)
    assert answer.status_code == 200
    assert "7319" in answer.text
    told = capsys.readouterr().out
    assert "/mcp" in told
    assert "tool=add_memory" in re.sub(r"\x1b\[[0-9;]*m", "", told)
    assert "vault" not in told


async def test_a_server_that_was_stopped_breaks_off_nothing_of_the_next(connect, tmp_path):
    at = asyncio.get_running_loop().create_future()
    kept = Settings(database_url=f"sqlite:///{tmp_path / 'stopped.db'}", port=0)
    running = asyncio.ensure_future(serve(kept, listening=at.set_result))
    async with httpx.AsyncClient(base_url=await at) as http:
        assert (await http.get("/health/ready")).status_code == 200
    signal.raise_signal(signal.SIGTERM)
    await running
    async with connect() as http:
        call = {"name": "get_memories", "arguments": {"scope": ANNA}}
        answer = await http.post("/mcp", json={**PING, "method": "tools/call", "params": call}, headers=ACCEPT)
    assert "total" in answer.text


async def test_without_the_extra_serve_says_what_to_install(lore, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("roomlore_server.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1234))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        answer = await http.post("/mcp", json=PING)
        assert (await http.get("/rooms")).status_code == 200
    assert answer.status_code == 501
    assert "pip install 'roomlore[mcp]'" in answer.json()["detail"]


@contextmanager
def speaking(*arguments: str):
    """`roomlore mcp --http` as a process of its own, and its address."""
    with Path("mcp.log").open("wb") as log:
        words = ("--db", DATABASE, "mcp", "--http", "--port", "0", *arguments)
        process = ForkedProgram("roomlore", *words, error=log.fileno())
        try:
            yield process, re.search(r"(http://\S+)/mcp", process.stdout.readline().decode()).group(1)
        finally:
            process.close()


async def test_roomlore_mcp_serves_a_port_of_its_own():
    async with roomlore.open(DATABASE) as lore:
        _, key = await lore.keys.create("host", scopes=["read"])
    with speaking("--read-only", "--scope", ANNA, "--viewer", "room:tea") as (process, url):
        async with over_http(url, key=key) as client:
            assert await names(client) == READING
            assert (await ask(client, "get_memories"))["total"] == 0
        async with httpx.AsyncClient(base_url=url) as http:
            assert (await http.get("/health/ready")).status_code == 200
            assert (await http.get("/rooms", headers={"Authorization": f"Bearer {key}"})).status_code == 404
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0
