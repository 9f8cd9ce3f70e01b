"""Asking language models."""

from collections.abc import AsyncGenerator
from typing import Protocol

from roomlore.core.chat.models import ChatAnswer, ChatPiece, ChatRequest
from roomlore.core.chat.registry import Offer


class ChatClient(Protocol):
    """Asks one provider, once. Nothing is tried again: whoever calls decides.

    Both calls raise `ModelUnavailable` with its cause where the provider gives no answer that can be used, in time.
    What a provider says in an error never reaches the error's text: it may quote the conversation.
    """

    async def complete(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> ChatAnswer:
        """The whole answer, within so many seconds."""

    def stream(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> AsyncGenerator[ChatPiece, None]:
        """The answer as it is written. `timeout_seconds`: for the first sign of it, and from each one to the next."""

    async def close(self) -> None: ...
