"""Steps of work that is done here and now, and not again."""

from collections.abc import Awaitable, Callable

from roomlore.ports.durable import Json


class Direct:
    """Does each step when it is asked for."""

    async def once(self, name: str, step: Callable[[], Awaitable[Json]]) -> Json:
        """Does it."""
        return await step()

    async def report(self, progress: str) -> None:
        """Nobody looks on."""
