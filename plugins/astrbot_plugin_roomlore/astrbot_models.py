"""AstrBot's own providers as roomlore's models: for summaries and evolution, and for embeddings."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import numpy as np

from roomlore import ModelUnavailable
from roomlore.core.chat import EVOLVE_MODEL, SUMMARY_MODEL, ChatAnswer, ChatPiece, ChatRequest, Offer, Usage
from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.ports.language import TextKind

NAME = "astrbot"
MODELS = {
    model: {"internal": True, "providers": [{"name": NAME, "model_id": NAME}]}
    for model in (SUMMARY_MODEL, EVOLVE_MODEL)
}
PROVIDERS = {NAME: {"base_url": "http://astrbot.invalid"}}
"""roomlore asks for an address. None is ever called: AstrBot's provider knows its own."""


class AstrBotChat:
    """The port `ChatClient`. `find`: return AstrBot's provider, None if there is none now."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find

    async def complete(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> ChatAnswer:
        provider = self._find()
        if provider is None:
            raise ModelUnavailable("AstrBot has no model provider; add one in its console.", cause="unreachable")
        system = "\n".join(str(one["content"]) for one in request.messages if one["role"] == "system")
        said = [dict(one) for one in request.messages if one["role"] != "system"]
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await provider.text_chat(contexts=said, system_prompt=system or None)
        except TimeoutError as error:
            raise ModelUnavailable("AstrBot's provider does not answer in time.", cause="timeout") from error
        except Exception as error:
            raise ModelUnavailable(f"AstrBot's provider fails ({type(error).__name__}).", cause="broken") from error
        if answer.role != "assistant" or not (answer.completion_text or "").strip():
            raise ModelUnavailable("AstrBot's provider gave no answer.", cause="broken")
        return ChatAnswer(
            text=answer.completion_text,
            finish_reason="stop",
            usage=_usage(answer),
            provider=NAME,
            model_id=offer.model_id,
        )

    async def stream(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> AsyncGenerator[ChatPiece, None]:
        answer = await self.complete(offer, request, key=key, timeout_seconds=timeout_seconds)
        yield ChatPiece(text=answer.text)
        yield ChatPiece(finish_reason="stop", usage=answer.usage, provider=NAME, model_id=offer.model_id)

    async def close(self) -> None:
        """Do nothing: the provider belongs to AstrBot."""


def _usage(answer: Any) -> Usage:
    used = getattr(answer, "usage", None)
    return Usage(input_tokens=used.input, output_tokens=used.output) if used else Usage()


class AstrBotEmbedder:
    """The port `Embedder` over an embedding provider of AstrBot."""

    def __init__(self, provider: Any, *, name: str, batch: int = 10) -> None:
        self._provider = provider
        self._model = EmbeddingModel(name=f"astrbot {name}", dimensions=int(provider.get_dim()))
        self._batch = batch

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        rows: list[Sequence[float]] = []
        try:
            for start in range(0, len(texts), self._batch):
                some = [text or " " for text in texts[start : start + self._batch]]
                rows += await self._provider.get_embeddings(some)
        except Exception as error:
            raise ModelUnavailable(f"AstrBot's embedding provider fails ({type(error).__name__}).") from error
        if not rows:
            return np.empty((0, self._model.dimensions), np.float32)
        found = np.asarray(rows, np.float32).reshape(len(rows), -1)
        if found.shape != (len(texts), self._model.dimensions):
            raise ModelUnavailable(
                f"AstrBot's embedding provider sent {found.shape[0]} vectors of {found.shape[1]} numbers for "
                f"{len(texts)} texts of {self._model.dimensions}; correct its dimensions in AstrBot's console."
            )
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and lengths.all()):
            raise ModelUnavailable("AstrBot's embedding provider sent a vector of zeros; try another model.")
        made: Vectors = found / lengths
        return made

    async def close(self) -> None:
        """Do nothing: the provider belongs to AstrBot."""
