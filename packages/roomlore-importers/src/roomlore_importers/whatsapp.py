"""WhatsApp's chat export: messages with dates in the order and notation of the phone's language, and notices about who
came and went in English, German and Chinese."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from itertools import islice, pairwise
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position
from roomlore_importers.export_files import (
    LONGEST_TEXT,
    TOO_LONG,
    Line,
    Options,
    Source,
    derived_id,
    excerpt,
    read_lines,
)
from roomlore_importers.shapes import Passage, after_position, attached, in_zone

MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
_MARGIN = f"{MARKS}~\u202f\u00a0 "
"""What WhatsApp puts before and after a name."""
_BLANKS = str.maketrans({"\u202f": " ", "\u00a0": " ", "\u2009": " ", **dict.fromkeys(MARKS)})

_DATE = (
    r"(?:(?P<zh>\d{4}年\d{1,2}月\d{1,2}日)|(?P<a>\d{1,4})(?P<mark>[./-]) ?(?P<b>\d{1,2})(?P=mark) ?(?P<c>\d{1,4})\.?)"
)
_HALF = r"上午|下午|凌晨|清晨|早上|中午|晚上|午前|午後|오전|오후"
_CLOCK = (
    rf"(?:(?P<before>{_HALF}) ?)?(?P<hour>\d{{1,2}})[:.](?P<minute>\d\d)(?:[:.](?P<second>\d\d))?"
    r"(?: ?(?P<after>[AaPp]\. ?[Mm]\.|[AaPp][Mm]))?"
)
_BETWEEN = r"[,،]? *(?:(?:klo|um|à|at|kl\.?|a las|alle|às|星期.|週.|周.) *)?"
_STAMP = rf"{_DATE}{_BETWEEN}{_CLOCK}"
_HEADER = lazy_pattern(rf"(?:\[{_STAMP}\] ?|{_STAMP.replace('?P<', '?P<_').replace('?P=', '?P=_')} [-–] )")
_LONGEST = 60
_AFTERNOON = ("下午", "晚上", "午後", "오후")
_ORDERS = ("dmy", "mdy", "ymd")


@dataclass(frozen=True, slots=True)
class Stamp:
    """The date and time before a message: the date's three numbers as written, and the time. `length` in characters of
    the line. `uppercase`: AM or PM in capitals. `padded`: 01/02 rather than 1/2."""

    numbers: tuple[int, int, int]
    mark: str
    hour: int
    minute: int
    second: int
    uppercase: bool
    padded: bool
    length: int

    def at(self, order: str) -> datetime | None:
        """Return the local time with the date read in this order, or in another if that is impossible; None if all
        are."""
        day = next((day for candidate in (order, *_ORDERS) if (day := self.day(candidate))), None)
        if day is None or self.hour > 23 or self.minute > 59:
            return None
        return datetime.combine(day, time(self.hour, self.minute, min(self.second, 59)))

    def day(self, order: str) -> date | None:
        if self.numbers[0] > 999:
            order = "ymd"
        year, month, day = (self.numbers[order.index(part)] for part in "ymd")
        try:
            return date(year + 2000 if year < 100 else year, month, day)
        except ValueError:
            return None


def read_stamp(line: str) -> Stamp | None:
    """Return the stamp at the start of a line, None if there is none."""
    first = line[:1]
    if not (first.isdecimal() or first == "[" or first in MARKS):
        return None
    head = line[:_LONGEST].translate(_BLANKS)
    match = _HEADER.match(head)
    if match is None:
        return None
    parts = {key.removeprefix("_"): value for key, value in match.groupdict().items() if value is not None}
    return _stamp(parts, _raw_length(line, match.end()))


def _raw_length(line: str, length: int) -> int:
    """Return how many characters of the line, with direction marks, make up this length without them."""
    taken = 0
    for place, character in enumerate(line):
        if taken == length:
            return place
        taken += character not in MARKS
    return len(line)


def _stamp(parts: dict[str, str], length: int) -> Stamp:
    after = parts.get("after", "")
    written = re.findall(r"\d+", parts["zh"]) if "zh" in parts else [parts["a"], parts["b"], parts["c"]]
    return Stamp(
        numbers=(int(written[0]), int(written[1]), int(written[2])),
        mark=parts.get("mark", "年"),
        hour=_hour(int(parts["hour"]), parts.get("before", ""), after.lower()[:1]),
        minute=int(parts["minute"]),
        second=int(parts.get("second", "0")),
        uppercase=after[:1] in ("A", "P"),
        padded=len(written[0]) > 1 and len(written[1]) > 1,
        length=length,
    )


def _hour(hour: int, before: str, after: str) -> int:
    if hour > 12 or not (before or after):
        return hour
    if before == "中午":
        return hour + 12 if hour < 11 else hour
    return hour % 12 + (12 if after == "p" or before in _AFTERNOON else 0)


def decide_order(stamps: Iterable[Stamp]) -> str:
    """Return "dmy", "mdy" or "ymd": the order with the fewest impossible dates, then the fewest steps back, then the
    most common one."""
    seen = list(stamps)
    american = bool(seen) and seen[0].mark == "/" and seen[0].uppercase and not all(stamp.padded for stamp in seen)
    habit = ("mdy", "dmy", "ymd") if american else _ORDERS
    return min(habit, key=lambda order: _implausibility(seen, order))


def _implausibility(stamps: list[Stamp], order: str) -> tuple[int, int, int]:
    """Return (impossible dates, steps back, how far apart the dates lie in powers of eight)."""
    days = [day.toordinal() for stamp in stamps if (day := stamp.day(order))]
    steps = [later - earlier for earlier, later in pairwise(days)]
    way = sum(map(abs, steps))
    return len(stamps) - len(days), sum(step < 0 for step in steps), int(math.log(way + 1, 8))


_SNIFFED = 5000
_LEFT_OUT = (
    r"omitted|weggelassen|ausgeschlossen|省略|略去|忽略|omitid[oa]|omiss?[oeai]?s?|ocult[oa]|weggelaten|utelämn\w*"
    r"|пропущен\w*|без медиафайлов|생략|제외|null|omess[oiae]|dahil edilmedi|pominięt\w*|tidak disertakan"
    r"|含まれていません"
)
_MEDIA = lazy_pattern(rf"<(?=[^<>]*+>\Z)(?P<kind>[^<>]*(?:{_LEFT_OUT})[^<>]*)>", re.I)
_MEDIA_PLAIN = lazy_pattern(
    r"(?:image|video(?: note)?|audio|voice message|sticker|GIF|document|contact card) omitted"
    r"|(?:Bild|Video|Audio|Sticker|GIF|Dokument|Kontaktkarte) weggelassen"
    r"|(?:imagen|video|audio|sticker|GIF|documento) omitid[oa]|(?:immagine|video|audio|sticker|documento) omess[oa]"
    r"|(?:imagem|vídeo|áudio|figurinha|GIF|documento) (?:ocultad|omitid)[oa]"
    r"|(?:afbeelding|video|audio|sticker|GIF|document) weggelaten"
    r"|(?:obraz|wideo|audio|naklejk[aęi]|dokument) pominięt\w{1,2}"
    r"|(?:图像|图片|视频|音频|贴图|表情|文档)已忽略|忽略(?:图像|图片|视频|音频|贴图|文档)"
    r"|(?:圖片|影片|視訊|音訊|貼圖|文件)已略去|(?:사진|동영상|오디오|음성|스티커|문서) 생략됨",
    re.I,
)
_MEDIA_MARKED = lazy_pattern(
    r"[^\n]{0,120}(?:omitted|weggelassen|omitid[oa]|omise?|忽略[^\n]{0,8}|已略去|已省略|absente?|omess[oa]|ocultad[oa]"
    r"|weggelaten|отсутству\w{2,3}|dahil edilmedi|pominięt[oya]|tidak disertakan|含まれていません|생략됨)",
    re.I,
)
_THINGS = (
    ("contact", r"contact|kontakt|contato|名片|联系人|聯絡人|контакт|연락처|連絡先"),
    ("sticker", r"sticker|figurinha|стикер|çıkartma|naklejk|stiker|贴图|貼圖|表情|ステッカー|スタンプ|스티커"),
    ("voice", r"audio|áudio|voice|sprachnachricht|аудио|\bses\b|音频|音訊|语音|語音|音声|오디오|음성"),
    ("video", r"v[ií]d[eé]o|wideo|видео|视频|視訊|影片|動画|ビデオ|동영상|\bgif\b"),
    ("picture", r"image|photo|imagen|immagine|imagem|foto|bild|afbeelding|изображени|фото|görüntü|resim|obraz|zdjęci"
                r"|gambar|图像|图片|圖片|照片|画像|写真|사진|이미지"),
)  # fmt: skip
_WHAT = tuple((kind, lazy_pattern(words, re.I)) for kind, words in _THINGS)
"""Of what kind media are that were left out, by the words of the program."""
_UNNAMED = lazy_pattern(
    r"(?:IMG|VID|PTT|AUD|STK|DOC)-\d{8}-WA\d{1,9}\.\w{2,5}|\d{8}-[A-Z]{3,8}(?:-[-\d]{1,30})?\.\w{2,5}"
)
"""A name that WhatsApp itself gives a file."""
_NAME = lazy_pattern(r"[^\n•]{1,200}\.\w{2,5}")
_ATTACHED = lazy_pattern(
    r"<(?:attached|Anhang|附件|adjunto|pièce jointe|allegato|anexado|bijgevoegd|прикреплено|eklendi|załącznik|terlampir"
    r"|添付ファイル|첨부) ?[:：] ?(?P<name>[^<>]+)>",
    re.I,
)
_FILE = lazy_pattern(
    r"(?P<name>[^\n]{1,200}\.\w{2,5}) \((?:file attached|Datei angehängt|文件附件|檔案附件|附件|archivo adjunto"
    r"|fichier joint|file allegato|arquivo anexado|bestand bijgevoegd|файл добавлен|dosya ekli|plik załączony"
    r"|file terlampir|添付ファイル|파일 첨부됨)\)(?:\n|$)",
    re.I,
)
_MARKED_FILE = lazy_pattern(
    r"\u200e(?:<[^<>\n:：]{1,40}[:：] ?(?P<ios>[^<>\n]{1,200}\.\w{2,5})>"
    r"|(?P<android>[^\n\u200e]{1,200}\.\w{2,5}) \([^()\n]{1,40}\)(?:\n|$))"
)
"""A file in any language, by the mark that WhatsApp puts before it and nobody types."""
_MENTION = lazy_pattern(r"@[\u2066-\u2068]([^\n\u2066-\u2069]{1,100})\u2069")
_NOTICE = lazy_pattern(
    r"[^:\n]{1,100}: ?\u200e[^\n]*(?:end-to-end|Ende-zu-Ende|端到端|端對端|extremo|chiffré|crittograf|сквозн)"
)
_EDITED = lazy_pattern(
    r"(?<!\s)\s*+(?:\u200e?<(?:This message was edited|Diese Nachricht wurde bearbeitet|Se editó este mensaje"
    r"|Ce message a été modifié|Questo messaggio è stato modificato|Mensagem editada|Dit bericht is bewerkt"
    r"|此消息已编辑|此訊息已編輯)\.?>|(?<!\A)\u200e<[^<>\n:：]{4,60}>)\s*$"
)
"""The mark behind a message that was edited; on an iPhone in any language, by the mark before it that nobody types."""
_DELETED = lazy_pattern(
    r"(?:This message was deleted(?: by admin[^\n,;!?]{0,100})?|You deleted this message(?: as admin)?"
    r"|Diese Nachricht wurde gelöscht|Du hast diese Nachricht gelöscht|此消息已删除|此訊息已刪除|此訊息已被刪除"
    r"|(?:这条消息|該訊息|这则消息|這則訊息)已被?[删刪]除|[你您]已?[删刪]除了?(?:这条消息|這則訊息)"
    r"|Diese Nachricht wurde von (?:einem )?Admin[^\n,;!?]{0,100} gelöscht"
    r"|你删除了此消息|您已刪除此訊息|你已删除此消息|您删除了此消息|你已刪除此訊息|您刪除了此訊息"
    r"|Se eliminó este mensaje|Este mensaje fue eliminado|Eliminaste este mensaje|Has eliminado este mensaje"
    r"|Esta mensagem foi apagada|Mensagem apagada|Você apagou esta mensagem|Apagou esta mensagem|Apagaste esta mensagem"
    r"|Ce message a été supprimé|Vous avez supprimé ce message"
    r"|Questo messaggio è stato eliminato|Hai eliminato questo messaggio"
    r"|Dit bericht is verwijderd|U hebt dit bericht verwijderd|Je hebt dit bericht verwijderd"
    r"|Данное сообщение удалено|Это сообщение удалено|Сообщение удалено|Вы удалили (?:данное|это) сообщение"
    r"|Ta wiadomość została usunięta|Wiadomość została usunięta|Ta wiadomość została przez Ciebie usunięta"
    r"|Bu mesaj silindi|Bu mesajı sildiniz|Pesan ini telah dihapus|Pesan ini dihapus|Anda menghapus pesan ini"
    r"|Anda telah menghapus pesan ini|Detta meddelande raderades|Du raderade detta meddelande"
    r"|このメッセージは削除されました|このメッセージを削除しました|メッセージを削除しました"
    r"|삭제된 메시지입니다|이 메시지는 삭제되었습니다|이 메시지를 삭제했습니다"
    r"|تم حذف هذه الرسالة|حذفتَ هذه الرسالة|حذفت هذه الرسالة|لقد حذفت هذه الرسالة"
    r"|यह (?:मैसेज|संदेश) (?:हटा|मिटा) दिया गया(?: था| है)?"
    r"|आपने (?:यह|इस) (?:मैसेज|संदेश)(?: को)? (?:हटाया|मिटाया|डिलीट किया))[.。।]?",
    re.I,
)
_WAITING = (
    r"(?:Waiting for this message|Esperando (?:este|el) mensaje|En attente de ce message|In attesa del messaggio"
    r"|Aguardando (?:esta )?mensagem|Wachten op dit bericht|Warten auf diese Nachricht|Auf diese Nachricht warten"
    r"|Ожидание (?:данного|этого) сообщения|正在等待此消息|正在等待此訊息)[.…。]"
)
_SEEN_ONCE = r"You received a view once \w{1,10}(?: message)?\."
_NOT_HERE = lazy_pattern(
    rf"null|{_WAITING}(?: ?(?:This may take a while|Esto puede (?:tardar|tomar|llevar)(?: un poco| (?:algo de )?tiempo)"
    r"|Cela peut prendre (?:un moment|du temps|un certain temps)|Potrebbe (?:volerci|richiedere) del tempo"
    r"|(?:Isso|Isto) pode (?:demorar|levar) (?:um pouco|algum tempo)|Dit kan even duren"
    r"|(?:Dies|Das) kann (?:eine Weile|einen Moment|etwas|etwas Zeit) (?:dauern|in Anspruch nehmen)"
    r"|Это может занять (?:некоторое|какое-то) время|请稍候|請稍候|[这這]?可能需要一[些段][时時][间間])[.…。]?)?"
    rf"|{_SEEN_ONCE}(?: For added privacy, you can only open it on your phone\.?)?"
)
_NOT_HERE_MARKED = lazy_pattern(rf"null|{_WAITING}[^\n]{{0,80}}|{_SEEN_ONCE}[^\n]{{0,100}}")
"""What stands for a message that WhatsApp could not show or may be seen only once; with further words only behind the
mark that nobody types."""
_POLL_HEADS = (
    "POLL", "UMFRAGE", "ENCUESTA", "SONDAGE", "SONDAGGIO", "ENQUETE", "SONDAGEM", "PEILING", "ОПРОС", "ANKET",
    "ANKIETA", "POLLING", "JAJAK PENDAPAT", "投票", "投票调查", "アンケート", "투표", "OMRÖSTNING",
)  # fmt: skip
_POLL_OPTION = lazy_pattern(
    r"(?P<word>OPTION|OPCIÓN|OPZIONE|OPÇÃO|OPTIE|ВАРИАНТ|SEÇENEK|OPCJA|OPSI|PILIHAN|选项|選項|選択肢|옵션|ALTERNATIV)"
    r" ?[:：] ?(?P<text>[^\n]*?) ?[(（](?P<votes>\d{1,6})[^\n()（）]{0,20}[)）]"
)
_POLL_OPTION_MARKED = lazy_pattern(
    r"(?P<word>[^\W\d_]{2,20}) ?[:：] ?(?P<text>[^\n]*?) ?[(（](?P<votes>\d{1,6})[^\n()（）]{0,20}[)）]"
)
_MAP = lazy_pattern(
    r"[^\n:：]{2,30}[:：] ?(?P<url>https://maps\.google\.com/\?q=(?P<at>-?\d{1,3}(?:\.\d{1,20})?,-?\d{1,3}(?:\.\d{1,20})?)\S{0,100})"
)
_PLACE = lazy_pattern(
    r"(?P<at>[^\n]{1,300}?)[:：] ?(?P<url>https://(?:\w{1,20}\.)?(?:foursquare\.com|maps\.google\.com)/\S{1,300})"
)
_LIVE = lazy_pattern(
    r"live location shared|Live-Standort (?:wird )?geteilt|(?:已分享)?实时位置(?:共享)?|(?:已分享)?即時位置", re.I
)
_MISSED = (
    r"Missed (?:group )?(?:voice|video) call|Verpasste[rs]? (?:Gruppen-?)?(?:Sprach|Video)anruf"
    r"|(?:Llamada|Videollamada)(?: de voz| grupal)? perdida|Appel (?:vocal|vidéo) manqué"
    r"|(?:Chiamata vocale|Videochiamata) persa"
    r"|(?:Chamada|Ligação) de (?:voz|vídeo) perdida|Gemiste (?:spraak|video-?)oproep"
    r"|Пропущенный (?:аудио|видео)(?:звонок|вызов)"
    r"|未接(?:的)?(?:群组|群組)?(?:语音|視訊|视频|語音)(?:通话|通話|来电|來電)|Cevapsız (?:sesli|görüntülü) arama"
    r"|Nieodebrane połączenie (?:głosowe|wideo)|Panggilan (?:suara|video) tak terjawab"
    r"|(?:音声|ビデオ)通話不在着信|부재중 (?:음성|영상) 통화"
)
_CALL = lazy_pattern(
    rf"(?:{_MISSED})(?:[.,，] ?(?:Tap to call back|(?:Zum Zurückrufen tippen|Tippe(?:n Sie)?,? um zurückzurufen)"
    r"|(?:Toca|Pulsa) para (?:devolver la llamada|llamar)|(?:Appuyez|Touchez) pour rappeler|Tocca per richiamare"
    r"|Toque para (?:ligar de volta|retornar(?: a (?:ligação|chamada))?)|Tik om terug te bellen"
    r"|Нажмите, чтобы перезвонить|(?:点击|点按|轻触|點擊|點按|輕觸)(?:以|即可)?(?:回拨|回撥|回电|回電)"
    r"|(?:Geri aramak|Aramak) için dokunun|Dotknij, aby oddzwonić|Ketuk untuk menelepon (?:balik|kembali)"
    r"|タップしてかけ直す|탭하여 다시 전화(?:하기|걸기)?))?[.。]?"
)
_CALL_MARKED = lazy_pattern(
    rf"(?:{_MISSED}|(?:group )?(?:voice|video) call|(?:Sprach|Video)anruf|(?:Llamada de voz|Videollamada)"
    r"|Appel (?:vocal|vidéo)"
    r"|(?:Chiamata vocale|Videochiamata)|(?:Chamada|Ligação) de (?:voz|vídeo)|(?:Spraak|Video-?)oproep"
    r"|(?:Аудио|Видео)звонок"
    r"|(?:语音|視訊|视频|語音)(?:通话|通話)|(?:Sesli|Görüntülü) arama|Połączenie (?:głosowe|wideo)"
    r"|Panggilan (?:suara|video)"
    r"|(?:音声|ビデオ)通話|(?:음성|영상) 통화)(?:[.,，] ?[^\n]{0,80})?",
    re.I,
)
"""Calls, by the mark that WhatsApp puts before them if they were taken too."""
_SYSTEM = lazy_pattern(
    r"end-to-end|Ende-zu-Ende|端到端|端對端|cifrad[oa]s? de extremo|chiffré|created (?:this )?group|added|\bleft\b"
    r"|joined|removed|changed (?:the|this|their)|erstellt|hinzugefügt|verlassen|创建|建立|加入|退出|离开|離開|移除"
    r"|更改|变更",
    re.I,
)
_SENDER = lazy_pattern(r"(?P<name>[^\n:]{1,100}): ?(?P<text>.*)", re.DOTALL)
_QUOTED = lazy_pattern(r'"[^"]*"|„[^„“”]*[“”]|“[^“”]*”|«[^«»]*»|「[^「」]*」')
_NAME_END = lazy_pattern(r":(?= |$|\u200e)")
_LONGEST_NAME = 100
_SHORT_NAME = 25
_MOST_COLONS = 4
_FEW_LINES = 2
_SEVERAL_LINES = 5
_QUOTES = (("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"))
_NUMBER = lazy_pattern(r"@(\d{6,15})\b")
_PAGES = lazy_pattern(r"(?P<title>[^\n•]{1,200}\.\w{2,5}) • ?\u200e?\d+[^\n\u200e]{0,20} ?\u200e?\Z")
"""What an iPhone writes between a document and its place in the zip."""
_ROOM = lazy_pattern(
    r"WhatsApp[ -]?[Cc]hatt?(?:verlauf)? (?:with|mit|met|med|-) (?P<en>.+)"
    r"|(?:Chat|Conversación) de WhatsApp con (?P<es>.+)|Discussion WhatsApp avec (?P<fr>.+)"
    r"|Chat WhatsApp (?:con|dengan) (?P<it>.+)|Conversa do WhatsApp com (?P<pt>.+)"
    r"|Чат WhatsApp с (?:контактом )?(?P<ru>.+)|Cza[td] WhatsApp z (?P<pl>.+)"
    r"|(?P<tr>.+) ile WhatsApp [Ss]ohbeti|(?P<ja>.+?)とのトーク|(?P<ko>.+?) ?님과의 ?WhatsApp ?대화"
    r"|(?:与|與)\s?(?P<zh>.+?)\s?的\s?WhatsApp\s?(?:聊天|對話|对话).*"
)
STEM = lazy_pattern(rf"_chat|{_ROOM.pattern}")
"""WhatsApp's names, without ending, for the chat among its pictures and documents."""


@dataclass(slots=True)
class _Draft:
    """A message that may have further lines."""

    stamp: Stamp
    lines: list[str]
    state: dict[str, Any]
    end: int
    size: int = 0

    def add(self, line: Line) -> None:
        self.lines.append(line.text)
        self.size += len(line.text)
        self.end = line.end


@dataclass(slots=True)
class _Content:
    """The content of a line. `call`: True for the program's notice of a call."""

    text: str
    mentions: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    call: bool = False


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat; a line without a date continues the message before it.

    Day and month are told apart by the first thousands of lines. Lines without a sender are system messages, and so are
    calls. Media left out, polls and locations are attachments; what the program writes in their place is no text.
    """
    yield from after_position(_Chat(source, options, resume_from).items(), resume_from)


class _Chat:
    def __init__(self, source: Source, options: Options, resume_from: Position | None) -> None:
        self._source = source
        self._options = options
        self._room = options.room_id or options.id_of(room_name(source))
        self._start = dict(resume_from["start"]) if resume_from else {}
        self._passage = Passage.resumed(self._start)
        self._order, self._numbers, self._names = _sniff(source)
        self._draft: _Draft | None = None

    def items(self) -> Iterator[Item]:
        for line in read_lines(self._source, offset=self._start.get("offset", 0), number=self._start.get("line", 0)):
            yield from self._take(line)
        yield from self._finish()

    def _take(self, line: Line) -> Iterator[Item]:
        stamp = read_stamp(line.text) if line.whole else None
        if stamp is not None:
            yield from self._finish()
            self._draft = _Draft(stamp, [line.text[stamp.length :]], line.before, line.end)
        elif self._draft is not None and line.whole and self._draft.size < LONGEST_TEXT:
            self._draft.add(line)
        else:
            yield from self._finish()
            yield from self._refuse(line)

    def _finish(self) -> Iterator[Parsed]:
        draft, self._draft = self._draft, None
        if draft is not None:
            message = self._message(draft)
            moves = moves_told(message.text) if message.role is Role.SYSTEM else None
            yield Parsed(
                message,
                {"offset": draft.end, "start": self._passage.start},
                room=None if moves is None else GROUP,
                moves=moves or (),
            )

    def _refuse(self, line: Line) -> Iterator[Bad]:
        if line.whole and not line.text.strip(MARKS + " \t"):
            return
        reason = "no date and no message before it to continue" if line.whole else TOO_LONG
        self._passage.start = self._passage.start or line.before
        yield Bad({"offset": line.end, "start": self._passage.start}, line.number, reason, excerpt(line.text))

    def _message(self, draft: _Draft) -> Message:
        whole = "\n".join(draft.lines).rstrip("\n")
        sender, body = _split(whole, self._names)
        local = draft.stamp.at(self._order)
        content = _content(body)
        numbers = (self._numbers.get(digits) for digits in _NUMBER.findall(content.text))
        return Message(
            id=self._passage.take(local.isoformat() if local else "", sender, body, draft.state),
            room_id=self._room,
            sender_id=sender or "system",
            sender_name=sender,
            role=Role.USER if sender and not content.call else Role.SYSTEM,
            text=content.text,
            sent_at=local and in_zone(local, self._options.timezone),
            mentions=tuple(dict.fromkeys((*content.mentions, *(number for number in numbers if number)))),
            metadata=content.metadata,
        )


def _sniff(source: Source) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """Return the order of day, month and year; the people without a name by the digits of their numbers, since a
    mention of one has only these; and the names with a colon or a single quotation mark in them."""
    before = source.bytes_read, source.repaired
    lines = [line.text for line in islice(read_lines(source), _SNIFFED) if line.whole]
    stamped = [(stamp, line) for line in lines if (stamp := read_stamp(line))]
    source.bytes_read, source.repaired = before
    names = odd_names([line[stamp.length :] for stamp, line in stamped])
    senders = {_split(line[stamp.length :], names)[0] for stamp, line in stamped}
    numbers = {re.sub(r"\D", "", sender): sender for sender in senders if sender.startswith("+")}
    return decide_order([stamp for stamp, _ in stamped]), numbers, names


def odd_names(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the names of people that have a colon or an open quotation mark in them, the longest first.

    Such a name begins several lines with different texts. If a shorter one ends at an earlier colon, all lines that
    begin with the shorter name must begin with the longer one, and more of them are asked for: `Ann: Note: milk` may be
    a note of Ann's.
    """
    texts: dict[str, set[str]] = {}
    begun: Counter[str] = Counter()
    firsts: dict[str, str] = {}
    for line in lines:
        places = [colon.start() for colon in islice(_NAME_END.finditer(line, 0, _LONGEST_NAME), _MOST_COLONS)]
        for place in places:
            name = line[:place].strip(_MARGIN)
            begun[name] += 1
            texts.setdefault(name, set()).add(line[place:])
            firsts.setdefault(name, line[: places[0]].strip(_MARGIN))
    prefixes: list[str] = []
    for name in sorted(texts, key=lambda prefix: (prefix == firsts[prefix], len(prefix))):
        first = firsts[name]
        quoted = _is_open(first)
        within = (f"{name}:".startswith(f"{inner}:") or f"{inner}:".startswith(f"{name}:") for inner in prefixes)
        alone = begun[name] == begun[first] and not any(within)
        if name == first:
            odd = quoted and len(name) <= _SHORT_NAME and _SYSTEM.search(name) is None
        else:
            odd = not _is_open(name)
        enough = len(texts[name]) >= (_FEW_LINES if quoted and name != first else _SEVERAL_LINES)
        if odd and alone and enough:
            prefixes.append(name)
    return tuple(sorted(prefixes, key=len, reverse=True))


def _is_open(text: str) -> bool:
    """Return True if a quotation begins in the text and does not end."""
    return any(begin in _QUOTED.sub("", text) for begin in ('"', *(begin for begin, _ in _QUOTES)))


def _split(whole: str, names: Sequence[str] = ()) -> tuple[str, str]:
    """Return (sender, text), the sender '' for a message of the program itself. `names`: senders that a colon or a
    quotation mark would hide."""
    bare = whole.lstrip(_MARGIN)
    for name in names:
        if bare.startswith(f"{name}:"):
            return name, bare[len(name) + 1 :].removeprefix(" ")
    match = _SENDER.match(whole)
    if match is None or "://" in whole[: match.end("name") + 3] or _is_quoted(whole, match.end("name")):
        return "", whole.strip(MARKS)
    name = match["name"].strip(_MARGIN)
    body = match["text"]
    if not name or (body.startswith("\u200e") and _is_notice(body, name) and _content(body).text):
        return "", body.strip(MARKS)
    return name, body


def _is_quoted(whole: str, colon: int) -> bool:
    """Return True if the colon is inside quotation marks: a notice quotes a name with one, such as that of a group."""
    before, after = whole[:colon], whole[colon:].partition("\n")[0]
    if before.count('"') % 2 and after.count('"') % 2:
        return True
    return any(before.rfind(begin) > before.rfind(end) and end in after for begin, end in _QUOTES)


def _is_notice(text: str, sender: str) -> bool:
    """Return True for a text of the program's: by its words, or because it begins with its own sender's name."""
    return text.lstrip(_MARGIN).startswith(sender) or _SYSTEM.search(text.partition("\n")[0]) is not None


def _content(whole: str) -> _Content:
    """Return the text without the program's own marks, and the meaning of those."""
    edited = _EDITED.search(whole)
    whole = whole[: edited.start()] if edited else whole
    marked = whole.startswith("\u200e")
    text = whole.replace("\u200e", "").strip("\u200f\u202a\u202c")
    metadata: dict[str, Any] = {"edited": True} if edited else {}
    if _DELETED.fullmatch(text):
        return _Content("", metadata=metadata | {"deleted": True})
    if (_NOT_HERE_MARKED if marked else _NOT_HERE).fullmatch(text):
        return _Content("", metadata=metadata | {"not_shown": text})
    if _CALL.fullmatch(text) or (marked and _CALL_MARKED.fullmatch(text)):
        return _Content(text, metadata=metadata, call=True)
    words, held = _poll(text, whole) or _location(text, marked) or _left_out(whole, marked) or (None, {})
    if words is not None:
        whole, text = words, words.replace("\u200e", "").strip()
        metadata |= {"attachments": [held]} | ({"caption": held["name"]} if "name" in held else {})
    names = tuple(dict.fromkeys(name.strip(_MARGIN) for name in _MENTION.findall(text)))
    text = _MENTION.sub(r"@\1", text)
    if marked_file := _marked_file(whole):
        rest, name = marked_file
        return _Content(_MENTION.sub(r"@\1", rest), names, metadata | _file(name))
    if file := _ATTACHED.search(text) or _FILE.match(text):
        rest = text[: file.start()] + text[file.end() :]
        return _Content(rest.strip(), names, metadata | _file(file["name"].strip()))
    return _Content(text, names, metadata)


def _file(name: str) -> dict[str, Any]:
    """Return the metadata of a file that lies beside the chat in its zip. A name that the program gave is no word that
    anybody looks for."""
    caption = {} if _UNNAMED.fullmatch(name) else {"caption": name}
    return caption | {"attachments": [attached(name=name, file=name)]}


def _marked_file(text: str) -> tuple[str, str] | None:
    """Return what is said beside a file, and its name; None without a file that WhatsApp marked."""
    file = _MARKED_FILE.search(text)
    if file is None or (file["android"] and file.start()):
        return None
    before = text[: file.start()]
    before = "" if _PAGES.match(before.lstrip("\u200e")) else before
    rest = before + text[file.end() :]
    return rest.replace("\u200e", "").strip("\u200f\u202a\u202c \n"), (file["ios"] or file["android"]).strip()


def _left_out(text: str, marked: bool) -> tuple[str, dict[str, Any]] | None:
    """Return the words beside media that were not exported, and what those were; None if the text is a real one."""
    first, _, rest = text.replace("\u200e", "").strip("\u200f\u202a\u202c ").partition("\n")
    if match := _MEDIA.fullmatch(first):
        return rest, attached(kind=_kind(match["kind"]))
    if _MEDIA_PLAIN.fullmatch(first) and not rest:
        return "", attached(kind=_kind(first))
    before, mark, label = text.rpartition("\u200e")
    if not mark or not _MEDIA_MARKED.fullmatch(label):
        return None
    named = _PAGES.match(before.lstrip("\u200e")) or _NAME.fullmatch(before.strip("\u200e "))
    name = (named.groupdict().get("title") or named[0]).strip("\u200e ") if named else ""
    return "" if named else before, attached(kind=_kind(label), name=name)


def _kind(text: str) -> str:
    return next((kind for kind, words in _WHAT if words.search(text)), "file")


def _poll(text: str, marked: str) -> tuple[str, dict[str, Any]] | None:
    """Return the question of a poll, and its options with their votes; None if the text is none."""
    head, _, rest = text.strip().partition("\n")
    option = _POLL_OPTION_MARKED if "\n\u200e" in marked else _POLL_OPTION
    if head.rstrip(" :：").upper() not in _POLL_HEADS and not (
        marked.startswith("\u200e") and head.endswith((":", "："))
    ):
        return None
    lines = rest.strip().split("\n")
    options: list[re.Match[str]] = []
    while lines and (match := option.fullmatch(lines[-1])) and (not options or options[0]["word"] == match["word"]):
        options.insert(0, match)
        lines.pop()
    if not options or not lines:
        return None
    votes = ", ".join(f"{choice['text']} ({choice['votes']})" for choice in options)
    return "\n".join(lines).strip(), attached(kind="poll", caption=votes)


def _location(text: str, marked: bool) -> tuple[str, dict[str, Any]] | None:
    """Return '' and the place that somebody shared; None if the text is none."""
    if place := _MAP.fullmatch(text) or (marked and _PLACE.fullmatch(text)):
        return "", attached(kind="location", caption=place["at"], url=place["url"])
    return ("", attached(kind="location")) if _LIVE.fullmatch(text) else None


def room_name(source: Source) -> str:
    """Return the chat's name in the name of the file, else the file's name.

    An iPhone names every chat `_chat.txt`: then the name in that of its folder or in its first line, else one made of
    that line, since two chats are never one room.
    """
    if source.stem != "_chat":
        return _named(source.stem) or source.stem
    folder = "" if source.member else source.path.resolve().parent.name
    return _named(folder) or _name_inside(source)


def _named(stem: str) -> str:
    match = _ROOM.fullmatch(stem)
    return next((name for name in match.groups() if name), "") if match else ""


def _name_inside(source: Source) -> str:
    before = source.bytes_read, source.repaired
    first = next((line for line in read_lines(source) if read_stamp(line.text)), None)
    source.bytes_read, source.repaired = before
    stamp = read_stamp(first.text) if first else None
    if first is None or stamp is None:
        return source.stem
    text = first.text[stamp.length :]
    name = text.partition(":")[0].strip(_MARGIN) if _NOTICE.match(text) else ""
    return name or derived_id("whatsapp", first.text).replace("x", "_chat-", 1)[:18]


def files_sent(source: Source, names: Iterable[str]) -> set[str]:
    """Return those of the names under which a message of the chat sends a file."""
    wanted, sent = set(names), set[str]()
    for line in read_lines(source):
        sent |= {name for name in wanted - sent if name in line.text and _sends(line.text, name)}
        if sent == wanted:
            break
    source.bytes_read = source.repaired = 0
    return sent


def _sends(line: str, name: str) -> bool:
    before, _, after = line.partition(name)
    return before.endswith((" ", "\u200e", ":")) and after.startswith((" (", ">", " •"))


GROUP = RoomFacts(RoomKind.PRIVATE)
"""A chat with such a notice is a group."""

_BY = r"[^\n]{1,100}?"
_WHO = r"(?P<who>[^\n]{1,400}?)"
_NOTICE_END = r"[.。]?"
_NOTICES = tuple(
    (lazy_pattern(pattern + _NOTICE_END), came)
    for pattern, came in (
        (rf"{_BY} ?已?[将將把] ?{_WHO} ?(?:加入|添加到|新增至)[^\n]{{0,40}}", True),
        (rf"{_BY} ?已?[将將把] ?{_WHO} ?(?:移除|移出)[^\n]{{0,20}}", False),
        (rf"{_WHO} created (?:this )?group(?: [^\n]{{0,200}})?", True),
        (rf"{_WHO} hat (?:die|diese) Gruppe(?: [^\n]{{0,200}})? erstellt", True),
        (rf"{_WHO} ?已?(?:创建|創建|建立)了?(?:此|这个|這個)?(?:群|「|“|\")[^\n]{{0,200}}", True),
        (rf"{_WHO} was added", True),
        (rf"{_BY} added {_WHO}", True),
        (rf"{_WHO} joined(?: (?:using|via|from|through) [^\n]{{1,100}})?", True),
        (rf"{_WHO} wurde hinzugefügt", True),
        (rf"{_BY} hat {_WHO} hinzugefügt", True),
        (rf"{_WHO} ist [^\n]{{0,100}}beigetreten", True),
        (rf"{_BY} ?已?(?:添加|新增)了? ?{_WHO}", True),
        (rf"{_WHO} ?(?:已?(?:通过|透過|使用|利用)[^\n]{{1,40}}?)?(?:已?加入)了?[^\n]{{0,20}}", True),
        (rf"{_WHO} left(?: the group)?", False),
        (rf"{_WHO} was removed", False),
        (rf"{_BY} removed {_WHO}", False),
        (rf"{_WHO} hat die Gruppe verlassen", False),
        (rf"{_WHO} wurde entfernt", False),
        (rf"{_BY} hat {_WHO} entfernt", False),
        (rf"{_BY} ?已?(?:移除|移出)了? ?{_WHO}", False),
        (rf"{_WHO} ?已?(?:退出|离开|離開)了?[^\n]{{0,20}}", False),
    )
)
_BETWEEN_NAMES = lazy_pattern(r", | and | und |、|，| 和 | 與 | 与 ")
_SELF = ("you", "du", "sie", "你", "您")
_LONGEST_NOTICE = 1000


def moves_told(notice: str) -> tuple[Move, ...] | None:
    """Return who came or went, by name; None if the notice is about something else. The person who exported the chat is
    called "you" and left out, since the export does not name them."""
    line = notice.strip(_MARGIN)
    if len(line) > _LONGEST_NOTICE or "\n" in line:
        return None
    for pattern, came in _NOTICES:
        if match := pattern.fullmatch(line):
            people = (part.strip(_MARGIN) for part in _BETWEEN_NAMES.split(match["who"]))
            return tuple(
                Move(person, came, by_name=True) for person in people if person and person.lower() not in _SELF
            )
    return None
