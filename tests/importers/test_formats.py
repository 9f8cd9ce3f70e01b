"""What the samples do not show: encodings, zones, odd values, errors, one case a test."""

import json
import zipfile
from datetime import UTC, datetime

import catalogue
import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.records import to_line
from roomlore.importers import Bad, Parsed, detect, lines, open_import, window

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
    monkeypatch.setattr(lines, "LONGEST_LINE", 100)
    path = write(tmp_path, "a.log", "[21:14] <a> x\n[21:14] <a> " + "y" * 1000 + "\n[21:15] <b> z\n")
    found = catalogue.items(path, format="irc")
    assert [type(item) for item in found] == [Parsed, Bad, Parsed]
    assert found[1].number == 2


def test_an_overlong_record_is_bad_and_the_rest_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(window, "LONGEST_VALUE", 1 << 16)
    monkeypatch.setattr(window, "_CHUNK", 1 << 12)
    export = json.loads((catalogue.SAMPLES / "telegram.json").read_text("utf-8"))
    export["messages"][2]["text"] = "long " * 100_000
    found = catalogue.items(write(tmp_path, "telegram.json", json.dumps(export)))
    assert [item.message.id for item in found if isinstance(item, Parsed)] == ["1", "2", "4", "5"]


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


@pytest.mark.parametrize(
    ("line", "sender", "text", "role"),
    [
        ("[21:14:05] <~root> hi", "root", "hi", Role.USER),
        ("[2024-05-01 21:14:05] <a b> hi", "a b", "hi", Role.USER),
        ("[21:14:05] *** Joins: eve (e@x)", "eve", "Joins: eve (e@x)", Role.SYSTEM),
        ("Nov 15 21:14:05 <eve>\thello", "eve", "hello", Role.USER),
        ("Nov 15 21:14:05 *\teve has quit (bye)", "eve", "eve has quit (bye)", Role.SYSTEM),
        ("2024-05-01T21:14:05+0200 <eve> ok", "eve", "ok", Role.USER),
        ("[09:14 PM] <eve> ok", "eve", "ok", Role.USER),
        ("[21:14] <eve> ", "eve", "", Role.USER),
        ("[21:14] <-eve-> a > b", "-eve-", "a > b", Role.USER),
    ],
)
def test_irc_lines(tmp_path, line, sender, text, role):
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
        sent_at=moment, role=Role.TOOL, reply_to="", root_id="r", mentions=("x", ""), has_tool_calls=True, turn_id="t",
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


@pytest.mark.parametrize("content", ["", "\n\n", "hello world\nno chat here\n", "{}", "[]", "\x00\x01\x02"])
def test_what_cannot_be_told_lists_the_formats(tmp_path, content):
    with pytest.raises(InvalidInput, match="jsonl, openai, chatgpt"):
        detect(write(tmp_path, "a.txt", content))


@pytest.mark.parametrize("form", sorted(set(catalogue.FORMAT_OF.values()) - {"slack"}))
@pytest.mark.parametrize("content", ["", "\n", "{}", "[]", "null", "\x00", "]", '"'])
def test_next_to_nothing_gives_no_message(tmp_path, form, content):
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
