"""Exports as apps hand them out: folders and zips with one chat or several, among pictures and documents."""

import gzip
import json
import tracemalloc
import zipfile
from pathlib import Path

import catalogue
import pytest

import roomlore
from roomlore import InvalidInput
from roomlore_importers import ExportFile, export_files, find, find_exports, open_import

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
        with open_import(file.path, file.format, member=file.member) as export:
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


def test_one_export_is_found_with_its_format(tmp_path):
    folder = laid(tmp_path / "ChatExport", {"result.json": telegram(5, "茶")} | ATTACHMENTS)
    assert find_exports(folder) == [ExportFile(folder / "result.json", None, "telegram")]
    assert find_exports(folder / "result.json") == [ExportFile(folder / "result.json")]
    assert rooms(folder) == {"5": ["茶"]}
    slack = catalogue.SAMPLES / "slack"
    assert find_exports(slack) == [ExportFile(slack, None, "slack")]


MIXED = {
    "ChatExport_1/result.json": telegram(5, "茶会"),
    "ChatExport_1/files/notes.txt": "milk\n",
    "Acme/users.json": "[]",
    "Acme/general/2024-05-01.json": json.dumps([{"type": "message", "ts": "1714557600.1", "user": "U1", "text": "早"}]),
    "WhatsApp Chat with Lena.txt": LENA,
}


@pytest.mark.parametrize("packed_up", [False, True], ids=["folder", "zip"])
def test_exports_of_several_programs_are_each_read_in_their_format(tmp_path, packed_up):
    """A regression: one format was told for all, and what it could not read was dropped without a word."""
    path = packed(tmp_path / "mix.zip", MIXED) if packed_up else laid(tmp_path / "mix", MIXED)
    found = find(path)
    assert [one.format for one in found.exports] == ["slack", "telegram", "whatsapp"]
    assert found.left_out == []
    assert sorted(text for texts in rooms(path).values() for text in texts) == sorted(
        ["happy new year", "新年快乐", "早", "茶会"]
    )


def test_every_sample_is_found_among_all_of_them():
    found = find(catalogue.SAMPLES)
    inside = {one.path.relative_to(catalogue.SAMPLES).parts[0]: one.format for one in found.exports}
    assert inside == catalogue.FORMAT_OF
    assert len(found.exports) == len(catalogue.FORMAT_OF)
    assert found.left_out == []


def test_the_own_folder_of_a_slack_export_has_lists_or_days_of_messages(tmp_path):
    day = MIXED["Acme/general/2024-05-01.json"]
    laid(tmp_path / "deep", {"a/b/general/2024-05-01.json": day, "a/other.txt": LENA})
    assert [one.path.relative_to(tmp_path).as_posix() for one in find_exports(tmp_path)] == [
        "deep/a/b",
        "deep/a/other.txt",
    ]
    logs = "".join(
        json.dumps({"id": n, "sender_id": "ann", "text": "hi", "ts": 1714557600 + n}) + "\n" for n in range(3)
    )
    laid(tmp_path / "logs", {"general/2024-05-01.json": logs})
    assert [one.format for one in find_exports(tmp_path / "logs")] == ["jsonl"]


@pytest.mark.parametrize(
    "files",
    [
        {"result.json": telegram(5, "茶"), "files/WhatsApp Chat with Lena.txt": LENA, "files/a.txt": "milk"},
        {"result.json": telegram(5, "茶"), "chats/chat_001/files/lena.txt": LENA},
        {"Acme/users.json": "[]", "Acme/general/2024-05-01.json": MIXED["Acme/general/2024-05-01.json"]}
        | {"Acme/general/attachments/F1-lena.txt": LENA, "Acme/__uploads/F2/b.txt": "eggs"},
        {"c [81].json": discord("81", "hello"), "c [81].json_Files/lena-0A1B2.txt": LENA},
        {"c [81].json": discord("81", "hello"), "media of c/lena-0A1B2.txt": LENA, "media of c/b-0A1B3.txt": "eggs"},
        {"WhatsApp Chat - Jo/_chat.txt": OTTO, "WhatsApp Chat - Jo/00000012-lena.txt": LENA},
        {"WhatsApp Chat with Jo.txt": f"{OTTO}[01.01.24, 09:06:00] Jo: lena.txt (file attached)\n", "lena.txt": LENA},
        {"conversations.json": (catalogue.SAMPLES / "conversations.json").read_text("utf-8")}
        | {"user.json": "{}", "file-AbCdEfGh12-lena.txt": LENA},
    ],
    ids=["telegram", "account", "slack", "discord", "discord-folder", "iphone", "android", "chatgpt"],
)
def test_what_was_sent_in_a_chat_is_no_chat_and_named_if_it_looks_like_one(tmp_path, files):
    for path in (laid(tmp_path / "all", files), packed(tmp_path / "all.zip", files)):
        found = find(path)
        assert len(found.exports) == 1
        assert [Path(one.name).name.lower().endswith((".txt",)) for one in found.left_out] == [True]
        assert "lena" in found.left_out[0].name.lower()
        assert "was sent in a chat of" in found.left_out[0].reason


def test_what_may_be_an_export_and_is_not_read_is_named(tmp_path):
    folder = laid(tmp_path / "all", MIXED | {"odd.txt": "milk\neggs\n", "none.json": ""})
    (folder / "broken.zip").write_bytes(b"PK\x03\x04 cut off")
    packed(folder / "inner.zip", {"_chat.txt": OTTO})
    packed(folder / "outer.zip", {"more.zip": "PK"})
    found = {Path(one.name).name: one.reason for one in find(folder).left_out}
    assert found.keys() == {"odd.txt", "none.json", "broken.zip", "more.zip"}
    assert (found["odd.txt"], found["none.json"]) == ("its format cannot be told by looking", "it is empty")
    assert "cannot be read as a zip" in found["broken.zip"]
    only = find(folder, "slack")
    assert [one.path.name for one in only.exports] == ["Acme"]
    assert {"result.json", "WhatsApp Chat with Lena.txt", "_chat.txt"} <= {Path(one.name).name for one in only.left_out}


def test_a_file_that_only_resembles_a_format_does_not_end_the_import_of_a_folder(tmp_path):
    lines = "".join(json.dumps({"id": n, "name": "x"}) + "\n" for n in range(9))
    folder = laid(tmp_path / "all", {"lena.txt": LENA, "list.jsonl": lines})
    assert [one.path.name for one in find_exports(folder)] == ["lena.txt"]
    assert ["nearly all of its messages have no" in one.reason for one in find(folder).left_out] == [True]


async def test_the_report_says_what_was_read_of_each_export(tmp_path):
    folder = laid(tmp_path / "mix", MIXED | {"odd.txt": "milk\neggs\n"})
    async with roomlore.open("sqlite://") as lore:
        report = await lore.imports.run(folder)
    assert [(one.format, one.read, one.added, len(one.rooms)) for one in report.files] == [
        ("slack", 1, 1, 1), ("telegram", 1, 1, 1), ("whatsapp", 2, 2, 1),
    ]  # fmt: skip
    assert [Path(one.name).name for one in report.files] == ["Acme", "result.json", "WhatsApp Chat with Lena.txt"]
    assert ([Path(one.name).name for one in report.left_out], report.left_out_count) == (["odd.txt"], 1)


COMPRESSED = {
    "#general.log.gz": ("irc", "2024-05-01 10:00:00 <ann> which compiler?\n", "#general"),
    "result.json.gz": ("telegram", telegram(5, "茶会"), "5"),
    "Lena.txt.GZ": ("whatsapp", LENA, "Lena"),
    "tea.jsonl.gz": ("jsonl", json.dumps({"id": "1", "sender_id": "ann", "text": "a", "sent_at": "2024-05-01"}), "tea"),
}


async def test_old_logs_that_were_compressed_belong_to_the_room_of_the_new_one(tmp_path):
    folder = laid(tmp_path / "all", {"irc.libera.#general.weechatlog": WEECHAT.format("ann", 1, "bo")})
    for number in (1, 12):
        text = f"2024-04-{number:02} 10:00:00\t<cem>\tan old question {number}?\n"
        (folder / f"irc.libera.#general.weechatlog.{number}.gz").write_bytes(gzip.compress(text.encode()))
    async with roomlore.open("sqlite://", background=False) as lore:
        report = await lore.imports.run(folder)
    assert (report.rooms, report.added, report.exports) == (("#general",), 4, 3)


@pytest.mark.parametrize("name", COMPRESSED)
async def test_a_compressed_file_is_read_as_what_is_in_it(tmp_path, name):
    form, text, room = COMPRESSED[name]
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / name).write_bytes(gzip.compress(text.encode()))
    assert [one.format for one in find(tmp_path / "all").exports] == [form]
    for path in (tmp_path / "all", tmp_path / "all" / name):
        async with roomlore.open("sqlite://", background=False) as lore:
            seen: list[tuple[int, int]] = []
            report = await lore.imports.run(path, progress=lambda done, total, _, seen=seen: seen.append((done, total)))
        assert (report.format, report.rooms, report.bad_count) == (form, (room,), 0)
        assert report.total_bytes == len(text.encode())
        assert all(done <= total for done, total in seen)


def test_a_compressed_file_can_be_gone_on_with(tmp_path):
    path = tmp_path / "tea.jsonl.gz"
    lines = [
        json.dumps({"id": str(n), "sender_id": "ann", "text": f"词 {n}", "sent_at": "2024-05-01"}) for n in range(50)
    ]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    with open_import(path) as export:
        items = list(export)
    with open_import(path, resume_from=items[20].position) as export:
        assert [item.message.id for item in export] == [str(n) for n in range(21, 50)]


def test_a_damaged_compressed_file_and_archives_are_named_with_what_to_do(tmp_path):
    folder = laid(tmp_path / "all", {"Lena.txt": LENA})
    whole = gzip.compress(OTTO.encode() * 100)
    (folder / "cut.txt.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "no.txt.gz").write_bytes(b"hello")
    (folder / "logs.tar.gz").write_bytes(gzip.compress(b"x"))
    packed(folder / "b.zip", {"Otto.txt": OTTO, "old.log.gz": "x"})
    found = {Path(one.name).name: one.reason for one in find(folder).left_out}
    assert found.keys() == {"cut.txt.gz", "no.txt.gz", "logs.tar.gz", "old.log.gz"}
    assert "cannot be read as gzip" in found["cut.txt.gz"]
    assert "cannot be read as gzip" in found["no.txt.gz"]
    assert found["logs.tar.gz"] == "it is an archive of several files: unpack it"
    assert found["old.log.gz"] == "it is a compressed file inside a zip: unpack it"
    with pytest.raises(InvalidInput, match="cannot be read as gzip"):
        open_import(folder / "cut.txt.gz")


def test_a_file_made_to_fill_a_disk_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(export_files, "_MOST_UNPACKED", 1 << 20)
    piece = gzip.compress(b"0" * (1 << 20))
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(piece * 40)
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="more than 200 times its size"):
        open_import(path)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


TELEGRAM_PAGE = """<!DOCTYPE html>
<html>

 <head>

  <meta charset="utf-8"/>
  <title>Exported Data</title>
  <meta content="width=device-width, initial-scale=1.0" name="viewport"/>

  <link href="css/style.css" rel="stylesheet"/>
  <script src="js/script.js" type="text/javascript">

  </script>

 </head>

 <body onload="CheckLocation();">

  <div class="page_wrap">
"""
DISCORD_PAGE = """<!DOCTYPE html>
<html lang=en>
<head>
    <title>Tea - general</title>
    <meta charset=utf-8>
    <style>
        .chatlog__message-group { display: grid; }
    </style>
</head>
"""
CHATGPT_PAGE = "<html><head><title>ChatGPT Data Export</title></head><body><script>var jsonData = [];</script>"


def test_chats_exported_as_html_are_named_with_what_to_do(tmp_path):
    pages = {
        "ChatExport/messages.html": TELEGRAM_PAGE,
        "ChatExport/messages2.html": TELEGRAM_PAGE,
        "ChatExport/css/style.css": "",
        "Tea - general [81].html": DISCORD_PAGE,
        "gpt/chat.html": CHATGPT_PAGE,
        "page.html": "<html><head><title>A recipe</title></head><body>soup</body></html>",
    }
    for path in (
        laid(tmp_path / "all", pages | {"Lena.txt": LENA}),
        packed(tmp_path / "a.zip", pages | {"Lena.txt": LENA}),
    ):
        found = find(path)
        assert [one.format for one in found.exports] == ["whatsapp"]
        told = {Path(one.name).name: one.reason for one in found.left_out}
        assert told.keys() == {"messages.html", "Tea - general [81].html", "chat.html"}
        assert "machine-readable JSON" in told["messages.html"]
        assert "--format Json" in told["Tea - general [81].html"]
        assert "conversations.json" in told["chat.html"]
    alone = laid(tmp_path / "alone", {"messages.html": TELEGRAM_PAGE})
    for place in (alone, alone / "messages.html"):
        with pytest.raises(InvalidInput, match="export the chat again, as machine-readable JSON"):
            open_import(place)


def test_a_page_beside_the_same_export_as_json_is_not_named(tmp_path):
    folder = laid(
        tmp_path / "all",
        {
            "ChatExport/result.json": telegram(5, "茶"),
            "ChatExport/messages.html": TELEGRAM_PAGE,
            "d/c [81].json": discord("81", "hello"),
            "d/c [81].html": DISCORD_PAGE,
        },
    )
    assert len(find(folder).exports) == 2
    assert find(folder).left_out == []


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


FAMILY = "[01.05.24, 10:00:00] {}: soup at {}?\n[01.05.24, 10:01:00] {}: 好的\n"
LIBERA = "2024-05-01 10:00:00\t<ann>\twhich compiler?\n"
WEECHAT = "2024-05-01 10:00:00\t{}\twhich compiler at {}?\n2024-05-01 10:01:00\t{}\tthe new one\n"
ALIKE = {
    "whatsapp": (
        {
            "anna/WhatsApp Chat with Family.txt": FAMILY.format("Ann", 7, "Bo"),
            "ben/WhatsApp Chat with Family.txt": FAMILY.format("Cem", 8, "Dan"),
        },
        {"Family (anna)", "Family (ben)"},
    ),
    "irc": (
        {
            "libera/#general.log": "2024-05-01 10:00:00 <ann> which compiler?\n",
            "oftc/#general.log": "2024-05-01 10:00:00 <bo> who reviews?\n",
        },
        {"#general (libera)", "#general (oftc)"},
    ),
    "weechat": (
        {
            "irc.libera.#general.weechatlog": WEECHAT.format("ann", 1, "bo"),
            "irc.oftc.#general.weechatlog": WEECHAT.format("cem", 2, "dan"),
        },
        {"#general (irc.libera)", "#general (irc.oftc)"},
    ),
    "slack": (
        {
            f"{name}/{file}": text
            for name, who in (("Acme", "U1"), ("Beta", "U2"))
            for file, text in {
                "users.json": "[]",
                "general/2024-05-01.json": json.dumps(
                    [{"type": "message", "ts": "1714557600.1", "user": who, "text": f"早 {name}"}]
                ),
            }.items()
        },
        {"general (Acme)", "general (Beta)"},
    ),
    "jsonl": (
        {
            "one/talk.jsonl": json.dumps({"id": "1", "sender_id": "ann", "text": "hello", "sent_at": "2024-05-01"}),
            "two/talk.jsonl": json.dumps({"id": "1", "sender_id": "bo", "text": "你好", "sent_at": "2024-05-02"}),
        },
        {"talk (one)", "talk (two)"},
    ),
    "chatlab": (
        {
            f"{name}/chat.json": json.dumps(
                {
                    "chatlab": {"version": "0.0.1"},
                    "meta": {"name": "读书会", "platform": "wechat", "type": "group"},
                    "messages": [
                        {"sender": who, "accountName": who, "timestamp": 1714557600, "type": 0, "content": f"早 {who}"}
                    ],
                },
                ensure_ascii=False,
            )
            for name, who in (("anna", "ann"), ("ben", "bo"))
        },
        {"wechat/读书会 (anna)", "wechat/读书会 (ben)"},
    ),
    "a name that a folder has too": (
        {
            "phone/2/WhatsApp Chat with 2.txt": FAMILY.format("Ann", 7, "Bo"),
            "phone2/2/WhatsApp Chat with 2.txt": FAMILY.format("Cem", 8, "Dan"),
        },
        {"2 (phone)", "2 (phone2)"},
    ),
    "the first level": (
        {"#general.log": "10:00 <ann> which compiler?\n", "oftc/#general.log": "10:00 <bo> who reviews?\n"},
        {"#general", "#general (oftc)"},
    ),
}


@pytest.mark.parametrize("packed_up", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize("name", ALIKE)
async def test_chats_with_equal_names_have_rooms_of_their_own(tmp_path, name, packed_up):
    files, wanted = ALIKE[name]
    path = packed(tmp_path / "all.zip", files) if packed_up else laid(tmp_path / "all", files)
    async with roomlore.open("sqlite://", background=False) as lore:
        first = await lore.imports.run(path)
        assert set(first.rooms) == wanted
        assert {room for file in first.files for room in file.rooms} == wanted
        again = await lore.imports.run(path)
        assert (set(again.rooms), again.added, again.duplicates) == (wanted, 0, first.added)


async def test_paths_given_one_by_one_keep_equal_names_apart_too(tmp_path):
    files, wanted = ALIKE["whatsapp"]
    laid(tmp_path, files)
    async with roomlore.open("sqlite://", background=False) as lore:
        report = await lore.imports.run([tmp_path / name for name in files])
        assert set(report.rooms) == wanted
        alone = await lore.imports.run(tmp_path / next(iter(files)))
        assert (alone.rooms, alone.added) == (("Family (anna)",), 0), "the room that holds it"


LONG = "".join(f"[0{day}.05.24, 10:00:00] Ann: word {day} 词\n" for day in range(1, 9))
ONE_CHAT = {
    "a newer export": {
        "old/WhatsApp Chat with Family.txt": LONG,
        "new/WhatsApp Chat with Family.txt": LONG + "[09.05.24, 10:00:00] Ann: later\n",
    },
    "the end of it": {
        "old/WhatsApp Chat with Family.txt": LONG,
        "new/WhatsApp Chat with Family.txt": "".join(LONG.splitlines(keepends=True)[5:]),
    },
    "days": {
        "libera/2024/05/01/#general.log": "10:00 <ann> hello\n",
        "libera/2024/05/02/#general.log": "10:00 <bo> hi\n",
    },
    "years": {"2023/#general.log": "10:00 <ann> hello\n", "2024/#general.log": "10:00 <bo> hi\n"},
    "days in names": {"#general.2024-05-01.log": "10:00 <ann> hello\n", "#general.2024-05-02.log": "10:00 <bo> hi\n"},
    "ids": {"a/x [81].json": discord("81", "hello"), "b/x [81].json": discord("81", "hello")},
    "ids in lines": {
        "a/tea.jsonl": json.dumps(
            {"id": "1", "room_id": "tea", "sender_id": "ann", "text": "a", "sent_at": "2024-05-01"}
        ),
        "b/tea.jsonl": json.dumps(
            {"id": "2", "room_id": "tea", "sender_id": "ann", "text": "b", "sent_at": "2024-05-02"}
        ),
    },
}


@pytest.mark.parametrize("name", ONE_CHAT)
async def test_exports_of_one_chat_share_its_room(tmp_path, name):
    path = laid(tmp_path / "all", ONE_CHAT[name])
    async with roomlore.open("sqlite://", background=False) as lore:
        report = await lore.imports.run(path)
    assert len(report.rooms) == 1
    assert "(" not in report.rooms[0]


async def test_two_copies_of_one_chat_and_another_one_are_two_rooms(tmp_path):
    other = {"phone/WhatsApp Chat with Family.txt": FAMILY.format("Cem", 8, "Dan")}
    path = laid(tmp_path / "all", ONE_CHAT["a newer export"] | other)
    async with roomlore.open("sqlite://", background=False) as lore:
        report = await lore.imports.run(path)
    assert set(report.rooms) == {"Family (new)", "Family (phone)"}


async def test_an_import_of_equal_names_that_broke_off_goes_on_in_its_rooms(tmp_path):
    files, wanted = ALIKE["whatsapp"]
    path = laid(tmp_path / "all", files)

    def stop(done: int, total: int, read: int) -> None:
        raise KeyboardInterrupt

    async with roomlore.open("sqlite://", background=False) as lore:
        with pytest.raises(KeyboardInterrupt):
            await lore.imports.run(path, progress=stop)
        report = await lore.imports.run(path)
        assert (report.resumed, report.added) == (True, 2)
        assert {room.room_id for room in await lore.rooms.page()} == wanted


async def test_several_chats_never_go_into_one_room(tmp_path):
    folder = laid(tmp_path / "one", SEVERAL["telegram"][0])
    async with roomlore.open("sqlite://") as lore:
        with pytest.raises(InvalidInput, match="2 exports would all go into the room 'tea'"):
            await lore.imports.run(folder, room_id="tea")
        with pytest.raises(InvalidInput, match="nothing to import"):
            await lore.imports.run([])
        assert await lore.rooms.page() == []
