"""The promises of `lore.imports`: nothing good is lost, nothing is added twice, a broken-off import goes on."""

import asyncio
import json
from pathlib import Path

import pytest

import roomlore
from roomlore import InvalidInput
from roomlore.core.records import ImportConflict, to_line
from roomlore.wiring.import_processes import ThisProcess


def line(number: int, **fields: object) -> str:
    record = {
        "id": str(number),
        "room_id": "r",
        "sender_id": "ann",
        "text": f"text {number}",
        "sent_at": "2026-01-01T08:00:00Z",
    }
    return json.dumps(record | fields)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


async def test_good_lines_are_stored_and_bad_ones_named(lore, tmp_path):
    path = write(tmp_path / "a.jsonl", [line(1), "{broken", line(2), line(3, text="x" * 1_100_000), line(4)])
    report = await lore.imports.run(path)
    assert report.format == "jsonl"
    assert report.added == 3
    assert report.bad_count == 2
    assert [bad.number for bad in report.bad] == [2, 4]
    assert "max_text_chars" in report.bad[1].reason
    assert [message.id for message in await lore.messages.page("r")] == ["1", "2", "4"]


async def test_an_import_keeps_to_the_largest_batch_allowed(tmp_path):
    path = write(tmp_path / "a.jsonl", [line(number) for number in range(7)])
    async with roomlore.open("sqlite://", settings=roomlore.Settings(max_batch_messages=3)) as lore:
        assert (await lore.imports.run(path)).added == 7


async def test_imports_at_once_add_every_message_once(tmp_path):
    """The same export twice, and another of the same room, from two connections to one database."""
    settings = roomlore.Settings(max_batch_messages=7)
    first = write(tmp_path / "a.jsonl", [line(number) for number in range(60)])
    other = write(tmp_path / "b.jsonl", [line(number) for number in range(40, 90)])
    url = f"sqlite:///{tmp_path}/a.db"
    async with roomlore.open(url, settings=settings) as one, roomlore.open(url, settings=settings) as two:
        reports = await asyncio.gather(
            one.imports.run(first), two.imports.run(first), one.imports.run(other), two.imports.run(other)
        )
        assert sum(report.added for report in reports) == 90
        assert [report.conflicts for report in reports] == [(), (), (), ()]
        assert [report.bad_count for report in reports] == [0, 0, 0, 0]
        assert sorted([int(message.id) async for message in one.messages.export()]) == list(range(90))
        again = await two.imports.run(first)
        assert (again.resumed, again.added, again.duplicates) == (False, 0, 60), "no position is left behind"


async def test_an_edited_line_without_a_time_takes_that_of_the_line_before(lore, tmp_path):
    path = write(tmp_path / "a.jsonl", [line(1), line(2, sent_at=None, edited_at="2026-01-02T08:00:00Z")])
    await lore.imports.run(path)
    first, second = await lore.messages.page("r")
    assert (second.sent_at, second.sent_at_estimated) == (first.sent_at, True)
    assert second.edited_at is not None


async def test_a_line_without_a_sender_is_counted(lore, tmp_path):
    nobody = json.dumps({"id": "1", "room_id": "r", "text": "谁说的?", "sent_at": "2026-01-01T08:00:00Z"})
    report = await lore.imports.run(write(tmp_path / "a.jsonl", [nobody, line(2), line(3)]))
    assert (report.added, report.unsigned) == (3, 1)
    assert [message.sender_id for message in await lore.messages.page("r")] == ["unknown", "ann", "ann"]


async def test_importing_again_adds_nothing(lore, tmp_path):
    path = write(tmp_path / "a.jsonl", [line(1), line(2), line(3, sent_at=None)])
    assert (await lore.imports.run(path)).added == 3
    before = [message async for message in lore.messages.export()]
    again = await lore.imports.run(path)
    assert (again.added, again.duplicates, again.resumed) == (0, 3, False)
    assert [message async for message in lore.messages.export()] == before


async def test_other_content_under_a_known_id_is_named_and_left(lore, tmp_path):
    await lore.imports.run(write(tmp_path / "a.jsonl", [line(1)]))
    report = await lore.imports.run(write(tmp_path / "b.jsonl", [line(1, text="changed"), line(2)]))
    assert (report.added, report.conflict_count) == (1, 1)
    assert report.conflicts == (ImportConflict(room_id="r", title="r", id="1"),)
    assert (await lore.messages.get("r", "1")).message.text == "text 1"


async def test_a_conflict_names_the_room_by_its_id_and_title(lore, tmp_path):
    """Messages of two rooms have the same id, and one of them is in conflict."""
    cake = {"room_id": "cake"}
    await lore.imports.run(write(tmp_path / "a.jsonl", [line(1), line(1, **cake)]))
    await lore.rooms.rename("cake", "Cake 蛋糕")
    report = await lore.imports.run(write(tmp_path / "b.jsonl", [line(1), line(1, text="other words", **cake)]))
    assert (report.duplicates, report.conflict_count) == (1, 1)
    assert report.conflicts == (ImportConflict(room_id="cake", title="Cake 蛋糕", id="1"),)
    assert report.titles == {"r": "r", "cake": "Cake 蛋糕"}


async def test_the_first_thousand_conflicts_are_named_and_all_are_counted(lore, tmp_path):
    numbers = range(1, 1_101)
    await lore.imports.run(write(tmp_path / "a.jsonl", [line(number) for number in numbers]))
    report = await lore.imports.run(write(tmp_path / "b.jsonl", [line(number, text="other") for number in numbers]))
    assert (len(report.conflicts), report.conflict_count, report.read) == (1_000, 1_100, 1_100)


async def test_a_recalled_message_hides_no_conflict_of_another_room(lore, tmp_path):
    """Both messages have the id 1."""
    cake = {"room_id": "cake"}
    await lore.imports.run(write(tmp_path / "a.jsonl", [line(1), line(1, **cake)]))
    newer = [line(1, text="", metadata={"deleted": True}), line(1, text="other words", **cake)]
    for name in "bc":
        report = await lore.imports.run(write(tmp_path / f"{name}.jsonl", newer))
        assert [(one.room_id, one.id) for one in report.conflicts] == [("cake", "1")]
    assert await lore.messages.page("r") == []
    assert [message.text for message in await lore.messages.page("cake")] == ["text 1"]


def discord(text: str, edited: int | None) -> str:
    said = {"id": "5", "type": "Default", "timestamp": "2024-05-01T10:00:00+00:00", "content": text}
    said |= {"timestampEdited": edited and f"2024-05-0{edited}T10:00:00+00:00"}
    said["author"] = {"id": "7", "name": "anna", "isBot": False}
    export = {"guild": {"id": "1", "name": "G"}, "channel": {"id": "81", "type": "GuildTextChat", "name": "c"}}
    return json.dumps(export | {"messages": [said], "messageCount": 1})


def telegram(text: str, edited: int | None) -> str:
    said = {"id": 1, "type": "message", "date": "2024-05-01T10:00:00", "date_unixtime": "1714557600", "from": "Anna"}
    said |= {"from_id": "user1", "text": text, "text_entities": []}
    if edited:
        said |= {"edited": f"2024-05-0{edited}T10:00:00", "edited_unixtime": str(1714557600 + 86400 * (edited - 1))}
    return json.dumps({"name": "Tea", "type": "private_group", "id": 5, "messages": [said]})


def own(text: str, edited: int | None) -> str:
    at = {"edited_at": f"2026-01-0{edited}T10:00:00Z"} if edited else {}
    return line(1, text=text, **at) + "\n"


EDITING = pytest.mark.parametrize("said", [discord, telegram, own], ids=lambda value: value.__name__)


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@EDITING
async def test_a_newer_export_brings_an_edit_and_an_older_one_undoes_none(lore, tmp_path, said):
    first = put(tmp_path / "1.json", said("meet at the old harbour", None))
    second = put(tmp_path / "2.json", said("meet at the new station 车站", 2))
    third = put(tmp_path / "3.json", said("meet at the lighthouse", 3))
    await lore.imports.run(first)
    for newer, text in ((second, "meet at the new station 车站"), (third, "meet at the lighthouse")):
        report = await lore.imports.run(newer)
        assert (report.edited, report.duplicates, report.conflict_count, report.read) == (1, 0, 0, 1)
        (room,) = report.rooms
        (stored,) = await lore.messages.page(room)
        assert stored.text == text
        assert stored.edited_at is not None
    revision = (await lore.rooms.get(room)).revision
    report = await lore.imports.run(third)
    assert (report.edited, report.duplicates) == (0, 1)
    for older in (first, second):
        report = await lore.imports.run(older)
        assert (report.edited, report.older, report.conflict_count) == (0, 1, 0)
    assert await lore.messages.page(room) == [stored]
    assert (await lore.rooms.get(room)).revision == revision
    answer = await lore.messages.search(room, "lighthouse")
    assert [hit.message.id for hit in answer.hits] == [stored.id]
    assert (await lore.messages.search(room, "harbour")).hits == ()


async def test_a_slack_export_brings_edits(lore, tmp_path):
    def export(name: str, **told: object) -> Path:
        day = tmp_path / name / "general" / "2024-05-01.json"
        day.parent.mkdir(parents=True)
        said = {"type": "message", "ts": "1714557600.000100", "user": "U1", "text": "at nine"}
        day.write_text(json.dumps([said | told]), "utf-8")
        (tmp_path / name / "channels.json").write_text(json.dumps([{"id": "C1", "name": "general"}]), "utf-8")
        return tmp_path / name

    await lore.imports.run(export("a"))
    report = await lore.imports.run(export("b", text="at ten", edited={"user": "U1", "ts": "1714557700.000000"}))
    assert (report.edited, report.conflict_count) == (1, 0)
    assert [message.text for message in await lore.messages.page("C1")] == ["at ten"]


@pytest.mark.parametrize(
    "other",
    [{"sender_id": "cem"}, {"sent_at": "2026-01-01T08:00:01Z"}, {"edited_at": None}],
    ids=["another sender", "another time", "no edit"],
)
async def test_what_is_no_edit_of_the_stored_message_is_a_conflict(lore, tmp_path, other):
    await lore.imports.run(write(tmp_path / "a.jsonl", [line(1)]))
    newer = {"text": "other words", "edited_at": "2026-01-02T08:00:00Z"} | other
    report = await lore.imports.run(write(tmp_path / "b.jsonl", [line(1, **newer)]))
    assert (report.edited, report.conflict_count) == (0, 1)
    assert [message.text for message in await lore.messages.page("r")] == ["text 1"]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"sender_name": "Ann"}, {"sender_name": "Anna"}),
        ({}, {"metadata": {"caption": "a preview"}}),
        ({"role": "system", "text": "invite members"}, {"role": "system", "text": "join group by link"}),
    ],
    ids=["another name", "a preview", "a notice in other words"],
)
async def test_a_message_that_an_export_tells_otherwise_is_the_same_one(lore, tmp_path, first, later):
    await lore.imports.run(write(tmp_path / "a.jsonl", [line(1, **first)]))
    report = await lore.imports.run(write(tmp_path / "b.jsonl", [line(1, **later)]))
    assert (report.duplicates, report.conflict_count) == (1, 0)


async def test_an_edit_that_was_made_here_later_stays(lore, tmp_path):
    await lore.imports.run(write(tmp_path / "a.jsonl", [line(1)]))
    await lore.messages.edit("r", "1", text="changed here")
    for name, told in (("b", {"edited_at": "2020-01-01T08:00:00Z", "text": "x"}), ("c", {})):
        report = await lore.imports.run(write(tmp_path / f"{name}.jsonl", [line(1, **told)]))
        assert (report.older, report.edited, report.conflict_count) == (1, 0, 0)
    assert [message.text for message in await lore.messages.page("r")] == ["changed here"]


async def test_versions_of_a_message_in_one_file_end_in_the_newest(lore, tmp_path):
    versions = [(None, "one"), ("2026-01-03T08:00:00Z", "three"), ("2026-01-02T08:00:00Z", "two"), (None, "one")]
    told = [line(1, text=text, **({"edited_at": at} if at else {})) for at, text in versions]
    report = await lore.imports.run(write(tmp_path / "a.jsonl", told))
    assert (report.added, report.edited, report.older, report.duplicates, report.read) == (1, 1, 1, 1, 4)
    assert [message.text for message in await lore.messages.page("r")] == ["three"]


async def test_an_edit_with_another_name_of_its_sender_is_applied_once(lore, tmp_path):
    await lore.imports.run(write(tmp_path / "a.jsonl", [line(1, sender_name="Ann")]))
    newer = line(1, sender_name="Anna", text="new words", edited_at="2026-01-02T08:00:00Z")
    path = write(tmp_path / "b.jsonl", [newer])
    assert (await lore.imports.run(path)).edited == 1
    report = await lore.imports.run(path)
    assert (report.edited, report.duplicates, report.conflict_count) == (0, 1, 0)


async def test_what_was_deleted_is_counted_on_its_own_and_stays_deleted(lore, tmp_path):
    path = write(tmp_path / "a.jsonl", [line(1), line(2)])
    await lore.imports.run(path)
    await lore.messages.delete("r", "1")
    changed = write(tmp_path / "b.jsonl", [line(1, text="changed"), line(2)])
    for again in (path, changed):
        report = await lore.imports.run(again)
        assert (report.deleted, report.duplicates, report.conflict_count, report.read) == (1, 1, 0, 2)
    assert [message.id for message in await lore.messages.page("r")] == ["2"]


async def test_what_an_export_calls_recalled_is_counted_as_deleted(lore, tmp_path):
    older = write(tmp_path / "a.jsonl", [line(1), line(2)])
    await lore.imports.run(older)
    newer = write(tmp_path / "b.jsonl", [line(1, text="", metadata={"deleted": True}), line(2)])
    for path in (newer, newer, older):
        report = await lore.imports.run(path)
        assert (report.deleted, report.duplicates, report.conflict_count) == (1, 1, 0)
        assert [message.id for message in await lore.messages.page("r")] == ["2"]


async def test_a_message_deleted_in_one_room_says_nothing_of_its_id_in_another(lore, tmp_path):
    path = write(tmp_path / "a.jsonl", [line(1), line(1, room_id="cake"), line(2)])
    await lore.imports.run(path)
    await lore.messages.delete("r", "1")
    report = await lore.imports.run(path)
    assert (report.deleted, report.duplicates) == (1, 2)


async def test_what_is_archived_is_counted_on_its_own_and_goes_if_it_was_recalled(tmp_path):
    settings = roomlore.Settings(archive_folder=str(tmp_path / "archives"))
    path = write(tmp_path / "a.jsonl", [line(number, sent_at="2020-01-01T08:00:00Z") for number in (1, 2, 3)])
    gone = line(1, text="", sent_at="2020-01-01T08:00:00Z", metadata={"deleted": True})
    recalled = write(tmp_path / "b.jsonl", [gone])
    async with roomlore.open("sqlite://", settings=settings) as lore:
        await lore.imports.run(path)
        await lore.archives.run(days=30)
        report = await lore.imports.run(path)
        assert (report.archived, report.deleted, report.duplicates) == (3, 0, 0)
        report = await lore.imports.run(recalled)
        assert (report.archived, report.deleted) == (0, 1)
        assert [message.id for message in await lore.messages.page("r")] == ["2", "3"]


async def test_what_forgetting_redacted_is_counted_on_its_own_and_stays_redacted(lore, tmp_path):
    secret = "the key of the house lies under the third blue flower pot"
    lines = [line(1, sender_id="bob", text=secret), line(2, text=f"> {secret}\nI see", reply_to="1"), line(3)]
    await lore.imports.run(write(tmp_path / "a.jsonl", lines))
    await lore.privacy.forget("bob")
    (redacted, _) = await lore.messages.page("r")
    assert "[forgotten]" in redacted.text
    for name, told in (("b", {}), ("c", {"edited_at": "2026-02-01T08:00:00Z"})):
        again = json.dumps(json.loads(lines[1]) | told)
        report = await lore.imports.run(write(tmp_path / f"{name}.jsonl", [again, lines[2]]))
        assert (report.redacted, report.duplicates, report.conflict_count, report.added) == (1, 1, 0, 0)
    assert (await lore.messages.page("r"))[0] == redacted


async def test_another_message_under_the_id_of_a_redacted_one_is_a_conflict(lore, tmp_path):
    await lore.imports.run(write(tmp_path / "a.jsonl", [line(1, text="I see [forgotten]")]))
    for name, other in (("b", {"sender_id": "cem"}), ("c", {"sent_at": "2026-01-01T09:00:00Z"})):
        report = await lore.imports.run(write(tmp_path / f"{name}.jsonl", [line(1, **other)]))
        assert (report.redacted, report.conflict_count) == (0, 1)


async def test_an_import_broken_off_goes_on_where_it_was(lore, tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl", [line(number) for number in range(3_500)])
    calls = []
    real = ThisProcess.add

    async def fails_at_the_third_batch(adding, messages):
        calls.append(len(messages))
        if len(calls) == 3:
            raise roomlore.StorageUnavailable("the disk is full")
        return await real(adding, messages)

    monkeypatch.setattr(ThisProcess, "add", fails_at_the_third_batch)
    with pytest.raises(roomlore.StorageUnavailable):
        await lore.imports.run(path)
    report = await lore.imports.run(path)
    assert calls == [1000, 1000, 1000, 1000, 500]
    assert (report.resumed, report.added, report.duplicates) == (True, 1_500, 0)
    assert (await lore.rooms.get("r")).messages == 3_500


async def test_without_resume_it_starts_over_and_still_adds_nothing_twice(lore, tmp_path):
    path = write(tmp_path / "a.jsonl", [line(number) for number in range(10)])
    await lore.imports.run(path)
    assert (await lore.imports.run(path, resume=False)).duplicates == 10


async def test_progress_is_reported(lore, tmp_path):
    path = write(tmp_path / "a.jsonl", [line(number) for number in range(2_500)])
    seen = []
    await lore.imports.run(path, progress=lambda *counts: seen.append(counts))
    assert [messages for _, _, messages in seen] == [1_000, 2_000, 2_500]
    assert all(done <= total == path.stat().st_size for done, total, _ in seen)


async def test_a_missing_file_and_an_unknown_format_say_what_to_do(lore, tmp_path):
    with pytest.raises(InvalidInput, match="does not exist"):
        await lore.imports.run(tmp_path / "none.jsonl")
    with pytest.raises(InvalidInput, match="jsonl"):
        await lore.imports.run(write(tmp_path / "a.txt", ["hello"]), format="morse")


async def test_exporting_and_importing_is_the_identity(lore, tmp_path):
    path = write(
        tmp_path / "a.jsonl",
        [
            line(1, text="nul \x00 and 👩‍👩‍👧 \ud83d", metadata={"a": {"b": [1, None]}}, mentions=["bob"]),
            line(2, sent_at=None, sender_name="安", role="assistant", has_tool_calls=True, turn_id="t"),
            line(3, reply_to="1", root_id="1", topic_id="tea", sent_at="2026-01-01T16:00:00.123456+08:00"),
        ],
    )
    await lore.imports.run(path)
    await lore.messages.edit("r", "3", text="edited 已修改")
    exported = [message async for message in lore.messages.export()]
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(b"".join(to_line(message) for message in exported))
    async with roomlore.open("sqlite://") as other:
        report = await other.imports.run(copy)
        assert (report.added, report.bad_count) == (3, 0)
        assert [message async for message in other.messages.export()] == exported
        for message in exported:
            mine, theirs = await lore.messages.get("r", message.id), await other.messages.get("r", message.id)
            assert theirs.message == mine.message
