"""WhatsApp's zips of Android and iOS in sixteen languages: every message, author, time, text and file."""

import pytest
from whatsapp_locales import LOCALES, export, told

import roomlore
from roomlore_testkit.case_table import all_cases


@pytest.mark.parametrize("system", ["android", "ios"])
def test_a_zip_is_read_whole(system, tmp_path):
    with all_cases() as case:
        for locale in LOCALES:
            with case(locale.name):
                folder = tmp_path / locale.name
                folder.mkdir()
                name, packed = export(locale, system)
                (folder / name).write_bytes(packed)
                with roomlore.open_sync("sqlite://", background=False) as lore:
                    report = lore.imports.run(folder / name, timezone="UTC")
                    assert (report.format, report.bad_count, report.undated, len(report.rooms)) == ("whatsapp", 0, 0, 1)
                    assert report.rooms == ("Tea",)
                    found = lore.messages.page(report.rooms[0])
                    read = [
                        (one.sent_at.replace(tzinfo=None), one.sender_name, one.text, one.metadata.get("caption", ""))
                        for one in found
                    ]
                wanted = told(system)
                assert [(at, who, text) for at, who, text, _ in read] == [
                    (at, who, text) for at, who, text, _ in wanted
                ]
                assert [one.metadata.get("edited", False) for one in found[:4]] == [
                    False,
                    False,
                    False,
                    bool(locale.edited),
                ]
                assert [caption for *_, caption in read] == [caption for *_, caption in wanted]
                [left_out] = found[-1].metadata["attachments"]
                assert left_out == {"type": "picture" if system == "ios" else "file"}
