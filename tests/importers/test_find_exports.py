"""Exports as apps hand them out: folders and zips with one chat or several, among pictures and documents."""

import json
import zipfile
from pathlib import Path

import catalogue
import pytest

import roomlore
from roomlore import InvalidInput
from roomlore.importers import ExportFile, find_exports, open_import

LENA = "[31.12.23, 21:40:01] Lena: happy new year\n[31.12.23, 21:41:00] Jo: 新年快乐\n"
OTTO = "[01.01.24, 09:00:00] Otto: who is awake?\n[01.01.24, 09:05:00] Jo: nobody\n"


def telegram(chat: int, text: str) -> str:
    said = {
        "id": 1, "type": "message", "date": "2024-05-01T10:00:00", "date_unixtime": "1714557600", "from": "Anna",
        "from_id": "user1", "text": text, "text_entities": [],
    }  # fmt: skip
    return json.dumps({"name": text, "type": "private_group", "id": chat, "messages": [said]}, ensure_ascii=False)


def discord(channel: str, text: str) -> str:
    said = {"id": f"{channel}1", "type": "Default", "timestamp": "2024-05-01T10:00:00+00:00", "content": text}
    said["author"] = {"id": "7", "name": "anna", "isBot": False}
    export = {"guild": {"id": "1", "name": "G"}, "channel": {"id": channel, "type": "GuildTextChat", "name": "c"}}
    return json.dumps(export | {"messages": [said], "messageCount": 1})


def laid(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def packed(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def rooms(path: Path, form: str | None = None) -> dict[str, list[str]]:
    """Return the texts of the exports at a path by room."""
    found: dict[str, list[str]] = {}
    for file in find_exports(path, form):
        with open_import(file.path, form, member=file.member) as export:
            for item in export:
                found.setdefault(item.message.room_id, []).append(item.message.text)
    return found


ATTACHMENTS = {"files/notes.txt": "milk\neggs\n", "files/data.json": '{"a": [1, 2]}', "photos/1.jpg": "x"}
SEVERAL = {
    "telegram": (
        {"ChatExport_1/result.json": telegram(5, "茶会"), "ChatExport_2/result.json": telegram(6, "boat")},
        {"5": ["茶会"], "6": ["boat"]},
    ),
    "discord": (
        {"Tea - general [81].json": discord("81", "hello"), "Tea - 闲聊 [82].json": discord("82", "你好")},
        {"81": ["hello"], "82": ["你好"]},
    ),
    "whatsapp": (
        {"WhatsApp Chat with Lena.txt": LENA, "WhatsApp Chat with Otto.txt": OTTO},
        {"Lena": ["happy new year", "新年快乐"], "Otto": ["who is awake?", "nobody"]},
    ),
}


@pytest.mark.parametrize("form", SEVERAL)
@pytest.mark.parametrize("named", [True, False], ids=["named", "detected"])
def test_each_chat_of_a_folder_or_zip_has_its_room(tmp_path, form, named):
    files, wanted = SEVERAL[form]
    given = form if named else None
    assert rooms(laid(tmp_path / "all", files | ATTACHMENTS), given) == wanted
    assert rooms(packed(tmp_path / "all.zip", files | ATTACHMENTS), given) == wanted


def test_chats_that_an_iphone_calls_alike_keep_apart_in_one_zip(tmp_path):
    path = packed(
        tmp_path / "backup.zip", {"WhatsApp Chat - Lena/_chat.txt": LENA, "WhatsApp Chat - Otto/_chat.txt": OTTO}
    )
    assert rooms(path) == SEVERAL["whatsapp"][1]


def test_zips_in_a_folder_are_looked_into(tmp_path):
    packed(tmp_path / "WhatsApp Chat - Lena.zip", {"_chat.txt": LENA, "1.jpg": "x"})
    packed(tmp_path / "WhatsApp Chat - Otto.zip", {"_chat.txt": OTTO})
    packed(tmp_path / "pictures.zip", {"1.jpg": "x"})
    assert rooms(tmp_path) == SEVERAL["whatsapp"][1]


def test_one_export_is_found_as_it_was_given(tmp_path):
    folder = laid(tmp_path / "ChatExport", {"result.json": telegram(5, "茶")} | ATTACHMENTS)
    assert find_exports(folder) == [ExportFile(folder)]
    assert find_exports(folder / "result.json") == [ExportFile(folder / "result.json")]
    assert rooms(folder) == {"5": ["茶"]}
    slack = catalogue.SAMPLES / "slack"
    assert find_exports(slack) == [ExportFile(slack)]


def test_without_an_export_the_error_says_what_to_do(tmp_path):
    laid(tmp_path / "none", {"a.txt": "milk\n", "b.txt": "eggs\n"})
    with pytest.raises(InvalidInput, match="holds no chat export that can be told by looking: give the file"):
        find_exports(tmp_path / "none")
    laid(tmp_path / "other", SEVERAL["telegram"][0])
    with pytest.raises(InvalidInput, match="of the format discord"):
        find_exports(tmp_path / "other", "discord")
    with pytest.raises(InvalidInput, match="does not exist"):
        find_exports(tmp_path / "gone")
    with pytest.raises(InvalidInput, match="no format is called 'icq'"):
        find_exports(tmp_path / "other", "icq")


async def test_several_paths_make_one_report(tmp_path):
    first = laid(tmp_path / "one", SEVERAL["telegram"][0])
    second = packed(tmp_path / "two.zip", SEVERAL["whatsapp"][0])
    async with roomlore.open("sqlite://") as lore:
        report = await lore.imports.run([first, second])
        assert (report.exports, report.added, report.format) == (4, 6, "telegram, whatsapp")
        assert set(report.rooms) == {"5", "6", "Lena", "Otto"}
        again = await lore.imports.run([second, first])
        assert (again.added, again.duplicates) == (0, 6)


async def test_several_chats_never_go_into_one_room(tmp_path):
    folder = laid(tmp_path / "one", SEVERAL["telegram"][0])
    async with roomlore.open("sqlite://") as lore:
        with pytest.raises(InvalidInput, match="2 exports would all go into the room 'tea'"):
            await lore.imports.run(folder, room_id="tea")
        with pytest.raises(InvalidInput, match="nothing to import"):
            await lore.imports.run([])
        assert await lore.rooms.page() == []
