"""Vectors kept in a file between runs, by what they were made from and by which model: real models are slow."""

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.ports.language import Embedder, TextKind


class KeptEmbedder:
    """The port `Embedder` over another one; what it made is in `folder` when it closes."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        name = re.sub(r"[^\w.-]+", "-", embedder.model.name)
        self._path = folder / f"{name}-{embedder.model.dimensions}.npz"
        self._kept = _load(self._path)
        self._made: dict[bytes, Vectors] = {}

    @property
    def model(self) -> EmbeddingModel:
        return self._embedder.model

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Asks only for what was never asked for, each text once."""
        names = [sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
        missing = {name: text for name, text in zip(names, texts, strict=True) if name not in self._kept}
        if missing:
            made = await self._embedder.embed(list(missing.values()), kind=kind)
            self._made |= zip(missing, made, strict=True)
            self._kept |= self._made
        return np.array([self._kept[name] for name in names], np.float32).reshape(-1, self.model.dimensions)

    async def close(self) -> None:
        """Adds what is new to the file as it is by now, in one step."""
        await self._embedder.close()
        if self._made:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            kept = _load(self._path) | self._made
            beside = self._path.with_suffix(".new.npz")
            names = np.frombuffer(b"".join(kept), np.uint8).reshape(len(kept), -1)
            np.savez(beside, names=names, vectors=np.stack(list(kept.values())))
            beside.replace(self._path)


def _load(path: Path) -> dict[bytes, Vectors]:
    if not path.exists():
        return {}
    with np.load(path) as file:
        return dict(zip(map(bytes, file["names"]), file["vectors"], strict=True))
