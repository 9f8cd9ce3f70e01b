"""Short memories by a real model: what holds whatever it says."""

import pytest
from talks import EMPTY_TALK, LANGUAGES, WORTH_KEEPING

from roomlore.adapters.prompts import PackagedPrompts
from roomlore.core.memory.extraction import SUMMARY_CHARACTERS, fallback
from roomlore.core.text import graphemes
from roomlore.services.extraction import Extracted, MemorySummaries


def summaries(models, seconds: float) -> MemorySummaries:
    return MemorySummaries(models=models, prompts=PackagedPrompts(), timeout_seconds=seconds)


def says_nothing(text: str) -> bool:
    return any(mark in text.casefold() for mark in ("no_memory", "无有效记忆"))


def check(extracted: Extracted, conversation: str, name: str) -> None:
    """A memory of the model's own words, nothing because it said so, or the flagged beginning of the conversation."""
    if extracted.is_fallback:
        assert (extracted.statement, extracted.raw_answer) == (fallback(conversation), "")
        return
    assert extracted.made_by == name
    assert extracted.prompt_hash
    if extracted.statement is None:
        assert says_nothing(extracted.raw_answer)
        return
    assert extracted.statement in " ".join(extracted.raw_answer.split())
    assert 5 <= graphemes(extracted.statement) <= SUMMARY_CHARACTERS
    assert not says_nothing(extracted.statement)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("talks", [WORTH_KEEPING, EMPTY_TALK], ids=["worth keeping", "empty talk"])
async def test_a_conversation_comes_to_a_memory_or_to_nothing(models, real_model, listener, talks, language):
    extracted = await summaries(models, real_model.seconds).of(talks[language])
    listener.tell("the model", extracted.raw_answer)
    listener.tell("flagged fallback" if extracted.is_fallback else "kept", extracted.statement)
    listener.check_answers()
    check(extracted, talks[language], real_model.name)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_without_time_the_beginning_is_kept_and_flagged(models, real_model, language):
    conversation = WORTH_KEEPING[language]
    extracted = await summaries(models, 0.001).of(conversation)
    assert extracted.is_fallback
    check(extracted, conversation, real_model.name)
