"""Imports by several processes: what they store is what one stores, and no kill loses or doubles anything."""

import asyncio
import gc
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import roomlore
from roomlore import InvalidInput, Unavailable
from roomlore.wiring.import_processes import _Process

SAID = ["the deploy is stuck again", "which deploy?", "谁在跑迁移？", "me, wait a minute", "好的", "thanks", "lunch?"]
SMALL_BATCHES = roomlore.Settings(max_batch_messages=40)
IMPORTER = """
import asyncio, sys
import roomlore

async def main(url, path):
    async with roomlore.open(url, settings=roomlore.Settings(max_batch_messages=40)) as lore:
        await lore.imports.run(path, processes=2, progress=lambda *told: print(told[2], flush=True))

asyncio.run(main(*sys.argv[1:]))
"""


def line(room: str, number: int) -> str:
    record = {
        "id": f"{number}",
        "room_id": room,
        "sender_id": f"person-{number % 5}",
        "text": f"{SAID[number % len(SAID)]} {number}",
        "sent_at": f"2026-01-01T{8 + number // 60:02}:{number % 60:02}:00Z",
        "reply_to": f"{number - 3}" if number % 6 == 5 else None,
    }
    return json.dumps(record)


def export(path: Path, rooms: Sequence[str], messages: int, first: int = 0) -> Path:
    """Write an export in which the rooms talk at the same time."""
    lines = [line(room, number) for number in range(first, first + messages) for room in rooms]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


async def entries(lore: roomlore.Lore) -> list[roomlore.Entry]:
    return [await lore.messages.get(one.room_id, one.id) async for one in lore.messages.export()]


async def stored_by_one(paths: Sequence[Path]) -> list[roomlore.Entry]:
    async with roomlore.open("sqlite://", settings=SMALL_BATCHES) as lore:
        await lore.imports.run(paths)
        return await entries(lore)


def helpers() -> list[int]:
    """Return the processes of imports that this process started."""
    return [number for number, parent in _running() if parent == os.getpid()]


def _running() -> list[tuple[int, int]]:
    """Return the number of each process of an import, and that of the process that started it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            called, about = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
        except OSError:
            continue
        if b"import_processes" in called:
            found.append((int(folder.name), int(about.rpartition(")")[2].split()[1])))
    return found


def wait_for_end(processes: Sequence[int]) -> None:
    deadline = time.monotonic() + 600
    while set(processes) & {number for number, _ in _running()}:
        assert time.monotonic() < deadline, "a process outlives the import"
        time.sleep(0.05)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'imported.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[roomlore.Lore]:
    async with asyncio.timeout(600), roomlore.open(url, settings=SMALL_BATCHES) as lore:
        yield lore


async def test_several_processes_store_what_one_stores(url, tmp_path):
    rooms = [f"room-{number}" for number in range(5)]
    first = export(tmp_path / "a.jsonl", rooms, 60)
    later = export(tmp_path / "b.jsonl", rooms[1:], 40, first=50)
    told = []
    async with opened(url) as lore:
        report = await lore.imports.run(
            [first, later], processes=2, progress=lambda done, total, read: told.append((done <= total, read))
        )
        assert await entries(lore) == await stored_by_one([first, later])
    assert (report.added, report.duplicates, report.conflicts) == (5 * 60 + 4 * 30, 4 * 10, ())
    assert told[-1] == (True, 160)
    assert [read for _, read in told if read == 300]
    assert helpers() == []


async def test_what_is_recalled_goes_before_what_follows_is_linked(tmp_path):
    def event(number: int, **fields: object) -> str:
        known = {"post_type": "message", "message_type": "group", "group_id": 7, "self_id": 1}
        known["time"] = 1767250000 + number
        spoken = {"user_id": 10 + number % 3, "message_id": number, "message": f"{SAID[number % len(SAID)]} {number}"}
        return json.dumps(known | spoken | fields)

    recall = {"post_type": "notice", "notice_type": "group_recall", "operator_id": 10, "message_id": 30}
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join([*map(event, range(35)), event(35, **recall), *map(event, range(36, 160))]) + "\n")
    async with opened(f"sqlite:///{tmp_path / 'imported.db'}") as lore:
        await lore.imports.run(path, format="onebot", processes=2)
        stored = await entries(lore)
    assert stored == await stored_by_one([path])
    assert "30" not in {entry.message.id for entry in stored}


async def test_an_edit_is_there_before_what_follows_is_linked(url, tmp_path):
    rooms = ["x", "y"]
    first = export(tmp_path / "a.jsonl", rooms, 60)
    told = [json.loads(one) for room in rooms for number in range(160) for one in [line(room, number)]]
    for one in told:
        if int(one["id"]) < 60 and int(one["id"]) % 7 == 0:
            one |= {"text": f"谁重启了数据库 {one['id']}?", "edited_at": "2026-01-02T08:00:00Z"}
    newer = tmp_path / "b.jsonl"
    newer.write_text("\n".join(map(json.dumps, told)) + "\n", encoding="utf-8")
    async with opened(url) as lore:
        await lore.imports.run(first)
        report = await lore.imports.run(newer, processes=2)
        assert (report.edited, report.added, report.conflict_count) == (18, 200, 0)
        assert await entries(lore) == await stored_by_one([first, newer])


async def test_a_process_that_is_killed_stops_the_import_and_the_next_one_completes_it(sqlite_url, tmp_path):
    path = export(tmp_path / "a.jsonl", ["x", "y", "z"], 120)

    def kill_one(done: int, total: int, read: int) -> None:
        for number in helpers()[:1]:
            os.kill(number, signal.SIGKILL)

    async with opened(sqlite_url) as lore:
        with pytest.raises(Unavailable, match="Import again"):
            await lore.imports.run(path, processes=2, progress=kill_one)
        assert helpers() == []
        report = await lore.imports.run(path, processes=2)
        assert (report.resumed, report.conflicts) == (True, ())
        assert await entries(lore) == await stored_by_one([path])


async def test_an_import_that_is_killed_leaves_no_process_and_goes_on(sqlite_url, tmp_path):
    path = export(tmp_path / "a.jsonl", ["x", "y", "z"], 150)
    importer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", IMPORTER, sqlite_url, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert importer.stdout is not None
    async with asyncio.timeout(600):
        assert int(await importer.stdout.readline()) == 40
        its = [number for number, parent in _running() if parent == importer.pid]
        importer.kill()
        await importer.wait()
        await asyncio.to_thread(wait_for_end, its)
    assert len(its) == 2
    async with opened(sqlite_url) as lore:
        report = await lore.imports.run(path, processes=2)
        assert (report.resumed, report.conflicts) == (True, ())
        assert report.added < 450
        assert await entries(lore) == await stored_by_one([path])


async def test_an_import_that_is_cancelled_ends_its_processes(tmp_path):
    path = export(tmp_path / "a.jsonl", ["x", "y"], 200)
    begun = asyncio.Event()
    async with opened(f"sqlite:///{tmp_path / 'imported.db'}") as lore:
        importing = asyncio.create_task(lore.imports.run(path, processes=2, progress=lambda *_: begun.set()))
        await begun.wait()
        assert len(helpers()) == 2
        importing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await importing
        assert helpers() == []


async def test_a_batch_that_is_given_up_while_its_process_dies_is_no_error_that_nobody_saw():
    logged: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: logged.append(told))
    arguments = (sys.executable, "-c", "import time; time.sleep(600)")
    pipe = asyncio.subprocess.PIPE
    process = _Process(await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe))
    large = roomlore.Message(id="a", room_id="r", sender_id="ann", text="more than a pipe holds " * 100_000)
    adding = asyncio.create_task(process.add([large]))
    while not process.waiting:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)
    adding.cancel()
    await asyncio.gather(adding, return_exceptions=True)
    await process.kill()
    del adding, process
    gc.collect()
    assert logged == []


async def test_a_database_in_memory_has_one_process(tmp_path):
    path = export(tmp_path / "a.jsonl", ["x", "y"], 50)
    async with opened("sqlite://") as lore:
        assert (await lore.imports.run(path, processes=2)).added == 100


@pytest.mark.parametrize("processes", [0, -1, 65, True, "2"])
async def test_a_number_of_processes_that_makes_no_sense_is_refused(tmp_path, processes):
    async with opened("sqlite://") as lore:
        with pytest.raises(InvalidInput, match="processes"):
            await lore.imports.run(export(tmp_path / "a.jsonl", ["x"], 1), processes=processes)
