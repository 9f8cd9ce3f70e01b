"""Searching messages through the library, on every store."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.embedding import HashEmbedder
from tuned import tuned

MONDAY = datetime(2024, 5, 6, 9, tzinfo=UTC)
TALK = [
    ("ann", "Shall we move the standup to ten?"),
    ("bob", "Ten works for me, nine is too early."),
    ("小明", "我对花生过敏，点菜的时候请注意。"),
    ("ann", "Noted, no peanuts."),
    ("bot", "I moved the standup to 10:00 in the calendar."),
    ("bob", "The deploy failed again: disk full on web-2."),
    ("小红", "web-2 的磁盘我已经清理了。"),
]


def talk(room: str = "team", *, start: datetime = MONDAY) -> list[roomlore.Message]:
    return [
        roomlore.Message(
            id=f"{room}-{number}",
            room_id=room,
            sender_id=sender,
            role=roomlore.Role.ASSISTANT if sender == "bot" else roomlore.Role.USER,
            text=text,
            sent_at=start + timedelta(days=number),
        )
        for number, (sender, text) in enumerate(TALK)
    ]


def settings(**changes) -> roomlore.Settings:
    return roomlore.Settings(**({"vectors": "sql"} | changes))


@pytest.fixture(autouse=True)
def _tuned():
    with tuned(index_lease_seconds=0.2):
        yield


@pytest.fixture(params=[False, True], ids=["lexical", "hybrid"])
async def lore(request, storage_url) -> AsyncIterator[roomlore.Lore]:
    embedder = HashEmbedder() if request.param else None
    async with roomlore.open(storage_url, settings=settings(), embedder=embedder, background=False) as opened:
        await opened.messages.add(talk())
        await drained(opened)
        yield opened


async def drained(lore: roomlore.Lore) -> None:
    async for _ in lore.index.drain():
        pass


async def found(lore: roomlore.Lore, query: str, **asked) -> list[str]:
    answer = await lore.messages.search("team", query, **asked)
    return [hit.message.id for hit in answer.hits]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("When is the standup?", {"team-0", "team-4", "team-1"}),
        ("Who is allergic to 花生?", {"team-2"}),
        ("谁对花生过敏", {"team-2"}),
        ("disk full", {"team-5"}),
        ("磁盘清理", {"team-6"}),
    ],
)
async def test_the_message_that_answers_comes_first(lore, query, first):
    assert (await found(lore, query))[0] in first


async def test_the_answer_tells_how_it_was_found(lore):
    answer = await lore.messages.search("team", "standup")
    assert (answer.room_id, answer.query, answer.degraded) == ("team", "standup", None)
    assert answer.search_ms > 0
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    for hit in answer.hits:
        assert hit.reason
        assert hit.signals


async def test_words_alone_where_asked_for(lore):
    answer = await lore.messages.search("team", "standup", mode="lexical")
    assert answer.mode == "lexical"
    assert answer.degraded is None


async def test_the_mode_says_whether_meaning_was_searched(lore):
    answer = await lore.messages.search("team", "standup")
    assert answer.mode == ("hybrid" if (await lore.index.status()).model else "lexical")


async def test_an_added_message_is_found_at_once(lore):
    await lore.messages.add(roomlore.Message(id="new", room_id="team", sender_id="eve", text="zebra crossing"))
    assert (await found(lore, "zebra"))[0] == "new"
    await drained(lore)
    assert (await found(lore, "zebra"))[0] == "new"


async def test_an_edited_message_is_found_by_its_new_words_alone(lore):
    await found(lore, "disk")
    await lore.messages.edit("team", "team-5", text="All is well with the zebra.")
    await drained(lore)
    assert (await found(lore, "zebra"))[0] == "team-5"
    assert "team-5" not in (await found(lore, "failed again", mode="lexical"))


async def test_a_deleted_message_is_not_found(lore):
    await found(lore, "peanuts")
    await lore.messages.delete("team", "team-3")
    assert "team-3" not in await found(lore, "peanuts")
    await drained(lore)
    assert "team-3" not in await found(lore, "Noted, no peanuts.")


async def test_filters_by_sender_and_time(lore):
    assert set(await found(lore, "standup ten deploy", sender_ids=["bob"])) <= {"team-1", "team-5"}
    assert await found(lore, "standup", sender_ids=[]) == []
    since, until = MONDAY + timedelta(days=2), MONDAY + timedelta(days=5)
    assert set(await found(lore, "standup peanuts 花生 deploy", since=since, until=until)) <= {
        "team-2",
        "team-3",
        "team-4",
    }
    assert await found(lore, "standup", since=until) != await found(lore, "standup")


async def test_a_caption_and_a_name_are_searched_too(lore):
    picture = roomlore.Message(
        id="p", room_id="team", sender_id="u77", sender_name="Zelda", metadata={"caption": "a red lighthouse"}
    )
    await lore.messages.add(picture)
    assert (await found(lore, "lighthouse"))[0] == "p"
    assert "p" in await found(lore, "Zelda")


async def test_time_in_the_question_is_read_from_the_asking_time(lore):
    newest = await lore.messages.search("team", "what happened yesterday?", asked_at="newest")
    assert [(span.start, span.end) for span in newest.times] == [
        (datetime(2024, 5, 11, tzinfo=UTC), datetime(2024, 5, 12, tzinfo=UTC))
    ]
    told = await lore.messages.search("team", "昨天怎么了？", asked_at=datetime(2024, 5, 9, 12))
    assert told.times[0].start == datetime(2024, 5, 8, tzinfo=UTC)


async def test_nothing_but_a_time_finds_what_was_said_then(lore):
    asked = {"asked_at": datetime(2024, 5, 9, 12, tzinfo=UTC)}
    assert await found(lore, "昨天大家聊了什么？", **asked) == ["team-2"]
    assert await found(lore, "what did people talk about yesterday?", **asked) == ["team-2"]
    others = await lore.messages.search("team", "what happened yesterday?", **asked, sender_ids=["ann"])
    assert [(hit.message.id, hit.outside) for hit in others.hits] == [("team-0", True), ("team-3", True)]
    assert others.hint == "Nothing is from “yesterday” (2024-05-08). What follows is from other times."
    price = roomlore.Message(id="price", room_id="team", sender_id="eve", text="it costs £8", sent_at=MONDAY)
    await lore.messages.add(price)
    assert await found(lore, "what did we say on 8 May?", **asked) == ["team-2"]
    answer = await lore.messages.search("team", "which 花生 came on 8 May?", mode="lexical", **asked)
    assert [hit.signals["words"] for hit in answer.hits if hit.message.id == "price"] in ([], [0])


async def test_each_hit_with_its_conversation(lore):
    def said(number: int, sender: str, text: str, reply_to: str | None = None) -> roomlore.Message:
        sent_at = MONDAY + timedelta(days=20, minutes=number)
        return roomlore.Message(
            id=f"talk-{number}", room_id="team", sender_id=sender, text=text, sent_at=sent_at, reply_to=reply_to
        )

    talk = [said(0, "ann", "where is the spare zebra key?"), said(1, "bob", "behind the plant pot", "talk-0")]
    talk += [said(n, "ann" if n % 2 else "bob", f"pot joke {n}", f"talk-{n - 1}") for n in range(2, 40)]
    await lore.messages.add(talk)
    answer = await lore.messages.search("team", "where is the zebra key?", conversation=True, limit=2)
    first = answer.hits[0]
    assert first.message.id == "talk-1"
    assert [message.id for message in first.conversation] == [f"talk-{n}" for n in range(12)]
    plain = await lore.messages.search("team", "where is the zebra key?", limit=2)
    assert [hit.message.id for hit in plain.hits] == [hit.message.id for hit in answer.hits]
    assert all(hit.conversation == () for hit in plain.hits)
    far = await lore.messages.search("team", "pot joke 30", conversation=True, limit=1, mode="lexical")
    ids = [message.id for message in far.hits[0].conversation]
    assert far.hits[0].message.id in ids
    assert len(ids) == 12


async def test_a_room_of_another_tenant_is_unknown(lore):
    other = lore.for_tenant("rivals")
    with pytest.raises(roomlore.NotFound):
        await other.messages.search("team", "standup")
    await other.messages.add(talk())
    await drained(lore)
    await other.messages.delete("team", "team-2")
    assert (await found(lore, "花生过敏"))[0] == "team-2"
    assert "team-2" not in await found(other, "花生过敏")


async def test_rooms_do_not_see_each_other(lore):
    await lore.messages.add(roomlore.Message(id="x", room_id="else", sender_id="ann", text="standup standup"))
    await drained(lore)
    assert "x" not in await found(lore, "standup")
    answer = await lore.messages.search("else", "disk full")
    assert {hit.message.room_id for hit in answer.hits} <= {"else"}


async def test_queries_without_words_are_answered(lore):
    with all_cases() as case:
        for query in ("的了吗", "!!!", "the of and", "\0", "'\";--", "🙂", "a" * 5000, "\ud800"):
            with case(repr(query[:20])):
                answer = await lore.messages.search("team", query)
                assert len(answer.hits) <= 10


BAD_INPUT = [
    ({"query": ""}, "empty"),
    ({"query": "  \n"}, "empty"),
    ({"query": "x" * 20_001}, "20000"),
    ({"query": "x", "limit": 0}, "limit"),
    ({"query": "x", "limit": 201}, "limit"),
    ({"query": "x", "limit": True}, "limit"),
    ({"query": "x", "mode": "dense"}, "mode"),
    ({"query": "x", "sender_ids": "ann"}, "sender_ids"),
    ({"query": "x", "sender_ids": 5}, "sender_ids"),
    ({"query": "x", "sender_ids": [["ann"]]}, "sender_ids"),
    ({"query": "x", "since": "yesterday"}, "since"),
    ({"query": "x", "asked_at": "noon"}, "asked_at"),
    ({"query": "x", "since": MONDAY, "until": MONDAY}, "not before until"),
]


async def test_bad_input_says_what_to_do(lore):
    with all_cases() as case:
        for asked, words in BAD_INPUT:
            with case(repr(asked)), pytest.raises(roomlore.InvalidInput, match=words):
                await lore.messages.search("team", **asked)


async def test_the_first_search_after_a_change_answers_from_what_is_there_now(lore):
    await found(lore, "standup")
    start = MONDAY + timedelta(days=60)
    await lore.messages.add([replace(one, id=f"late-{one.id}", sender_id="carla") for one in talk(start=start)])
    await drained(lore)
    first = await lore.messages.search("team", "what did carla say yesterday?", asked_at="newest", since=start)
    again = await lore.messages.search("team", "what did carla say yesterday?", asked_at="newest", since=start)
    assert first.times == again.times
    assert [hit.message.id for hit in first.hits] == [hit.message.id for hit in again.hits]
    assert [hit.signals for hit in first.hits] == [hit.signals for hit in again.hits]
    assert first.hits[0].signals["speaker"] == 1


async def test_a_room_is_named_by_a_string(lore):
    with pytest.raises(roomlore.InvalidInput, match="room_id"):
        await lore.messages.search(["team"], "x")


async def test_an_unknown_room(lore):
    with pytest.raises(roomlore.NotFound, match="nowhere"):
        await lore.messages.search("nowhere", "x")


async def test_the_limit_holds(lore):
    await lore.messages.add(
        [roomlore.Message(id=f"l{n}", room_id="team", sender_id="ann", text=f"lunch {n}") for n in range(40)]
    )
    await drained(lore)
    assert len(await found(lore, "lunch", limit=7)) == 7
    assert len(await found(lore, "lunch", limit=40)) == 40


async def test_what_scores_far_below_the_best_is_left_out(lore):
    """Most of the room shares a word with the question, or is a little near in meaning."""
    small = [("ann", "The machine was late again."), ("bob", "Our machine is cold, too."), ("eve", "Oh?")] * 5
    said = [*small, ("bob", "The router in the cellar burned out by the machine.")]
    await lore.messages.add(
        [
            roomlore.Message(id=f"s{n}", room_id="den", sender_id=sender, text=text, sent_at=MONDAY + timedelta(days=n))
            for n, (sender, text) in enumerate(said)
        ]
    )
    await drained(lore)
    question = "Which router burned out in the cellar by the machine?"
    for viewer in (None, "user:bob"):
        hits = (await lore.messages.search("den", question, viewer=viewer, limit=16)).hits
        assert hits[0].message.id == "s15"
        assert len(hits) <= 3
        assert hits[-1].score >= 0.2 * hits[0].score
        assert [hit.message.id for hit in (await lore.messages.search("den", question, limit=1)).hits] == ["s15"]
