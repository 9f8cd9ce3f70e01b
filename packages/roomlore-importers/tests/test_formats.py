"""Cases that the samples do not have: encodings, zones, odd values, errors, one case a test."""

import json
import shutil
import zipfile
from contextlib import suppress
from datetime import UTC, datetime

import catalogue
import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.mentions import find_mentions
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.records import to_line
from roomlore_importers import FORMATS, Bad, Parsed, detect, export_files, json_stream, open_import, qq
from roomlore_testkit.case_table import all_cases

CHINESE = "[21:14] <小王> 今天天气很好,我们一起去爬山吧\n[21:15] <李雷> 好的,几点出发呢\n"


def write(tmp_path, name, content, encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030"])
def test_encodings_give_the_same_messages(tmp_path, encoding):
    marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    data = marks.get(encoding, b"") + (CHINESE * 3).encode(encoding)
    path = write(tmp_path, "a.log", data)
    found = catalogue.messages(path, format="irc")
    assert [message.text for message in found[:2]] == ["今天天气很好,我们一起去爬山吧", "好的,几点出发呢"]
    assert detect(path) == "irc"
    straight = catalogue.items(path)
    assert catalogue.items(path, resume_from=straight[2].position) == straight[3:]


def test_utf16_lines_are_split_at_line_feeds_only(tmp_path):
    path = write(tmp_path, "a.log", "[21:14] <a> \u0a0a \u0a00\n[21:15] <b> \u000bx\n", "utf-16")
    assert [message.text for message in catalogue.messages(path, format="irc")] == ["\u0a0a \u0a00", "\u000bx"]


def test_western_text_is_read_as_cp1252(tmp_path):
    path = write(tmp_path, "a.log", "[21:14] <zoë> déjà vu, garçon été\n" * 2, "cp1252")
    assert {message.text for message in catalogue.messages(path)} == {"déjà vu, garçon été"}


def test_a_telegram_file_in_utf16(tmp_path):
    text = (catalogue.SAMPLES / "telegram.json").read_text("utf-8")
    path = write(tmp_path, "telegram.json", text, "utf-16")
    assert catalogue.messages(path) == catalogue.messages(catalogue.SAMPLES / "telegram.json")


def test_broken_bytes_are_replaced_and_counted(tmp_path):
    good = json.dumps({"id": "1", "room_id": "r", "sender_id": "s", "text": "爬山"}, ensure_ascii=False).encode()
    path = write(
        tmp_path, "a.jsonl", good + b"\n" + good.replace(b'"1"', b'"2"').replace("山".encode(), b"\xe5\xb1") + b"\n"
    )
    with open_import(path) as reading:
        texts = [item.message.text for item in reading]
    assert texts == ["爬山", "爬\ufffd"]
    assert reading.source.repaired == 1


def test_broken_bytes_in_a_document_are_replaced_and_counted(tmp_path):
    raw = (catalogue.SAMPLES / "telegram.json").read_bytes().replace("放心".encode(), b"\xe6\x94" + "心".encode(), 1)
    with open_import(write(tmp_path, "telegram.json", raw)) as reading:
        found = list(reading)
    assert found[2].message.text == "我有, Ann \ufffd心"
    assert (reading.source.repaired, reading.bad) == (1, 0)


def test_an_overlong_line_is_bad_and_the_rest_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(export_files, "LONGEST_LINE", 100)
    path = write(tmp_path, "a.log", "[21:14] <a> x\n[21:14] <a> " + "y" * 1000 + "\n[21:15] <b> z\n")
    found = catalogue.items(path, format="irc")
    assert [type(item) for item in found] == [Parsed, Bad, Parsed]
    assert found[1].number == 2


def test_an_overlong_record_is_bad_and_the_rest_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "LONGEST_VALUE", 1 << 16)
    monkeypatch.setattr(json_stream, "_CHUNK", 1 << 12)
    export = json.loads((catalogue.SAMPLES / "telegram.json").read_text("utf-8"))
    export["messages"][2]["text"] = "long " * 100_000
    found = catalogue.items(write(tmp_path, "telegram.json", json.dumps(export)))
    assert [item.message.id for item in found if isinstance(item, Parsed)] == ["1", "2", "4", "5"]


def test_reactions_of_telegram_with_emoji_of_their_own_are_counted_together(tmp_path):
    export = json.loads((catalogue.SAMPLES / "telegram.json").read_text("utf-8"))
    first = next(message for message in export["messages"] if message["type"] == "message")
    first["reactions"] = [{"type": "custom_emoji", "count": count, "document_id": str(count)} for count in (2, 3)]
    found = catalogue.messages(write(tmp_path, "telegram.json", json.dumps(export)))
    assert {"custom_emoji": 5} in [message.metadata.get("reactions") for message in found]


def test_local_times_follow_the_zone(tmp_path):
    irc = write(tmp_path, "2024-07-01.log", "[00:30] <a> hi\n")
    chat = write(tmp_path, "chat.txt", "2024/07/01 00:30 - Ann: hi\n")
    for path in (irc, chat):
        (message,) = catalogue.messages(path, timezone="Europe/Berlin")
        assert message.sent_at == datetime(2024, 6, 30, 22, 30, tzinfo=UTC)


def test_an_undated_log_has_no_times_until_told_the_day(tmp_path):
    path = write(tmp_path, "chat.log", "[23:59] <a> hi\n[00:01] <b> ho\n")
    assert [message.sent_at for message in catalogue.messages(path)] == [None, None]
    days = [message.sent_at.day for message in catalogue.messages(path, day="2024-02-28")]
    assert days == [28, 29]


IRC_LINES = [
    ("[21:14:05] <~root> hi", "root", "hi", Role.USER),
    ("[2024-05-01 21:14:05] <a b> hi", "a b", "hi", Role.USER),
    ("[21:14:05] *** Joins: eve (e@x)", "eve", "Joins: eve (e@x)", Role.SYSTEM),
    ("Nov 15 21:14:05 <eve>\thello", "eve", "hello", Role.USER),
    ("Nov 15 21:14:05 *\teve has quit (bye)", "eve", "eve has quit (bye)", Role.SYSTEM),
    ("2024-05-01T21:14:05+0200 <eve> ok", "eve", "ok", Role.USER),
    ("[09:14 PM] <eve> ok", "eve", "ok", Role.USER),
    ("[21:14] <eve> ", "eve", "", Role.USER),
    ("[21:14] <-eve-> a > b", "-eve-", "a > b", Role.USER),
]


def test_irc_lines(tmp_path):
    with all_cases() as case:
        for line, sender, text, role in IRC_LINES:
            with case(line):
                (message,) = catalogue.messages(write(tmp_path, "x.log", line + "\n"), format="irc")
                assert (message.sender_id, message.text, message.role) == (sender, text, role)


@pytest.mark.parametrize("line", ["[25:14] <a> x", "[21:61] <a> x", "just words", "[21:14]", "[21:14] <> x"])
def test_what_no_irc_program_writes_is_bad(tmp_path, line):
    (item,) = catalogue.items(write(tmp_path, "x.log", line + "\n"), format="irc")
    assert isinstance(item, Bad)
    assert item.number == 1


@pytest.mark.parametrize(
    ("dates", "first"),
    [
        (["1/2/24, 9:00 AM", "1/3/24, 9:00 AM", "1/13/24, 9:00 AM"], (2024, 1, 2)),
        (["01/02/2024, 09:00", "02/02/2024, 09:00", "03/02/2024, 09:00"], (2024, 2, 1)),
        (["01/02/24, 9:00 pm", "02/02/24, 9:00 pm"], (2024, 2, 1)),
        (["01.02.24, 09:00"], (2024, 2, 1)),
        (["2024/2/1 09:00"], (2024, 2, 1)),
        (["24-12-30, 09:00", "24-12-31, 09:00"], (2024, 12, 30)),
        (["12/1/23, 9:00 AM", "12/2/23, 9:00 AM", "12/3/23, 9:00 AM"], (2023, 12, 1)),
    ],
)
def test_whatsapp_day_and_month_are_told_apart_by_the_file(tmp_path, dates, first):
    path = write(tmp_path, "chat.txt", "".join(f"{date} - Ann: hi\n" for date in dates))
    sent_at = catalogue.messages(path, format="whatsapp")[0].sent_at
    assert (sent_at.year, sent_at.month, sent_at.day) == first


@pytest.mark.parametrize("said", ["I omitted it", "<html>", "the image was omitted, sorry", "a <b> c", "忽略我"])
def test_whatsapp_leaves_real_text_alone(tmp_path, said):
    (message,) = catalogue.messages(write(tmp_path, "c.txt", f"31.12.23, 21:41 - Ann: {said}\n"), format="whatsapp")
    assert (message.text, message.metadata) == (said, {})


def test_overlapping_whatsapp_exports_agree_on_ids(tmp_path):
    raw = (catalogue.SAMPLES / "WhatsApp Chat with Hikers.txt").read_text("utf-8")
    shorter = write(tmp_path, "WhatsApp Chat with Hikers.txt", raw[raw.index("12/31/23") :])
    whole = catalogue.messages(catalogue.SAMPLES / "WhatsApp Chat with Hikers.txt")
    assert catalogue.messages(shorter) == whole[-5:]


def test_a_message_late_by_a_minute_does_not_make_ids_collide(tmp_path):
    stamps = ["21:41", "21:40", "21:41", "21:42", "21:41", "21:42"]
    path = write(tmp_path, "c.txt", "".join(f"31.12.23, {stamp} - Ann: ok\n" for stamp in stamps))
    assert len({message.id for message in catalogue.messages(path)}) == len(stamps)


def test_a_slack_zip_reads_as_its_folder(tmp_path):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((catalogue.SAMPLES / "slack").rglob("*.json")):
            archive.write(file, f"team export/{file.relative_to(catalogue.SAMPLES / 'slack').as_posix()}")
    assert detect(path) == "slack"
    assert catalogue.messages(path) == catalogue.messages(catalogue.SAMPLES / "slack")


def test_one_damaged_slack_day_costs_no_other_day(tmp_path):
    for file in (catalogue.SAMPLES / "slack").rglob("*.json"):
        copy = tmp_path / file.relative_to(catalogue.SAMPLES / "slack")
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(file.read_bytes())
    day = tmp_path / "general" / "2024-05-01.json"
    day.write_bytes(day.read_bytes()[:700])
    (tmp_path / "users.json").write_text("[{")
    found = catalogue.items(tmp_path)
    texts = [item.message.text for item in found if isinstance(item, Parsed)]
    assert {"nice", "dev talk", "私聊"} <= set(texts)
    assert [item.reason for item in found if isinstance(item, Bad)] == [
        "general/2024-05-01.json: the document ends in the middle"
    ]


def test_our_own_export_comes_back_exactly(tmp_path):
    moment = datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)
    stored = StoredMessage(
        id="a\x00b", room_id="房间", sender_id="s", sender_name="名", text="\ud83d alone \x00 \u2028 😀",
        sent_at=moment, role=Role.TOOL, reply_to="", root_id="r", topic_id="",
        mentions=("x", ""), has_tool_calls=True, turn_id="t",
        metadata={"text": {"deep": [1, 2.5, None, True]}, "id": "own"},
        arrival=7, sent_at_estimated=True, edited_at=moment,
    )  # fmt: skip
    (item,) = catalogue.items(write(tmp_path, "a.jsonl", to_line(stored)))
    fields = {name: getattr(stored, name) for name in Message.__dataclass_fields__}
    assert item.message == Message(**fields)
    assert (item.sent_at_estimated, item.edited_at) == (True, moment)


def test_odd_values_of_generic_lines_are_kept(tmp_path):
    odd = {"id": 5, "text": {"rich": 1}, "sender": ["x"], "ts": "soon", "mentions": "all", "role": 3, "n": float("nan")}
    deep = {}
    for _ in range(60):
        deep = {"in": deep}
    path = write(
        tmp_path, "a.jsonl", "\n".join(json.dumps(one) for one in (odd, {"id": "d", "text": "x", "deep": deep}))
    )
    first, second = catalogue.messages(path, format="jsonl")
    assert (first.id, first.text, first.sender_id, first.sent_at) == ("5", "", "unknown", None)
    wanted = {"text": {"rich": 1}, "sender": ["x"], "ts": "soon", "mentions": "all", "role": 3, "n": "NaN"}
    assert first.metadata == wanted
    assert to_line(second)


@pytest.mark.parametrize("line", ["[1]", "nonsense", '{"foo": 1}', '{"id": "x"', "1" * 5000, "[" * 100_000])
def test_lines_that_are_no_message_are_named(tmp_path, line):
    good = '{"id": "1", "text": "x"}'
    found = catalogue.items(write(tmp_path, "a.jsonl", f"{good}\n\n{line}\n{good}\n"), format="jsonl")
    assert [type(item) for item in found] == [Parsed, Bad, Parsed]
    assert (found[1].number, bool(found[1].reason)) == (3, True)


def test_concatenated_pretty_answers_of_lark(tmp_path):
    page = (catalogue.SAMPLES / "lark.json").read_text("utf-8")
    path = write(tmp_path, "pages.json", page + "\n" + page.replace("om_", "on_"))
    assert detect(path) == "lark"
    assert len({message.id for message in catalogue.messages(path)}) == 14


@pytest.mark.parametrize("content", ["hello world\nno chat here\n", "{}", "[]", "\x00\x01\x02"])
def test_what_cannot_be_told_lists_the_formats(tmp_path, content):
    with pytest.raises(InvalidInput, match="jsonl, openai, chatgpt"):
        detect(write(tmp_path, "a.txt", content))


@pytest.mark.parametrize("content", ["", "\n\n", "\x00 "])
def test_an_empty_file_is_called_so(tmp_path, content):
    with pytest.raises(InvalidInput, match="is empty"):
        detect(write(tmp_path, "a.txt", content))


def test_next_to_nothing_gives_no_message(tmp_path):
    with all_cases() as case:
        for content in ("", "\n", "{}", "[]", "null", "\x00", "]", '"'):
            for form in sorted(set(catalogue.FORMAT_OF.values()) - {"slack"}):
                with case(form, repr(content)):
                    assert catalogue.messages(write(tmp_path, "a.txt", content), format=form) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "icq"}, "no format is called 'icq'"),
        ({"timezone": "Mars/Olympus"}, "IANA"),
        ({"day": "tomorrow"}, "2004-11-15"),
        ({"resume_from": 5}, "position"),
    ],
)
def test_wrong_options_say_what_is_wanted(tmp_path, options, words):
    path = write(tmp_path, "a.log", "[21:14] <a> hi\n")
    with pytest.raises(InvalidInput, match=words):
        open_import(path, **options)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="does not exist"):
        open_import(tmp_path / "nothing.json")


def zipped(tmp_path, name, **files):
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        for inside, content in files.items():
            archive.writestr(inside.replace("__", "."), content)
    return path


CHAT = "31.12.23, 21:41 - Lena: happy new year\n31.12.23, 21:42 - Ben: 新年快乐\n"


@pytest.mark.parametrize("form", [None, "whatsapp"])
def test_a_zip_of_a_chat_is_read_inside(tmp_path, form):
    """A regression: with `--format whatsapp` the bytes of the zip became a message."""
    path = zipped(tmp_path, "WhatsApp Chat - Lena.zip", _chat__txt=CHAT)
    straight = catalogue.items(path, format=form)
    assert [item.message.text for item in straight] == ["happy new year", "新年快乐"]
    assert {item.message.room_id for item in straight} == {"Lena"}
    assert catalogue.items(path, format=form, resume_from=straight[0].position) == straight[1:]


def test_a_zip_of_a_document_is_read_inside(tmp_path):
    text = (catalogue.SAMPLES / "telegram.json").read_text("utf-8")
    path = zipped(tmp_path, "telegram.zip", result__json=text, photo__jpg="x")
    assert catalogue.messages(path) == catalogue.messages(catalogue.SAMPLES / "telegram.json")


@pytest.mark.parametrize("files", [{}, {"a__txt": CHAT, "b__txt": CHAT}], ids=["none", "two"])
def test_a_zip_without_one_chat_says_what_to_do(tmp_path, files):
    path = zipped(tmp_path, "chats.zip", photo__jpg="x", **files)
    wanted = "holds 2 exports: give one of them" if files else "holds no chat export of the format whatsapp"
    for given in (path, tmp_path):
        with pytest.raises(InvalidInput, match=wanted):
            open_import(given, "whatsapp")


@pytest.mark.parametrize(
    ("first", "room"),
    [
        ("[31.12.23, 21:40:01] Lena L.: \u200eMessages and calls are end-to-end encrypted.\n", "Lena L."),
        ("[31.12.23, 21:40:01] 登山队: \u200e消息和通话已进行端到端加密。\n", "登山队"),
    ],
)
def test_a_chat_of_an_iphone_is_named_by_its_first_line(tmp_path, first, room):
    path = write(tmp_path, "_chat.txt", first + "[31.12.23, 21:41:01] Ann: hi\n")
    assert {message.room_id for message in catalogue.messages(path)} == {room}


def test_two_chats_of_an_iphone_are_two_rooms(tmp_path):
    """A regression: both were called `_chat`, and became one room."""
    rooms = []
    for number in "12":
        (tmp_path / number).mkdir()
        path = write(tmp_path / number, "_chat.txt", f"[31.12.23, 21:4{number}:01] Ann: hi\n")
        (message,) = catalogue.messages(path)
        rooms.append(message.room_id)
        grown = write(tmp_path / number, "_chat.txt", path.read_text("utf-8") + "[31.12.23, 21:45:01] Ben: ho\n")
        assert {message.room_id for message in catalogue.messages(grown)} == {rooms[-1]}
    assert len(set(rooms)) == 2
    (tmp_path / "WhatsApp Chat - Lena").mkdir()
    path = write(tmp_path / "WhatsApp Chat - Lena", "_chat.txt", CHAT)
    assert {message.room_id for message in catalogue.messages(path)} == {"Lena"}


def test_a_mention_between_direction_marks_is_one(tmp_path):
    """A regression: WhatsApp isolates names, and nobody was mentioned."""
    line = "31.12.23, 21:41 - Ann: @\u2068Lena Lund\u2069, @\u2068~\u202f小王\u2069 come\n"
    (message,) = catalogue.messages(write(tmp_path, "c.txt", line), format="whatsapp")
    assert message.mentions == ("Lena Lund", "小王")
    assert message.text.startswith("@Lena Lund, @")
    assert find_mentions("@\u2068Lena Lund\u2069 come", {"lena lund": "u1"}).people == ("u1",)


DELETED = [
    "Se eliminó este mensaje", "Mensagem apagada", "Você apagou esta mensagem", "Ce message a été supprimé",
    "Questo messaggio è stato eliminato.", "Dit bericht is verwijderd", "Данное сообщение удалено.",
    "Bu mesaj silindi", "このメッセージは削除されました", "삭제된 메시지입니다.", "تم حذف هذه الرسالة",
    "यह मैसेज हटा दिया गया है।", "Du hast diese Nachricht gelöscht.", "此訊息已被刪除", "Pesan ini telah dihapus",
]  # fmt: skip


def test_a_deleted_message_says_nothing_in_any_language(tmp_path):
    with all_cases() as case:
        for said in DELETED:
            with case(said):
                (message,) = catalogue.messages(
                    write(tmp_path, "c.txt", f"31.12.23, 21:41 - Ann: {said}\n"), format="whatsapp"
                )
                assert (message.text, message.metadata) == ("", {"deleted": True})


def test_local_times_take_the_zone_of_the_settings_where_the_format_has_none(tmp_path):
    chat = write(tmp_path, "chat.txt", "2024/07/01 00:30 - Ann: hi\n")
    with open_import(chat, local_zone="Asia/Shanghai") as reading:
        (item,) = reading
    assert (item.message.sent_at, reading.time_zone) == (datetime(2024, 6, 30, 16, 30, tzinfo=UTC), "Asia/Shanghai")
    with open_import(chat, timezone="UTC", local_zone="Asia/Shanghai") as reading:
        assert reading.time_zone == "UTC"
    lines = write(tmp_path, "a.jsonl", '{"id": "1", "sender": "a", "text": "x", "sent_at": "2024-07-01T00:30:00"}\n')
    with open_import(lines, local_zone="Asia/Shanghai") as reading:
        (item,) = reading
    assert (item.message.sent_at, reading.time_zone) == (datetime(2024, 7, 1, 0, 30, tzinfo=UTC), None)


QQ = {
    "metadata": {"name": "QQChatExporter"},
    "messages": [{"messageId": str(n), "sender": {"uin": "1"}, "content": {"text": "hi"}} for n in range(3)],
}
CHATLAB = {
    "chatlab": {"version": "0.0.1"},
    "members": [{"platformId": "1", "accountName": "A", "roles": [{"id": "owner"}]}],
    "messages": [{"sender": "1", "timestamp": 1700000000, "type": 0, "content": "hi"} for _ in range(3)],
}
WEFLOW = {
    "weflow": {"version": "1"},
    "session": {"wxid": "a"},
    "messages": [{"localId": n, "createTime": 1700000000, "content": "hi", "senderUsername": "a"} for n in range(3)],
}


@pytest.mark.parametrize(
    ("value", "name"), [(QQ, "qq-exporter"), (CHATLAB, "chatlab"), (WEFLOW, "weflow")], ids=["qq", "chatlab", "weflow"]
)
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("before", [{}, {"me": {"role": "user", "content": 1}}], ids=["plain", "with a role"])
def test_any_list_of_messages_is_not_taken_for_openais(tmp_path, value, name, indent, before):
    """A regression: texts were empty, senders unknown, times made up. A member's role is no role of OpenAI's."""
    path = write(tmp_path, "chat.json", json.dumps({**before, **value}, indent=indent))
    assert detect(path) == name


def test_what_most_messages_lack_is_said_and_a_format_that_is_named_is_taken(tmp_path):
    lines = "".join(json.dumps({"id": str(n), "text": "hi", "at": 3}) + "\n" for n in range(3))
    path = write(tmp_path, "a.jsonl", lines)
    with pytest.raises(InvalidInput, match="no sender"):
        open_import(path)
    assert len(catalogue.messages(path, format="jsonl")) == 3


ONEBOT = {
    "post_type": "message", "message_type": "group", "message_id": 1, "group_id": 7, "user_id": 8, "time": 17,
    "message": [{"type": "image", "data": {"file": "a.jpg"}}], "raw_message": "[CQ:image]", "sender": {"user_id": 8},
}  # fmt: skip
BEAT = {"post_type": "meta_event", "meta_event_type": "heartbeat", "self_id": 1, "time": 17, "interval": 5000}


@pytest.mark.parametrize("left_out", [(), ("post_type",)], ids=["whole", "without its kind"])
def test_events_of_onebot_are_told_among_heartbeats_and_never_taken_for_larks(tmp_path, left_out):
    event = {key: value for key, value in ONEBOT.items() if key not in left_out}
    path = write(tmp_path, "events.jsonl", "".join(json.dumps(one) + "\n" for one in [event, BEAT] * 5))
    assert detect(path) == "onebot"
    [one] = {(message.room_id, message.metadata["attachments"][0]["type"]) for message in catalogue.messages(path)}
    assert one == ("7", "picture")


TELEGRAM = {"name": "c", "type": "public_channel", "id": 9}
POST = {"type": "message", "date": "2024-05-01T08:00:00", "date_unixtime": "1714550400", "text": ""}
DISCORD = {"guild": {"id": "1"}, "channel": {"id": "2"}, "exportedAt": "2024-05-01T08:00:00Z"}
EMBED = {
    "type": "Default", "timestamp": "2024-05-01T08:00:00Z", "content": "", "author": {"id": "5", "name": "Ann"},
    "embeds": [{"title": "", "image": {"url": "https://example.org/a.png"}}],
}  # fmt: skip


def numbered(one, **more):
    return [{"id": number, **one, **more} for number in range(1, 6)]


@pytest.mark.parametrize(
    "export",
    [
        TELEGRAM | {"messages": numbered(POST, **{"from": "Ann", "from_id": "user1", "photo": "photos/a.jpg"})},
        TELEGRAM | {"messages": numbered(POST, **{"from": "Ann", "from_id": "user1", "media_type": "voice_message"})},
        TELEGRAM
        | {"messages": numbered(POST, **{"from": "Ann", "from_id": "user1", "giveaway_information": {"n": 1}})},
        TELEGRAM | {"messages": numbered(POST, location_information={"latitude": 1.5, "longitude": 2.5})},
        TELEGRAM | {"messages": numbered(POST | {"text": "news"})},
        DISCORD | {"messages": numbered(EMBED)},
    ],
    ids=["photos", "voice", "giveaways", "places in a channel", "posts of a channel", "embedded images"],
)
def test_a_chat_of_media_alone_is_read(tmp_path, export):
    """A regression: it was refused, as most of its messages had no text or no sender."""
    assert len(catalogue.messages(write(tmp_path, "chat.json", json.dumps(export)))) == 5


def test_slack_messages_of_blocks_alone_are_read(tmp_path):
    (tmp_path / "general").mkdir()
    said = [{"type": "message", "user": "U1", "ts": f"171455040{n}.0", "text": "", "blocks": [{}]} for n in range(3)]
    write(tmp_path / "general", "2024-05-01.json", json.dumps(said))
    assert len(catalogue.messages(tmp_path)) == 3


@pytest.mark.parametrize(
    "notice",
    [
        'Ann changed the group name from "Choir" to "Choir: Tuesday"',
        "Ann cambió el nombre del grupo de “Coro” a “Coro: martes”",
        "Ann hat den Gruppennamen von „Chor“ zu „Chor: Dienstag“ geändert",
        "Ann a changé le nom du groupe de « Chœur » à « Chœur : mardi »",
        "Ann將群組名稱從「合唱」改為「合唱: 星期二」",
    ],
)
def test_a_name_with_a_colon_in_a_notice_of_whatsapp_makes_no_sender(tmp_path, notice):
    lines = [
        f"01/06/2024, 09:00 - {notice}",
        '01/06/2024, 09:01 - Tim 6\'2": say "ah"',
        "02/06/2024, 09:02 - Ann “A”: x",
    ]
    found = catalogue.messages(write(tmp_path, "chat.txt", "\n".join(lines)))
    assert [(one.role, one.sender_name, one.text) for one in found] == [
        (Role.SYSTEM, "", notice),
        (Role.USER, "Tim 6'2\"", 'say "ah"'),
        (Role.USER, "Ann “A”", "x"),
    ]


@pytest.mark.parametrize(
    "notice", ["Ana adicionou Carla", "Ana a ajouté Carla", "Ana добавил(-а) Carla", "Anaがグループを作成しました"]
)
def test_a_notice_of_an_iphone_is_known_in_any_language_by_the_name_that_it_begins_with(tmp_path, notice):
    lines = [
        f"[01/06/2024, 09:00:00] ~\u00a0Ana: \u200e~\u00a0{notice}",
        f"[01/06/2024, 09:01:00] Ana: {notice}",
        "[01/06/2024, 09:02:00] Ana: \u200eAna.vcf \u200eContact card omitted",
    ]
    first, typed, card = catalogue.messages(write(tmp_path, "chat.txt", "\n".join(lines)))
    assert (first.role, typed.role, card.role) == (Role.SYSTEM, Role.USER, Role.USER)


BLOCKS = [
    {"type": "header", "text": {"type": "plain_text", "text": "Build <7> & more"}},
    {
        "type": "section",
        "text": {"type": "mrkdwn", "text": "*passed* for <@U1>, see <https://example.org|the log>"},
        "fields": [{"type": "mrkdwn", "text": "branch: `main`"}, {"type": "plain_text", "text": "用时 3 分钟"}],
    },
    {"type": "divider"},
    {
        "type": "rich_text",
        "elements": [
            {
                "type": "rich_text_section",
                "elements": [
                    {"type": "text", "text": "a < b, "},
                    {"type": "user", "user_id": "U2"},
                    {"type": "text", "text": " and "},
                    {"type": "broadcast", "range": "here"},
                    {"type": "link", "url": "https://example.org/a"},
                    {"type": "emoji", "name": "tada"},
                ],
            },
            {
                "type": "rich_text_list",
                "elements": [
                    {"type": "rich_text_section", "elements": [{"type": "text", "text": one}]} for one in ("茶", "tea")
                ],
            },
        ],
    },
    {"type": "context", "elements": [{"type": "image", "alt_text": "x"}, {"type": "mrkdwn", "text": "by <#C1>"}]},
    {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Open"}}]},
]


def test_the_words_of_slacks_blocks_are_read_where_there_is_no_text(tmp_path):
    (tmp_path / "general").mkdir()
    write(tmp_path, "channels.json", json.dumps([{"id": "C1", "name": "builds", "members": []}]))
    write(tmp_path, "users.json", json.dumps([{"id": "U1", "name": "ann", "profile": {"display_name": "Ann"}}]))
    said = [
        {"type": "message", "bot_id": "B1", "ts": "1714550400.0", "text": text, "blocks": BLOCKS} for text in ("", "hi")
    ]
    write(tmp_path / "general", "2024-05-01.json", json.dumps(said))
    blocks, own = catalogue.messages(tmp_path)
    assert own.text == "hi"
    assert blocks.mentions == ("U1", "U2")
    assert blocks.text.split("\n") == [
        "Build <7> & more",
        "*passed* for @Ann, see the log (https://example.org)",
        "branch: `main`",
        "用时 3 分钟",
        "a < b, @U2 and @herehttps://example.org/a:tada:",
        "茶",
        "tea",
        "by #builds",
        "Open",
    ]


def slack_text(tmp_path, *elements):
    (tmp_path / "general").mkdir()
    blocks = [{"type": "rich_text", "elements": list(elements)}]
    said = [{"type": "message", "user": "U1", "ts": "1714550400.0", "text": "", "blocks": blocks}]
    write(tmp_path / "general", "2024-05-01.json", json.dumps(said))
    (message,) = catalogue.messages(tmp_path)
    return message.text


def test_the_words_of_a_link_in_slacks_blocks_may_have_signs_of_markup(tmp_path):
    link = {"type": "link", "url": "https://example.org/?a=1|2&b=<3>", "text": "a > b, <@U1> & 茶|tea"}
    assert slack_text(tmp_path, {"type": "rich_text_section", "elements": [link]}) == (
        "a > b, <@U1> & 茶|tea (https://example.org/?a=1%7C2&b=<3>)"
    )


def test_lists_of_slack_keep_their_levels_and_numbers(tmp_path):
    def listed(style, indent, *texts, **more):
        sections = [{"type": "rich_text_section", "elements": [{"type": "text", "text": text}]} for text in texts]
        return {"type": "rich_text_list", "style": style, "indent": indent, "elements": sections, **more}

    told = slack_text(
        tmp_path,
        listed("bullet", 0, "茶", "tea"),
        listed("bullet", 1, "green", "black"),
        listed("bullet", 2, "Assam"),
        listed("ordered", 0, "boil", "pour"),
        listed("ordered", 0, "wait", offset=2),
    )
    assert told.split("\n") == [
        "• 茶", "• tea", "    • green", "    • black", "        • Assam", "1. boil", "2. pour", "3. wait",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ['Anna "Re: Zero"', "Dr: Smith", '5" Tim', "Ann „Q: A“", "王: 老板"])
def test_whatsapp_contacts_may_have_a_colon_or_a_quotation_mark_in_their_names(tmp_path, name):
    words = ["hello", 'he said "yes', "note: 12:30", "好的", 'see "this" and "that"', "last"]
    lines = [f"[01/06/2024, 09:0{minute}:00] {name}: {text}" for minute, text in enumerate(words)]
    lines.append("[01/06/2024, 09:30:00] Bo: fine")
    found = catalogue.messages(write(tmp_path, "chat.txt", "\n".join(lines)))
    assert [(one.role, one.sender_id, one.text) for one in found] == [
        *((Role.USER, name, text) for text in words),
        (Role.USER, "Bo", "fine"),
    ]


def test_a_word_before_a_colon_is_no_part_of_a_whatsapp_name(tmp_path):
    told = [
        ("Ann", "note: milk"), ("Ann", "note: eggs"), ("Ann", "note: tea"), ("Ann", "note: 茶"), ("Ann", "hello"),
        ("Ann", "note: bread"), ("Bo", "todo: a"), ("Bo", "todo: b"), ("Bo", "todo: c"),
    ]  # fmt: skip
    lines = [f"[01/06/2024, 09:0{minute}:00] {who}: {text}" for minute, (who, text) in enumerate(told)]
    found = catalogue.messages(write(tmp_path, "chat.txt", "\n".join(lines)))
    assert [(one.sender_id, one.text) for one in found] == told


def test_a_whatsapp_notice_that_quotes_a_name_with_a_colon_stays_a_notice(tmp_path):
    lines = [
        f'[01/06/2024, 09:0{minute}:00] Ann changed the group name from "Trip: Rome" to "Trip: {city}"'
        for minute, city in enumerate(("Pisa", "Oslo", "Bern", "Wien", "Kyiv", "北京"))
    ]
    found = catalogue.messages(write(tmp_path, "chat.txt", "\n".join(lines)))
    assert {one.role for one in found} == {Role.SYSTEM}


def test_a_topic_of_a_telegram_chat_is_none_of_another(tmp_path):
    def chat(number, first):
        rest = {"type": "message", "date_unixtime": "1714550400", "from": "A", "from_id": "user1", "text": "hi"}
        return {
            "name": "x",
            "type": "private_supergroup",
            "id": number,
            "messages": [{**rest, **first, "id": 2}, {**rest, "id": 3, "reply_to_message_id": 2}],
        }

    topic = chat(10, {"type": "service", "action": "topic_created", "title": "Gear", "text": ""})
    path = write(tmp_path, "result.json", json.dumps({"chats": {"list": [topic, chat(11, {})]}}, indent=1))
    found = [(one.room_id, one.reply_to, one.topic_id) for one in catalogue.messages(path)]
    assert found == [("10", None, "2"), ("10", None, "2"), ("11", None, None), ("11", "2", None)]
    together = catalogue.messages(path, room_id="all")[1::2]
    assert [(one.reply_to, one.topic_id) for one in together] == [(None, "10/2"), ("11/2", None)]
    begun = catalogue.items(path)[0].position
    assert [item.message.topic_id for item in catalogue.items(path, resume_from=begun)] == ["2", None, None]


def test_a_reply_is_in_the_topic_of_what_it_answers_also_after_a_break(tmp_path):
    answered = {3: None, 4: 2, 5: 4, 6: 3, 7: 5, 8: 1, 9: 7, 10: 99}
    rows = [
        {"id": n, "type": "service", "action": "topic_created", "actor": "A", "title": "T", "text": ""} for n in (1, 2)
    ]
    rows += [
        {"id": n, "type": "message", "from": "A", "from_id": "user1", "text": "hi", "reply_to_message_id": target}
        for n, target in answered.items()
    ]
    chat = {"name": "x", "type": "private_supergroup", "id": 10}
    dated = [{**row, "date_unixtime": "1714550400"} for row in rows]
    path = write(tmp_path, "result.json", json.dumps({**chat, "messages": dated}))
    items = catalogue.items(path)
    found = {one.message.id: (one.message.reply_to, one.message.topic_id) for one in items}
    assert found == {
        "1": (None, "1"), "2": (None, "2"), "3": (None, None), "4": (None, "2"), "5": ("4", "2"), "6": ("3", None),
        "7": ("5", "2"), "8": (None, "1"), "9": ("7", "2"), "10": ("99", None),
    }  # fmt: skip
    for place, one in enumerate(items[:-1], 1):
        again = catalogue.items(path, resume_from=json.loads(json.dumps(one.position)))
        assert [one.message for one in again] == [one.message for one in items[place:]]


def test_our_own_export_is_never_refused(tmp_path):
    rows = [
        Message(id=str(n), room_id="r", sender_id="unknown", text="", metadata={"message": {"photo": "a.jpg"}})
        for n in range(5)
    ]
    path = write(tmp_path, "a.jsonl", b"".join(map(to_line, rows)))
    assert catalogue.messages(path) == rows


def test_lines_without_a_sender_have_their_role_for_one(tmp_path):
    lines = [{"role": "user", "text": "hi"}, {"role": "assistant", "text": "hello"}, {"role": "king", "text": "ho"}]
    found = catalogue.messages(write(tmp_path, "a.jsonl", "".join(json.dumps(one) + "\n" for one in lines)))
    assert [message.sender_id for message in found] == ["user", "assistant", "unknown"]


def test_only_a_nameless_chat_is_named_by_its_folder(tmp_path):
    """A regression: every chat in the folder became one room."""
    folder = tmp_path / "WhatsApp Chat - Lena"
    folder.mkdir()
    chats = [write(folder, name, CHAT) for name in ("Ann.txt", "Ben.txt", "_chat.txt", "WhatsApp Chat with Eve.txt")]
    rooms = [catalogue.messages(path)[0].room_id for path in chats]
    assert rooms == ["Ann", "Ben", "Lena", "Eve"]


TOLD = json.dumps(TELEGRAM | {"messages": numbered(POST | {"text": "news"})})
SENT_ONE = "[31.12.23, 21:42:00] Jo: conversations.json (file attached)\n"
ASKED = (catalogue.SAMPLES / "conversations.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("form", "files"),
    [
        ("whatsapp", {"_chat.txt": CHAT, "notes.txt": "buy milk"}),
        ("whatsapp", {"WhatsApp Chat with Lena.txt": CHAT, "notes.txt": "buy milk", "data.json": "{}"}),
        ("whatsapp", {"与登山队的WhatsApp聊天.txt": f"{CHAT}{SENT_ONE}", "conversations.json": ASKED}),
        ("chatgpt", {"conversations.json": ASKED, "user.json": "{}", "message_feedback.json": "[]"}),
        ("telegram", {"ChatExport_1/result.json": TOLD, "ChatExport_1/files/_chat.txt": CHAT}),
        ("telegram", {"result.json": TOLD, "files/result.json": "{}", "files/a.json": "{}"}),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_zips_and_folders_are_read_as_the_apps_hand_them_out(tmp_path, form, files, named):
    """A regression: refused, as there was more than one file that might be a chat."""
    folder = tmp_path / "export"
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, "utf-8")
            archive.writestr(name, content)
    wanted = catalogue.messages(folder / next(iter(files)), format=form)
    assert wanted
    for given in (path, folder):
        found = catalogue.messages(given, format=form if named else None)
        assert [(one.text, one.sent_at) for one in found] == [(one.text, one.sent_at) for one in wanted]
        assert given.is_file() or found == wanted


def encrypted(data):
    """The same zip with every file marked as encrypted, in its own header and in the directory."""
    data = bytearray(data)
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(mark)
        while place >= 0:
            data[place + flags] |= 1
            place = data.find(mark, place + 4)
    return bytes(data)


def flipped(data):
    """One bit of the content changed: the checksum is wrong."""
    place = data.index(b"happy")
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def unknown_compression(data):
    """Compressed by a method that Python does not know."""
    data = bytearray(data)
    for place in (8, data.index(b"PK\x01\x02") + 10):
        data[place : place + 2] = b"\x63\x00"
    return bytes(data)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (encrypted, "with its password"),
        (flipped, "download it again"),
        (unknown_compression, "another program"),
        (lambda data: data[: len(data) // 2], "download it again"),
    ],
    ids=["encrypted", "flipped", "unknown compression", "cut"],
)
@pytest.mark.parametrize("form", [None, "whatsapp"])
def test_a_zip_that_cannot_be_read_says_what_to_do(tmp_path, damage, words, form):
    """A regression: a traceback, or the bytes of the zip as a message."""
    path = zipped(tmp_path, "WhatsApp Chat - Lena.zip", _chat__txt=CHAT)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InvalidInput, match=words):
        catalogue.items(path, format=form)


def test_a_deflated_zip_with_damage_says_what_to_do(tmp_path):
    path = tmp_path / "chat.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_chat.txt", CHAT * 50)
    data = path.read_bytes()
    path.write_bytes(data[:50] + b"\xff" * 20 + data[70:])
    with pytest.raises(InvalidInput, match="download it again"):
        catalogue.items(path)


def test_an_encrypted_slack_zip_says_what_to_do_and_damaged_names_cost_names_only(tmp_path):
    said = json.dumps([{"type": "message", "user": "U1", "ts": "1714550400.0", "text": "hi"}])
    people = json.dumps([{"id": "U1", "profile": {"real_name": "happy"}}])
    path = zipped(tmp_path, "slack.zip", **{"users.json": people, "general/2024-05-01.json": said})
    whole = path.read_bytes()
    path.write_bytes(flipped(whole))
    (message,) = catalogue.messages(path)
    assert (message.sender_id, message.sender_name) == ("U1", "")
    path.write_bytes(encrypted(whole))
    with pytest.raises(InvalidInput, match="with its password"):
        catalogue.items(path)


READ_ALIKE = ({"openai", "chatgpt"}, {"openai", "jsonl"})
"""A line may have a role and content, and be a message of both."""


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"jsonl"}))
def test_a_file_read_as_another_format_gives_nothing_worth_storing(form):
    """Even if a format is named by mistake: no message with a text, a person and a time comes of it."""
    with all_cases() as case:
        for name, its in catalogue.FORMAT_OF.items():
            if form == its or {form, its} in READ_ALIKE:
                continue
            with case(name), suppress(InvalidInput):
                found = catalogue.messages(catalogue.SAMPLES / name, format=form)
                whole = [
                    one for one in found if one.text and one.sent_at and one.sender_id not in ("unknown", "system")
                ]
                assert not whole


def test_a_long_cell_and_a_row_that_is_none_of_the_table(tmp_path):
    head, long = "Time,SenderName,Sender,TalkerName,Talker,Content", "茶" * 200_000
    rows = f'2025-11-09 09:00:00,A,wx_a,Club,1@chatroom,"{long}"\n2025-11-09,A\nx,A,wx_a,Club,1@chatroom,hi\n'
    found = catalogue.items(write(tmp_path, "chat.csv", f"{head}\n{rows}"))
    assert [item.message.text if isinstance(item, Parsed) else item.number for item in found] == [long, 3, 4]


def test_a_folder_with_the_manifest_of_another_program_is_not_taken_for_chunks(tmp_path):
    write(tmp_path, "manifest.json", '{"name": "viewer"}')
    shutil.copy(catalogue.SAMPLES / "result.json", tmp_path)
    assert detect(tmp_path) == "telegram"


def test_chunks_in_a_zip_read_as_their_folder(tmp_path):
    folder = catalogue.SAMPLES / "private_10002_chunked"
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for file in sorted(folder.rglob("*.json*")):
            archive.write(file, f"export/{file.relative_to(folder).as_posix()}")
    assert detect(tmp_path / "export.zip") == "qq-exporter"
    assert catalogue.messages(tmp_path / "export.zip") == catalogue.messages(folder)


def test_a_message_of_qqs_text_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(qq, "LONGEST_TEXT", 10)
    lines = [
        "消息对象:登山",
        "2024-03-01 20:15:05 甲(1)",
        "0123456789",
        "lost",
        "lost too",
        "2024-03-01 20:16:05 乙(2)",
        "ok",
    ]
    found = catalogue.items(write(tmp_path, "chat.txt", "\n".join(lines)))
    assert [item.message.text if isinstance(item, Parsed) else item.number for item in found] == [
        "0123456789",
        4,
        5,
        "ok",
    ]


def test_a_mention_of_onebot_is_set_off_and_all_characters_stay(tmp_path):
    said = [{"type": "at", "data": {"qq": "5", "name": "Ann"}}, {"type": "text", "data": {"text": "come \ue000 now"}}]
    path = write(tmp_path, "a.jsonl", json.dumps({**ONEBOT, "message": said}))
    assert [message.text for message in catalogue.messages(path)] == ["@Ann come \ue000 now"]
