"""One contract, every embedder."""

from collections.abc import AsyncIterator

import pytest

from roomlore.adapters.embedding import open_offline, package_weights
from roomlore.adapters.embedding.offline_e5 import shared_engine
from roomlore.adapters.embedding.openai_compatible import OpenAICompatible
from roomlore.ports.language import Embedder
from roomlore_testkit.contracts import EmbedderContract
from roomlore_testkit.embedding import EmbeddingServer, HashEmbedder


@pytest.fixture(scope="module")
def model() -> object:
    """Keeps the model in memory from the first test to the last."""
    return shared_engine(package_weights())


class TestHashEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashEmbedder()


class TestOfflineE5(EmbedderContract):
    @pytest.fixture
    async def embedder(self, model: object) -> AsyncIterator[Embedder]:
        embedder = open_offline(threads=2)
        yield embedder
        await embedder.close()


class TestOpenAICompatible(EmbedderContract):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[Embedder]:
        async with EmbeddingServer(HashEmbedder()) as server:
            embedder = OpenAICompatible(url=server.url, api_key="", model="hash", dimensions=64)
            yield embedder
            await embedder.close()
