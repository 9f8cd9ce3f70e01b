"""Every route, page, tool and command with a viewer: who never was in a room is told nothing that was said there, and
who was is told it. A new one fails here until it stands in one of these tables."""

import asyncio

import httpx
import pytest
import typer.main
from mcp import Client
from typer.testing import CliRunner

import roomlore
from console_rig import asking
from faces import commands_of, filled
from roomlore import Message, Source
from roomlore.surfaces.cli.app import app as program
from roomlore_console.frame import FORM_COOKIE
from roomlore_server.http import create_app
from roomlore_server.http.planned import PlannedRoutes
from roomlore_server.mcp.server import make_server
from roomlore_server.mcp.tools import TOOLS, Visitor
from roomlore_testkit import START

SECRET = "xylophone7319"
"""Said in Ann's room with an agent, 'den', and in what was made of it."""
MEMBERS, OUTSIDERS = ("room:den", "user:ann"), ("room:square", "user:eve", "user:stranger")

_SEEN = {"viewer": "{viewer}"}
_TOKEN = {"token": "t"}


def bare(*routes: str) -> dict[str, dict]:
    """Return requests of which the path says all."""
    return {route: {} for route in routes}


ROUTES = {
    # Who may see the room is told, others are not.
    "told": {
        "GET /messages": {"params": {"room_id": "den"}},
        "GET /messages/search": {"params": {"q": "where is the key hidden"}},
        "GET /messages/{room_id}/{message_id}": {},
        "POST /context": {"json": {"room_id": "den", "message_id": "m3"}},
        "GET /context/{context_id}": {},
        "GET /rooms/{room_id}": {},
        "GET /rooms/{room_id}/corrections": {},
        "GET /rooms/{room_id}/digest": {"params": {"since": "2020-01-01"}},
        "GET /rooms/{room_id}/headings": {"params": {"message_id": "m2"}},
        "GET /rooms/{room_id}/threads": {},
        "GET /rooms/{room_id}/threads/{message_id}": {},
        "POST /sessions": {"json": {"conversation_id": "den"}},
        "GET /sessions/{conversation_id}": {},
        "GET /sessions/{conversation_id}/checkpoints": {},
        "POST /sessions/{conversation_id}/context": {},
        "GET /facts": {"params": {"scope": "user:ann"}},
        "GET /facts/{memory_id}": {},
        "GET /facts/{memory_id}/history": {},
        "GET /memory/history/{memory_id}": {},
        "GET /memory/list/{group_id}": {},
        "GET /memory/search/{group_id}": {"params": {"q": "where is the key hidden", "threshold": 0}},
        "POST /recall": {"json": {"scopes": ["user:ann"], "messages": [{"role": "user", "content": "the key"}]}},
        "POST /v3/memories/": {"json": {"filters": {"user_id": "ann"}}},
        "POST /v3/memories/search/": {"json": {"query": "key", "threshold": 0, "filters": {"user_id": "ann"}}},
        "GET /v1/memories/{memory_id}/": {},
        "GET /v1/memories/{memory_id}/history/": {},
    },
    # Others are refused, as if there were no such room or memory.
    "refused": {
        "PATCH /messages/{room_id}/{message_id}": {"json": {"text": "gone"}},
        "DELETE /messages/{room_id}/{message_id}": {},
        "PUT /messages/{room_id}/{message_id}/link": {"json": {"answers": None}},
        "DELETE /messages/{room_id}/{message_id}/link": {},
        "PATCH /rooms/{room_id}": {"json": {"name": "x"}},
        "POST /rooms/{room_id}/read": {"json": {"user_id": "eve"}},
        "GET /rooms/{room_id}/settings": {},
        "PATCH /rooms/{room_id}/settings": {"json": {"strategy": "recent"}},
        "PATCH /sessions/{conversation_id}/state": {"json": {"global_state": {"current_intent": "x"}}},
        "POST /sessions/{conversation_id}/checkpoint": {},
        "POST /sessions/{conversation_id}/reset": {},
        "PATCH /facts/{memory_id}": {"json": {"statement": "gone"}},
        "DELETE /facts/{memory_id}": {},
        "DELETE /memory/{memory_id}": {},
        "PUT /memory/{memory_id}/restore": {},
        "PUT /memory/{memory_id}/share": {"json": {"with": "everyone"}},
        "DELETE /memory/{memory_id}/share": {"params": {"with": "everyone"}},
        "PUT /memory/{memory_id}/strength": {"json": {"strength": 0.1}},
        "POST /context/{context_id}/response": {"json": {"text": SECRET}},
        "POST /context/{context_id}/feedback": {"json": {"score": 1}},
        "PUT /v1/memories/{memory_id}/": {"json": {"text": "gone"}},
        "DELETE /v1/memories/{memory_id}/": {},
    },
    # Only the scope admin may ask.
    "admin": {
        **bare("GET /usage", "GET /usage/export", "GET /usage/report", "GET /rooms", "GET /sessions"),
        **bare("GET /rooms/{room_id}/audience", "GET /rooms/{room_id}/visible"),
        "PATCH /rooms/{room_id}/audience": {"json": {"kind": "public"}},
        "DELETE /rooms/{room_id}": {"params": {"confirm": "true"}},
        **bare("GET /memory/{memory_id}/visible", "GET /memory/blame/{memory_id}"),
        "POST /memory/evolve/{group_id}": {},
        **bare("GET /memory/evolution/{evolution_id}", "POST /memory/revert/{evolution_id}"),
        "GET /memory/changes/{group_id}": {},
        "GET /memory/as-of/{group_id}": {"params": {"at": "2030-01-01"}},
        "GET /memory/diff/{group_id}": {"params": {"from": "2020-01-01"}},
        "POST /privacy/forget": {"json": {"user_id": "ann", "confirm": True}},
        **bare("GET /privacy/verify", "GET /jobs", "GET /jobs/{job_id}", "POST /jobs/{job_id}/retry"),
        **bare("GET /index", "GET /metrics"),
    },
    # Whoever asks is told nothing that was said.
    "silent": {
        "POST /messages": {"json": {"id": "m2", "room_id": "square", "sender_id": "eve", "text": "hello"}},
        "POST /sessions/{conversation_id}/turns": {"json": {"user_id": "ann", "user_query": "more tea"}},
        "POST /facts": {"params": _SEEN, "json": {"scope": "user:eve", "statement": "likes tea"}},
        **bare("GET /models", "GET /v1/models", "GET /v1/models/{model_id}", "GET /v1/ping/"),
        "POST /v3/memories/add/": {"json": {"messages": [{"role": "user", "content": "tea"}], "user_id": "eve"}},
        "DELETE /v1/memories/": {"params": {"user_id": "ann"}},
        **bare("GET /health/live", "GET /health/ready", "GET /", "GET /console/static/{name}"),
        **{
            f"{method} {path}": {}
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
            for path in (
                *("/v1/entities/", "/v2/entities/{kind}/{name}/", "/v1/batch/", "/v1/exports/", "/v1/exports/get/"),
                *("/v1/summary/", "/v1/feedback/", "/api/v1/{rest}"),
            )
        },
    },
    # What a model answers in the room that is named; what is written in the code; and MCP, see below.
    "elsewhere": bare("POST /chat/sse", "POST /v1/chat/completions", "GET /openapi.json", "POST /mcp"),
}
PAGES = {
    "told": {
        "GET /console": {"params": {"since": "2020-01-01"}},
        "GET /console/rooms": {},
        "GET /console/side": {},
        "GET /console/search": {"params": {"q": "key hidden"}},
        "GET /console/suggest": {"params": {"q": "den"}},
        "GET /console/places": {},
        "GET /console/rooms/{name}": {},
        "GET /console/person": {"params": {"id": "ann"}},
        "GET /console/people/{person}": {},
        "GET /console/room": {"params": {"id": "den"}},
        "GET /console/thread": {"params": {"id": "den", "message": "m2"}},
        "GET /console/digest": {"params": {"id": "den", "since": "2020-01-01"}},
        "GET /console/context": {"params": {"room": "den", "message": "m3"}},
        "GET /console/session": {"params": {"id": "den"}},
        "GET /console/memory": {"params": {"id": "user:ann"}},
        "GET /console/memory/one": {"params": {"id": "{memory_id}"}},
        "GET /console/memory/change": {"params": {"what": "delete", "id": "{memory_id}"}},
        "GET /console/memory/write": {"params": {"id": "{memory_id}"}},
        "GET /console/recall": {"params": {"scopes": "user:ann", "q": "the key"}},
    },
    "refused": {
        "GET /console/room/live": {"params": {"id": "den"}},
        "GET /console/room/threads": {"params": {"id": "den"}},
        "GET /console/session/change": {"params": {"id": "den", "what": "reset"}},
        "GET /console/session/summarising": {"params": {"id": "den", "job": "x"}},
        "POST /console/session/change": {"params": {"id": "den", "what": "reset"}},
        "POST /console/memory/change": {"params": {"what": "delete", "id": "{memory_id}"}},
        "POST /console/memory/write": {"params": {"id": "{memory_id}"}, "data": {"statement": "gone"}},
        "POST /console/link": {"params": {"room": "den", "message": "m2"}, "data": {"said": "nothing"}},
    },
    "admin": {
        **bare("GET /console/usage", "GET /console/sessions", "GET /console/jobs", "GET /console/health"),
        **bare("GET /console/health/findings", "POST /console/jobs/retry"),
        "GET /console/visible": {"params": {"id": "den"}},
        "GET /console/forget": {"params": {"id": "ann"}},
        "GET /console/room/delete": {"params": {"id": "den"}},
        "POST /console/room/delete": {"params": {"id": "den"}, "data": {"typed": "den"}},
        "GET /console/memory/compare": {"params": {"id": "user:ann", "from": "2020-01-01"}},
        "GET /console/memory/evolving": {"params": {"id": "group:den", "job": "x"}},
        "GET /console/memory/forgetting": {"params": {"id": "ann", "job": "x"}},
        "GET /console/memory/forgetting/would": {"params": {"id": "ann"}},
    },
    "silent": {
        **bare("GET /console/people", "GET /console/memories", "GET /console/viewer"),
        **bare("GET /console/sign-in", "GET /console/{rest}"),
    },
    # They set cookies alone.
    "elsewhere": bare("POST /console/look", "POST /console/sign-in", "POST /console/sign-out", "POST /console/viewer"),
}
TOOLS_BY_KIND = {
    "told": {
        "search_memories": {"query": "where is the key hidden", "threshold": 0, "scope": "user:ann"},
        "get_memories": {"scope": "user:ann"},
        "get_memory": {"memory_id": "{memory_id}"},
        "memory_history": {"memory_id": "{memory_id}"},
        "memory_prompt": {"query": "the key", "scopes": ["user:ann"]},
        "search_messages": {"query": "where is the key hidden"},
        "room_context": {"room_id": "den", "message_id": "m3"},
        "room_digest": {"room_id": "den"},
        "list_rooms": {},
    },
    "refused": {
        "update_memory": {"memory_id": "{memory_id}", "statement": "gone"},
        "delete_memory": {"memory_id": "{memory_id}"},
    },
    "silent": {"add_memory": {"scope": "user:eve", "statement": "likes tea"}},
}
COMMANDS = {
    "context": ("den", "m3"),
    **dict.fromkeys(("ask", "search"), ("where", "is", "the", "key", "hidden")),
    "recall": ("group:den", "where", "is", "the", "key"),
    "digest": ("den",),
    "session list": (),
    "session show": ("den",),
    "session context": ("den",),
    "session checkpoints": ("den",),
}
OF_THE_OPERATOR = {
    *(
        "add",
        "help",
        "remember",
        "reply",
        "import",
        "export",
        "chat",
        "rooms",
        "audience",
        "visible",
        "share",
        "rename",
        "threads",
        "eval",
        "settings",
    ),
    *("tune", "reindex", "partition", "serve", "worker", "demo", "doctor", "backup", "restore", "forget", "verify"),
    "delete-room",
    *(f"session {name}" for name in ("create", "turn", "checkpoint", "reset", "state")),
    *(f"keys {name}" for name in ("create", "list", "revoke")),
    *(f"archive {name}" for name in ("run", "list", "restore", "check")),
    *(f"links {name}" for name in ("correct", "undo", "log")),
    *(f"memory {name}" for name in ("list", "history", "show", "search", "evolve", "log", "diff", "as-of", "blame")),
    *(f"memory {name}" for name in ("revert", "restore", "strength", "delete", "forget")),
    *(f"facts {name}" for name in ("add", "list", "update", "delete", "history", "import")),
    *("tenants limit", "messages delete", "models test", "jobs show", "jobs retry", "usage list", "usage export"),
    *("usage report", "new bot", "move"),
}
"""Commands without a viewer: who may open the database sees all of it."""


async def fill(lore) -> dict[str, str]:
    """Say the secret in 'den', and make of it what is made of what was said; return what an address may name."""
    said = [("m1", "ann", "Where is the key hidden?"), ("m2", "bot", f"The key is hidden under the {SECRET}.")]
    said += [("m3", "ann", f"Under which {SECRET}, then?")]
    roles = {"bot": "assistant"}
    await lore.messages.add(
        [
            Message(id=name, room_id="den", sender_id=who, text=text, sent_at=START, role=roles.get(who, "user"))
            for name, who, text in said
        ]
    )
    await lore.messages.add(Message(id="m1", room_id="square", sender_id="eve", text="Good morning", sent_at=START))
    await lore.rooms.set_kind("den", "direct")
    await lore.rooms.set_kind("square", "public")
    await lore.rooms.rename("den", f"{SECRET} club")
    await lore.links.correct("den", "m2", answers="m1", by=SECRET)
    await lore.sessions.create_session("den", "ann", patient_id=SECRET)
    await lore.sessions.checkpoint("den", f"Ann hid a key under the {SECRET}.", covers_through="m2")
    context = await lore.context.build("den", "m3")
    await lore.context.respond(context.context_id, SECRET)
    heard = [Source("den", "m1"), Source("den", "m2")]
    fact = await lore.memories.add("user:ann", f"The key is hidden under the {SECRET}", sources=heard)
    await lore.memories.add("group:den", f"The key is hidden under the {SECRET}", kind="group", sources=heard)
    names = {"memory_id": fact.memory_id, "context_id": context.context_id, "room_id": "den", "message_id": "m2"}
    others = {"evolution_id": "e", "job_id": "j", "model_id": "m", "kind": "k", "rest": "r", "person": "ann"}
    return names | others | {"conversation_id": "den", "group_id": "den", "name": "den"}


@pytest.fixture
async def lore():
    async with roomlore.open("sqlite://", background=False) as opened:
        yield opened


def paths_of(routes) -> set[str]:
    """Return every method and path, without the kinds of parameters."""
    found = set()
    for route in routes:
        if not isinstance(route, PlannedRoutes):  # which stands before routes that are there too
            path = route.path.replace(":path}", "}").replace(":id}", "}").replace("/people/{name}", "/people/{person}")
            found |= {f"{method} {path}" for method in (route.methods or set()) - {"HEAD"}}
    return found


def tables() -> dict[str, dict]:
    """Return all requests, with the viewer in the addresses that take one: pages and the paths of mem0 know it."""
    found = {kind: {**ROUTES[kind], **PAGES[kind]} for kind in ROUTES}
    for kind, requests in found.items():
        for route, request in requests.items():
            method, path = route.split(" ")
            if path.startswith("/console") and method == "POST":
                requests[route] = request | {"data": _TOKEN | request.get("data", {})}
            elif kind in ("told", "refused") and not path.startswith(("/console", "/v1", "/v3")):
                requests[route] = request | {"params": _SEEN | request.get("params", {})}
    return found


async def asked(http: httpx.AsyncClient, route: str, request: dict, names: dict[str, str]) -> httpx.Response:
    method, path = route.split(" ")
    return await http.request(method, path.format_map(names), follow_redirects=True, **filled(request, names))


async def test_each_route_and_page(lore):
    kinds = tables()
    assert paths_of(create_app(lore).routes) == {route for kind in kinds.values() for route in kind}
    names = await fill(lore)
    _, key = await lore.keys.create("bot", scopes=("read", "write"))
    wrong: dict[str, str] = {}
    for viewer in (*OUTSIDERS, *MEMBERS):
        names["viewer"] = viewer
        async with asking(lore, key, viewer) as http:
            http.cookies.set(FORM_COOKIE, _TOKEN["token"])
            http.headers["x-roomlore-viewer"] = viewer
            for kind, requests in kinds.items():
                if kind == "elsewhere" or (viewer in MEMBERS and kind != "told"):
                    continue
                for route, request in requests.items():
                    answer = await asked(http, route, request, names)
                    if bad := judged(kind, viewer, answer.status_code, answer.text):
                        wrong[f"{viewer}: {route}"] = f"{bad}: {answer.status_code} {answer.text[-300:]}"
    assert wrong == {}


def judged(kind: str, viewer: str, status: int, text: str) -> str:
    """Return what is wrong with an answer, '' if nothing is."""
    if viewer in MEMBERS:
        return "" if status == 200 and SECRET in text else "not told"
    if SECRET in text:
        return "leak"
    refused = {"refused": (403, 404), "admin": (403,)}.get(kind)
    return "not refused" if refused and status not in refused else ""


async def test_each_tool(lore):
    assert sorted(tool.name for tool in TOOLS) == sorted(tool for kind in TOOLS_BY_KIND.values() for tool in kind)
    names, wrong = await fill(lore), {}
    for viewer in (*OUTSIDERS, *MEMBERS):
        async with Client(make_server(Visitor(lore=lore, viewer=viewer))) as client:
            for kind, calls in TOOLS_BY_KIND.items():
                if viewer in MEMBERS and kind != "told":
                    continue
                for tool, arguments in calls.items():
                    answer = await client.call_tool(tool, filled(arguments, names))
                    text = "".join(part.text for part in answer.content)
                    if bad := judged(kind, viewer, 404 if answer.is_error else 200, text):
                        wrong[f"{viewer}: {tool}"] = f"{bad}: {text[:300]}"
    assert wrong == {}


async def _filled_file() -> None:
    async with roomlore.open("chat.db", background=False) as lore:
        await fill(lore)
        await lore.rooms.add_members("square", ["stranger"])


def test_each_command_with_a_viewer():
    options = commands_of(typer.main.get_command(program))
    with_viewer = {name for name, its in options.items() if "--viewer" in its}
    assert with_viewer == {*COMMANDS, "mcp"}, "`mcp` tells what its tools tell"
    assert options.keys() - with_viewer == OF_THE_OPERATOR
    asyncio.run(_filled_file())
    wrong: dict[str, str] = {}
    for viewer in (*OUTSIDERS, *MEMBERS):
        for name, arguments in COMMANDS.items():
            ran = CliRunner().invoke(
                program, ["--db", "chat.db", *name.split(), *arguments, "--viewer", viewer, "--json"]
            )
            if bad := judged("told", viewer, 200 if ran.exit_code == 0 else 404, ran.output):
                wrong[f"{viewer}: {name}"] = f"{bad}: {ran.output[-300:]}"
    assert wrong == {}
