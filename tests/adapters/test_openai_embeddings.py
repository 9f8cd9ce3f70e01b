"""Embeddings from a server: the request that is sent, and that no answer can do harm."""

import json
import logging
import sys
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from roomlore import Settings
from roomlore.adapters.embedding.openai_compatible import OpenAICompatible
from roomlore.adapters.inprocess import SystemClock
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.ports.language import Embedder
from roomlore.wiring.indexing import make_embedder
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.embedding import EmbeddingServer, HashEmbedder

DIMENSIONS = 8
KEY = "sk-secret-0123456789"


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer(HashEmbedder(dimensions=DIMENSIONS)) as server:
        yield server


@pytest.fixture
async def embedder(server: EmbeddingServer) -> AsyncIterator[Embedder]:
    embedder = _open(server)
    yield embedder
    await embedder.close()


def _open(server: EmbeddingServer, **options: Any) -> Embedder:
    given = {"api_key": KEY, "model": "tiny", "dimensions": DIMENSIONS, "timeout_seconds": 5.0}
    return OpenAICompatible(url=server.url, **{**given, **options})


def _answer(*rows: Any) -> bytes:
    return json.dumps({"data": list(rows)}).encode()


def _row(index: Any, *numbers: Any) -> dict[str, Any]:
    return {"index": index, "embedding": list(numbers)}


async def test_what_is_sent(server):
    embedder = _open(server, query_prefix="ask: ", passage_prefix="told: ")
    await embedder.embed(["who", "谁\x00"], kind="query")
    await embedder.embed(["\ud800"], kind="passage")
    await embedder.close()
    asked, told = server.bodies
    assert asked == {"model": "tiny", "input": ["ask: who", "ask: 谁\x00"], "encoding_format": "float"}
    assert told["input"] == ["told: \ufffd"]
    assert server.headers[0]["authorization"] == f"bearer {KEY}"


async def test_texts_go_out_in_bounded_batches_and_come_back_in_order(server, embedder):
    texts = [f"{number} 帐篷" for number in range(150)]
    vectors = await embedder.embed(texts, kind="passage")
    expected = await HashEmbedder(dimensions=DIMENSIONS).embed(texts, kind="passage")
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert [len(body["input"]) for body in server.bodies] == [64, 64, 22]


async def test_long_texts_are_cut_between_characters_and_fill_batches_sooner(server, embedder):
    await embedder.embed(["部" * 10_000] * 60, kind="passage")
    sent = [text for body in server.bodies for text in body["input"]]
    assert set(sent) == {"部" * 2666}
    assert [len(body["input"]) for body in server.bodies] == [25, 25, 10]


async def test_an_empty_text_is_sent_as_a_space(server, embedder):
    await embedder.embed(["", "a"], kind="passage")
    assert server.bodies[0]["input"] == [" ", "a"]


async def test_vectors_are_brought_to_length_one(server, embedder):
    server.fault = _answer(_row(0, *range(DIMENSIONS)))
    (vector,) = await embedder.embed(["a"], kind="passage")
    np.testing.assert_allclose(vector, np.arange(DIMENSIONS) / np.linalg.norm(np.arange(DIMENSIONS)), rtol=1e-6)


async def test_models_with_prefixes_are_models_of_their_own(server):
    names = {_open(server).model.name, _open(server, query_prefix="q: ").model.name}
    names |= {_open(server, passage_prefix="q: ").model.name, _open(server, passage_prefix="p: ").model.name}
    assert len(names) == 4
    assert _open(server).model.name == "tiny"


async def test_a_passing_failure_is_tried_again(server, embedder):
    server.faults = [500, "drop"]
    await embedder.embed(["a"], kind="passage")
    server.faults = [429]
    await embedder.embed(["a"], kind="query")
    assert len(server.bodies) == 5


@pytest.mark.parametrize(("kind", "requests"), [("query", 2), ("passage", 3)])
async def test_it_gives_up_in_the_end(server, embedder, kind, requests):
    server.fault = 503
    with pytest.raises(ModelUnavailable, match="HTTP 503: try again later"):
        await embedder.embed(["a"], kind=kind)
    assert len(server.bodies) == requests


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "embedding_api_key"),
        (403, "embedding_api_key"),
        (404, "embedding_url"),
        (418, "try again later"),
        (429, "limit"),
    ],
)
async def test_a_refusal_says_what_to_do(server, embedder, status, advice):
    server.fault = status
    with pytest.raises(ModelUnavailable, match=f"127.0.0.1.*HTTP {status}: .*{advice}"):
        await embedder.embed(["a"], kind="query")


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_texts_it_does_not_want_are_told_from_a_server_that_is_not_there(server, embedder, status):
    server.fault = status
    with pytest.raises(InvalidInput, match=f"127.0.0.1.*HTTP {status}"):
        await embedder.embed(["a"], kind="passage")


RUBBISH = [
    b"",
    b"<html>502</html>",
    b"\xff\xfe",
    b"[" * 100_000,
    b"null",
    b"[]",
    b"{}",
    b'{"data": null}',
    b'{"data": [1]}',
    _answer({"index": 0}),
    _answer({"embedding": [1.0] * DIMENSIONS}),
    _answer(_row(0, *["a"] * DIMENSIONS)),
    _answer(_row(0, *[[1.0]] * DIMENSIONS)),
    _answer(_row(0, *[10**400] * DIMENSIONS)),
    _answer({"index": 0, "embedding": "AAAA"}),
    _answer(_row("0", *[1.0] * DIMENSIONS)),
    _answer(_row([], *[1.0] * DIMENSIONS)),
    _answer(_row(1, *[1.0] * DIMENSIONS)),
    _answer(_row(-1, *[1.0] * DIMENSIONS)),
    _answer(_row(0, *[1.0] * DIMENSIONS), _row(0, *[1.0] * DIMENSIONS)),
    _answer(),
    _answer(_row(0, *[0.0] * DIMENSIONS)),
    _answer(_row(0, *[None] * DIMENSIONS)),
    _answer(_row(0, *[float("inf")] * DIMENSIONS)),
    _answer(_row(0, *[1e300] * DIMENSIONS)),
]


async def test_rubbish_is_refused(server, embedder):
    with all_cases() as case:
        for answer in RUBBISH:
            with case(answer[:50]):
                server.fault = answer
                with pytest.raises(ModelUnavailable, match=r"The embedding server http://127\.0\.0\.1:"):
                    await embedder.embed(["a"], kind="query")


async def test_vectors_of_another_length_name_the_setting(server, embedder):
    server.fault = _answer(_row(0, 1.0, 2.0))
    with pytest.raises(ModelUnavailable, match="vectors of 2 numbers, not 8: set embedding_dimensions"):
        await embedder.embed(["a"], kind="query")


async def test_silence_ends(server):
    server.fault = "hang"
    embedder = _open(server, timeout_seconds=0.2)
    with pytest.raises(ModelUnavailable, match="in time"):
        await embedder.embed(["a"], kind="query")
    await embedder.close()


async def test_nobody_there(server, embedder):
    await server.stop()
    with pytest.raises(ModelUnavailable, match="cannot be reached: check embedding_url"):
        await embedder.embed(["a"], kind="query")


async def test_neither_the_key_nor_the_texts_are_told(server, embedder, caplog):
    caplog.set_level(logging.DEBUG)
    server.faults = [401]
    with pytest.raises(ModelUnavailable) as refused:
        await embedder.embed(["a very private matter"], kind="query")
    await embedder.embed(["a very private matter"], kind="query")
    told = caplog.text + str(refused.value)
    assert KEY not in told
    assert "private" not in told


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1"])
def test_a_bad_url_is_named_at_the_start(url):
    with pytest.raises(InvalidInput, match="embedding_url"):
        OpenAICompatible(url=url, api_key="", model="m", dimensions=8)


@pytest.mark.parametrize("key", ["密钥", "sk-1\nHost: elsewhere"])
def test_a_key_that_fits_no_header_is_refused_at_the_start(key):
    with pytest.raises(InvalidInput, match="embedding_api_key") as refused:
        OpenAICompatible(url="http://127.0.0.1:9/v1", api_key=key, model="m", dimensions=8)
    assert key not in str(refused.value)


async def test_a_password_in_the_url_is_not_told():
    embedder = OpenAICompatible(url="http://me:secret@127.0.0.1:9/v1?token=secret", api_key="", model="m", dimensions=8)
    with pytest.raises(ModelUnavailable) as refused:
        await embedder.embed(["a"], kind="query")
    assert "secret" not in str(refused.value)
    await embedder.close()


def test_the_missing_package_is_named_at_the_start(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(InvalidInput, match=r"pip install 'roomlore\[openai\]'"):
        make_embedder(Settings(embeddings="openai"), SystemClock())


@pytest.mark.parametrize(("limit", "sizes"), [(10, [8] * 8), (1, [1] * 64), (40, [32, 32])])
async def test_a_refused_batch_is_halved_until_the_server_takes_it(server, embedder, limit, sizes):
    server.most_texts = limit
    texts = [f"{number} 帐篷" for number in range(64)]
    vectors = await embedder.embed(texts, kind="passage")
    expected = await HashEmbedder(dimensions=DIMENSIONS).embed(texts, kind="passage")
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert [len(body["input"]) for body in server.bodies if len(body["input"]) <= limit] == sizes


async def test_the_size_that_the_server_takes_is_remembered(server, embedder, caplog):
    server.most_texts = 10
    await embedder.embed(["a"] * 200, kind="passage")
    await embedder.embed(["b"] * 64, kind="passage")
    sent = [len(body["input"]) for body in server.bodies]
    assert sent == [64, 32, 16, *[8] * 25, *[8] * 8]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "an embedding server refuses larger requests; smaller ones are sent"
    ]


async def test_a_text_that_is_refused_makes_no_later_batch_smaller(server, embedder):
    server.faults = [400] * 7
    with pytest.raises(InvalidInput, match="HTTP 400"):
        await embedder.embed(["a"] * 64, kind="passage")
    await embedder.embed(["a"] * 64, kind="passage")
    assert [len(body["input"]) for body in server.bodies] == [64, 32, 16, 8, 4, 2, 1, 64]


async def test_the_batch_is_set(server):
    embedder = _open(server, batch=10)
    await embedder.embed(["a"] * 25, kind="passage")
    await embedder.close()
    assert [len(body["input"]) for body in server.bodies] == [10, 10, 5]
