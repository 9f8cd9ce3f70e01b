"""Connections that keep `roomlore serve` waiting end, take nobody's place, and do not fill the log."""

import asyncio
import json
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from test_serve import log
from test_serve import serving as serving_untuned

from roomlore_server.http.server import Bounded, Limits, bounded
from roomlore_testkit.model_server import Says, serve_models

PATIENCE = 30.0
"""More than a busy machine needs for what should take two seconds."""
HEAD = b"POST /messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


QUICK = {"request_timeout_seconds": 1, "idle_connection_seconds": 1, "max_connections": 5}
serving = partial(serving_untuned, program=str(Path(__file__).with_name("tuned_roomlore.py")))


def tune(patch: pytest.MonkeyPatch, **more: float) -> None:
    """Have servers that begin from now on serve with these constants, and log JSON."""
    patch.setenv("TUNED", json.dumps(QUICK | more))
    patch.setenv("MEMORY_LOG_FORMAT", "json")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    tune(monkeypatch)


def serving_all(folder: Path, **more: float) -> Iterator[str]:
    """Yields the URL of a server of several tests."""
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, **more)
        patch.chdir(folder)
        with serving() as (_, url):
            yield url


@pytest.fixture(scope="module")
def quick_url(tmp_path_factory):
    yield from serving_all(tmp_path_factory.mktemp("quick"))


@pytest.fixture(scope="module")
def patient_url(tmp_path_factory):
    """Of a server that waits long for a request."""
    yield from serving_all(tmp_path_factory.mktemp("patient"), request_timeout_seconds=600)


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


@contextmanager
def serving_chat(pieces: tuple[str, ...] = ("one ", "two ", "three"), **timing: float):
    """Yields (model, URL) of a server whose model answers with these pieces."""
    models = {"chat": {"providers": [{"name": "here", "model_id": "chat"}]}}
    with serve_models(lambda _: Says(pieces=[*pieces], **timing)) as server:
        told = {"memory": {"models": models, "providers": {"here": {"base_url": server.url}}}}
        Path("slow.yaml").write_text(json.dumps(told), encoding="utf-8")
        with serving(before=("--config", "slow.yaml")) as (_, url):
            yield server, url


def becomes(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE
    while not true() and time.monotonic() < until:
        time.sleep(0.05)
    return true()


def is_cut_off(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"x" * 4_096)
    except ConnectionError:
        return True
    return False


def test_half_a_request_is_not_waited_for(quick_url):
    with ExitStack() as closing:
        held = {name: closing.enter_context(connected(quick_url, sent)) for name, sent in HALVES.items()}
        for name, connection in held.items():
            assert problem(heard(connection)) == (408, "urn:roomlore:too-slow"), name


def test_a_second_head_in_part_is_not_waited_for_either(quick_url):
    with connected(quick_url, b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n") as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /hea")
        assert problem(heard(connection)) == (408, "urn:roomlore:too-slow")


def test_a_head_without_an_end_is_refused_before_it_is_long(patient_url):
    with connected(patient_url, b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nx-long: ") as connection:
        for _ in range(20):
            time.sleep(0.01)
            connection.sendall(b"x" * 4_096)
        assert problem(heard(connection)) == (400, "urn:roomlore:unreadable")


def test_the_refusal_of_a_long_head_reaches_who_reads_only_when_all_is_sent(patient_url):
    with connected(patient_url, b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nx-long: ") as connection:
        for _ in range(200):
            connection.sendall(b"x" * 65_536)
        connection.shutdown(socket.SHUT_WR)
        assert problem(heard(connection)) == (400, "urn:roomlore:unreadable")


def test_who_sends_on_after_a_refusal_is_cut_off(patient_url):
    with connected(patient_url, b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nx-long: ") as connection:
        assert becomes(lambda: is_cut_off(connection))


def test_long_heads_one_after_another_are_not_taken_for_one(patient_url):
    asked = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nx-long: " + b"x" * 30_000 + b"\r\n\r\n"
    with connected(patient_url) as connection:
        for _ in range(6):
            for start in range(0, len(asked), 8_192):
                connection.sendall(asked[start : start + 8_192])
                time.sleep(0.005)
            answer = b""
            while not answer.endswith(b'{"status":"ok"}'):
                answer += connection.recv(65_536)
            assert answer.startswith(b"HTTP/1.1 200")


def test_an_idle_connection_is_closed(quick_url):
    with connected(quick_url, b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n") as connection:
        assert heard(connection).count(b"HTTP/1.1") == 1


def test_a_body_that_comes_slowly_but_steadily_is_taken(quick_url):
    body = json.dumps({"id": "m1", "room_id": "tea", "sender_id": "ann", "text": "x" * 20_000}).encode()
    with connected(quick_url, HEAD % len(body)) as connection:
        for place in range(0, len(body), 4_096):
            time.sleep(0.4)
            connection.sendall(body[place : place + 4_096])
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_a_reply_that_takes_its_time_is_not_cut():
    pause = 1.6  # the limit, the half second between two looks at a connection, and a little
    with serving_chat(("one ", "two"), after=pause) as (_, url):
        message = {"id": "m1", "room_id": "tea", "sender_id": "ann", "text": "?"}
        answer = httpx.post(f"{url}/chat/sse", json={"message": message}, timeout=60)
    for part in ("one ", "two", "event: done"):
        assert part in answer.text


def test_idle_connections_make_room(patient_url):
    with ExitStack() as closing:
        held = [closing.enter_context(connected(patient_url)) for _ in range(30)]
        assert httpx.get(f"{patient_url}/health/live").status_code == 200
        for connection in held[:25]:
            assert heard(connection) == b""


def test_requests_that_never_arrive_make_room(patient_url):
    with ExitStack() as closing:
        oldest = closing.enter_context(connected(patient_url, HEAD % 60_000 + b"{"))
        time.sleep(1)
        for _ in range(4):
            closing.enter_context(connected(patient_url, HEAD % 60_000 + b"{"))
        time.sleep(1)
        assert httpx.get(f"{patient_url}/health/live").status_code == 200
        assert problem(heard(oldest)) == (503, "urn:roomlore:unavailable")


def test_where_all_are_at_work_a_further_one_is_refused(monkeypatch):
    tune(monkeypatch, request_timeout_seconds=600)
    with serving_chat(after=600) as (model, url), ExitStack() as closing:
        for number in range(5):
            message = {"id": "m1", "room_id": f"room-{number}", "sender_id": "ann", "text": "?"}
            body = json.dumps({"message": message}).encode()
            head = HEAD.replace(b"/messages", b"/chat/sse") % len(body)
            closing.enter_context(connected(url, head + body))
        assert becomes(lambda: len(model.requests) == 5)
        with connected(url) as connection:
            assert problem(heard(connection)) == (503, "urn:roomlore:unavailable")
        closing.close()
        assert becomes(lambda: httpx.get(f"{url}/health/live").status_code == 200)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of another process is changed")
def test_without_file_descriptors_the_log_stays_small(monkeypatch):
    tune(monkeypatch, max_connections=1000)
    with serving() as (process, url), ExitStack() as closing:
        assert httpx.get(f"{url}/health/ready", timeout=PATIENCE).status_code == 200
        before, most = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        held = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (held, most))
        for _ in range(100):
            closing.enter_context(connected(url))
        time.sleep(2.5)  # asyncio tries again every second
        closing.close()
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (before, most))
        assert httpx.get(f"{url}/health/live", timeout=PATIENCE).status_code == 200
    told = [line for line in log() if line["event"] != "request"]
    assert sum("no connection can be accepted" in line["event"] for line in told) == 1
    assert len(told) < 10, "a background job says once that it failed, and waits before it tries again"


RUBBISH = [
    b"rubbish\r\n\r\n",
    b"GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
]


def test_rubbish_does_not_fill_the_log():
    with serving() as (_, url):
        for sent in RUBBISH:
            before = len(log())
            for _ in range(30):
                with connected(url, sent) as connection:
                    assert connection.recv(65_536).startswith(b"HTTP/1.1")
            assert len([line for line in log()[before:] if line["event"] != "request"]) <= 3


# In this process, where the moment at which the server looks at its connections can be chosen.

SIGN_IN = HEAD.replace(b"/messages", b"/console/sign-in")
GET = b"GET /rooms HTTP/1.1\r\nhost: localhost\r\n\r\n"
TAIL = b"x" * 50_000


class Server:
    """Connections to an application that answers 200 with `TAIL` once `answering` is set and the body has arrived, the
    last byte of it once `ending` is set."""

    def __init__(self, limits: Limits) -> None:
        self.answering, self.ending = asyncio.Event(), asyncio.Event()
        self.answering.set()
        self.ending.set()
        self._config = uvicorn.Config(self._app, log_config=None, interface="asgi3", timeout_keep_alive=600)
        self._state = uvicorn.server.ServerState()
        self._protocol = bounded(limits)
        self.clients: list[socket.socket] = []

    async def connect(self, sent: bytes = b"") -> tuple[socket.socket, Bounded]:
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        theirs.settimeout(PATIENCE)
        self.clients.append(theirs)
        theirs.sendall(sent)
        make = lambda: self._protocol(self._config, self._state, {})  # noqa: E731
        _, protocol = await asyncio.get_running_loop().connect_accepted_socket(make, ours)
        await asyncio.sleep(0.05)
        return theirs, protocol

    async def close(self) -> None:
        self.answering.set()
        self.ending.set()
        for client in self.clients:
            client.close()
        await asyncio.sleep(0.05)
        if self._state.tasks:
            await asyncio.wait(self._state.tasks)

    async def _app(self, scope, receive, send) -> None:
        while (await receive()).get("more_body"):
            pass
        await self.answering.wait()
        length = [(b"content-length", b"%d" % len(TAIL))]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": TAIL[:-1], "more_body": True})
        await self.ending.wait()
        await send({"type": "http.response.body", "body": TAIL[-1:]})


@asynccontextmanager
async def server(connections: int, seconds: float = 30):
    made = Server(Limits(connections, seconds))
    try:
        yield made
    finally:
        await made.close()


async def answer(client: socket.socket) -> bytes:
    return await asyncio.to_thread(lambda: b"".join(iter(lambda: received_of(client), b"")))


def received_of(client: socket.socket) -> bytes:
    client.settimeout(0.3)
    try:
        return client.recv(65_536)
    except TimeoutError:
        return b""


def is_open(connection: Bounded) -> bool:
    return not connection.transport.is_closing()


async def test_idle_ones_make_room_before_those_that_send():
    async with server(3) as made:
        _, slow = await made.connect(HEAD % 60_000 + b"{")
        slow.look(asyncio.get_running_loop().time())
        _, head = await made.connect()
        client, idle = await made.connect(GET)
        assert (await answer(client)).endswith(TAIL)
        await made.connect()
        assert [is_open(one) for one in (slow, head, idle)] == [True, True, False]
        await made.connect()
        assert [is_open(one) for one in (slow, head)] == [False, True]


async def test_who_sends_slowest_makes_room_first():
    async with server(2) as made:
        client, steady = await made.connect(HEAD % 60_000)
        _, slow = await made.connect(HEAD % 60_000 + b"{")
        now = asyncio.get_running_loop().time()
        steady.look(now)
        slow.look(now)
        client.sendall(b"x" * 20_000)
        await asyncio.sleep(0.05)
        await made.connect()
        assert [is_open(one) for one in (steady, slow)] == [True, False]


async def test_a_form_that_needs_no_key_gets_little_time():
    async with server(2) as made:
        _, keyed = await made.connect(HEAD % 60_000 + b"{")
        client, keyless = await made.connect(SIGN_IN % 60_000 + b"token=")
        now = asyncio.get_running_loop().time()
        for connection in (keyed, keyless):
            connection.look(now)
            connection.look(now + 6)
        assert problem(await answer(client)) == (408, "urn:roomlore:too-slow")
        assert [is_open(one) for one in (keyed, keyless)] == [True, False]


async def test_a_form_that_needs_no_key_makes_room_before_older_requests():
    async with server(2) as made:
        _, keyed = await made.connect(HEAD % 60_000 + b"{")
        _, keyless = await made.connect(SIGN_IN % 60_000 + b"token=")
        await made.connect()
        assert [is_open(one) for one in (keyed, keyless)] == [True, False]


async def test_who_was_just_answered_has_not_been_idle_for_long():
    async with server(2) as made:
        made.answering.clear()
        streaming_client, streaming = await made.connect(GET)
        now = asyncio.get_running_loop().time()
        streaming.look(now)
        made.answering.set()
        client, idle = await made.connect(GET)
        assert (await answer(client)).endswith(TAIL)
        idle.look(asyncio.get_running_loop().time())
        assert (await answer(streaming_client)).endswith(TAIL)
        await made.connect()
        assert [is_open(one) for one in (streaming, idle)] == [True, False]


async def test_an_answer_that_nobody_reads_is_given_up():
    async with server(2) as made:
        (_, unread), (client, slow) = await made.connect(GET), await made.connect(GET)
        now = asyncio.get_running_loop().time()
        for late in (0, 29, 31):
            client.recv(8_192)
            await asyncio.sleep(0.05)
            for connection in (unread, slow):
                connection.look(now + late)
        assert [is_open(one) for one in (unread, slow)] == [False, True], "a little is read now and then"


async def test_silence_before_and_inside_an_answer_is_no_reason_to_end_it():
    async with server(1) as made:
        made.answering.clear()
        made.ending.clear()
        client, working = await made.connect(GET)
        now = asyncio.get_running_loop().time()
        working.look(now)
        working.look(now + 600)
        made.answering.set()
        begun = await answer(client)
        working.look(now + 1200)
        working.look(now + 1800)
        made.ending.set()
        assert (begun + await answer(client)).endswith(TAIL)


async def test_who_has_not_yet_read_all_of_an_answer_keeps_the_connection():
    async with server(1) as made:
        client, reading = await made.connect(GET)
        assert reading.transport.get_write_buffer_size() > 0
        refused, _ = await made.connect()
        assert problem(await answer(refused)) == (503, "urn:roomlore:unavailable")
        assert (await answer(client)).endswith(TAIL)


@pytest.mark.parametrize("url", ["/rooms/茶", "/rooms?after=茶", "/messages/群/1"])
async def test_a_url_that_is_not_encoded_is_told_how_to_encode_it(url):
    async with server(3) as made:
        client, _ = await made.connect(f"GET {url} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        head, _, body = (await answer(client)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in head
    assert "Percent-encode" in json.loads(body)["detail"]


async def test_what_is_no_http_is_a_problem_too():
    async with server(3) as made:
        client, _ = await made.connect("rubbish\r\nx: 茶\r\n\r\n".encode())
        body = (await answer(client)).partition(b"\r\n\r\n")[2]
    assert "HTTP/1.1" in json.loads(body)["detail"]
