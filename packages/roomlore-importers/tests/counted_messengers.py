"""A second reading of the samples of Telegram, Discord, WhatsApp, Slack and Lark, without code of the importers.

As in `counted_apart.py`: do not import roomlore here, and do not look at an importer to mend a function. What the
functions know is from the source of Telegram Desktop and of DiscordChatExporter, from Slack's and Lark's documentation,
and from what WhatsApp writes.
"""

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from counted_apart import CHINA, Counted

# Files of a folder or a zip


def _files(path: Path) -> dict[str, str]:
    """Return the text of each text file of a folder or zip, by its path below the folder that holds all of them."""
    if path.is_dir():
        pairs = [(one.relative_to(path).as_posix(), one.read_bytes()) for one in path.rglob("*") if one.is_file()]
    else:
        with zipfile.ZipFile(path) as archive:
            pairs = [(name, archive.read(name)) for name in archive.namelist() if not name.endswith("/")]
        tops = {name.split("/", 1)[0] for name, _ in pairs}
        if len(tops) == 1 and all("/" in name for name, _ in pairs):
            pairs = [(name.split("/", 1)[1], data) for name, data in pairs]
    return {name: data.decode("utf-8-sig") for name, data in sorted(pairs) if name.endswith((".json", ".txt"))}


def _document(path: Path, name: str = "") -> dict:
    return json.loads(path.read_text(encoding="utf-8") if path.suffix == ".json" else _files(path)[name])


# Telegram: Telegram/SourceFiles/export/output/export_output_json.cpp


def telegram(path: Path) -> list[Counted]:
    document = _document(path, "result.json")
    if "messages" in document:
        return _telegram_chat(document)
    lists = [document[key]["list"] for key in ("chats", "left_chats") if key in document]
    return [one for chats in lists for chat in chats for one in _telegram_chat(chat)]


def _telegram_chat(chat: dict) -> list[Counted]:
    topics = {one["id"]: one["id"] for one in chat["messages"] if one.get("action") == "topic_created"}
    for one in chat["messages"]:
        if (target := one.get("reply_to_message_id") or one.get("message_id")) in topics:
            topics[one["id"]] = topics[target]
    return [_telegram_message(str(chat["id"]), one, topics) for one in chat["messages"]]


def _telegram_message(room: str, one: dict, topics: dict[int, int]) -> Counted:
    if one["type"] == "unsupported":  # of which the file says nothing more
        return Counted(room, str(one["id"]), None, None, datetime.min, unread=True)
    service = one["type"] == "service"
    target = None if one.get("reply_to_peer_id") else one.get("reply_to_message_id") or one.get("message_id")
    pieces = one["text"] if isinstance(one["text"], list) else [one["text"]]
    said = [{"type": "plain", "text": piece} if isinstance(piece, str) else piece for piece in pieces]
    edited = one.get("edited_unixtime")
    counted = Counted(
        room=room,
        id=str(one["id"]),
        sender=None if service else one["from_id"],
        name=None if service else one["from"],
        at=_telegram_time(one),
        edited=datetime.fromtimestamp(int(edited), UTC) if edited else None,
        answers=(str(target),) if target and topics.get(target) != target else (),
        topic=str(topics[one["id"]]) if one["id"] in topics else None,
        mentions=tuple(f"user{piece['user_id']}" for piece in said if piece["type"] == "mention_name"),
        shown=tuple(_telegram_shown(one)),
        reactions={each["emoji"]: each["count"] for each in one.get("reactions", [])},
    )
    if service:
        named = [one.get("title"), *one.get("members", [])]
        return replace(counted, words=tuple(name for name in named if name))
    if any(piece["type"] == "text_link" for piece in said):
        return replace(counted, words=tuple(word for piece in said for word in (piece["text"], piece.get("href", ""))))
    return replace(counted, text=None if "poll" in one else "".join(piece["text"] for piece in said))


def _telegram_time(one: dict) -> datetime:
    if "date_unixtime" in one:
        return datetime.fromtimestamp(int(one["date_unixtime"]), UTC)
    return datetime.fromisoformat(one["date"]).replace(tzinfo=CHINA)


def _telegram_shown(one: dict) -> Iterator[str]:
    """Yield what a message shows beside its text."""
    for key in ("file", "photo"):
        if (where := one.get(key)) and not where.startswith("("):
            yield one.get("file_name") or where.rsplit("/", 1)[-1]
    yield from (one[key] for key in ("sticker_emoji", "place_name", "game_title") if key in one)
    if poll := one.get("poll"):
        yield from (poll["question"], *(answer["text"] for answer in poll["answers"]))
    if contact := one.get("contact_information"):
        yield from (contact["first_name"], contact["last_name"])


# DiscordChatExporter: JsonMessageWriter.cs, MessageKind.cs

DISCORD_SAID = {"Default", "Reply", "20", "21", "23"}
"""What people and apps say. A kind without a name is written as its number: 20, 23 are commands, 21 begins a thread."""


def discord(path: Path) -> list[Counted]:
    document = _document(path)
    channel = document["channel"]["id"]
    return [_discord_message(channel, one) for one in document["messages"]]


def _discord_message(channel: str, one: dict) -> Counted:
    author, reference = one["author"], one.get("reference") or {}
    said = one["type"] in DISCORD_SAID
    answered = reference.get("channelId") == channel and reference.get("type", "Default") == "Default"
    edited = one["timestampEdited"]
    forwarded = one.get("forwardedMessage") or {}
    return Counted(
        room=channel,
        id=one["id"],
        sender=author["id"] if said else None,
        name=author["nickname"] if said else None,
        bot=author["isBot"] and said,
        at=datetime.fromisoformat(one["timestamp"]),
        edited=datetime.fromisoformat(edited) if edited else None,
        text=one["content"],
        answers=(reference["messageId"],) if answered else (),
        mentions=tuple(user["id"] for user in one["mentions"]),
        reactions={each["emoji"]["name"]: each["count"] for each in one["reactions"]},
        shown=(*_discord_shown(one), *([forwarded["content"], *_discord_shown(forwarded)] if forwarded else [])),
    )


def _discord_shown(one: dict) -> tuple[str, ...]:
    embeds = [word for each in one["embeds"] for word in (each["title"], each["description"])]
    fields = [word for each in one["embeds"] for field in each["fields"] for word in (field["name"], field["value"])]
    files = [each["fileName"] for each in one["attachments"]]
    stickers = [each["name"] for each in one["stickers"]]
    return tuple(word for word in (*embeds, *fields, *files, *stickers) if word)


# WhatsApp: the words of each sample's language, which a person who reads it knows

WHATSAPP_MARKS = dict.fromkeys((0x200E, 0x2068, 0x2069))
DELETED = re.compile(r"(This message was deleted|You deleted this message)\.?")
EDITED = re.compile(r" \u200e?<This message was edited>$")
ATTACHED = (
    re.compile(r"(?P<name>\S.*) \((?:file attached|文件附件)\)"),
    re.compile(r"<(?:attached|Anhang): (?P<name>.*)>"),
)
OMITTED = re.compile(
    r"<(?:Media omitted|省略多媒体文件)>|(?:audio|image|sticker|video) omitted|(?P<card>.*) Contact card omitted"
    r"|Bild weggelassen"
)
ANDROID, IOS = r"(?P<at>{}) - (?P<rest>.*)", r"\u200e?\[(?P<at>{})\] (?P<rest>.*)"
NOTICE = re.compile(r".* (?:created group|changed the group name) .*")


def whatsapp(path: Path, line: str, stamp: str, form: str, room: str) -> list[Counted]:
    """Read a chat. `line`: how a message begins; `stamp`, `form`: its time, as a pattern and for strptime."""
    if path.suffix == ".txt":
        text = path.read_text(encoding="utf-8")
    else:
        text = next(text for name, text in _files(path).items() if name.endswith(".txt"))
    parts: list[list[str]] = []
    for each in text.replace("\r\n", "\n").removesuffix("\n").split("\n"):
        if found := re.fullmatch(line.format(stamp), each):
            parts.append([found["at"], found["rest"]])
        else:
            parts[-1].append(each)
    ios = line == IOS
    senders = {rest.split(": ", 1)[0] for _, rest, *_ in parts if ": " in rest}
    numbers = {re.sub(r"\D", "", name): name for name in senders if name.startswith("+")}
    return [
        _whatsapp_message(room, number, _whatsapp_time(at, form), "\n".join(lines), numbers, ios)
        for number, (at, *lines) in enumerate(parts)
    ]


def _whatsapp_time(at: str, form: str) -> datetime:
    for half, half_in_english in (("下午", "PM"), ("上午", "AM"), ("凌晨", "AM")):
        at = at.replace(half, half_in_english)
    return datetime.strptime(at.replace("\u202f", " "), form).replace(tzinfo=CHINA)


def _whatsapp_message(room: str, number: int, at: datetime, said: str, numbers: dict[str, str], ios: bool) -> Counted:
    sender, colon, text = said.partition(": ")
    note = text.startswith("\u200e")
    name = re.sub(r"^~\s*", "", sender)
    of_app = note and ios and text[1:].startswith((f"{sender} ", "Messages", "Nachrichten"))
    notice = NOTICE.fullmatch(said) or not colon or of_app
    counted = Counted(room, f"#{number}", None if notice else name, None if notice else name, at)
    if notice:
        return replace(counted, text=(text if note and ios else said).translate(WHATSAPP_MARKS))
    if DELETED.fullmatch(text.translate(WHATSAPP_MARKS)):
        return replace(counted, recalled=True)
    if EDITED.search(text):
        counted, text = replace(counted, was_edited=True), EDITED.sub("", text)
    mentions = [*re.findall(r"@\u2068([^\u2069]*)\u2069", text), *_numbers_named(text, numbers)]
    counted = replace(counted, mentions=tuple(mentions))
    plain = text.translate(WHATSAPP_MARKS)
    first, _, rest = plain.partition("\n")
    for form in ATTACHED:
        if attached := form.search(first):
            before = "" if "•" in first else first[: attached.start()].strip()  # a bullet: how many pages it has
            return replace(counted, text=before or rest, shown=(attached["name"],))
    return _in_place_of_text(counted, plain, rest)


def _in_place_of_text(counted: Counted, plain: str, rest: str) -> Counted:
    if held := OMITTED.fullmatch(plain):
        return replace(counted, text="", shown=(held["card"],) if held["card"] else ())
    if plain in ("null", "live location shared"):
        return replace(counted, text="")
    if plain == "Missed voice call":
        return replace(counted, sender=None, name=None, text=plain)
    if place := re.fullmatch(r"[Ll]ocation: https://maps\.google\.com/\?q=(.*)", plain):
        return replace(counted, text="", shown=(place[1],))
    if plain.startswith("POLL:"):
        question, *options = rest.rstrip().split("\n")
        shown = re.findall(r"OPTION: (.+) \(\d+ votes?\)", "\n".join(options))
        return replace(counted, text=question, shown=tuple(shown))
    return replace(counted, text=plain)


def _numbers_named(text: str, numbers: dict[str, str]) -> list[str]:
    return [numbers[digits] for digits in re.findall(r"@(\d+)", text) if digits in numbers]


# Slack: slack.com/help/articles/220556107, docs.slack.dev/reference/events/message

SLACK_EVENTS = {"channel_join", "channel_leave", "channel_topic", "huddle_thread", "slackbot_response"}
SLACK_ENTITY = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def slack(path: Path) -> list[Counted]:
    files = _files(path)
    users = {user["id"]: user for user in json.loads(files["users.json"])}
    channels = {
        one["id"]: one["name"] for name in ("channels", "groups") for one in json.loads(files.get(f"{name}.json", "[]"))
    }
    listed = [one for name in ("channels", "groups", "mpims") for one in json.loads(files.get(f"{name}.json", "[]"))]
    ids = {one["name"]: one["id"] for one in listed}
    days = [(name.rsplit("/", 1)[0], json.loads(text)) for name, text in files.items() if "/" in name]
    said = [(ids.get(folder, folder), one) for folder, day in days for one in day]
    names = {who: _slack_name(user["profile"], user["name"]) for who, user in users.items()}
    bots = {who for who, user in users.items() if user.get("is_bot")}
    return [_slack_message(room, one, names, channels, bots) for room, one in said]


def _slack_name(profile: dict, name: str) -> str:
    return profile.get("display_name") or profile.get("real_name") or name


def _slack_message(room: str, one: dict, names: dict, channels: dict, bots: set[str]) -> Counted:
    subtype, thread = one.get("subtype"), one.get("thread_ts")
    event = subtype in SLACK_EVENTS
    who = one.get("user") or one["bot_id"]
    text = one["text"]
    entities = SLACK_ENTITY.findall(text)
    mentions = dict.fromkeys(target[1:] for target, _ in entities if target.startswith("@"))
    edited, guest = one.get("edited"), one.get("user_profile", {})
    counted = Counted(
        room=room,
        id=one["ts"],
        sender=None if event else who,
        name=None if event else names.get(who) or one.get("username") or _slack_name(guest, ""),
        bot=not event and (who in bots or "bot_id" in one),
        at=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(one["ts"].replace(".", ""))),
        edited=datetime.fromtimestamp(float(edited["ts"]), UTC) if edited else None,
        root=thread if thread and thread != one["ts"] else None,
        mentions=tuple(mentions),
        recalled=subtype == "tombstone",
        shown=tuple(_slack_shown(one, text)),
        reactions={each["name"]: each["count"] for each in one.get("reactions", [])},
    )
    pieces = [_slack_entity(target, label, names, channels) for target, label in entities]
    if any(len(piece) > 1 for piece in pieces) or (not text and counted.shown):
        return replace(counted, words=tuple(word for piece in pieces for word in piece))
    shown = iter(pieces)
    return replace(counted, text=_slack_plain(SLACK_ENTITY.sub(lambda _: next(shown)[0], text)))


def _slack_plain(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _slack_entity(target: str, label: str, names: dict, channels: dict) -> tuple[str, ...]:
    """Return what a reader sees of `<target|label>`; more words if what is between them is free."""
    if target.startswith("@"):
        return (f"@{names.get(target[1:], label or target[1:])}",)
    if target.startswith("#"):
        return (f"#{label or channels.get(target[1:], target[1:])}",)
    if target.startswith("!subteam^"):
        return (label, "") if label else (target.removeprefix("!subteam^"), "")
    if target.startswith("!"):
        return (label or f"@{target[1:]}",)
    if target.startswith(("mailto:", "tel:")):
        return (label,)
    return (_slack_plain(label), _slack_plain(target)) if label else (_slack_plain(target),)


def _slack_shown(one: dict, text: str) -> Iterator[str]:
    yield from (file["title"] for file in one.get("files", []) if "title" in file)
    if text:
        return
    for each in one.get("attachments", []):
        yield from (_slack_plain(each[key]) for key in ("title", "text") if key in each)
    for block in one.get("blocks", []):
        yield from (part["text"] for section in block["elements"] for part in section["elements"])


# Lark: open.feishu.cn/document/server-docs/im-v1/message-content-description/message_content


def lark(path: Path) -> list[Counted]:
    text = path.read_text(encoding="utf-8")
    pages = [json.loads(line) for line in text.split("\n") if line] if path.suffix == ".jsonl" else [json.loads(text)]
    if "event" in pages[0]:
        return [_lark_event(page["event"]) for page in pages]
    return [_lark_message(one) for page in pages for one in page["data"]["items"]]


def _lark_event(event: dict) -> Counted:
    message, sender = event["message"], event["sender"]
    people = [one | {"id": one["id"]["open_id"]} for one in message.get("mentions", [])]
    return _lark_message(
        message
        | {
            "msg_type": message["message_type"],
            "body": {"content": message["content"]},
            "mentions": people,
            "sender": {"id": sender["sender_id"]["open_id"], "sender_type": sender["sender_type"]},
        }
    )


def _lark_message(one: dict) -> Counted:
    kind, sender = one["msg_type"], one["sender"]
    system = sender["sender_type"] == "system"
    people = {person["key"]: person for person in one.get("mentions", [])}
    counted = Counted(
        room=one["chat_id"],
        id=one["message_id"],
        sender=None if system else sender["id"],
        name=None if system else sender.get("name"),
        bot=sender["sender_type"] == "app",
        at=datetime.fromtimestamp(int(one["create_time"]) / 1000, UTC),
        edited=datetime.fromtimestamp(int(one["update_time"]) / 1000, UTC) if one.get("updated") else None,
        answers=(one["parent_id"],) if one.get("parent_id") else (),
        root=one.get("root_id") or None,
        mentions=tuple(person["id"] for person in people.values()),
        recalled=bool(one.get("deleted")),
    )
    if counted.recalled or kind == "merge_forward":
        return counted
    content = json.loads(one["body"]["content"])
    if kind == "text":
        return replace(counted, text=_lark_named(content["text"], people))
    if kind == "system":
        said = content["template"]
        for key in ("from_user", "to_chatters"):
            said = said.replace(f"{{{key}}}", ", ".join(content[key]))
        return replace(counted, text=said)
    if kind in ("post", "interactive"):
        rows = content["content"] if kind == "post" else content["elements"]
        return replace(counted, words=(content["title"], *(word for row in rows for word in _lark_row(row, people))))
    return replace(counted, shown=tuple(_lark_shown(content)))


def _lark_named(text: str, people: dict[str, dict]) -> str:
    return re.sub(
        r"@_(?:user_\d+|all)", lambda key: "@所有人" if key[0] == "@_all" else f"@{people[key[0]]['name']}", text
    )


def _lark_row(row: list[dict], people: dict[str, dict]) -> Iterator[str]:
    for piece in row:
        if piece["tag"] == "at":
            yield _lark_named(piece["user_id"], people)
        elif piece["tag"] in ("text", "a", "code_block"):
            yield piece["text"].strip()
            yield piece.get("href", "")


def _lark_shown(content: dict) -> Iterator[str]:
    yield from (content[key] for key in ("file_name", "name", "topic", "text") if key in content)
    summary = content.get("summary")
    if isinstance(summary, dict):
        yield from (piece["text"] for row in summary["content"] for piece in row)
    elif summary:
        yield summary
    yield from content.get("options", [])


LOCAL_DAY = r"\d\d/\d\d/\d{4}, \d\d:\d\d"
HALVES = r"\d\d?/\d\d?/\d\d, \d\d?:\d\d[ \u202f][AP]M"
COUNT: dict[str, Callable[[Path], list[Counted]]] = {
    "telegram.json": telegram,
    "result.json": telegram,
    "ChatExport_2024-06-02": telegram,
    "Hikers - trips [7001].json": discord,
    "Hikers - trips - Lost glove [7002].json": discord,
    "WhatsApp Chat with Hikers.txt": partial(
        whatsapp, line=ANDROID, stamp=HALVES, form="%m/%d/%y, %I:%M %p", room="Hikers"
    ),
    "WhatsApp Chat with Bob.txt": partial(whatsapp, line=ANDROID, stamp=HALVES, form="%m/%d/%y, %I:%M %p", room="Bob"),
    "WhatsApp Chat with Choir.txt": partial(
        whatsapp, line=ANDROID, stamp=LOCAL_DAY, form="%d/%m/%Y, %H:%M", room="Choir"
    ),
    "WhatsApp Chat - Choir": partial(
        whatsapp, line=IOS, stamp=LOCAL_DAY + r":\d\d", form="%d/%m/%Y, %H:%M:%S", room="Choir"
    ),
    "_chat.txt": partial(
        whatsapp, line=IOS, stamp=r"\d\d\.\d\d\.\d\d, \d\d:\d\d:\d\d", form="%d.%m.%y, %H:%M:%S", room="Familie"
    ),
    "与登山队的WhatsApp聊天.txt": partial(
        whatsapp, line=ANDROID, stamp=r"\d{4}/\d\d?/\d\d? ..\d\d?:\d\d", form="%Y/%m/%d %p%I:%M", room="登山队"
    ),
    "slack": slack,
    "Acme Slack export Jun 1 2024 - Jun 3 2024": slack,
    "lark.json": lark,
    "lark.pages.jsonl": lark,
    "lark.events.jsonl": lark,
    "lark.topics.json": lark,
}
