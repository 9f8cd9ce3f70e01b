"""The known formats, and which of them a file has."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import UNKNOWN_SENDER, Item, Parsed, Position
from roomlore_importers import (
    chat_servers,
    chatgpt,
    chatlab,
    discord,
    downloads,
    irc,
    jsonl,
    kakaotalk,
    lark,
    line,
    matrix,
    onebot,
    openai,
    qq,
    signal,
    slack,
    telegram,
    wechat,
    wecom,
    whatsapp,
)
from roomlore_importers.export_files import Options, Source
from roomlore_importers.json_stream import sniff_objects
from roomlore_importers.whatsapp_stamps import read_stamp

Reader = Callable[[Source, Options, Position | None], Iterator[Item]]

_HEAD = 1 << 17
_SOME_LINES = 400
_LOOKED_AT = 200
_UNTIMED = ("openai", "irc", "jsonl")
"""Formats whose messages often have no time."""
_LOOSE = ("openai", "lark", "jsonl")
"""Formats detected by a few common words, which other programs use too."""
_NEARLY_ALL = 0.9
_IN_LINES = ("onebot", "chatlog", "wecom", "chatlab", "mattermost", "matrix", "signal", "rocketchat")
"""Formats that may be one JSON object a line."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format. `description`: one line for people. `read`: the importer. `endings`: of the file in a zip or folder;
    none: it reads folders and zips itself. `local`: True if its times have no zone."""

    name: str
    description: str
    read: Reader
    endings: tuple[str, ...] = (".json", ".jsonl")
    local: bool = False


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        form.name: form
        for form in (
            Format("jsonl", "one JSON object a message and line; roomlore's own export", jsonl.read),
            Format("openai", "OpenAI chat messages, JSON or JSONL", openai.read),
            Format("chatgpt", "ChatGPT data export, conversations.json", chatgpt.read),
            Format(
                "irc",
                "IRC log of irssi, weechat, HexChat, mIRC, ZNC or Ubuntu's bot",
                irc.read,
                (".txt", ".log", ".weechatlog"),
                True,
            ),
            Format("slack", "Slack export, folder or zip", slack.read, ()),
            Format("telegram", "Telegram Desktop, result.json", telegram.read, local=True),
            Format("discord", "DiscordChatExporter, JSON", discord.read),
            Format("whatsapp", "WhatsApp chat, text or zip", whatsapp.read, (".txt",), True),
            Format("lark", "Lark / Feishu messages, JSON or JSONL", lark.read),
            Format("chatlab", "ChatLab's format for chats of any platform, JSON or JSONL", chatlab.read),
            Format("qq-exporter", "QQChatExporter, JSON, or a folder or zip of chunks", qq.read_exporter, ()),
            Format("onebot", "OneBot v11 events and group histories of QQ bots, JSON or JSONL", onebot.read),
            Format("qq-text", "QQ's or MemoTrace's chat as text", qq.read_text, (".txt",), True),
            Format("chatlog", "chatlog's WeChat messages, JSON", wechat.chatlog),
            Format("weflow", "WeFlow's or EchoTrace's WeChat export, JSON", wechat.weflow),
            Format("wechat-csv", "WeChat tables: chatlog, MemoTrace, PyWxDump, WeClone", wechat.read, (".csv",), True),
            Format("wecom", "WeCom message archive, JSONL", wecom.read),
            Format("line", "LINE chat history, text", line.read, (".txt",), True),
            Format("kakaotalk", "KakaoTalk chat, text or CSV", kakaotalk.read, (".txt", ".csv"), True),
            Format("signal", "Signal, by signal-export or signalbackup-tools", signal.read, (".json", ".txt"), True),
            Format("matrix", "Matrix events; Element's export, JSON", matrix.read),
            Format("mattermost", "Mattermost bulk export, JSONL", chat_servers.mattermost),
            Format("rocketchat", "Rocket.Chat export, JSON", chat_servers.rocketchat),
            Format("zulip", "Zulip export, messages-….json and realm.json", chat_servers.zulip, (".json",)),
            Format("googlechat", "Google Chat (Takeout), messages.json", downloads.googlechat, (".json",)),
            Format("meta", "Messenger or Instagram download, message_….json", downloads.meta, (".json",)),
            Format("teams", "Teams or Skype, messages.json, or chatMessage of Graph", downloads.teams, (".json",)),
        )
    }
)

LABELLING = frozenset(
    ("chatlab", "qq-exporter", "onebot", "qq-text", "chatlog", "weflow", "wechat-csv", "wecom"),
)
"""The formats that write `[图片]` as the text of a picture."""

ENDINGS = tuple(sorted({ending for form in FORMATS.values() for ending in form.endings}))
"""The endings of the files that an export may consist of."""

# Each set of words is written by one program only; the first one found decides.
_DOCUMENTS = (
    ("zulip", (rb'"zerver_message"\s*:', rb'"(?:date_sent|zerver_usermessage)"\s*:')),
    ("mattermost", (rb'"type"\s*:\s*"version"|"(?:direct_)?post"\s*:\s*\{', rb'"(?:version|create_at)"\s*:\s*\d')),
    ("matrix", (rb'"origin_server_ts"\s*:', rb'"(?:sender|user_id)"\s*:\s*"@', rb'"content"\s*:')),
    ("googlechat", (rb'"created_date"\s*:', rb'"(?:creator|topic_id|message_id)"\s*:')),
    ("meta", (rb'"(?:timestamp_ms|threadName|isUnsent)"\s*:', rb'"(?:sender_name|senderName|participants)"\s*:')),
    ("teams", (rb'"MessageList"\s*:|"originalarrivaltime"\s*:', rb'"(?:conversations|messagetype)"\s*:')),
    ("teams", (rb'"createdDateTime"\s*:', rb'"(?:messageType|channelIdentity|chatId)"\s*:', rb'"body"\s*:')),
    ("signal", (rb'"sender"\s*:', rb'"quote"\s*:', rb'"sticker"\s*:', rb'"reactions"\s*:')),
    ("rocketchat", (rb'"msg"\s*:', rb'"ts"\s*:', rb'"(?:username|rid)"\s*:')),
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


def check_read(chosen: Format, source: Source, options: Options) -> None:
    """Raise `InvalidInput` for a file of another format: nearly all of its first messages lack what a message of this
    one has."""
    if chosen.name == "jsonl" and any(map(jsonl.is_own, sniff_objects(source) or ())):
        return
    first = [item.message for item in beginning(chosen, source, options, _LOOKED_AT) if isinstance(item, Parsed)]
    lacking = Counter(lack for message in first if (lack := _lack(chosen.name, message)))
    if first and lacking.total() >= _NEARLY_ALL * len(first):
        what = lacking.most_common(1)[0][0]
        raise InvalidInput(
            "export_format_doubtful", path=source.label, format=repr(chosen.name), field=what, known=", ".join(FORMATS)
        )


def beginning(chosen: Format, source: Source, options: Options, most: int) -> list[Item]:
    """Return the first items of an export."""
    items = chosen.read(source, options, None)
    try:
        return list(islice(items, most))
    finally:
        if (close := getattr(items, "close", None)) is not None:
            close()
        source.bytes_read = source.repaired = 0


def _lack(name: str, message: Message) -> str:
    """Return what the message lacks that each of its format has, '' for nothing.

    In a format with distinctive words, a record without text and sender is still a message, if it has anything else.
    """
    if message.sent_at is None and name not in _UNTIMED:
        return "time"
    silent, nobody = _says_nothing(message), message.sender_id == UNKNOWN_SENDER
    if name not in _LOOSE:
        return "text" if silent and nobody else ""
    unread = name != "lark" and jsonl.text_is_unread(message)
    return "text" if silent or unread else "sender" if nobody else ""


def _says_nothing(message: Message) -> bool:
    shown = message.text or message.metadata or message.has_tool_calls
    return not shown and message.role in (Role.USER, Role.ASSISTANT)


def form_of(source: Source) -> str:
    """Return the name of the file's format, by its content. Raise `InvalidInput` if the content does not tell."""
    if (page := page_of(source)) is not None:
        raise InvalidInput("export_unreadable", path=source.label, why=page)
    form = told_by_looking(source)
    if form is None and is_blank(source):
        raise InvalidInput("export_empty", path=source.label)
    if form is None:
        raise InvalidInput("export_format_unclear", path=source.label, known=", ".join(FORMATS))
    return form


def is_blank(source: Source) -> bool:
    with source.open() as file:
        return not file.read(_HEAD).strip(b"\xef\xbb\xbf\0 \t\r\n")


PAGE_ENDINGS = (".html", ".htm")
_PAGES = (
    (
        lazy_pattern(rb'<title>Exported Data</title>|class="page_wrap|charset="utf-8"/>\s*<title>Exported'),
        "it is an export of Telegram Desktop as HTML; export the chat again, as machine-readable JSON",
    ),
    (
        lazy_pattern(rb"chatlog__message|DiscordChatExporter"),
        "it is an export of DiscordChatExporter as HTML; export the channel again, as JSON (--format Json)",
    ),
    (
        lazy_pattern(rb"QQChatExporter|qq-chat-exporter", re.I),
        "it is an export of QQChatExporter as HTML; export the chat again, as JSON",
    ),
    (
        lazy_pattern(rb"signalbackup-tools|class=\"signal-export|SignalExport", re.I),
        "it is an export of Signal as HTML; give the file data.json of signal-export, or export with --exporttxt",
    ),
    (
        lazy_pattern(rb"<smses\b"),
        "it is an export of messages as XML; export a chat of Signal with signal-export, or with --exporttxt",
    ),
    (
        lazy_pattern(rb'\A\s*<meta http-equiv="content-type"[^>]*>\s*<p><strong>'),
        "it is an export of Rocket.Chat as HTML; export the messages again, as JSON",
    ),
    (
        lazy_pattern(rb"mx_EventTile|mx_MessageTimestamp|id=\"mx_"),
        "it is an export of Element as HTML; export the chat again, as JSON",
    ),
    (
        lazy_pattern(rb"<title>[^<]{0,200}</title>.{0,4000}?(?:fbcdn|_a6-p|_3-95|_2pi\w)", re.S),
        "it is a download of Messenger or Instagram as HTML; download your information again, in the format JSON",
    ),
    (
        lazy_pattern(rb"teams\.microsoft\.com|schema\.skype\.com|Microsoft Purview"),
        "it is an export of Teams as HTML; give messages.json of a personal export, or messages of Microsoft Graph",
    ),
    (
        lazy_pattern(rb"chatgpt\.com|ChatGPT Data Export|chat\.openai\.com"),
        "it is the page of an export of ChatGPT; give the file conversations.json that lies beside it in the zip",
    ),
)
_PAGE = lazy_pattern(
    rb"\s*(?:<\?xml[^<>]{0,200}>\s*)?(?:<!--.{0,500}?-->\s*)*<(?:!doctype html|html|meta|smses)\b", re.I | re.S
)


def page_of(source: Source) -> str | None:
    """Return what a chat that was exported as HTML is, and what to do; None if the file is none."""
    with source.open() as file:
        head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf")
    if _PAGE.match(head) is None:
        return None
    return next((form for pattern, form in _PAGES if pattern.search(head)), None)


def told_by_looking(source: Source) -> str | None:
    return _of_text(source) or _of_json(source)


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
        return any(isinstance(item.get("messages"), list) for item in objects) or not any(map(_has_sender, objects))
    if name in _IN_LINES:
        return True
    if name == "lark":
        return any(
            {"event", "data", "items", "msg_type", "message_type"} & item.keys() for item in objects
        ) and not any("post_type" in item for item in objects)
    return len(objects) == 1


def _has_sender(item: dict[str, Any]) -> bool:
    return not {"sender_id", "user_id", "sender", "from", "room_id", "group_id", "chat_id", "text"}.isdisjoint(item)


def _of_text(source: Source) -> str | None:
    lines = list(_first_lines(source))
    if lines and wechat.table_in_line(lines[0]):
        return "wechat-csv"
    if (told := _of_phone(lines)) is not None:
        return told
    stamped = sum(read_stamp(text) is not None for text in lines)
    logged = sum(irc.is_log_line(text) for text in lines)
    if qq.is_qq(lines) or qq.blocks(lines) > max(0.2 * len(lines), logged):
        return "qq-text"
    if max(stamped, logged) == 0 or (logged < 0.3 * len(lines) and stamped < 0.05 * len(lines)):
        return None
    return "whatsapp" if stamped > logged else "irc"


def _of_phone(lines: list[str]) -> str | None:
    """Return the text format of a phone's app that has what only that one has."""
    if line.is_line(lines):
        return "line"
    if lines and kakaotalk.is_kakao(lines):
        return "kakaotalk"
    return "signal" if signal.is_text(lines) else None


def _first_lines(source: Source) -> list[str]:
    encoding, mark = source.encoding()
    with source.open() as file:
        text = file.read(_HEAD)[mark:].decode(encoding, "replace")
    lines = [part.removesuffix("\r") for part in text.split("\n")]
    return [part for part in lines if part.strip()][:_SOME_LINES]
