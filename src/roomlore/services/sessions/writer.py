"""What sessions need of whoever stores messages."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from roomlore.core.models import Message
from roomlore.ports.storage import UnitOfWork

Along = Callable[[UnitOfWork], Awaitable[None]]


class Writer(Protocol):
    """Stores messages, and something else in the same transaction."""

    async def add(
        self, batches: Mapping[str, Sequence[Message]], *, strict: bool, along: Along | None = None
    ) -> Sequence[object]:
        """`along` is called after the messages are written and before they are committed, again if that had to be tried
        again, and not at all where every message was there already."""
