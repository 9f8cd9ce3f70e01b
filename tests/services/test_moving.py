"""A whole store is moved between databases: what it has, what it answers, and what was done to it meanwhile."""

import asyncio
import gzip
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from bench.moved_answers import unlike
from sqlalchemy import make_url

from moved_store import SETTINGS, answers, fill, index, opened, said
from roomlore.core.errors import Conflict, InvalidInput, NotFound, RoomloreError, StorageBusy, StorageUnavailable
from roomlore.core.moving import OLDER, WAYS, MoveReport
from roomlore.storage import connect
from roomlore.storage.moving import open_side
from roomlore.wiring.moving import move, plan_move


def moved(source: str, target: str, told: Callable[[str, int, int], None] = lambda *_: None, **how: bool) -> MoveReport:
    settings = SETTINGS.changed(database_url=source)
    return move(settings, settings.changed(database_url=target), told=told, noticed=NOTICES.append, **how)


NOTICES: list[str] = []
WAYS_BETWEEN = [
    ("sqlite", "postgresql"),
    ("postgresql", "sqlite"),
    ("sqlite", "sqlite"),
    ("postgresql", "postgresql"),
    ("sqlite", "partitioned"),
    ("partitioned", "sqlite"),
]


@pytest.fixture(params=WAYS_BETWEEN[:2], ids="-to-".join)
def urls(request, tmp_path) -> tuple[str, str]:
    """The addresses of a source and of an empty target."""
    places = {"sqlite": f"sqlite:///{tmp_path}/{{}}.db"}
    for name, fixture in {"postgresql": "postgres_url", "partitioned": "partitioned_url"}.items():
        if name in request.param:
            places[name] = request.getfixturevalue(fixture)
    source, target = (places[kind].format(name) for kind, name in zip(request.param, ("a", "b"), strict=True))
    return source, request.getfixturevalue("empty_postgres") if source == target else target


@pytest.fixture
def files(tmp_path) -> tuple[str, str]:
    return f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"


@pytest.mark.parametrize("urls", WAYS_BETWEEN, ids="-to-".join, indirect=True)
async def test_everything_is_moved_and_answers_are_the_same(urls):
    source, target = urls
    await fill(source)
    before = await answers(source)
    report = await asyncio.to_thread(moved, source, target)
    assert report.sound, report
    assert not report.newer
    assert report.rounds == 1
    assert report.caught_up == 0
    empty = {name for name, (count, _) in report.rows.items() if not count}
    assert empty == {"archives", "memory_snapshots"}
    assert report.rows.keys() == {name for name, way in WAYS.items() if not way.left}
    assert unlike(before, await answers(target)) == []
    async with opened(target) as lore:
        status = await lore.index.status()
        assert (status.vectors, status.waiting) == ("behind", 2), "of all others the vectors were copied"
        await index(lore)
        assert (await lore.index.status()).vectors == "whole"
        for tenant in ("default", "acme"):
            assert (await lore.for_tenant(tenant).privacy.verify()).sound
        # The target goes on where the source stood: its keys follow those that were copied.
        await lore.messages.add([said("new", 1, "Ann", "A new room 新房间"), said("tea", 50, "Bo", "and on")])
        await lore.memories.add("user:new", "A new scope")
        await index(lore)
        assert (await lore.privacy.verify()).sound


async def change(lore) -> None:
    """Do to the store what must be so at the target."""
    await lore.messages.add([said("tea", 60, "Ann", "Said while it moved"), said("late", 1, "Ann", "A late room")])
    await lore.messages.edit("tea", "m1", text="The deploy works again 好了")
    await lore.messages.delete("tea", "m3")
    await lore.links.correct("tea", "m9", answers="m4", by="ann")
    page = await lore.memories.page("group:den")
    await lore.memories.update(page[0].memory_id, statement="A changed memory 茶", reason="moved")
    await lore.memories.delete(page[1].memory_id, "gone")
    await lore.rooms.set_kind("tea", "public")
    await lore.privacy.forget("dee")
    await index(lore)


@pytest.mark.parametrize("moment", ["copying", "comparing"])
async def test_what_changes_at_the_source_meanwhile_is_so_at_the_target(urls, moment):
    source, target = urls
    await fill(source)
    async with opened(source) as lore:
        loop, changed = asyncio.get_running_loop(), []

        def told(what: str, done: int, total: int) -> None:
            if what == moment and not changed:
                changed.append(asyncio.run_coroutine_threadsafe(change(lore), loop).result(60))

        report = await asyncio.to_thread(moved, source, target, told)
    assert changed
    assert report.sound, report
    assert report.caught_up > 0
    assert not report.newer
    assert unlike(await answers(source), await answers(target)) == []
    assert "Dee" not in everything_in(target)


def everything_in(url: str) -> str:
    """Return all rows, and of a file its bytes too: nothing of a forgotten person is in unused pages."""
    side = open_side(url)
    try:
        with side.snapshot():
            rows = [
                repr(page) for name, way in WAYS.items() if not way.left for page in side.pages(name, form=side.engine)
            ]
    finally:
        side.close()
    file = Path(url.removeprefix("sqlite:///"))
    return "".join(rows) + (file.read_bytes().decode("latin-1") if file.is_file() else "")


async def test_what_is_new_after_the_end_is_copied_by_the_same_command(files):
    source, target = files
    await fill(source)
    await asyncio.to_thread(moved, source, target)
    async with opened(source) as lore:
        await change(lore)
    report = await asyncio.to_thread(moved, source, target)
    assert report.sound
    assert 0 < report.caught_up < 200
    assert unlike(await answers(source), await answers(target)) == []


async def test_a_source_that_goes_on_changing_is_followed_a_few_times(files):
    source, target = files
    await fill(source)
    async with opened(source) as lore:
        loop, number = asyncio.get_running_loop(), 100

        def told(what: str, done: int, total: int) -> None:
            nonlocal number
            if what in ("comparing", "finishing") and done == total:
                number += 1
                adding = lore.messages.add(said("tea", number, "Ann", "and on and on"))
                asyncio.run_coroutine_threadsafe(adding, loop).result(60)

        report = await asyncio.to_thread(moved, source, target, told)
    assert report.newer
    assert report.sound
    assert report.rounds == 5


async def test_a_followed_source_is_waited_for_until_it_is_closed(urls, monkeypatch):
    source, target = urls
    monkeypatch.setattr("roomlore.wiring.moving._REST_SECONDS", 0.1)
    await fill(source)
    async with opened(source) as lore:
        moving = asyncio.create_task(asyncio.to_thread(moved, source, target, follow=True))
        await asyncio.sleep(2)
        await lore.messages.add(said("tea", 70, "Ann", "The last word"))
        assert not moving.done()
    report = await moving
    assert report.sound
    assert not report.newer
    async with opened(target) as lore:
        assert (await lore.messages.get("tea", "m70")).message.text == "The last word"


async def test_a_target_with_other_data_is_refused_and_stays_as_it_is(urls):
    source, target = urls
    await fill(source, more=1)
    async with opened(target) as lore:
        await lore.messages.add(said("mine", 1, "Ann", "Mine"))
    with pytest.raises(Conflict, match=r"data of its own already \(rooms"):
        await asyncio.to_thread(moved, source, target)
    settings = SETTINGS.changed(database_url=source)
    with pytest.raises(Conflict, match="data of its own"):
        await asyncio.to_thread(plan_move, settings, settings.changed(database_url=target))
    async with opened(target) as lore:
        assert [room.room_id for room in await lore.rooms.page()] == ["mine"]


async def test_a_target_that_was_used_since_is_refused(files):
    source, target = files
    await fill(source, more=1)
    await asyncio.to_thread(moved, source, target)
    async with opened(target) as lore:
        (last,) = await lore.messages.page("tea", limit=1)
        await lore.context.build("tea", last.id)
    await asyncio.to_thread(moved, source, target)  # who only checks it has not used it
    async with opened(target) as lore:
        await lore.messages.add(said("tea", 80, "Ann", "Said at the target"))
    with pytest.raises(Conflict, match="was used after"):
        await asyncio.to_thread(moved, source, target)
    async with opened(target) as lore:
        assert await lore.messages.get("tea", "m80")


def run_sql(url: str, sql: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw:
        raw.execute(sql)
        raw.commit()


async def filled_with_many_rows(url: str) -> str:
    """Fill a store with a table of 20,001 rows more. Return a change in place of one of them."""
    await fill(url, more=1)
    numbers = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20001)"
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw:
        columns = [name for _, name, *_ in raw.execute("PRAGMA table_info(import_positions)")]
    run_sql(url, f"INSERT INTO import_positions {numbers} SELECT {', '.join('n' for _ in columns)} FROM numbers")
    return f"UPDATE import_positions SET {columns[-1]} = 7654321 WHERE rowid = 20000"


async def test_a_change_in_place_of_a_large_table_at_the_target_is_seen(files):
    source, target = files
    change_in_place = await filled_with_many_rows(source)
    await asyncio.to_thread(moved, source, target)
    run_sql(target, change_in_place)
    with pytest.raises(Conflict, match="was used after"):
        await asyncio.to_thread(moved, source, target)
    assert "7654321" in everything_in(target)


async def test_what_others_write_before_they_close_a_followed_source_is_copied(files, monkeypatch):
    source, target = files
    monkeypatch.setattr("roomlore.wiring.moving._REST_SECONDS", 0)
    change_in_place, told = await filled_with_many_rows(source), []
    open_elsewhere = [3, 2, 0]

    def others(side: object) -> int:
        if len(open_elsewhere) == 1:
            run_sql(source, change_in_place)
        return open_elsewhere.pop(0) if open_elsewhere else 0

    monkeypatch.setattr("roomlore.storage.moving.SqliteSide.others", others)
    await asyncio.to_thread(moved, source, target, lambda what, done, _: told.append((what, done)), follow=True)
    assert "7654321" in everything_in(target)
    assert [done for what, done in told if what == "waiting"] == [3, 2]


async def test_a_target_of_another_source_is_refused(files, tmp_path):
    source, target = files
    await fill(source, more=1)
    await asyncio.to_thread(moved, source, target)
    other = f"sqlite:///{tmp_path}/other.db"
    await fill(other, more=1)
    with pytest.raises(Conflict, match=r"A move from sqlite:.*/a.db"):
        await asyncio.to_thread(moved, other, target)


async def test_while_a_store_moves_nobody_opens_the_target_and_no_other_move_begins(urls):
    source, target = urls
    await fill(source, more=1)
    refused: dict[str, RoomloreError] = {}

    def told(what: str, done: int, total: int) -> None:
        if what == "comparing" and not refused:
            for name, call in {
                "open": lambda: asyncio.run(connect(target)),
                "move": lambda: moved(source, target),
            }.items():
                try:
                    call()
                except RoomloreError as error:
                    refused[name] = error

    report = await asyncio.to_thread(moved, source, target, told)
    assert report.sound
    assert isinstance(refused["move"], StorageBusy)
    assert isinstance(refused["open"], StorageUnavailable)
    if target.startswith("postgres"):
        assert "roomlore move" in str(refused["open"])


async def test_a_broken_off_target_says_what_to_do(files):
    source, target = files
    await fill(source, more=1)

    def told(what: str, done: int, total: int) -> None:
        if what == "comparing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await asyncio.to_thread(moved, source, target, told)
    with pytest.raises(StorageUnavailable, match="run that command again"):
        await connect(target)
    assert (await asyncio.to_thread(moved, source, target)).sound


async def test_the_plan_writes_nothing(urls):
    source, target = urls
    await fill(source, more=1)
    settings = SETTINGS.changed(database_url=source)
    plan = await asyncio.to_thread(plan_move, settings, settings.changed(database_url=target))
    assert plan.rows["messages"] > 10
    assert plan.bytes > 100_000
    assert plan.left.keys() >= {"leases", "running jobs", "files of archives", "vectors kept elsewhere"}
    assert not os.path.exists(target.removeprefix("sqlite:///"))  # noqa: ASYNC240, PTH110


BUILT = Path(__file__).parent.parent / "migrations"


def test_the_plan_of_a_store_of_an_earlier_version_leaves_it_as_it_is(tmp_path):
    file = tmp_path / "built.db"
    file.write_bytes(gzip.decompress((BUILT / "built_526591a.db.gz").read_bytes()))
    before, settings = file.read_bytes(), SETTINGS.changed(database_url=f"sqlite:///{file}")
    plan = plan_move(settings, settings.changed(database_url=f"sqlite:///{tmp_path}/new.db"))
    assert file.read_bytes() == before
    assert plan.notices == (OLDER,)
    assert plan.rows["messages"] > 10
    assert plan.rows.keys() == {name for name, way in WAYS.items() if not way.left}


@pytest.mark.parametrize(("stamp", "why"), [("9999", "newer roomlore"), ("moving", "run that command again")])
async def test_a_store_that_cannot_be_moved_has_no_plan(files, stamp, why):
    source, target = files
    await fill(source, more=1)
    run_sql(source, f"UPDATE alembic_version SET version_num = '{stamp}'")
    settings = SETTINGS.changed(database_url=source)
    with pytest.raises(StorageUnavailable, match=why):
        plan_move(settings, settings.changed(database_url=target))


@pytest.mark.parametrize(
    ("source", "target", "kind", "why"),
    [
        ("sqlite://", "sqlite:///{}/b.db", InvalidInput, "in memory"),
        ("sqlite:///{}/a.db", "sqlite://", InvalidInput, "in memory"),
        ("sqlite:///{}/a.db", "sqlite:///{}/../{}/a.db", NotFound, "a.db"),
        ("sqlite:///{}/none.db", "sqlite:///{}/b.db", NotFound, "none.db"),
        ("mysql://x/y", "sqlite:///{}/b.db", InvalidInput, "mysql"),
    ],
)
def test_addresses_that_cannot_be_moved(tmp_path, source, target, kind, why):
    with pytest.raises(kind, match=why):
        moved(source.format(tmp_path), target.format(tmp_path, tmp_path.name))
    assert list(tmp_path.iterdir()) == []


async def test_a_store_is_not_moved_to_itself(files):
    source, _ = files
    await fill(source, more=1)
    with pytest.raises(InvalidInput, match="the same database"):
        await asyncio.to_thread(moved, source, source.removeprefix("sqlite:///"))


async def test_servers_on_the_target_are_named(files, postgres_url):
    source, _ = files
    await fill(source, more=1)
    with psycopg.connect(postgres_url):
        report = await asyncio.to_thread(moved, source, postgres_url)
    assert report.notices[0].startswith("1 other")
    assert NOTICES[-1:] == list(report.notices)


def test_connections_of_other_roles_are_counted_without_pg_monitor(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("CREATE ROLE mover_without_monitor LOGIN")
        try:
            url = make_url(postgres_url).set(username="mover_without_monitor").render_as_string(hide_password=False)
            with closing(open_side(url)) as side:
                assert side.others() == 1
        finally:
            owner.execute("DROP ROLE mover_without_monitor")


async def test_a_pooler_is_refused(files, pooled_url):
    source, _ = files
    await fill(source, more=1)
    with pytest.raises(InvalidInput, match="pooler"):
        await asyncio.to_thread(moved, source, pooled_url)


async def test_rows_that_refer_to_missing_ones_are_an_error(files):
    source, target = files
    await fill(source, more=1)
    with closing(sqlite3.connect(source.removeprefix("sqlite:///"))) as raw:
        raw.execute("DELETE FROM messages WHERE message_id = 'm4'")
        raw.commit()
    with pytest.raises(StorageUnavailable, match="roomlore verify"):
        await asyncio.to_thread(moved, source, target)
