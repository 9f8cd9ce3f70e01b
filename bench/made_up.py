"""Vectors for speed benches, made in microseconds where a model takes milliseconds.

Speed does not depend on what vectors mean, only on how many and how long they are. Like those of common models they
all point roughly one way: the cosine of any two is near 0.8.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.ports.language import TextKind

DIMENSIONS = 384
_PARTS, _OF_EACH = 4096, 4
_COSINE = 0.8


class MadeUpEmbedder:
    """The port `Embedder`: the same text always has the same vector, and no two texts share one."""

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self._model = EmbeddingModel(name="made up", dimensions=dimensions)
        rng = np.random.default_rng(7)
        self._parts = rng.standard_normal((_PARTS, dimensions), np.float32)
        common = rng.standard_normal(dimensions).astype(np.float32)
        self._common = common / np.linalg.norm(common)
        self._ready: dict[tuple[str, ...], Vectors] = {}

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        ready = self._ready.get(tuple(texts))
        return self.vectors(texts) if ready is None else ready

    def prepare(self, text: str) -> Vectors:
        """The text's vector, (dimensions,); until the next such call `embed` has it at hand."""
        made = self.vectors([text])
        self._ready = {(text,): made}
        vector: Vectors = made[0]
        return vector

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """(len(texts), dimensions), each row of length 1."""
        digests = b"".join(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
        places = np.frombuffer(digests, np.uint16).reshape(len(texts), _OF_EACH) % _PARTS
        own: Vectors = self._parts[places].sum(axis=1)
        own /= np.linalg.norm(own, axis=1, keepdims=True)
        made = np.float32(_COSINE**0.5) * self._common + np.float32((1 - _COSINE) ** 0.5) * own
        return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)

    async def close(self) -> None:
        pass
