"""Have a model write the conversations of a digest, window by window."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from roomlore.core.chat import ChatAnswer, ChatRequest
from roomlore.core.digest.talks import Talk
from roomlore.core.digest.written import PromptWindow, Written, read_written, reasons_for_log, windows_of
from roomlore.core.errors import BadModelOutput, ModelUnavailable, NotFound
from roomlore.core.evolution.requests import Mode, Rejected
from roomlore.core.text import language as language_of
from roomlore.core.texts import Phrase
from roomlore.ports.language import Language, LanguageModels, Prompts

log = logging.getLogger(__name__)

_PROMPT = "room_digest"
_ANSWER_TOKENS = 4096
MODEL_SECONDS = 30.0
"""Time for a whole digest by a model: a reader waits, and the messages' own sentences are at hand."""
_SENTENCES = 2
_FEWEST_WORDS, _MOST_WORDS = 15, 40
_SHOWN_REASON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingOptions:
    """The settings of digests that a model writes. `model`: of the registry. `zone`: of the times that it
    sees."""

    model: str
    zone: tzinfo


async def ask(
    models: LanguageModels,
    prompts: Prompts,
    options: WritingOptions,
    name: str,
    *,
    language: Language,
    max_tokens: int,
    values: Mapping[str, str],
    tenant: str,
) -> ChatAnswer:
    """Return the answer to the prompt of this name, for this tenant. Raise `ModelUnavailable`, also if it takes too
    long, `NotFound` and `BadModelOutput`."""
    try:
        async with asyncio.timeout(MODEL_SECONDS):
            prompt = await prompts.find(name, language=language)
            content = prompt.fill(values)
            request = ChatRequest(
                messages=({"role": "user", "content": content},), max_tokens=max_tokens, tenant=tenant
            )
            return await models.complete(options.model, request, timeout_seconds=MODEL_SECONDS)
    except TimeoutError:
        late = Phrase("model_late", seconds=f"{MODEL_SECONDS:g}")
        raise ModelUnavailable(late, cause="timeout") from None


@dataclass(frozen=True, slots=True)
class Account:
    """The texts of a model about conversations, by their numbers. `model`: its provider and id, None if nothing came.
    `degraded`: why something is missing, None if nothing is."""

    written: Mapping[int, Written]
    model: str | None
    degraded: str | None


@dataclass(frozen=True, slots=True)
class _Part:
    """The answer for one window."""

    written: Mapping[int, Written]
    refused: Sequence[Rejected] = ()
    model: str = ""
    failed: str = ""


class Writing:
    """Ask a model to write digests."""

    def __init__(self, *, models: LanguageModels, prompts: Prompts, options: WritingOptions) -> None:
        self._models = models
        self._prompts = prompts
        self._options = options

    async def writes(self, mode: Mode) -> bool:
        """Return True if a model is to write. Raise `ModelUnavailable` if one must, and none is set up."""
        if mode == "offline":
            return False
        if await self._models.has_provider(self._options.model):
            return True
        if mode == "llm":
            raise ModelUnavailable(
                "model_without_key_but_offline",
                model=repr(self._options.model),
                cause="unreachable",
            )
        return False

    async def write(
        self, room_id: str, talks: Mapping[int, Talk], *, language: Language, max_tokens: int, tenant: str
    ) -> Account:
        """Return what the model wrote of the talks, all windows at once. It never fails: what is missing is told."""
        people = {
            entry.message.sender_id: entry.message.sender_name for talk in talks.values() for entry in talk.entries
        }
        windows = await asyncio.to_thread(windows_of, talks, room_id=room_id, people=people, zone=self._options.zone)
        each = max_tokens // max(1, len(talks)) // _SENTENCES
        words = min(_MOST_WORDS, max(_FEWEST_WORDS, each))
        parts = await asyncio.gather(*(self._part(window, language, words, tenant) for window in windows))
        written = {number: entry_written for part in parts for number, entry_written in part.written.items()}
        self._note(room_id, parts)
        models = Counter(part.model for part in parts if part.written)
        return Account(written, models.most_common(1)[0][0] if models else None, _missing(parts))

    async def _part(self, window: PromptWindow, language: Language, words: int, tenant: str) -> _Part:
        try:
            answer = await ask(
                self._models,
                self._prompts,
                self._options,
                _PROMPT,
                language=language,
                max_tokens=_ANSWER_TOKENS,
                values={"conversations": window.text, "words": str(words)},
                tenant=tenant,
            )
        except (ModelUnavailable, BadModelOutput, NotFound) as error:
            return _Part({}, failed=str(error))
        written, refused = await asyncio.to_thread(read_written, answer.text, window)
        failed = "" if written else "no line of the model's answer can be used"
        return _Part(written, refused, f"{answer.provider}/{answer.model_id}", failed)

    def _note(self, room_id: str, parts: Sequence[_Part]) -> None:
        if refused := [refusal for part in parts for refusal in part.refused]:
            extra = {"room": room_id, "refused": reasons_for_log(refused)}
            log.info("lines of a digest by a model were refused", extra=extra)


def _missing(parts: Sequence[_Part]) -> str | None:
    failed = [part.failed for part in parts if part.failed]
    if not failed:
        return None
    many = "" if len(failed) == len(parts) else f"{len(failed)} of {len(parts)} parts: "
    return f"{many}made of the messages' own sentences, since {failed[0][:_SHOWN_REASON]}"


def language_for(own: Sequence[str], texts: Sequence[str]) -> Language:
    """Return the language of a reader by what they wrote, or of most of the texts."""
    counts = Counter(language_of(text) for text in own or texts if text.strip())
    return "zh" if counts["zh"] > counts["en"] else "en"
