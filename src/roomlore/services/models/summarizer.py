"""Summaries of sessions by the chain."""

from roomlore.core.chat.models import ChatAnswer, ChatRequest
from roomlore.core.chat.registry import SUMMARY_MODEL
from roomlore.core.errors import BadModelOutput, ModelUnavailable, NotFound
from roomlore.core.text import graphemes
from roomlore.ports.language import Language, Prompts
from roomlore.services.models.service import ModelService

PROMPT = "session_summary"
_LEAST_CHARACTERS = 5


class ChainSummarizer:
    """The port `Summarizer` on the model `memory-summary-model`."""

    def __init__(self, *, models: ModelService, prompts: Prompts, timeout_seconds: float) -> None:
        self._models = models
        self._prompts = prompts
        self._timeout_seconds = timeout_seconds

    @property
    def name(self) -> str:
        return SUMMARY_MODEL

    async def summarise(self, *, previous: str, conversation: str, language: Language, max_tokens: int) -> str:
        """Each provider gets the time; one whose answer is empty or too short is passed over."""
        prompt = await self._prompts.find(PROMPT, language=language)
        values = {"previous": previous, "conversation": conversation, "max_tokens": str(max_tokens)}
        request = ChatRequest(messages=({"role": "user", "content": prompt.fill(values)},), max_tokens=max_tokens * 2)
        try:
            answer = await self._models.complete(
                SUMMARY_MODEL, request, timeout_seconds=self._timeout_seconds, check=_long_enough
            )
        except NotFound as error:
            raise ModelUnavailable(f"No model {SUMMARY_MODEL!r} is configured.") from error
        return answer.text

    async def close(self) -> None:
        """Nothing of its own to close."""


def _long_enough(answer: ChatAnswer) -> None:
    if graphemes(answer.text.strip()) < _LEAST_CHARACTERS:
        raise BadModelOutput(f"The answer is shorter than {_LEAST_CHARACTERS} characters.")
