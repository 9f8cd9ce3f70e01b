"""Retention: old messages go into archives, come back to their places, and are forgotten there too."""

import asyncio
import gzip
import json
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

import roomlore
from forked_process import run_forked
from meddling import Meddled
from roomlore import Message, Source
from roomlore.core.errors import StorageDamaged
from roomlore.core.memory.memory import Evolution
from roomlore.core.records import from_record
from roomlore.services.archives import Retention
from roomlore_testkit import backends
from roomlore_testkit.doubles import FaultyStorage, FrozenClock

OLD = datetime(2020, 1, 1, tzinfo=UTC)
_KILLED = """
import asyncio, os, signal, sys
import roomlore
from roomlore.adapters.archive_files import FolderOfArchives
from roomlore.storage.archives import Archives

url, folder, place = sys.argv[1:]

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def before(kind, name, at):
    whole, calls = getattr(kind, name), []
    if asyncio.iscoroutinefunction(whole):
        async def stopped(*words, **named):
            calls.append(1)
            if len(calls) == at:
                kill()
            return await whole(*words, **named)
    else:
        def stopped(*words, **named):
            calls.append(1)
            if len(calls) == at:
                kill()
            return whole(*words, **named)
    setattr(kind, name, stopped)

if place == "row":
    before(FolderOfArchives, "write", 1)
elif place == "part":
    import roomlore.adapters.archive_files as files
    before(files.os, "fsync", 1)
elif place == "file":
    before(Archives, "turn", 1)
elif place == "erased":
    before(FolderOfArchives, "delete", 1)

async def main():
    settings = roomlore.Settings(archive_folder=folder)
    async with roomlore.open(url, settings=settings, background=False) as lore:
        if place == "erased":
            await lore.archives.restore(room_id="team")
        else:
            await lore.archives.run(days=30)

asyncio.run(main())
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/a.db" if request.param == "sqlite" else request.getfixturevalue("empty_postgres")


@pytest.fixture
async def lore(url, tmp_path):
    settings = roomlore.Settings(archive_folder=str(tmp_path / "archives"))
    async with roomlore.open(url, settings=settings, background=False) as opened:
        yield opened


def said(number, sender="ann", text=None, at=OLD, room="team"):
    return Message(
        id=f"m{number}",
        room_id=room,
        sender_id=sender,
        sender_name=sender.title(),
        text=text or f"Number {number}: the deploy of the server 部署 is done.",
        sent_at=at + timedelta(minutes=number),
        reply_to=f"m{number - 1}" if number % 3 == 2 else None,
        metadata={"n": number},
    )


async def filled(lore, old=12, new=4):
    senders = ("ann", "ben", "cleo")
    now = lore.now() - timedelta(days=1)
    await lore.messages.add([said(number, senders[number % 3]) for number in range(old)])
    await lore.messages.add([said(number, senders[number % 3], at=now) for number in range(old, old + new)])
    return await lore.messages.page("team", limit=1000)


async def assert_sound(lore):
    report = await lore.privacy.verify()
    assert report.sound, report.faults
    assert await lore.archives.check() == []


def files(tmp_path):
    return sorted((tmp_path / "archives").rglob("*.*"))


async def test_a_session_says_that_turns_which_no_summary_covers_are_archived(lore):
    async def truncated():
        return (await lore.sessions.query_context("s")).truncated

    now = lore.now() - timedelta(days=1)
    times = {1: OLD, 2: OLD + timedelta(days=60), 3: now, 4: now}
    for number, at in times.items():
        await lore.sessions.add_messages("s", [said(number, at=at, room="s")], turn_id=f"t{number}")
    await lore.sessions.checkpoint("s", "The first turn.", covers_through="m1")
    await lore.messages.delete("s", "m4")
    assert not await truncated(), "what was deleted is not missing"
    assert (await lore.archives.run(days=(lore.now() - OLD).days - 30)).messages == 1
    assert not await truncated(), "the summary covers the first turn"
    assert (await lore.archives.run(days=30)).messages > 0
    assert await truncated()
    await lore.archives.restore(room_id="s")
    assert not await truncated()


async def test_old_messages_go_into_a_file_and_come_back_to_their_places(lore, tmp_path):
    before = await filled(lore)
    report = await lore.archives.run(days=30)
    assert (report.rooms, report.messages, report.archives) == (1, 12, 1)
    assert [one.id for one in await lore.messages.page("team")] == ["m12", "m13", "m14", "m15"]
    assert (await lore.rooms.get("team")).messages == 4
    assert {hit.message.arrival for hit in (await lore.messages.search("team", "deploy server")).hits} <= {
        13,
        14,
        15,
        16,
    }
    await assert_sound(lore)

    (archive,) = await lore.archives.kept()
    (file,) = files(tmp_path)
    lines = [from_record(json.loads(line)).message for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert [(one.id, one.text, one.metadata) for one in lines] == [(m.id, m.text, m.metadata) for m in before[:12]]

    assert (await lore.archives.restore(archive.archive_id)).messages == 12
    assert await lore.messages.page("team", limit=1000) == before
    assert (await lore.rooms.get("team")).messages == 16
    assert len((await lore.messages.search("team", "deploy server", limit=50)).hits) == 16
    assert (await lore.messages.get("team", "m2")).link.parent == 2, "the platform's reply leads to m1 again"
    assert files(tmp_path) == []
    assert await lore.archives.kept() == []
    await assert_sound(lore)


async def test_an_archive_is_imported_elsewhere_as_it_is(lore, tmp_path):
    before = await filled(lore)
    await lore.archives.run(days=30)
    (file,) = files(tmp_path)
    plain = tmp_path / "archive.jsonl"
    plain.write_bytes(gzip.decompress(file.read_bytes()))
    async with roomlore.open("sqlite://", background=False) as other:
        assert (await other.imports.run([plain])).added == 12
        assert [one.text for one in await other.messages.page("team")] == [one.text for one in before[:12]]


async def test_what_is_deleted_before_stays_deleted_and_one_room_can_be_chosen(lore):
    await filled(lore)
    await lore.messages.add(said(1, room="garden"))
    await lore.messages.delete("team", "m3")
    assert (await lore.archives.run(days=30, room_id="team")).messages == 11
    assert len(await lore.messages.page("garden")) == 1
    await lore.archives.restore(room_id="team")
    assert "m3" not in [one.id for one in await lore.messages.page("team")]
    with pytest.raises(roomlore.NotFound):
        await lore.archives.run(days=30, room_id="nowhere")


async def test_a_memory_keeps_its_evidence_and_says_that_it_is_archived(lore):
    await filled(lore)
    sources = [Source("team", "m0"), Source("team", "m12")]
    added = await lore.memories.add("group:team", "The deploy is done by Ann.", sources=sources)
    await lore.messages.delete("team", "m5")
    await lore.archives.run(days=30)
    (archive,) = await lore.archives.kept()
    (version,) = (await lore.memories.blame(added.memory_id)).versions
    told = {one.source.message_id: (one.message is not None, one.archive_id) for one in version.evidence}
    assert told == {"m0": (False, archive.archive_id), "m12": (True, None)}
    await assert_sound(lore)


async def test_a_file_that_was_changed_is_refused_and_nothing_is_lost(lore, tmp_path):
    await filled(lore)
    await lore.archives.run(days=30)
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StorageDamaged):
        await lore.archives.restore(room_id="team")
    assert len(await lore.archives.kept()) == 1
    assert "changed or damaged" in (await lore.archives.check())[0]
    file.unlink()
    assert "is not there" in (await lore.archives.check())[0]


async def test_verify_reads_the_files_of_archives(lore, tmp_path):
    await filled(lore)
    await lore.archives.run(days=30)
    assert (await lore.privacy.verify()).checked["archives"] == 1
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:-1])
    (fault,) = (await lore.privacy.verify()).faults
    assert fault.check == "archives"
    assert fault.found.endswith("was changed or damaged."), "what to do is said once, in the mend"
    assert fault.where == f"room team, archive {(await lore.archives.kept())[0].archive_id}"
    assert (await lore.privacy.verify("user:ann")).sound, "a scope has no archives"


@pytest.mark.parametrize("place", ["row", "part", "file", "erased"])
async def test_a_kill_at_any_instant_loses_nothing(url, tmp_path, place):
    settings = roomlore.Settings(archive_folder=str(tmp_path / "archives"))
    async with roomlore.open(url, settings=settings, background=False) as lore:
        before = await filled(lore)
        if place == "erased":
            await lore.archives.run(days=30)
    program = tmp_path / "killed.py"
    program.write_text(_KILLED, encoding="utf-8")
    killed = await asyncio.to_thread(run_forked, program, url, str(tmp_path / "archives"), place)
    assert killed.returncode == -signal.SIGKILL
    async with roomlore.open(url, settings=settings, background=False) as lore:
        assert await lore.messages.page("team", limit=1000) == before, "nothing was erased, or all is back"
        await _free(lore)
        assert (await lore.archives.run(days=30)).messages == 12
        (archive,) = await lore.archives.kept()
        assert len(files(tmp_path)) == 1, "what was left over is removed"
        await assert_sound(lore)
        assert (await lore.archives.restore(archive.archive_id)).messages == 12
        assert await lore.messages.page("team", limit=1000) == before


async def _free(lore):
    """Take the lease of the killed process, which ends by itself after five minutes."""
    later = lore.now() + timedelta(minutes=6)
    async with lore.storage.writing("default") as work:
        assert await work.progress.take_lease(name="archives", holder="test", now=later, until=later)
        await work.progress.free_lease(name="archives", holder="test")


async def test_forgetting_a_person_reaches_the_archives(lore, tmp_path):
    secret = "my pills are in the blue tin behind the flour"
    await lore.messages.add(
        [
            said(0, "maria-7f3a9c", text=secret),
            replace(said(1, "ben", text=f"Maria said: {secret}"), reply_to="m0"),
            said(2, "ben", text="The garden is watered."),
        ]
    )
    await lore.memories.add("group:team", secret, sources=[Source("team", "m0")])
    await lore.messages.add(said(9, "ben", at=lore.now()))
    await lore.archives.run(days=30)
    assert len(files(tmp_path)) == 1
    dry = await lore.privacy.forget("maria-7f3a9c", dry_run=True)
    assert dry.places["archived messages"] == 1
    assert len(files(tmp_path)) == 1
    report = await lore.privacy.forget("maria-7f3a9c")
    assert report.places["messages"] == 1
    assert files(tmp_path) == []
    texts = [one.text for one in await lore.messages.page("team")]
    assert "The garden is watered." in texts
    assert not any(secret in text for text in texts)
    assert not any(secret in one.statement for one in await lore.memories.page("group:team"))
    await lore.archives.run(days=30)
    (file,) = files(tmp_path)
    assert b"maria-7f3a9c" not in gzip.decompress(file.read_bytes())
    assert secret.encode() not in gzip.decompress(file.read_bytes())
    await assert_sound(lore)


async def test_forgetting_a_person_reaches_quotations_in_archives_of_other_rooms(lore, tmp_path):
    secret = "my salary is ninety three thousand five hundred at Initech since last April"
    await lore.messages.add([said(1, "maria-7f3a9c", text=secret, room="lunch"), said(2, "ben", room="lunch")])
    await lore.messages.add(
        [said(9, "ben", text=f'I read: "{secret}"', room="gossip"), said(10, "cleo", room="gossip")]
    )
    await lore.archives.run(days=30, room_id="gossip")
    await lore.privacy.forget("maria-7f3a9c")
    assert next(one.text for one in await lore.messages.page("gossip")) == 'I read: "[forgotten]"'
    assert files(tmp_path) == []
    await assert_sound(lore)


async def test_forgetting_a_person_reaches_what_is_archived_meanwhile(lore, tmp_path, monkeypatch):
    await filled(lore)
    whole, runs = type(lore._resources.forgetter)._drop_cached, []

    async def archived_meanwhile(forgetter, person, tally):
        if not runs:
            runs.append(await lore.archives.run(days=30))
        await whole(forgetter, person, tally)

    monkeypatch.setattr(type(lore._resources.forgetter), "_drop_cached", archived_meanwhile)
    await lore.privacy.forget("ann")
    assert runs[0].messages == 12
    assert files(tmp_path) == []
    assert {one.sender_id for one in await lore.messages.page("team", limit=1000)} == {"ben", "cleo"}
    await assert_sound(lore)


async def test_an_archived_message_can_be_deleted_and_edited(lore, tmp_path):
    await filled(lore)
    await lore.archives.run(days=30)
    with pytest.raises(roomlore.NotFound, match="'m3' of room 'team' is archived; `roomlore archive restore`"):
        await lore.messages.get("team", "m3")
    assert await lore.messages.delete("team", ["m3", "m13", "m99"]) == 2
    assert files(tmp_path) == [], "no file has the deleted text; the next run archives the rest"
    await lore.archives.run(days=30)
    assert (await lore.messages.edit("team", "m4", text="The deploy failed.")).text == "The deploy failed."
    await lore.archives.run(days=30)
    await lore.archives.restore(room_id="team")
    texts = {one.id: one.text for one in await lore.messages.page("team", limit=1000)}
    assert texts["m4"] == "The deploy failed."
    assert not texts.keys() & {"m3", "m13"}
    with pytest.raises(roomlore.NotFound, match="'m3' of room 'team' was deleted"):
        await lore.messages.edit("team", "m3", text="again")
    await assert_sound(lore)


async def test_two_who_change_messages_of_an_archive_at_once_both_do(lore, url):
    """A regression: one of them was told that the archive's file is not there."""
    await filled(lore)
    archiver = lore._resources.archiver
    async with roomlore.open(url, settings=lore.settings, background=False) as other:
        for number, change in enumerate((lore.messages.delete, partial(lore.messages.edit, text="The deploy failed."))):
            await lore.archives.run(days=30)

            async def deletes(its: str = f"m{3 + number}") -> None:
                assert await other.messages.delete("team", [its]) == 1

            archiver._storage = meddled = Meddled(lore.storage, "writing", deletes)
            assert await change("team", f"m{5 + number}")
            assert meddled.happened
            archiver._storage = lore.storage
    left = {one.id: one.text for one in await lore.messages.page("team", limit=1000)}
    assert left.keys() == {f"m{number}" for number in range(16)} - {"m3", "m4", "m5"}
    assert left["m6"] == "The deploy failed."
    await assert_sound(lore)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_forgetting_goes_on_where_others_bring_archives_back(lore, url, tmp_path, monkeypatch, dry_run):
    """A regression: it failed, since the file of an archive was gone once its row was read."""
    await filled(lore)
    await lore.archives.run(days=30)
    archiver = lore._resources.archiver
    async with roomlore.open(url, settings=lore.settings, background=False) as other:
        whole, restored = archiver.kept, []

        async def late(*given, **named):
            found = await whole(*given, **named)
            if not restored:
                restored.append(await other.archives.restore(room_id="team"))
            return found

        monkeypatch.setattr(archiver, "kept", late)
        await lore.privacy.forget("ann", dry_run=dry_run)
    assert restored[0].messages == 12
    assert files(tmp_path) == []
    senders = {one.sender_id for one in await lore.messages.page("team", limit=1000)}
    assert senders == {"ben", "cleo"} | ({"ann"} if dry_run else set())
    await assert_sound(lore)


async def test_a_run_that_lost_its_lease_erases_nothing_of_which_the_file_is_gone(lore, tmp_path, monkeypatch):
    before = await filled(lore)
    archiver, stalled = lore._resources.archiver, []
    whole = type(archiver)._erase

    async def late(self, tenant, *given):
        if not stalled:
            stalled.append(1)
            await self._tidy(tenant)  # as the run of another process begins, once the lease is over
        return await whole(self, tenant, *given)

    monkeypatch.setattr(type(archiver), "_erase", late)
    assert (await lore.archives.run(days=30)).messages == 12
    await assert_sound(lore)
    await lore.archives.restore(room_id="team")
    assert await lore.messages.page("team", limit=1000) == before


async def test_who_spoke_long_ago_still_hears_what_was_said_then(lore):
    await filled(lore, new=0)
    await lore.messages.add(said(20, "dora", at=lore.now()))
    await lore.memories.add("group:team", "The deploy is done.", sources=[Source("team", "m3")])

    async def seen():
        viewers = ("user:ann", "user:ben", "user:dora")
        return [len(await lore.memories.page("group:team", viewer=viewer)) for viewer in viewers]

    before = await seen()
    assert before == [1, 1, 0]
    await lore.archives.run(days=30)
    assert await seen() == before
    await lore.messages.delete("team", "m20")
    assert await seen() == before
    await assert_sound(lore)
    await lore.archives.restore(room_id="team")
    assert await seen() == before
    assert len((await lore.rooms.people("team")).people) == 3, "nobody is kept of whom there is no message"


async def test_the_schedule_archives_as_durable_work(url, tmp_path, monkeypatch):
    monkeypatch.setattr("roomlore.wiring.work.RETENTION_SCHEDULE", "* * * * *")
    settings = roomlore.Settings(archive_folder=str(tmp_path / "archives"), retain_messages_days=30)
    async with roomlore.open(url, settings=settings, background=False) as lore:
        await filled(lore)
        assert await lore._resources.sweeps["retention"]() == [], "a new database begins with the next time"
        async with lore.storage.writing("") as work:
            marks = await work.progress.marks(room_id="", names=["retention"])
            await work.progress.move_mark(
                room_id="", name="retention", arrival=1, was=marks["retention"], now=lore.now()
            )
        await lore.jobs.catch_up()
        assert len(await lore.messages.page("team")) == 4
        await assert_sound(lore)


async def test_raw_answers_of_models_go_after_their_days_and_the_records_stay(url, monkeypatch):
    clock = FrozenClock(OLD)
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: clock)
    settings = roomlore.Settings(retain_answers_days=7)
    async with roomlore.open(url, settings=settings, background=False) as lore:
        await lore.jobs.catch_up()
        await lore.messages.add([said(number, "ann", at=clock.now()) for number in range(4)])
        clock.advance(3_600)
        made = (await lore.memories.evolve("team", mode="offline")).evolution_id

        async def record():
            async with lore.storage.reading("default") as work:
                return (await work.memories.evolutions_by_id(evolution_ids=[made]))[0]

        answered = replace(await record(), raw_answer="what the model said", quarantined=(("a line", "why"),))
        async with lore.storage.writing("default") as work:
            await work.maintenance.rewrite_evolution(evolution=answered)
        clock.advance(6 * 86_400)
        await lore.jobs.catch_up()
        assert await record() == answered
        clock.advance(2 * 86_400)
        await lore.jobs.catch_up()
        assert await record() == replace(answered, raw_answer="", quarantined=())
        assert len(await lore.messages.page("team")) == 4, "no days are set for messages"
        await assert_sound(lore)


async def test_answers_that_go_bring_nothing_back_that_was_redacted_meanwhile(empty_postgres):
    """A regression: with the empty answer the record was written back as it was read, before a person was forgotten."""
    async with roomlore.open(empty_postgres, background=False) as lore:
        record = Evolution(
            evolution_id="e1",
            scope="group:team",
            kind="evolution",
            status="nothing",
            room_id="team",
            first_arrival=1,
            last_arrival=1,
            messages=1,
            raw_answer="what the model said",
            facts={"lines": ["what ann said"]},
            error="what ann said",
            started_at=OLD,
            finished_at=OLD,
        )
        async with lore.storage.writing("default") as work:
            await work.memories.add_evolution(evolution=record)
        slow = FaultyStorage(lore.storage)
        redacted = replace(record, facts={"lines": ["[forgotten]"]}, error="[forgotten]")
        between = iter([None, redacted])

        async def meddle(name: str) -> None:
            if name.startswith("maintenance.") and (new := next(between, None)):
                async with lore.storage.writing("default") as work:
                    await work.maintenance.rewrite_evolution(evolution=new)

        slow.visit = meddle  # type: ignore[method-assign]
        retention = Retention(
            backends(storage=slow, clock=lore._resources.clock),
            durable=lore._resources.durable,
            archiver=lore._resources.archiver,
            times=None,
            days=None,
            record_days=7,
        )
        assert (await retention.run("default")).records == 1
        async with lore.storage.reading("default") as work:
            (left,) = await work.memories.evolutions_by_id(evolution_ids=["e1"])
        assert left == replace(redacted, raw_answer="")


async def test_another_tenant_sees_no_archive(lore):
    await filled(lore)
    await lore.archives.run(days=30)
    other = lore.for_tenant("other")
    assert await other.archives.kept() == []
    (archive,) = await lore.archives.kept()
    with pytest.raises(roomlore.NotFound):
        await other.archives.restore(archive.archive_id)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    from roomlore.adapters.archive_files import FolderOfArchives
    from roomlore.core.errors import StorageUnavailable

    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable, match="archive_folder"):
        FolderOfArchives(Path(tmp_path / "file")).write("a/b", b"")
