"""WhatsApp's "export chat" text, as Android and iOS write it in many languages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from roomlore.core.exports import Bad, Item, Parsed, Position
from roomlore.core.models import Message, Role
from roomlore.importers.items import Options, derived_id, excerpt
from roomlore.importers.lines import TOO_LONG, Line, read_lines
from roomlore.importers.passages import Passage, not_given_yet
from roomlore.importers.shapes import in_zone
from roomlore.importers.source import Source
from roomlore.importers.whatsapp_dates import MARKS, Stamp, decide_order, read_stamp

_SNIFFED = 5000
_LONGEST_TEXT = 16 << 20
_LEFT_OUT = (
    r"omitted|weggelassen|ausgeschlossen|省略|略去|忽略|omitid[oa]|omiss?[oeai]?s?|ocult[oa]|weggelaten|utelämn\w*"
    r"|пропущен\w*|без медиафайлов|생략|null"
)
_MEDIA = re.compile(rf"<(?=[^<>]*+>\Z)(?P<kind>[^<>]*(?:{_LEFT_OUT})[^<>]*)>", re.I)
_MEDIA_PLAIN = re.compile(
    r"(?:image|video|audio|sticker|GIF|document|Contact card|Bild|Video|Audio) (?:omitted|weggelassen)"
)
_MEDIA_MARKED = re.compile(r"[^\n]{0,120}(?:omitted|weggelassen|omitid[oa]|omise?|忽略[^\n]{0,8}|已略去|已省略)", re.I)
_ATTACHED = re.compile(r"<(?:attached|Anhang|附件|adjunto|pièce jointe|allegato|anexado)[:：] ?(?P<name>[^<>]+)>", re.I)
_FILE = re.compile(
    r"(?P<name>[^\n]{1,200}\.\w{2,5}) \((?:file attached|Datei angehängt|文件附件|檔案附件|附件|archivo adjunto"
    r"|fichier joint|file allegato|arquivo anexado)\)(?:\n|$)",
    re.I,
)
_MENTION = re.compile(r"@[\u2066-\u2068]([^\n\u2066-\u2069]{1,100})\u2069")
_NOTICE = re.compile(
    r"[^:\n]{1,100}: ?\u200e[^\n]*(?:end-to-end|Ende-zu-Ende|端到端|端對端|extremo|chiffré|crittograf|сквозн)"
)
_EDITED = re.compile(
    r"(?<!\s)\s*+<(?:This message was edited|Diese Nachricht wurde bearbeitet\.?|此消息已编辑|此訊息已編輯)>\s*$"
)
_DELETED = re.compile(
    r"(?:This message was deleted(?: by admin[^\n]{0,100})?|You deleted this message(?: as admin)?"
    r"|Diese Nachricht wurde gelöscht|Du hast diese Nachricht gelöscht|此消息已删除|此訊息已刪除|此訊息已被刪除"
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
_SYSTEM = re.compile(
    r"end-to-end|Ende-zu-Ende|端到端|端對端|cifrad[oa]s? de extremo|chiffré|created (?:this )?group|added|\bleft\b"
    r"|joined|removed|changed (?:the|this|their)|erstellt|hinzugefügt|verlassen|创建|建立|加入|退出|离开|離開|移除"
    r"|更改|变更",
    re.I,
)
_SENDER = re.compile(r"(?P<name>[^\n:]{1,100}): ?(?P<text>.*)", re.DOTALL)
_ROOM = re.compile(
    r"WhatsApp[ -]?Chat(?:verlauf)? (?:with|mit|-) (?P<en>.+)|(?:Chat|Conversación) de WhatsApp con (?P<es>.+)"
    r"|(?:与|與)\s?(?P<zh>.+?)\s?的\s?WhatsApp\s?(?:聊天|對話|对话).*"
)
STEM = re.compile(rf"_chat|{_ROOM.pattern}")
"""The names, without ending, that WhatsApp gives to the chat among its pictures and documents."""


@dataclass(slots=True)
class _Draft:
    """A message whose further lines may still come."""

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
    text: str
    mentions: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Messages of one chat; a line without a date continues the message before it.

    Day and month are told apart by the first thousands of lines. Lines without a sender are system messages. Left-out
    media give an empty text with a caption.
    """
    yield from not_given_yet(_Chat(source, options, resume_from).items(), resume_from)


class _Chat:
    def __init__(self, source: Source, options: Options, resume_from: Position | None) -> None:
        self._source = source
        self._options = options
        self._room = options.room_id or room_name(source)
        self._start = dict(resume_from["start"]) if resume_from else {}
        self._passage = Passage.resumed(self._start)
        self._order = _sniff_order(source)
        self._draft: _Draft | None = None

    def items(self) -> Iterator[Item]:
        for line in read_lines(self._source, offset=self._start.get("offset", 0), number=self._start.get("line", 0)):
            yield from self._take(line)
        yield from self._finish()

    def _take(self, line: Line) -> Iterator[Item]:
        stamp = read_stamp(line.text) if line.whole else None
        if stamp is not None:
            yield from self._finish()
            self._draft = _Draft(stamp, [line.text[stamp.length :]], _state(line), line.end)
        elif self._draft is not None and line.whole and self._draft.size < _LONGEST_TEXT:
            self._draft.add(line)
        else:
            yield from self._finish()
            yield from self._refuse(line)

    def _finish(self) -> Iterator[Parsed]:
        draft, self._draft = self._draft, None
        if draft is not None:
            message = self._message(draft)
            yield Parsed(message, {"offset": draft.end, "start": self._passage.start})

    def _refuse(self, line: Line) -> Iterator[Bad]:
        if line.whole and not line.text.strip(MARKS + " \t"):
            return
        reason = "no date and no message before it to continue" if line.whole else TOO_LONG
        self._passage.start = self._passage.start or _state(line)
        yield Bad({"offset": line.end, "start": self._passage.start}, line.number, reason, excerpt(line.text))

    def _message(self, draft: _Draft) -> Message:
        whole = "\n".join(draft.lines).rstrip("\n")
        sender, said = _split(whole)
        local = draft.stamp.at(self._order)
        content = _content(said)
        return Message(
            id=self._passage.take(local.isoformat() if local else "", sender, said, draft.state),
            room_id=self._room,
            sender_id=sender or "system",
            sender_name=sender,
            role=Role.USER if sender else Role.SYSTEM,
            text=content.text,
            sent_at=local and in_zone(local, self._options.timezone),
            mentions=content.mentions,
            metadata=content.metadata,
        )


def _state(line: Line) -> dict[str, Any]:
    return {"offset": line.start, "line": line.number - 1}


def _sniff_order(source: Source) -> str:
    before = source.bytes_read, source.repaired
    lines = islice(read_lines(source), _SNIFFED)
    order = decide_order([stamp for line in lines if line.whole and (stamp := read_stamp(line.text))])
    source.bytes_read, source.repaired = before
    return order


def _split(whole: str) -> tuple[str, str]:
    """(sender, text), the sender '' where the program itself speaks."""
    match = _SENDER.match(whole)
    if match is None or "://" in whole[: match.end("name") + 3]:
        return "", whole.strip(MARKS)
    name = match["name"].strip(MARKS + "~\u202f\u00a0 ")
    said = match["text"]
    spoken_by_program = said.startswith("\u200e") and _SYSTEM.search(said.partition("\n")[0]) and _content(said).text
    return ("", said.strip(MARKS)) if spoken_by_program or not name else (name, said)


def _content(said: str) -> _Content:
    """The text without the program's own marks, and what those say."""
    marked = said.startswith("\u200e")
    text = said.replace("\u200e", "").strip("\u200f\u202a\u202c")
    edited = _EDITED.search(text)
    text = text[: edited.start()] if edited else text
    metadata: dict[str, Any] = {"edited": True} if edited else {}
    if _DELETED.fullmatch(text):
        return _Content("", metadata=metadata | {"deleted": True})
    if caption := _left_out(text, marked):
        return _Content("", metadata=metadata | {"caption": caption})
    names = tuple(dict.fromkeys(name.strip("~\u202f\u00a0 ") for name in _MENTION.findall(text)))
    text = _MENTION.sub(r"@\1", text)
    if file := _ATTACHED.search(text) or _FILE.match(text):
        rest = text[: file.start()] + text[file.end() :]
        return _Content(rest.strip(), names, metadata | {"caption": file["name"].strip()})
    return _Content(text, names, metadata)


def _left_out(text: str, marked: bool) -> str:
    """What stands in the place of media that were not exported, '' where the text is a real one."""
    if match := _MEDIA.fullmatch(text):
        return match["kind"]
    plain = _MEDIA_PLAIN.fullmatch(text) or (marked and _MEDIA_MARKED.fullmatch(text))
    return text if plain else ""


def room_name(source: Source) -> str:
    """Return the chat's name in the name of the file, else the file's name.

    An iPhone calls every chat `_chat.txt`: then the name in that of its folder or in its first line, else one made of
    that line, as two chats are never one room.
    """
    if source.stem != "_chat":
        return _named(source.stem) or source.stem
    return _named(source.path.resolve().parent.name) or _name_inside(source)


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
    said = first.text[stamp.length :]
    name = said.partition(":")[0].strip(MARKS + "~\u202f\u00a0 ") if _NOTICE.match(said) else ""
    return name or derived_id("whatsapp", first.text).replace("x", "_chat-", 1)[:18]
