"""Chats that have a name and no id find their rooms again, and never go into that of another chat."""

import asyncio
import json
from pathlib import Path

import pytest

import roomlore

CHAT = """[21.{month:02}.24, {hour:02}:00:00] {who}: soup at {hour}?
[21.{month:02}.24, {hour:02}:01:00] {other}: fine, {hour}
"""
NAME = "WhatsApp Chat with Family.txt"


def chat(folder: Path, who: str, other: str, *, months: range = range(5, 6), hours: range = range(10, 14)) -> Path:
    """Return the folder with the export of a chat called Family; of each month, two messages an hour."""
    folder.mkdir(parents=True)
    told = (CHAT.format(month=month, hour=hour, who=who, other=other) for month in months for hour in hours)
    (folder / NAME).write_text("".join(told))
    return folder


@pytest.fixture
def anna(tmp_path: Path) -> Path:
    return chat(tmp_path / "all" / "anna", "Ann", "Bo")


@pytest.fixture
def ben(tmp_path: Path) -> Path:
    return chat(tmp_path / "all" / "ben", "Cem", "Dan")


async def test_two_runs_do_not_merge_chats(lore, anna, ben):
    first = await lore.imports.run(anna)
    second = await lore.imports.run(ben)
    assert (first.rooms, first.apart, second.rooms, second.apart) == (
        ("Family",), {}, ("Family (2)",), {"Family (2)": "Family"},
    )  # fmt: skip
    assert {message.sender_id for message in await lore.messages.page("Family")} == {"Ann", "Bo"}
    third = await lore.imports.run(chat(anna.parent.parent / "third", "Eve", "Fay"))
    assert third.rooms == ("Family (3)",)
    again = [await lore.imports.run(path) for path in (ben, anna)]
    assert [(report.rooms, report.added) for report in again] == [(("Family (2)",), 0), (("Family",), 0)]


async def test_a_folder_after_one_of_its_chats_stores_nothing_twice(lore, anna, ben):
    await lore.imports.run(anna)
    report = await lore.imports.run(anna.parent)
    assert (set(report.rooms), report.added, report.duplicates) == ({"Family", "Family (ben)"}, 8, 8)
    assert report.apart == {"Family (ben)": "Family"}


async def test_a_chat_after_its_folder_goes_into_its_room(lore, anna, ben):
    await lore.imports.run(anna.parent)
    report = await lore.imports.run(ben)
    assert (report.rooms, report.added) == (("Family (ben)",), 0)
    moved = ben.rename(ben.parent.parent / "elsewhere")
    assert (await lore.imports.run(moved)).rooms == ("Family (ben)",)


@pytest.mark.parametrize("hours", [range(10, 20), range(12, 14), range(12, 16), range(6, 12)])
async def test_a_longer_or_shorter_export_is_of_the_same_chat(lore, anna, ben, hours):
    await lore.imports.run(anna)
    await lore.imports.run(ben)
    for who, other, wanted in (("Ann", "Bo", "Family"), ("Cem", "Dan", "Family (2)")):
        report = await lore.imports.run(chat(anna.parent.parent / wanted, who, other, hours=hours))
        assert (report.rooms, report.continued) == ((wanted,), ())


@pytest.mark.parametrize(("who", "other", "unsure"), [("Ann", "Bo", ()), ("Cem", "Dan", ("Family",))])
async def test_an_export_of_another_time_continues_the_room_which_is_named_unless_people_are_known(
    lore, anna, tmp_path, who, other, unsure
):
    await lore.imports.run(anna)
    report = await lore.imports.run(chat(tmp_path / "later", who, other, months=range(7, 8)))
    assert (report.rooms, report.added, report.continued) == (("Family",), 8, unsure)
    again = await lore.imports.run(tmp_path / "later")
    assert (again.rooms, again.added, again.continued) == (("Family",), 0, ())


BEGUN = "[21.{month:02}.24, 09:00:00] Family: \u200e{notice}\n[21.{month:02}.24, 09:00:01] Ann: \u200eAnn {created}\n"


@pytest.mark.parametrize("created", ["created this group", "creó el grupo “Family”", "がグループを作成しました"])
async def test_a_chat_that_was_created_after_the_room_began_is_another_one(lore, tmp_path, created):
    chats = []
    for month in (5, 6):
        folder = chat(tmp_path / str(month) / "x", "Ann", "Bo", months=range(month, month + 1))
        begun = BEGUN.format(month=month, created=created, notice="Los mensajes están cifrados de extremo a extremo.")
        (folder / NAME).write_text(begun + (folder / NAME).read_text("utf-8"), encoding="utf-8")
        chats.append(folder)
    reports = [await lore.imports.run(path) for path in (*chats, *chats)]
    assert [(report.rooms, report.added) for report in reports] == [
        (("Family",), 10), (("Family (2)",), 10), (("Family",), 0), (("Family (2)",), 0),
    ]  # fmt: skip
    later = await lore.imports.run(chat(tmp_path / "later" / "x", "Ann", "Bo", months=range(7, 8)))
    assert (later.rooms, later.added) == (("Family",), 8)


async def test_the_beginning_of_a_stored_chat_goes_into_its_room(lore, tmp_path):
    """Its creation is not later than the first message that is stored."""
    await lore.imports.run(chat(tmp_path / "late" / "x", "Ann", "Bo", months=range(6, 7)))
    folder = chat(tmp_path / "early" / "x", "Ann", "Bo", months=range(5, 6))
    begun = BEGUN.format(month=5, created="created this group", notice="Messages are end-to-end encrypted.")
    (folder / NAME).write_text(begun + (folder / NAME).read_text("utf-8"), encoding="utf-8")
    assert (await lore.imports.run(folder)).rooms == ("Family",)


def day(folder: Path, number: int, *people: str) -> Path:
    """Return an IRC log of the channel #general on this day."""
    folder.mkdir(parents=True, exist_ok=True)
    said = (f"2024-05-{number:02} 10:{minute:02}:00 <{who}> {number} {who}\n" for minute, who in enumerate(people))
    path = folder / f"#general.2024-05-{number:02}.log"
    path.write_text("".join(said))
    return path


async def test_days_of_two_channels_of_one_name_stay_apart(lore, tmp_path):
    libera, oftc = ("ann", "bo", "cem"), ("xu", "yan", "zed")
    for number in range(6, 10):
        first = await lore.imports.run(day(tmp_path / "libera", number, *libera))
        second = await lore.imports.run(day(tmp_path / "oftc", number, *oftc))
        assert (first.rooms, second.rooms) == (("#general",), ("#general (2)",))
    alone = await lore.imports.run(day(tmp_path / "libera", 11, *libera[:2], "new"))
    assert (alone.rooms, alone.continued) == (("#general",), ())


async def test_strangers_at_another_time_are_another_chat(lore, tmp_path):
    await lore.imports.run(day(tmp_path / "libera", 6, "ann", "bo", "cem"))
    report = await lore.imports.run(day(tmp_path / "oftc", 7, "xu", "yan", "zed"))
    assert (report.rooms, report.apart) == (("#general (2)",), {"#general (2)": "#general"})


async def test_the_chat_that_knows_the_people_continues_the_room(lore, tmp_path):
    await lore.imports.run(day(tmp_path / "first", 6, "bot", "ann", "bo", "cem"))
    new = day(tmp_path / "new", 7, "bot", "xu")
    old = day(tmp_path / "old", 7, "bot", "ann", "bo", "cem")
    report = await lore.imports.run([new, old])
    assert [file.rooms for file in report.files] == [("#general (new)",), ("#general",)]


async def test_a_folder_whose_days_went_into_two_rooms_stores_nothing_twice(lore, tmp_path):
    for number, people in ((6, ("ann", "bo", "eve")), (7, ("ann", "bo", "eve")), (8, ("xu", "yan", "zed"))):
        await lore.imports.run(day(tmp_path, number, *people))
    day(tmp_path, 9, "ann", "bo")
    report = await lore.imports.run(tmp_path)
    assert [file.rooms for file in report.files] == [("#general",), ("#general",), ("#general (2)",), ("#general",)]
    assert (report.added, report.duplicates) == (2, 9)


async def test_one_person_in_common_is_no_proof(lore, tmp_path):
    """The owner of a phone speaks in all of its chats."""
    await lore.imports.run(chat(tmp_path / "first", "Me", "Bob"))
    report = await lore.imports.run(chat(tmp_path / "second", "Me", "Rob", months=range(7, 8)))
    assert (report.rooms, report.continued) == (("Family",), ("Family",))


async def test_a_file_that_was_downloaded_twice_is_one_chat(lore, anna, tmp_path):
    await lore.imports.run(anna)
    (anna / NAME).rename(tmp_path / NAME.replace(".txt", " (1).txt"))
    report = await lore.imports.run(tmp_path / NAME.replace(".txt", " (1).txt"))
    assert (report.rooms, report.added) == (("Family",), 0)


async def test_long_paths_that_differ_at_their_ends_stay_apart(lore, tmp_path):
    deep = tmp_path / "all" / ("x" * 70) / ("y" * 70)
    chat(deep / "a", "Ann", "Bo")
    chat(deep / "b", "Cem", "Dan")
    chat(tmp_path / "all" / "c", "Eve", "Fay")
    report = await lore.imports.run(tmp_path / "all")
    assert len(report.rooms) == 3


async def test_an_import_that_is_cancelled_while_it_compares_ends_as_cancelled(lore, anna):
    await lore.imports.run(anna)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await lore.imports.run(anna)
    assert (await lore.imports.run(anna)).added == 0


async def test_a_room_with_a_label_is_continued(lore, tmp_path):
    for network, people in (("libera", ("ann", "bo")), ("oftc", ("xu", "zed"))):
        day(tmp_path / "all" / network, 6, *people)
    await lore.imports.run(tmp_path / "all")
    later = day(tmp_path / "all" / "libera", 7, "ann", "bo")
    assert (await lore.imports.run(later)).rooms == ("#general (libera)",)
    again = await lore.imports.run(tmp_path / "all")
    assert (again.added, set(again.rooms)) == (0, {"#general (libera)", "#general (oftc)"})


async def test_a_day_between_two_stays_a_part_of_the_channel(lore, tmp_path):
    await lore.imports.run(day(tmp_path, 7, "ann", "bo"))
    report = await lore.imports.run([day(tmp_path, 6, "ann", "bo"), day(tmp_path, 8, "ann", "bo")])
    assert (report.rooms, report.apart) == (("#general",), {})


def pictures(folder: Path, days: range, *, texts: int, who: str = "Ann") -> Path:
    """Return the export of a chat called Family with so many texts and ten pictures a day."""
    folder.mkdir(parents=True)
    said = ["hello"] * texts + [f"<attached: {number}.jpg>" for number in range(10)]
    lines = (
        f"[{number:02}.05.24, 10:{minute:02}:00] {who if text == 'hello' else who + 'a'}: {text}\n"
        for number in days
        for minute, text in enumerate(said)
    )
    (folder / NAME).write_text("".join(lines))
    return folder


async def test_a_chat_of_pictures_is_known_by_them(lore, tmp_path):
    await lore.imports.run(pictures(tmp_path / "part", range(13, 15), texts=3))
    report = await lore.imports.run(pictures(tmp_path / "whole", range(5, 25), texts=3))
    assert (report.rooms, report.duplicates) == (("Family",), 26)
    other = await lore.imports.run(pictures(tmp_path / "other", range(13, 15), texts=0, who="Zed"))
    assert other.rooms == ("Family (2)",)


async def test_a_chat_without_a_forgotten_person_is_still_the_same(lore, tmp_path):
    path = pictures(tmp_path / "chat", range(13, 20), texts=3)
    await lore.imports.run(path)
    await lore.privacy.forget("Ann")
    assert (await lore.imports.run(path)).rooms == ("Family",)


async def test_other_times_of_the_same_messages_are_no_other_chat(lore, tmp_path, anna):
    await lore.imports.run(anna, timezone="UTC")
    report = await lore.imports.run(anna, timezone="Europe/Berlin")
    assert (report.rooms, report.added, report.conflict_count) == (("Family",), 0, 8)


async def test_a_room_with_an_id_is_what_the_export_calls_it(lore, tmp_path):
    for folder, first in (("a", 0), ("b", 1)):
        (tmp_path / folder).mkdir()
        rows = [{"id": str(n), "room_id": "tea", "sender_id": "ann", "text": "x", "sent_at": 1714557600 + n}
                for n in range(first, 20, 2)]  # fmt: skip
        (tmp_path / folder / "tea.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        report = await lore.imports.run(tmp_path / folder / "tea.jsonl")
        assert (report.rooms, report.added, report.apart, report.continued) == (("tea",), 10, {}, ())


async def test_a_chat_whose_messages_were_deleted_here_is_still_the_same(lore, anna):
    await lore.imports.run(anna)
    held = await lore.messages.page("Family")
    await lore.messages.delete("Family", [message.id for message in held[:6]])
    report = await lore.imports.run(anna)
    assert (report.rooms, report.deleted, report.duplicates) == (("Family",), 6, 2)


async def test_a_large_export_is_read_to_its_end_before_it_counts_as_another_chat(lore, tmp_path):
    await lore.imports.run(chat(tmp_path / "short", "Ann", "Bo", months=range(5, 6), hours=range(24)))
    whole = tmp_path / "whole"
    whole.mkdir()
    early = [f"[21.01.24, 10:{minute:02}:{second:02}] Ann: {second}\n" for minute in range(40) for second in range(60)]
    (whole / NAME).write_text("".join(early) + (tmp_path / "short" / NAME).read_text())
    report = await lore.imports.run(whole)
    assert (report.rooms, report.added, report.duplicates) == (("Family",), 2_400, 48)


async def test_a_given_room_is_taken_as_it_is(lore, anna, ben):
    for path in (anna, ben):
        report = await lore.imports.run(path, room_id="family")
        assert (report.rooms, report.apart, report.continued) == (("family",), {}, ())


def talks(folder: Path, *said: str) -> Path:
    """Return a file of conversations without ids and times, whose rooms are numbered."""
    folder.mkdir()
    told = [[{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}] for text in said]
    (folder / "talks.json").write_text(json.dumps([{"messages": one} for one in told]))
    return folder / "talks.json"


async def test_numbered_talks_of_two_files_stay_apart(lore, tmp_path):
    first = talks(tmp_path / "one", "which tea?", "which cup?")
    second = talks(tmp_path / "two", "which bus?", "which train?")
    wanted = [(await lore.imports.run(path)).rooms for path in (first, second)]
    assert wanted == [("talks-1", "talks-2"), ("talks (2)-1", "talks (2)-2")]
    again = [await lore.imports.run(path) for path in (second, first)]
    assert [(report.rooms, report.added) for report in again] == [(wanted[1], 0), (wanted[0], 0)]


async def test_a_channel_called_like_a_numbered_talk_is_a_room_of_its_own(lore, tmp_path):
    """`tea-2` is a channel, not the second talk of `tea`."""
    for workspace, who in (("a", "ann"), ("b", "bo")):
        for channel in ("tea", "tea-2"):
            folder = tmp_path / workspace / channel
            folder.mkdir(parents=True)
            said = {"type": "message", "user": who, "text": f"{channel} of {who}", "ts": "1714557600.000001"}
            (folder / "2024-05-01.json").write_text(json.dumps([said]))
        (tmp_path / workspace / "users.json").write_text("[]")
    rooms = [set((await lore.imports.run(tmp_path / one)).rooms) for one in ("a", "b")]
    assert rooms == [{"tea", "tea-2"}, {"tea (2)", "tea-2 (2)"}]


async def test_an_import_that_broke_off_goes_on_in_the_room_that_was_chosen(lore, anna, ben):
    await lore.imports.run(anna)

    def stop(done: int, total: int, read: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await lore.imports.run(ben, progress=stop)
    report = await lore.imports.run(ben)
    assert report.resumed
    assert [(room.room_id, room.messages) for room in await lore.rooms.page()] == [("Family", 8), ("Family (2)", 8)]


async def test_tenants_know_nothing_of_each_others_rooms(tmp_path, anna, ben):
    for tenant, path in (("a", anna), ("b", ben)):
        async with roomlore.open(f"sqlite:///{tmp_path}/chat.db", tenant=tenant, background=False) as lore:
            assert (await lore.imports.run(path)).rooms == ("Family",)
