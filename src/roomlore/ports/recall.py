"""What is remembered, brought to a reply."""

from collections.abc import Sequence
from typing import Protocol

from roomlore.core.models import StoredMessage


class Recall(Protocol):
    """Finds what is worth knowing for a reply. One that raises, or takes too long, is left out of the prompt."""

    @property
    def name(self) -> str:
        """For logs and metrics: a short one of few."""

    async def recall(
        self, *, tenant: str, room_id: str, agent_id: str, messages: Sequence[StoredMessage], max_tokens: int
    ) -> str:
        """A text of at most `max_tokens`, '' for nothing. `messages`: what the reply may see of the room, as people see
        it; the last one is replied to."""
