"""Every sample gives exactly what is expected of it, from the start or from any place in the middle."""

import json
import shutil

import catalogue
import pytest

import roomlore
from roomlore import InvalidInput
from roomlore.core.models import Role
from roomlore_importers import FORMATS, Parsed, detect, lark_message, onebot_message, onebot_recall, open_import
from roomlore_testkit.case_table import all_cases

NAMES = sorted(catalogue.FORMAT_OF)


def test_sample_reads_as_expected():
    with all_cases() as case:
        for name in NAMES:
            with case(name):
                found = [catalogue.described(item) for item in catalogue.items(catalogue.SAMPLES / name)]
                assert found == catalogue.expected(name)


def test_format_is_found_by_looking():
    with all_cases() as case:
        for name in NAMES:
            with case(name):
                assert detect(catalogue.SAMPLES / name) == catalogue.FORMAT_OF[name]


def test_every_format_has_a_sample():
    assert set(catalogue.FORMAT_OF.values()) == set(FORMATS)


def test_reading_goes_on_from_every_position():
    with all_cases() as case:
        for name in NAMES:
            with case(name):
                path = catalogue.SAMPLES / name
                straight = catalogue.items(path)
                for count, item in enumerate(straight, 1):
                    position = json.loads(json.dumps(item.position))
                    assert catalogue.items(path, resume_from=position) == straight[count:]


def test_ids_are_unique_in_a_room_even_when_all_share_one():
    with all_cases() as case:
        for name in NAMES:
            with case(name):
                for options in ({}, {"room_id": "all"}):
                    keys = [
                        (message.room_id, message.id)
                        for message in catalogue.messages(catalogue.SAMPLES / name, **options)
                    ]
                    assert len(keys) == len(set(keys))
                    assert all(options.get("room_id", room) == room for room, _ in keys)


def test_replies_still_find_their_target_in_a_given_room():
    def targets(name, **options):
        found = catalogue.messages(catalogue.SAMPLES / name, **options)
        places = {(message.room_id, message.id): place for place, message in enumerate(found)}
        return [(places.get((one.room_id, one.reply_to)), places.get((one.room_id, one.root_id))) for one in found]

    with all_cases() as case:
        for name in NAMES:
            with case(name):
                assert targets(name, room_id="all") == targets(name)


def test_progress_ends_at_the_total():
    with all_cases() as case:
        for name in NAMES:
            with case(name):
                with open_import(catalogue.SAMPLES / name) as reading:
                    seen = [reading.source.bytes_read for _ in reading]
                assert seen == sorted(seen)
                assert reading.source.bytes_read == reading.source.total_bytes > 0
                assert reading.parsed + reading.bad == len(seen)


def test_items_of_every_sample_have_times_in_utc():
    for name in NAMES:
        for item in catalogue.items(catalogue.SAMPLES / name):
            if isinstance(item, Parsed) and item.message.sent_at is not None:
                assert item.message.sent_at.utcoffset().total_seconds() == 0


def test_an_event_of_lark_gives_the_message_that_an_import_of_it_gives():
    path = catalogue.SAMPLES / "lark.events.jsonl"
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [lark_message(event) for event in events] == catalogue.messages(path)


@pytest.mark.parametrize(
    "event", [{}, {"event": {}}, {"message_id": "om_1"}, {"event": {"message": {"chat_id": "oc_1"}}}]
)
def test_what_is_no_event_of_lark_is_said_to_be_none(event):
    with pytest.raises(InvalidInput, match="no Lark message: give a whole event"):
        lark_message(event)


EVENTS = catalogue.SAMPLES / "bot.onebot.jsonl"


def test_an_event_of_onebot_gives_the_message_that_an_import_of_it_gives():
    events = [json.loads(line) for line in EVENTS.read_text(encoding="utf-8").splitlines()]
    spoken = [event for event in events if event["post_type"].startswith("message")]
    imported = [message for message in catalogue.messages(EVENTS) if message.role is not Role.SYSTEM]
    assert [onebot_message(event) for event in spoken] == imported


def test_a_recall_of_onebot_names_its_message():
    events = [json.loads(line) for line in EVENTS.read_text(encoding="utf-8").splitlines()]
    assert [recalled for event in events if (recalled := onebot_recall(event))] == [("700700", "505")]


@pytest.mark.parametrize("event", [{}, {"post_type": "meta_event"}, {"message_id": 1}, {"user_id": 1, "message": "x"}])
def test_what_is_no_message_of_onebot_is_said_to_be_none(event):
    with pytest.raises(InvalidInput, match="no OneBot v11 message: give a whole event"):
        onebot_message(event)


RECALLED_LATER = [
    ("lark.json", '"deleted": true', '"deleted": false', "This message was recalled"),
    ("group_700701_20251109.json", '"isRecalled": true', '"isRecalled": false', "密码是 8848"),
    (
        "Acme Slack export Jun 1 2024 - Jun 3 2024/general/2024-06-01.json",
        '"subtype": "tombstone",',
        "",
        "This message was deleted.",
    ),
]


@pytest.mark.parametrize(("name", "recalled", "before", "said"), RECALLED_LATER, ids=lambda value: None)
async def test_a_message_that_a_newer_export_calls_recalled_is_deleted(name, recalled, before, said, tmp_path):
    """It was stored with its text, which the newer export does not have: that is no conflict."""
    sample = name.split("/", 1)[0]
    if sample == name:
        shutil.copy(catalogue.SAMPLES / name, tmp_path / name)
    else:
        shutil.copytree(catalogue.SAMPLES / sample, tmp_path / sample)
    newer = (tmp_path / name).read_text(encoding="utf-8")
    (tmp_path / name).write_text(newer.replace(recalled, before), encoding="utf-8")
    async with roomlore.open("sqlite://", background=False) as lore:
        first = await lore.imports.run(tmp_path / sample)
        assert said in [text for room in first.rooms async for text in _texts(lore, room)]
        (tmp_path / name).write_text(newer, encoding="utf-8")
        for _ in range(2):
            again = await lore.imports.run(tmp_path / sample)
            assert (again.added, again.duplicates, again.deleted, again.conflicts) == (0, first.added - 1, 1, ())
            assert said not in [text for room in first.rooms async for text in _texts(lore, room)]


async def _texts(lore, room_id):
    async for message in lore.messages.export(room_id):
        yield message.text


async def test_a_recalled_message_is_deleted_by_the_import():
    async with roomlore.open("sqlite://", background=False) as lore:
        for _ in range(2):
            await lore.imports.run(EVENTS)
            texts = [message.text async for message in lore.messages.export("700700")]
            assert "我的手机号 13800000000" not in texts
            assert texts.count("撤回了一条消息") == 1
            assert not (await lore.messages.search("700700", "13800000000")).hits
