"""Making a summary: with a language model where there is one, else by choosing sentences."""

import asyncio
import logging

from roomlore.core import summary
from roomlore.core.errors import BadModelOutput, ModelUnavailable, describe
from roomlore.core.sessions.models import EXTRACT
from roomlore.core.sessions.turns import as_text, speaker
from roomlore.core.sessions.window import Segment
from roomlore.ports.language import Summarizer, TokenCounter

_MODEL_SECONDS = 120.0
"""Less than what is due is lent for, so that a model that hangs holds up nobody for longer."""

log = logging.getLogger(__name__)


class Summaries:
    """Summaries of at most `max_tokens` tokens."""

    def __init__(self, *, summarizer: Summarizer | None, tokens: TokenCounter, max_tokens: int) -> None:
        self._summarizer = summarizer
        self._tokens = tokens
        self._max_tokens = max_tokens

    async def make(self, segment: Segment) -> tuple[str, str]:
        """A summary that stands for the one in force and all messages after it, and what made it. '' where there is
        nothing to say."""
        if self._summarizer is not None:
            try:
                async with asyncio.timeout(_MODEL_SECONDS):
                    return await self._told(self._summarizer, segment), self._summarizer.name
            except (ModelUnavailable, BadModelOutput, TimeoutError) as error:
                log.warning("no model summarised a conversation, sentences are chosen", extra={"why": describe(error)})
        return await asyncio.to_thread(self._extracted, segment), EXTRACT

    async def _told(self, summarizer: Summarizer, segment: Segment) -> str:
        tongue = segment.language()
        answer = await summarizer.summarise(
            previous=_previous(segment),
            conversation=as_text("", segment.uncovered(), tongue),
            language=tongue,
            max_tokens=self._max_tokens,
        )
        return summary.accepted(answer, max_tokens=self._max_tokens, count=self._tokens.count)

    def _extracted(self, segment: Segment) -> str:
        tongue = segment.language()
        said = [summary.Said(speaker(message, tongue), message.text) for message in segment.uncovered()]
        return summary.extract(_previous(segment), said, max_tokens=self._max_tokens, count=self._tokens.count)


def _previous(segment: Segment) -> str:
    checkpoint = segment.session.checkpoint
    return checkpoint.summary if checkpoint else ""
