"""Access over HTTP: without keys this machine alone; with keys each within its tenant and scopes, on every path."""

from itertools import product
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from roomlore_server.http.guard import is_loopback
from roomlore_testkit.case_table import all_cases

FEEDBACK = {"score": 1.0}
SAID = {"room_id": "tea", "message": {"id": "m1", "sender_id": "eve", "text": "x"}, "model_id": "none"}
ROUTES = [
    ("GET", "/messages?room_id=tea", None, "read"),
    ("GET", "/messages/search?room_id=tea&q=word", None, "read"),
    ("GET", "/models", None, "read"),
    ("GET", "/jobs", None, "admin"),
    ("GET", "/jobs/extraction:x1", None, "admin"),
    ("POST", "/jobs/extraction:x1/retry", None, "admin"),
    ("POST", "/chat/sse", SAID, "write"),
    ("POST", "/messages", {"id": "mine", "room_id": "tea", "sender_id": "eve", "text": "x"}, "write"),
    ("GET", "/messages/tea/m1", None, "read"),
    ("PATCH", "/messages/tea/m1", {"text": "changed"}, "write"),
    ("PUT", "/messages/tea/m2/link", {"answers": None}, "write"),
    ("DELETE", "/messages/tea/m2/link", None, "write"),
    ("GET", "/rooms/tea/corrections", None, "read"),
    ("PATCH", "/rooms/tea", {"name": "Tea"}, "write"),
    ("DELETE", "/messages/tea/m1", None, "write"),
    ("POST", "/context", {"room_id": "tea", "message_id": "m2"}, "read"),
    ("GET", "/context/{context}", None, "read"),
    ("POST", "/context/{context}/response", {"text": "x"}, "write"),
    ("POST", "/context/{context}/feedback", FEEDBACK, "write"),
    ("GET", "/usage", None, "admin"),
    ("GET", "/usage/report", None, "admin"),
    ("GET", "/usage/export", None, "admin"),
    ("GET", "/rooms", None, "admin"),
    ("GET", "/rooms/tea", None, "read"),
    ("DELETE", "/rooms/tea?dry_run=true", None, "admin"),
    ("GET", "/rooms/tea/threads", None, "read"),
    ("GET", "/rooms/tea/threads/m1", None, "read"),
    ("POST", "/rooms/tea/read", {"user_id": "ann"}, "write"),
    ("GET", "/rooms/tea/settings", None, "read"),
    ("PATCH", "/rooms/tea/settings", {"strategy": "recent"}, "write"),
    ("GET", "/sessions", None, "admin"),
    ("POST", "/sessions", {"conversation_id": "new"}, "write"),
    ("GET", "/sessions/tea", None, "read"),
    ("PATCH", "/sessions/tea/state", {"mine": 1}, "write"),
    ("POST", "/sessions/tea/context", {"query": "word"}, "read"),
    ("POST", "/sessions/new/turns", {"user_query": "x"}, "write"),
    ("POST", "/sessions/tea/checkpoint", {"summary": "x", "covers_through": "m0"}, "write"),
    ("POST", "/sessions/tea/reset", None, "write"),
    ("GET", "/sessions/tea/checkpoints", None, "read"),
    ("GET", "/facts?scope=user:ann", None, "read"),
    ("POST", "/facts", {"scope": "user:ann", "statement": "mine"}, "write"),
    ("GET", "/facts/f1", None, "read"),
    ("PATCH", "/facts/f1", {"confidence": 0}, "write"),
    ("GET", "/facts/f1/history", None, "read"),
    ("DELETE", "/facts/f1", None, "write"),
    ("POST", "/recall", {"scopes": ["user:ann"]}, "read"),
    ("POST", "/memory/evolve/tea?mode=offline", None, "admin"),
    ("GET", "/memory/evolution/e1", None, "admin"),
    ("GET", "/memory/list/user:ann", None, "read"),
    ("GET", "/memory/search/user:ann?q=word&threshold=0", None, "read"),
    ("GET", "/memory/changes/user:ann", None, "admin"),
    ("GET", "/memory/as-of/user:ann?at=2126-01-01", None, "admin"),
    ("GET", "/memory/diff/user:ann?from=2026-01-01", None, "admin"),
    ("GET", "/memory/history/f1", None, "read"),
    ("GET", "/memory/blame/f1", None, "admin"),
    ("DELETE", "/memory/f1", None, "write"),
    ("PUT", "/memory/f1/restore", None, "write"),
    ("PUT", "/memory/f1/strength", {"strength": 0.5}, "write"),
    ("POST", "/memory/revert/e1", None, "admin"),
    ("GET", "/memory/f1/visible", None, "admin"),
    ("GET", "/rooms/tea/visible", None, "admin"),
    ("PUT", "/memory/f1/share", {"with": "everyone"}, "write"),
    ("DELETE", "/memory/f1/share?with=everyone", None, "write"),
    ("POST", "/privacy/forget", {"user_id": "ann", "dry_run": True}, "admin"),
    ("GET", "/privacy/verify", None, "admin"),
    ("GET", "/rooms/tea/audience", None, "admin"),
    ("PATCH", "/rooms/tea/audience", {"kind": "private"}, "admin"),
    ("GET", "/index", None, "admin"),
    ("GET", "/metrics", None, "admin"),
]
SHOWING = [(method, path, body, scope) for method, path, body, scope in ROUTES if scope != "admin"]
TAKES_IN = {
    ("POST", "/messages"),
    ("POST", "/chat/sse"),
    ("GET", "/models"),
    ("POST", "/sessions/new/turns"),
    ("POST", "/context/{context}/response"),
    ("POST", "/context/{context}/feedback"),
}
OF_A_GROUP = (
    "/memory/evolve/",
    "/memory/list/",
    "/memory/search/",
    "/memory/changes/",
    "/memory/as-of/",
    "/memory/diff/",
)
OTHERS = ["/openapi.json", "/nothing", "/docs", "/health", "/health/live/", "/%68ealth/live"]


def shown_to_its_room(method: str, path: str, body: Any, scope: str) -> str:
    """The path with a viewer, as a key without the scope admin needs it, if the path reads one."""
    if scope == "admin" or (method, path) in TAKES_IN:
        return path
    room = "new" if "new" in (path.split("/")[2:3] or (body or {}).values()) else "tea"
    whom = "user:ann" if path.partition("?")[0].endswith("/share") else f"room:{room}"
    return f"{path}{'&' if '?' in path else '?'}viewer={whom}"


async def fill(ours, make_message):
    """Fill a tenant with a room, a memory and a context built in the room; return the context's id."""
    from roomlore.core.records import from_record

    await ours.messages.add([from_record(make_message(n)).message for n in (1, 2)])
    built = await ours.context.build("tea", "m2")
    await ours.context.usage(built.context_id)
    await ours.memories.add("user:ann", "a word of hers", memory_id="f1")
    return built.context_id


@pytest.fixture
async def context(lore, make_message):
    """The id of a context of the tenant `ours`."""
    return await fill(lore.for_tenant("ours"), make_message)


async def key_for_each_scope(ours):
    return {scope: (await ours.keys.create(scope, scopes=(scope,)))[1] for scope in ("read", "write", "admin")}


async def key_of_others(theirs):
    return (await theirs.keys.create("theirs", scopes=("read", "write")))[1]


@pytest.fixture
async def secrets(lore):
    """A secret of `ours` for each scope alone."""
    return await key_for_each_scope(lore.for_tenant("ours"))


def everything(app):
    return [route for route in app.routes if isinstance(route, APIRoute)]


def test_the_table_has_every_route(app):
    known = {
        (method, path.partition("?")[0].count("/"), path.split("/")[1].partition("?")[0]) for method, path, *_ in ROUTES
    }
    there = {
        (method, route.path.count("/"), route.path.split("/")[1])
        for route in everything(app)
        for method in route.methods
        # The protocols of others have tests of their own.
        if not route.path.startswith(("/health", "/v1/", "/v2/", "/v3/", "/api/v1/"))
    }
    assert there
    assert there == known


async def test_every_path_needs_a_key_once_there_is_one(connect, secrets, context):
    with all_cases() as case:
        for key in (None, "rl_wrong", secrets["read"][:-1]):
            async with connect(key=key) as client:
                for method, path, body, _ in ROUTES:
                    with case(key, method, path):
                        answer = await client.request(method, path.format(context=context), json=body)
                        assert answer.status_code == 401
                        assert answer.headers["www-authenticate"].startswith("Bearer")
                        assert answer.json()["type"] == "urn:roomlore:key-needed"


async def test_every_path_needs_its_scope(connect, lore, make_message):
    """What a path changes, it changes in a tenant of its own."""

    async def filled(tenant: str) -> tuple[str, dict[str, str]]:
        ours = lore.for_tenant(tenant)
        return await fill(ours, make_message), await key_for_each_scope(ours)

    read = await filled("read")
    with all_cases() as case:
        for number, (method, path, body, scope) in enumerate(ROUTES):
            context, secrets = read if method == "GET" else await filled(f"changed {number}")
            asked = shown_to_its_room(method, path, body, scope)
            for name in ("read", "write", "admin"):
                async with connect(key=secrets[name]) as client:
                    with case(name, method, path):
                        answer = await client.request(method, asked.format(context=context), json=body)
                        if name in (scope, "admin"):
                            assert answer.status_code in (200, 204, 404), answer.text
                        else:
                            assert answer.status_code == 403
                            assert f"lacks the scope {scope}" in answer.json()["detail"]


async def test_a_key_that_is_no_administrators_names_its_viewer(connect, secrets, context):
    """Or the path only takes something in, and shows nothing of what was known before."""
    with all_cases() as case:
        for method, path, body, scope in SHOWING:
            async with connect(key=secrets[scope]) as client:
                with case(method, path):
                    answer = await client.request(method, path.format(context=context), json=body)
                    if (method, path) in TAKES_IN:
                        assert answer.status_code in (200, 204, 404)
                        continue
                    assert answer.status_code == 403
                    assert "say to whom the answer is shown" in answer.json()["detail"]
                    assert "lacks the scope admin" in answer.json()["detail"]
                    whom = {"viewer": "tea"}
                    wrong = await client.request(method, path.format(context=context), json=body, params=whom)
                    assert wrong.status_code == 422


async def test_no_path_shows_another_tenant(connect, context, lore):
    """Each path is asked for by a tenant of its own: what one stored there, another would show."""
    before = await _snapshot(lore)
    with all_cases() as case:
        for number, (method, path, body, scope) in enumerate(SHOWING):
            asked = shown_to_its_room(method, path, body, scope).format(context=context)
            key = await key_of_others(lore.for_tenant(f"theirs{number}"))
            async with connect(key=key) as client:
                with case(method, path):
                    nothing_is_shown(method, path, body, await client.request(method, asked, json=body))
                    assert before == await _snapshot(lore)


def nothing_is_shown(method: str, path: str, body: Any, answer: httpx.Response) -> None:
    if (method, path) == ("POST", "/messages"):
        assert answer.json() == {"added": ["mine"], "duplicates": [], "conflicts": [], "new_rooms": {"tea": []}}
    elif path.startswith("/facts?"):
        assert answer.json() == {"facts": [], "total": 0, "next": None}
    elif (method, path) == ("POST", "/facts"):
        assert [one["outcome"] for one in answer.json()["facts"]] == ["added"]
    elif path == "/recall":
        assert (answer.json()["facts"], answer.json()["considered"]) == ([], 0)
    elif path == "/models":
        assert answer.json() == {"models": []}, "the models are everybody's"
    elif path.startswith((*OF_A_GROUP, "/privacy/")):
        assert answer.status_code == 200
        assert "word" not in answer.text.replace("q=word", "").replace('"query":"word"', "").replace("same_words", "")
    elif "new" in (path.split("/")[2:3] or (body or {}).values()):
        assert answer.status_code == 200
    else:
        assert answer.status_code == 404
        assert "word" not in answer.text


async def _snapshot(lore):
    ours = lore.for_tenant("ours")
    return await ours.messages.page("tea"), await ours.rooms.get("tea"), await ours.memories.changes("user:ann")


async def test_nothing_else_is_open(connect, secrets):
    async with connect() as client:
        found = {path: (await client.get(path)).status_code for path in OTHERS}
    assert found == dict.fromkeys(OTHERS, 401)


async def test_health_is_open(connect, secrets):
    async with connect(client="203.0.113.9", base="http://chat.example") as client:
        assert (await client.get("/health/live")).status_code == 200
        assert (await client.get("/health/ready")).status_code == 200


async def test_a_malformed_header_is_refused_even_without_keys(connect):
    headers = ["", "Bearer", "Bearer  ", "Basic cmw6cmw=", "rl_key", "bearer"]
    async with connect() as client:
        found = {one: (await client.get("/rooms", headers={"Authorization": one})).status_code for one in headers}
    assert found == dict.fromkeys(headers, 401)


async def test_a_revoked_key_opens_nothing(connect, lore):
    key, secret = await lore.keys.create("bot", scopes=("admin",))
    other, _ = await lore.keys.create("other")
    async with connect(key=secret) as client:
        assert (await client.get("/rooms")).status_code == 200
        await lore.keys.revoke(key.key_id)
        assert (await client.get("/rooms")).status_code == 401
        await lore.keys.revoke(other.key_id)


async def test_revoking_the_last_key_does_not_open_the_door_again(connect, lore):
    key, _ = await lore.keys.create("bot")
    await lore.keys.revoke(key.key_id)
    async with connect() as client:
        assert (await client.get("/rooms")).status_code == 401


async def test_a_key_works_from_anywhere_under_any_name(connect, secrets):
    async with connect(key=secrets["admin"], client="203.0.113.9", base="http://chat.example") as client:
        assert (await client.get("/rooms", headers={"Origin": "https://other.example"})).status_code == 200


async def test_without_keys_nobody_else_may_ask(connect):
    with all_cases() as case:
        for client in ("203.0.113.9", "10.0.0.2", "::ffff:10.0.0.2", "2001:db8::1"):
            async with connect(client=client) as http:
                with case(client):
                    answer = await http.get("/rooms")
                    assert answer.status_code == 403
                    assert "only this machine" in answer.json()["detail"]


async def test_names_of_this_machine_are_fine(connect):
    names = ["http://localhost:1", "http://127.0.0.1", "http://127.3.2.1:80", "http://[::1]:9", "http://LOCALHOST"]
    found = {}
    for base in names:
        async with connect(base=base) as http:
            found[base] = (await http.get("/rooms")).status_code
    assert found == dict.fromkeys(names, 200)


OTHER_HOSTS = [
    "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "0.0.0.0", "192.168.0.9:80",
    "[::1].evil.test", "[::1]evil", "[::1", "[::1]:", "localhost:1@evil", "localhost:80:evil", "localhost:x",
    "user@localhost", "localhost/evil", "localhost.", "[localhost]", "[::1%evil]", "localhost, evil.test",
]  # fmt: skip


async def test_without_keys_the_host_header_must_mean_this_machine(connect):
    async with connect() as http:
        with all_cases() as case:
            for host in OTHER_HOSTS:
                with case(host):
                    answer = await http.get("/rooms", headers={"Host": host})
                    assert answer.status_code == 403
                    assert "Host header" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/rooms", "/health/live", "/console"])
async def test_a_request_with_several_hosts_is_for_nobody(connect, lore, path):
    """Whichever of them is looked at, a proxy may have looked at the other one."""
    async with connect() as http:
        for hosts in (("localhost", "evil.example"), ("evil.example", "localhost"), ("localhost", "localhost")):
            request = http.build_request("GET", path, headers=[("Host", host) for host in hosts])
            answer = await http.send(request)
            assert answer.status_code == 400, hosts
            assert "several Host headers" in answer.json()["detail"]
        _, secret = await lore.keys.create("reads", scopes=["read"])
        headers = [("Host", "localhost"), ("Host", "localhost"), ("Authorization", f"Bearer {secret}")]
        assert (await http.send(http.build_request("GET", path, headers=headers))).status_code == 400


async def test_every_origin_must_be_of_this_address(connect):
    async with connect(base="http://localhost:8765") as http:
        for other in ("https://evil.example", "chrome-extension://localhost:8765"):
            origins = [("Origin", "http://localhost:8765"), ("Origin", other)]
            for headers in (origins, origins[::-1]):
                assert (await http.get("/rooms", headers=headers)).status_code == 403


ORIGINS = {
    "http://localhost:8765": 200, "http://LOCALHOST:8765": 200, "https://evil.example": 403, "null": 403,
    "http://localhost:3000": 403, "http://localhost": 403, "http://127.0.0.1:8765": 403, "": 403,
    "http://localhost:8765@evil.example": 403, "http://[::1].evil.test:8765": 403, "https://localhost:8765": 200,
    "chrome-extension://localhost:8765": 403, "moz-extension://localhost:8765": 403, "ftp://localhost:8765": 403,
    "localhost:8765": 403, "://localhost:8765": 403, "HTTP://localhost:8765": 200,
}  # fmt: skip


async def test_without_keys_only_a_page_of_this_very_address_may_ask(connect, lore):
    await lore.sessions.create_session("conv")
    async with connect(base="http://localhost:8765") as http:
        with all_cases() as case:
            for origin, status in ORIGINS.items():
                with case(origin):
                    assert (await http.get("/rooms", headers={"Origin": origin})).status_code == status
                    assert (await http.post("/sessions/conv/reset", headers={"Origin": origin})).status_code == status


async def test_without_keys_a_page_of_another_site_that_hides_its_origin_is_refused(connect, lore):
    await lore.sessions.create_session("conv")
    async with connect() as http:
        with all_cases() as case:
            for site, status in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)):
                with case(site):
                    headers = {"Sec-Fetch-Site": site}
                    assert (await http.get("/rooms", headers=headers)).status_code == status
                    assert (await http.post("/sessions/conv/reset", headers=headers)).status_code == status


FETCHED_AS = [
    ("navigate", "document", 200), ("navigate", "iframe", 403), ("navigate", "object", 403),
    ("no-cors", "image", 403), ("no-cors", "script", 403), ("no-cors", "empty", 403), ("cors", "document", 403),
]  # fmt: skip


async def test_without_keys_another_site_may_link_here_and_embed_nothing(connect, lore):
    await lore.sessions.create_session("conv")
    async with connect() as http:
        with all_cases() as case:
            for site, (mode, destination, status) in product(("same-site", "cross-site"), FETCHED_AS):
                with case(site, mode, destination):
                    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
                    assert (await http.get("/console", headers=headers)).status_code == status
                    assert (await http.get("/rooms", headers=headers)).status_code == status
                    assert (await http.post("/sessions/conv/reset", headers=headers)).status_code == 403


async def test_a_further_host_may_be_allowed():
    import roomlore
    from roomlore_server.http import create_app

    settings = roomlore.Settings(allowed_hosts="bot.internal")
    async with roomlore.open("sqlite://", settings=settings) as lore:
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://Bot.Internal:80") as http:
            assert (await http.get("/rooms")).status_code == 200


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False), ("::", False), ("", False), ("10.0.0.1", False), ("example.org", False), ("127.1", False),
    ],
)  # fmt: skip
def test_what_counts_as_this_machine(host, is_here):
    assert is_loopback(host) is is_here
