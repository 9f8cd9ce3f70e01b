"""Text exports of phones: a message begins with a time and may have further lines, days have lines of their own.

An importer of such a format says what a line is (`Grammar.head`); this module puts the messages together and knows the
words that the apps of several languages write in place of pictures, of what was taken back, and about who came or went.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Any, Protocol

from roomlore.core.audience import Move, RoomFacts
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Parsed, Position
from roomlore_importers.export_files import LONGEST_TEXT, TOO_LONG, Line, Options, Source
from roomlore_importers.shapes import Draft, LineReader, attached, in_zone, named

_MOST_HEADERS = 8
"""Lines before the first message that may be the head of the file."""


@dataclass(slots=True)
class Head:
    """The beginning of a message. `at`: its local time, or the time of day if a line before told the day; None: as the
    message before it. `sender`: '' for the app itself."""

    sender: str
    text: str
    at: datetime | time | None = None


@dataclass(slots=True)
class Content:
    """What a message says, without what the app wrote in place of something."""

    text: str
    role: Role = Role.USER
    metadata: dict[str, Any] = field(default_factory=dict)


class Grammar(Protocol):
    """A text format. `room`: the chat's name; `facts`: what the file says of it; `names`: of those who wrote."""

    room: str
    facts: RoomFacts | None
    names: tuple[str, ...]

    def head(self, text: str, chat: "ChatText") -> Head | date | bool | None:
        """Return the message that a line begins, the day that it tells, True for a line of the file's own, and None for
        one that continues a message."""

    def content(self, text: str) -> Content:
        """Return what a message of a person says."""


@dataclass(slots=True, kw_only=True)
class _Draft(Draft):
    head: Head
    local: datetime | None


class ChatText(LineReader):
    """A chat being read. `day`, `latest`: of the message before. `after_blank`: True behind an empty line."""

    def __init__(self, source: Source, options: Options, resume_from: Position | None, grammar: Grammar) -> None:
        super().__init__(source, options, resume_from)
        self._grammar = grammar
        self._room = options.room_id or options.id_of(grammar.room)
        self.day = date.fromordinal(self._start["day"]) if self._start.get("day") else None
        self.latest = datetime.fromisoformat(self._start["last"]) if self._start.get("last") else None
        self.after_blank = True
        self._draft: _Draft | None = None

    def _take(self, line: Line) -> Iterator[Item]:
        head = self._grammar.head(line.text, self) if line.whole else None
        self.after_blank = not line.text.strip()
        if head is None and self._draft is not None and line.whole and self._draft.size < LONGEST_TEXT:
            self._draft.add(line.text, line.end)
            return
        yield from self._finish()
        if isinstance(head, Head):
            state = self._state(line)
            moment = self._moment(head.at)
            self._draft = _Draft(head=head, local=moment, lines=[head.text], state=state, end=line.end)
        elif isinstance(head, date):
            self.day = head
        elif head is None and not (self.after_blank or (line.number <= _MOST_HEADERS and not self._passage.start)):
            yield self._bad(line, "no time and no message before it to continue" if line.whole else TOO_LONG)

    def _state(self, line: Line) -> dict[str, Any]:
        last = self.latest.isoformat() if self.latest else ""
        return line.before | {"day": self.day.toordinal() if self.day else 0, "last": last}

    def _finish(self) -> Iterator[Parsed]:
        draft, self._draft = self._draft, None
        if draft is None:
            return
        head, local, body = draft.head, draft.local, "\n".join(draft.lines).rstrip("\n ")
        content = self._grammar.content(body) if head.sender else Content(body, Role.SYSTEM)
        moved = moves_of(body) if content.role is Role.SYSTEM and not head.sender else ()
        sender = head.sender or (moved[0].person if moved else "")
        key = self._passage.take(local.isoformat() if local else "", head.sender, body, draft.state)
        names = self._grammar.names if "@" in content.text else ()
        message = Message(
            id=key,
            room_id=self._room,
            sender_id=sender or "system",
            sender_name=sender,
            role=content.role,
            text=content.text,
            sent_at=local and in_zone(local, self._options.timezone),
            mentions=tuple(name for name in names if f"@{name}" in content.text),
            metadata=content.metadata,
        )
        room = None if self._options.room_id else named(self._grammar.facts, self._grammar.room, self._room)
        yield Parsed(message, self._position(draft.end), room=room, moves=moved)

    def _moment(self, at: datetime | time | None) -> datetime | None:
        if isinstance(at, datetime):
            self.latest = at
        elif at is not None:
            self.latest = datetime.combine(self.day, at) if self.day else None
        elif self.day and (self.latest is None or self.latest.date() != self.day):
            self.latest = datetime.combine(self.day, time())
        return self.latest


_WORDS = {
    "picture": "photo|photos|image|images|foto|fotos|imagen|imagem|immagine|写真|照片|图片|圖片|画像|รูป|รูปภาพ|ภาพ|사진"
    "|ảnh|hình ảnh|фото|gambar|bild|fotoğraf",
    "video": "video|videos|vídeo|vidéo|動画|影片|视频|視訊|วิดีโอ|동영상|видео",
    "sticker": "sticker|stickers|emoticon|emoticons|スタンプ|貼圖|贴图|สติกเกอร์|สติ๊กเกอร์"
    "|스티커|이모티콘|stiker|pegatina|figurinha|стикер|nhãn dán|çıkartma|autocollant",
    "voice": "voice message|voice messages|voice note|audio|ボイスメッセージ|語音訊息|语音信息|语音消息|ข้อความเสียง"
    "|음성메시지|음성 메시지|pesan suara|mensaje de voz|mensagem de voz|sprachnachricht|message vocal|messaggio vocale",
    "file": "file|files|ファイル|檔案|文件|ไฟล์|파일|archivo|arquivo|datei|fichier|файл|berkas",
    "location": "location|位置情報|位置訊息|位置資訊|位置资讯|位置信息|位置|ตำแหน่ง|ตำแหน่งที่ตั้ง|위치|위치정보|지도|map"
    "|lokasi|ubicación|localização|standort|vị trí|null",
    "contact": "contact|contact info|連絡先|聯絡資訊|联系人|รายชื่อติดต่อ|연락처|kontak|contacto|contato|kontakt",
    "poll": "poll|투표|โพล|投票|アンケート|polling|encuesta|enquete|umfrage|sondage",
}
_KIND_OF = {word: kind for kind, row in _WORDS.items() for word in row.split("|")}
_BRACKETED = lazy_pattern(r"\[(?P<word>[^\[\]\n]{1,30})\](?: ?(?P<about>[^\n]{0,400}))?")
"""A word in brackets in place of something, with its name or place behind it."""
_BARE = lazy_pattern(
    r"(?P<word>[^\W\d_][^\d:：\n()]{0,30}?)(?: (?P<count>\d{1,3})\s?(?:장|개|枚)?)?(?:[:：] ?(?P<about>[^\n]{1,400}))?"
    r"|(?P<many>\d{1,3}) (?P<things>\w{3,12})"
)
"""A word alone in place of something, with how many there are, or with a name behind a colon."""
_STICKER = lazy_pattern(r"\((?P<word>이모티콘|emoticon|emoticons|スタンプ)\)\s*", re.I)
"""A sticker in front of words."""
_FILE = lazy_pattern(r"[0-9a-f]{8,64}\.(?:jpe?g|png|gif|webp|mp4|mov|m4a|aac|pdf)", re.I)
"""The name of a file in the export, alone."""
_GONE = lazy_pattern(
    r"(?:You )?unsent a message\.?|(?:This )?message (?:was |has been )?(?:unsent|deleted)\.?|Deleted message\.?"
    r"|(?:あなたが)?メッセージの送信を取り消しました。?|[您你]?已?收回了?訊息。?|[您你]?撤回了一条消息。?"
    r"|(?:คุณ)?ยกเลิกข้อความ(?:แล้ว)?|메시지 ?(?:전송을|보내기를) 취소(?:했|하였)습니다\.?"
    r"|삭제된 메시지입니다\.?|메시지가 삭제되었습니다\.?",
    re.I,
)
"""What stands in place of a message that was taken back."""
_CALL = lazy_pattern(
    r"☎[^\n]*|(?:보이스톡|페이스톡|그룹콜|라이브톡)(?: (?:해요|취소|부재중|거절|종료|응답 없음|[\d:]{3,8}))?"
    r"|(?:Voice|Video|Face|Group) ?(?:Call|Talk)(?: (?:canceled|declined|missed|ended|[\d:]{3,8}))?|Missed call"
)
"""A call, which the app writes as a message of who made it."""


def content_of(text: str, *, bare: bool) -> Content:
    """Return what a message says. `bare`: the app writes words such as "Photo" without brackets."""
    if _GONE.fullmatch(text):
        return Content("", metadata={"deleted": True})
    if _CALL.fullmatch(text):
        return Content(text, Role.SYSTEM)
    if bare and (sticker := _STICKER.match(text)):
        return Content(text[sticker.end() :], metadata={"attachments": [attached(kind="sticker")]})
    if bare and _FILE.fullmatch(text):
        return Content("", metadata={"attachments": [attached(name=text, file=text)]})
    held = _held(text, bare=bare)
    if not held:
        return Content(text)
    caption = {"caption": held[0]["name"]} if held[0].get("name") else {}
    return Content("", metadata={"attachments": held} | caption)


def kind_of_word(word: str) -> str:
    """Return of what kind a thing is that an app calls so, '' for any other word."""
    return _KIND_OF.get(word.strip("[]").casefold(), "")


def _held(text: str, *, bare: bool) -> list[dict[str, Any]]:
    match = _BRACKETED.fullmatch(text)
    if match is None and bare:
        match = _BARE.fullmatch(text)
    if match is None:
        return []
    found = match.groupdict()
    kind = kind_of_word(found["word"] or found.get("things") or "")
    about = (found.get("about") or "").strip()
    if not kind or (about and kind not in ("file", "location", "contact", "poll")):
        return []
    count = int(found.get("count") or found.get("many") or 1)
    if kind == "location":
        place, _, url = about.rpartition("http")
        return [attached(kind=kind, caption=place or about, url=f"http{url}" if _ else "")]
    return [attached(kind=kind, name=about) for _ in range(min(count, 100))]


_BY = r"[^\n]{1,100}?"
_WHO = r"(?P<who>[^\n]{1,400}?)"
_MOVES = tuple(
    (lazy_pattern(pattern + r"[.。]?"), came)
    for pattern, came in (
        (rf"(?!.* to the (?:group|chat))(?:{_BY}) invited {_WHO}", True),
        (rf"{_BY} added {_WHO}(?: to (?:the|this) (?:group|chat(?: ?room)?))?", True),
        (rf"{_WHO} (?:has )?joined(?: (?:the|this) (?:group|chat(?: ?room)?))?", True),
        (rf"{_BY} (?:removed|kicked) {_WHO}(?: from (?:the|this) (?:group|chat(?: ?room)?))?", False),
        (rf"{_WHO} (?:has )?left(?: (?:the|this) (?:group|chat(?: ?room)?))?", False),
        (rf"{_BY}が{_WHO}(?:さん)?をグループに追加しました", True),
        (rf"{_WHO}(?:さん)?が(?:グループに|トークに)?参加しました", True),
        (rf"{_BY}が{_WHO}(?:さん)?をグループから(?:削除|退会させ)(?:しま|まし)した?", False),
        (rf"{_WHO}(?:さん)?が(?:グループを|トークを)?(?:退会|退出)しました", False),
        (rf"{_BY} ?已?(?:新增|[将將把]) ?{_WHO} ?(?:添加|新增|加入)?[至到]?(?:群組|群聊|群)", True),
        (rf"{_WHO} ?已?加入了?(?:該|该)?(?:群組|群聊|群|聊天)", True),
        (rf"{_BY} ?已?[将將把] ?{_WHO} ?(?:強制|强制)?(?:退出|移出|移除|刪除|删除)[^\n]{{0,10}}", False),
        (rf"{_WHO} ?已?(?:離開|离开|退出|退群)了?(?:群組|群聊|群|聊天)?", False),
        (rf"{_BY} ?(?:ได้)?เพิ่ม ?{_WHO} ?(?:เข้า|ใน|เข้าร่วม|เข้ามาใน)กลุ่ม(?:แล้ว)?", True),
        (rf"{_WHO} ?(?:ได้)?เข้าร่วม(?:กลุ่ม|แชท)(?:แล้ว)?", True),
        (rf"{_BY} ?(?:ได้)?ลบ ?{_WHO} ?ออกจากกลุ่ม(?:แล้ว)?", False),
        (rf"{_WHO} ?(?:ได้)?ออกจาก(?:กลุ่ม|แชท)(?:แล้ว)?", False),
        (rf"{_BY}님이 {_WHO}님을 초대했습니다", True),
        (rf"{_WHO}님이 들어왔습니다", True),
        (rf"(?:{_BY}님이 )?{_WHO}님을 내보냈습니다", False),
        (rf"{_WHO}님이 나갔습니다", False),
    )
)
"""Notices about who came (True) or went (False), in English, Japanese, Chinese, Thai and Korean. Whom LINE calls
invited to the group has not come yet."""
_BETWEEN = lazy_pattern(r"님과 |님, |님,|, | and |、|，| และ | 및 ")
"""What stands between the names of several people."""
_LONGEST_NOTICE = 400


def moves_of(notice: str) -> tuple[Move, ...]:
    """Return who came or went, by name; empty if the notice is about anything else."""
    if len(notice) > _LONGEST_NOTICE or "\n" in notice:
        return ()
    for pattern, came in _MOVES:
        if match := pattern.fullmatch(notice):
            names = (name.strip(" \u2068\u2069") for name in _BETWEEN.split(match["who"]))
            return tuple(Move(name, came, by_name=True) for name in names if name)
    return ()


def is_gone(notice: str) -> bool:
    """Return True for a notice that somebody took a message back."""
    return _GONE.search(notice) is not None


def by_length(names: Iterable[str]) -> tuple[str, ...]:
    """Return names without repetitions, the longest first."""
    return tuple(sorted({name for name in names if name}, key=lambda name: (-len(name), name)))
