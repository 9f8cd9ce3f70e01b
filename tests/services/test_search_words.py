"""What a search for a few words finds, why each message was found, and what is said if nothing was."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from roomlore.core.search.telling import BETWEEN
from roomlore.surfaces.texts import text_of
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.embedding import HashEmbedder

MONDAY = datetime(2024, 5, 6, 9, tzinfo=UTC)
HOLDING = (
    "the key is under the pot", "keys?", "who took my key", "钥匙 key 都在", "A " + "long " * 60 + "text with a key",
    "key", "Anna has the garage key", "no key no entry",
)  # fmt: skip
BESIDE = ("I have it", "thanks a lot", "no idea", "看看花盆下面")
CHINESE = ("车库的钥匙在花盆下面", "谁有钥匙？", "汤匙在厨房", "我有", "车库门坏了")


@pytest.fixture(params=[False, True], ids=["lexical", "hybrid"])
async def lore(request) -> AsyncIterator[roomlore.Lore]:
    embedder = HashEmbedder() if request.param else None
    async with roomlore.open("sqlite://", embedder=embedder, background=False) as opened:
        texts = [text for at, held in enumerate(HOLDING) for text in (held, BESIDE[at % len(BESIDE)])]
        await opened.messages.add([said("shed", at, text) for at, text in enumerate(texts)])
        await opened.messages.add([said("车", at, text) for at, text in enumerate(CHINESE)])
        async for _ in opened.index.drain():
            pass
        yield opened


def said(room: str, at: int, text: str) -> roomlore.Message:
    who = ("Bea", "Carl")[at % 2]
    sent_at = MONDAY + timedelta(minutes=at)
    return roomlore.Message(
        id=f"{room}{at}", room_id=room, sender_id=who.lower(), sender_name=who, text=text, sent_at=sent_at
    )


async def texts(lore: roomlore.Lore, room: str | None, query: str, **more: object) -> list[str]:
    answer = await lore.messages.search(room, query, limit=50, **more)
    return [hit.message.text for hit in answer.hits]


async def test_a_word_brings_the_messages_that_hold_it_and_no_others(lore):
    for room in ("shed", None):
        assert sorted(await texts(lore, room, "key")) == sorted(HOLDING)
    assert sorted(await texts(lore, "车", "钥匙")) == sorted(CHINESE[:2]), "the whole word, not one of its characters"
    assert (await texts(lore, "车", "车库钥匙"))[0] == CHINESE[0]


async def test_all_of_several_words_come_before_some_of_them(lore):
    hits = await texts(lore, "shed", "garage key")
    assert hits[0] == "Anna has the garage key"
    assert set(hits) <= set(HOLDING)


async def test_neighbours_are_hits_only_where_they_are_asked_for(lore):
    assert set(await texts(lore, "shed", "key pot", mode="lexical")) <= set(HOLDING)
    assert set(await texts(lore, "shed", "key pot", mode="lexical", neighbours=True)) & set(BESIDE)


REASONS = [
    ("shed", "key", "has your word: key", "含有你的词：key"),
    ("shed", "garage key", "has your words: garage, key", "含有你的词：garage, key"),
    ("shed", "Bea key", "has your word: key; by someone you named", "含有你的词：key；是你提到的人说的"),
    ("shed", "pot on 6 May", "has your word: pot; from “6 May”", "含有你的词：pot；是“6 May”说的"),
    ("车", "车库 钥匙", "has your words: 车库, 钥匙", "含有你的词：车库, 钥匙"),
]


async def test_the_reason_is_what_a_person_would_say_in_both_languages(lore):
    with all_cases() as case:
        for room, query, english, chinese in REASONS:
            with case(query):
                answer = await lore.messages.search(room, query, asked_at=MONDAY + timedelta(days=9))
                reason = answer.hits[0].reason
                assert reason == english
                assert "；".join(text_of(part, "zh") for part in reason.split(BETWEEN)) == chinese
                assert answer.hits[0].signals["words"] > 0, "the numbers stay beside it"


LATER = MONDAY + timedelta(days=30)
HINTS = [
    ({"query": "zebra 斑马"}, "No message here has your words: zebra, 斑马. Try other words, or fewer."),
    ({"query": "the"}, "These words are in nearly every message: search for a name, a thing or a place."),
    (
        {"query": "key", "since": LATER},
        "No message is from that time: the first here is from 2024-05-06, the last from 2024-05-06.",
    ),
    (
        {"query": "zebra", "sender_ids": ["bea"]},
        "No message of those that the filters leave has your words: zebra. Try other words, or fewer.",
    ),
    (
        {"query": "key", "sender_ids": ["bea"], "since": MONDAY + timedelta(minutes=15)},
        "These people wrote nothing in that time: leave out a filter.",
    ),
    (
        {"query": "key", "sender_ids": ["Bea"]},
        "Nobody who wrote here has the id 'Bea'; did you mean 'bea' ('Bea')?",
    ),
]


async def test_nothing_found_says_why_and_what_to_try_in_both_languages(lore):
    with all_cases() as case:
        for asked, hint in HINTS:
            with case(repr(asked)):
                answer = await lore.messages.search("shed", **asked, mode="lexical")
                assert (answer.hits, answer.hint) == ((), hint)
                assert not text_of(hint, "zh")[0].isascii()
    async with roomlore.open("sqlite://", background=False) as empty:
        answer = await empty.messages.search(None, "key", viewer=None)
        assert answer.hint == "No messages are here yet: add or import some."


async def test_messages_of_then_without_the_words_are_not_said_to_be_missing(lore):
    answer = await lore.messages.search("shed", "xylophone this week", asked_at=datetime(2024, 5, 9, tzinfo=UTC))
    assert answer.hits == ()
    assert answer.hint == "Nothing from “this week” (2024-05-06 – 2024-05-12) has your words."
    assert text_of(answer.hint, "zh").endswith("的消息里没有你用的词。")


async def test_nothing_from_then_is_said_above_the_hits_of_other_times(lore):
    for query in ("key last month", "key 上个月"):
        answer = await lore.messages.search("shed", query, asked_at=datetime(2024, 5, 9, tzinfo=UTC))
        assert answer.hint.startswith(f"Nothing is from “{query.removeprefix('key ')}” (2024-04-01 – 2024-04-30).")
        assert "其他时间" in text_of(answer.hint, "zh")
        assert len(answer.hits) == len(HOLDING)
        assert all(hit.outside for hit in answer.hits)
    answer = await lore.messages.search("shed", "key this week", asked_at=datetime(2024, 5, 9, tzinfo=UTC))
    assert answer.hint is None
    assert not any(hit.outside for hit in answer.hits)
    answer = await lore.messages.search("shed", "who has the key tomorrow?", asked_at=MONDAY)
    assert answer.hint is None, "a time to come filters nothing"
