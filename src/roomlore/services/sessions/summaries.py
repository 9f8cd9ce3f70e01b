"""Making a summary: with a language model where there is one, else by choosing sentences."""

import asyncio
import logging
from collections.abc import Iterator

from roomlore.core import summary
from roomlore.core.errors import BadModelOutput, describe
from roomlore.core.sessions.models import EXTRACT
from roomlore.core.sessions.turns import as_text, speaker
from roomlore.core.sessions.window import Segment
from roomlore.ports.language import Summarizer, TokenCounter

_MODEL_SECONDS = 120.0
"""Less than what is due is lent for, so that a model that hangs holds up nobody for longer."""

log = logging.getLogger(__name__)


_LEAST_TOKENS = 16
_SHARE = 4
_AT_ONCE_CHARACTERS = 60_000


class Summaries:
    """Summaries of at most `max_tokens` tokens, and of a quarter of the model's window."""

    def __init__(self, *, summarizer: Summarizer | None, tokens: TokenCounter, max_tokens: int) -> None:
        self._summarizer = summarizer
        self._tokens = tokens
        self._max_tokens = max_tokens

    def limit(self, window: int) -> int:
        """How many tokens a summary may have for a model that takes `window`; a summary that fills the window leaves no
        room for what it is there for."""
        return max(_LEAST_TOKENS, min(self._max_tokens, window // _SHARE))

    async def make(self, segment: Segment, *, max_tokens: int) -> tuple[str, str]:
        """A summary that stands for the one in force and all messages after it, and what made it. '' where there is
        nothing to say."""
        if self._summarizer is not None:
            try:
                async with asyncio.timeout(_MODEL_SECONDS):
                    return await self._told(self._summarizer, segment, max_tokens), self._summarizer.name
            except Exception as error:  # noqa: BLE001 - somebody else's class: whatever it raises, sentences are chosen
                log.warning("no model summarised a conversation, sentences are chosen", extra={"why": describe(error)})
        return await self._extracted(segment, max_tokens), EXTRACT

    async def _told(self, summarizer: Summarizer, segment: Segment, max_tokens: int) -> str:
        tongue = segment.language()
        answer = await summarizer.summarise(
            previous=_previous(segment),
            conversation=as_text("", segment.uncovered(), tongue),
            language=tongue,
            max_tokens=max_tokens,
        )
        if not isinstance(answer, str):
            raise BadModelOutput("The summariser gave no text.")
        return summary.accepted(answer, max_tokens=max_tokens, count=self._tokens.count)

    async def _extracted(self, segment: Segment, max_tokens: int) -> str:
        """A long conversation a part at a time, each with the summary of those before it: none takes long, and who
        gives up waiting need not wait for all of them."""
        text = _previous(segment)
        for part in _parts(segment):
            text = await asyncio.to_thread(summary.extract, text, part, max_tokens=max_tokens, count=self._tokens.count)
        return text


def _parts(segment: Segment) -> Iterator[list[summary.Said]]:
    tongue = segment.language()
    part: list[summary.Said] = []
    size = 0
    for message in segment.uncovered():
        part.append(summary.Said(speaker(message, tongue), message.text))
        size += len(message.text)
        if size >= _AT_ONCE_CHARACTERS:
            yield part
            part, size = [], 0
    if part or not segment.uncovered():
        yield part


def _previous(segment: Segment) -> str:
    checkpoint = segment.session.checkpoint
    return checkpoint.summary if checkpoint else ""
