"""WeChat chats as CSV: chatlog, MemoTrace, PyWxDump and WeFlow's WeClone tables."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from roomlore.core.audience import RoomKind
from roomlore.core.membership import RoomFacts
from roomlore.core.models import Message, Role
from roomlore.core.records import Bad, Item, Parsed, Position
from roomlore.importers.export_files import LONGEST_LINE, Line, Options, Source, excerpt, read_lines
from roomlore.importers.shapes import RECALL_NOTICE, id_at, kept, local_time
from roomlore.importers.wechat_json import ROOM_MARK, SYSTEM_SENDER

Row = dict[str, str]
_MEMOTRACE_TYPES = {
    "3": "图片", "34": "语音", "42": "名片", "43": "视频", "47": "动画表情", "48": "位置", "49": "分享",
    "50": "语音通话",
}  # fmt: skip
_SYSTEM_TYPES = ("10000", "10002", "系统", "系统通知", "系统消息")
_DUMP_LABELS = ("文本", "系统通知", "")


@dataclass(frozen=True, slots=True)
class _Table:
    """A known table. `columns`: those that tell it. `message`: reads a row."""

    columns: frozenset[str]
    message: Callable[[Row, dict[str, Any], Source, Options], Message | None]


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one table. The room is the chat's id if the table has it, else the file's name.

    Local times are of `options.timezone`. Quotes are empty in MemoTrace's and PyWxDump's tables.
    """
    header = next(_records(source, 0, 0), None)
    columns = header.cells if header else []
    table = table_of(columns)
    if header is None or table is None:
        return
    start = resume_from or {"offset": header.end, "line": header.last, "facts": {}}
    facts: dict[str, Any] = start["facts"]
    for record in _records(source, start["offset"], start["line"]):
        facts = dict(facts)
        row = dict(zip(columns, record.cells, strict=False))
        position = {"offset": record.end, "line": record.last, "facts": facts}
        message = table.message(row, facts, source, options) if len(record.cells) >= len(table.columns) else None
        if message is not None:
            facts_of_room = None if options.room_id else _room_facts(message.room_id)
            yield Parsed(message, position, room=facts_of_room)
        elif record.reason or any(record.cells):
            reason = record.reason or "the row lacks a sender, a time or columns"
            yield Bad(position, record.first, reason, excerpt(",".join(record.cells)))


@dataclass(frozen=True, slots=True)
class _Record:
    cells: list[str]
    first: int
    last: int
    end: int
    reason: str = ""


def _records(source: Source, offset: int, number: int) -> Iterator[_Record]:
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
        yield _Record(cells, first, latest.number, latest.end, reason)
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
    return Message(
        id=id_at(facts, moment, talker, sender, row["Content"]),
        room_id=options.room_id or talker or source.stem,
        sender_id="system" if system else sender,
        sender_name="" if system else row["SenderName"],
        role=Role.SYSTEM if system else Role.USER,
        text=row["Content"],
        sent_at=moment,
        metadata=kept({"room_name": row["TalkerName"]}),
    )


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
        sender_name="" if system else row.get("Remark") or row.get("NickName") or "",
        role=Role.SYSTEM if system else Role.USER,
        text=text,
        sent_at=moment,
        metadata=kept({"type": label, "sent_by_owner": own}),
    )


def _dump(row: Row, facts: dict[str, Any], source: Source, options: Options) -> Message | None:
    moment, sender = local_time(row["CreateTime"], options.timezone), row["talker"]
    if moment is None or not sender:
        return None
    kind, room = row["type_name"], row.get("room_name", "")
    system = kind in _SYSTEM_TYPES or RECALL_NOTICE.fullmatch(row["msg"]) is not None
    label = "" if kind in _DUMP_LABELS else kind
    return Message(
        id=row["MsgSvrID"] if row["MsgSvrID"] not in ("", "0") else id_at(facts, moment, sender, row["msg"]),
        room_id=options.room_id or room or source.stem,
        sender_id="system" if system else sender,
        role=Role.SYSTEM if system else Role.USER,
        text=row["msg"] or (f"[{label}]" if label else ""),
        sent_at=moment,
        metadata=kept({"type": label, "file": row["src"]}),
    )


_TABLES = (
    _Table(frozenset({"Time", "SenderName", "Sender", "TalkerName", "Talker", "Content"}), _chatlog),
    _Table(
        frozenset({"localId", "TalkerId", "Type", "IsSender", "CreateTime", "StrContent", "StrTime"}),
        _memotrace,
    ),
    _Table(frozenset({"MsgSvrID", "type_name", "is_sender", "talker", "msg", "src", "CreateTime"}), _dump),
)
