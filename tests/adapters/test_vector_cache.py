"""Scopes of vectors in memory: whatever is written in whatever order, a view shows the last of it and never changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roomlore.adapters.vectors import sql as vector_cache
from roomlore.adapters.vectors.sql import OVERHEAD, CachedScope, Rows, VectorCache, nearest

_NUMBERS = st.lists(st.integers(1, 30), max_size=12, unique=True)


def _contents(rows: Rows) -> dict[int, float]:
    alive = np.delete(np.arange(len(rows.numbers)), rows.dead)
    assert len(set(rows.numbers[alive].tolist())) == len(alive) == rows.alive
    return {int(rows.numbers[place]): float(rows.matrix[place, 0]) for place in alive}


def _apply(scope: CachedScope, gone: list[int], put: dict[int, float]) -> None:
    vectors = np.array([[value, 1] for value in put.values()], np.float16).reshape(len(put), 2)
    scope.apply(np.array(gone, np.int64), np.array(list(put), np.int64), vectors)


@settings(max_examples=60)
@given(st.lists(st.tuples(_NUMBERS, _NUMBERS), max_size=20), st.integers(0, 40))
def test_a_view_shows_the_last_of_what_was_written_and_never_changes(writes, few_dead):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_cache, "_FEW_DEAD", few_dead)
        scope, expected, views = CachedScope(2), {}, []
        for step, (gone, put) in enumerate(writes):
            gone = [number for number in gone if number not in put]
            _apply(scope, gone, dict.fromkeys(put, step))
            expected = {number: value for number, value in expected.items() if number not in gone}
            expected |= dict.fromkeys(put, float(step))
            views.append((scope.rows, dict(expected)))
        for rows, contents in views:
            assert _contents(rows) == contents
            asked = np.arange(0, 32)
            assert sorted(rows.numbers[rows.places(asked)].tolist()) == sorted(contents)


def test_what_was_replaced_is_packed_away():
    scope = CachedScope(2)
    for step in range(50):
        _apply(scope, [], dict.fromkeys(range(100), step))
    assert len(scope.rows.numbers) <= 200
    assert scope.nbytes <= OVERHEAD + 400 * (8 + 2 * 4)
    assert _contents(scope.rows) == dict.fromkeys(range(100), 49)


def test_growing_one_by_one_copies_seldom():
    scope, moves = CachedScope(2), 0
    for number in range(2_000):
        held = scope.rows.matrix.base
        _apply(scope, [], {number: 1})
        moves += scope.rows.matrix.base is not held
    assert moves < 30
    assert scope.nbytes < OVERHEAD + 2 * 2_000 * (8 + 2 * 4)


def test_the_scopes_used_last_are_kept_within_the_bound():
    one = OVERHEAD + 10 * (8 + 2 * 4)
    cache = VectorCache(3 * one)
    for name in "abcdaefa":
        scope = cache.scope(("messages", 1, "t", name), 2)
        if not scope.rows.alive:
            _apply(scope, [], dict.fromkeys(range(10), 1))
        cache.settle(("messages", 1, "t", name), scope)
        assert cache.nbytes <= 3 * one
    assert [scope for *_, scope in cache.held] == ["e", "f", "a"]


def test_scopes_of_an_earlier_epoch_are_dropped():
    cache = VectorCache(1 << 20)
    for collection, epoch in [("messages", 1), ("group_memories", 1), ("messages", 2)]:
        cache.scope((collection, epoch, "t", "s"), 2)
    assert sorted(key[:2] for key in cache.held) == [("group_memories", 1), ("messages", 2)]
    assert cache.nbytes == 2 * OVERHEAD


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(0, 45), st.integers(1, 3), st.sets(st.integers(0, 45)) | st.none(), st.data())
def test_the_nearest_are_those_of_brute_force(count, limit, asked, only, data):
    """Few kinds of vectors, so that many are equal: of those the smaller numbers are right."""
    kinds = np.random.default_rng(5).standard_normal((4, 20))
    kinds = (kinds / np.linalg.norm(kinds, axis=1, keepdims=True)).astype(np.float32)
    numbers = np.array(data.draw(st.permutations(range(count))), np.int64)
    chosen = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    dead = np.array(sorted(data.draw(st.sets(st.integers(0, count - 1)))), np.int64)
    queries = kinds[::-1][:asked] + np.float32(0.1) * kinds[:asked]
    rows = Rows(numbers, kinds[chosen], dead)
    wanted = None if only is None else np.array(sorted(only), np.int64)
    for found, query in zip(nearest(rows, queries, limit, wanted), queries, strict=True):
        of_kind = kinds.astype(np.float64) @ query
        exact = sorted(
            (-of_kind[chosen[place]], int(number))
            for place, number in enumerate(numbers)
            if place not in dead and (only is None or number in only)
        )
        assert found.numbers.tolist() == [number for _, number in exact[:limit]]
        expected = np.clip([(1 - minus) / 2 for minus, _ in exact[:limit]], 0, 1)
        np.testing.assert_allclose(found.similarities, expected, atol=1e-6)
