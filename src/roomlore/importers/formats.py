"""The known formats, the detection of a file's format, and opening an export."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from datetime import UTC, date
from itertools import islice
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.records import Item, Parsed, Position
from roomlore.importers import (
    chatgpt,
    chatlab,
    discord,
    irc,
    jsonl,
    lark,
    onebot,
    openai,
    qq,
    slack,
    telegram,
    wechat,
    wecom,
    whatsapp,
)
from roomlore.importers.export_files import Options, Source, Wanted, in_folder, in_zip, is_zip, names_in
from roomlore.importers.json_stream import sniff_objects
from roomlore.importers.whatsapp import read_stamp

Reader = Callable[[Source, Options, Position | None], Iterator[Item]]

_HEAD = 1 << 17
_SOME_LINES = 400
_LOOKED_AT = 200
_UNTIMED = ("openai", "irc", "jsonl")
"""Formats whose messages often have no time."""
_LOOSE = ("openai", "lark", "jsonl")
"""Formats detected by a few common words, which other programs use too."""
_NEARLY_ALL = 0.9


@dataclass(frozen=True, slots=True)
class Format:
    """A format. `description`: one line for people. `read`: the importer. `endings`: of the file in a zip or folder;
    none: it reads folders and zips itself. `stem`: the app's name for that file. `local`: True if its times have no
    zone."""

    name: str
    description: str
    read: Reader
    endings: tuple[str, ...] = (".json", ".jsonl")
    local: bool = False
    stem: re.Pattern[str] | None = None

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.endings, (self.stem,) if self.stem else ())


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        one.name: one
        for one in (
            Format("jsonl", "one JSON object a message and line; roomlore's own export", jsonl.read),
            Format("openai", "OpenAI chat messages, JSON or JSONL", openai.read),
            Format(
                "chatgpt", "ChatGPT data export, conversations.json", chatgpt.read, stem=re.compile("conversations")
            ),
            Format(
                "irc", "IRC log of irssi, weechat, HexChat, mIRC, ZNC or Ubuntu's bot", irc.read, (".txt", ".log"), True
            ),
            Format("slack", "Slack export, folder or zip", slack.read, ()),
            Format("telegram", "Telegram Desktop, result.json", telegram.read, local=True, stem=re.compile("result")),
            Format("discord", "DiscordChatExporter, JSON", discord.read),
            Format("whatsapp", "WhatsApp chat, text or zip", whatsapp.read, (".txt",), True, whatsapp.STEM),
            Format("lark", "Lark / Feishu messages, JSON or JSONL", lark.read),
            Format("chatlab", "ChatLab's format for chats of any platform, JSON or JSONL", chatlab.read),
            Format("qq-exporter", "QQChatExporter, JSON, or a folder or zip of chunks", qq.read_exporter, ()),
            Format("onebot", "OneBot v11 events and group histories of QQ bots, JSON or JSONL", onebot.read),
            Format("qq-text", "QQ's or MemoTrace's chat as text", qq.read_text, (".txt",), True),
            Format("chatlog", "chatlog's WeChat messages, JSON", wechat.chatlog),
            Format("weflow", "WeFlow's or EchoTrace's WeChat export, JSON", wechat.weflow),
            Format("wechat-csv", "WeChat tables: chatlog, MemoTrace, PyWxDump, WeClone", wechat.read, (".csv",), True),
            Format("wecom", "WeCom message archive, JSONL", wecom.read),
        )
    }
)

_ANY = Wanted(
    (".txt", ".json", ".jsonl", ".log", ".csv"),
    tuple(stem for name in ("whatsapp", "telegram", "chatgpt") if (stem := FORMATS[name].stem)),
)

# Each set of words is written by one program only; the first one found decides.
_DOCUMENTS = (
    ("chatlab", (rb'"chatlab"\s*:\s*\{', rb'"(?:version|platform|platformId)"\s*:')),
    ("qq-exporter", (rb'"(?:chatInfo|messages)"\s*:', rb'"name"\s*:\s*"QQChatExporter[^"]{0,200}"')),
    ("weflow", (rb'"session"\s*:\s*\{', rb'"(?:wxid|accountId)"\s*:', rb'"(?:weflow|senderUsername)"\s*:')),
    (
        "onebot",
        (rb'"(?:post_type|message_seq|raw_message)"\s*:', rb'"(?:self_id|message_type)"\s*:', rb'"user_id"\s*:'),
    ),
    ("chatlog", (rb'"talker"\s*:', rb'"(?:isChatRoom|talkerName)"\s*:', rb'"sender"\s*:')),
    ("wecom", (rb'"msgid"\s*:', rb'"msgtime"\s*:', rb'"(?:tolist|action)"\s*:')),
    ("chatgpt", (rb'"mapping"\s*:\s*\{', rb'"(?:parent|current_node|author)"\s*:')),
    ("discord", (rb'"(?:guild|channel)"\s*:\s*\{', rb'"(?:timestamp|author|exportedAt|categoryId)"\s*:')),
    ("lark", (rb'"(?:message_id|chat_id)"\s*:', rb'"(?:msg_type|sender_type|chat_type)"\s*:')),
    ("telegram", (rb'"(?:date_unixtime|text_entities|from_id|actor_id)"\s*:', rb'"type"\s*:')),
    ("telegram", (rb'"(?:chats|messages)"\s*:', rb'"type"\s*:\s*"(?:message|service|\w+_(?:chat|\w*group|channel))"')),
    ("openai", (rb'"role"\s*:\s*"(?:user|assistant|system|developer|tool)"', rb'"(?:content|tool_calls)"\s*:')),
)  # fmt: skip


class Import:
    """An export being read: iterate it once.

    `format`: its name. `time_zone`: of times without one, None if the format has none. `source`: its size, the bytes
    read so far and how many records had broken bytes replaced. `parsed`, `bad`: the items yielded so far. `undated`:
    messages among them without a readable time.
    """

    def __init__(self, chosen: Format, source: Source, options: Options, resume_from: Position | None) -> None:
        self.format = chosen.name
        self.source = source
        self.parsed = 0
        self.bad = 0
        self.undated = 0
        self.time_zone = str(options.timezone) if chosen.local or options.timezone is not UTC else None
        self._options = options
        self._items = chosen.read(source, options, resume_from)
        self._read = chosen.read

    @property
    def fingerprint(self) -> str:
        """An identifier of this export, read with these options: 64 hex digits.

        It depends on the path, the size, the modification time and the options; not on the content, which may be large.
        """
        path = self.source.path.resolve()
        file = (str(path), self.source.member) if self.source.member else (str(path),)
        parts = (*file, self.source.total_bytes, path.stat().st_mtime_ns, self.format, astuple(self._options))
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def attached(self, file: str, most_bytes: int) -> bytes | None:
        """Return what is in a file of the export, as `metadata.attachments` names it; None if it is not there, cannot
        be read or has more than `most_bytes`."""
        return self.source.beside(file, most_bytes)

    def resume(self, position: Position) -> None:
        """Continue right after the item that came with `position`; only before the first item was taken."""
        self.close()
        self._items = self._read(self.source, self._options, position)

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            if isinstance(item, Parsed):
                self.parsed += 1
                self.undated += item.message.sent_at is None
            else:
                self.bad += 1
            yield item
        self.source.bytes_read = self.source.total_bytes

    def close(self) -> None:
        """Close the file; also done by leaving a `with` block and by reading to the end."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class ExportFile:
    """One export. `member`: the file inside if `path` is a zip of several."""

    path: Path
    member: str | None = None


def find_exports(path: Path | str, format: str | None = None) -> list[ExportFile]:  # noqa: A002
    """Return the exports at a path, in the order of their names: a file, a folder or zip that is one export, or each
    chat of a folder or zip of several. Zips inside a folder are looked into.

    `format`: a name from `FORMATS`, for exports of that format only. A file among several whose format looking does not
    tell is taken for an attachment. Raise `InvalidInput` if there is no export.
    """
    found = list(_exports_at(Source(Path(path)).path, _known_name(format)))
    if not found:
        of_format = f" of the format {format}" if format else ""
        raise InvalidInput(f"{path} holds no chat export{of_format} that can be told by looking: give the file itself")
    return found


def _exports_at(path: Path, form: str | None) -> Iterator[ExportFile]:
    known = FORMATS[form] if form else None
    if (known and not known.endings) or not (path.is_dir() or is_zip(path)) or _is_one_whole(path):
        yield ExportFile(path)
        return
    names = names_in(path)
    found = (known.wanted if known else _ANY).among(names)
    zips = [path / name for name in names if path.is_dir() and name.lower().endswith(".zip")]
    if len(found) == 1 and not zips:
        yield ExportFile(path)
        return
    for name in found:
        file = ExportFile(path / name) if path.is_dir() else ExportFile(path, name)
        told = _told_by_looking(Source(file.path, file.member))
        if told is not None and form in (None, told):
            yield file
    for one in zips:
        yield from _exports_at(one, form)


def _is_one_whole(path: Path) -> bool:
    return _is_slack(path) or qq.has_chunks(path)


def _known_name(form: str | None) -> str | None:
    if form is not None and form not in FORMATS:
        raise InvalidInput(f"no format is called {form!r}: choose one of {', '.join(FORMATS)}")
    return form


def open_import(
    path: Path | str,
    format: str | None = None,  # noqa: A002
    *,
    member: str | None = None,
    room_id: str | None = None,
    timezone: str | None = None,
    day: str | None = None,
    local_zone: str | None = None,
    resume_from: Position | None = None,
) -> Import:
    """Open an export.

    `format`: a name from `FORMATS`, None detects it; refused if nearly all messages lack what the format has.
    `room_id`: the room for everything, None: as the export names its rooms (else the file's name). `timezone`: IANA
    name for times without a zone; None: `local_zone` if the format writes local times (IRC, WhatsApp, old Telegram),
    else UTC. `day`: ISO date of the first line of an IRC log without dates. `resume_from`: the position of the last
    item taken. `member`: the file to read inside a zip of several, as `find_exports` names it. Raise `InvalidInput`.
    """
    source = Source(Path(path), member)
    chosen = FORMATS[_known_name(format) or _detected(source)]
    if chosen.endings and member is None:
        source = _file_of(source.path, chosen)
    zone = _zone(timezone or (local_zone if chosen.local else None))
    options = Options(room_id=room_id or None, timezone=zone, day=_day(day))
    if format is None:
        _check_read(chosen, source, options)
    return Import(chosen, source, options, _checked(resume_from))


def _file_of(path: Path, chosen: Format) -> Source:
    if path.is_dir():
        return in_folder(path, chosen.wanted)
    return in_zip(path, chosen.wanted) if is_zip(path) else Source(path)


def _check_read(chosen: Format, source: Source, options: Options) -> None:
    """Raise `InvalidInput` for a file of another format: nearly all of its first messages lack what a message of this
    one has."""
    if chosen.name == "jsonl" and any(map(jsonl.is_own, sniff_objects(source) or ())):
        return
    with Import(chosen, source, options, None) as looked:
        first = [item.message for item in islice(looked, _LOOKED_AT) if isinstance(item, Parsed)]
    source.bytes_read = source.repaired = 0
    lacking = Counter(lack for message in first if (lack := _lack(chosen.name, message)))
    if first and lacking.total() >= _NEARLY_ALL * len(first):
        what = lacking.most_common(1)[0][0]
        raise InvalidInput(
            f"{source.path} looks like {chosen.name!r}, but nearly all of its messages have no {what}: name its format"
            f" if you know it, one of {', '.join(FORMATS)}"
        )


def _lack(name: str, message: Message) -> str:
    """Return what the message lacks that each of its format has, '' for nothing.

    In a format with distinctive words, a record without text and sender is still a message, if it has anything else.
    """
    if message.sent_at is None and name not in _UNTIMED:
        return "time"
    silent, nobody = _says_nothing(message), message.sender_id == "unknown"
    if name not in _LOOSE:
        return "text" if silent and nobody else ""
    unread = name != "lark" and jsonl.text_is_unread(message)
    return "text" if silent or unread else "sender" if nobody else ""


def _says_nothing(message: Message) -> bool:
    shown = message.text or message.metadata or message.has_tool_calls
    return not shown and message.role in (Role.USER, Role.ASSISTANT)


def detect(path: Path) -> str:
    """Return the format's name, by the content. Raise `InvalidInput` if the content does not tell."""
    return _detected(Source(path))


def _detected(source: Source) -> str:
    path = source.path
    packed = source.member is None and (path.is_dir() or is_zip(path))
    if packed and _is_slack(path):
        return "slack"
    if packed and qq.has_chunks(path):
        return "qq-exporter"
    if packed:
        source = in_folder(path, _ANY) if path.is_dir() else in_zip(path, _ANY)
    found = _told_by_looking(source)
    if found is None and _is_blank(source):
        raise InvalidInput(f"{source.path} is empty: export the chat again, or give another file")
    if found is None:
        raise InvalidInput(f"{path} is in no format that can be told by looking: name one of {', '.join(FORMATS)}")
    return found


def _is_blank(source: Source) -> bool:
    with source.open() as file:
        return not file.read(_HEAD).strip(b"\xef\xbb\xbf\0 \t\r\n")


def _told_by_looking(source: Source) -> str | None:
    return _of_text(source) or _of_json(source)


def _is_slack(path: Path) -> bool:
    export = slack.Export(path)
    export.close()
    return bool(export.days())


def _of_json(source: Source) -> str | None:
    with source.open() as file:
        head = file.read(_HEAD)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        head = head.decode("utf-16", "replace").encode("utf-8", "replace")
    objects = sniff_objects(source)
    for name, patterns in _DOCUMENTS:
        if all(re.search(pattern, head) for pattern in patterns) and _fits(name, objects):
            return name
    return "jsonl" if objects and any(map(jsonl.is_message, objects)) else None


def _fits(name: str, objects: list[dict[str, Any]] | None) -> bool:
    """Return True if the objects fit. A line with a time and a sender is a message of its own, even if it has a role
    and content too."""
    if objects is None:
        return True
    if name == "openai":
        return any(isinstance(one.get("messages"), list) for one in objects) or not any(map(_has_sender, objects))
    if name in ("onebot", "chatlog", "wecom", "chatlab"):
        return True
    if name == "lark":
        return any({"event", "data", "items", "msg_type", "message_type"} & one.keys() for one in objects) and not any(
            "post_type" in one for one in objects
        )
    return len(objects) == 1


def _has_sender(one: dict[str, Any]) -> bool:
    return not {"sender_id", "user_id", "sender", "from", "room_id", "group_id", "chat_id", "text"}.isdisjoint(one)


def _of_text(source: Source) -> str | None:
    lines = list(_first_lines(source))
    if lines and wechat.table_in_line(lines[0]):
        return "wechat-csv"
    stamped = sum(read_stamp(line) is not None for line in lines)
    logged = sum(irc.is_log_line(line) for line in lines)
    if qq.is_qq(lines) or qq.blocks(lines) > max(0.2 * len(lines), logged):
        return "qq-text"
    if max(stamped, logged) == 0 or (logged < 0.3 * len(lines) and stamped < 0.05 * len(lines)):
        return None
    return "whatsapp" if stamped > logged else "irc"


def _first_lines(source: Source) -> list[str]:
    encoding, mark = source.encoding()
    with source.open() as file:
        text = file.read(_HEAD)[mark:].decode(encoding, "replace")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return [line for line in lines if line.strip()][:_SOME_LINES]


def _zone(name: str | None) -> Any:
    if not name or name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidInput(f"timezone {name!r} is not known: give an IANA name such as Europe/Berlin") from error


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise InvalidInput(f"day {text!r} is no date: give one such as 2004-11-15") from error


def _checked(position: Position | None) -> Position | None:
    if position is not None and not isinstance(position, Mapping):
        raise InvalidInput("resume_from must be a position that an item came with")
    return position or None
