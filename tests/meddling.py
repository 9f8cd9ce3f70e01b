"""A storage in which another writer comes in between two calls of the one that uses it."""

from collections.abc import Awaitable, Callable

from roomlore.storage import Storage
from roomlore_testkit import FaultyStorage


class Meddled(FaultyStorage):
    """Lets something happen once, before a call of this name: the first one, or that of this `number`."""

    def __init__(
        self, storage: Storage, call: str, happens: Callable[[], Awaitable[object]], *, number: int = 1
    ) -> None:
        super().__init__(storage)
        self.happened = False
        self._call = call
        self._happens = happens
        self._left = number

    async def visit(self, name: str) -> None:
        self._left -= name == self._call
        if not self._left and not self.happened:
            self.happened = True
            await self._happens()
