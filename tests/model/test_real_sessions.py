"""Summaries of sessions by a real model: what holds whatever it says."""

import pytest
from talks import LANGUAGES, LATER_TURNS, TURNS

import roomlore
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.chat import SUMMARY_MODEL
from roomlore.core.prompt import neutral
from roomlore.core.text import graphemes
from tuned import tuned

MAX_TOKENS = 96
LABELS = {"en": "Summary: ", "zh": "历史摘要: "}


async def _told(lore: roomlore.Lore, turns: list[tuple[str, str]]) -> None:
    for query, answer in turns:
        await lore.sessions.write_turn("kitchen", "ann", "helper", query, answer)


async def _summarised(lore: roomlore.Lore, listener) -> roomlore.Checkpoint:
    checkpoint = await lore.sessions.summarise("kitchen")
    assert checkpoint is not None
    listener.tell(f"session summary ({checkpoint.made_by}, {checkpoint.tokens} tokens)", checkpoint.summary)
    return checkpoint


def _check(checkpoint: roomlore.Checkpoint) -> None:
    assert checkpoint.made_by in (SUMMARY_MODEL, "extract")
    assert graphemes(checkpoint.summary) >= 5
    assert EncodingTokens().count([checkpoint.summary]) == [checkpoint.tokens]
    assert checkpoint.tokens <= MAX_TOKENS


@pytest.fixture(autouse=True)
def _tuned():
    with tuned(summary_max_tokens=MAX_TOKENS):
        yield


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_session_goes_on_with_the_models_summary(real_model, listener, language):
    settings = real_model.settings()
    async with roomlore.open("sqlite://", settings=settings, background=False) as lore:
        await _told(lore, TURNS[language])
        first = await _summarised(lore, listener)
        _check(first)
        await _told(lore, LATER_TURNS[language])
        context = await lore.sessions.query_context("kitchen", recent_turns=0)
        assert context.mode is roomlore.SessionMode.SUMMARY_N
        assert context.history.startswith(LABELS[language] + neutral(first.summary))
        assert LATER_TURNS[language][0][0] in context.history
        second = await _summarised(lore, listener)
        _check(second)
        assert second.number == first.number + 1
    listener.check_answers()


@pytest.mark.parametrize("language", LANGUAGES)
async def test_without_time_sentences_are_chosen(real_model, language):
    settings = real_model.settings(summary_timeout_seconds=0.001)
    async with roomlore.open("sqlite://", settings=settings, background=False) as lore:
        await _told(lore, TURNS[language])
        checkpoint = await lore.sessions.summarise("kitchen")
    assert checkpoint is not None
    assert checkpoint.made_by == "extract"
    _check(checkpoint)
