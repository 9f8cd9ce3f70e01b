"""A second reading of the samples of LINE and KakaoTalk, without code of the importers.

As in `counted_apart.py`: do not import roomlore here, and do not look at an importer to mend a function. The forms are
those of the parsers and samples that `SOURCES.md` names; each sample gives the words of its language and app.
"""

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from counted_apart import CHINA, Counted

HALVES = (("上午", "AM"), ("下午", "PM"), ("오전", "AM"), ("오후", "PM"))


def _time(text: str, form: str) -> datetime:
    for half, in_english in HALVES:
        text = text.replace(half, in_english)
    return datetime.strptime(text, form).replace(tzinfo=CHINA)


def _said(room: str, number: int, sender: str, at: datetime, text: str, people: Iterable[str]) -> Counted:
    named = tuple(name for name in people if f"@{name}" in text)
    return Counted(room, f"#{number}", sender, sender, at, text, mentions=named)


def _notice(room: str, number: int, at: datetime, text: str) -> Counted:
    return Counted(room, f"#{number}", None, None, at, text)


# LINE

LINE_HELD = (
    r"\[(?:Photo|Video|Sticker|Voice message|写真|動画|スタンプ|ボイスメッセージ|連絡先|貼圖|照片|影片|檔案|語音訊息"
    r"|位置資訊)\]"
)
LINE_NAMED = r"\[(?:File|Location|Contact|ファイル|位置情報)\] (?P<name>.+?)(?: ?https://\S+)?"


def line(path: Path, room: str, day: str, clock: str, gap: str = "\t", names: tuple[str, ...] = ()) -> list[Counted]:
    """Read a chat. `day`, `clock`: for strptime, the day without its weekday in brackets. `names`: of the people, in a
    form with blanks."""
    rows: list[tuple[datetime, list[str]]] = []
    today = ""
    for text in path.read_text(encoding="utf-8-sig").splitlines():
        if found := re.fullmatch(r"((?:\w{3}, )?[\d/.]{10})(?:[（(].[)）]| วัน\S+)?", text):
            today = found[1]
        elif today and (found := re.match(rf"((?:上午|下午)?\d\d?:\d\d(?:AM|PM)?){gap}", text)):
            rows.append((_time(f"{today} {found[1]}", f"{day} {clock}"), [text[found.end() :]]))
        elif rows:
            rows[-1][1].append(text)
    parts = [(at, *_line_parts("\n".join(lines).rstrip("\n"), gap, names)) for at, lines in rows]
    people = sorted({sender for _, sender, _ in parts if sender})
    return [_line_message(room, number, *part, people) for number, part in enumerate(parts)]


def _line_parts(whole: str, gap: str, names: tuple[str, ...]) -> tuple[str, str]:
    if gap == "\t":
        return (whole.partition("\t")[0], whole.partition("\t")[2])
    return next(((name, whole[len(name) + 1 :]) for name in names if whole.startswith(f"{name} ")), ("", whole))


def _line_message(room: str, number: int, at: datetime, sender: str, text: str, people: list[str]) -> Counted:
    if not sender or text.startswith("☎") or text == "ยกเลิกข้อความ":
        return _notice(room, number, at, text if sender != "ต้น" or text != "ยกเลิกข้อความ" else f"{sender} {text}")
    if "\n" in text and text[0] == text[-1] == '"':
        text = text[1:-1].replace('""', '"')
    counted = _said(room, number, sender, at, text, people)
    if text == "メッセージの送信を取り消しました":
        return replace(counted, text=None, recalled=True)
    if re.fullmatch(LINE_HELD, text) or text in ("รูป", "วิดีโอ", "สติกเกอร์"):
        return replace(counted, text="")
    if found := re.fullmatch(LINE_NAMED, text):
        return replace(counted, text="", shown=(found["name"],))
    return counted


# KakaoTalk

KAKAO_HELD = re.compile(r"사진(?: \d+장)?|동영상|이모티콘|음성메시지|[Pp]hoto|Video|Voice note|\d photos")
KAKAO_NAMED = re.compile(r"(?:파일|지도|File): (.+)")
KAKAO_CALL = re.compile(r"보이스톡 (?:해요|[\d:]+)")
KAKAO_GONE = ("삭제된 메시지입니다.", "This message was deleted.")
WINDOWS_DAY = re.compile(r"-{15} (.+) -{15}")


def kakao(path: Path, room: str, stamp: str, form: str, day: str = "") -> list[Counted]:
    """Read a chat. `stamp`: how a line of a message begins; `form`: its time, for strptime; `day`: for strptime, the
    days of Windows, whose lines have no date."""
    rows: list[tuple[datetime, str, list[str]]] = []
    today = ""
    for text in path.read_text(encoding="utf-8-sig").splitlines():
        if found := WINDOWS_DAY.fullmatch(text):
            today = re.sub(r" .요일$", "", found[1])
        elif found := re.fullmatch(stamp, text):
            at = _time(f"{today} {found['at']}".strip(), f"{day} {form}".strip())
            rows.append((at, found["who"] or "", [found["text"]]))
        elif day and text.endswith(("초대했습니다.", "나갔습니다.")):
            last = rows[-1][0] if rows else _time(f"{today} 오전 12:00", f"{day} {form}")
            rows.append((last, "", [text]))
        elif rows and not re.fullmatch(r"\d{4}년 [\d월일 ]+(?:.요일|오.[\d: ]+)|\w+, \w+ \d+, \d{4}", text):
            rows[-1][2].append(text)
    people = sorted({who for _, who, _ in rows if who})
    return [
        _kakao_message(room, number, at, who, "\n".join(lines).rstrip("\n"), people)
        for number, (at, who, lines) in enumerate(rows)
    ]


def kakao_table(path: Path, room: str) -> list[Counted]:
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines(keepends=True)))[1:]
    people: list[str] = []
    return [
        _kakao_message(
            room, number, _time(at, "%Y-%m-%d %H:%M:%S"), "" if text.endswith("나갔습니다.") else who, text, people
        )
        for number, (at, who, text) in enumerate(rows)
    ]


def _kakao_message(room: str, number: int, at: datetime, who: str, text: str, people: list[str]) -> Counted:
    if not who or KAKAO_CALL.fullmatch(text):
        return _notice(room, number, at, text)
    counted = _said(room, number, who, at, text, people)
    if text in KAKAO_GONE:
        return replace(counted, text=None, recalled=True)
    if KAKAO_HELD.fullmatch(text):
        return replace(counted, text="")
    if found := KAKAO_NAMED.fullmatch(text):
        return replace(counted, text="", shown=(found[1],))
    return replace(counted, text=re.sub(r"^\((?:이모티콘|emoticon)\) ", "", text))


ANDROID = r"(?P<at>\d{4}년 \d+월 \d+일 오. \d+:\d\d), (?:(?P<who>[^:\n]+) : )?(?P<text>.*)"
IPHONE = r"(?P<at>\d{4}\. \d+\. \d+\. \d\d:\d\d)(?:, (?P<who>[^:\n]+) : |: )(?P<text>.*)"
IPHONE_EN = r"(?P<at>\w{3} \d+, \d{4}, \d+:\d\d [AP]M)(?:, (?P<who>[^:\n]+) : |: )(?P<text>.*)"
WINDOWS = r"\[(?P<who>[^\]]+)\] \[(?P<at>(?:오. )?\d+:\d\d(?: [AP]M)?)\] (?P<text>.*)"
COUNT: dict[str, Callable[[Path], list[Counted]]] = {
    "[LINE] Trip.txt": partial(line, room="Trip", day="%a, %m/%d/%Y", clock="%I:%M%p"),
    "[LINE] 旅行のトーク.txt": partial(line, room="旅行", day="%Y/%m/%d", clock="%H:%M"),
    "[LINE] 與阿哲的聊天.txt": partial(line, room="阿哲", day="%Y/%m/%d", clock="%p%I:%M"),
    "[LINE]กลุ่มเดินป่า.txt": partial(
        line, room="กลุ่มเดินป่า", day="%Y.%m.%d", clock="%H:%M", gap=" ", names=("Nok Dee", "ต้น", "มะลิ")
    ),
    "KakaoTalkChats.txt": partial(kakao, room="등산 모임", stamp=ANDROID, form="%Y년 %m월 %d일 %p %I:%M"),
    "Talk_2026.1.7 10_00-1.txt": partial(kakao, room="둘레길", stamp=IPHONE, form="%Y. %m. %d. %H:%M"),
    "KakaoTalk Chats with Tour.txt": partial(kakao, room="Tour", stamp=IPHONE_EN, form="%b %d, %Y, %I:%M %p"),
    "KakaoTalk_20240103_1000_00_123_group.txt": partial(
        kakao, room="등산 모임", stamp=WINDOWS, form="%p %I:%M", day="%Y년 %m월 %d일"
    ),
    "KakaoTalk_Tour_windows.txt": partial(kakao, room="Tour", stamp=WINDOWS, form="%I:%M %p", day="%A, %B %d, %Y"),
    "KakaoTalk_Chat_등산 모임.csv": partial(kakao_table, room="KakaoTalk_Chat_등산 모임"),
}
