"""From a request to a receiver of OpenTelemetry's on a loopback socket: which spans come, and what is not in them."""

import asyncio

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import roomlore
from roomlore.settings import Settings
from roomlore_server.http import create_app
from roomlore_testkit.loopback import LoopbackServer

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECRET = "金库密码 the vault opens with 7319"


class Receiver(LoopbackServer):
    """Keeps what is sent; answers nothing where it is `still`."""

    def __init__(self, *, still: bool = False) -> None:
        super().__init__()
        self.still = still
        self.paths: list[str] = []
        self.bodies: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def _answer_one(self, reader, writer) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        self.bodies.append(await reader.readexactly(int(headers.get("content-length", 0))))
        self.paths.append(head[0].split()[1])
        if self.still:
            await asyncio.Event().wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        return True

    def spans(self) -> list:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


def noted(span) -> dict:
    values = {one.key: one.value for one in span.attributes}
    return {key: value.int_value or value.string_value for key, value in values.items()}


async def ask(settings: Settings) -> None:
    """A few requests, one of which nobody foresaw; then everything is closed."""
    async with roomlore.open("sqlite://", settings=settings) as lore:
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1234))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            message = {"id": "m1", "room_id": SECRET, "sender_id": SECRET, "text": SECRET}
            assert (await client.post("/messages", json={"messages": [message]})).status_code == 200
            headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "X-Request-Id": "trace-8"}
            answer = await client.post("/context", json={"room_id": SECRET}, headers=headers)
            assert answer.status_code == 200
            assert (await client.get(f"/messages/{SECRET}/nowhere")).status_code == 404


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


async def test_requests_and_what_is_timed_inside_arrive_without_a_text():
    async with Receiver() as receiver:
        await ask(Settings(otlp_endpoint=f"{receiver.url}/"))
    assert set(receiver.paths) == {"/v1/traces"}
    spans = receiver.spans()
    requests = {noted(span)["http.route"]: span for span in spans if "http.route" in noted(span)}
    assert set(requests) == {"/messages", "/context", "/messages/{room_id:id}/{message_id:id}"}
    asked = requests["/context"]
    assert asked.trace_id.hex() == TRACE
    assert noted(asked) == {
        "http.request.method": "POST", "http.route": "/context", "http.response.status_code": 200,
        "request_id": "trace-8",
    }  # fmt: skip
    (built,) = [span for span in spans if span.name == "context build"]
    assert (built.trace_id, built.parent_span_id) == (asked.trace_id, asked.span_id)
    sent = b"".join(receiver.bodies)
    assert "金库".encode() not in sent
    assert b"vault" not in sent


async def test_a_receiver_that_is_away_costs_nothing_but_the_spans():
    await ask(Settings(otlp_endpoint="http://127.0.0.1:9"))


async def test_a_receiver_that_never_answers_is_not_waited_for_long():
    async with Receiver(still=True) as receiver, asyncio.timeout(60):
        await ask(Settings(otlp_endpoint=receiver.url))
    assert receiver.paths


async def test_without_the_setting_nothing_is_sent():
    async with Receiver() as receiver:
        await ask(Settings())
    assert receiver.paths == []


def test_an_endpoint_must_be_a_web_address():
    with pytest.raises(roomlore.InvalidInput, match="otlp_endpoint"):
        Settings(otlp_endpoint="localhost:4318")
