"""Embeddings by the name of a provider: what is sent where, and with which key."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from roomlore import InvalidInput, ModelUnavailable, Settings
from roomlore.adapters.inprocess import SystemClock
from roomlore.core.chat import KNOWN_PROVIDERS
from roomlore.ports.language import Embedder
from roomlore.wiring.indexing import make_embedder
from roomlore_testkit.embedding import EmbeddingServer, HashEmbedder

NAMED = ("openai", "dashscope", "siliconflow", "zhipu", "volcengine", "ollama")
MODEL = {"embedding_model": "tiny", "embedding_dimensions": 64}
KEY = "sk-secret-0123456789"


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingServer]:
    async with EmbeddingServer(HashEmbedder(dimensions=64)) as server:
        yield server


def opened(name: str, server: EmbeddingServer, **settings: Any) -> Embedder:
    given = {"embeddings": name, "providers": {name: {"base_url": server.url}}, **MODEL, **settings}
    embedder = make_embedder(Settings(**given), SystemClock())
    assert embedder is not None
    return embedder


async def asked(embedder: Embedder, texts: int = 1) -> None:
    try:
        await embedder.embed([f"问题 {number}" for number in range(texts)], kind="passage")
    finally:
        await embedder.close()


@pytest.mark.parametrize("name", NAMED)
async def test_a_provider_brings_its_address_and_key(server, monkeypatch, name):
    variable = KNOWN_PROVIDERS[name].key_variable
    if variable:
        monkeypatch.setenv(variable, KEY)
    await asked(opened(name, server))
    assert server.bodies[0] == {"model": "tiny", "input": ["问题 0"], "encoding_format": "float"}
    assert server.headers[0]["authorization"] == f"bearer {KEY if variable else 'none'}"


async def test_a_server_gets_no_more_texts_than_it_takes(server):
    await asked(opened("dashscope", server), texts=130)
    assert [len(body["input"]) for body in server.bodies] == [64, 64, 2]


async def test_the_key_of_a_provider_goes_to_no_other_address(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    here = {"embeddings": "openai", "embedding_url": server.url, "embedding_dimensions": 64}
    for settings in (here, {**here, "embedding_api_key": "mine"}):
        embedder = make_embedder(Settings(**settings), SystemClock())
        await asked(embedder)
    assert [head["authorization"] for head in server.headers] == ["bearer none", "bearer mine"]


async def test_a_refused_key_is_named(server, monkeypatch):
    monkeypatch.setenv("DASHSCOPE_API_KEY", KEY)
    server.fault = 401
    with pytest.raises(ModelUnavailable, match="check embedding_api_key or DASHSCOPE_API_KEY") as refused:
        await asked(opened("dashscope", server))
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("name", NAMED[1:])
def test_the_model_of_another_provider_than_openai_must_be_set(name):
    with pytest.raises(InvalidInput, match=f"embeddings is {name}, but embedding_model and embedding_dimensions"):
        Settings(embeddings=name)
    Settings(embeddings=name, embedding_model="ep-1", embedding_dimensions=2048)
    assert Settings(embeddings="openai").embedding_dimensions == 1536


@pytest.mark.parametrize("name", ["deepseek", "moonshot"])
def test_a_provider_without_embeddings_is_no_choice(name):
    with pytest.raises(InvalidInput, match=r"embeddings is .*one of off, offline, openai, dashscope"):
        Settings(embeddings=name)
