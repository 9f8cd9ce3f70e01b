"""What is read before another process forgets a person, or changes messages, is not written back after it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

import roomlore
from meddling import Meddled
from reply_rig import gathered, replying
from roomlore import Conflict, Lore, Message, NotFound, Settings, StorageUnavailable
from roomlore_testkit.model_server import Says

NOW = datetime(2024, 5, 1, tzinfo=UTC)
ROOM = "talk"
SECRET = "my secret diagnosis is leukemia"


class Meanwhile:
    """A summarizer that lets something happen while it works."""

    name = "slow"
    happens: Callable[[], Awaitable[object]]

    async def summarise(self, **asked: object) -> str:
        await self.happens()
        return f"Ann said: {SECRET}."

    async def close(self) -> None:
        pass


@pytest.fixture
def summarizer() -> Meanwhile:
    return Meanwhile()


@pytest.fixture
async def one(storage_url: str, tmp_path: Path, summarizer: Meanwhile) -> AsyncIterator[Lore]:
    settings = Settings(archive_folder=str(tmp_path / "archive"))
    async with roomlore.open(storage_url, settings=settings, summarizer=summarizer, background=False) as lore:
        yield lore


@pytest.fixture
async def other(one: Lore, storage_url: str, tmp_path: Path) -> AsyncIterator[Lore]:
    """The same store, as another process has it."""
    settings = Settings(archive_folder=str(tmp_path / "archive"))
    async with roomlore.open(storage_url, settings=settings, background=False) as lore:
        yield lore


def said(number: int, sender: str = "ann", text: str = SECRET) -> Message:
    at = NOW + timedelta(minutes=number)
    return Message(id=str(number), room_id=ROOM, sender_id=sender, sender_name=sender, text=text, sent_at=at)


def forgets_ann(lore: Lore) -> Callable[[], Awaitable[object]]:
    async def forget() -> None:
        assert (await lore.privacy.forget("ann", is_id=True)).complete

    return forget


async def rooms(lore: Lore) -> list[str]:
    return [room.room_id for room in await lore.rooms.page()]


async def test_a_summary_of_what_was_forgotten_meanwhile_is_not_stored(one, other, summarizer):
    """A regression: the summary brought the words of a forgotten person back."""
    await one.messages.add([*map(said, range(6)), said(6, "bob", "I see")])
    summarizer.happens = forgets_ann(other)
    with pytest.raises(Conflict, match="moved on"):
        await one.sessions.summarise(ROOM)
    assert await other.sessions.checkpoints(ROOM) == []


async def test_a_summary_makes_no_room_that_was_removed_meanwhile(one, other, summarizer):
    """A regression: the room of a forgotten person was there again, with the summary."""
    await one.messages.add([*map(said, range(6))])
    summarizer.happens = forgets_ann(other)
    with pytest.raises(NotFound):
        await one.sessions.summarise(ROOM)
    assert await rooms(other) == []


async def test_a_summary_is_not_of_a_room_that_was_made_again_meanwhile(one, other, summarizer):
    async def begin_again() -> None:
        await forgets_ann(other)()
        await other.messages.add([said(number, "cid", "good morning") for number in range(6)])

    await one.messages.add([*map(said, range(6))])
    summarizer.happens = begin_again
    with pytest.raises(Conflict, match="moved on"):
        await one.sessions.summarise(ROOM)


@pytest.mark.parametrize("edited", [True, False])
async def test_a_summary_of_what_was_changed_meanwhile_is_not_stored(one, other, summarizer, edited):
    async def change() -> None:
        if edited:
            await other.messages.edit(ROOM, "2", text="I am well")
        else:
            await other.messages.delete(ROOM, "2")

    await one.messages.add([*map(said, range(6))])
    summarizer.happens = change
    with pytest.raises(Conflict, match="moved on"):
        await one.sessions.summarise(ROOM)
    summarizer.happens = lambda: other.messages.add(said(7))
    made = await one.sessions.summarise(ROOM)
    assert made is not None, "what comes later, and what was changed before, does no harm"


async def test_a_summary_stays_if_what_was_changed_meanwhile_says_the_same(one, other, summarizer):
    async def change() -> None:
        await other.links.correct(ROOM, "2", answers="0")
        await other.messages.edit(ROOM, "2", metadata={"caption": "a hut", "width": 3})

    picture = replace(said(2, text=""), metadata={"caption": "a hut"})
    await one.messages.add([said(0), said(1), picture, said(3)])
    summarizer.happens = change
    made = await one.sessions.summarise(ROOM)
    assert made is not None
    assert made.covers_arrival == 4


async def test_a_message_is_not_planned_on_a_room_that_was_made_again(one, other):
    """A regression: a new room of the same revision took over what this process had in memory of the forgotten one."""

    async def begin_again() -> None:
        await forgets_ann(other)()
        await other.messages.add([said(number, "cid", "good morning") for number in range(3)])

    await one.messages.add([*map(said, range(3))])
    one.messages._ingest._storage = meddled = Meddled(one.storage, "writing", begin_again)
    await one.messages.add(said(9, "bob", "what about the diagnosis?"))
    assert meddled.happened
    context = await one.context.build(ROOM, "9")
    assert {chosen.message.text for chosen in context.messages} <= {"good morning"}
    assert (await other.messages.get(ROOM, "9")).message.arrival == 4


async def test_a_message_that_is_deleted_while_it_is_read_for_a_viewer_is_not_found(one, other):
    """A regression: the message before it was returned in its place."""
    await one.rooms.set_members(ROOM, ["ann", "bob"])
    await one.messages.add([*map(said, range(1, 5))])
    await one.rooms.remove_members(ROOM, ["ann"])
    assert (await one.messages.get(ROOM, "3", viewer="user:ann")).message.id == "3"
    one.messages._storage = meddled = Meddled(
        one.storage, "messages.messages_by_arrival", lambda: other.messages.delete(ROOM, "3"), number=2
    )
    with pytest.raises(NotFound):
        await one.messages.get(ROOM, "3", viewer="user:ann")
    assert meddled.happened


async def test_words_of_a_room_that_was_removed_meanwhile_make_no_room(one, other):
    await one.messages.add([*map(said, range(3))])
    words = one.index._words
    await words.begin()
    await words.step()
    words._storage = meddled = Meddled(one.storage, "writing", forgets_ann(other))
    await words.step()
    assert meddled.happened
    assert await rooms(other) == []


async def test_archives_of_a_room_that_was_removed_meanwhile_make_no_room(one, other):
    await one.messages.add([*map(said, range(3))])
    archiver = one.archives._archiver
    archiver._storage = meddled = Meddled(one.storage, "writing", forgets_ann(other), number=3)
    assert (await one.archives.run(days=30)).messages == 0
    assert meddled.happened
    assert await rooms(other) == []


async def test_the_archive_of_a_room_that_is_removed_meanwhile_goes_with_it(one, other, tmp_path):
    """A regression: its file stayed, and the next forgetting never ended."""
    await one.messages.add([*map(said, range(3))])
    meddled = Meddled(one.storage, "writing", lambda: other.archives.run(days=30))
    one.privacy._forgetter._messages._storage = meddled
    assert (await one.privacy.forget("ann", is_id=True)).complete
    assert meddled.happened
    async with asyncio.timeout(60):
        assert (await other.privacy.forget("ann", is_id=True)).complete
    assert [path for path in (tmp_path / "archive").rglob("*") if path.is_file()] == []


async def test_tuning_makes_no_room_that_was_removed_meanwhile(one, other):
    await one.messages.add([*map(said, range(3))])
    one.tuning._storage = meddled = Meddled(one.storage, "writing", forgets_ann(other))
    found = SimpleNamespace(weights=one._resources.options.weights, threshold=0.3)
    await one.tuning._apply(found, [ROOM])
    assert meddled.happened
    assert await rooms(other) == []


async def test_a_reply_that_is_stored_at_the_second_try_is_not_stored_without_its_question():
    """A regression: the question was only looked for before the first try."""
    async with replying([Says(pieces=["you said: ", SECRET])]) as (lore, _):

        async def fails_and_forgets() -> None:
            await forgets_ann(lore)()
            raise StorageUnavailable("The database does not answer.")

        meddled = Meddled(lore.storage, "writing", fails_and_forgets, number=2)
        lore.replies._store._messages._ingest._storage = meddled
        with pytest.raises(NotFound, match="deleted meanwhile"):
            await gathered(lore, said(1))
        assert meddled.happened
        assert await rooms(lore) == []
