"""The contract of a vector index on each of them."""

from collections.abc import AsyncIterator

import pytest
from vector_indexes import VECTOR_INDEXES, Opening

from roomlore.ports.vectors import VectorIndex
from roomlore_testkit import contracts


@pytest.fixture(params=VECTOR_INDEXES)
def opening(request: pytest.FixtureRequest) -> Opening:
    return VECTOR_INDEXES[request.param](request)


@pytest.fixture
async def vectors(opening: Opening) -> AsyncIterator[VectorIndex]:
    async with opening as index:
        yield index


class TestVectors(contracts.VectorsContract): ...
