"""The importers find in every sample what a second reader found, who shares no code with them."""

import ast
import re
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

import catalogue
import counted_apart
import counted_messengers
import counted_phones
import pytest
from counted_apart import Counted

from roomlore.core.attachments import with_attachments
from roomlore.core.models import Message, Role
from roomlore_importers import FORMATS, Item, Parsed
from roomlore_testkit.case_table import all_cases

OTHER_FORMATS = {
    "chatgpt", "irc", "jsonl", "openai", "signal", "matrix", "mattermost", "rocketchat", "zulip", "googlechat", "meta",
    "teams",
}  # fmt: skip
"""Formats whose samples nobody counts here."""
WITH_ROOMS = counted_messengers.COUNT | counted_phones.COUNT
"""Samples whose second reader gives the rooms, and the ids if there are any."""
COUNT = counted_apart.COUNT | WITH_ROOMS


def imported(path: Path) -> list[Item]:
    return catalogue.items(path, timezone="Asia/Shanghai")


def differences(counted: Sequence[Counted], items: Sequence[Item], *, own: bool = False) -> list[str]:
    """Return what the importer reads in another way than the second reader, in words; empty if they agree.

    `own`: whether ids and rooms are those of the file.
    """
    parsed = [item for item in items if isinstance(item, Parsed)]
    if len(items) - len(parsed) != sum(one.unread for one in counted):
        return ["lines that the importer cannot read"]
    counted = [one for one in counted if not one.unread]
    recalled = {(item.message.room_id, item.deletes) for item in parsed if item.deletes}
    gone = [one for one in map(_message, parsed) if _is_recalled(one, recalled)]
    kept = [item for item in parsed if not _is_recalled(item.message, recalled)]
    found = [item.message for item in kept]
    meant = [one for one in counted if not one.recalled]
    if len(found) != len(meant) or len(gone) != len(counted) - len(meant):
        return [f"{len(found)} messages and {len(gone)} recalled, not {len(meant)} and {len(counted) - len(meant)}"]
    told = [*_rooms(meant, found), *_leaks(counted, found)]
    places = {(one.room_id, one.id): place for place, one in enumerate(found)}
    meant_places = {(one.room, one.id): place for place, one in enumerate(meant)}
    told += [each for one, item in zip(meant, kept, strict=True) for each in _edits(one, item)]
    if own:
        told += [each for one, message in zip(meant, found, strict=True) for each in _places(one, message)]
    for one, message in zip(meant, found, strict=True):
        answered = {meant_places.get((one.room, each), each) for each in one.answers}
        reply = places.get((message.room_id, message.reply_to or ""), message.reply_to)
        if reply not in (answered or {None}):
            told.append(f"{one.id}: answers the message {reply}, not one of {answered}")
        told += [f"{one.id}: {what}" for what in _unlike(one, message)]
    return told


def _edits(one: Counted, item: Parsed) -> list[str]:
    told = []
    if item.edited_at != one.edited:
        told.append(f"{one.id}: edited at {item.edited_at}, not {one.edited}")
    if (item.message.metadata.get("edited") is True) != one.was_edited:
        told.append(f"{one.id}: {'not ' if one.was_edited else ''}edited")
    return told


def _places(one: Counted, message: Message) -> list[str]:
    """Return in what an id, a room or a thread is another; not all of the Chinese exports have them."""
    told = []
    if not one.id.startswith("#") and message.id != one.id:
        told.append(f"{one.id}: has the id {message.id!r}")
    if message.room_id != one.room:
        told.append(f"{one.id}: said in {message.room_id!r}, not {one.room!r}")
    if (message.root_id or None) != one.root:
        told.append(f"{one.id}: in the thread of {message.root_id!r}, not {one.root!r}")
    if message.topic_id != one.topic:
        told.append(f"{one.id}: in the topic {message.topic_id!r}, not {one.topic!r}")
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
    said, wanted = (message.text, one.words) if message.text else (with_attachments(message, "zh"), _labels(one.words))
    if not _in_order(wanted, said):
        told.append(f"says {said!r} without {wanted} in this order")
    held = [each.get(key, "") for each in message.metadata.get("attachments", []) for key in ("name", "caption")]
    shown = " ".join((message.text, message.metadata.get("caption", ""), *held))
    if one.reactions and message.metadata.get("reactions") != one.reactions:
        told.append(f"has the reactions {message.metadata.get('reactions')}, not {one.reactions}")
    told += [f"shows {shown!r} without {word!r}" for word in one.shown if word not in shown]
    if one.bot is not None and (message.role is Role.ASSISTANT) != one.bot:
        told.append(f"said by the {message.role}, which is {'a' if one.bot else 'no'} program")
    return told


def _labels(words: Sequence[str]) -> list[str]:
    """Return the words for what a message without text holds, as a reader is shown them."""
    plain = (word.translate(str.maketrans("[]", "  ")).split() for word in words)
    return [re.sub("动画表情|表情包", "表情", piece) for pieces in plain for piece in pieces]


def _in_order(words: Sequence[str], text: str) -> bool:
    at = 0
    for word in words:
        at = text.find(word, at)
        if at < 0:
            return False
        at += len(word)
    return True


def test_the_importer_reads_what_the_second_reader_counts():
    with all_cases() as case:
        for name in COUNT:
            with case(name):
                path = catalogue.SAMPLES / name
                counted = COUNT[name](path)
                assert counted
                assert differences(counted, imported(path), own=name in WITH_ROOMS) == []


@pytest.mark.parametrize("name", sorted(catalogue.FOLDERS & set(counted_messengers.COUNT)))
@pytest.mark.parametrize("inside", [True, False], ids=["in a folder", "flat"])
def test_a_zip_reads_as_its_folder(name, inside, tmp_path):
    folder, path = catalogue.SAMPLES / name, tmp_path / f"{name}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(one for one in folder.rglob("*") if one.is_file()):
            place = file.relative_to(folder).as_posix()
            archive.write(file, f"{name}/{place}" if inside else place)
    counted = COUNT[name](path)
    assert counted == COUNT[name](folder)
    assert differences(counted, imported(path), own=True) == []


def test_a_zip_of_chunks_reads_as_its_folder(tmp_path):
    folder, path = catalogue.SAMPLES / "private_10002_chunked", tmp_path / "private_10002_chunked.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(one for one in folder.rglob("*") if one.is_file()):
            archive.write(file, f"{folder.name}/{file.relative_to(folder).as_posix()}")
    counted = counted_apart.qq_exporter(path)
    assert counted == counted_apart.qq_exporter(folder)
    assert differences(counted, imported(path)) == []


def test_every_sample_of_these_formats_is_counted():
    read = {name for name, form in catalogue.FORMAT_OF.items() if form not in OTHER_FORMATS}
    assert set(COUNT) == read
    assert {path.name for path in catalogue.SAMPLES.iterdir()} == set(catalogue.FORMAT_OF)
    assert set(FORMATS) > OTHER_FORMATS


def test_the_second_reader_shares_no_code_with_the_importers():
    readers = (counted_apart, counted_messengers, counted_phones)
    trees = [ast.parse(Path(reader.__file__).read_text(encoding="utf-8")) for reader in readers]
    modules = {
        name
        for node in (node for tree in trees for node in ast.walk(tree))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    assert not [name for name in modules if name.startswith(("roomlore", "catalogue"))]


FORUM = "ChatExport_2024-06-02/result.json"
GLOVE = "Hikers - trips - Lost glove [7002].json"
ACME = "Acme Slack export Jun 1 2024 - Jun 3 2024/general/2024-06-01.json"
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
    (FORUM, '"reply_to_message_id": 3,', '"reply_to_message_id": 5,', "4: answers"),
    (FORUM, '"reply_to_message_id": 2,', '"reply_to_message_id": 1,', "3: in the topic None"),
    (FORUM, '"date_unixtime": "1717228920"', '"date_unixtime": "1717228921"', "3: said at"),
    (FORUM, '"edited_unixtime": "1717230600"', '"edited_unixtime": "1717230601"', "21: edited at"),
    (FORUM, '"user_id": 12', '"user_id": 13', "24: mentions"),
    (FORUM, '"from_id": "user777"', '"from_id": "user778"', "19: said by 'user778'"),
    (FORUM, '"text": "周日"', '"text": "周一"', "6: shows"),
    (FORUM, '"href": "https://example.org/rope"', '"href": "https://example.org/r"', "4: says"),
    (FORUM, '"count": 2', '"count": 3', "21: has the reactions"),
    (FORUM, '"type": "unsupported"', '"type": "message"', "lines that the importer cannot read"),
    (FORUM, '"id": 1555000111', '"id": 1555000112', "1: said in '1555000112'"),
    (
        GLOVE,
        '"messageId": "201",\n        "channelId": "7002"',
        '"messageId": "200",\n        "channelId": "7002"',
        "202:",
    ),
    (GLOVE, '"messageId": "150"', '"messageId": "151"', "203: answers"),
    (GLOVE, '"content": "The hut is closed on Monday"', '"content": ""', "206: shows"),
    (GLOVE, '"isBot": true', '"isBot": false', "204: said by the user, which is a program"),
    (GLOVE, '"value": "help wanted"', '"value": ""', "204: shows"),
    (GLOVE, "16:11:00.25+08:00", "16:11:00.25+07:00", "211: said at"),
    (GLOVE, '"type": "RecipientAdd"', '"type": "Default"', "209: a line of the user"),
    ("WhatsApp Chat with Choir.txt", "@491701234567", "@491701234568", "#18: mentions"),
    ("WhatsApp Chat with Choir.txt", "09:05 - Bob 🎻: This message was deleted", "09:05 - Bob 🎻: hi", "1 recalled"),
    ("WhatsApp Chat with Choir.txt", " <This message was edited>", "", "#11: not edited"),
    (
        "WhatsApp Chat with Choir.txt",
        '"Choir" to "Choir: Tuesday"',
        "Choir to Choir: Tuesday",
        "#4: a line of the user",
    ),
    ("WhatsApp Chat with Bob.txt", "12:00\u202fAM", "12:00\u202fPM", "#1: said at"),
    ("WhatsApp Chat - Choir/_chat.txt", "00000014-Plan.pdf", "00000014-Plam.pdf", "#13: shows"),
    ("WhatsApp Chat - Choir/_chat.txt", "@\u2068Ann Lee\u2069", "@Ann Lee", "#15: mentions"),
    (
        ACME,
        '"thread_ts": "1717228860.000300",\n        "parent',
        '"thread_ts": "1717228810.000200",\n        "parent',
        "in the",
    ),
    (ACME, '"subtype": "tombstone"', '"subtype": ""', "0 recalled"),
    (ACME, "<@U01|ann> I", "<@U02|ann> I", "mentions"),
    (ACME, '"text": "waves"', '"text": "waved"', "says 'waved'"),
    (ACME, '"ts": "1717229100.000000"', '"ts": "1717229101.000000"', "1717229040.000600: edited at"),
    (ACME, "1717229160.000700", "1717229160.000800", "1717229160.000700: has the id"),
    (ACME, '"subtype": "channel_topic"', '"subtype": "me_message"', "1717228810.000200: a line of the user"),
    ("lark.topics.json", '"parent_id": "om_h2"', '"parent_id": "om_h1"', "om_h3: answers"),
    ("lark.topics.json", '"root_id": "om_lost"', '"root_id": "om_h1"', "om_h4: in the thread of"),
    ("lark.topics.json", '"deleted": true', '"deleted": false', "0 recalled"),
    (
        "lark.topics.json",
        '"id": "ou_li",\n      "id_type": "open_id",\n      "name"',
        '"id": "x",\n      "name"',
        "mentions",
    ),
    ("lark.topics.json", "buy rope", "buy tea", "om_h13: shows"),
    ("[LINE] Trip.txt", "Mon, 01/15/2024", "Tue, 01/16/2024", "#14: said at"),
    ("[LINE] Trip.txt", "7:15AM\tAnn", "7:15AM\tBo", "#16: said by"),
    ("[LINE] 旅行のトーク.txt", "[スタンプ]", "スタンプ", "#4: says"),
    ("[LINE] 旅行のトーク.txt", "\t花子\tメッセージの送信を取り消しました", "\t花子\tはい", "0 recalled"),
    ("[LINE] 與阿哲的聊天.txt", "下午12:05", "上午12:05", "#2: said at"),
    ("[LINE]กลุ่มเดินป่า.txt", "22:40 มะลิเข้าร่วมกลุ่ม", "22:40 มะลิ เข้า", "a line of the user"),
    ("KakaoTalkChats.txt", "오후 1:02, 회원님", "오전 1:02, 회원님", "#7: said at"),
    ("KakaoTalkChats.txt", "(3명)과 카카오톡 대화", "둘 (3명)과 카카오톡 대화", "said in"),
    ("Talk_2026.1.7 10_00-1.txt", "13:05, 홍길동 : 보이스톡", "13:05, 홍길동 : 보이스", "a line of the user"),
    ("KakaoTalk Chats with Tour.txt", "Dana : 2 photos", "Dana : 2 phones", "says"),
    ("KakaoTalk_20240103_1000_00_123_group.txt", "2024년 1월 2일 화요일", "2024년 1월 3일 수요일", "said at"),
    ("KakaoTalk_Tour_windows.txt", "[8:34 PM]", "[8:34 AM]", "#0: said at"),
    ("KakaoTalk_Chat_등산 모임.csv", "(이모티콘) 하하", "하하하", "says"),
    ("lark.topics.json", '"sender_type": "app"', '"sender_type": "user"', "om_h18: said by the user"),
]


def test_a_broken_copy_is_told_from_its_sample(tmp_path):
    """Each field is compared: a reader that gets one of them wrong is found out."""
    with all_cases() as case:
        for place, (name, whole, broken, told) in enumerate(BROKEN):
            with case(name, told):
                folder = tmp_path / str(place)
                folder.mkdir()
                sample = name.split("/", 1)[0]
                if sample == name:
                    shutil.copy(catalogue.SAMPLES / name, folder / name)
                else:
                    shutil.copytree(catalogue.SAMPLES / sample, folder / sample)
                text = (folder / name).read_bytes().decode("utf-8")
                assert whole in text
                (folder / name).write_bytes(text.replace(whole, broken).encode("utf-8"))
                own = sample in WITH_ROOMS
                found = differences(COUNT[sample](catalogue.SAMPLES / sample), imported(folder / sample), own=own)
                assert any(told in one for one in found), found
