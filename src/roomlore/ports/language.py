"""What roomlore needs of language tools."""

from collections.abc import Sequence
from typing import Literal, Protocol

from roomlore.core.prompt import Prompt
from roomlore.core.search import EmbeddingModel, Vectors

TextKind = Literal["passage", "query"]
Language = Literal["zh", "en"]


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


class Summarizer(Protocol):
    """Puts a conversation into fewer words, with a language model."""

    @property
    def name(self) -> str:
        """What makes the summaries, as kept beside each: a model's name, say."""

    async def summarise(self, *, previous: str, conversation: str, language: Language, max_tokens: int) -> str:
        """A summary that stands for the previous one ('' if none) and the conversation after it.

        `max_tokens`: how long it may be; the caller checks. Raises `ModelUnavailable` where no model answers,
        `BadModelOutput` where none answers anything that can be used.
        """

    async def close(self) -> None: ...


class Prompts(Protocol):
    """Where prompts come from."""

    async def find(self, name: str, *, language: Language) -> Prompt:
        """The prompt of this name in this language. Raises `NotFound` where there is none; never because a server that
        keeps prompts is down, since those that ship are at hand."""
