"""`roomlore serve` as a process of its own: it listens, answers, logs without telling, and stops when told to."""

import asyncio
import json
import re
import signal
import socket
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import roomlore
from forked_process import ForkedProgram, run_forked
from roomlore_server.http.server import bind

DATABASE = ("--db", "chat.db")
PROGRAM = ("roomlore", *DATABASE)
SECRET_WORDS = "the vault opens with 7319"


@contextmanager
def serving(*arguments: str, before: tuple[str, ...] = (), program: str = "roomlore"):
    """Yields (process, URL); the log is in serve.log. `before`: global options."""
    with Path("serve.log").open("wb") as log:
        process = ForkedProgram(program, *DATABASE, *before, "serve", "--port", "0", *arguments, error=log.fileno())
        try:
            line = process.stdout.readline().decode()
            yield process, re.search(r"http://\S+", line).group()
        finally:
            process.close()


def log() -> list[dict]:
    return [json.loads(line) for line in Path("serve.log").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_works_logs_and_stops(monkeypatch, number):
    monkeypatch.setenv("MEMORY_LOG_FORMAT", "json")
    with serving() as (process, url):
        batch = [{"id": f"m{n}", "group_id": "vault", "sender_id": "ann", "text": SECRET_WORDS} for n in range(3)]
        assert httpx.post(f"{url}/messages", json={"messages": batch}).json()["added"] == ["m0", "m1", "m2"]
        built = httpx.post(f"{url}/context", json={"room_id": "vault"}, headers={"X-Request-Id": "trace-7"}).json()
        assert httpx.get(f"{url}/rooms?after={SECRET_WORDS}").status_code == 200
        assert httpx.post(f"{url}/messages", content=b"{" + SECRET_WORDS.encode()).status_code == 415
        assert httpx.get(f"{url}/rooms", headers={"Authorization": "Bearer rl_guess-3141"}).status_code == 401
        assert httpx.get(f"{url}/rooms", headers={"Host": "evil.example"}).status_code == 403
        process.send_signal(number)
        assert process.wait(120) == 0
    lines = log()
    assert [(line["route"], line["status"]) for line in lines] == [
        ("/messages", 200), ("/context", 200), ("/rooms", 200), ("/messages", 415), ("unknown", 401), ("unknown", 403),
    ]  # fmt: skip
    assert lines[1]["request_id"] == "trace-7"
    assert {"method", "ms", "tenant", "level", "timestamp"} <= set(lines[0])
    told = json.dumps(lines)
    assert "vault" not in told
    assert "rl_guess" not in told
    with roomlore.open_sync("chat.db") as lore:
        assert lore.context.usage(built["context_id"]).trigger_message_id == "m2"


def test_health_checks_do_not_fill_the_log(monkeypatch):
    monkeypatch.setenv("MEMORY_LOG_FORMAT", "json")
    with serving() as (process, url), httpx.Client(base_url=url) as client:
        for _ in range(5):
            assert client.get("/health/live").status_code == client.get("/health/ready").status_code == 200
        assert client.post("/privacy/forget", json={"user_id": "ann", "confirm": True}).status_code == 200
        assert client.post("/health/live").status_code == 405
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    lines = [(line["event"], line.get("route"), line.get("status")) for line in log()]
    assert lines == [
        ("a person was forgotten", None, None), ("request", "/privacy/forget", 200), ("request", "/health/live", 405),
    ]  # fmt: skip


def test_a_server_serves_the_tenant_it_was_started_for():
    with roomlore.open_sync("chat.db", tenant="acme") as lore:
        lore.messages.add(roomlore.Message(id="1", room_id="theirs", sender_id="ann"))
    with serving(before=("--tenant", "acme")) as (_, url):
        assert [room["room_id"] for room in httpx.get(f"{url}/rooms").json()["rooms"]] == ["theirs"]


def test_a_taken_port_is_one_sentence():
    with serving() as (_, url):
        port = url.rpartition(":")[2]
        second = run_forked(*PROGRAM, "serve", "--port", port)
    assert second.returncode == 1
    assert second.stderr.startswith(f"roomlore: Port {port} of '127.0.0.1' cannot be had")
    assert second.stderr.count("\n") == 1


def test_a_public_address_is_served_once_there_is_a_key():
    made = run_forked(*PROGRAM, "keys", "create", "bot", "--scope", "admin")
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    with serving("--host", "0.0.0.0") as (_, url):
        port = url.rpartition(":")[2]
        assert httpx.get(f"http://127.0.0.1:{port}/rooms").status_code == 401
        answer = httpx.get(f"http://127.0.0.1:{port}/rooms", headers={"Authorization": f"Bearer {secret}"})
        assert answer.json() == {"rooms": [], "next": None}


async def test_answers_are_sent_without_waiting_for_an_acknowledgement():
    accepted = asyncio.get_running_loop().create_future()

    class Accepting(asyncio.Protocol):
        def connection_made(self, transport):
            accepted.set_result(transport)

    with bind("127.0.0.1", 0) as door:
        server = await asyncio.get_running_loop().create_server(Accepting, sock=door)
        _, writer = await asyncio.open_connection(*door.getsockname()[:2])
        transport = await accepted
        try:
            assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        finally:
            transport.close()
            writer.close()
            server.close()
            await server.wait_closed()


def test_a_kept_connection_has_its_answers_at_once():
    with serving() as (_, url), httpx.Client(base_url=url) as client:
        times = [client.get("/health/live").elapsed.total_seconds() for _ in range(40)]
    assert sorted(times)[10] < 0.030, "Nagle's algorithm and a delayed acknowledgement take 40 ms of every answer"
