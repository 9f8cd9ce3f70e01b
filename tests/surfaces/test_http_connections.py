"""Connections that keep `roomlore serve` waiting end, take nobody's place, and do not fill the log."""

import json
import resource
import socket
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from test_serve import log, serving

from roomlore.testing.model_answers import Says
from roomlore.testing.model_server import serve_models

PATIENCE = 30.0
"""More than a busy machine needs for what should take two seconds."""
HEAD = b"POST /messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setenv("MEMORY_REQUEST_TIMEOUT_SECONDS", "1")
    monkeypatch.setenv("MEMORY_IDLE_CONNECTION_SECONDS", "1")
    monkeypatch.setenv("MEMORY_MAX_CONNECTIONS", "5")
    monkeypatch.setenv("MEMORY_LOG_FORMAT", "json")


@contextmanager
def connected(url: str, sent: bytes = b""):
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        yield connection


def heard(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    received = bytearray()
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return bytes(received)


def problem(received: bytes) -> tuple[int, str]:
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    return int(head.split()[1]), json.loads(body)["type"]


HALVES = {
    "nothing": b"",
    "a head": b"GET /rooms HTTP/1.1\r\nhost: loc",
    "a body": HEAD % 100 + b'{"id": "m1"',
    "no body": HEAD % 100,
    "chunks": b"POST /messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"transfer-encoding: chunked\r\n\r\n4\r\n{",
}


def test_half_a_request_is_not_waited_for():
    with serving() as (_, url), ExitStack() as closing:
        held = {name: closing.enter_context(connected(url, sent)) for name, sent in HALVES.items()}
        for name, connection in held.items():
            assert problem(heard(connection)) == (408, "urn:roomlore:too-slow"), name


def test_a_second_head_in_part_is_not_waited_for_either():
    with serving() as (_, url), connected(url, b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n") as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /hea")
        assert problem(heard(connection)) == (408, "urn:roomlore:too-slow")


def test_an_idle_connection_is_closed():
    with serving() as (_, url), connected(url, b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n") as connection:
        assert heard(connection).count(b"HTTP/1.1") == 1


def test_a_body_that_comes_slowly_but_steadily_is_taken():
    body = json.dumps({"id": "m1", "room_id": "tea", "sender_id": "ann", "text": "x" * 20_000}).encode()
    with serving() as (_, url), connected(url, HEAD % len(body)) as connection:
        for place in range(0, len(body), 4_096):
            time.sleep(0.4)
            connection.sendall(body[place : place + 4_096])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_a_reply_that_takes_its_time_is_not_cut():
    models = {"chat": {"providers": [{"name": "here", "model_id": "chat"}]}}
    with serve_models(lambda _: Says(pieces=["one ", "two ", "three"], after=2.5, between=1.5)) as server:
        told = {"memory": {"models": models, "providers": {"here": {"base_url": server.url}}}}
        Path("slow.yaml").write_text(json.dumps(told), encoding="utf-8")
        with serving(before=("--config", "slow.yaml")) as (_, url):
            message = {"id": "m1", "room_id": "tea", "sender_id": "ann", "text": "?"}
            answer = httpx.post(f"{url}/chat/sse", json={"message": message}, timeout=60)
    assert "event: done" in answer.text


def test_an_answer_that_nobody_reads_is_given_up():
    asked = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 200
    with serving() as (_, url), socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.settimeout(PATIENCE)
        connection.connect((urlsplit(url).hostname, urlsplit(url).port))
        connection.sendall(asked)
        time.sleep(6)
        assert heard(connection).count(b"HTTP/1.1 200") < 200


def test_idle_connections_make_room(monkeypatch):
    monkeypatch.setenv("MEMORY_REQUEST_TIMEOUT_SECONDS", "600")
    with serving() as (_, url), ExitStack() as closing:
        held = [closing.enter_context(connected(url)) for _ in range(30)]
        assert httpx.get(f"{url}/health/live").status_code == 200
        for connection in held[:25]:
            assert heard(connection) == b""


def test_where_all_are_at_work_a_further_one_is_refused(monkeypatch):
    monkeypatch.setenv("MEMORY_REQUEST_TIMEOUT_SECONDS", "600")
    with serving() as (_, url), ExitStack() as closing:
        for _ in range(5):
            closing.enter_context(connected(url, HEAD % 100))
        time.sleep(1)
        with connected(url) as connection:
            assert problem(heard(connection)) == (503, "urn:roomlore:unavailable")
        closing.close()
        time.sleep(1)
        assert httpx.get(f"{url}/health/live").status_code == 200


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of another process is changed")
def test_without_file_descriptors_the_log_stays_small(monkeypatch):
    monkeypatch.setenv("MEMORY_MAX_CONNECTIONS", "1000")
    with serving() as (process, url), ExitStack() as closing:
        assert httpx.get(f"{url}/health/ready").status_code == 200
        before, most = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        held = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (held, most))
        for _ in range(100):
            closing.enter_context(connected(url))
        time.sleep(4)
        closing.close()
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (before, most))
        assert httpx.get(f"{url}/health/live", timeout=PATIENCE).status_code == 200
    told = [line for line in log() if line["event"] != "request"]
    assert ["no connection can be accepted" in line["event"] for line in told] == [True]


@pytest.mark.parametrize(
    "sent",
    [b"rubbish\r\n\r\n", b"GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"],
)
def test_rubbish_does_not_fill_the_log(sent):
    with serving() as (_, url):
        for _ in range(30):
            with connected(url, sent) as connection:
                assert connection.recv(65_536).startswith(b"HTTP/1.1")
    assert len([line for line in log() if line["event"] != "request"]) <= 3
