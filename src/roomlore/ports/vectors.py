"""The vector index, and the search by meaning over it. SQL is the source of truth; an index can be lost and rebuilt.

A collection holds points of one embedding model, in one *generation*: an id given by the rebuild. Points are written
and queried under a generation, and those of another generation are never mixed in. Any call of an index may raise
`VectorsUnavailable`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from roomlore.core.search.hits import Dense, EmbeddingModel, Ints, Nearest, VectorPoint, Vectors

MESSAGES = "messages"
MEMORIES = "group_memories"


class VectorIndex(Protocol):
    """Exact or nearly exact nearest neighbours by cosine, inside one scope of one tenant."""

    async def generation(self, *, collection: str) -> str | None:
        """Return the generation of the collection; None if it was never created or was wiped."""

    async def prepare(self, *, collection: str, model: EmbeddingModel, generation: str) -> None:
        """Create the collection, empty, for this model and generation, in place of an existing one."""

    async def put(self, *, collection: str, generation: str, points: Sequence[VectorPoint]) -> None:
        """Store the points, each in place of one with its tenant, scope and number. Raises `VectorsUnavailable` if the
        collection is of another generation or gone."""

    async def remove(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> None:
        """Remove these points; unknown ones are ignored, and so is a missing collection."""

    async def nearest(
        self,
        *,
        collection: str,
        generation: str,
        tenant: str,
        scope: str,
        vectors: Vectors,
        limit: int,
        only: Ints | None = None,
    ) -> list[Nearest]:
        """Return for each row of `vectors` (m, dimensions; rows of length 1) the nearest `limit` points of the scope,
        among the numbers `only` if given. An empty scope gives empty arrays; an empty `only` too. Raises
        `VectorsUnavailable` if the collection is of another generation or gone."""

    async def count(self, *, collection: str, tenant: str, scope: str) -> int:
        """Return the number of points in the scope."""

    async def close(self) -> None: ...


Turned: TypeAlias = Callable[[Vectors], Vectors]
"""Makes more vectors of those of the texts, of the same dimensions and of length 1."""


class MeaningSearch(Protocol):
    """A search by meaning in one collection, shared by all tenants."""

    async def near(
        self, tenant: str, scope: str, texts: Sequence[str], only: Ints | None, turned: Turned | None = None
    ) -> Dense:
        """Return the nearest neighbours of each text, or the problem if they are not available. `turned`: makes more
        vectors of those of the texts; the neighbours of these follow."""

    async def near_each(self, tenant: str, scopes: Mapping[str, Ints | None], texts: Sequence[str]) -> dict[str, Dense]:
        """Return the nearest neighbours in each of these scopes, which come with the numbers to search, None for all;
        or the problem for each."""

    async def problem(self) -> str | None:
        """Return the problem of the indexes, for a search by words alone."""
