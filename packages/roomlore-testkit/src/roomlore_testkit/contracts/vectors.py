"""The contracts of vector indexes and of embedders."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from roomlore.core.errors import InvalidInput, VectorsUnavailable
from roomlore.core.search.hits import EmbeddingModel, Ints, Nearest, VectorPoint, Vectors
from roomlore.ports.language import Embedder
from roomlore.ports.vectors import MEMORIES, MESSAGES, VectorIndex
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.contracts.hard_texts import HARD_TEXTS

DIMENSIONS = 16
MODEL = EmbeddingModel(name="model", dimensions=DIMENSIONS)
TENANT = "acme"
SCOPE = "room"
FIRST, SECOND = "g1", "g2"
TOLERANCE = 1e-3
"""The allowed difference from the exact similarity: vectors may be stored as float16."""


def random_vectors(count: int, seed: int = 0, dimensions: int = DIMENSIONS) -> Vectors:
    """Return vectors (count, dimensions) of length 1."""
    drawn = np.random.default_rng(seed).standard_normal((count, dimensions))
    scaled: Vectors = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def along(*places: int) -> Vectors:
    """Return vectors (n, DIMENSIONS) along one axis each."""
    return np.eye(DIMENSIONS, dtype=np.float32)[list(places)]


def points_of(vectors: Vectors, *, first: int = 1, tenant: str = TENANT, scope: str = SCOPE) -> list[VectorPoint]:
    """Return points numbered from `first` on."""
    return [
        VectorPoint(tenant=tenant, scope=scope, number=number, vector=vector, payload={"text": "部署"})
        for number, vector in enumerate(vectors, first)
    ]


async def put(vectors: VectorIndex, points: Sequence[VectorPoint], generation: str = FIRST) -> None:
    await vectors.put(collection=MESSAGES, generation=generation, points=points)


async def fill(vectors: VectorIndex, stored: Vectors, *, tenant: str = TENANT, scope: str = SCOPE) -> None:
    """Create the collection if it is missing, and put these vectors, numbered from 1 on."""
    if await vectors.generation(collection=MESSAGES) is None:
        await vectors.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
    await put(vectors, points_of(stored, tenant=tenant, scope=scope))


async def remove(vectors: VectorIndex, *numbers: int, tenant: str = TENANT, scope: str = SCOPE) -> None:
    await vectors.remove(collection=MESSAGES, tenant=tenant, scope=scope, numbers=numbers)


async def count(vectors: VectorIndex, *, tenant: str = TENANT, scope: str = SCOPE) -> int:
    return await vectors.count(collection=MESSAGES, tenant=tenant, scope=scope)


async def ask(
    vectors: VectorIndex,
    queries: Vectors,
    *,
    limit: int = 10,
    only: Ints | None = None,
    tenant: str = TENANT,
    scope: str = SCOPE,
    generation: str = FIRST,
) -> list[Nearest]:
    return await vectors.nearest(
        collection=MESSAGES,
        generation=generation,
        tenant=tenant,
        scope=scope,
        vectors=queries,
        limit=limit,
        only=only,
    )


async def numbers_of(vectors: VectorIndex, query: Vectors, **options: object) -> list[int]:
    (nearest,) = await ask(vectors, query, **options)  # type: ignore[arg-type]
    return [int(number) for number in nearest.numbers]


def check_exact(nearest: Nearest, stored: dict[int, Vectors], query: Vectors, limit: int) -> None:
    """Check that the answer is that of brute force, except for the order of those within the tolerance of each
    other."""
    exact = {number: (1 + float(vector @ query)) / 2 for number, vector in stored.items()}
    best = sorted(exact.values(), reverse=True)[:limit]
    assert len(set(nearest.numbers.tolist())) == len(best)
    np.testing.assert_allclose([exact[int(number)] for number in nearest.numbers], best, atol=2 * TOLERANCE)
    np.testing.assert_allclose(nearest.similarities, best, atol=TOLERANCE)


class VectorsContract:
    async def test_nothing_is_there_before_it_is_made(self, vectors: VectorIndex) -> None:
        assert await vectors.generation(collection=MESSAGES) is None
        assert await count(vectors) == 0
        await remove(vectors, 1, 2)
        with pytest.raises(VectorsUnavailable):
            await put(vectors, points_of(along(0)))
        with pytest.raises(VectorsUnavailable):
            await ask(vectors, along(0))

    async def test_an_empty_collection(self, vectors: VectorIndex) -> None:
        await vectors.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
        assert await vectors.generation(collection=MESSAGES) == FIRST
        assert await vectors.generation(collection=MEMORIES) is None
        assert await count(vectors) == 0
        answers = await ask(vectors, along(0, 1))
        assert [(len(answer.numbers), len(answer.similarities)) for answer in answers] == [(0, 0), (0, 0)]
        await put(vectors, [])
        await remove(vectors)

    async def test_nearest_first_with_cosines_in_0_to_1(self, vectors: VectorIndex) -> None:
        x, y = along(0)[0], along(1)[0]
        await fill(vectors, np.stack([-x, y, x, (x + y) / np.sqrt(2, dtype=np.float32)]))
        (nearest,) = await ask(vectors, along(0))
        assert nearest.numbers.tolist() == [3, 4, 2, 1]
        np.testing.assert_allclose(nearest.similarities, [1, (1 + np.sqrt(0.5)) / 2, 0.5, 0], atol=TOLERANCE)
        assert nearest.numbers.dtype == np.int64
        assert nearest.similarities.dtype == np.float64
        assert 0 <= nearest.similarities.min() <= nearest.similarities.max() <= 1

    async def test_the_length_of_a_stored_vector_does_not_matter(self, vectors: VectorIndex) -> None:
        await fill(vectors, np.stack([along(0)[0] * 300, along(1)[0] / 300]))
        (nearest,) = await ask(vectors, along(1))
        assert nearest.numbers.tolist() == [2, 1]
        np.testing.assert_allclose(nearest.similarities, [1, 0.5], atol=TOLERANCE)

    async def test_several_questions_at_once(self, vectors: VectorIndex) -> None:
        stored, queries = random_vectors(200), random_vectors(7, seed=1)
        await fill(vectors, stored)
        answers = await ask(vectors, queries, limit=12)
        assert len(answers) == 7
        for answer, query in zip(answers, queries, strict=True):
            check_exact(answer, dict(enumerate(stored, 1)), query, 12)

    async def test_limits(self, vectors: VectorIndex) -> None:
        x = along(0)[0]
        falling = [0.9 * x + (0.1 + 0.1 * place) * along(place + 1)[0] for place in range(4)]
        await fill(vectors, np.stack([*falling, x]))
        for limit, expected in ((0, []), (1, [5]), (2, [5, 1]), (99, [5, 1, 2, 3, 4])):
            assert await numbers_of(vectors, along(0), limit=limit) == expected, limit

    async def test_of_equals_the_smaller_number_comes_first(self, vectors: VectorIndex) -> None:
        same, query = random_vectors(1, seed=3), random_vectors(1, seed=4)
        await vectors.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
        for first in (61, 31, 1):
            await put(vectors, points_of(np.repeat(same, 30, axis=0), first=first))
        assert await numbers_of(vectors, query, limit=7) == [1, 2, 3, 4, 5, 6, 7]
        assert await numbers_of(vectors, query, limit=90) == list(range(1, 91))
        assert await numbers_of(vectors, query, limit=3, only=np.array([80, 40, 7, 66])) == [7, 40, 66]

    async def test_only_these_numbers(self, vectors: VectorIndex) -> None:
        await fill(vectors, random_vectors(40))
        nearest = await numbers_of(vectors, random_vectors(1, seed=2), limit=40)
        for some in ([3, 9, 31], [31, 9, 3, 9], [9, 77, 3, 31, -5], list(range(1, 41, 2))):
            numbers = await numbers_of(vectors, random_vectors(1, seed=2), limit=40, only=np.array(some))
            assert numbers == [number for number in nearest if number in some]
        assert await numbers_of(vectors, along(0), only=np.zeros(0, np.int64)) == []
        assert await numbers_of(vectors, along(0), only=np.array([77, 78])) == []
        assert len(await numbers_of(vectors, along(0), limit=2, only=np.array([3, 9, 31]))) == 2

    async def test_a_point_is_put_in_the_place_of_the_one_with_its_number(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(0, 1, 2))
        assert await numbers_of(vectors, along(3), limit=1) == [1]
        await put(vectors, points_of(along(3), first=2))
        assert await count(vectors) == 3
        assert await numbers_of(vectors, along(3), limit=1) == [2]
        (nearest,) = await ask(vectors, along(1), limit=1)
        np.testing.assert_allclose(nearest.similarities, [0.5], atol=TOLERANCE)

    async def test_the_last_of_two_points_with_one_number_stays(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(5))
        await put(vectors, [*points_of(along(0), first=7), *points_of(along(1), first=7)])
        assert await count(vectors) == 2
        (nearest,) = await ask(vectors, along(1), limit=1)
        assert nearest.numbers.tolist() == [7]
        np.testing.assert_allclose(nearest.similarities, [1], atol=TOLERANCE)

    async def test_a_removed_point_is_gone_and_may_come_back(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(0, 1, 2))
        await ask(vectors, along(0))
        await remove(vectors, 2, 99, 2)
        assert await count(vectors) == 2
        assert await numbers_of(vectors, along(1)) == [1, 3]
        assert await numbers_of(vectors, along(1), only=np.array([2])) == []
        await put(vectors, points_of(along(4), first=2))
        assert await numbers_of(vectors, along(4), limit=1) == [2]
        await remove(vectors, 1, 2, 3)
        assert await count(vectors) == 0
        assert await numbers_of(vectors, along(1)) == []

    async def test_scopes_and_tenants_are_strangers(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(0, 1))
        await fill(vectors, along(2), scope="other")
        await fill(vectors, along(3, 4, 5), tenant="other")
        assert await numbers_of(vectors, along(2)) == [1, 2]
        assert await numbers_of(vectors, along(2), scope="other") == [1]
        assert await numbers_of(vectors, along(2), tenant="other") == [1, 2, 3]
        assert await numbers_of(vectors, along(2), tenant="other", scope="other") == []
        await remove(vectors, 1, tenant="other")
        await remove(vectors, 1, 2, scope="other")
        assert [await count(vectors), await count(vectors, scope="other"), await count(vectors, tenant="other")] == [
            2,
            0,
            2,
        ]

    async def test_a_batch_may_mix_scopes_and_tenants(self, vectors: VectorIndex) -> None:
        await vectors.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
        owners = [(tenant, scope) for tenant in ("b", "a") for scope in ("y", "x")]
        batch = [
            point
            for place, (tenant, scope) in enumerate(owners)
            for point in points_of(along(place, 9), tenant=tenant, scope=scope)
        ]
        await put(vectors, batch[::2] + batch[1::2])
        for place, (tenant, scope) in enumerate(owners):
            (nearest,) = await ask(vectors, along(place), tenant=tenant, scope=scope)
            assert nearest.numbers.tolist() == [1, 2]
            np.testing.assert_allclose(nearest.similarities, [1, 0.5], atol=TOLERANCE)

    async def test_any_text_names_a_tenant_or_a_scope(self, vectors: VectorIndex) -> None:
        with all_cases() as case:
            for name in _NAMES:
                with case(name):
                    await fill(vectors, along(0, 1), tenant=name, scope=name)
                    await fill(vectors, along(2))
                    assert await numbers_of(vectors, along(1), tenant=name, scope=name) == [2, 1]
                    await remove(vectors, 2, tenant=name, scope=name)
                    assert await count(vectors, tenant=name, scope=name) == 1
                    assert await count(vectors) == 1

    async def test_another_generation_is_refused_and_changes_nothing(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(0))
        with pytest.raises(VectorsUnavailable, match=r"g1.*g2|g2.*g1"):
            await put(vectors, points_of(along(1), first=2), generation=SECOND)
        with pytest.raises(VectorsUnavailable, match=r"g1.*g2|g2.*g1"):
            await ask(vectors, along(0), generation=SECOND)
        assert await numbers_of(vectors, along(0)) == [1]

    async def test_made_anew_it_is_empty_and_of_the_new_generation(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(0, 1))
        assert await numbers_of(vectors, along(1)) == [2, 1]
        await vectors.prepare(collection=MESSAGES, model=MODEL, generation=SECOND)
        assert await vectors.generation(collection=MESSAGES) == SECOND
        assert await count(vectors) == 0
        assert await numbers_of(vectors, along(1), generation=SECOND) == []
        with pytest.raises(VectorsUnavailable):
            await ask(vectors, along(1))
        await put(vectors, points_of(along(5)), generation=SECOND)
        (nearest,) = await ask(vectors, along(5), generation=SECOND)
        assert nearest.numbers.tolist() == [1]
        np.testing.assert_allclose(nearest.similarities, [1], atol=TOLERANCE)

    async def test_made_anew_under_the_same_generation_it_is_empty_too(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(0, 1))
        assert await numbers_of(vectors, along(1)) == [2, 1]
        await vectors.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
        assert await numbers_of(vectors, along(1)) == []
        await put(vectors, points_of(along(3, 4)))
        (nearest,) = await ask(vectors, along(1))
        np.testing.assert_allclose(nearest.similarities, [0.5, 0.5], atol=TOLERANCE)

    async def test_made_anew_for_a_model_of_other_dimensions(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(0))
        await ask(vectors, along(0))
        wider = EmbeddingModel(name="wider", dimensions=40)
        stored = random_vectors(30, dimensions=40)
        await vectors.prepare(collection=MESSAGES, model=wider, generation=SECOND)
        await put(vectors, points_of(stored), generation=SECOND)
        (nearest,) = await ask(vectors, stored[4:5], generation=SECOND, limit=5)
        check_exact(nearest, dict(enumerate(stored, 1)), stored[4], 5)

    async def test_collections_are_strangers(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(0, 1))
        await vectors.prepare(collection=MEMORIES, model=MODEL, generation=SECOND)
        assert await vectors.count(collection=MEMORIES, tenant=TENANT, scope=SCOPE) == 0
        await vectors.put(collection=MEMORIES, generation=SECOND, points=points_of(along(2)))
        await vectors.prepare(collection=MEMORIES, model=MODEL, generation=FIRST)
        assert await vectors.generation(collection=MESSAGES) == FIRST
        assert await numbers_of(vectors, along(1)) == [2, 1]

    async def test_vectors_of_other_dimensions_are_refused(self, vectors: VectorIndex) -> None:
        await fill(vectors, along(0))
        narrow = random_vectors(1, dimensions=DIMENSIONS - 1)
        with pytest.raises(InvalidInput, match=str(DIMENSIONS)):
            await put(vectors, [*points_of(along(1), first=2), *points_of(narrow, first=3)])
        with pytest.raises(InvalidInput, match=str(DIMENSIONS)):
            await ask(vectors, narrow)
        assert await count(vectors) == 1

    async def test_a_large_batch(self, vectors: VectorIndex) -> None:
        stored, queries = random_vectors(3_000), random_vectors(3, seed=1)
        await fill(vectors, stored)
        assert await count(vectors) == 3_000
        for answer, query in zip(await ask(vectors, queries, limit=50), queries, strict=True):
            check_exact(answer, dict(enumerate(stored, 1)), query, 50)

    async def test_searches_and_writes_at_once(self, vectors: VectorIndex) -> None:
        stored = random_vectors(120)
        await vectors.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)

        async def add(first: int) -> None:
            await put(vectors, points_of(stored[first : first + 20], first=first + 1))

        async def search() -> None:
            for answer, query in zip(await ask(vectors, stored[:2], limit=120), stored[:2], strict=True):
                seen = {int(number): stored[number - 1] for number in answer.numbers}
                check_exact(answer, seen, query, 120)

        await asyncio.gather(*(work for first in range(0, 120, 20) for work in (add(first), search())))
        (nearest,) = await ask(vectors, stored[:1], limit=120)
        check_exact(nearest, dict(enumerate(stored, 1)), stored[0], 120)


_NAMES = ["部署 👩‍👩‍👧", "a\x00b", "\x1a0", "\ud800", "'; --", "%s :a ? {}", "x" * 200]
TEXTS = [*HARD_TEXTS, "", " ", "\n\n", "🏕️", "<s></s><mask>", "部" * 3000, "tent " * 3000, "a\u0301" * 500]
MIXED = [f"{'the tent 帐篷 ' * (number % 7)}number {number}" for number in range(150)]


async def _vector_of(embedder: Embedder, text: str) -> Vectors:
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

    async def test_every_text_has_a_vector_of_length_one(self, embedder: Embedder) -> None:
        with all_cases() as case:
            for text in TEXTS:
                with case(text[:12]):
                    _assert_sound(await embedder.embed([text], kind="passage"), embedder, 1)
                    _assert_sound(await embedder.embed([text, text], kind="query"), embedder, 2)

    async def test_rows_stand_in_the_order_of_the_texts_and_depend_on_no_other(self, embedder: Embedder) -> None:
        together = await embedder.embed(MIXED, kind="passage")
        _assert_sound(together, embedder, len(MIXED))
        for place in (0, 6, 64, 149):
            np.testing.assert_allclose(await _vector_of(embedder, MIXED[place]), together[place], atol=1e-5)

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
        (question_vector,) = await embedder.embed([question], kind="query")
        similarity = await embedder.embed(passages, kind="passage") @ question_vector
        assert similarity.argmax() == 1

    async def test_closing_twice_is_the_same_as_once(self, embedder: Embedder) -> None:
        await embedder.embed(["something"], kind="query")
        await embedder.close()
        await embedder.close()
