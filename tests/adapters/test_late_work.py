"""Durable work that is opened by being used: late, once, where it can be, and not again once it is closed."""

import asyncio
import logging
import threading

import pytest

from roomlore.adapters.dbos import open_dbos
from roomlore.adapters.inprocess import InProcessWork, LateWork, SystemClock
from roomlore.core.errors import Conflict, StorageUnavailable


class Notebook:
    """Makes works on one file, or in this process, and notes what was made and done."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.made: list[str] = []
        self.done: list[str] = []

    def dbos(self):
        self.made.append("dbos")
        return open_dbos(self.url, poll_seconds=0.05, sweep_seconds=0.5)

    def here(self):
        self.made.append("here")
        return InProcessWork(clock=SystemClock())

    def late(self, *names: str, working: bool = True) -> LateWork:
        late = LateWork([getattr(self, name) for name in names or ("dbos", "here")], working=working)
        late.define("does", self._do)
        return late

    async def _do(self, steps, arguments):
        self.done.append(arguments["piece"])


@pytest.fixture
def notebook(tmp_path) -> Notebook:
    return Notebook(f"sqlite:///{tmp_path / 'one.db'}")


@pytest.fixture
def another(tmp_path) -> Notebook:
    return Notebook(f"sqlite:///{tmp_path / 'two.db'}")


async def hand_in(work, piece: str) -> bool:
    return await work.start("does", work_id=piece, partition=piece, arguments={"piece": piece})


async def ended(work, piece: str) -> str:
    state = await work.wait(piece, seconds=15)
    assert state is not None
    return state.status


async def test_nothing_is_opened_until_it_is_used(notebook, tmp_path):
    late = notebook.late()
    assert not late.works()
    await late.close()
    assert (notebook.made, list(tmp_path.iterdir())) == ([], [])


@pytest.mark.parametrize("kind", ["dbos", "here"])
async def test_used_it_works_where_it_should(notebook, kind):
    late = notebook.late(kind)
    assert await hand_in(late, "a")
    assert await ended(late, "a") == "done"
    assert late.works()
    assert (notebook.made, notebook.done) == ([kind], ["a"])
    await late.close()
    assert not late.works()


@pytest.mark.parametrize("kind", ["dbos", "here"])
async def test_what_is_defined_only_before_it_opens_is_done_too(notebook, kind):
    late = LateWork([getattr(notebook, kind)], working=True)
    late.before_opening(lambda: late.define("does", notebook._do))
    assert await hand_in(late, "a")
    assert (await ended(late, "a"), notebook.done) == ("done", ["a"])
    await late.close()


@pytest.mark.parametrize("kind", ["dbos", "here"])
async def test_looking_only_and_then_working(notebook, kind):
    """Work that is handed in meanwhile is kept, and done."""
    late = notebook.late(kind, working=False)
    assert await late.page() == []
    assert await hand_in(late, "a")
    assert (await late.wait("a", seconds=0.3)).status == "waiting"
    assert not late.works()
    await late.open(working=True)
    assert late.works()
    assert await ended(late, "a") == "done"
    await late.open(working=False)
    assert late.works(), "who works goes on with it"
    assert notebook.made == [kind]
    await late.close()


async def test_used_by_many_at_once_it_is_opened_once(notebook):
    late = notebook.late()
    assert all(await asyncio.gather(*(hand_in(late, str(n)) for n in range(8))))
    assert notebook.made == ["dbos"]
    await late.close()


async def test_for_a_second_database_it_falls_back_to_this_process_and_says_so(notebook, another, caplog):
    caplog.set_level(logging.WARNING, logger="roomlore")
    first, second = notebook.late(), another.late()
    assert await hand_in(first, "a")
    assert await hand_in(second, "b")
    assert (await ended(first, "a"), await ended(second, "b")) == ("done", "done")
    assert (notebook.made, another.made) == (["dbos"], ["dbos", "here"])
    assert (notebook.done, another.done) == (["a"], ["b"])
    (warning,) = [record for record in caplog.records if record.name.startswith("roomlore.adapters.inprocess")]
    assert warning.getMessage() == "work is kept in this process alone"
    assert "another database already" in warning.why
    await second.close()
    await first.close()


async def test_looking_at_a_second_database_needs_no_falling_back(notebook, another, caplog):
    caplog.set_level(logging.WARNING, logger="roomlore")
    first, second = notebook.late(), another.late(working=False)
    await hand_in(first, "a")
    assert await second.page() == []
    assert another.made == ["dbos"]
    assert not caplog.records
    await second.close()
    await first.close()


async def test_without_a_second_choice_the_conflict_is_told(notebook, another):
    first, second = notebook.late(), another.late("dbos")
    await hand_in(first, "a")
    with pytest.raises(Conflict, match="another database already"):
        await hand_in(second, "b")
    await first.close()
    assert await hand_in(second, "b"), "the first one is out of the way"
    await second.close()


@pytest.mark.parametrize("kind", ["dbos", "here"])
async def test_closed_it_is_opened_by_nothing_but_open(notebook, kind):
    late = notebook.late(kind)
    await hand_in(late, "a")
    assert await ended(late, "a") == "done"
    await late.close()
    await late.close()
    for call in (hand_in(late, "b"), late.find("a"), late.page(), late.retry("a"), late.wait("a", seconds=0)):
        with pytest.raises(StorageUnavailable, match="closed"):
            await call
    await late.open(working=True)
    assert (await late.find("a")).status == "done"
    await late.close()


async def test_closed_while_it_is_being_opened(notebook):
    late = notebook.late()
    opening = asyncio.create_task(hand_in(late, "a"))
    await asyncio.sleep(0)
    await late.close()
    (outcome,) = await asyncio.gather(opening, return_exceptions=True)
    assert outcome is True or isinstance(outcome, StorageUnavailable)
    assert not late.works()
    assert [thread.name for thread in threading.enumerate() if thread.name == "roomlore-durable"] == []
