"""The content of a line of WhatsApp's export: a text, or what the app writes in place of media, polls, places, calls,
deleted messages and notices; and who came or went."""

import re
from dataclasses import dataclass, field
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.patterns import lazy_pattern
from roomlore_importers.shapes import attached
from roomlore_importers.whatsapp_words import MARKS, kind_left_out, says, sentences

MARK = "\u200e"
"""What the app puts before its own words, and nobody types. Where people write from right to left it is U+200F."""
MARGIN = f"{MARKS}~\u202f\u00a0 "
"""What WhatsApp puts before and after a name."""
_RIGHT_TO_LEFT = lazy_pattern(r"(?m)^[\u200e\u200f]+(?=.)|\u200f(?=<)|(?<= )\u200f")
"""The app's marks in a text that runs from right to left."""
_LEFT_OUT = (
    r"omitted|weggelassen|ausgeschlossen|省略|略去|忽略|omitid[oa]|omiss?[oeai]?s?|ocult[oa]|weggelaten|utelämn\w*"
    r"|пропущен\w*|без медиафайлов|생략|제외|null|omess[oiae]|dahil edilmedi|pominięt\w*|tidak disertakan"
    r"|含まれていません"
)
_MEDIA = lazy_pattern(rf"<(?=[^<>]*+>\Z)(?P<kind>[^<>]*(?:{_LEFT_OUT})[^<>]*)>", re.I)
"""Media left out, on Android."""
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
"""Media left out, where the mark before the label was lost."""
_MEDIA_MARKED = lazy_pattern(
    r"[^\n]{0,120}(?:omitted|weggelassen|omitid[oa]|omise?|忽略[^\n]{0,8}|已略去|已省略|absente?|omess[oa]|ocultad[oa]"
    r"|weggelaten|отсутству\w{2,3}|dahil edilmedi|pominięt[oya]|tidak disertakan|含まれていません|생략됨)",
    re.I,
)
"""Media left out behind the mark, by what most labels end with."""
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
_ATTACHED = lazy_pattern(r"<(?P<word>[^<>\n:：]{1,40}?) ?[:：] ?(?P<name>[^<>]+)>")
"""A file in an iPhone's zip."""
_FILE = lazy_pattern(r"(?P<name>[^\n]{1,200}\.\w{2,5}) \((?P<word>[^()\n]{1,40})\)(?:\n|$)")
"""A file beside an Android's text."""
_MARKED_FILE = lazy_pattern(
    r"\u200e(?:<[^<>\n:：]{1,40}[:：] ?(?P<ios>[^<>\n]{1,200}\.\w{2,5})>"
    r"|(?P<android>[^\n\u200e]{1,200}\.\w{2,5}) \([^()\n]{1,40}\)(?:\n|$))"
)
"""A file in any language, by the mark that WhatsApp puts before it and nobody types."""
_PAGES = lazy_pattern(r"(?P<title>[^\n•]{1,200}\.\w{2,5}) • ?\u200e?\d+[^\n\u200e]{0,20} ?\u200e?\Z")
"""What an iPhone writes between a document and its place in the zip."""
_MENTION = lazy_pattern(r"@[\u2066-\u2068]([^\n\u2066-\u2069]{1,100})\u2069")
"""A name between direction marks."""
_DELETED = lazy_pattern(
    r"(?:This message was deleted by admin|Diese Nachricht wurde von (?:einem )?Admin)[^\n,;!?]{0,100}"
    r"|(?:[这此][条则]?消息|[這此該][則]?訊息)已被?[删刪]除|[你您]已?[删刪]除了?(?:[这此][条则]?消息|[這此][則]?訊息)"
    r"|यह (?:मैसेज|संदेश) (?:हटा|मिटा) दिया गया(?: था| है)?"
    r"|आपने (?:यह|इस) (?:मैसेज|संदेश)(?: को)? (?:हटाया|मिटाया|डिलीट किया)",
    re.I,
)
"""Deleted messages, in forms of which a list has too few."""
_WAITING = (
    r"(?:Waiting for this message|Esperando (?:este|el) mensaje|En attente de ce message|In attesa del messaggio"
    r"|Aguardando (?:esta )?mensagem|Wachten op dit bericht|Warten auf diese Nachricht|Auf diese Nachricht warten"
    r"|Ожидание (?:данного|этого) сообщения|正在等待此消息|正在等待此訊息)[.…。]"
)
_SEEN_ONCE = r"You (?:received|sent) a view once \w{1,10}(?: message)?\."
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
    r"[^\n:：]{2,30}[:：] ?(?P<url>https://maps\.google\.\w{2,3}/\?q=(?P<at>-?\d{1,3}(?:\.\d{1,20})?,-?\d{1,3}(?:\.\d{1,20})?)\S{0,100})"
)
"""A location, in any language."""
_PLACE = lazy_pattern(
    r"(?P<at>[^\n]{1,300}?)[:：] ?(?P<url>https://(?:\w{1,20}\.)?(?:foursquare\.com|maps\.google\.com)/\S{1,300})"
)
"""A place of a name."""
_MISSED = (
    r"Missed (?:group )?(?:voice|video) call|Verpasste[rs]? (?:Gruppen-?)?(?:Sprach|Video)anruf"
    r"|未接(?:的)?(?:群组|群組)?(?:语音|視訊|视频|語音)(?:通话|通話|来电|來電)"
)
_CALL = lazy_pattern(
    r"(?P<call>[^.,，\n]{4,60})(?:[.,，] ?(?:Tap to call back"
    r"|(?:Zum Zurückrufen tippen|Tippe(?:n Sie)?,? um zurückzurufen)"
    r"|(?:Toca|Pulsa) para (?:devolver la llamada|llamar)|(?:Appuyez|Touchez) pour rappeler|Tocca per richiamare"
    r"|Toque para (?:ligar de volta|retornar(?: a (?:ligação|chamada))?)|Tik om terug te bellen"
    r"|Нажмите, чтобы перезвонить|(?:点击|点按|轻触|點擊|點按|輕觸)(?:以|即可)?(?:回拨|回撥|回电|回電)"
    r"|(?:Geri aramak|Aramak) için dokunun|Dotknij, aby oddzwonić|Ketuk untuk menelepon (?:balik|kembali)"
    r"|タップしてかけ直す|탭하여 다시 전화(?:하기|걸기)?))?[.。]?"
)
"""A call that was missed, with what to do about it."""
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
"""Words of notices, where the sender's name is not at their beginning."""
_LABEL = lazy_pattern(r"[^\W\d_][^\d\n.!?。।:،,\u200e\"“”„«»]{2,39}")
"""A label for something left out in a language that is not known: a few words without a full stop."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The facts by which a text is read. `bracketed`, `marked`: as in `Stamp`. `marks_lines`: True if the chat
    has stamps that are marked. `sender`: who has sent it. `labels`: labels in angle brackets that the chat repeats, in
    lower case. `group`: True if the group speaks."""

    bracketed: bool = False
    marked: bool = False
    marks_lines: bool = False
    sender: str = ""
    labels: frozenset[str] = frozenset()
    group: bool = False


@dataclass(slots=True)
class Content:
    """The content of a message. `call`: True for the program's notice of a call. `notice`: True for another notice of
    the program's, by the mark before it."""

    text: str
    mentions: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    call: bool = False
    notice: bool = False


def read_content(whole: str, setting: Setting) -> Content:
    """Return the text without the program's own marks, and the meaning of those."""
    whole, edited = _without_edit(whole, setting)
    marked = whole.startswith(MARK)
    text = plain(whole)
    metadata: dict[str, Any] = {"edited": True} if edited else {}
    if says(text, "deleted") or _DELETED.fullmatch(text.rstrip(".。।")):
        return Content("", metadata=metadata | {"deleted": True})
    if (_NOT_HERE_MARKED if marked else _NOT_HERE).fullmatch(text) or (marked and _is_once(text)):
        return Content("", metadata=metadata | {"not_shown": text})
    if _is_call(text, whole, marked=marked):
        return Content(text, metadata=metadata, call=True)
    words, held = _poll(text, whole) or _location(text, marked) or _left_out(whole, setting) or (None, {})
    if words is not None:
        whole, text = words, words.replace(MARK, "").strip()
        metadata |= {"attachments": [held]} | ({"caption": held["name"]} if "name" in held else {})
    names = tuple(dict.fromkeys(name.strip(MARGIN) for name in _MENTION.findall(text)))
    text = _MENTION.sub(r"@\1", text)
    if file := _sent_file(whole, text):
        rest, name = file
        return Content(_MENTION.sub(r"@\1", rest), names, metadata | _file(name))
    notice = words is None and marked and setting.bracketed and any(map(str.isalpha, text))
    return Content(text, names, metadata, notice=notice)


def plain(whole: str) -> str:
    """Return a text without the marks of the program."""
    return whole.replace(MARK, "").strip("\u200f\u202a\u202c")


def from_right_to_left(whole: str) -> str:
    """Return a text of a chat whose marks are those of a text from right to left, with the marks of others."""
    return _RIGHT_TO_LEFT.sub(MARK, whole)


def is_of_program(text: str, sender: str = "\n") -> bool:
    """Return True for a text of the program's: by its words, or because it begins with its own sender's name."""
    text = text.lstrip(MARGIN)
    return bool(text) and (text.startswith(sender) or _SYSTEM.search(text.partition("\n")[0]) is not None)


def _without_edit(whole: str, setting: Setting) -> tuple[str, bool]:
    """Return the text without the mark behind a message that was edited, and True if there was one: on an iPhone in any
    language, by the mark before it that nobody types."""
    before, label = angle_at_end(whole)
    text = before.rstrip()
    marked = text.endswith(MARK)
    text = text.removesuffix(MARK).rstrip()
    if not label or not text.strip(MARK):
        return whole, False
    known = marked or says(label, "edited") or (label in setting.labels and kind_left_out(label) is None)
    return (text, True) if known else (whole, False)


_LONGEST_LABEL = 60


def angle_at_end(text: str) -> tuple[str, str]:
    """Return what is before the words in angle brackets at the end of a text, and these in lower case; '' and '' if it
    has none."""
    text = text.rstrip()
    begin = text.rfind("<", max(0, len(text) - _LONGEST_LABEL - 2))
    label = text[begin + 1 : -1]
    if begin < 0 or not text.endswith(">") or len(label) < 4 or any(sign in label for sign in ">\n:："):
        return "", ""
    return text[:begin], label.rstrip(".").casefold()


def _is_once(text: str) -> bool:
    return text.casefold().startswith(tuple(sentences("once")))


def _is_call(text: str, whole: str, *, marked: bool) -> bool:
    match = _CALL.fullmatch(text)
    if match and (says(match["call"], "missed") or re.fullmatch(_MISSED, match["call"])):
        return True
    first = re.split(rf"[.,，] ?{MARK}", whole.lstrip(MARK))[0]
    return marked and (_CALL_MARKED.fullmatch(text) is not None or says(first, "missed"))


def _sent_file(whole: str, text: str) -> tuple[str, str] | None:
    """Return what is said beside a file, and its name; None if no file was sent. A name that the program gave tells the
    file in any language."""
    if marked := _marked_file(whole):
        return marked
    file = _ATTACHED.search(text) or _FILE.match(text)
    if file is None or not (says(file["word"], "attached") or _UNNAMED.fullmatch(file["name"].strip(f"{MARKS} "))):
        return None
    return (text[: file.start()] + text[file.end() :]).strip(), file["name"].strip()


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
    before = "" if _PAGES.match(before.lstrip(MARK)) else before
    rest = before + text[file.end() :]
    return rest.replace(MARK, "").strip("\u200f\u202a\u202c \n"), (file["ios"] or file["android"]).strip()


def _left_out(text: str, setting: Setting) -> tuple[str, dict[str, Any]] | None:
    """Return the words beside media that were not exported, and what those were; None if the text is a real one."""
    first, _, rest = plain(text).strip().partition("\n")
    if match := _MEDIA.fullmatch(first):
        return rest, attached(kind=_kind(match["kind"]))
    if first.startswith("<") and (kind_left_out(first) or first.strip("<> ").rstrip(".").casefold() in setting.labels):
        return rest, attached(kind=_kind(first))
    if _MEDIA_PLAIN.fullmatch(first) and not rest:
        return "", attached(kind=_kind(first))
    before, mark, label = text.rpartition(MARK)
    if not mark or not _is_label(label, before, setting):
        return None
    named = _PAGES.match(before.lstrip(MARK)) or _NAME.fullmatch(before.strip(f"{MARK} "))
    name = (named.groupdict().get("title") or named[0]).strip(f"{MARK} ") if named else ""
    return "" if named else before, attached(kind=_kind(label), name=name)


def _is_label(label: str, before: str, setting: Setting) -> bool:
    """Return True if these last words behind a mark stand for something left out: an iPhone puts a mark before the
    brackets of such a message too; else words that the app is known to write, or a few ones alone that are no
    sentence and name nobody."""
    if "<" in label or setting.group:
        return False
    if kind_left_out(label) or _MEDIA_MARKED.fullmatch(label):
        return True
    alone = setting.bracketed and not (setting.marks_lines or before.strip(MARK) or setting.sender in label)
    short = _LABEL.fullmatch(label) is not None and len(label.split()) < 6
    return short and (setting.marked or alone) and not is_of_program(label, setting.sender or "\n")


def _kind(text: str) -> str:
    known = kind_left_out(text)
    return known if known not in (None, "file") else next((kind for kind, words in _WHAT if words.search(text)), "file")


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
    return ("", attached(kind="location")) if says(text, "live") else None


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
_OTHER = lazy_pattern(r"[^\W\d_]{4,}[.。] ?\S|ました。?\Z")
"""Two sentences, or one in Japanese, which has signs of Chinese notices."""


def moves_told(notice: str) -> tuple[Move, ...] | None:
    """Return who came or went, by name; None if the notice is about something else. The person who exported the chat is
    called "you" and left out, since the export does not name them."""
    line = notice.strip(MARGIN)
    if len(line) > _LONGEST_NOTICE or "\n" in line or _OTHER.search(line):
        return None
    for pattern, came in _NOTICES:
        if match := pattern.fullmatch(line):
            people = (part.strip(MARGIN) for part in _BETWEEN_NAMES.split(match["who"]))
            return tuple(
                Move(person, came, by_name=True) for person in people if person and person.lower() not in _SELF
            )
    return None
