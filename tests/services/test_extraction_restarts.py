"""The count of replies lies in the messages: closing and opening neither loses nor repeats a memory."""

from pathlib import Path

import pytest

import roomlore
from extraction_rig import (
    CHINESE,
    ENGLISH,
    both,
    conversations,
    extracted,
    mark,
    memories,
    opened,
    records,
    replies,
    settings,
    until,
)
from roomlore.services.extraction import EXTRACTION
from roomlore_testkit.model_server import ModelServer, Says


@pytest.fixture(autouse=True)
def _soon(monkeypatch) -> None:
    """Look again after a moment for work that a closed store left in this process alone."""
    monkeypatch.setattr("roomlore.services.extraction.extraction_service._LOOK_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr("roomlore.wiring.work._SWEEP_SECONDS", 0.1)


async def asked(server: ModelServer) -> bool:
    return bool(server.requests)


def ranges(made) -> list[tuple[int, int]]:
    return [(record.first_arrival, record.last_arrival) for record in made]


@both
async def test_opened_anew_for_every_reply(said, sqlite_url):
    async with ModelServer(default=said.summary) as server:
        for n in range(1, 12):
            async with opened(server, url=sqlite_url) as lore:
                await replies(lore, said, 1, first=n)
        async with opened(server, url=sqlite_url) as lore:
            await extracted(lore)
            assert ranges(await records(lore)) == [(1, 10), (11, 20)]
            assert len(await memories(lore)) == 2
    assert sorted(set(conversations(server))) == sorted(
        "\n".join(
            line
            for n in range(first, first + 5)
            for line in (f"Lin: {said.asks.format(n)}", f"bot: {said.replies.format(n)}")
        )
        for first in (1, 6)
    )


async def test_closed_while_the_model_thinks(sqlite_url):
    async with ModelServer([Says(text=CHINESE.summary, after=0.3)], default=CHINESE.summary) as server:
        async with opened(server, url=sqlite_url, seconds=5) as lore:
            await replies(lore, CHINESE, 10)
            await until(lambda: asked(server))
        async with opened(server, url=sqlite_url) as lore:
            await extracted(lore)
            assert ranges(await records(lore)) == [(1, 10), (11, 20)]


async def test_with_dbos_an_answer_that_came_is_not_asked_for_again(sqlite_url):
    """Closing waits for the step that runs; what is left is done after the next opening."""
    slow = Says(text=ENGLISH.summary, after=0.5)
    async with ModelServer(default=slow) as server:
        async with opened(server, url=sqlite_url, seconds=5, durable_work="dbos") as lore:
            await replies(lore, ENGLISH, 5)
            await until(lambda: asked(server))
        async with opened(server, url=sqlite_url, seconds=5, durable_work="dbos") as lore:
            await extracted(lore)
            assert len(await memories(lore)) == 1
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (5, 3, [(1, 10), (11, 16), (17, 22)]),
        (3, 5, [(1, 6), (7, 16)]),
        (5, 1, [(1, 10), *((n - 1, n) for n in range(12, 24, 2))]),
        (5, 0, [(1, 10)]),
    ],
)
async def test_the_setting_may_change_between_two_openings(sqlite_url, before, after, expected):
    """The count goes on from the last memory: 5 and then 4 + 2 replies. Turned off, it stops."""
    async with ModelServer(default=ENGLISH.summary) as server:
        async with opened(server, url=sqlite_url, extract_every=before) as lore:
            await replies(lore, ENGLISH, 5)
            await extracted(lore)
        async with opened(server, url=sqlite_url, extract_every=after) as lore:
            await replies(lore, ENGLISH, 6, first=6)
            await extracted(lore)
            assert ranges(await records(lore)) == expected


async def test_turned_off_and_on_again_it_goes_on_where_it_was(sqlite_url):
    async with ModelServer(default=ENGLISH.summary) as server:
        for every, first in ((5, 1), (0, 4), (5, 7)):
            async with opened(server, url=sqlite_url, extract_every=every) as lore:
                await replies(lore, ENGLISH, 3, first=first)
                await extracted(lore)
        async with opened(server, url=sqlite_url) as lore:
            assert ranges(await records(lore)) == [(1, 10)]
            assert await mark(lore) == 10


@pytest.mark.parametrize("after", [0, 2, 9])
async def test_what_was_handed_in_is_made_as_it_was_whatever_the_setting_says_by_then(sqlite_url, after):
    async with ModelServer(default=ENGLISH.summary) as server:
        given = settings(server, durable_work="dbos")
        async with roomlore.open(sqlite_url, settings=given, background=False) as lore:
            await replies(lore, ENGLISH, 4)
            await replies(lore, ENGLISH, 1, first=5)
            (job_id,) = await lore.jobs._sweeps[EXTRACTION]()
        async with opened(server, url=sqlite_url, durable_work="dbos", extract_every=after) as lore:
            await lore.jobs.begin()
            assert (await lore.jobs.wait(job_id.partition(":")[2], seconds=15)).status == "done"
            assert ranges(await records(lore)) == [(1, 10)]
            assert len(await memories(lore)) == 1


@pytest.mark.parametrize("kept_by", ["dbos", "process"])
async def test_a_store_that_does_nothing_leaves_it_to_the_next(sqlite_url, kept_by):
    async with ModelServer(default=CHINESE.summary) as server:
        given = settings(server, durable_work=kept_by)
        async with roomlore.open(sqlite_url, settings=given, background=False) as lore:
            await replies(lore, CHINESE, 5)
        assert server.requests == []
        async with roomlore.open(sqlite_url, settings=given) as lore:
            await extracted(lore)
            assert len(await memories(lore)) == 1


@both
async def test_an_older_database_beside_newer_work_is_extracted_again(said, sqlite_url):
    """The work is known as done, and what it made is gone with the newer database."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    async with ModelServer(default=said.summary) as server:
        async with opened(server, url=sqlite_url, durable_work="dbos") as lore:
            await replies(lore, said, 4)
        older = path.read_bytes()  # noqa: ASYNC240
        async with opened(server, url=sqlite_url, durable_work="dbos") as lore:
            await replies(lore, said, 1, first=5)
            await extracted(lore)
            (job,) = await lore.jobs.page()
            await lore.jobs.wait(job.job_id)
            assert len(await memories(lore)) == 1
        path.write_bytes(older)  # noqa: ASYNC240
        async with opened(server, url=sqlite_url, durable_work="dbos") as lore:
            assert await memories(lore) == []
            await replies(lore, said, 1, first=5)
            await extracted(lore)
            assert len(await memories(lore)) == 1
    assert len(server.requests) == 2


@pytest.mark.parametrize("durable_work", ["process", "dbos"])
async def test_what_it_is_at_is_seen(durable_work, sqlite_url):
    thinking = ModelServer([Says(text=CHINESE.summary, after=1.0)])
    async with thinking, opened(thinking, url=sqlite_url, durable_work=durable_work, seconds=10) as lore:
        await replies(lore, CHINESE, 5)
        await until(lambda: asked(thinking))
        (job,) = await lore.jobs.page()
        assert (job.kind, job.room_id, job.status) == ("extraction", "r", "running")
        assert job.progress == "asking a model about 10 messages"
        done = await lore.jobs.wait(job.job_id)
        assert (done.status, done.progress) == ("done", "a memory of 10 messages")
