"""The same text is embedded once."""

import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from roomlore.adapters.embedding import RememberedEmbedder
from roomlore.core.errors import ModelUnavailable
from roomlore.core.search.hits import EmbeddingModel, Vectors


class Counting:
    """Tells texts apart by length, and notes what it was asked."""

    model = EmbeddingModel(name="lengths", dimensions=2)

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.closed = False
        self.down = False

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        if self.down:
            raise ModelUnavailable
        self.asked.append((kind, tuple(texts)))
        return np.array([[len(text), kind == "query"] for text in texts], np.float32)

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def inner() -> Counting:
    return Counting()


async def test_only_new_texts_are_asked_for_each_once(inner):
    embedder = RememberedEmbedder(inner)
    first = await embedder.embed(["a", "bb", "a"], kind="passage")
    assert first.tolist() == [[1, 0], [2, 0], [1, 0]]
    second = await embedder.embed(["ccc", "bb"], kind="passage")
    assert second.tolist() == [[3, 0], [2, 0]]
    assert inner.asked == [("passage", ("a", "bb")), ("passage", ("ccc",))]


async def test_a_question_and_a_passage_are_two_things(inner):
    embedder = RememberedEmbedder(inner)
    await embedder.embed(["a"], kind="passage")
    assert (await embedder.embed(["a"], kind="query")).tolist() == [[1, 1]]


async def test_nothing_asked_gives_an_empty_matrix(inner):
    assert (await RememberedEmbedder(inner).embed([], kind="query")).shape == (0, 2)
    assert inner.asked == []


async def test_a_failure_is_not_remembered(inner):
    embedder = RememberedEmbedder(inner)
    inner.down = True
    with pytest.raises(ModelUnavailable):
        await embedder.embed(["a"], kind="query")
    inner.down = False
    assert (await embedder.embed(["a"], kind="query")).shape == (1, 2)


async def test_what_was_not_used_longest_is_forgotten_first(inner, monkeypatch):
    monkeypatch.setattr("roomlore.adapters.embedding._BYTES", 16)
    embedder = RememberedEmbedder(inner)
    await embedder.embed(["a", "bb"], kind="passage")
    await embedder.embed(["a"], kind="passage")
    await embedder.embed(["ccc"], kind="passage")
    inner.asked.clear()
    await embedder.embed(["a", "ccc"], kind="passage")
    assert inner.asked == []
    await embedder.embed(["bb"], kind="passage")
    assert inner.asked == [("passage", ("bb",))]


async def test_a_vector_kept_holds_no_batch_in_memory(inner, monkeypatch):
    made = []

    async def embed(texts: Sequence[str], *, kind: str) -> Vectors:
        made.append(np.zeros((len(texts), 2), np.float32))
        return made[-1]

    monkeypatch.setattr(inner, "embed", embed)
    embedder = RememberedEmbedder(inner)
    await embedder.embed(["a", "bb"], kind="passage")
    batch = weakref.ref(made.pop())
    assert batch() is None
    assert (await embedder.embed(["a"], kind="passage")).tolist() == [[0, 0]]


async def test_closing_closes_the_one_inside(inner):
    await RememberedEmbedder(inner).close()
    assert inner.closed
