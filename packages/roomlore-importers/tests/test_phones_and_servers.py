"""Exports of LINE, KakaoTalk, Signal and of chat servers: forms that the samples do not have."""

import json
import random
from datetime import UTC, date, datetime, timedelta

import catalogue
import counted_phones
import pytest
from test_counted_apart import differences

from roomlore import InvalidInput
from roomlore.core.models import Role
from roomlore_importers import detect, find_exports, keep_apart, open_import
from roomlore_importers.written_dates import read_day, read_moment
from roomlore_testkit.case_table import all_cases


def read(tmp_path, name, text, **options):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return catalogue.items(path, **options)


DAYS = [
    ("2024.01.02 Tuesday", date(2024, 1, 2)),
    ("2024/1/2(火)", date(2024, 1, 2)),
    ("2024/01/02（二）", date(2024, 1, 2)),
    ("2024.01.02 星期二", date(2024, 1, 2)),
    ("2024/1/2周二", date(2024, 1, 2)),
    ("2024.01.02 วันอังคาร", date(2024, 1, 2)),
    ("2567.01.02 วันอังคาร", date(2024, 1, 2)),
    ("2024.01.02 화요일", date(2024, 1, 2)),
    ("Tue, 06/01/2026", date(2026, 1, 6)),
    ("Mon, 06/01/2026", date(2026, 6, 1)),
    ("Sel, 02/01/2024", date(2024, 1, 2)),
    ("martes, 2 de enero de 2024", date(2024, 1, 2)),
    ("вт, 02.01.2024", date(2024, 1, 2)),
    ("2024年1月2日 火曜日", date(2024, 1, 2)),
    ("--------------- Tuesday, January 2, 2024 ---------------", date(2024, 1, 2)),
    ("2024.01.02 we meet at the hut", None),
    ("Day changed Tue Jan 02 2024", None),
    ("1/2/24", None),
    ("2024/13/45(火)", None),
]
MOMENTS = [
    ("Thursday, November 3, 2016 at 11:59:50\u202fAM UTC", datetime(2016, 11, 3, 11, 59, 50)),
    ("Montag, 3. Juli 2023 um 12:00:00 UTC", datetime(2023, 7, 3, 12)),
    ("mardi 4 juillet 2023 à 14:05:01 UTC", datetime(2023, 7, 4, 14, 5, 1)),
    ("2023年7月3日星期一 UTC 12:01:02", datetime(2023, 7, 3, 12, 1, 2)),
    ("2024년 1월 1일 오후 1:02", datetime(2024, 1, 1, 13, 2)),
    ("Jul 9, 2024 at 12:34\u202fa.m.", datetime(2024, 7, 9, 0, 34)),
    ("25:61", None),
    ("9 July 2024", None),
]


def test_dates_in_words():
    with all_cases() as case:
        for text, wanted in DAYS:
            with case(text):
                written = read_day(text)
                assert (written.day() if written else None) == wanted
        for text, wanted in MOMENTS:
            with case(text):
                assert read_moment(text) == wanted


LINE = [
    ("[LINE] Chat history with Bo\nSaved on: 1/3/2024, 9:00\n\nTue, 1/2/2024\n3:04PM\tBo\thi\n", "Bo", 15, "hi"),
    ("[LINE] 花子とのトーク履歴\n保存日時：2024/01/03 09:00\n\n2024/01/02(火)\n午後3:04\t花子\thi\n", "花子", 15, "hi"),
    ("[LINE] 与小明的聊天记录\n保存日期: 2024/01/03 09:00\n\n2024/1/2周二\n下午03:04\t小明\thi\n", "小明", 15, "hi"),
    ("[LINE] ประวัติการแชทกับ Nok\nบันทึกเมื่อ: 2024/01/03\n\n2024/01/02 อังคาร\n15:04\tNok\thi\n", "Nok", 15, "hi"),
    ("\ufeff2024.01.02 Tuesday\n\n15:04 Bo hi\n15:05 Bo Photos\n", "chat", 15, "hi"),
    ("2024.01.02 金曜日\n3:04 p. m.\tBo\thi\n", "chat", 15, "hi"),
]


def test_line_in_several_languages(tmp_path):
    with all_cases() as case:
        for number, (text, room, hour, said) in enumerate(LINE):
            with case(text):
                first = read(tmp_path, f"{number}/chat.txt", text)[0].message
                assert detect(tmp_path / f"{number}/chat.txt") == "line"
                assert (first.room_id, first.text, first.sent_at) == (
                    room,
                    said,
                    datetime(2024, 1, 2, hour, 4, tzinfo=UTC),
                )


def test_a_line_of_a_message_is_no_message_and_no_day_of_its_own(tmp_path):
    text = "2024.01.02 Tuesday\n15:04 Bo plan:\n12:30 lunch\n2024.01.05 the hut\n15:05 Ann I left the group early\n"
    found = [item.message for item in read(tmp_path, "[LINE]Trip.txt", text + "15:06 Bo ok\n15:07 Ann Photos\n")]
    assert [message.text for message in found] == [
        "plan:\n12:30 lunch\n2024.01.05 the hut",
        "I left the group early",
        "ok",
        "",
    ]
    assert [message.role for message in found] == [Role.USER] * 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.txt", "12:00 lunch\n13:00 hut\n14:00 tea with Ann\n"),
        ("talk.txt", "10:01 Ann: hello\n10:02 Bo: hi\n10:03 Ann: bye\n"),
        ("head.txt", "[LINE] Chat history with Bo\nSaved on: 1/3/2024, 9:00\n"),
    ],
)
def test_what_only_looks_like_a_chat_is_none(tmp_path, name, text):
    with pytest.raises(InvalidInput):
        read(tmp_path, name, text)


def test_signals_markdown_is_read_if_it_is_given_alone():
    path = catalogue.SAMPLES / "Signal Hikers" / "chat.md"
    found = catalogue.messages(path)
    of_json = [one for one in catalogue.messages(path.parent) if one.role is Role.USER][: len(found)]
    assert [(one.sender_id, one.text) for one in found][:5] == [(one.sender_id, one.text) for one in of_json][:5]
    assert found[0].metadata["reactions"] == {"👍": 2}
    assert found[1].metadata["quoted"] == {"text": "Who has the key?"}
    assert [each["type"] for one in found for each in one.metadata.get("attachments", ())] == ["picture", "sticker"]


def test_two_chats_of_one_name_keep_apart(tmp_path):
    for phone, said in (("ann", "hi"), ("ben", "ho")):
        read(
            tmp_path,
            f"{phone}/[LINE] Trip.txt",
            f"[LINE] Chat history in Trip\n\n2024.01.02 Tuesday\n09:00\tBo\t{said}\n",
        )
    assert sorted(rooms["Trip"] for rooms in keep_apart(find_exports(tmp_path))) == ["Trip (ann)", "Trip (ben)"]


def test_the_files_of_one_chat_come_with_the_oldest_first(tmp_path):
    for number, stamp in ((1, 3), (2, 2), (10, 1)):
        said = [
            {"sender_name": "Ann", "timestamp_ms": stamp * 10**12 + each, "content": f"{stamp}.{each}"}
            for each in (2, 1)
        ]
        chat = {"participants": [{"name": "Ann"}], "messages": said, "title": "Tea", "thread_path": "inbox/tea_1"}
        read(tmp_path, f"tea_1/message_{number}.json", json.dumps(chat))
    texts = []
    for file in find_exports(tmp_path):
        with open_import(file.path, file.format, member=file.member) as export:
            texts += [item.message.text for item in export]
    assert texts == ["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"]


PAGES = [
    ('<!DOCTYPE html><html><head><title>Tea</title></head><body class="_a6-p">', "download your information again"),
    ('<html><div class="mx_EventTile">', "Element as HTML"),
    ("<?xml version='1.0'?>\n<!-- x -->\n<smses count='1'>", "as XML"),
    (
        '<meta http-equiv="content-type" content="text/html; charset=utf-8"><p><strong>ann</strong>',
        "Rocket.Chat as HTML",
    ),
    ("<!DOCTYPE html><html><!-- made by signalbackup-tools -->", "Signal as HTML"),
    ("<html><body>Microsoft Purview", "Teams as HTML"),
]


@pytest.mark.parametrize(("page", "told"), PAGES)
def test_pages_and_xml_are_refused_by_name(tmp_path, page, told):
    with pytest.raises(InvalidInput, match=told):
        read(tmp_path, "chat.html", page)


HELD = {"line": ("[写真]", "[スタンプ]", "[ファイル] plan.pdf"), "kakaotalk": ("사진", "이모티콘", "파일: plan.pdf")}
GONE = {"line": "メッセージの送信を取り消しました", "kakaotalk": "삭제된 메시지입니다."}
CALLS = {"line": "☎ 通話時間 1:23", "kakaotalk": "보이스톡 3:12"}
PEOPLE = ("花子", "太郎 山田", "Ann Lee", "박준")


def chat_of(form: str, count: int) -> str:
    """Return a long chat with everything in it, the same at each call."""
    dice, when, day = random.Random(form), datetime(2024, 1, 1, 8), None
    lines = (
        ["[LINE] 旅行のトーク履歴", "保存日時：2025/01/04 09:00"]
        if form == "line"
        else ["旅 카카오톡 대화", "저장한 날짜 : x", ""]
    )
    for number in range(count):
        when += timedelta(minutes=dice.choice((0, 1, 7, 600)))
        text = dice.choice(
            (*HELD[form], GONE[form], CALLS[form], f"no. {number}", f"one\n\n{number}: two", f"@{PEOPLE[0]} {number}")
        )
        if when.date() != day and form == "line":
            day = when.date()
            lines += ["", f"{when:%Y/%m/%d}({'月火水木金土日'[when.weekday()]})"]
        if form == "line":
            notice = dice.random() < 0.1
            text = f'"{text}"' if "\n" in text else text
            lines.append(
                f"{when:%H:%M}\t\t{PEOPLE[0]}が次郎を招待しました"
                if notice
                else f"{when:%H:%M}\t{dice.choice(PEOPLE)}\t{text}"
            )
        else:
            half = f"{'오전' if when.hour < 12 else '오후'} {(when.hour - 1) % 12 + 1}:{when:%M}"
            lines.append(f"{when.year}년 {when.month}월 {when.day}일 {half}, {dice.choice(PEOPLE)} : {text}")
    return "\n".join(lines)


@pytest.mark.parametrize(("form", "like"), [("line", "[LINE] 旅行のトーク.txt"), ("kakaotalk", "KakaoTalkChats.txt")])
def test_a_long_chat_reads_as_the_second_reader_counts_it(tmp_path, form, like):
    path = tmp_path / like
    path.write_text(chat_of(form, 4000), encoding="utf-8")
    counted = counted_phones.COUNT[like](path, room="旅行" if form == "line" else "旅")
    items = catalogue.items(path, timezone="Asia/Shanghai")
    assert len(items) == len(counted) == 4000
    assert sum(one.recalled for one in counted) > 300 < sum(one.sender is None for one in counted)
    assert differences(counted, items, own=True) == []


JUNK = (None, True, 7, -1.5, "x", "", [], ["x", 3, None], [[1]], {}, {"a": 1}, {"name": [1]}, 10**30)
DOCUMENTS = {
    "matrix": "matrix - Hut - Chat Export.json",
    "mattermost": "acme.mattermost.jsonl",
    "rocketchat": "history.rocketchat.json",
    "zulip": "Zulip export",
    "googlechat": "Space AAAA1",
    "meta": "Ann Lee_5.json",
    "teams": "chat.teams.json",
    "signal": "Signal Hikers",
}


def places(value, path=()):
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def with_junk(value, path, junk):
    if not path:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_junk(value[path[0]], path[1:], junk)
    return copy


@pytest.mark.parametrize(("form", "name"), DOCUMENTS.items())
def test_values_of_any_type_in_any_place(tmp_path, form, name):
    where = catalogue.SAMPLES / name
    files = [where] if where.is_file() else list(where.glob("*.json"))
    for path in files:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    chosen, main = random.Random(4), next(path for path in files if path.name not in ("realm.json", "group_info.json"))
    for path in files:
        text = path.read_text("utf-8")
        lines = [json.loads(line) for line in text.splitlines()] if text.count("\n{") else [json.loads(text)]
        for place in places(lines):
            for junk in chosen.sample(JUNK, 2):
                damaged = with_junk(lines, place, junk)
                (tmp_path / path.name).write_text("\n".join(map(json.dumps, damaged)), "utf-8")
                catalogue.items(tmp_path / main.name, format=form)
        (tmp_path / path.name).write_text(text, "utf-8")


def test_html_that_is_none(tmp_path):
    body = "a < b <![x]> <!-- no --> <b>c</b> " + "<a " * 30_000
    message = {"id": "1", "createdDateTime": "2024-05-01T10:00:00Z", "from": {"user": {"id": "u"}}}
    record = message | {"chatId": "19:x", "body": {"contentType": "html", "content": body}}
    items = read(tmp_path, "chat.json", json.dumps([record]), format="teams")
    assert items[0].message.text.startswith("a < b <![x]>  c <a <a")
