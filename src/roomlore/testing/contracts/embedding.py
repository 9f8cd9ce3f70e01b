"""The contract of embedders. Inherit it with a fixture `embedder` that gives an `Embedder` over a real model, or a
double that knows at least which texts share words."""

import asyncio

import numpy as np
import pytest

from roomlore.core.search.hits import Vectors
from roomlore.ports.language import Embedder
from roomlore.testing.contracts.texts import HARD_TEXTS

TEXTS = [*HARD_TEXTS, "", " ", "\n\n", "🏕️", "<s></s><mask>", "部" * 3000, "tent " * 3000, "a\u0301" * 500]
MIXED = [f"{'the tent 帐篷 ' * (number % 7)}number {number}" for number in range(150)]


async def _one(embedder: Embedder, text: str) -> Vectors:
    return (await embedder.embed([text], kind="passage")).reshape(-1)


def _assert_sound(vectors: Vectors, embedder: Embedder, count: int) -> None:
    assert vectors.dtype == np.float32
    assert vectors.shape == (count, embedder.model.dimensions)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


class EmbedderContract:
    async def test_a_model_has_a_name_and_a_length(self, embedder: Embedder) -> None:
        assert embedder.model.name
        assert embedder.model.dimensions > 0
        assert embedder.model == embedder.model

    async def test_no_texts_make_no_vectors(self, embedder: Embedder) -> None:
        _assert_sound(await embedder.embed([], kind="query"), embedder, 0)

    @pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text[:12]))
    async def test_every_text_has_a_vector_of_length_one(self, embedder: Embedder, text: str) -> None:
        _assert_sound(await embedder.embed([text], kind="passage"), embedder, 1)
        _assert_sound(await embedder.embed([text, text], kind="query"), embedder, 2)

    async def test_rows_stand_in_the_order_of_the_texts_and_depend_on_no_other(self, embedder: Embedder) -> None:
        together = await embedder.embed(MIXED, kind="passage")
        _assert_sound(together, embedder, len(MIXED))
        for place in (0, 6, 64, 149):
            np.testing.assert_allclose(await _one(embedder, MIXED[place]), together[place], atol=1e-5)

    async def test_calls_at_the_same_time_do_not_mix(self, embedder: Embedder) -> None:
        parts = [MIXED[:20], MIXED[20:23], MIXED[23:60]]
        apart = await asyncio.gather(*(embedder.embed(part, kind="passage") for part in parts))
        together = await embedder.embed(MIXED[:60], kind="passage")
        np.testing.assert_allclose(np.concatenate(apart), together, atol=1e-5)

    @pytest.mark.parametrize(
        ("question", "passages"),
        [
            ("who repairs the tent", ["the cat sleeps all day", "Ann: I repair the tent tomorrow", "lunch is at noon"]),
            ("谁来修理帐篷", ["小猫整天睡觉", "李雷：我明天修理帐篷", "中午吃饭"]),
            ("deploy 失败", ["猫喜欢晒太阳", "deploy 又失败了", "lunch is at noon"]),
        ],
    )
    async def test_the_passage_that_answers_is_nearest(
        self, embedder: Embedder, question: str, passages: list[str]
    ) -> None:
        (asked,) = await embedder.embed([question], kind="query")
        similarity = await embedder.embed(passages, kind="passage") @ asked
        assert similarity.argmax() == 1

    async def test_closing_twice_is_the_same_as_once(self, embedder: Embedder) -> None:
        await embedder.embed(["something"], kind="query")
        await embedder.close()
        await embedder.close()
