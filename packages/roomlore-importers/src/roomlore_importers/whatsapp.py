"""WhatsApp's chat export: messages with dates in the order and notation of the phone's language, and notices, which an
iPhone marks."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Parsed, Position
from roomlore_importers.export_files import (
    LONGEST_TEXT,
    TOO_LONG,
    Line,
    Options,
    Source,
    derived_id,
    first_lines,
    read_lines,
)
from roomlore_importers.shapes import Draft, LineReader, in_zone
from roomlore_importers.whatsapp_content import (
    GROUP,
    MARGIN,
    MARK,
    Content,
    Setting,
    angle_at_end,
    from_right_to_left,
    is_of_program,
    moves_told,
    read_content,
)
from roomlore_importers.whatsapp_stamps import Stamp, decide_order, read_stamp
from roomlore_importers.whatsapp_words import MARKS, tells_creation

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
_ROOM = lazy_pattern(
    r"WhatsApp[ -]?[Cc]hatt?(?:verlauf)? (?:with|mit|met|med|kay|s[ \u00a0]používateľom|-) (.+)"
    r"|(?:Chat|Conversación) de WhatsApp con (.+)|Discussion WhatsApp avec (.+)"
    r"|Chat WhatsApp (?:con|dengan|s[ \u00a0]uživatelem) (.+)|Conversa [dn]o WhatsApp com (.+)"
    r"|Чат WhatsApp с[ \u00a0](?:контактом[ \u00a0])?(.+)|Cza[td] WhatsApp z (.+)"
    r"|WhatsApp(?:'i)? (?:Gesprek met|Чат с|vestlus kontaktiga|razgovor s|csevegés vele:|чат:|pokalbis su|sarakste ar"
    r"|разговор со|klepet z|Ћаскање са) (.+)|WhatsApp-(?:samtale med|keskustelu henkilön) (.+?)(?: kanssa)?"
    r"|(?:دردشة واتساب مع|Xat de WhatsApp amb|Συνομιλία WhatsApp με|گفتگوی WhatsApp با|צ'אט WhatsApp עם"
    r"|Sembang WhatsApp dengan|Conversație WhatsApp cu|Soga za WhatsApp na|แชท WhatsApp กับ|Бесіда WhatsApp з"
    r"|Trò chuyện WhatsApp với) (.+)|Biseda me (.+) në WhatsApp"
    r"|(.+) (?:ile WhatsApp [Ss]ohbeti|ilə WhatsApp Söhbəti|এর সাথে WhatsApp চ্যাট|સાથેની WhatsApp વાત"
    r"|के साथ WhatsApp चैट|ಜೊತೆ WhatsApp ಸಂಭಾಷಣೆ|മായുള്ള WhatsApp ചാറ്റുകൾ|सोबतच्या WhatsApp गप्पा|ਨਾਲ WhatsApp ਗੱਲਬਾਤ"
    r"|உடன் WhatsApp உரையாடல்|తో WhatsApp సంభాషణ|کے ساتھ WhatsApp بات چیت|bilan WhatsApp chati)"
    r"|(.+?)との(?:トーク|WhatsAppチャット)|(.+?) ?님과의 ?WhatsApp ?대화"
    r"|(?:与|與)\s?(.+?)\s?的\s?WhatsApp\s?(?:聊天|對話|对话).*|WhatsApp\s?[与與]\s?(.+?)\s?的(?:对话|對話)"
)
"""The name of a chat in the names that WhatsApp gives its files: its string `email_conversation_subject`."""
STEM = lazy_pattern(rf"_chat|{_ROOM.pattern}")
"""WhatsApp's names, without ending, for the chat among its pictures and documents."""


@dataclass(slots=True, kw_only=True)
class _Draft(Draft):
    stamp: Stamp


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat; a line without a date continues the message before it.

    Day and month are told apart by the first thousands of lines. Lines without a sender are system messages, and so are
    calls. Media left out, polls and locations are attachments; what the program writes in their place is no text.
    """
    yield from _Chat(source, options, resume_from).items(resume_from)


class _Chat(LineReader):
    def __init__(self, source: Source, options: Options, resume_from: Position | None) -> None:
        super().__init__(source, options, resume_from)
        name = room_name(source)
        self._room = options.room_id or options.id_of(name)
        self._known = _sniff(source, name)
        self._draft: _Draft | None = None

    def _take(self, line: Line) -> Iterator[Item]:
        stamp = read_stamp(line.text) if line.whole else None
        if stamp is not None:
            yield from self._finish()
            self._draft = _Draft(stamp=stamp, lines=[line.text[stamp.length :]], state=line.before, end=line.end)
        elif self._draft is not None and line.whole and self._draft.size < LONGEST_TEXT:
            self._draft.add(line.text, line.end)
        else:
            yield from self._finish()
            if not line.whole or line.text.strip(MARKS + " \t"):
                yield self._bad(line, "no date and no message before it to continue" if line.whole else TOO_LONG)

    def _finish(self) -> Iterator[Parsed]:
        draft, self._draft = self._draft, None
        if draft is not None:
            message = self._message(draft)
            nobody = not message.sender_name
            moves = moves_told(message.text) if nobody else None
            yield Parsed(
                message,
                self._position(draft.end),
                room=None if moves is None else GROUP,
                moves=moves or (),
                begins=nobody and tells_creation(message.text),
            )

    def _message(self, draft: _Draft) -> Message:
        known = self._known
        sender, body = _split("\n".join(draft.lines).rstrip("\n"), known.names)
        local = draft.stamp.at(known.order)
        content, marked = known.content(draft.stamp, sender, body)
        of_program = marked and is_of_program(content.text, sender)
        nobody = (of_program and not content.call) or (
            content.notice and (sender in known.chats or sender in content.text)
        )
        key = ("", body.strip(MARKS)) if of_program else (sender, body)
        sender = "" if nobody else sender
        numbers = (known.numbers.get(digits) for digits in _NUMBER.findall(content.text))
        return Message(
            id=self._passage.take(local.isoformat() if local else "", *key, draft.state),
            room_id=self._room,
            sender_id=sender or "system",
            sender_name=sender,
            role=Role.SYSTEM if not sender or content.call or content.notice else Role.USER,
            text=content.text,
            sent_at=local and in_zone(local, self._options.timezone),
            mentions=tuple(dict.fromkeys((*content.mentions, *(number for number in numbers if number)))),
            metadata=content.metadata,
        )


@dataclass(slots=True)
class _Known:
    """What the beginning of a chat tells of all of it.

    `order`: of day, month and year. `names`: those with a colon or a single quotation mark in them. `numbers`: people
    without a name by the digits of their numbers, since a mention of one has only these. `labels`: words in angle
    brackets that stand for something, as they are repeated. `chats`: names under which the chat itself speaks, `groups`
    those of them that are nobody's. `leftwards`: True if the app's marks are those of a text from right to left.
    `marks_lines`: True if a mark stands before the brackets of what was sent as a file.
    """

    order: str
    names: tuple[str, ...]
    leftwards: bool
    marks_lines: bool
    labels: frozenset[str]
    numbers: dict[str, str]
    chats: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def content(self, stamp: Stamp, sender: str, body: str) -> tuple[Content, bool]:
        """Return the content of a message, and True if it begins with the mark of the app."""
        if self.leftwards and stamp.bracketed:
            body = from_right_to_left(body)
        group = sender in self.groups
        setting = Setting(stamp.bracketed, stamp.marked, self.marks_lines, sender, self.labels, group)
        return read_content(body, setting), body.startswith(MARK)

    def is_notice(self, stamp: Stamp, sender: str, body: str) -> bool:
        """Return True if the app marked this, and it is none of what it writes in place of a person's message."""
        if not stamp.bracketed or not body.startswith((MARK, "\u200f")):
            return False
        content, _ = self.content(replace(stamp, bracketed=False), sender, from_right_to_left(body))
        return bool(content.text) and not content.call and not content.metadata


def _sniff(source: Source, name: str) -> _Known:
    """Return what the first thousands of lines tell of a chat of this name."""
    stamped = [(stamp, line[stamp.length :]) for line in first_lines(source) if (stamp := read_stamp(line))]
    names = (*_before_mark(stamped), *odd_names([text for _, text in stamped]))
    parsed = [(stamp, *_split(text, names)) for stamp, text in stamped]
    known = _Known(
        order=decide_order([stamp for stamp, _ in stamped]),
        names=names,
        leftwards=bool(parsed) and parsed[0][2].startswith("\u200f"),
        marks_lines=any(stamp.marked for stamp, _, body in parsed if body.startswith(tuple(MARKS))),
        labels=_repeated(parsed),
        numbers={re.sub(r"\D", "", sender): sender for _, sender, _ in parsed if sender.startswith("+")},
    )
    notices: dict[str, set[str]] = {}
    speakers = set[str]()
    for stamp, sender, body in parsed:
        if known.is_notice(stamp, sender, body):
            notices.setdefault(sender, set()).add(body)
        else:
            speakers.add(sender)
    first = {sender for _, sender, body in parsed[:1] if body in notices.get(sender, ())}
    silent = {sender for sender, bodies in notices.items() if len(bodies) > 1} - speakers
    known.chats = frozenset({name, *first, *silent}) - {""}
    known.groups = known.chats - speakers
    return known


def _before_mark(stamped: Sequence[tuple[Stamp, str]]) -> tuple[str, ...]:
    """Return the name of an iPhone's chat if there is a colon in it: it ends at the mark of the first notice."""
    name, mark, _ = stamped[0][1].partition(f": {MARK}") if stamped and stamped[0][0].bracketed else ("", "", "")
    return (name.strip(MARGIN),) if mark and ":" in name and len(name) <= _LONGEST_NAME else ()


def _repeated(parsed: Iterable[tuple[Stamp, str, str]]) -> frozenset[str]:
    """Return the words in angle brackets, as Android writes them in place of media and behind edited messages, that
    the chat repeats: alone, or behind different texts."""
    alone: Counter[str] = Counter()
    texts: dict[str, set[str]] = {}
    for _, _, body in parsed:
        before, label = angle_at_end(body)
        if " " in label or not label.isascii():
            alone[label] += not before.strip(MARKS)
            texts.setdefault(label, set()).add(before)
    return frozenset(label for label, before in texts.items() if alone[label] > 1 or len(before) > 1)


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
            name = line[:place].strip(MARGIN)
            begun[name] += 1
            texts.setdefault(name, set()).add(line[place:])
            firsts.setdefault(name, line[: places[0]].strip(MARGIN))
    prefixes: list[str] = []
    for name in sorted(texts, key=lambda prefix: (prefix == firsts[prefix], len(prefix))):
        first = firsts[name]
        quoted = _is_open(first)
        within = (f"{name}:".startswith(f"{inner}:") or f"{inner}:".startswith(f"{name}:") for inner in prefixes)
        alone = begun[name] == begun[first] and not any(within)
        short = quoted and len(name) <= _SHORT_NAME and not is_of_program(name)
        odd = short if name == first else not _is_open(name)
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
    bare = whole.lstrip(MARGIN)
    for name in names:
        if bare.startswith(f"{name}:"):
            return name, bare[len(name) + 1 :].removeprefix(" ")
    match = _SENDER.match(whole)
    if match is None or "://" in whole[: match.end("name") + 3] or _is_quoted(whole, match.end("name")):
        return "", whole.strip(MARKS)
    name = match["name"].strip(MARGIN)
    return (name, match["text"]) if name else ("", match["text"].strip(MARKS))


def _is_quoted(whole: str, colon: int) -> bool:
    """Return True if the colon is inside quotation marks: a notice quotes a name with one, such as that of a group."""
    before, after = whole[:colon], whole[colon:].partition("\n")[0]
    if before.count('"') % 2 and after.count('"') % 2:
        return True
    return any(before.rfind(begin) > before.rfind(end) and end in after for begin, end in _QUOTES)


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
    with source.looked_at():
        first = next((line for line in read_lines(source) if read_stamp(line.text)), None)
    stamp = read_stamp(first.text) if first else None
    if first is None or stamp is None:
        return source.stem
    text = first.text[stamp.length :]
    sender, body = _split(text, _before_mark([(stamp, text)]))
    setting = Setting(stamp.bracketed, stamp.marked, sender=sender)
    named = sender not in body and read_content(from_right_to_left(body), setting).notice
    return sender if named else derived_id("whatsapp", first.text).replace("x", "_chat-", 1)[:18]


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
