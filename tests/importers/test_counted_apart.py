"""The importers of Chinese chats find in every sample what a second reader found, who shares no code with them."""

import ast
import zipfile
from collections.abc import Sequence
from pathlib import Path

import catalogue
import counted_apart
import pytest
from counted_apart import COUNT, Counted

from roomlore.core.models import Message, Role
from roomlore.importers import FORMATS, Item, Parsed

OTHER_FORMATS = {
    "chatgpt", "discord", "irc", "jsonl", "lark", "openai", "slack", "telegram", "whatsapp",
}  # fmt: skip
"""Formats whose samples nobody counts here."""


def imported(path: Path) -> list[Item]:
    return catalogue.items(path, timezone="Asia/Shanghai")


def differences(counted: Sequence[Counted], items: Sequence[Item]) -> list[str]:
    """Return what the importer reads in another way than the second reader, in words; empty if they agree."""
    parsed = [item for item in items if isinstance(item, Parsed)]
    if len(parsed) < len(items):
        return ["lines that the importer cannot read"]
    recalled = {(item.message.room_id, item.deletes) for item in parsed if item.deletes}
    gone = [one for one in map(_message, parsed) if _is_recalled(one, recalled)]
    found = [one for one in map(_message, parsed) if not _is_recalled(one, recalled)]
    meant = [one for one in counted if not one.recalled]
    if len(found) != len(meant) or len(gone) != len(counted) - len(meant):
        return [f"{len(found)} messages and {len(gone)} recalled, not {len(meant)} and {len(counted) - len(meant)}"]
    told = [*_rooms(meant, found), *_leaks(counted, found)]
    places = {(one.room_id, one.id): place for place, one in enumerate(found)}
    meant_places = {one.id: place for place, one in enumerate(meant)}
    for one, message in zip(meant, found, strict=True):
        answered = {meant_places[each] for each in one.answers}
        reply = places.get((message.room_id, message.reply_to or ""))
        if message.reply_to and reply is None:
            told.append(f"{one.id}: answers {message.reply_to!r}, which is not there")
        elif reply not in (answered or {None}):
            told.append(f"{one.id}: answers the message {reply}, not one of {answered}")
        told += [f"{one.id}: {what}" for what in _unlike(one, message)]
    return told


def _message(item: Parsed) -> Message:
    return item.message


def _is_recalled(message: Message, recalled: set[tuple[str, str]]) -> bool:
    return (message.room_id, message.id) in recalled or message.metadata.get("deleted") is True


def _rooms(meant: Sequence[Counted], found: Sequence[Message]) -> list[str]:
    pairs = {(one.room, message.room_id) for one, message in zip(meant, found, strict=True)}
    apart = len(pairs) == len({room for room, _ in pairs}) == len({room for _, room in pairs})
    return [] if apart else [f"rooms are mixed: {sorted(pairs)}"]


def _leaks(counted: Sequence[Counted], found: Sequence[Message]) -> list[str]:
    texts = [one.text for one in counted if one.recalled and one.text]
    return [f"the recalled text {text!r} is there" for text in texts if any(text in one.text for one in found)]


def _unlike(one: Counted, message: Message) -> list[str]:
    told = []
    if message.sent_at != one.at:
        told.append(f"said at {message.sent_at}, not {one.at}")
    if (message.role is Role.SYSTEM) != (one.sender is None):
        told.append(f"a line of the {message.role}, but the sender is {one.sender}")
    if one.sender is not None and message.sender_id != one.sender:
        told.append(f"said by {message.sender_id!r}, not {one.sender!r}")
    if one.sender is not None and message.sender_name != (one.name or ""):
        told.append(f"said by one called {message.sender_name!r}, not {one.name!r}")
    if sorted(message.mentions) != sorted(one.mentions):
        told.append(f"mentions {message.mentions}, not {one.mentions}")
    if one.text is not None and message.text != one.text:
        told.append(f"says {message.text!r}, not {one.text!r}")
    if not _in_order(one.words, message.text):
        told.append(f"says {message.text!r} without {one.words} in this order")
    return told


def _in_order(words: Sequence[str], text: str) -> bool:
    at = 0
    for word in words:
        at = text.find(word, at)
        if at < 0:
            return False
        at += len(word)
    return True


@pytest.mark.parametrize("name", COUNT)
def test_the_importer_reads_what_the_second_reader_counts(name):
    path = catalogue.SAMPLES / name
    counted = COUNT[name](path)
    assert counted
    assert differences(counted, imported(path)) == []


def test_a_zip_of_chunks_reads_as_its_folder(tmp_path):
    folder, path = catalogue.SAMPLES / "private_10002_chunked", tmp_path / "private_10002_chunked.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(one for one in folder.rglob("*") if one.is_file()):
            archive.write(file, f"{folder.name}/{file.relative_to(folder).as_posix()}")
    counted = counted_apart.qq_exporter(path)
    assert counted == counted_apart.qq_exporter(folder)
    assert differences(counted, imported(path)) == []


def test_every_sample_of_a_chinese_format_is_counted():
    chinese = {name for name, form in catalogue.FORMAT_OF.items() if form not in OTHER_FORMATS}
    assert set(COUNT) == chinese
    assert {path.name for path in catalogue.SAMPLES.iterdir()} == set(catalogue.FORMAT_OF)
    assert set(FORMATS) > OTHER_FORMATS


def test_the_second_reader_shares_no_code_with_the_importers():
    tree = ast.parse(Path(counted_apart.__file__).read_text(encoding="utf-8"))
    modules = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    assert not [name for name in modules if name.startswith(("roomlore", "catalogue"))]


BROKEN = [
    ("登山队.chatlab.json", '"replyToMessageId": "a1"', '"replyToMessageId": "a2"', "a2: answers"),
    ("读书会.chatlog.csv", "> 李四(wxid_ls) 11-09 09:01:00", "> 李四(wxid_ls) 11-09 09:02:00", "#7: answers"),
    ("读书会.txt", "引用:张三:这周读第三章", "引用:张三:这周读第四章", "#1: answers"),
    ("bot.onebot.jsonl", "[CQ:at,qq=30003]", "[CQ:at,qq=30004]", "503: mentions"),
    ("登山队.qce.json", '"uin": "10001",\n              "name"', '"uin": "10002",\n              "name"', "mentions"),
    ("读书会.weflow.json", '"createTime": 1762650060', '"createTime": 1762650061', "6002: said at"),
    ("archive.wecom.jsonl", '"pre_msgid": "4_176"', '"pre_msgid": "1_176"', "recalled text '工资条在我桌上' is there"),
    ("group_700701_20251109.json", '"isRecalled": true', '"isRecalled": false', "3 messages and 0 recalled"),
    ("登山队.chatlab.json", '"type": 81', '"type": 0', "8 messages and 0 recalled"),
    ("登山队.chatlab.json", '"groupNickname": "林工"', '"groupNickname": "lin"', "a1: said by one called 'lin'"),
    ("读书会.pywxdump.csv", "0,wxid_zs,900@chatroom,这周", "0,wxid_ls,900@chatroom,这周", "880001: said by"),
    ("同学群.txt", "8:44:09 PM", "8:44:09 AM", "#3: said at"),
    ("读书会.memotrace.csv", "下周第四章", "下周第五章", "1: says"),
    ("history.onebot.json", "改到周日", "改到周一", "701: says"),
    ("bot.onebot.jsonl", '"message_id": 502, "group_id": 700700', '"message_id": 502, "group_id": 700701', "rooms"),
]


@pytest.mark.parametrize(("name", "whole", "broken", "told"), BROKEN, ids=lambda value: None)
def test_a_broken_copy_is_told_from_its_sample(name, whole, broken, told, tmp_path):
    """Each field is compared: a reader that gets one of them wrong is found out."""
    text = (catalogue.SAMPLES / name).read_bytes().decode("utf-8")
    assert whole in text
    (tmp_path / name).write_bytes(text.replace(whole, broken).encode("utf-8"))
    found = differences(COUNT[name](catalogue.SAMPLES / name), imported(tmp_path / name))
    assert any(told in one for one in found), found
