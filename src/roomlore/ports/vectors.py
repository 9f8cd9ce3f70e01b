"""Where vectors lie. SQL is the truth; what is here can be lost and rebuilt.

A collection holds points of one embedding model, in one *generation*: an id that the rebuild gave it. Points are put
and asked for under a generation, and one of another generation is never mixed in. Any call may raise
`VectorsUnavailable`.
"""

from collections.abc import Sequence
from typing import Protocol

from roomlore.core.search import EmbeddingModel, Ints, Nearest, VectorPoint, Vectors

MESSAGES = "messages"
MEMORIES = "group_memories"


class VectorIndex(Protocol):
    """Exact or nearly exact nearest neighbours by cosine, inside one scope of one tenant."""

    async def generation(self, *, collection: str) -> str | None:
        """The generation the collection holds; None where there is none: never made, or wiped."""

    async def prepare(self, *, collection: str, model: EmbeddingModel, generation: str) -> None:
        """Makes the collection, empty, for this model and generation, in the place of what was there."""

    async def put(self, *, collection: str, generation: str, points: Sequence[VectorPoint]) -> None:
        """Keeps the points, each in the place of one with its tenant, scope and number. `VectorsUnavailable` where the
        collection is of another generation or gone."""

    async def remove(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> None:
        """Drops these points; those that are not there are passed over, so is a missing collection."""

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
        """For each row of `vectors` (m, dimensions; rows of length 1) the nearest `limit` points of the scope, among
        the numbers `only` if given. An empty scope gives empty arrays; an empty `only` too. `VectorsUnavailable` where
        the collection is of another generation or gone."""

    async def count(self, *, collection: str, tenant: str, scope: str) -> int:
        """How many points the scope has."""

    async def close(self) -> None: ...
