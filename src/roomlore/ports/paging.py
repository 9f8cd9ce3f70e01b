"""All rooms, scopes and evolutions of a tenant, page by page. Each page has a unit of work of its own, so that none is
held while a page is handled."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from roomlore.core.memory.memory import Evolution, Scope
    from roomlore.core.models import Room
    from roomlore.storage import Storage, UnitOfWork

T = TypeVar("T")
_PAGE = 500


async def every_room(storage: "Storage", tenant: str) -> "AsyncIterator[Room]":
    """Yield the rooms, ascending by id."""
    async for page in _pages(
        storage, tenant, lambda work, last: work.rooms.page(after=last.room_id if last else None, limit=_PAGE)
    ):
        for room in page:
            yield room


async def every_scope(storage: "Storage", tenant: str) -> "AsyncIterator[Scope]":
    """Yield the scopes in which anything was remembered, ascending by name."""
    async for page in _pages(
        storage, tenant, lambda work, last: work.memories.scopes(after=last.scope if last else None, limit=_PAGE)
    ):
        for scope in page:
            yield scope


def evolution_pages(storage: "Storage", tenant: str) -> "AsyncIterator[Sequence[Evolution]]":
    """Yield pages of the records of evolutions, ascending by id."""
    return _pages(
        storage,
        tenant,
        lambda work, last: work.maintenance.evolutions(after=last.evolution_id if last else "", limit=_PAGE),
    )


async def _pages(
    storage: "Storage", tenant: str, read: "Callable[[UnitOfWork, T | None], Awaitable[Sequence[T]]]"
) -> AsyncIterator[Sequence[T]]:
    """Yield pages, up to the first one that is not full. `read`: reads the page after a row, the first one for None."""
    last: T | None = None
    while True:
        async with storage.reading(tenant) as work:
            page = await read(work, last)
        yield page
        if len(page) < _PAGE:
            return
        last = page[-1]
