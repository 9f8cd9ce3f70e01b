"""A SQLite file, or its log, that is removed or replaced while it is open: no write into the void is acknowledged."""

import asyncio
import shutil
from pathlib import Path

import pytest

import roomlore
from roomlore import Lore, Message, StorageUnavailable
from roomlore.storage import connect

GONE = "was removed or replaced while it is open: .* Put that file back, or restart roomlore"
both = pytest.mark.parametrize("ending", ["", "-wal"], ids=["file", "log"])


@pytest.fixture
async def lore(sqlite_url):
    async with roomlore.open(sqlite_url, background=False) as opened:
        await opened.messages.add(said("m1"))
        yield opened


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "roomlore.db"


def said(name: str) -> Message:
    return Message(id=name, room_id="tea", sender_id="ann", text=f"word {name}")


async def is_refused(lore: Lore) -> None:
    for written in (lore.messages.add(said("m2")), lore.memories.add("user:ann", "likes tea"), lore.ready()):
        with pytest.raises(StorageUnavailable, match=GONE):
            await written


@both
@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
async def test_nothing_is_acknowledged_until_the_file_is_back(lore, path, ending, replaced):
    file, away = f"{path}{ending}", path.with_name("away")
    await lore.ready()
    shutil.move(file, away)
    if replaced:
        shutil.copy(away, file)
    await is_refused(lore)
    shutil.move(away, file)
    await lore.ready()
    assert (await lore.messages.add(said("m3"))).added == ("m3",)
    assert [one.id for one in await lore.messages.page("tea")] == ["m1", "m3"]


@both
async def test_of_writes_that_share_a_commit_none_is_acknowledged(lore, path, ending):
    shutil.move(f"{path}{ending}", path.with_name("away"))
    storage = lore.storage

    async def write(room_id: str) -> None:
        async with storage.writing(lore.tenant, brief=True) as work:
            await work.rooms.lock(room_id=room_id, now=lore._resources.clock.now())

    done = await asyncio.gather(*(write(f"room {n}") for n in range(5)), return_exceptions=True)
    assert [type(one) for one in done] == [StorageUnavailable] * 5


async def test_a_connection_that_is_opened_later_reads_no_other_file(path, sqlite_url):
    storage, other = await connect(sqlite_url), path.with_name("other.db")
    await (await connect(f"sqlite:///{other}")).close()
    async with storage.reading():
        shutil.move(other, path)
        with pytest.raises(StorageUnavailable, match=GONE):
            async with storage.reading():
                pass
    await storage.close()


async def test_a_program_may_go_to_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with roomlore.open("chat.db", background=False) as lore:
        await lore.messages.add(said("m1"))
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        assert (await lore.messages.add(said("m2"))).added == ("m2",)


async def test_a_file_behind_a_link_has_its_log_beside_it(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "chat.db").symlink_to(tmp_path / "disk" / "chat.db")
    async with roomlore.open(f"sqlite:///{tmp_path}/chat.db", background=False) as lore:
        assert (await lore.messages.add(said("m1"))).added == ("m1",)
        shutil.move(tmp_path / "disk" / "chat.db-wal", tmp_path / "away")
        with pytest.raises(StorageUnavailable, match=GONE):
            await lore.messages.add(said("m2"))
