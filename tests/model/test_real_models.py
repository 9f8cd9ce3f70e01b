"""The chain with a real model: a word, an answer as it is written, and one that nobody waits for."""

from contextlib import aclosing

import pytest
from said import CHAT, PROVIDER
from talks import LANGUAGES, QUESTIONS

from roomlore.core.chat import ChatPiece, ChatRequest


def asking(text: str, **more) -> ChatRequest:
    return ChatRequest(messages=({"role": "user", "content": text},), **more)


async def test_every_entry_answers_a_word(models, real_model, listener):
    trials = [trial for trial in await models.test() if trial.provider == PROVIDER]
    for trial in trials:
        listener.tell("Say: ready", trial.error or trial.text)
        assert trial.provider_model_id == real_model.model_id
        assert trial.error == ""
        assert trial.text.strip()
        assert 0 < trial.seconds < real_model.seconds
    assert len(trials) == 2


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_stream_ends_with_why(models, real_model, listener, language):
    request = asking(QUESTIONS[language], max_tokens=60)
    pieces = [piece async for piece in models.stream(CHAT, request)]
    text = "".join(piece.text for piece in pieces)
    listener.tell(f"{QUESTIONS[language]} ({len(pieces)} pieces, {pieces[-1].finish_reason})", text)
    assert text.strip()
    assert {(piece.provider, piece.model_id) for piece in pieces} == {(PROVIDER, real_model.model_id)}
    assert [piece.finish_reason for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
    assert pieces[-1].finish_reason in ("stop", "length")


async def test_an_answer_is_never_longer_than_asked(models, listener):
    answer = await models.complete(CHAT, asking("Count from 1 to 100, with commas.", max_tokens=8))
    listener.tell(f"Count from 1 to 100 ({answer.usage.output_tokens} tokens, {answer.finish_reason})", answer.text)
    assert answer.finish_reason == "length"
    assert answer.usage.output_tokens <= 8


async def test_whoever_stops_listening_leaves_the_server_free(models, listener):
    async with aclosing(models.stream(CHAT, asking("Count from 1 to 1000.", max_tokens=400))) as pieces:
        first: ChatPiece = await anext(pieces)
    listener.tell("the first piece", first.text)
    answer = await models.complete(CHAT, asking("Say: ready", max_tokens=8))
    listener.tell("and the next answer", answer.text)
    assert answer.text.strip()
