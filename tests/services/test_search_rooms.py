"""Search over all rooms that a viewer may see, ranked as one."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from roomlore import InvalidInput, Lore, Member, Message, NotFound
from roomlore.services.messages import search
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.embedding import HashEmbedder

START = datetime(2024, 5, 6, 9, tzinfo=UTC)


def at(hour: float) -> datetime:
    return START + timedelta(hours=hour)


def said(room: str, hour: float, who: str, text: str, **more: object) -> Message:
    return Message(id=f"{room}-{hour:g}", room_id=room, sender_id=who, text=text, sent_at=at(hour), **more)  # type: ignore[arg-type]


@pytest.fixture(params=[False, True], ids=["lexical", "hybrid"])
async def lore(request: pytest.FixtureRequest, storage_url: str) -> AsyncIterator[Lore]:
    embedder = HashEmbedder() if request.param else None
    settings = roomlore.Settings(vectors="sql")
    async with roomlore.open(storage_url, settings=settings, embedder=embedder, background=False) as opened:
        await opened.rooms.set_kind("square", "public")
        await opened.rooms.set_kind("dm", "direct")
        await opened.rooms.set_members("team", [Member("ann", at(0)), Member("bo", at(10))])
        await opened.rooms.set_members("board", [Member("eve", at(0))])
        await opened.messages.add(
            [
                said("square", 1, "eve", "The deploy of node seven is on Friday."),
                said("dm", 2, "ann", "The deploy makes me nervous, I want another job."),
                said("team", 3, "ann", "The deploy script is broken."),
                said("team", 11, "bo", "I mended the deploy script. 部署脚本修好了。"),
                said("board", 4, "eve", "We will stop the deploy and close node seven."),
            ]
        )
        await drained(opened)
        yield opened


async def drained(lore: Lore) -> None:
    async for _ in lore.index.drain():
        pass


async def found(lore: Lore, viewer: str | None, query: str = "deploy", **asked: object) -> set[str]:
    answer = await lore.messages.search(query=query, viewer=viewer, limit=50, **asked)  # type: ignore[arg-type]
    assert answer.room_id is None
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    return {hit.message.id for hit in answer.hits}


SEEN = [
    ("room:square", {"square-1"}),
    ("room:dm", {"square-1", "dm-2", "team-3", "team-11"}),
    ("room:team", {"square-1", "team-3", "team-11"}),
    ("room:unknown", {"square-1"}),
    ("user:ann", {"square-1", "dm-2", "team-3", "team-11"}),
    ("user:bo", {"square-1", "team-11"}),
    ("user:eve", {"square-1", "board-4"}),
    ("user:nobody", {"square-1"}),
    (None, {"square-1", "dm-2", "team-3", "team-11", "board-4"}),
]


async def test_what_a_viewer_finds(lore: Lore) -> None:
    with all_cases() as case:
        for viewer, expected in SEEN:
            with case(viewer):
                assert await found(lore, viewer) == expected


HINTS = [
    ("room:team", None),
    ("user:bo", None),
    ("room:squar", "The viewer is unknown: there is no room 'squar'. Did you mean 'square'?"),
    ("room:boardd", "The viewer is unknown: there is no room 'boardd'."),
    ("user:eva", "The viewer is unknown. Nobody who wrote here has the id 'eva'; did you mean 'eve'?"),
    ("user:ana", "The viewer is unknown. Nobody who wrote here has the id 'ana'."),
]


async def test_a_viewer_that_nobody_knows_is_said_to_be_unknown(lore: Lore) -> None:
    """What it may mean is named of what everybody may see."""
    with all_cases() as case:
        for viewer, hint in HINTS:
            with case(viewer):
                for room in (None, "square"):
                    assert (await lore.messages.search(room, "deploy", viewer=viewer)).hint == hint
                senders = (await lore.messages.search("square", "deploy", viewer=viewer, sender_ids=["eva"])).hint
                assert senders == " ".join(
                    filter(None, (hint, "Nobody who wrote here has the id 'eva'; did you mean 'eve'?"))
                )


async def test_a_hidden_room_is_told_of_in_the_words_for_one_that_is_not_there(lore: Lore) -> None:
    for room in ("board", "nowhere"):
        for call in (
            lore.messages.search(room, "deploy", viewer="user:ann"),
            lore.rooms.check_shown(room, "user:ann"),
            lore.rooms.named(room, viewer="user:ann"),
        ):
            with pytest.raises(NotFound) as told:
                await call
            first = f"There is no room {room!r} that the viewer may see; a room appears with its first message."
            assert str(told.value) == first
    with pytest.raises(NotFound, match=r"^There is no room 'nowhere'; a room"):
        await lore.rooms.named("nowhere")


async def test_what_cannot_be_seen_changes_no_score(lore: Lore) -> None:
    async def answered(viewer: str) -> list[object]:
        answer = await lore.messages.search(query="who mended the deploy script? 部署", viewer=viewer, limit=50)
        return [(hit.message.id, hit.score, dict(hit.signals), hit.reason) for hit in answer.hits], answer.degraded

    before = {viewer: await answered(viewer) for viewer in ("user:bo", "room:square", "room:team")}
    hidden = [
        said("board", 5, "eve", "deploy deploy script mended"),
        said("dm", 6, "ann", "who mended the deploy script?", sender_name="Deploy"),
    ]
    await lore.messages.add(hidden)
    await lore.messages.add([said("new", 7, "eve", "deploy script script")])
    await drained(lore)
    assert {viewer: await answered(viewer) for viewer in before} == before
    early = said("team", 4, "ann", "who mended the deploy script?", sender_name="Script")
    await lore.messages.add(early)
    await drained(lore)
    assert await answered("user:bo") == before["user:bo"], "said before Bo came"
    assert await answered("room:team") != before["room:team"]


async def test_an_edit_counts_as_said_when_it_was_made(lore: Lore) -> None:
    await lore.messages.add(said("team", 12, "ann", "The deploy runs."))
    await lore.rooms.remove_members("team", ["bo"], at=at(13))
    await drained(lore)
    assert "team-12" in await found(lore, "user:bo")
    await lore.messages.edit("team", "team-12", text="The deploy failed badly.")
    assert "team-12" not in await found(lore, "user:bo")
    assert "team-12" in await found(lore, "user:ann")


async def test_filters_times_and_conversations(lore: Lore) -> None:
    assert await found(lore, "user:ann", sender_ids=["bo"]) == {"team-11"}
    assert await found(lore, "user:ann", since=at(2), until=at(4)) == {"dm-2", "team-3"}
    assert await found(lore, "user:ann", "what was said today?", asked_at="newest") == {
        "square-1", "dm-2", "team-3", "team-11",
    }  # fmt: skip
    answer = await lore.messages.search(query="mended", viewer="room:team", conversation=True, limit=1)
    assert "team-11" in [message.id for message in answer.hits[0].conversation]
    assert {message.room_id for message in answer.hits[0].conversation} == {"team"}


async def test_nothing_is_found_where_nothing_may_be_seen(lore: Lore) -> None:
    assert await found(lore, "room:team", "giraffe", mode="lexical") == set()
    await lore.rooms.set_kind("square", None, since=at(0))
    assert await found(lore, "user:nobody") == set()
    with pytest.raises(InvalidInput, match="viewer"):
        await lore.messages.search(query="deploy", viewer="everybody")
    with pytest.raises(InvalidInput, match="empty"):
        await lore.messages.search(viewer="room:team")


async def test_a_room_of_which_nothing_is_seen_is_unknown(lore: Lore) -> None:
    for viewer in ("room:team", "user:bo"):
        assert (await lore.messages.search("team", "deploy", viewer=viewer)).hits
    for viewer in ("user:nobody", "room:square"):
        with pytest.raises(NotFound) as hidden:
            await lore.messages.search("team", "deploy", viewer=viewer)
        with pytest.raises(NotFound) as unknown:
            await lore.messages.search("missing", "deploy", viewer=viewer)
        assert str(hidden.value).replace("team", "missing") == str(unknown.value)


async def test_many_rooms_are_bounded_and_the_answer_says_so(lore: Lore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_ROOMS", 2)
    answer = await lore.messages.search(query="deploy", viewer="room:dm", limit=50, mode="lexical")
    assert {hit.message.room_id for hit in answer.hits} == {"team", "dm"}
    assert "2 rooms used last" in (answer.degraded or "")
    monkeypatch.setattr(search, "MAX_MESSAGES", 2)
    answer = await lore.messages.search(query="deploy", viewer="room:dm", limit=50, mode="lexical")
    assert {hit.message.room_id for hit in answer.hits} == {"team"}
