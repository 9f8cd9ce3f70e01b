"""A cache of vectors in memory, so that the same text is embedded once."""

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.ports.language import Embedder, TextKind

_BYTES = 64 * 1024 * 1024


class RememberedEmbedder:
    """The port `Embedder` over another one. Keeps up to 64 MiB of the vectors used last."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._most = max(1, _BYTES // (4 * embedder.model.dimensions))
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()

    @property
    def model(self) -> EmbeddingModel:
        return self._embedder.model

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Embed the texts that are not in the cache, each once."""
        names = [sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
        found = {name: self._kept[name] for name in names if name in self._kept}
        missing = {name: text for name, text in zip(names, texts, strict=True) if name not in found}
        if missing:
            made = await self._embedder.embed(list(missing.values()), kind=kind)
            # Copies: a view of one row would keep the whole batch in memory.
            found.update((name, vector.copy()) for name, vector in zip(missing, made, strict=True))
        self._keep(found)
        return np.array([found[name] for name in names], np.float32).reshape(len(names), self.model.dimensions)

    async def close(self) -> None:
        await self._embedder.close()

    def _keep(self, vectors: dict[bytes, Vectors]) -> None:
        for name, vector in vectors.items():
            self._kept[name] = vector
            self._kept.move_to_end(name)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
