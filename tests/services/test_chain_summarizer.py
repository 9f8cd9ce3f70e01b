"""Summaries of sessions by the chain of models, over a real socket."""

import pytest

import roomlore
from roomlore import Settings
from roomlore_testkit.model_server import Fails, ModelServer

CHAT = {
    "zh": ("我对青霉素过敏，请记住。", "好的，已经记下。", "历史摘要: ", "用户对青霉素过敏。"),
    "en": (
        "I am allergic to penicillin, please remember.",
        "Noted.",
        "Summary: ",
        "The user is allergic to penicillin.",
    ),
}


def settings(*urls: str) -> Settings:
    names = [f"p{number}" for number in range(len(urls))]
    return Settings(
        providers={name: {"base_url": url} for name, url in zip(names, urls, strict=True)},
        models={"memory-summary-model": {"internal": True, "providers": [{"name": n, "model_id": "m"} for n in names]}},
    )


async def _summarised(lore: roomlore.Lore, language: str) -> roomlore.Checkpoint:
    query, answer, _, _ = CHAT[language]
    await lore.sessions.write_turn("c", "ann", "doctor", query, answer)
    checkpoint = await lore.sessions.summarise("c")
    assert checkpoint is not None
    return checkpoint


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_a_model_writes_the_summary_in_the_conversations_language(language):
    _, _, label, told = CHAT[language]
    async with ModelServer([label + told]) as server, roomlore.open("sqlite://", settings=settings(server.url)) as lore:
        checkpoint = await _summarised(lore, language)
        assert (checkpoint.summary, checkpoint.made_by) == (told, "memory-summary-model")
        assert CHAT[language][0] in server.requests[0].prompt
        context = await lore.sessions.query_context("c")
        assert context.history.startswith(label + told)


async def test_the_next_provider_is_asked_where_the_first_fails_or_says_nothing():
    told = CHAT["en"][3]
    async with (
        ModelServer([Fails(status=500)]) as broken,
        ModelServer([" ok "]) as mute,
        ModelServer([told]) as good,
        roomlore.open("sqlite://", settings=settings(broken.url, mute.url, good.url)) as lore,
    ):
        assert (await _summarised(lore, "en")).summary == told
        assert [len(server.requests) for server in (broken, mute, good)] == [1, 1, 1]


async def test_sentences_are_chosen_where_no_provider_answers():
    async with (
        ModelServer(default=Fails(status=500)) as server,
        roomlore.open("sqlite://", settings=settings(server.url)) as lore,
    ):
        checkpoint = await _summarised(lore, "en")
        assert checkpoint.made_by == "extract"
        assert "penicillin" in checkpoint.summary


async def test_the_next_summary_is_told_the_one_before():
    first, second = CHAT["en"][3], "The user is allergic to penicillin and likes tea."
    async with (
        ModelServer([first, second]) as server,
        roomlore.open("sqlite://", settings=settings(server.url)) as lore,
    ):
        await _summarised(lore, "en")
        await lore.sessions.write_turn("c", "ann", "doctor", "I like tea.", "Good.")
        checkpoint = await lore.sessions.summarise("c")
        assert checkpoint is not None
        assert checkpoint.summary == second
        assert first in server.requests[1].prompt
        assert "I like tea." in server.requests[1].prompt


REFUSED = "I'm sorry, but I can't help with medical advice."
ECHO = "Write one new summary in the place of both, for an assistant that goes on with the conversation."


@pytest.mark.parametrize("answer", [REFUSED, ECHO])
async def test_what_is_no_summary_is_not_stored(answer):
    async with ModelServer([answer]) as server, roomlore.open("sqlite://", settings=settings(server.url)) as lore:
        checkpoint = await _summarised(lore, "en")
        assert checkpoint.made_by == "extract"
        assert "allergic to penicillin" in checkpoint.summary


async def test_what_a_model_drops_is_added():
    async with (
        ModelServer(["The user said hello."]) as server,
        roomlore.open("sqlite://", settings=settings(server.url)) as lore,
    ):
        checkpoint = await _summarised(lore, "en")
        assert checkpoint.made_by == "memory-summary-model"
        assert checkpoint.summary.startswith("The user said hello.")
        assert "allergic to penicillin" in checkpoint.summary
