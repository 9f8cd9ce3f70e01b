"""Scopes of vectors held in memory, bounded by bytes.

A scope's rows are only ever appended. What a search sees is a frozen view of them, so it may run in a thread while the
scope grows: a vector that is replaced or removed stays where it is and is listed as dead until the rows are packed.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from roomlore.core.search import Ints, Vectors

_NONE = np.zeros(0, np.int64)
_FEW_DEAD = 64
OVERHEAD = 1_000
"""About the bytes that a scope takes beside its rows."""


@dataclass(frozen=True)
class Rows:
    """Numbers (n,) and vectors (n, dimensions) of a scope, as they were loaded; `dead`: places to pass over."""

    numbers: Ints
    matrix: Vectors
    dead: Ints = field(default_factory=_NONE.copy)

    @property
    def alive(self) -> int:
        return len(self.numbers) - len(self.dead)

    @cached_property
    def _places_by_number(self) -> tuple[Ints, Ints]:
        places = np.delete(np.arange(len(self.numbers)), self.dead)
        places = places[np.argsort(self.numbers[places], kind="stable")]
        return self.numbers[places], places

    def places(self, numbers: Ints) -> Ints:
        """Where those of the numbers that are here stand, each once."""
        known, places = self._places_by_number
        if not len(known) or not len(numbers):
            return _NONE
        found = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.unique(places[found[known[found] == numbers]])


class Scope:
    """One scope in memory. `stamp`: all that was written to the scope up to this stamp is in `rows`."""

    def __init__(self, dimensions: int) -> None:
        self.lock = asyncio.Lock()
        self.stamp = 0
        self._numbers = np.empty(0, np.int64)
        self._matrix = np.empty((0, dimensions), np.float32)
        self._highest = -1
        self.rows = Rows(self._numbers, self._matrix)

    @property
    def nbytes(self) -> int:
        return OVERHEAD + self._numbers.nbytes + self._matrix.nbytes

    def reserve(self, rows: int) -> None:
        """Makes room for so many rows in all, and for half as many again as there was if that is more."""
        capacity = len(self._numbers)
        if rows > capacity:
            self._move(self.rows, max(rows, capacity + capacity // 2))

    def apply(self, gone: Ints, numbers: Ints, vectors: np.ndarray) -> None:
        """Takes in what was written: numbers removed, and numbers put with their vectors (of any float type)."""
        dead = np.concatenate((self.rows.dead, self._outdated(np.concatenate((gone, numbers)))))
        old = len(self.rows.numbers)
        new = old + len(numbers)
        self.reserve(new)
        self._numbers[old:new] = numbers
        self._matrix[old:new] = vectors
        self.rows = Rows(self._numbers[:new], self._matrix[:new], dead)
        self._highest = max(self._highest, int(numbers.max(initial=-1)))
        if len(dead) > max(_FEW_DEAD, new // 4):
            self._pack()

    def _outdated(self, numbers: Ints) -> Ints:
        """Places of rows that these numbers had until now. New messages have higher numbers: that is seen at once."""
        if numbers.min(initial=self._highest + 1) > self._highest:
            return _NONE
        return self.rows.places(numbers)

    def _pack(self) -> None:
        rows = self.rows
        alive = np.delete(np.arange(len(rows.numbers)), rows.dead)
        self._move(Rows(rows.numbers[alive], rows.matrix[alive]), len(alive))

    def _move(self, rows: Rows, capacity: int) -> None:
        size = len(rows.numbers)
        self._numbers = np.empty(capacity, np.int64)
        self._matrix = np.empty((capacity, rows.matrix.shape[1]), np.float32)
        self._numbers[:size] = rows.numbers
        self._matrix[:size] = rows.matrix
        self.rows = Rows(self._numbers[:size], self._matrix[:size], rows.dead)


Key = tuple[str, int, str, str]
"""Collection, epoch, tenant, scope."""


class VectorCache:
    """The scopes used last, at most `max_bytes` of them. One that is larger alone is not kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._scopes: OrderedDict[Key, Scope] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._epochs: dict[str, int] = {}
        self.nbytes = 0

    @property
    def held(self) -> list[Key]:
        """The scopes held, the one used longest ago first."""
        return list(self._scopes)

    def scope(self, key: Key, dimensions: int) -> Scope:
        """The scope, empty where it is not held; scopes of the collection's earlier epochs are dropped."""
        self._forget_epochs_before(*key[:2])
        scope = self._scopes.get(key)
        if scope is None:
            scope = self._scopes[key] = Scope(dimensions)
            self._count(key, scope.nbytes)
        self._scopes.move_to_end(key)
        return scope

    def settle(self, key: Key, scope: Scope) -> None:
        """Counts what the scope has grown to, and drops what was used longest ago until the rest fits."""
        if self._scopes.get(key) is scope:
            self._count(key, scope.nbytes)
        while self.nbytes > self._max_bytes:
            self._drop(next(iter(self._scopes)))

    def clear(self) -> None:
        for key in self.held:
            self._drop(key)

    def _forget_epochs_before(self, collection: str, epoch: int) -> None:
        if self._epochs.get(collection) != epoch:
            self._epochs[collection] = epoch
            for key in self.held:
                if key[0] == collection and key[1] != epoch:
                    self._drop(key)

    def _count(self, key: Key, size: int) -> None:
        self.nbytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size

    def _drop(self, key: Key) -> None:
        del self._scopes[key]
        self.nbytes -= self._sizes.pop(key)
