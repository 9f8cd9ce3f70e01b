"""MCP behind an OAuth 2 authorization server: how clients find it, and which access tokens open what."""

import base64
import hmac
import json
import time
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import httpx
import httpx2
import jwt
import pytest
from authorization_server import AuthorizationServer, authorization_server
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

import roomlore
from mcp_rig import ANNA, ask, messages, on_a_port, over_http, refusal
from roomlore import Message, Source
from roomlore.adapters.oauth import IssuerTokens
from roomlore.core.errors import Forbidden, InvalidInput, Unavailable
from roomlore.core.health import Finding
from roomlore.settings import Settings
from roomlore.wiring import diagnose
from roomlore_server.http import create_app, create_mcp_app
from roomlore_server.http.server import bind
from roomlore_server.mcp import TOOLS
from roomlore_testkit.case_table import all_cases

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
WELL_KNOWN = "/.well-known/oauth-protected-resource"
RESOURCE = "https://memory.example.com/mcp"


@pytest.fixture
async def issuer():
    async with authorization_server() as standing:
        yield standing


@asynccontextmanager
async def protected(issuer: AuthorizationServer, *, resource: str = RESOURCE, make=create_app, door=None, **more):
    """roomlore behind the authorization server: an open one, and its address."""
    settings = Settings(oauth_issuer=issuer.issuer, oauth_resource=resource, **more)
    async with roomlore.open("sqlite://", settings=settings) as lore, on_a_port(make(lore), door) as url:
        yield lore, url


async def ping(url: str, token: str | None = None, path: str = "/mcp", **more) -> httpx.Response:
    headers = {**ACCEPT, **({"Authorization": f"Bearer {token}"} if token else {})}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as http:
        return await http.post(path, json=PING, **more)


class Kept:
    """The tokens of a client of MCP."""

    tokens = client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info


def discovering(url: str) -> OAuthClientProvider:
    """The SDK's own client, with a person who agrees to everything."""
    answered: dict[str, list[str]] = {}

    async def visit(address: str) -> None:
        async with httpx.AsyncClient(trust_env=False) as browser:
            answered.update(parse_qs(urlsplit((await browser.get(address)).headers["location"]).query))

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=answered["code"][0], state=answered["state"][0])

    metadata = OAuthClientMetadata(redirect_uris=["http://localhost:1/back"], client_name="host")
    return OAuthClientProvider(f"{url}/mcp", metadata, Kept(), redirect_handler=visit, callback_handler=come_back)


async def test_a_client_finds_the_authorization_server_and_sees_what_its_person_may_know(issuer):
    door = bind("127.0.0.1", 0)
    resource = f"http://127.0.0.1:{door.getsockname()[1]}/mcp"
    async with protected(issuer, resource=resource, door=door) as (lore, url):
        await lore.rooms.set_kind("dm", "direct")
        await lore.messages.add([Message(id="d", room_id="dm", sender_id="anna", text="x"), *messages()])
        await lore.memories.add(ANNA, "Anna looks for a job 安娜找工作", sources=[Source("dm", "d")])
        async with (
            httpx2.AsyncClient(auth=discovering(url), timeout=60, trust_env=False) as web,
            Client(streamable_http_client(resource, http_client=web)) as client,
        ):
            assert len((await client.list_tools()).tools) == len(TOOLS)
            assert (await ask(client, "get_memories"))["total"] == 1, "its own scope where a call names none"
            assert "job" in (await ask(client, "memory_prompt", query="a job?"))["text"]
        assert issuer.resources == [resource]
        assert issuer.wanted == ["roomlore:read roomlore:write"]
        issuer.user = "bo"
        async with over_http(url, key=issuer.token(resource)) as client:
            assert (await ask(client, "get_memories", scope=ANNA))["total"] == 0
            assert "job" not in (await ask(client, "memory_prompt", query="a job?", scopes=[ANNA]))["text"]
            assert "There is no room" in await refusal(client, "room_context", room_id="dm", message_id="d")


async def test_the_metadata_is_open_and_names_issuer_resource_and_scopes(issuer):
    async with protected(issuer) as (lore, url), httpx.AsyncClient(base_url=url) as http:
        await lore.keys.create("any")
        with all_cases() as case:
            for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
                with case(path):
                    answer = await http.get(path)
                    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
                    assert answer.json() == {
                        "resource": RESOURCE,
                        "authorization_servers": [issuer.issuer],
                        "scopes_supported": ["roomlore:read", "roomlore:write"],
                        "bearer_methods_supported": ["header"],
                        "resource_name": "roomlore",
                    }
                    assert (await http.post(path)).status_code == 405
        assert (await http.get(f"{WELL_KNOWN}/other")).status_code == 404


async def test_a_server_that_only_reads_offers_the_scope_for_reading(issuer):
    def make(lore):
        return create_mcp_app(lore, read_only=True)

    async with protected(issuer, make=make) as (_, url), httpx.AsyncClient(base_url=url) as http:
        assert (await http.get(WELL_KNOWN)).json()["scopes_supported"] == ["roomlore:read"]


async def test_without_an_issuer_nothing_changes(connect):
    async with connect() as http:
        assert (await http.get(WELL_KNOWN)).status_code == 404
        assert (await http.post("/mcp", json=PING, headers=ACCEPT)).status_code == 200
        refused = await http.post("/mcp", json=PING, headers={"Authorization": "Bearer a.b.c"})
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Bearer realm="roomlore"')


async def test_whoever_sends_nothing_is_led_to_the_metadata_from_this_machine_too(issuer):
    async with protected(issuer) as (_, url):
        answer = await ping(url)
        assert (answer.status_code, answer.json()["type"]) == (401, "urn:roomlore:key-needed")
        where = f'resource_metadata="https://memory.example.com{WELL_KNOWN}/mcp"'
        assert answer.headers["www-authenticate"] == f'Bearer realm="roomlore", {where}'


async def test_what_is_neither_a_key_nor_a_token_is_answered_as_both(issuer):
    async with protected(issuer) as (_, url):
        for wrong in ("rl_guess", "opaque", "two.parts"):
            answer = await ping(url, wrong)
            assert answer.status_code == 401
            assert "no API key" in answer.json()["detail"]
            assert "no access token" in answer.json()["detail"]
            assert answer.headers["www-authenticate"] == (
                'Bearer realm="roomlore", error="invalid_token", '
                f'resource_metadata="https://memory.example.com{WELL_KNOWN}/mcp"'
            )
        async with httpx.AsyncClient(base_url=url, headers={"Authorization": "Basic YTpi"}) as http:
            answer = await http.post("/mcp", json=PING)
        assert (answer.status_code, "error=" in answer.headers["www-authenticate"]) == (401, False)


async def test_keys_open_mcp_as_before(issuer):
    """As of a gateway that checks tokens itself and then sends a key."""
    async with protected(issuer) as (lore, url):
        _, key = await lore.keys.create("gateway", scopes=["read"])
        assert (await ping(url, key, "/mcp?viewer=room:tea")).status_code == 200
        assert (await ping(url, key)).status_code == 403
    assert issuer.asked == []


async def test_a_token_opens_mcp_alone_and_for_its_own_person(issuer):
    async with protected(issuer) as (lore, url):
        await lore.keys.create("any")
        token = issuer.token(RESOURCE)
        assert (await ping(url, token)).status_code == 200
        assert (await ping(url, token, "/mcp?viewer=user:anna")).status_code == 200
        for viewer in ("user:bo", "room:tea"):
            other = await ping(url, token, f"/mcp?viewer={viewer}")
            assert (other.status_code, other.json()["type"]) == (403, "urn:roomlore:forbidden")
        async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}) as http:
            for path in ("/rooms/tea?viewer=user:anna", "/facts?scope=user:anna&viewer=user:anna", "/metrics"):
                assert (await http.get(path)).status_code == 401


async def test_scopes_of_a_token_are_those_of_a_key_and_never_admin(issuer):
    async with protected(issuer) as (_, url):
        reading = [tool.name for tool in TOOLS if not tool.writes]
        for granted in ("roomlore:read", "roomlore:read admin roomlore:admin write", ["roomlore:read"]):
            async with over_http(url, key=issuer.token(RESOURCE, scope=granted)) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == reading
                assert "This server only reads" in await refusal(client, "delete_memory", memory_id="x")
        async with over_http(url, key=issuer.token(RESOURCE, scope=None, scp=["roomlore:read"])) as client:
            assert len((await client.list_tools()).tools) == len(reading)
        for granted in ("", "openid", "roomlore:write", "read", "roomlore:reader", None, 7):
            answer = await ping(url, issuer.token(RESOURCE, scope=granted))
            assert answer.status_code == 403, granted
            assert 'error="insufficient_scope", scope="roomlore:read"' in answer.headers["www-authenticate"]


async def test_the_claim_with_the_persons_id_is_a_setting(issuer):
    async with protected(issuer, oauth_user_claim="chat_id") as (_, url):
        named = issuer.token(RESOURCE, chat_id="安娜")
        assert (await ping(url, named, "/mcp?viewer=user:安娜")).status_code == 200
        assert (await ping(url, named, "/mcp?viewer=user:anna")).status_code == 403
        for nobody in (None, "", " ", 7, ["anna"], "x" * 10_000):
            assert (await ping(url, issuer.token(RESOURCE, chat_id=nobody))).status_code == 401


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def _part(**header: object) -> str:
    return _encoded(json.dumps({"typ": "JWT", **header}).encode())


def _unsigned(token: str, **header: object) -> str:
    return f"{_part(**header)}.{token.split('.')[1]}."


def _hmac(issuer: AuthorizationServer, token: str) -> str:
    """A token whose secret is the public key, which everybody knows."""
    public = (
        issuer.keys["one"]
        .public_key()
        .public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    signed = f"{_part(alg='HS256', kid='one')}.{token.split('.')[1]}"
    return f"{signed}.{_encoded(hmac.digest(public, signed.encode(), 'sha256'))}"


def _of_another_key(issuer: AuthorizationServer, name: str) -> str:
    claims = jwt.decode(issuer.token(RESOURCE), options={"verify_signature": False})
    own = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return jwt.encode(claims, own, "RS256", headers={"kid": name})


HOSTILE = {
    "another audience": lambda it: it.token("https://other.example.com/mcp"),
    "a parent of the audience": lambda it: it.token("https://memory.example.com"),
    "no audience": lambda it: it.token(RESOURCE, aud=None),
    "expired": lambda it: it.token(RESOURCE, exp=int(time.time()) - 120),
    "no end": lambda it: it.token(RESOURCE, exp=None),
    "not yet": lambda it: it.token(RESOURCE, nbf=int(time.time()) + 120),
    "another issuer": lambda it: it.token(RESOURCE, iss="https://evil.example.com"),
    "a longer issuer": lambda it: it.token(RESOURCE, iss=f"{it.issuer}/"),
    "no issuer": lambda it: it.token(RESOURCE, iss=None),
    "no algorithm": lambda it: _unsigned(it.token(RESOURCE), alg="none", kid="one"),
    "no algorithm, in capitals": lambda it: _unsigned(it.token(RESOURCE), alg="NONE", kid="one"),
    "an algorithm that is no text": lambda it: _unsigned(it.token(RESOURCE), alg=["RS256"], kid="one"),
    "the public key as a secret": lambda it: _hmac(it, it.token(RESOURCE)),
    "a forged signature": lambda it: _of_another_key(it, "one"),
    "a key of the sender's": lambda it: _of_another_key(it, "mine"),
    "changed claims": lambda it: ".".join(
        [it.token(RESOURCE).split(".")[0], it.token(RESOURCE, sub="bo").split(".")[1], it.token(RESOURCE).split(".")[2]]
    ),
    "bound to a key": lambda it: it.token(RESOURCE, cnf={"jkt": "x"}),
    "of another type": lambda it: it.token(RESOURCE, header={"typ": "logout+jwt"}),
    "with a critical extension": lambda it: it.token(RESOURCE, header={"crit": ["exp"]}),
    "rubbish": lambda _: "a.b.c",
    "nothing": lambda _: "..",
    "deep": lambda _: base64.urlsafe_b64encode(b"[" * 9_000).decode() + ".e30.",
    "long": lambda it: it.token(RESOURCE, filler="x" * 20_000),
}


async def test_hostile_tokens_are_refused(issuer, capfd):
    async with protected(issuer) as (_, url):
        tokens = {name: make(issuer) for name, make in HOSTILE.items()}
        answers = {name: await ping(url, token) for name, token in tokens.items()}
        assert (await ping(url, issuer.token(RESOURCE))).status_code == 200
    told = capfd.readouterr()
    with all_cases() as case:
        for name, token in tokens.items():
            with case(name):
                answer = answers[name]
                assert answer.status_code == 401, answer.text
                assert 'error="invalid_token"' in answer.headers["www-authenticate"]
                shown = answer.text + told.out + told.err
                assert not [part for part in token.split(".") if len(part) > 9 and part in shown]


async def test_an_access_token_of_a_listed_audience_and_with_its_own_type_is_taken(issuer):
    async with protected(issuer) as (_, url):
        token = issuer.token(RESOURCE, aud=["account", RESOURCE], header={"typ": "at+jwt"})
        assert (await ping(url, token)).status_code == 200


async def test_metadata_of_another_issuer_is_not_believed(issuer):
    issuer.told_issuer = "https://evil.example.com"
    async with protected(issuer) as (_, url):
        answer = await ping(url, issuer.token(RESOURCE))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "keys" not in issuer.asked


async def test_keys_that_only_one_of_the_documents_names_are_found(issuer):
    issuer.keyless_first = True
    async with protected(issuer) as (_, url):
        assert (await ping(url, issuer.token(RESOURCE))).status_code == 200


async def test_an_authorization_server_that_is_gone_is_said():
    async with authorization_server() as gone:
        token = gone.token(RESOURCE)
    async with protected(gone) as (_, url):
        assert (await ping(url, token)).status_code == 503


async def test_keys_change_and_strange_names_do_not_ask_for_them_each_time(issuer):
    now = 0.0
    tokens = IssuerTokens(issuer.issuer, audience=RESOURCE, tick=lambda: now)
    assert (await tokens.verify(issuer.token(RESOURCE)))["sub"] == "anna"
    issuer.keys["two"] = ec.generate_private_key(ec.SECP256R1())
    for _ in range(3):
        with pytest.raises(Forbidden, match="its key is none"):
            await tokens.verify(issuer.token(RESOURCE, key="two"))
    assert issuer.asked.count("keys") == 1
    now = 31.0
    assert await tokens.verify(issuer.token(RESOURCE, key="two"))
    assert await tokens.verify(issuer.token(RESOURCE))
    assert issuer.asked.count("keys") == 2
    old = issuer.token(RESOURCE)
    del issuer.keys["one"]
    now = 700.0
    with pytest.raises(Forbidden, match="its key is none"):
        await tokens.verify(old)


async def test_known_keys_are_used_for_an_hour_while_the_server_is_broken(issuer):
    now = 0.0
    tokens = IssuerTokens(issuer.issuer, audience=RESOURCE, tick=lambda: now)
    token = issuer.token(RESOURCE)
    await tokens.verify(token)
    issuer.broken, now = True, 3_500.0
    assert await tokens.verify(token)
    now = 3_700.0
    with pytest.raises(Unavailable, match="no access token can be checked now"):
        await tokens.verify(token)


async def examined(issuer: AuthorizationServer, **more: str) -> Finding:
    settings = Settings(oauth_issuer=issuer.issuer, oauth_resource=RESOURCE, database_url="sqlite://", **more)
    (finding,) = [one for one in await diagnose(settings, timeout_seconds=60) if one.part == "oauth"]
    return finding


async def test_the_doctor_says_what_the_authorization_server_publishes(issuer):
    finding = await examined(issuer)
    assert finding.verdict == "ok" or "slow" in finding.advice
    assert finding.told == f"{issuer.issuer} answers, public keys: 1; tokens must be for {RESOURCE}"
    assert "oauth" not in [one.part for one in await diagnose(Settings(database_url="sqlite://"))]


@pytest.mark.parametrize(
    ("published", "advice"),
    [
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"code_challenge_methods_supported": 7}, "PKCE"),
        ({"scopes_supported": ["openid", "roomlore:read"]}, "Add these scopes there: roomlore:write."),
    ],
)
async def test_the_doctor_warns_of_what_keeps_people_from_signing_in(issuer, published, advice):
    issuer.published_beside = published
    finding = await examined(issuer)
    assert finding.verdict == "warn"
    assert advice in finding.advice


async def test_the_doctor_says_why_no_token_can_be_checked(issuer):
    issuer.broken = True
    broken = await examined(issuer)
    assert (broken.verdict, broken.told) == (
        "fail",
        f"The authorization server {issuer.issuer} cannot be used now: it answered with 500.",
    )
    issuer.broken, issuer.keys = False, {}
    assert "it publishes no key for signatures" in (await examined(issuer)).told
    issuer.published_beside = {"jwks_uri": "http://keys.example.com"}
    assert "jwks_uri" in (await examined(issuer)).told
    issuer.published_beside, issuer.told_issuer = {}, f"{issuer.issuer}/"
    other = await examined(issuer)
    assert f"names the issuer '{issuer.issuer}/', and oauth_issuer is '{issuer.issuer}'" in other.told
    assert other.advice == "Mend the setting."
    issuer.issuer = issuer.issuer.removesuffix("tea")
    assert "no metadata of this issuer" in (await examined(issuer)).told


async def test_the_doctor_says_that_the_authorization_server_is_gone():
    async with authorization_server() as gone:
        pass
    finding = await examined(gone)
    assert (finding.verdict, "cannot be reached (ConnectError)" in finding.told) == ("fail", True)


@pytest.mark.parametrize(
    "given",
    [
        {"oauth_issuer": "https://auth.example.com"},
        {"oauth_resource": RESOURCE},
        {"oauth_issuer": "http://auth.example.com", "oauth_resource": RESOURCE},
        {"oauth_issuer": "https://auth.example.com#x", "oauth_resource": RESOURCE},
        {"oauth_issuer": "https://auth.example.com?x=1", "oauth_resource": RESOURCE},
        {"oauth_issuer": "https://me@auth.example.com", "oauth_resource": RESOURCE},
        {"oauth_issuer": "https://auth.example.com", "oauth_resource": 'https://memory.example.com/"'},
        {"oauth_issuer": "https://auth.example.com", "oauth_resource": "https://memory.example.com/{x}"},
        {"oauth_issuer": "auth.example.com", "oauth_resource": RESOURCE},
        {"oauth_issuer": "https://auth.example.com", "oauth_resource": RESOURCE, "oauth_user_claim": ""},
    ],
)
def test_settings_that_are_not_safe_stop_the_start(given):
    with pytest.raises(InvalidInput, match="oauth_"):
        Settings(**given)
