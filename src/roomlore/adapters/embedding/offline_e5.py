"""Embeddings without a network: multilingual-e5-small on this machine's processor."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roomlore.core.search import EmbeddingModel, Vectors
from roomlore.ports.language import TextKind

if TYPE_CHECKING:
    from roomlore.adapters.embedding.e5_engine import E5Engine

_MODEL = EmbeddingModel(name="multilingual-e5-small q4 int8", dimensions=384)
_MOST_THREADS = 4
_SLICE = 64


class OfflineE5:
    """The port `Embedder`. A text's vector depends on that text alone, whatever it is embedded with.

    Questions have threads of their own, so that a search does not wait behind an index being built. A chat message
    takes a few milliseconds, the longest text about 50; the event loop is never held.
    """

    def __init__(self, weights: Path, *, threads: int = 0) -> None:
        threads = threads or min(os.cpu_count() or 1, _MOST_THREADS)
        self._path = weights
        self._pools: Mapping[TextKind, ThreadPoolExecutor] = {
            "query": ThreadPoolExecutor(threads, "embed-query"),
            "passage": ThreadPoolExecutor(threads, "embed-passage"),
        }
        self._engine: E5Engine | None = None

    @property
    def model(self) -> EmbeddingModel:
        """What makes the vectors: its name and how long they are."""
        return _MODEL

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """(len(texts), 384), each row of length 1, an empty text's too. Only the first 256 tokens of a text are read.

        Raises `ModelUnavailable` where the model cannot be read.
        """
        rows = np.empty((len(texts), _MODEL.dimensions), np.float32)
        if not texts:
            return rows
        engine = await asyncio.get_running_loop().run_in_executor(self._pools[kind], self._read)
        # Texts of like length run together, so that no thread waits long for another at the end of a slice.
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), _SLICE):
            places = order[start : start + _SLICE]
            rows[places] = await self._slice(engine, [f"{kind}: {texts[place]}" for place in places], kind)
        return rows

    async def close(self) -> None:
        """Waits for the texts being worked on and drops those that wait."""
        for pool in self._pools.values():
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)
        self._engine = None

    async def _slice(self, engine: "E5Engine", prompts: Sequence[str], kind: TextKind) -> Vectors:
        loop, pool = asyncio.get_running_loop(), self._pools[kind]
        return np.stack(await asyncio.gather(*(loop.run_in_executor(pool, engine.vector, each) for each in prompts)))

    def _read(self) -> "E5Engine":
        from roomlore.adapters.embedding.e5_engine import shared_engine

        self._engine = engine = shared_engine(self._path)
        return engine
