"""The port through which replies find memories."""

from collections.abc import Sequence
from typing import Protocol

from roomlore.core.models import StoredMessage


class Recall(Protocol):
    """Finds memories for a reply. One that raises, or takes too long, is left out of the prompt."""

    @property
    def name(self) -> str:
        """The name for logs and metrics, short and of low cardinality."""

    async def recall(
        self, *, tenant: str, room_id: str, agent_id: str, messages: Sequence[StoredMessage], max_tokens: int
    ) -> str:
        """Return a text of at most `max_tokens`, '' for nothing. `messages`: the messages of the room that the reply
        may see, in people's order; the last one is replied to."""
