"""An embedder for tests: no model, no time, and texts that share words lie near each other."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from roomlore.core.search import EmbeddingModel, Vectors
from roomlore.core.text import words
from roomlore.ports.language import TextKind


class HashEmbedder:
    """Each word adds to one place of the vector, found by its hash, so a text and a question meet in the words they
    share. A text without a word lies at a place of its own."""

    def __init__(self, *, name: str = "hash", dimensions: int = 64) -> None:
        self._model = EmbeddingModel(name=name, dimensions=dimensions)

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """The same for both kinds of text."""
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), self._model.dimensions)

    async def close(self) -> None:
        """Nothing to close."""

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self._model.dimensions, np.float32)
        for word in words(text) or [text]:
            place = crc32(word.encode("utf-8", "surrogatepass"))
            vector[place % vector.size] += 1.0 if place & 0x8000_0000 else -1.0
        length = float(np.linalg.norm(vector))
        if not length:
            vector[0], length = 1.0, 1.0
        return vector / np.float32(length)
