"""WeChat chats as JSON (the answers of chatlog, the exports of WeFlow and EchoTrace) and as CSV (chatlog, MemoTrace,
PyWxDump and WeFlow's WeClone tables)."""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any

from roomlore.core.audience import RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore_importers.export_files import LONGEST_LINE, Line, Options, Source, derived_id, excerpt, read_lines
from roomlore_importers.json_stream import (
    Event,
    Facts,
    Layout,
    Member,
    lines_or_document,
    read_json_lines,
    read_members,
)
from roomlore_importers.shapes import (
    RECALL_NOTICE,
    Said,
    first_name,
    id_at,
    in_zone,
    joined,
    kept,
    labelled,
    local_time,
    name,
    named,
    obj,
    objects,
    words,
)

ROOM_MARK = "@chatroom"
"""The end of a group's id."""
SYSTEM_SENDER = "系统消息"
_SYSTEM, _SHARED, _QUOTE, _FORWARD = 10000, 49, 57, (19, 24, 87)
_LABELS = {
    3: "图片", 34: "语音", 42: "名片", 43: "视频", 47: "动画表情", 48: "位置", 50: "语音通话",
    (49, 1): "链接", (49, 4): "链接", (49, 5): "链接", (49, 6): "文件", (49, 8): "动画表情", (49, 19): "聊天记录",
    (49, 24): "笔记", (49, 33): "小程序", (49, 36): "小程序", (49, 51): "视频号", (49, 62): "拍一拍",
    (49, 63): "视频号直播", (49, 87): "群公告", (49, 92): "音乐", (49, 2000): "转账", (49, 2001): "红包",
    (49, 2003): "红包",
}  # fmt: skip
_WEFLOW_KINDS = {"群聊": RoomKind.PRIVATE, "私聊": RoomKind.DIRECT}
_WEFLOW_LABELS = {
    "图片消息": "图片", "语音消息": "语音", "视频消息": "视频", "文件消息": "文件", "动画表情": "动画表情",
    "名片消息": "名片", "卡片式链接": "链接", "图文消息": "链接", "位置消息": "位置", "红包卡片": "红包",
    "转账卡片": "转账", "小程序分享": "小程序", "视频号直播卡片": "视频号直播", "聊天记录合并转发": "聊天记录",
}  # fmt: skip
_WEFLOW_PLAIN = ("文本消息", "引用消息", "系统消息", "其他消息")

_CHATLOG = Layout(
    streams=lambda path: path == (),
    start=lazy_pattern(r'\{\s*"seq"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "talker" in value,
    home=(0,),
)
_WEFLOW = Layout(
    streams=lambda path: path == ("messages",),
    start=lazy_pattern(r'\{\s*"localId"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "createTime" in value,
    home=("messages", 0),
)


def chatlog(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of an answer of chatlog, which may hold several chats; the room is the chat's id.

    chatlog quotes by sender and second, so ids are made of these, and a quote finds its message.
    """
    yield from lines_or_document(source, options, resume_from, _chatlog_lines, _chatlog_document)


def _chatlog_lines(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    facts: Facts = resume_from["facts"] if resume_from else {}
    for line in read_json_lines(source, resume_from):
        facts = dict(facts)
        item = line if isinstance(line, Bad) else _of_chatlog(replace(line, facts=facts), options)
        yield replace(item, position={**line.position, "facts": facts})


def _chatlog_document(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    for member in read_members(source, _CHATLOG, resume_from):
        yield member if isinstance(member, Bad) else _of_chatlog(member, options)


def _of_chatlog(member: Member, options: Options) -> Item:
    record = member.value
    talker, sender, moment = name(record.get("talker")), name(record.get("sender")), parse_time(record.get("time"))
    if not talker or (not sender and moment is None):
        return member.bad("no talker, or neither sender nor time: not a message of chatlog")
    system = record.get("type") == _SYSTEM or sender == SYSTEM_SENDER
    contents = obj(record.get("contents"))
    quoted = obj(contents.get("refer"))
    quoted_by, quoted_at = name(quoted.get("sender")), parse_time(quoted.get("time"))
    text = words(record.get("content")) or _label(record, contents)
    message = Message(
        id=id_at(member.facts, _second(moment), talker, sender),
        room_id=options.room_id or talker,
        sender_id="system" if system else sender or "unknown",
        sender_name="" if system else name(record.get("senderName")),
        role=Role.SYSTEM if system else Role.USER,
        text=text,
        sent_at=moment,
        reply_to=_quoted_id(talker, quoted_by, quoted_at),
        metadata=_metadata(record, contents),
    )
    kind = RoomKind.PRIVATE if talker.endswith(ROOM_MARK) or record.get("isChatRoom") is True else RoomKind.DIRECT
    room = None if options.room_id else named(RoomFacts(kind), name(record.get("talkerName")), talker)
    return Parsed(message, member.position, room=room)


def _second(moment: datetime | None) -> str:
    return moment.replace(microsecond=0).isoformat() if moment else ""


def _quoted_id(talker: str, sender: str, moment: datetime | None) -> str | None:
    """Return the id of the quoted message: the first of its sender in that second."""
    return derived_id(_second(moment), talker, sender) if sender and moment else None


def _label_of(record: dict[str, Any]) -> str | None:
    kind = record.get("type")
    if not isinstance(kind, int):
        return None
    return _LABELS.get((kind, record.get("subType")) if kind == _SHARED else kind)


def _label(record: dict[str, Any], contents: dict[str, Any]) -> str:
    kind, sub = record.get("type"), record.get("subType")
    label = _label_of(record)
    title = first_name(contents.get("title"), contents.get("label"))
    head = f"[{joined((label, title))}]" if label else title
    if kind == _SHARED and sub in _FORWARD:
        return joined((head, *_forwarded(contents)), "\n")
    return head


def _forwarded(contents: dict[str, Any]) -> list[str]:
    """Return the lines of a forwarded conversation, each with who said it."""
    record = obj(contents.get("recordInfo"))
    listed = obj(record.get("DataList", record.get("dataList")))
    items = objects(listed.get("DataItems", listed.get("dataItems")))
    lines = []
    for item in items:
        who = first_name(item.get("SourceName"), item.get("sourceName"))
        text = first_name(*(item.get(key) for key in ("DataDesc", "dataDesc", "DataTitle", "dataTitle")))
        lines.append(f"{who}: {text}" if who else text)
    return [line for line in lines if line]


def _metadata(record: dict[str, Any], contents: dict[str, Any]) -> dict[str, Any]:
    return kept(
        {
            "seq": record.get("seq"),
            "room_name": record.get("talkerName"),
            "caption": "" if words(record.get("content")) == "" else words(contents.get("title")),
            "url": contents.get("url"),
            "attachments": labelled(_label_of(record), name=contents.get("title")),
        }
    )


def weflow(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one chat; the room is its id. What a message quotes is in `metadata.quoted`, not in its
    text. The short form of WeFlow, made for Arkme, lists the people once and gives messages their numbers."""
    for member in read_members(source, _WEFLOW, resume_from, _note):
        yield member if isinstance(member, Bad) else _of_weflow(member, source, options)


def _note(event: Event, facts: Facts) -> None:
    if event.kind == "scalar" and event.path[:1] == ("session",) and len(event.path) == 2:
        key = str(event.path[1])
        if key in ("wxid", "accountId", "type", "displayName", "nickname"):
            facts[key] = name(event.value)
    if event.kind == "scalar" and event.path[:1] == ("senders",) and len(event.path) == 3:
        _note_sender(event, facts)


def _note_sender(event: Event, facts: Facts) -> None:
    """Note a field of a sender by the place in the list, counted from 1, and the place of each `senderID`."""
    _, place, key = event.path
    if not isinstance(place, int):
        return
    number = str(place + 1)
    if key == "senderID":
        facts["places"] = {**facts.get("places", {}), name(event.value): number}
    elif key in ("accountId", "displayName"):
        people = facts.get("senders", {})
        facts["senders"] = {**people, number: {**people.get(number, {}), str(key): name(event.value)}}


def _of_weflow(member: Member, source: Source, options: Options) -> Item:
    record, facts = member.value, member.facts
    moment = parse_time(record.get("createTime"))
    number = name(record.get("senderID"))
    listed = obj(facts.get("senders", {}).get(facts.get("places", {}).get(number, number)))
    sender = first_name(record.get("senderUsername"), listed.get("accountId"))
    if moment is None and not sender:
        return member.bad("neither createTime nor senderUsername: not a message of WeFlow")
    quoted = _quoted(record)
    kind, text = words(record.get("type")), _without_quote(words(record.get("content")), quoted)
    system = kind == SYSTEM_SENDER or (record.get("isSend", 0) is None and RECALL_NOTICE.fullmatch(text) is not None)
    room = facts.get("wxid") or facts.get("accountId") or source.stem
    label = _WEFLOW_LABELS.get(kind)
    shown = label or (kind.removesuffix("消息") if kind not in _WEFLOW_PLAIN else "")
    message = Message(
        id=first_name(*(own for key in ("platformMessageId", "localId") if (own := record.get(key))))
        or id_at(facts, moment, sender, text),
        room_id=options.room_id or room,
        sender_id="system" if system else sender or "unknown",
        sender_name="" if system else first_name(record.get("senderDisplayName"), listed.get("displayName")),
        role=Role.SYSTEM if system else Role.USER,
        text=text or (f"[{shown}]" if shown else ""),
        sent_at=moment,
        reply_to=name(record.get("replyToMessageId")) or None,
        metadata=kept({"type": label, "quoted": quoted, "attachments": labelled(label)}),
    )
    return Parsed(message, member.position, room=None if options.room_id else _weflow_facts(facts, room))


def _quoted(record: dict[str, Any]) -> dict[str, Any]:
    return kept({"sender": record.get("quotedSender"), "text": record.get("quotedContent")})


def _without_quote(text: str, quoted: dict[str, Any]) -> str:
    """Return the text without the quote that WeFlow writes at its end too."""
    shown = joined((quoted.get("sender"), quoted.get("text")), "：")
    return text.removesuffix(f"[引用 {shown}]") or text


def _weflow_facts(facts: Facts, room: str) -> RoomFacts | None:
    kind = _WEFLOW_KINDS.get(facts.get("type", "")) or (RoomKind.PRIVATE if room.endswith(ROOM_MARK) else None)
    called = facts.get("displayName") or facts.get("nickname") or ""
    return named(RoomFacts(kind) if kind else None, called, room)


Row = dict[str, str]
_MEMOTRACE_TYPES = {
    "3": "图片", "34": "语音", "42": "名片", "43": "视频", "47": "动画表情", "48": "位置", "49": "分享",
    "50": "语音通话",
}  # fmt: skip
_SYSTEM_TYPES = ("10000", "10002", "系统", "系统通知", "系统消息")
_DUMP_LABELS = ("文本", "系统通知", "")
_WECLONE_LABELS = {
    "image": "图片", "voice": "语音", "video": "视频", "file": "文件", "sticker": "动画表情", "location": "位置",
}  # fmt: skip
_CHATLOG_QUOTE = lazy_pattern(
    r"> (?:(?P<name>[^\n]*)\((?P<id>[^()\n]+)\)|(?P<bare>[^ \n]+)) (?P<at>\d\d-\d\d \d\d:\d\d:\d\d)\n"
    r"(?P<text>(?:> [^\n]*\n)*)"
)
_DUMP_QUOTE = lazy_pattern(
    r"\n\n\[引用\]\((?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\)(?P<sender>[^:\n]*):(?P<text>.*)\Z", re.DOTALL
)
_CHATLOG_LOST_QUOTE = "> [引用]\n"


@dataclass(frozen=True, slots=True)
class _Table:
    """A known table. `columns`: those that tell it. `message`: reads a row. `by_words`: a quote says who said what and
    gives no id, or when it was said, so the rows before a position are read again when reading goes on."""

    columns: frozenset[str]
    message: Callable[[Row, dict[str, Any], Source, Options], Message | None]
    by_words: bool = False


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one table. The room is the chat's id if the table has it, else the file's name.

    Local times are of `options.timezone`. Quotes are empty in MemoTrace's table. WeClone's has no ids of people, so
    their names stand for them.
    """
    header = next(records(source, 0, 0), None)
    columns = header.cells if header else []
    table = table_of(columns)
    if header is None or table is None:
        return
    first: Position = {"offset": header.end, "line": header.last, "facts": {}}
    start = first if resume_from is None or table.by_words else resume_from
    done = resume_from["offset"] if resume_from else -1
    passage = Said()
    facts: dict[str, Any] = start["facts"]
    for record in records(source, start["offset"], start["line"]):
        facts = dict(facts)
        row = dict(zip(columns, record.cells, strict=False))
        position = {"offset": record.end, "line": record.last, "facts": facts}
        message = table.message(row, facts, source, options) if table.columns <= row.keys() else None
        if message is not None and table.by_words:
            message = passage.answered(message)
        if record.end <= done:
            continue
        if message is not None:
            called = row.get("TalkerName", "")
            facts_of_room = None if options.room_id else named(_room_facts(message.room_id), called, message.room_id)
            yield Parsed(message, position, room=facts_of_room)
        elif record.reason or any(record.cells):
            yield record.bad(position)


@dataclass(frozen=True, slots=True)
class Record:
    cells: list[str]
    first: int
    last: int
    end: int
    reason: str = ""

    def bad(self, position: Position) -> Bad:
        reason = self.reason or "the row lacks a sender, a time or columns"
        return Bad(position, self.first, reason, excerpt(",".join(self.cells)))


def records(source: Source, offset: int, number: int) -> Iterator[Record]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    latest: Line | None = None

    def texts() -> Iterator[str]:
        """Yield the lines, of which the CSV reader takes as many as a record has."""
        nonlocal latest
        for line in read_lines(source, offset=offset, number=number):
            latest = line
            yield line.text + "\n"

    reader = csv.reader(texts(), strict=False)
    first = number + 1
    while True:
        reason = ""
        try:
            cells = next(reader, None)
        except csv.Error as error:
            cells, reason = [], f"not CSV: {error}"
        if cells is None or latest is None:
            return
        yield Record(cells, first, latest.number, latest.end, reason)
        first = latest.number + 1


def table_of(columns: list[str]) -> _Table | None:
    """Return the table with these columns, None for an unknown one."""
    return next((table for table in _TABLES if table.columns <= set(columns)), None)


def table_in_line(line: str) -> bool:
    """Return True if the line is the header of a known table."""
    try:
        return table_of(next(csv.reader([line.lstrip("\ufeff")]), [])) is not None
    except csv.Error:
        return False


def _room_facts(room_id: str) -> RoomFacts | None:
    return RoomFacts(RoomKind.PRIVATE) if room_id.endswith(ROOM_MARK) else None


def _chatlog(row: Row, facts: dict[str, Any], source: Source, options: Options) -> Message | None:
    moment, sender, talker = local_time(row["Time"], options.timezone), row["Sender"], row["Talker"]
    if not sender or moment is None:
        return None
    system = sender == SYSTEM_SENDER
    text, answered, quoted = _chatlog_quote(row["Content"], talker, moment, options.timezone)
    return Message(
        id=id_at(facts, _second(moment), talker, sender),
        room_id=options.room_id or talker or source.stem,
        sender_id="system" if system else sender,
        sender_name="" if system else row["SenderName"],
        role=Role.SYSTEM if system else Role.USER,
        text=text,
        sent_at=moment,
        reply_to=answered,
        metadata=kept({"room_name": row["TalkerName"], "quoted": quoted}),
    )


def _chatlog_quote(content: str, talker: str, moment: datetime, zone: tzinfo) -> tuple[str, str | None, dict[str, Any]]:
    """Return (text, id of the quoted message, what is quoted). chatlog writes a quote above the text: who said it, the
    local time without the year, and the words."""
    match = _CHATLOG_QUOTE.match(content)
    if match is None:
        return content.removeprefix(_CHATLOG_LOST_QUOTE), None, {}
    sender = match["id"] or match["bare"]
    words_of = match["text"].removesuffix("\n").removeprefix("> ").replace("\n> ", "\n")
    answered = _quoted_id(talker, sender, _latest_before(match["at"], moment, zone))
    return content[match.end() :], answered, {"sender": match["name"] or sender, "text": words_of}


def _latest_before(day_and_time: str, moment: datetime, zone: tzinfo) -> datetime | None:
    """Return the latest time of this day and time of a year that is not after the moment."""
    year = moment.astimezone(zone).year
    for candidate_year in (year, year - 1):
        try:
            moment_then = in_zone(datetime.fromisoformat(f"{candidate_year:04}-{day_and_time}"), zone)
        except ValueError:  # 29 February in a year without it
            continue
        if moment_then is not None and moment_then <= moment:
            return moment_then
    return None


def _memotrace(row: Row, facts: dict[str, Any], source: Source, options: Options) -> Message | None:
    moment = local_time(row["CreateTime"] or row["StrTime"], options.timezone)
    sender = row.get("Sender") or row.get("NickName") or row.get("Remark") or ""
    own = row["IsSender"] == "1"
    if moment is None or not (sender or own or row["Type"]):
        return None
    text, label = row["StrContent"], _MEMOTRACE_TYPES.get(row["Type"])
    system = row["Type"] in _SYSTEM_TYPES
    if label and (not text or text.lstrip().startswith("<")):
        text = f"[{label}]"
    person = sender or ("me" if own else f"talker-{row['TalkerId']}")
    return Message(
        id=id_at(facts, moment, row["localId"]),
        room_id=options.room_id or source.stem,
        sender_id="system" if system else person,
        sender_name="" if system else row.get("NickName") or row.get("Remark") or "",
        role=Role.SYSTEM if system else Role.USER,
        text=text,
        sent_at=moment,
        metadata=kept({"type": label, "sent_by_owner": own, "attachments": labelled(label)}),
    )


def _dump(row: Row, facts: dict[str, Any], source: Source, options: Options) -> Message | None:
    moment, sender = local_time(row["CreateTime"], options.timezone), row["talker"]
    kind, room = row["type_name"], row["room_name"]
    system = kind in _SYSTEM_TYPES or RECALL_NOTICE.fullmatch(row["msg"]) is not None
    if moment is None or not (sender or system):
        return None
    label = "" if kind in _DUMP_LABELS else kind
    text, quoted = _dump_quote(row["msg"], options.timezone)
    return Message(
        id=row["MsgSvrID"] if row["MsgSvrID"] not in ("", "0") else id_at(facts, moment, sender, row["msg"]),
        room_id=options.room_id or room or source.stem,
        sender_id="system" if system else sender,
        role=Role.SYSTEM if system else Role.USER,
        text=text or (f"[{label}]" if label else ""),
        sent_at=moment,
        metadata=kept({"type": label, "quoted": quoted, "attachments": labelled(label, file=row["src"])}),
    )


def _dump_quote(text: str, zone: tzinfo) -> tuple[str, dict[str, Any]]:
    """Return the text without the quote that PyWxDump writes at its end, and the quote: when it was said, by whom."""
    match = _DUMP_QUOTE.search(text)
    if match is None:
        return text, {}
    moment = local_time(match["at"], zone)
    quoted = {"sender": match["sender"], "text": match["text"], "sent_at": moment.isoformat() if moment else ""}
    return text[: match.start()], kept(quoted)


def _weclone(row: Row, facts: dict[str, Any], source: Source, options: Options) -> Message | None:
    moment, person, text = local_time(row["CreateTime"], options.timezone), row["talker"], row["msg"]
    system = RECALL_NOTICE.fullmatch(text) is not None
    if moment is None or not (person or system):
        return None
    label, quoted = _WECLONE_LABELS.get(row["type_name"]), _weclone_quoted(text)
    text = _without_quote(text, quoted)
    return Message(
        id=row["MsgSvrID"] if row["MsgSvrID"] not in ("", "0") else id_at(facts, moment, person, row["msg"]),
        room_id=options.room_id or source.stem,
        sender_id="system" if system else person,
        sender_name="" if system else person,
        role=Role.SYSTEM if system else Role.USER,
        text=text or (f"[{label}]" if label else ""),
        sent_at=moment,
        metadata=kept(
            {
                "type": label,
                "sent_by_owner": row["is_sender"] == "1",
                "quoted": quoted,
                "attachments": labelled(label, url=row["src"]),
            }
        ),
    )


def _weclone_quoted(text: str) -> dict[str, Any]:
    """Return what WeFlow quotes at the end of a text."""
    _, mark, quote = text.partition("[引用 ")
    sender, colon, quoted_text = quote.removesuffix("]").partition("：")
    if not mark or not quote.endswith("]"):
        return {}
    return {"sender": sender, "text": quoted_text} if colon else {"text": sender}


_TABLES = (
    _Table(frozenset({"Time", "SenderName", "Sender", "TalkerName", "Talker", "Content"}), _chatlog),
    _Table(
        frozenset({"localId", "TalkerId", "Type", "IsSender", "CreateTime", "StrContent", "StrTime"}),
        _memotrace,
    ),
    _Table(
        frozenset({"MsgSvrID", "type_name", "is_sender", "talker", "room_name", "msg", "src", "CreateTime"}),
        _dump,
        True,
    ),
    _Table(frozenset({"MsgSvrID", "type_name", "is_sender", "talker", "msg", "src", "CreateTime"}), _weclone, True),
)
