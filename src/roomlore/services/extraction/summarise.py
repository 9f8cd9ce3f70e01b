"""What a few messages come to: a model's summary, nothing worth keeping, or the beginning of the conversation."""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from roomlore.core.chat.models import ChatAnswer, ChatRequest, Usage
from roomlore.core.chat.registry import SUMMARY_MODEL
from roomlore.core.errors import describe
from roomlore.core.memory.extraction import FALLBACK, SUMMARY_TOKENS, fallback, kept
from roomlore.core.text import language
from roomlore.ports.language import Prompts

PROMPT = "memory_summary"

log = logging.getLogger(__name__)


class Completer(Protocol):
    """The chain of models, as far as it is needed here."""

    async def complete(
        self, model_id: str, request: ChatRequest, *, timeout_seconds: float | None = None, check: Any = None
    ) -> ChatAnswer: ...


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a conversation came to. `statement`: None where nothing is worth keeping. `made_by`: 'fallback' where no
    model answered."""

    statement: str | None
    made_by: str
    prompt_hash: str = ""
    raw_answer: str = ""
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def is_fallback(self) -> bool:
        return self.made_by == FALLBACK

    @property
    def usage(self) -> Usage:
        return Usage(self.input_tokens, self.output_tokens)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Extracted":
        return cls(**data)


class MemorySummaries:
    """Summaries by the model `memory-summary-model`, each provider with `timeout_seconds`."""

    def __init__(self, *, models: Completer, prompts: Prompts, timeout_seconds: float) -> None:
        self._models = models
        self._prompts = prompts
        self._timeout_seconds = timeout_seconds

    async def of(self, conversation: str) -> Extracted:
        """Never fails, for want of a model or whatever else."""
        try:
            return await self.by_model(conversation)
        except Exception as error:  # noqa: BLE001 - an answer nobody foresaw must not stop an agent's memories for good
            log.warning("no model summarised a conversation for a memory", extra={"why": describe(error)})
            return Extracted(fallback(conversation), FALLBACK)

    async def by_model(self, conversation: str) -> Extracted:
        """Raises `ModelUnavailable`, `BadModelOutput` or `NotFound` where no model gives a summary."""
        prompt = await self._prompts.find(PROMPT, language=language(conversation))
        content = prompt.fill({"conversation": conversation})
        request = ChatRequest(messages=({"role": "user", "content": content},), max_tokens=SUMMARY_TOKENS)
        answer = await self._models.complete(
            SUMMARY_MODEL,
            request,
            timeout_seconds=self._timeout_seconds,
            check=lambda given: kept(given.text, instructions=prompt.text),
        )
        statement = kept(answer.text)
        if statement is None:
            log.info("a model found nothing worth keeping")
        return Extracted(
            statement=statement,
            made_by=f"{answer.provider}/{answer.model_id}",
            prompt_hash=prompt.hash,
            raw_answer=answer.text,
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
        )
