"""No client follows a redirect: what it sends, and its key, stay with the server that the settings name."""

import asyncio
import logging

import numpy as np
import pytest
from asking_models import KEY, ask, both

from roomlore.adapters.chat import reach_provider
from roomlore.adapters.embedding.openai_compatible import OpenAICompatible
from roomlore.adapters.inprocess import SystemClock
from roomlore.adapters.langfuse import LANGFUSE, LangfuseSettings
from roomlore.adapters.otel import open_tracer
from roomlore.adapters.qdrant.index import QdrantVectors, connect
from roomlore.adapters.sentry import SENTRY, SentrySettings, open_reports
from roomlore.core.chat import Provider
from roomlore.core.errors import ModelUnavailable, Unavailable
from roomlore.core.search.hits import VectorPoint
from roomlore.ports.backends import Host
from roomlore_testkit import FrozenClock
from roomlore_testkit.loopback import LoopbackServer

HOST = Host(url="sqlite://", clock=SystemClock())
STATUSES = pytest.mark.parametrize("status", [301, 302, 303, 307, 308])


class Moved(LoopbackServer):
    """Sends every request on to `elsewhere`."""

    def __init__(self, elsewhere: LoopbackServer, status: int) -> None:
        super().__init__()
        self._elsewhere = elsewhere
        self._status = status
        self.asked = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/v1"

    async def _answer_one(self, reader, writer) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked += 1
        location = f"http://127.0.0.1:{self._elsewhere._port}{head[0].split()[1]}"
        writer.write(f"HTTP/1.1 {self._status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        return True


class Elsewhere(LoopbackServer):
    """Takes a connection, and answers nothing."""

    async def _answer_one(self, reader, writer) -> bool:
        await reader.readuntil(b"\r\n\r\n")
        return False


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def elsewhere():
    async with Elsewhere() as server:
        yield server
        assert server.connections == 0, "a redirect was followed"


@pytest.fixture
async def moved(elsewhere, status):
    async with Moved(elsewhere, status) as server:
        yield server
        assert server.asked == 1


@both
@STATUSES
async def test_a_prompt_goes_nowhere_else(client, moved, how):
    with pytest.raises(ModelUnavailable, match="redirects are not followed; set its base_url") as caught:
        await ask(client, moved, how)
    assert caught.value.cause == "refused"


@STATUSES
async def test_a_text_to_embed_goes_nowhere_else(moved):
    embedder = OpenAICompatible(url=moved.url, api_key=KEY, model="tiny", dimensions=8, timeout_seconds=5)
    try:
        with pytest.raises(ModelUnavailable, match="redirects are not followed; set embedding_url"):
            await embedder.embed(["a private matter"], kind="passage")
    finally:
        await embedder.close()


@STATUSES
async def test_a_vector_goes_nowhere_else(moved):
    vectors = QdrantVectors(connect(f"http://{moved.address}", api_key=None, timeout_seconds=5))
    point = VectorPoint(tenant="acme", scope="room", number=1, vector=np.ones(4, np.float32))
    try:
        with pytest.raises(Unavailable):
            await vectors.put(collection="messages", generation="g1", points=[point])
    finally:
        await vectors.close()


@STATUSES
async def test_the_keys_of_langfuse_go_nowhere_else(moved):
    keys = {"langfuse_public_key": "pk", "langfuse_secret_key": KEY}
    with pytest.raises(Unavailable):
        await LANGFUSE.probe(LangfuseSettings(langfuse_host=f"http://{moved.address}", **keys), HOST, 5)


@STATUSES
async def test_the_key_of_a_provider_that_is_looked_for_goes_nowhere_else(moved):
    await reach_provider(Provider("near", moved.url, "NEAR_KEY"), key=KEY, timeout_seconds=5)


@STATUSES
async def test_an_error_told_to_sentry_goes_nowhere_else(moved):
    reports = open_reports(f"http://public@{moved.address}/7")
    reports.tell(KeyError("x"))
    await reports.close()


@STATUSES
async def test_a_look_for_sentry_goes_nowhere_else(moved):
    (finding,) = await SENTRY.probe(SentrySettings(sentry_dsn=f"http://public@{moved.address}/7"), HOST, 5)
    assert moved.address in finding.told


@STATUSES
async def test_spans_go_nowhere_else(moved, caplog):
    caplog.set_level(logging.CRITICAL)
    tracer = open_tracer(f"http://{moved.address}", clock=FrozenClock())
    tracer.record("context", 0.1)
    await asyncio.wait_for(tracer.close(), 30)
