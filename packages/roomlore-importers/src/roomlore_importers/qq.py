"""QQ chats: QQChatExporter, versions 4 to 6, as one JSON file, or a folder or zip with a manifest and chunks of JSON
lines; and text with a line of time and name before each message, as QQ itself and MemoTrace write it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from roomlore.core.audience import RoomFacts, RoomKind
from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position
from roomlore_importers.export_files import (
    LONGEST_TEXT,
    TOO_LONG,
    Line,
    Options,
    Source,
    is_zip,
    only_json,
    open_zip,
    read_lines,
)
from roomlore_importers.json_stream import Event, Facts, Layout, Member, parse_object, read_json_lines, read_members
from roomlore_importers.onebot import forwarded_line
from roomlore_importers.shapes import (
    RECALL_NOTICE,
    Draft,
    LineReader,
    Said,
    attached,
    first_name,
    id_at,
    in_zone,
    joined,
    kept,
    local_time,
    name,
    named,
    obj,
    objects,
    texts,
    words,
)

_REPLY_MARK = "[回复消息]"
_NOBODY = ("", "0", "未知", "unknown")
_KINDS = {"group": RoomKind.PRIVATE, "private": RoomKind.DIRECT, "friend": RoomKind.DIRECT, "temp": RoomKind.DIRECT}
_CHAT = ("name", "type", "selfUid", "selfUin", "peerUid", "peerUin")
_IN_FILE_NAME = lazy_pattern(r"(?:^|_)(group|friend|private)_(\d{4,})(?:_|$)")
_PAIR = lazy_pattern(rb'"uid"\s*:\s*"(u_[^"\\]{1,100})"\s*,\s*"uin"\s*:\s*"?(\d{4,20})"?')
_SCANNED = 1 << 20
_MAX_DEPTH = 4
"""Forwarded conversations inside each other that are shown."""
_LAYOUT = Layout(
    streams=lambda path: path == ("messages",),
    start=lazy_pattern(r'\{\s*"(?:id|messageId)"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "sender" in value and "content" in value,
    home=("messages", 0),
)
MANIFEST, CHUNKS = "manifest.json", "chunks"


def read_exporter(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat. The room is the number of the group, or "private:" and the number of the other
    person; a person's id is the QQ number, if the export has it.

    A recalled message is empty and marked as such. A forwarded conversation keeps who said what.
    """
    reader = _in_chunks if has_chunks(source) else _in_one_file
    yield from reader(source, options, resume_from)


def _in_one_file(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    file = _file_of(source)
    export = _Export(file, options, [file])
    for member in read_members(file, _LAYOUT, resume_from, _note):
        yield member if isinstance(member, Bad) else export.parsed(member, member.facts)


def _note(event: Event, facts: Facts) -> None:
    if event.kind == "scalar" and event.path[:1] == ("chatInfo",) and event.path[-1] in _CHAT:
        facts[str(event.path[-1])] = name(event.value)


def _in_chunks(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    """Yield the messages of the chunks, in the order of the manifest. A position says in which chunk it is."""
    manifest, chunks = _opened(source)
    export = _Export(source, options, chunks)
    chat = {key: name(obj(manifest.get("chatInfo")).get(key)) for key in _CHAT}
    start = resume_from or {"chunk": 0, "inside": None, "facts": chat}
    facts: Facts = start["facts"]
    done = sum(chunk.total_bytes for chunk in chunks[: start["chunk"]])
    for place, chunk in enumerate(chunks[start["chunk"] :], start["chunk"]):
        for line in read_json_lines(chunk, start["inside"] if place == start["chunk"] else None):
            facts = dict(facts)
            item = line if isinstance(line, Bad) else export.parsed(line, facts)
            source.bytes_read = done + chunk.bytes_read
            yield replace(item, position={"chunk": place, "inside": item.position, "facts": facts})
        source.repaired += chunk.repaired
        done += chunk.total_bytes


def has_chunks(source: Source) -> bool:
    """Return True for a folder of chunks, also in a zip. Other programs call a file `manifest.json` too."""
    manifest = _manifest(source)
    return manifest is not None and b'"chunked"' in manifest


def _manifest(source: Source) -> bytes | None:
    """Return what the manifest of a folder or zip says; None if there is none."""
    if source.path.is_dir():
        file = source.path / MANIFEST
        return file.read_bytes() if file.is_file() else None
    if (source.member is not None and not source.folder) or not is_zip(source.path):
        return None
    with open_zip(source.path) as archive:
        inside = f"{source.folder}{MANIFEST}"
        return archive.read(inside) if inside in archive.namelist() else None


def _opened(source: Source) -> tuple[dict[str, Any], list[Source]]:
    """Return the manifest and the chunks of a folder or zip that has them."""
    path = source.path
    manifest = parse_object((_manifest(source) or b"").decode("utf-8", "replace"))
    if isinstance(manifest, str):
        raise InvalidInput("manifest_unreadable", path=path, file=MANIFEST, why=manifest)
    names = _names(manifest, path)
    if path.is_dir():
        return manifest, [Source(path / chunk) for chunk in names]
    return manifest, [Source(path, f"{source.folder}{chunk}") for chunk in names]


def _file_of(source: Source) -> Source:
    """Return the only JSON file of a folder or zip; a file is returned as it is."""
    if source.member is not None:
        return source
    return only_json(source.path) if source.path.is_dir() or is_zip(source.path) else source


def _names(manifest: Mapping[str, Any], path: Path) -> list[str]:
    """Return the chunks' paths below the manifest, those only which lie there."""
    chunked = obj(manifest.get("chunked"))
    folder = words(chunked.get("chunksDir")) or CHUNKS
    listed = [first_name(chunk.get("relativePath"), chunk.get("fileName")) for chunk in objects(chunked.get("chunks"))]
    names = [file if "/" in file else f"{folder}/{file}" for file in listed if file]
    if not names or any(".." in PurePosixPath(file).parts or file.startswith("/") for file in names):
        raise InvalidInput("manifest_without_chunks", path=path, file=MANIFEST)
    return names


class _Export:
    """The messages of one export. `parts`: the files that hold them."""

    def __init__(self, source: Source, options: Options, parts: Sequence[Source]) -> None:
        self._source = source
        self._options = options
        self._parts = parts

    @cached_property
    def _numbers(self) -> dict[str, str]:
        """The QQ numbers by internal id. All files are read for it, so only when an internal id comes alone."""
        numbers: dict[str, str] = {}
        for part in self._parts:
            with part.open() as file:
                tail = b""
                while piece := file.read(_SCANNED):
                    for uid, uin in _PAIR.findall(tail + piece):
                        numbers.setdefault(uid.decode("utf-8", "replace"), uin.decode())
                    tail = piece[-200:]
        return numbers

    def _number(self, uid: str) -> str:
        """Return the QQ number of an internal id, or the id if it has none here."""
        return self._numbers.get(uid, uid) if uid.startswith("u_") else uid

    def parsed(self, member: Member, facts: Facts) -> Item:
        record = member.value
        content = obj(record.get("content"))
        if not content and "sender" not in record:
            return member.bad("neither sender nor content: not a message of QQChatExporter")
        raw, sender = obj(record.get("rawMessage")), obj(record.get("sender"))
        system = record.get("system") is True or record.get("isSystemMessage") is True
        recalled = (record.get("recalled") is True or record.get("isRecalled") is True) and not system
        moment = local_time(record.get("timestamp"), self._options.timezone)
        person = self._person(sender, raw)
        elements = [
            (words(element.get("type")), obj(element.get("data"))) for element in objects(content.get("elements"))
        ]
        own_id = next((own for key in ("id", "messageId") if (own := name(record.get(key))) not in ("", "0")), "")
        message = Message(
            id=own_id or id_at(facts, moment, person, content.get("text")),
            room_id=self._options.room_id or self._room(facts),
            sender_id="system" if system and not person else person or "unknown",
            sender_name="" if system and not person else _shown_name(sender, raw),
            role=Role.SYSTEM if system else Role.USER,
            text="" if recalled else _text(content, elements),
            sent_at=moment,
            reply_to=_reply(content, elements),
            mentions=() if recalled else self._mentions(content, elements),
            metadata={"deleted": True} if recalled else _metadata(sender, raw, elements),
        )
        room = None if self._options.room_id else named(_room_facts(facts), facts.get("name", ""), message.room_id)
        return Parsed(message, member.position, room=room)

    def _room(self, facts: Facts) -> str:
        of_two = _KINDS.get(facts.get("type", "")) is RoomKind.DIRECT
        peer = _somebody(facts.get("peerUin"), facts.get("peerUid"))
        named = _IN_FILE_NAME.search(self._source.stem)
        number = self._number(peer) or (named[2] if named else "")
        if not number:
            return self._options.id_of(facts.get("name") or self._source.stem)
        return f"private:{number}" if of_two or (named and named[1] != "group" and not peer) else number

    def _person(self, sender: dict[str, Any], raw: dict[str, Any]) -> str:
        number = _somebody(sender.get("uin"), raw.get("senderUin"))
        uid = _somebody(sender.get("uid"), raw.get("senderUid"))
        return number or self._number(uid)

    def _mentions(self, content: dict[str, Any], elements: list[tuple[str, dict[str, Any]]]) -> tuple[str, ...]:
        marked = [data for kind, data in elements if kind == "at"] or objects(content.get("mentions"))
        mentions = []
        for element in marked:
            uid = _somebody(element.get("uid"))
            if uid != "all" and element.get("type") != "all":
                mentions.append(_somebody(element.get("uin")) or self._number(uid))
        return tuple(dict.fromkeys(mention for mention in mentions if mention))


def _somebody(*values: object) -> str:
    return next((somebody for value in values if (somebody := name(value)) not in _NOBODY), "")


def _shown_name(sender: dict[str, Any], raw: dict[str, Any]) -> str:
    """Return the name as the group shows it: the card of the group before the nickname. `name` comes last: it may be
    what only the owner of the export calls the person."""
    return first_name(
        sender.get("groupCard"),
        raw.get("sendMemberName"),
        sender.get("nickname"),
        raw.get("sendNickName"),
        sender.get("name"),
    )


def _room_facts(facts: Facts) -> RoomFacts | None:
    kind = _KINDS.get(facts.get("type", ""))
    people = tuple(person for key in ("selfUin", "peerUin") if (person := facts.get(key, "")))
    return RoomFacts(kind, people if kind is RoomKind.DIRECT and len(people) == 2 else None) if kind else None


def _text(content: dict[str, Any], elements: list[tuple[str, dict[str, Any]]]) -> str:
    """Return the text without the mark of a reply, forwarded conversations line by line, cards by their title, and red
    packets as such. A message that the export gives no text has a short one for each of its elements."""
    text = words(content.get("text")).replace(_REPLY_MARK, "", 1).strip()
    for kind, data in elements:
        if kind == "forward":
            return _forwarded(data, 0)
        if kind == "wallet":
            return _element(kind, data)
        if kind == "json" and (title := first_name(data.get("title"), data.get("summary"))):
            text = text.replace("[JSON消息]", f"[卡片] {_unbracketed(title)}", 1)
        if kind == "markdown" and (written := words(data.get("content"))):
            text = text.replace("[Markdown消息]", written, 1)
    return text or "".join(_element(kind, data) for kind, data in elements).strip()


_ELEMENTS = {
    "image": "图片", "audio": "语音", "video": "视频", "file": "文件", "face": "表情", "market_face": "表情",
    "location": "位置", "json": "卡片", "markdown": "", "wallet": "红包",
}  # fmt: skip
_IN_BRACKETS = lazy_pattern(r"\[([^\[\]]*)\]")


def _unbracketed(title: str) -> str:
    match = _IN_BRACKETS.fullmatch(title)
    return match[1] if match else title


def _element(kind: str, data: dict[str, Any]) -> str:
    if kind == "reply":
        return ""
    if kind == "markdown":
        return words(data.get("content"))
    if kind in ("text", "system", ""):
        return words(data.get("text")) or words(data.get("summary"))
    if kind == "at":
        return f"@{words(data.get('name')).removeprefix('@')} "
    title = first_name(data.get("name"), data.get("filename"), data.get("title"), data.get("summary")).strip("[]/")
    return f"[{joined((_ELEMENTS.get(kind, kind), title))}]"


def _forwarded(data: dict[str, Any], depth: int) -> str:
    title = words(data.get("title"))
    messages = objects(data.get("messages")) if depth < _MAX_DEPTH else []
    lines = [line for message in messages if (line := _line(message, depth))]
    preview = [] if lines else texts(data.get("preview"))
    return joined((f"[合并转发] {title}".strip(), *lines, *preview), "\n")


def _line(message: dict[str, Any], depth: int) -> str:
    """Return who said what in a message of a forwarded conversation, which may be a OneBot message."""
    parts = [message.get(key) for key in ("message", "content")]
    if "raw_message" in message or any(isinstance(part, list) for part in parts):
        return forwarded_line(message, depth + 1)
    content = obj(message.get("content"))
    nested = next(
        (obj(element.get("data")) for element in objects(content.get("elements")) if element.get("type") == "forward"),
        None,
    )
    if nested or message.get("messages"):
        text = _forwarded(nested or message, depth + 1).replace("\n", "\n  ")
    else:
        text = first_name(content.get("text"), message.get("content")).replace(_REPLY_MARK, "", 1).strip()
    who = _shown_name(obj(message.get("sender")), obj(message.get("rawMessage"))) or name(message.get("senderName"))
    return f"{who}: {text}" if who else text


def _reply(content: dict[str, Any], elements: list[tuple[str, dict[str, Any]]]) -> str | None:
    quotes = [data for kind, data in elements if kind == "reply"] or [obj(content.get("reply"))]
    return next((quoted for quote in quotes if (quoted := _somebody(quote.get("referencedMessageId")))), None)


def _metadata(
    sender: dict[str, Any], raw: dict[str, Any], elements: list[tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    files = [
        attached(
            kind=kind,
            name=data.get("filename"),
            url=data.get("url"),
            file=first_name(data.get("localPath"), data.get("relativePath")),
        )
        for kind, data in elements
        if kind in ("image", "video", "audio", "file")
    ]
    nickname = first_name(sender.get("nickname"), raw.get("sendNickName"))
    return kept(
        {
            "attachments": files,
            "nickname": nickname if nickname != _shown_name(sender, raw) else "",
            "title": sender.get("title"),
        }
    )


_STAMP = lazy_pattern(
    r"(?P<at>\d{4}-\d{2}-\d{2} (?:(?:0?\d|1[0-2]):\d{2}:\d{2} [AP]M(?= )|(?:[上下]午 ?)?\d{1,2}:\d{2}:\d{2})) "
    r"(?P<who>(?:\S[^\n]{0,300})?)"
)
"""QQ writes times as the machine does: of 24 hours, or with 上午 and 下午 before them, or with AM and PM after them."""
_HALF = lazy_pattern(r" ?([上下]午|[AP]M) ?")
_PERSON = lazy_pattern(r"(?P<name>[^\n]*?)(?:\((?P<number>[^()\n]{1,100})\)|<(?P<mail>[^<>\n]{1,200})>)")
_TITLES = lazy_pattern(r"(?:【[^】\n]{0,60}】\s*)+")
_CHAT_LINE = lazy_pattern(r"消息对象[:：]\s*(?P<name>[^\n]+?)\s*")
_HEADS = ("消息记录（此消息记录为文本格式", "消息分组:", "消息分组：", "消息对象:", "消息对象：", "=====")
_QUOTE = lazy_pattern(r"引用:(?:(?P<who>[^:\n]{1,100}):(?P<text>[^\n]*)|未知)")
_SYSTEM_PEOPLE = ("系统消息", "10000", "1000000", "系统")
_HEAD_LINES = 40


@dataclass(slots=True, kw_only=True)
class _Draft(Draft):
    at: str
    who: str


def read_text(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat; the room is the chat's name in the file, else the file's name.

    Times are local, of `options.timezone`. A person's id is the number or address in brackets, else the name. MemoTrace
    quotes who said what, so its text before a position is read again.
    """
    called = _chat_name(source)
    yield from _Chat(source, options, called, resume_from if called else None).items(resume_from)


def is_qq(lines: list[str]) -> bool:
    """Return True for the first lines of QQ's own export."""
    return any(line.lstrip("\ufeff").startswith(_HEADS[:-1]) for line in lines[:_HEAD_LINES])


def blocks(lines: list[str]) -> int:
    """Return how many of the lines begin a message whose text is on the next line."""
    begins = [_STAMP.fullmatch(line) is not None for line in lines]
    return sum(begin and not following for begin, following in pairwise(begins))


class _Chat(LineReader):
    """The messages of one text. `called`: what QQ calls the chat; "" if the text is MemoTrace's, which has quotes."""

    def __init__(self, source: Source, options: Options, called: str, resume_from: Position | None) -> None:
        super().__init__(source, options, resume_from)
        self._room = options.room_id or options.id_of(called or source.stem)
        self._said = None if called else Said()
        self._draft: _Draft | None = None

    def _take(self, line: Line) -> Iterator[Item]:
        text = line.text.lstrip("\ufeff")
        stamp = _STAMP.fullmatch(text) if line.whole else None
        if stamp is not None:
            yield from self._finish()
            self._draft = _Draft(at=stamp["at"], who=stamp["who"], lines=[], state=line.before, end=line.end)
        elif not line.whole:
            yield from self._finish()
            yield self._bad(line, TOO_LONG)
        elif self._draft is not None and self._draft.size < LONGEST_TEXT and not text.startswith(_HEADS):
            self._draft.add(text, line.end)
        elif text.strip() and not text.startswith(_HEADS):
            yield from self._finish()
            yield self._bad(line, "no time and no message before it to continue")

    def _finish(self) -> Iterator[Parsed]:
        draft, self._draft = self._draft, None
        if draft is not None:
            message = self._message(draft)
            yield Parsed(message, self._position(draft.end))

    def _message(self, draft: _Draft) -> Message:
        person, shown = _person(draft.who)
        lines, quoted = _without_quote(draft.lines) if self._said else (draft.lines, {})
        text = "\n".join(lines).strip()
        system = person in _SYSTEM_PEOPLE or RECALL_NOTICE.fullmatch(text) is not None
        local = _local(draft.at)
        message = Message(
            id=self._passage.take(local.isoformat() if local else "", person, text, draft.state),
            room_id=self._room,
            sender_id="system" if system else person,
            sender_name="" if system else shown,
            role=Role.SYSTEM if system else Role.USER,
            text=text,
            sent_at=local and in_zone(local, self._options.timezone),
            metadata=kept({"quoted": quoted}),
        )
        return self._said.answered(message) if self._said else message


def _local(text: str) -> datetime | None:
    half, bare = _HALF.search(text), _HALF.sub(" ", text).strip()
    try:
        moment = datetime.strptime(bare, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - the zone is added by the caller
    except ValueError:
        return None
    return moment.replace(hour=moment.hour % 12 + (12 if half[1] in ("下午", "PM") else 0)) if half else moment


def _person(who: str) -> tuple[str, str]:
    """Return (id, name). A title such as 【管理员】 before the name is left out."""
    match = _PERSON.fullmatch(who)
    shown = _TITLES.sub("", match["name"] if match else who, count=1).strip()
    person = (match["number"] or match["mail"]) if match else shown
    return person or who.strip() or "unknown", shown or person


def _without_quote(lines: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the lines without the quote that MemoTrace writes below a message, and the quote, which may have several
    lines."""
    places = (place for place in range(len(lines) - 1, 0, -1) if _QUOTE.fullmatch(lines[place]))
    at = next(places, None)
    match = _QUOTE.fullmatch(lines[at]) if at is not None else None
    if at is None or match is None:
        return lines, {}
    text = "\n".join((match["text"] or "", *lines[at + 1 :])).strip()
    return lines[:at], {"sender": match["who"], "text": text} if match["who"] else {}


def _chat_name(source: Source) -> str:
    """Return what the heading of QQ's own text calls the chat, '' without one."""
    with source.looked_at():
        heads = (_CHAT_LINE.fullmatch(line.text.lstrip("\ufeff")) for line in islice(read_lines(source), _HEAD_LINES))
        return next((head["name"] for head in heads if head), "")
