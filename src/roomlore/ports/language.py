"""What roomlore needs of language tools."""

from collections.abc import Sequence
from typing import Literal, Protocol

from roomlore.core.search import EmbeddingModel, Vectors

TextKind = Literal["passage", "query"]


class TokenCounter(Protocol):
    """Counts tokens exactly as the configured encoding does, offline."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text; special tokens in a text count as plain text."""


class Embedder(Protocol):
    """Turns texts into vectors that lie near where their meanings are near."""

    @property
    def model(self) -> EmbeddingModel:
        """What makes the vectors: its name and how long they are."""

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """(len(texts), dimensions), each row of length 1. `kind`: a text to be found, or one to find others with.

        Splits into batches by itself and lets the event loop breathe. Raises `ModelUnavailable` where the model cannot
        be had, `InvalidInput` where it is there and refuses one of the texts.
        """

    async def close(self) -> None: ...
