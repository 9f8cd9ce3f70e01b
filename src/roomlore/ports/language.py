"""The language tools that roomlore needs."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import Literal, Protocol, runtime_checkable

from roomlore.core.attachments import Attachment
from roomlore.core.chat import ChatAnswer, ChatPiece, ChatRequest, ModelStatus, Offer
from roomlore.core.prompt import Prompt
from roomlore.core.search.hits import EmbeddingModel, Vectors

TextKind = Literal["passage", "query"]
Language = Literal["zh", "en"]
CheckAnswer = Callable[[ChatAnswer], None]
"""Raise `BadModelOutput` if an answer cannot be used, so that the next provider is asked."""


class TokenCounter(Protocol):
    """Counts tokens exactly as the configured encoding does, offline."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text; special tokens in a text count as plain text."""

    def for_models(self, names: Iterable[str]) -> "TokenCounter":
        """Return what counts at least the tokens that each of these models takes; itself if it knows none by name."""


class Embedder(Protocol):
    """Turns texts into vectors that are close if the meanings are."""

    @property
    def model(self) -> EmbeddingModel:
        """The model: its name and the dimensions of its vectors."""

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return (len(texts), dimensions), each row of length 1. `kind`: a passage or a query.

        Splits into batches by itself and yields to the event loop. Raises `ModelUnavailable` if the model cannot be
        reached, `InvalidInput` if it refuses one of the texts.
        """

    async def close(self) -> None: ...


class Summarizer(Protocol):
    """Summarises a conversation with a language model."""

    @property
    def name(self) -> str:
        """The name stored with each summary, such as a model's name."""

    async def summarise(self, *, previous: str, conversation: str, language: Language, max_tokens: int) -> str:
        """Return a summary that stands for the previous one ('' if none) and the conversation after it.

        `max_tokens`: the most it should take; the caller checks. Raises `ModelUnavailable` if no model answers,
        `BadModelOutput` if no answer is usable.
        """

    async def close(self) -> None: ...


@runtime_checkable
class TenantSummarizer(Summarizer, Protocol):
    """A summarizer that counts what it uses for the quotas of tenants."""

    def for_tenant(self, tenant: str) -> Summarizer:
        """Return one whose tokens count for the quota of this tenant."""


ReadAttached = Callable[[str, Attachment], Awaitable[bytes]]
"""Return the content of a tenant's attachment: of its file, or from its address. Raise `InvalidInput` if it can never
be read there, and `Unavailable` if it could not be read now."""


class Describer(Protocol):
    """Puts into words what a message holds beside its text: what a picture shows, what is said in a voice message."""

    async def describe(self, attachment: Attachment, content: bytes) -> str | None:
        """Return the text that a model reads, or None if there is nothing to say, such as for a type of file that it
        does not know. `content`: the bytes of the file.

        Several calls run at a time. One that raises, or takes longer than two minutes, leaves the attachment without a
        description; the message is stored all the same.
        """


class Prompts(Protocol):
    """The source of prompts."""

    async def find(self, name: str, *, language: Language) -> Prompt:
        """Return the prompt with this name in this language. Raises `NotFound` if there is none, but never because a
        prompt server is down, since built-in prompts are available."""


class ChatClient(Protocol):
    """Calls one provider, once. It does not retry; the caller decides.

    Both calls raise `ModelUnavailable` with its cause if the provider gives no usable answer in time. A provider's
    error text never reaches the error, since it may quote the conversation.
    """

    async def complete(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> ChatAnswer:
        """Return the whole answer, within this many seconds."""

    def stream(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> AsyncGenerator[ChatPiece, None]:
        """Yield the answer as it is written. `timeout_seconds`: until the first piece, and between pieces."""

    async def close(self) -> None: ...


class LanguageModels(Protocol):
    """Models by the ids of the registry, each of which may have several providers."""

    async def list_available_models(self, *, internal: bool = False) -> Sequence[ModelStatus]:
        """Return the models callers may choose from; `internal`: include those for roomlore's own use."""

    async def can_ask(self, model_id: str) -> bool:
        """Return True if a provider of the model can be asked and is not paused; False for an unknown model."""

    async def has_provider(self, model_id: str) -> bool:
        """Return True if a provider of the model has a key, or needs none, even if it is paused; False for an unknown
        model."""

    async def complete(
        self,
        model_id: str,
        request: ChatRequest,
        *,
        timeout_seconds: float | None = None,
        check: CheckAnswer | None = None,
    ) -> ChatAnswer:
        """Return the first usable answer of the model's providers. Raise `NotFound` for an unknown model,
        `TokensExceeded` if the tenant of the request may use no more today, `ModelUnavailable`, `BadModelOutput`."""

    def stream(self, model_id: str, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]:
        """Yield the answer as it is written. Raise as `complete` does."""
