"""Statements of short memories, by a model or without one."""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from roomlore.core.chat import ChatAnswer, ChatRequest, Usage
from roomlore.core.errors import describe
from roomlore.core.memory.extraction import FALLBACK, SUMMARY_CHARACTERS, SUMMARY_TOKENS, fallback, kept
from roomlore.core.memory.folding import FOLDED_CHARACTERS
from roomlore.core.prompt import neutral
from roomlore.core.providers import SUMMARY_MODEL
from roomlore.core.text import language
from roomlore.ports.language import Prompts

log = logging.getLogger(__name__)

PROMPT = "memory_summary"
FOLD_PROMPT = "memory_fold"
_FOLD_TOKENS = 4 * SUMMARY_TOKENS


class Completer(Protocol):
    """The part of the model service that extraction uses."""

    async def complete(
        self, model_id: str, request: ChatRequest, *, timeout_seconds: float | None = None, check: Any = None
    ) -> ChatAnswer: ...


@dataclass(frozen=True, slots=True)
class Extracted:
    """The result for a conversation. `statement`: None if nothing is worth keeping. `made_by`: 'fallback' if no model
    answered."""

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
        """Return a summary. It never fails: without a model it falls back."""
        try:
            return await self.by_model(conversation)
        except Exception as error:  # noqa: BLE001 - an answer nobody foresaw must not stop an agent's memories for good
            log.warning("no model summarised a conversation for a memory", extra={"why": describe(error)})
            return Extracted(fallback(conversation), FALLBACK)

    async def by_model(self, conversation: str) -> Extracted:
        """Return a model's summary. Raise `ModelUnavailable`, `BadModelOutput` or `NotFound` if no model gives one."""
        return await self._ask(PROMPT, "conversation", conversation, most=SUMMARY_CHARACTERS, tokens=SUMMARY_TOKENS)

    async def merged(self, notes: str) -> Extracted:
        """Return one longer statement in the place of several. It never fails: without a model it has none."""
        try:
            return await self._ask(FOLD_PROMPT, "notes", notes, most=FOLDED_CHARACTERS, tokens=_FOLD_TOKENS)
        except Exception as error:  # noqa: BLE001 - as above
            log.warning("no model merged short memories", extra={"why": describe(error)})
            return Extracted(None, FALLBACK)

    async def _ask(self, name: str, place: str, text: str, *, most: int, tokens: int) -> Extracted:
        prompt = await self._prompts.find(name, language=language(text))
        content = prompt.fill({place: neutral(text)})
        request = ChatRequest(messages=({"role": "user", "content": content},), max_tokens=tokens)
        answer = await self._models.complete(
            SUMMARY_MODEL,
            request,
            timeout_seconds=self._timeout_seconds,
            check=lambda given: kept(given.text, instructions=prompt.text, most=most),
        )
        statement = kept(answer.text, most=most)
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
