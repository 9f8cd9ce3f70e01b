"""The vectors of facts, made when they are first needed and kept in memory by their text."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256

import numpy as np

from roomlore.core.errors import InvalidInput, ModelUnavailable, describe
from roomlore.core.recall.facts import FactSet
from roomlore.core.recall.topic import Topic
from roomlore.core.search import Floats, Vectors
from roomlore.ports.language import Embedder
from roomlore.services.recall.shelf import Shelved

_KEPT = 20_000
_AT_ONCE = 64
"""Facts embedded within one call; the next calls go on."""


class NoVectors(Exception):
    """Vectors cannot be had just now; the text says why."""


class FactVectors:
    """At most 20,000 vectors, shared by all tenants. `timeout_seconds`: how long one call waits for the embedder."""

    def __init__(
        self, embedder: Embedder | None, *, timeout_seconds: float, kept: int = _KEPT, at_once: int = _AT_ONCE
    ) -> None:
        self._embedder = embedder
        self._timeout_seconds = timeout_seconds
        self._most = kept
        self._at_once = at_once
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()
        self._under_way: dict[bytes, asyncio.Task[None]] = {}

    async def cosines(
        self, topic: Topic, facts: FactSet, shelved: Shelved, *, most_seconds: float | None = None
    ) -> Floats:
        """Of each fact with what was said, newer messages counting more. `most_seconds`: for who cannot wait as long as
        the others. Raises `NoVectors`."""
        wait = self._timeout_seconds if most_seconds is None else min(most_seconds, self._timeout_seconds)
        if self._embedder is None:
            raise NoVectors("no embedder is configured: set `embeddings`, or pass one to roomlore.open")
        try:
            async with asyncio.timeout(wait):
                vectors = await self._vectors(self._embedder, facts, shelved)
                asked = await self._embedder.embed([part.text for part in topic.parts], kind="query")
        except TimeoutError as error:
            raise NoVectors(f"the embedder took longer than {wait:g} s") from error
        except (ModelUnavailable, InvalidInput) as error:
            raise NoVectors(describe(error)) from error
        weights = np.array([part.weight for part in topic.parts])
        direction = (weights @ asked / weights.sum()).astype(np.float32)
        cosines: Floats = (vectors @ direction).astype(float)
        return cosines

    async def _vectors(self, embedder: Embedder, facts: FactSet, shelved: Shelved) -> Vectors:
        if shelved.facts is facts and shelved.vectors is not None:
            return shelved.vectors
        texts = [memory.statement for memory in facts.memories]
        if len(texts) > self._most:
            raise NoVectors(f"there are {len(texts)} facts, more than the {self._most} whose vectors are kept")
        names = [_name(text) for text in texts]
        await self._make(embedder, dict(zip(names, texts, strict=True)))
        vectors = np.stack([self._kept[name] for name in names])
        if shelved.facts is facts:
            shelved.vectors = vectors
        return vectors

    async def _make(self, embedder: Embedder, texts: dict[bytes, str]) -> None:
        missing = [name for name in texts if name not in self._kept]
        now = [name for name in missing if name not in self._under_way][: self._at_once]
        if now:
            self._start(embedder, {name: texts[name] for name in now})
        for making in {self._under_way[name] for name in missing if name in self._under_way}:
            await asyncio.shield(making)
        for name in texts.keys() & self._kept.keys():
            self._kept.move_to_end(name)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        left = sum(name not in self._kept for name in texts)
        if left:
            raise NoVectors(f"the vectors of {left} facts are still to be made")

    def _start(self, embedder: Embedder, texts: Mapping[bytes, str]) -> None:
        """It goes on where the one who asked waits no longer: the next one finds what was made."""
        making = asyncio.create_task(self._embed(embedder, texts))
        making.add_done_callback(_heed)
        self._under_way |= dict.fromkeys(texts, making)

    async def _embed(self, embedder: Embedder, texts: Mapping[bytes, str]) -> None:
        try:
            vectors = await embedder.embed(list(texts.values()), kind="passage")
            self._kept.update(zip(texts, vectors, strict=True))
        finally:
            for name in texts:
                del self._under_way[name]


def _heed(making: "asyncio.Task[None]") -> None:
    """Whoever still waits is told what went wrong; where nobody does, it is no news."""
    if not making.cancelled():
        making.exception()


def _name(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
