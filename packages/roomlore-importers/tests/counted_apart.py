"""A second reading of the Chinese samples, which shares no code with the importers.

Each function reads one format with the standard library only and returns what a reader of the file finds in it: who
said what and when, what it answers, who is mentioned, what was recalled. `test_counted_apart.py` holds the importers to
it. Do not import roomlore here, and do not look at an importer to mend a function: look at the exporter's source.
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

CHINA = timezone(timedelta(hours=8))
"""The zone of the samples with local times."""


@dataclass(frozen=True)
class Counted:
    """One message as the file has it. `sender` is None for a line of the system, `name` if the file gives no name.

    `answers`: the ids that the answered message may have; more than one if the file cannot tell them apart.
    `text`: the whole text, None if the message is no plain text. `words`: what the text must say, in this order.
    `shown`: what the text or the caption must say, in any order. `root`: the first message of its thread. `topic`:
    the message that opened its topic. `bot`: whether a program wrote it, None if nobody looked. `unread`: whether the
    export has nothing of it but its id.
    """

    room: str
    id: str
    sender: str | None
    name: str | None
    at: datetime
    text: str | None = None
    words: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    recalled: bool = False
    shown: tuple[str, ...] = ()
    root: str | None = None
    topic: str | None = None
    bot: bool | None = None
    edited: datetime | None = None
    was_edited: bool = False
    reactions: dict[str, int] = field(default_factory=dict)
    unread: bool = False


def _seconds(value: object) -> datetime:
    return datetime.fromtimestamp(int(str(value)), UTC)


def _milliseconds(value: object) -> datetime:
    return datetime.fromtimestamp(int(str(value)) / 1000, UTC)


def _local(value: str) -> datetime:
    return datetime.strptime(value, "%Y-%m-%d %H:%M:%S").replace(tzinfo=CHINA)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def _lines(text: str) -> Iterator[dict]:
    return (json.loads(line) for line in text.split("\n") if line.strip() and not line.startswith("#"))


def _last_said(before: list[Counted], name: str, text: str) -> tuple[str, ...]:
    """Return the ids of the messages that a quote without an id may mean."""
    said = [one for one in before if one.name == name and one.text == text]
    return tuple(one.id for one in said if one.at == said[-1].at)


# ChatLab

CHATLAB_KINDS = {1: "图片", 2: "语音", 3: "视频", 4: "文件", 5: "表情", 7: "链接", 20: "红包", 22: "拍一拍", 26: "转发"}


def chatlab(path: Path) -> list[Counted]:
    if path.suffix == ".jsonl":
        lines = list(_lines(_text(path)))
        meta = next(line for line in lines if line["_type"] == "header")["meta"]
        members = [line for line in lines if line["_type"] == "member"]
        messages = [line for line in lines if line["_type"] == "message"]
    else:
        document = json.loads(_text(path))
        meta, members, messages = document["meta"], document["members"], document["messages"]
    cards = {member["platformId"]: member.get("groupNickname") for member in members}
    names = {member["platformId"]: member.get("accountName") for member in members}
    found = []
    for number, one in enumerate(messages):
        kind, who, content = one["type"], one["sender"], one["content"]
        name = one.get("groupNickname") or cards.get(who) or one.get("accountName") or names.get(who)
        counted = Counted(
            room=meta.get("groupId") or meta["name"],
            id=one.get("platformMessageId") or f"#{number}",
            sender=None if kind == 80 else who,
            name=None if kind == 80 else name,
            at=_seconds(one["timestamp"]),
            answers=(one["replyToMessageId"],) if one.get("replyToMessageId") else (),
            recalled=kind == 81,
        )
        if records := one.get("chatRecords"):
            found.append(
                replace(
                    counted, words=tuple(word for each in records for word in (each["accountName"], each["content"]))
                )
            )
        elif kind in CHATLAB_KINDS:
            found.append(replace(counted, words=(content or CHATLAB_KINDS[kind],)))
        else:
            found.append(replace(counted, text=content))
    return found


# QQChatExporter


def _qq_exporter_parts(path: Path) -> tuple[dict, list[dict]]:
    if path.suffix == ".json":
        document = json.loads(_text(path))
        return document["chatInfo"], document["messages"]
    if path.is_dir():
        files = {file.relative_to(path).as_posix(): _text(file) for file in path.rglob("*") if file.is_file()}
    else:
        with zipfile.ZipFile(path) as archive:
            files = {
                name.split("/", 1)[1]: archive.read(name).decode() for name in archive.namelist() if name[-1] != "/"
            }
    manifest = json.loads(files["manifest.json"])
    chunks = sorted(manifest["chunked"]["chunks"], key=lambda chunk: chunk["index"])
    return manifest["chatInfo"], [one for chunk in chunks for one in _lines(files[chunk["relativePath"]])]


def qq_exporter(path: Path) -> list[Counted]:
    chat, messages = _qq_exporter_parts(path)
    numbers = {one["sender"]["uid"]: one["sender"]["uin"] for one in messages if one["sender"].get("uin")}
    return [_qq_exporter_message(chat["name"], one, numbers) for one in messages]


def _qq_exporter_message(room: str, one: dict, numbers: dict[str, str]) -> Counted:
    sender, content, raw = one["sender"], one["content"], one.get("rawMessage", {})
    system = one.get("system") or one.get("isSystemMessage")
    name = (
        sender.get("groupCard")
        or raw.get("sendMemberName")
        or raw.get("sendNickName")
        or sender.get("nickname")
        or sender["name"]
    )
    stamp = one["timestamp"]
    elements = content.get("elements", [])
    by_type = {element["type"]: element["data"] for element in elements}
    reply = content.get("reply") or by_type.get("reply") or {}
    counted = Counted(
        room=room,
        id=one.get("id") or one["messageId"],
        sender=None if system else numbers.get(sender["uid"], sender["uid"]),
        name=None if system else name,
        at=datetime.fromisoformat(stamp) if isinstance(stamp, str) else _milliseconds(stamp),
        answers=(reply["referencedMessageId"],) if reply.get("referencedMessageId") else (),
        mentions=tuple(
            numbers.get(mention["uid"], mention["uid"])
            for mention in content.get("mentions", [])
            if mention["type"] == "user"
        ),
        recalled=bool(one.get("recalled") or one.get("isRecalled")) and not system,
    )
    said = content["text"].replace("[回复消息]", "", 1)
    if "forward" in by_type:
        return replace(counted, words=_qq_forwarded(by_type["forward"]))
    if "json" in by_type:
        return replace(counted, words=(by_type["json"]["title"],))
    if "wallet" in by_type:
        return replace(counted, words=("红包", by_type["wallet"]["summary"]))
    for kind, word in QQ_KINDS.items():
        if kind in by_type:
            return replace(counted, words=(word, by_type[kind].get("filename", "") if kind == "file" else ""))
    return replace(counted, text=said)


QQ_KINDS = {"image": "图片", "file": "文件", "audio": "语音", "market_face": "睡觉"}


def _qq_forwarded(forward: dict) -> tuple[str, ...]:
    words: tuple[str, ...] = ()
    for inner in forward.get("messages", []):
        nested = [one["data"] for one in inner["content"].get("elements", []) if one["type"] == "forward"]
        said = _qq_forwarded(nested[0]) if nested else (inner["content"]["text"],)
        words += (inner["sender"]["name"], *said)
    return words


# OneBot v11

CQ_CODE = re.compile(r"\[CQ:(?P<type>[^,\]]+)(?P<data>[^\]]*)\]")


def _cq_plain(text: str) -> str:
    for code, sign in (("&#44;", ","), ("&#91;", "["), ("&#93;", "]"), ("&amp;", "&")):
        text = text.replace(code, sign)
    return text


def _cq_segments(text: str) -> list[dict]:
    segments, end = [], 0
    for code in CQ_CODE.finditer(text):
        segments.append({"type": "text", "data": {"text": _cq_plain(text[end : code.start()])}})
        pairs = (pair.split("=", 1) for pair in code["data"].split(",") if pair)
        segments.append({"type": code["type"], "data": {key: _cq_plain(value) for key, value in pairs}})
        end = code.end()
    segments.append({"type": "text", "data": {"text": _cq_plain(text[end:])}})
    return [segment for segment in segments if segment["type"] != "text" or segment["data"]["text"]]


def onebot(path: Path) -> list[Counted]:
    text = _text(path)
    events = list(_lines(text)) if path.suffix == ".jsonl" else json.loads(text)["data"]["messages"]
    recalled = {
        (event.get("group_id"), event["message_id"])
        for event in events
        if event.get("notice_type") in ("group_recall", "friend_recall")
    }
    found = []
    for number, event in enumerate(events):
        group = event.get("group_id")
        room = str(group) if group else f"private {event.get('user_id')}"
        if event["post_type"] == "notice" and event.get("sub_type") != "poke":  # a poke says nothing
            found.append(Counted(room, f"#{number}", None, None, _seconds(event["time"])))
        elif event["post_type"] in ("message", "message_sent"):
            sender = event["sender"]
            counted = Counted(
                room=room,
                id=str(event["message_id"]),
                sender=str(event["user_id"]),
                name=sender.get("card") or sender["nickname"],
                at=_seconds(event["time"]),
                recalled=(group, event["message_id"]) in recalled,
            )
            found.append(_with_segments(counted, event["message"]))
    return found


def _with_segments(counted: Counted, message: str | list[dict]) -> Counted:
    segments = _cq_segments(message) if isinstance(message, str) else message
    for segment in segments:
        kind, data = segment["type"], segment["data"]
        if kind == "reply":
            counted = replace(counted, answers=(str(data["id"]),))
        elif kind == "at" and data["qq"] != "all":
            named = (data["name"],) if data.get("name") else ()
            counted = replace(counted, mentions=(*counted.mentions, str(data["qq"])), words=(*counted.words, *named))
        else:
            counted = replace(counted, words=(*counted.words, *_segment_words(kind, data)))
    said = [segment for segment in segments if segment["type"] != "reply"]
    if all(segment["type"] == "text" for segment in said):
        return replace(counted, text="".join(segment["data"]["text"] for segment in said), words=())
    return counted


def _segment_words(kind: str, data: dict) -> tuple[str, ...]:
    if kind == "text":
        return (data["text"].strip(),)
    if kind == "at":
        return ("全体成员",)
    if kind == "image":
        return ("表情" if "表情" in data.get("summary", "") else "图片",)
    if kind == "record":
        return ("语音",)
    if kind == "file":
        return ("文件", data["file"])
    if kind == "json":
        return (json.loads(data["data"])["prompt"],)
    if kind == "forward":
        nodes = data.get("content", [])
        return tuple(
            word
            for node in nodes
            for word in (
                node["sender"].get("card") or node["sender"]["nickname"],
                *(word for inner in node["message"] for word in _segment_words(inner["type"], inner["data"])),
            )
        )
    return ()


# WeChat: chatlog, WeFlow, EchoTrace


def chatlog(path: Path) -> list[Counted]:
    messages = json.loads(_text(path))
    found: list[Counted] = []
    for one in messages:
        kind, contents = (one["type"], one["subType"]), one.get("contents", {})
        system = one["type"] == 10000
        counted = Counted(
            room=one["talker"],
            id=str(one["seq"]),
            sender=None if system else one["sender"],
            name=None if system else one["senderName"] or None,
            at=datetime.fromisoformat(one["time"]),
        )
        if kind == (49, 57):
            refer = contents["refer"]
            meant = (refer["sender"], datetime.fromisoformat(refer["time"]))
            answered = tuple(other.id for other in found if (other.sender, other.at) == meant)
            found.append(replace(counted, text=one["content"], answers=answered))
        elif kind == (49, 2001):
            found.append(replace(counted, words=("红包",)))
        elif kind == (49, 19):
            items = contents["recordInfo"]["DataList"]["DataItems"]
            words = tuple(word for item in items for word in (item["SourceName"], item["DataDesc"]))
            found.append(replace(counted, words=words))
        elif kind == (49, 6):
            found.append(replace(counted, words=(contents["title"],)))
        else:
            found.append(replace(counted, text=one["content"]))
    return found


WEFLOW_KINDS = {
    "图片消息": "图片",
    "动画表情": "表情",
    "文件消息": "文件",
    "红包卡片": "红包",
    "聊天记录合并转发": "聊天记录",
    "通话消息": "通话",
}


def weflow(path: Path) -> list[Counted]:
    document = json.loads(_text(path))
    session = document["session"]
    people = {one["senderID"]: one for one in document.get("senders", [])}
    found: list[Counted] = []
    for number, one in enumerate(document["messages"]):
        kind, text = one["type"], one["content"]
        system = kind == "系统消息"
        quoted = one.get("quotedContent")
        if quoted:
            text = re.sub(r"\[引用 [^\]]*\]$", "", text)
        answers = (one["replyToMessageId"],) if one.get("replyToMessageId") else ()
        counted = Counted(
            room=session.get("accountId") or session["wxid"],
            id=one.get("platformMessageId") or f"#{number}",
            sender=None if system else one.get("senderUsername") or people[one["senderID"]]["accountId"],
            name=None if system else one.get("senderDisplayName") or people[one["senderID"]]["displayName"],
            at=_seconds(one["createTime"]),
            answers=answers,
        )
        if kind in WEFLOW_KINDS:
            named = re.sub(r"^\[[^\]]*\] ?", "", text or "")
            found.append(replace(counted, words=(WEFLOW_KINDS[kind], named)))
        else:
            found.append(replace(counted, text=text))
    return found


# WeChat: tables

MEMOTRACE_KINDS = {"3": "图片", "34": "语音", "43": "视频", "47": "表情"}
SAYS_RECALLED = re.compile(r".*撤回了一条消息。?")


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(_text(path), newline="")))


def chatlog_csv(path: Path) -> list[Counted]:
    """Read chatlog's table. Lines that begin with `> ` are a quote: "name(id) month-day time", then the words."""
    found: list[Counted] = []
    for number, row in enumerate(_rows(path)):
        system = row["Sender"] == "系统消息"
        counted = Counted(
            room=row["Talker"],
            id=f"#{number}",
            sender=None if system else row["Sender"],
            name=None if system else row["SenderName"],
            at=_local(row["Time"]),
        )
        lines = row["Content"].split("\n")
        if lines[0].startswith("> "):
            who, at = lines[0][2:-15], lines[0][-14:]
            sender = who.split("(")[-1].rstrip(")")
            said = [one for one in found if one.sender == sender and f"{one.at:%m-%d %H:%M:%S}" == at]
            rest = [line for line in lines if not line.startswith("> ")]
            found.append(replace(counted, text="\n".join(rest), answers=tuple(one.id for one in said)))
        elif lines[0].startswith(("[", "![")):
            kind = lines[0].lstrip("!").strip("[").split("]")[0]
            found.append(replace(counted, words=tuple(kind.split("|"))))
        else:
            found.append(replace(counted, text=row["Content"]))
    return found


def memotrace_csv(path: Path) -> list[Counted]:
    found = []
    for row in _rows(path):
        system = row["Type"] == "10000"
        counted = Counted(
            room=row["TalkerId"],
            id=row["localId"],
            sender=None if system else row["Sender"],
            name=None if system else row["NickName"] or row["Remark"],
            at=_seconds(row["CreateTime"]),
        )
        if row["Type"] in MEMOTRACE_KINDS:
            found.append(replace(counted, words=(MEMOTRACE_KINDS[row["Type"]],)))
        else:
            found.append(replace(counted, text=row["StrContent"]))
    return found


def pywxdump_csv(path: Path) -> list[Counted]:
    """Read PyWxDump's table. A quote is below the text: "[引用](time)name:words"."""
    found: list[Counted] = []
    for row in _rows(path):
        kind = row["type_name"]
        counted = Counted(
            room=row["room_name"],
            id=row["MsgSvrID"],
            sender=None if kind == "系统通知" else row["talker"],
            name=None,
            at=_local(row["CreateTime"]),
        )
        if "\n\n[引用](" in row["msg"]:
            text, _, quote = row["msg"].rpartition("\n\n[引用](")
            at, words = quote[:19], quote[20:].split(":", 1)[1]
            said = tuple(one.id for one in found if one.at == _local(at) and one.text == words)
            found.append(replace(counted, text=text, answers=said))
        elif kind in ("文本", "系统通知"):
            found.append(replace(counted, text=row["msg"]))
        else:
            found.append(replace(counted, words=(kind,)))
    return found


WECLONE_KINDS = {
    "image": "图片",
    "sticker": "表情",
    "video": "视频",
    "voice": "语音",
    "location": "位置",
    "file": "文件",
}


def weclone_csv(path: Path) -> list[Counted]:
    """Read WeFlow's table. It has no ids of people: the name that the group shows is all there is."""
    found: list[Counted] = []
    for row in _rows(path):
        kind, text, answers = row["type_name"], row["msg"], ()
        counted = Counted(
            room=path.stem,
            id=row["MsgSvrID"],
            sender=row["talker"],
            name=row["talker"],
            at=datetime.fromisoformat(row["CreateTime"]),
        )
        quote = re.search(r"\[引用 ([^：\]]+)：([^\]]*)\]$", text)
        if quote:
            text, answers = text[: quote.start()], _last_said(found, quote[1], quote[2])
        if kind in WECLONE_KINDS:
            named = row["src"] if kind == "file" else ""
            found.append(replace(counted, words=(WECLONE_KINDS[kind], named)))
        else:
            found.append(replace(counted, text=text, answers=answers))
    return found


# Chats as text: QQ's own, MemoTrace's

HEADER = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d{1,2}:\d\d:\d\d(?: [AP]M)?) (?:【[^】]*】)?"
    r"(?P<name>.*?)(?:\((?P<number>\d+)\)|<(?P<mail>[^<>]+)>)?"
)
SYSTEM_NUMBERS = {"10000", "1000000"}


def _of_twelve(value: str) -> datetime:
    return datetime.strptime(value, "%Y-%m-%d %I:%M:%S %p").replace(tzinfo=CHINA)


def qq_text(path: Path) -> list[Counted]:
    """Read QQ's text, which may have times with AM and PM, or MemoTrace's, which alone has quotes."""
    room, parts, own = path.stem, [], True
    for line in _text(path).splitlines():
        if header := HEADER.fullmatch(line):
            parts.append((header, []))
        elif parts:
            parts[-1][1].append(line)
        elif line.startswith("消息对象:"):
            room, own = line.removeprefix("消息对象:"), False
    found: list[Counted] = []
    for number, (header, lines) in enumerate(parts):
        name, who = header["name"], header["number"] or header["mail"] or header["name"]
        while lines and not lines[-1]:
            lines.pop()
        text, _, quote = "\n".join(lines).partition("\n引用:") if own else ("\n".join(lines), "", "")
        quoted_name, _, quoted_text = quote.partition(":")
        answers = _last_said(found, quoted_name, quoted_text) if quoted_text else ()
        system = who in SYSTEM_NUMBERS or text == f"{name}撤回了一条消息"
        counted = Counted(
            room,
            f"#{number}",
            None if system else who,
            None if system else name,
            _local(header["time"]) if header["time"][-1] != "M" else _of_twelve(header["time"]),
            text=text,
            answers=answers,
        )
        found.append(replace(counted, text=None, words=("图片",)) if text == "[图片]" else counted)
    return found


# WeCom


WECOM_KINDS = {"image": "图片", "voice": "语音", "emotion": "表情", "redpacket": "红包", "external_redpacket": "红包"}
WECOM_KEYS = {
    "markdown": "info",
    "news": "info",
    "qydiskfile": "info",
    "docmsg": "doc",
    "external_redpacket": "redpacket",
}
WECOM_TITLES = ("filename", "title", "votetitle", "wish", "content")


def _wecom_words(kind: str, body: dict) -> tuple[str, ...]:
    if kind in ("chatrecord", "mixed"):
        parts = [
            (item["type"].removeprefix("ChatRecord").lower(), json.loads(item["content"])) for item in body["item"]
        ]
        return tuple(word for part in parts for word in _wecom_words(*part))
    if kind == "news":
        return tuple(item["title"] for item in body["item"])
    named = [body[key].strip() for key in WECOM_TITLES if body.get(key)]
    return (*([WECOM_KINDS[kind]] if kind in WECOM_KINDS else []), *named[:1])


def wecom(path: Path) -> list[Counted]:
    events = list(_lines(_text(path)))
    recalled = {event["revoke"]["pre_msgid"] for event in events if event["action"] == "recall"}
    found = []
    for event in events:
        if event["action"] == "switch":
            continue
        kind = event["msgtype"]
        counted = Counted(
            room=event["roomid"] or " and ".join(sorted([event["from"], *event["tolist"]])),
            id=event["msgid"],
            sender=event["from"],
            name=None,
            at=_milliseconds(event["msgtime"]),
            recalled=event["msgid"] in recalled,
        )
        if event["action"] == "recall":
            found.append(replace(counted, sender=None))
        elif kind == "text":
            found.append(replace(counted, text=event["text"]["content"]))
        else:
            body = event[WECOM_KEYS.get(kind, kind)]
            found.append(replace(counted, words=_wecom_words(kind, body)))
    return found


COUNT = {
    "登山队.chatlab.json": chatlab,
    "小明.chatlab.jsonl": chatlab,
    "读书会.chatlab.jsonl": chatlab,
    "登山队.qce.json": qq_exporter,
    "篮球队.qce.json": qq_exporter,
    "group_700701_20251109.json": qq_exporter,
    "private_10002_chunked": qq_exporter,
    "bot.onebot.jsonl": onebot,
    "球友.onebot.jsonl": onebot,
    "history.onebot.json": onebot,
    "读书会.chatlog.json": chatlog,
    "读书会.chatlog.csv": chatlog_csv,
    "读书会.weflow.json": weflow,
    "读书会.echotrace.json": weflow,
    "读书会.arkme.json": weflow,
    "读书会.memotrace.csv": memotrace_csv,
    "读书会.pywxdump.csv": pywxdump_csv,
    "读书会.weclone.csv": weclone_csv,
    "读书会.txt": qq_text,
    "消息记录.txt": qq_text,
    "同学群.txt": qq_text,
    "archive.wecom.jsonl": wecom,
    "客户群.wecom.jsonl": wecom,
}
