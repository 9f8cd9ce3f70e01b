"""A disk without space is told as that, whatever the engine calls it."""

import shutil
import sqlite3
from collections import namedtuple
from pathlib import Path

import pytest

import roomlore
from roomlore.core.errors import StorageUnavailable
from roomlore.storage.engine import translated

Usage = namedtuple("Usage", "total used free")


async def test_a_database_that_may_not_grow(tmp_path):
    async with roomlore.open(f"sqlite:///{tmp_path}/chat.db", background=False) as lore:
        async with lore.storage.outside() as connection:
            await connection.run("PRAGMA max_page_count = 1")
        said = [roomlore.Message(id=f"m{n}", room_id="tea", sender_id="ann", text="word " * 500) for n in range(50)]
        with pytest.raises(StorageUnavailable, match=r"has no space left on its disk: .* is full\. Make room there"):
            await lore.messages.add(said)


async def test_what_may_not_grow_is_not_ready_until_it_may(tmp_path):
    """Without room for more, small writes in the place of earlier ones still succeed."""
    async with roomlore.open(f"sqlite:///{tmp_path}/chat.db", background=False) as lore:
        await lore.ready()
        async with lore.storage.outside() as connection:
            await connection.run("PRAGMA max_page_count = 1")
        lore._resources.readiness._tried = None
        with pytest.raises(StorageUnavailable, match="has no space left on its disk"):
            await lore.ready()
        async with lore.storage.outside() as connection:
            await connection.run("PRAGMA max_page_count = 1000000")
        lore._resources.readiness._tried = None
        await lore.ready()
        async with lore.storage.reading("") as work:
            assert await work.progress.import_position(source="") is None


async def test_a_full_disk_is_not_ready(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**11, 10**11, 0))
    async with roomlore.open(f"sqlite:///{tmp_path}/chat.db", background=False) as lore:
        with pytest.raises(StorageUnavailable, match="has no space left on its disk"):
            await lore.ready()


@pytest.mark.parametrize(("free", "said"), [(4_096, "has no space left"), (10**10, "does not answer as it should")])
def test_an_error_of_input_or_output_is_judged_by_the_space_that_is_left(monkeypatch, tmp_path, free, said):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**11, 10**11 - free, free))
    with pytest.raises(StorageUnavailable, match=said), translated(tmp_path / "chat.db"):
        raise sqlite3.OperationalError("disk I/O error")


def test_a_folder_that_is_gone_is_no_lack_of_space(tmp_path):
    with pytest.raises(StorageUnavailable, match="does not answer"), translated(Path(tmp_path / "gone" / "chat.db")):
        raise sqlite3.OperationalError("disk I/O error")
