"""One contract, every way of keeping work."""

import threading
from collections.abc import Callable

import pytest

from roomlore.adapters.dbos import open_dbos
from roomlore.adapters.inprocess import InProcessWork, SystemClock
from roomlore.ports.durable import DurableWork
from roomlore_testkit.contracts import DurableWorkContract, ForgottenWorkContract

QUICK = (0.02, 0.05)


class TestInProcess(DurableWorkContract, ForgottenWorkContract):
    @pytest.fixture
    def make(self) -> Callable[[], DurableWork]:
        return lambda: InProcessWork(clock=SystemClock(), pauses_seconds=QUICK)


class _OnDbos(DurableWorkContract, ForgottenWorkContract):
    @pytest.fixture
    def make(self, url: str) -> Callable[[], DurableWork]:
        return lambda: open_dbos(url, pauses_seconds=QUICK, poll_seconds=0.05, sweep_seconds=0.5)

    @pytest.fixture(autouse=True)
    def _nothing_stays(self):
        before = set(threading.enumerate())
        yield
        stayed = [thread.name for thread in set(threading.enumerate()) - before if "asyncio" not in thread.name]
        assert stayed == []


class TestDbosOnSqlite(_OnDbos):
    @pytest.fixture
    def url(self, durable_sqlite_url: str) -> str:
        return durable_sqlite_url


class TestDbosOnPostgres(_OnDbos):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
