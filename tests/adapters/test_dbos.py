"""Durable work on DBOS beyond the contract: one singleton, several stores, and databases that go away."""

import asyncio
import logging
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from dbos import DBOS, DBOSClient
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

import open_connections
from roomlore.adapters.dbos import open_dbos
from roomlore.adapters.dbos.locations import PostgresLock, location_of, retire
from roomlore.core.errors import Conflict, InvalidInput, StorageUnavailable
from roomlore.ports import coordination
from roomlore.ports.durable import DurableWork, Json, Steps
from roomlore_testkit.contracts.durable import Diary, ended, hand_in, nothing, opened, until

QUICK = {"pauses_seconds": (0.02, 0.05), "poll_seconds": 0.05, "sweep_seconds": 0.2}


@pytest.fixture
def url(durable_sqlite_url) -> str:
    return durable_sqlite_url


@pytest.fixture(params=["sqlite", "postgres"])
def any_url(request, tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'a.db'}" if request.param == "sqlite" else request.getfixturevalue("empty_postgres")


@pytest.fixture(params=["durable_sqlite_url", "postgres_url"])
def any_prepared_url(request) -> str:
    return request.getfixturevalue(request.param)


def run_sql(url: str, statement: str, **values: object) -> list:
    engine = create_engine(location_of(url).url)
    with engine.begin() as connection:
        result = connection.execute(text(statement), values)
        rows = [tuple(row) for row in result] if result.returns_rows else []
    engine.dispose()
    return rows


def make(url: str) -> DurableWork:
    return open_dbos(url, **QUICK)


@pytest.mark.parametrize("path", ["x.db", "sqlite:///x.db", "sqlite+aiosqlite:///x.db"])
def test_it_lies_beside_the_file(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert location_of(path).url.database == str(tmp_path / "x.dbos.db")


def test_files_of_other_names_do_not_meet():
    assert location_of("sqlite:////a/x.sqlite").url.database == "/a/x.dbos.sqlite"
    assert location_of("sqlite:////a/x").url.database == "/a/x.dbos.db"


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "mysql://host/name", "nonsense", "sqlite:///file:x"]
)
def test_other_databases_are_refused(url):
    with pytest.raises(InvalidInput):
        open_dbos(url)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr("roomlore.adapters.dbos.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'roomlore\[durable\]'"):
        open_dbos("sqlite:///x.db")


async def test_dbos_is_loaded_when_it_is_opened_and_not_before(tmp_path):
    code = "import sys, roomlore.adapters.dbos; assert not {'dbos', 'sqlalchemy'} & {*sys.modules}"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await process.wait() == 0


@pytest.mark.parametrize("url", ["sqlite:////no/such/folder/x.db", "postgresql://nobody@127.0.0.1:1/none"])
async def test_a_database_that_does_not_answer(url):
    with pytest.raises(StorageUnavailable):
        await make(url).open(working=True)
    with pytest.raises(StorageUnavailable):
        await make(url).open(working=False)
    assert threading.active_count() < 40


@pytest.mark.parametrize("trouble", ["", "-lock"])
@pytest.mark.parametrize("kind", ["folder", "garbage"])
async def test_files_that_are_none_are_told_of_in_our_words(sqlite_url, tmp_path, kind, trouble):
    url = sqlite_url
    path = tmp_path / f"roomlore.dbos.db{trouble}"
    path.mkdir() if kind == "folder" else path.write_bytes(b"no database" * 1000)
    with pytest.raises(StorageUnavailable, match=r"ends in \.dbos\.db"):
        await make(url).open(working=True)
    path.rmdir() if kind == "folder" else path.unlink()
    async with opened(make(url), does=nothing) as work:
        await hand_in(work)
        assert (await ended(work)).status == "done"


async def test_a_second_database_is_refused_and_looked_at(tmp_path, url):
    other = f"sqlite:///{tmp_path / 'other.db'}"
    diary = Diary()
    async with opened(make(url), does=nothing) as first:
        with pytest.raises(Conflict, match="another database"):
            await make(other).open(working=True)
        async with opened(make(other), working=False) as second:
            assert await hand_in(second)
        await hand_in(first)
        assert (await ended(first)).status == "done"
    async with opened(make(other), does=diary.work("a")) as second:
        assert (await ended(second)).status == "done"


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.05, 0.1])
async def test_an_opening_that_is_broken_off_leaves_nothing_open(tmp_path, url, seconds):
    """Told to stop again and again, as background work is; another database is worked for right after."""
    broken_off = make(url)
    opening = asyncio.ensure_future(broken_off.open(working=True))
    await asyncio.sleep(seconds)
    while not opening.done():
        opening.cancel()
        await asyncio.sleep(0.02)
    if not opening.cancelled():
        await broken_off.close()  # this machine was quicker
    other = f"sqlite:///{tmp_path / 'other.db'}"
    async with opened(make(other), does=nothing) as work:
        await hand_in(work)
        assert (await ended(work)).status == "done"


async def test_two_stores_on_one_database_share(url):
    """Whichever of them closes first, the other goes on, with the work the closed one was at too."""
    diary = Diary()
    held = diary.hold("a")
    second = make(url)
    async with opened(make(url), does=diary.work("a", "b")) as first:
        second.define("does", diary.work("a", "b"))
        await second.open(working=True)
        await hand_in(first)
        await until(lambda: diary.done["a"] == 1)
        asyncio.get_running_loop().call_later(0.1, held.set)
    assert (await ended(second)).status == "done"
    assert diary.done == {"a": 1, "b": 1}
    await second.close()


async def test_a_program_with_a_dbos_of_its_own_keeps_it(tmp_path, url):
    theirs = DBOS(config={"name": "theirs", "system_database_url": f"sqlite:///{tmp_path / 'theirs.db'}"})
    try:
        with pytest.raises(Conflict, match="runs DBOS for itself"):
            await make(url).open(working=True)
        assert DBOS(config={"name": "again"}) is theirs
        async with opened(make(url), working=False) as work:
            assert await hand_in(work)
    finally:
        DBOS.destroy()


async def test_nothing_of_the_process_is_changed(url, capfd, caplog):
    loop = asyncio.get_running_loop()
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)], logging.root.handlers[:]
    diary = Diary()
    diary.fails = {"a": 99}
    await asyncio.to_thread(int)
    executor = loop._default_executor
    async with opened(make(url), does=diary.work("a")) as work:
        await hand_in(work)
        assert (await ended(work)).status == "failed"
    assert loop._default_executor is executor
    assert (
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        logging.root.handlers[:],
    ) == before
    assert capfd.readouterr() == ("", "")
    assert "somebody" not in caplog.text


async def test_what_the_engine_says_again_and_again_is_logged_once(url, caplog, monkeypatch):
    one, other = f"no connection {uuid4()}", f"no connection {uuid4()}"
    async with opened(make(url)):
        for said in (one, one, other, one):
            logging.getLogger("dbos").warning(said)
        told = [record.said for record in caplog.records if record.name == "roomlore.adapters.dbos"]
        assert told.count(one) == told.count(other) == 1
        monkeypatch.setattr(coordination, "_AGAIN_SECONDS", 0)
        logging.getLogger("dbos").warning(one)
    told = [record.said for record in caplog.records if record.name == "roomlore.adapters.dbos"]
    assert told.count(one) == 2, "a minute later it is said again"


async def test_what_is_kept_is_json_without_what_was_said(any_url):
    diary = Diary()
    diary.fails = {"b": 99}
    async with opened(make(any_url), does=diary.work("a", "b")) as work:
        await hand_in(work)
        await ended(work)
        schema = "" if any_url.startswith("sqlite") else "dbos."
        steps = run_sql(any_url, f"SELECT output, error FROM {schema}operation_outputs ORDER BY function_id")
        errors = run_sql(any_url, f"SELECT error FROM {schema}workflow_output")
    assert steps[0] == ('{"name": "a", "gave": {"by": "a", "time": 1}}', None)
    assert steps[1:] == [('{"name": "b", "failed": true}', None)] * 3
    assert errors == [('"Failed"',)]


async def test_work_of_a_name_nobody_knows_waits_for_somebody_who_does(any_url):
    """An older release may meet the work of a newer one."""
    diary = Diary()
    async with opened(make(any_url), other=nothing) as older:
        await hand_in(older, partition="room")
        await asyncio.sleep(0.7)
        await hand_in(older, "known", name="other")
        assert (await ended(older, "known")).status == "done"
    async with opened(make(any_url), does=diary.work("a")) as newer:
        state = await ended(newer)
    assert state.status == "done"


async def test_work_that_kills_its_process_each_time_is_given_up(any_url):
    table = "workflow_status" if any_url.startswith("sqlite") else "dbos.workflow_status"
    diary = Diary()
    async with opened(make(any_url), working=False) as work:
        await hand_in(work)
        run_sql(any_url, f"UPDATE {table} SET recovery_attempts = 51")
    async with opened(make(any_url), does=diary.work("a")) as work:
        state = await ended(work)
        assert (state.status, state.attempts) == ("failed", 52)
        assert state.error.startswith("Its process died each time")
        assert not diary.done
        assert [state.work_id for state in await work.page(status="failed")] == ["w"]
        assert await work.retry("w")
        assert (await ended(work)).status == "done"


async def test_what_was_cancelled_with_dbos_own_tools_can_be_retried(any_prepared_url):
    diary = Diary()
    held = diary.hold("b")
    async with opened(make(any_prepared_url), does=diary.work("a", "b", "c")) as work:
        await hand_in(work)
        await until(lambda: diary.done["b"] == 1)
        tool = DBOSClient(system_database_url=location_of(any_prepared_url).url.render_as_string(hide_password=False))
        await tool.cancel_workflow_async("w")
        tool.destroy()
        assert (await ended(work)).status == "cancelled"
        held.set()
        await asyncio.sleep(0.5)
        assert diary.done["c"] == 0
        assert await work.retry("w")
        state = await ended(work)
    assert state.status == "done"
    assert diary.done == {"a": 1, "b": 2, "c": 1}


async def test_work_that_is_found_unfinished_beside_its_own_name_is_begun_again(any_prepared_url):
    """DBOS forgets work where the database fails it between taking and beginning it."""
    table = "workflow_status" if any_prepared_url.startswith("sqlite") else "dbos.workflow_status"
    diary = Diary()
    async with opened(make(any_prepared_url), does=diary.work("a"), other=nothing) as work:
        await hand_in(work, "known", name="other")
        await ended(work, "known")
        await hand_in(work, "held", partition="room")
        await ended(work, "held")
        run_sql(
            any_prepared_url, f"UPDATE {table} SET status = 'PENDING', owner_xid = 'gone' WHERE workflow_uuid = 'held'"
        )
        assert (await ended(work, "held")).status == "done"
    assert diary.done["a"] == 1


def sessions(url: str, chosen: str = "pid") -> int:
    """Return the number of others beside this one."""
    with psycopg.connect(url, autocommit=True) as connection:
        return len(
            connection.execute(
                f"SELECT {chosen} FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).fetchall()
        )


def break_sessions(url: str) -> int:
    return sessions(url, "pg_terminate_backend(pid)")


async def test_lost_connections_are_made_again(postgres_url):
    diary = Diary()

    async def does(steps: Steps, arguments: Json) -> None:
        for number in range(3):
            await asyncio.sleep(0.1)
            await steps.once(f"s{number}", diary.step(f"{arguments['n']} {number}"))

    async with opened(make(postgres_url), does=does) as work:
        for number in range(12):
            await hand_in(work, f"w{number}", n=number)
        for _ in range(3):
            await asyncio.sleep(0.3)
            assert break_sessions(postgres_url)
        for number in range(12):
            assert (await ended(work, f"w{number}")).status == "done"
    assert sorted(diary.done) == sorted(f"{piece} {step}" for piece in range(12) for step in range(3))


async def test_work_broken_off_leaves_no_connection_open_behind_the_close(postgres_url):
    """A thread cannot be broken off: what it has out, or takes afterwards, is closed when it comes back."""
    reading, go_on = threading.Event(), threading.Event()

    def tells(_: str) -> bool:
        reading.set()
        return go_on.wait(60)

    with open_connections.all_closed():
        work = make(postgres_url)
        await work.open(working=False)
        await hand_in(work)
        dropping = asyncio.ensure_future(work.drop(prefix="", tells=tells))
        await asyncio.to_thread(reading.wait, 60)
        dropping.cancel()
        await work.close()
        go_on.set()
        await until(lambda: sessions(postgres_url) == 0)


async def test_a_connection_out_while_the_desk_is_closed_is_closed_when_it_comes_back(postgres_url):
    engine = location_of(postgres_url).engine(connections=2)
    with open_connections.all_closed():
        out = engine.connect()
        out.execute(text("SELECT 1"))
        retire(engine)
        out.execute(text("SELECT 1"))
        out.close()


def test_a_process_lock_is_taken_again_after_a_broken_connection(postgres_url):
    place = location_of(postgres_url)
    engine, other = place.engine(connections=2), place.engine(connections=2)
    lock, watcher = place.lock(engine), place.lock(other)
    lock.take()
    break_sessions(postgres_url)
    with pytest.raises(OperationalError), lock.if_dead("another"):
        pass
    watcher.take()
    with watcher.if_dead(lock.name) as dead:
        assert dead
    lock.keep()
    with watcher.if_dead(lock.name) as dead:
        assert not dead
    for one, its_engine in ((lock, engine), (watcher, other)):
        one.leave()
        its_engine.dispose()


def test_a_process_lock_that_cannot_be_had_leaves_no_connection_open(postgres_url):
    place = location_of(postgres_url)
    engine = place.engine(connections=1)
    held = PostgresLock(engine, "one")
    held.take()
    impatient = create_engine(place.url, connect_args={"options": "-c lock_timeout=50"})
    asked = PostgresLock(impatient, "one")
    with pytest.raises(OperationalError):
        asked.take()
    assert impatient.pool.checkedout() == 0
    held.leave()
    retire(impatient)
    retire(engine)


async def test_an_end_of_dbos_that_fails_leaves_no_connection_open(postgres_url, monkeypatch):
    work, end = make(postgres_url), DBOS.destroy
    await work.open(working=True)

    def fail(**given) -> None:
        end(**given)
        raise RuntimeError("half done")

    monkeypatch.setattr(DBOS, "destroy", fail)
    with open_connections.all_closed(), pytest.raises(RuntimeError, match="half done"):
        await work.close()
    await until(lambda: not sessions(postgres_url))


async def test_it_closes_while_the_database_is_down_and_goes_on_later(postgres_server, postgres_url):
    diary = Diary()
    held = diary.hold("a")
    work = open_dbos(postgres_url, **QUICK, grace_seconds=0.3)
    work.define("does", diary.work("a", "b"))
    await work.open(working=True)
    await hand_in(work)
    await until(lambda: diary.done["a"] == 1)
    name = postgres_url.rsplit("/", 1)[1].partition("?")[0]
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        held.set()
        with pytest.raises(StorageUnavailable):
            await work.find("w")
        async with asyncio.timeout(120):
            await work.close()
        admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    async with opened(work):
        assert (await ended(work)).status == "done"
    assert diary.done["b"] == 1


async def test_closed_it_has_no_connection(postgres_url):
    async with opened(make(postgres_url), does=nothing) as work:
        await hand_in(work)
        await ended(work)
        assert 0 < sessions(postgres_url) < 16
    await until(lambda: not sessions(postgres_url))


FORGETFUL = """
import asyncio, sys
from roomlore.adapters.dbos import open_dbos

async def main():
    work = open_dbos(sys.argv[1], poll_seconds=0.05)
    begun = asyncio.Event()
    async def step():
        begun.set()
        await asyncio.sleep(60)
        return {}
    async def does(steps, arguments):
        await steps.once("a", step)
    work.define("does", does)
    await work.open(working=True)
    await work.start("does", work_id="w", partition="p", arguments={})
    await begun.wait()

asyncio.run(main())
"""


async def test_a_program_that_forgets_to_close_ends_all_the_same(url):
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", FORGETFUL, url)
    async with asyncio.timeout(120):
        assert await process.wait() == 0
    diary = Diary()
    async with opened(make(url), does=diary.work("a")) as work:
        assert (await ended(work)).status == "done"
    assert diary.done["a"] == 1


@pytest.mark.parametrize("same", [True, False])
def test_a_loop_that_ended_without_closing_stands_in_nobodys_way(tmp_path, url, same):
    async def forgets() -> None:
        work = make(url)
        work.define("does", nothing)
        await work.open(working=True)

    async def works() -> None:
        async with opened(make(url if same else f"sqlite:///{tmp_path / 'other.db'}"), does=nothing) as work:
            await hand_in(work)
            assert (await ended(work)).status == "done"

    asyncio.run(forgets())
    asyncio.run(works())


async def test_no_more_at_once_than_was_said(url):
    running: Counter[str] = Counter()

    async def does(steps: Steps, arguments: Json) -> None:
        running["now"] += 1
        running["most"] = max(running["most"], running["now"])
        await asyncio.sleep(0.2)
        running["now"] -= 1

    async with opened(open_dbos(url, **QUICK, at_once=2), does=does) as work:
        for number in range(6):
            await hand_in(work, f"w{number}")
        for number in range(6):
            await ended(work, f"w{number}")
    assert running["most"] == 2


def test_the_lock_lies_beside_the_file_too(tmp_path):
    async def one() -> None:
        async with opened(make(f"sqlite:///{tmp_path / 'x.db'}")):
            pass

    asyncio.run(one())
    assert {path.name for path in Path(tmp_path).iterdir()} == {"x.dbos.db", "x.dbos.db-lock"}
