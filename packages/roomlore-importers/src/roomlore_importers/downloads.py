"""Downloads of an account's own data: Google Chat, Messenger and Instagram, Teams and Skype; and messages of Teams as
Microsoft Graph gives them."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import PurePosixPath
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.models import Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Position, parse_time
from roomlore_importers.export_files import Options, Source, derived_id
from roomlore_importers.json_stream import (
    Event,
    Facts,
    Layout,
    Member,
    as_list,
    oldest_first,
    parse_object,
    read_members,
)
from roomlore_importers.shapes import (
    attached,
    counted,
    first_name,
    id_at,
    joined,
    name,
    named,
    obj,
    objects,
    size,
    spoken,
    words,
)
from roomlore_importers.written_dates import read_moment


def _folder(source: Source) -> str:
    return PurePosixPath(source.member).parent.name if source.member else source.path.resolve().parent.name


# Google Chat

_CHAT = Layout(
    streams=lambda path: path == ("messages",),
    start=lazy_pattern(r'\{\s*"(?:creator|created_date)"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "created_date" in value,
    home=("messages", 0),
)
_LARGEST_INFO = 16 << 20


def googlechat(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one space or direct chat, with its name and members from `group_info.json` beside it. The
    first message of a topic is the root of its others."""
    info = parse_object((source.beside("group_info.json", _LARGEST_INFO) or b"{}").decode("utf-8", "replace"))
    folder = _folder(source)
    for member in read_members(source, _CHAT, resume_from):
        yield _googlechat(member, options, obj(info), folder) if isinstance(member, Member) else member


def _googlechat(member: Member, options: Options, info: dict[str, Any], folder: str) -> Item:
    record = member.value
    creator, own_id, topic = obj(record.get("creator")), name(record.get("message_id")), name(record.get("topic_id"))
    if not own_id and "created_date" not in record:
        return member.bad("neither message_id nor created_date: not a message of Google Chat")
    space = own_id.partition("/")[0] if "/" in own_id else folder
    root, sender = f"{space}/{topic}/{topic}", _account(creator)
    notes = (obj(note.get("user_mention_metadata")).get("user") for note in objects(record.get("annotations")))
    return spoken(
        member.position,
        options,
        id=own_id or derived_id("googlechat", folder, sender, record.get("created_date"), record.get("text")),
        room=space,
        sender=sender,
        called=name(creator.get("name")),
        role=Role.ASSISTANT if words(creator.get("user_type")) not in ("Human", "") else Role.USER,
        text=words(record.get("text")),
        at=_in_utc(record.get("created_date")),
        deleted=record.get("message_state") == "DELETED" or "deletion_metadata" in record,
        edited=_in_utc(record.get("updated_date")),
        answers=name(obj(record.get("quoted_message_metadata")).get("message_id")),
        root=root if topic and root != own_id and "/" in own_id else "",
        mentions=map(_account, notes),
        held=map(_googlechat_file, objects(record.get("attached_files"))),
        facts=_space(info, folder),
        reactions={_emoji(each): size(each.get("reactor_emails")) for each in objects(record.get("reactions"))},
    )


def _account(person: object) -> str:
    return first_name(obj(person).get("email"), obj(person).get("name"))


def _emoji(reaction: dict[str, Any]) -> str:
    emoji = obj(reaction.get("emoji"))
    return first_name(emoji.get("unicode"), obj(emoji.get("custom_emoji")).get("shortcode"))


def _googlechat_file(item: dict[str, Any]) -> dict[str, Any]:
    """Return a file. The disk has `_` where the name has `?` or `&`."""
    called = first_name(item.get("original_name"), item.get("export_name"))
    return attached(kind="file", name=called, file=re.sub(r"[?&]", "_", words(item.get("export_name"))))


def _space(info: dict[str, Any], folder: str) -> RoomFacts | None:
    people = tuple(filter(None, map(_account, objects(info.get("members")))))
    kind = RoomKind.DIRECT if folder.startswith("DM ") and len(people) < 3 else RoomKind.PRIVATE
    facts = RoomFacts(kind, people or None) if folder.startswith(("DM ", "Space ")) else None
    return named(facts, words(info.get("name")))


def _in_utc(value: object) -> datetime | None:
    """Return a time in words, which Google writes in the language of the account."""
    moment = read_moment(value) if isinstance(value, str) else None
    return moment.replace(tzinfo=UTC) if moment else parse_time(value)


# Messenger and Instagram

_META = Layout(
    streams=lambda path: path == ("messages",),
    start=lazy_pattern(r'\{\s*"[a-z_A-Z]+"\s*:'),
    plausible=lambda value: isinstance(value, dict) and ("timestamp_ms" in value or "timestamp" in value),
    home=("messages", 0),
)
META_PART = lazy_pattern(r"message_(?P<number>\d{1,5})\.json")
"""The files of one chat; the first has the newest messages."""
_META_FILES = {
    "photos": "photo", "videos": "video", "audio_files": "audio", "gifs": "picture", "files": "file", "media": "",
}  # fmt: skip
_META_PLACEHOLDER = lazy_pattern(
    r"(?:You|[^\n]{1,100}) (?:sent an? (?:attachment|photo|video|voice message|live location)|sent (?:photos|videos))\."
)
"""What stands in place of words beside an attachment."""


def meta(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one file of a chat of Messenger or Instagram, the oldest first. People are known by their
    names. Its texts are UTF-8 that was taken for Latin-1, but those of end-to-end encrypted chats are not."""
    for member in oldest_first(source, _META, resume_from, _note_meta, _meta_stamp):
        yield _meta(member, source, options) if isinstance(member, Member) else member


def _meta_stamp(record: dict[str, Any]) -> object:
    return record.get("timestamp_ms", record.get("timestamp"))


def _note_meta(event: Event, facts: Facts) -> None:
    if event.kind == "scalar" and len(event.path) == 1:
        facts[str(event.path[0])] = _mended(words(event.value))
    elif event.kind == "scalar" and event.path[:1] == ("participants",):
        facts["people"] = [*facts.get("people", ()), _mended(words(event.value))]


def _mended(text: str) -> str:
    """Return a text whose UTF-8 was taken for Latin-1 as it was meant."""
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _meta(member: Member, source: Source, options: Options) -> Item:
    record, facts = member.value, member.facts
    sender = _mended(first_name(record.get("sender_name"), record.get("senderName")))
    if not sender and _meta_stamp(record) is None:
        return member.bad("neither sender_name nor timestamp_ms: not a message of Messenger or Instagram")
    text, kind = _mended(first_name(record.get("content"), record.get("text"))), words(record.get("type"))
    held, share = _meta_held(record), obj(record.get("share"))
    came = {"Subscribe": True, "Unsubscribe": False}.get(kind)
    users = [_mended(name(user.get("name"))) for user in objects(record.get("users"))] if came is not None else []
    people, thread = facts.get("people", []), first_name(facts.get("thread_path"), facts.get("threadName"))
    group = facts.get("thread_type") == "RegularGroup" or len(people) > 2
    room = RoomFacts(RoomKind.PRIVATE if group else RoomKind.DIRECT, tuple(people)) if people else None
    return spoken(
        member.position,
        options,
        id=id_at(member.facts, _meta_stamp(record), sender, record.get("content", record.get("text")), held, share),
        room=thread.rpartition("/")[2] or _folder(source),
        sender=sender,
        called=sender,
        role=Role.SYSTEM if users or "call_duration" in record or kind == "Call" else Role.USER,
        text="" if (held or share) and _META_PLACEHOLDER.fullmatch(text) else text,
        at=_meta_stamp(record),
        deleted=record.get("is_unsent") is True or record.get("isUnsent") is True,
        held=held,
        facts=named(room, first_name(facts.get("title"), re.sub(r"_\d+$", "", facts.get("threadName", "")))),
        moves=[Move(user, came is True) for user in users],
        several=True,
        caption=joined((_mended(words(share.get("share_text"))), words(share.get("link"))), "\n"),
        reactions=counted(_mended(words(each.get("reaction"))) for each in objects(record.get("reactions"))),
    )


def _meta_held(record: dict[str, Any]) -> list[dict[str, Any]]:
    listed = [(kind, item) for key, kind in _META_FILES.items() for item in objects(record.get(key))]
    if sticker := obj(record.get("sticker")):
        listed.append(("sticker", sticker))
    return [attached(kind=kind, file=_mended(words(item.get("uri")))) for kind, item in listed if item.get("uri")]


# Teams and Skype

_SKYPE = Layout(
    streams=lambda path: path[-1:] == ("MessageList",),
    start=lazy_pattern(r'\{\s*"id"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "originalarrivaltime" in value,
    home=("conversations", 0, "MessageList", 0),
)
_GRAPH = Layout(
    streams=lambda path: path[-1:] == ("value",),
    start=lazy_pattern(r'\{\s*"(?:@odata\.\w+|id|replyToId)"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "createdDateTime" in value and "body" in value,
    home=("value", 0),
)
_NO_TAG = lazy_pattern(
    r"<!--[^<]{0,2000}?-->|<(?!/?[a-zA-Z][\w:-]{0,40}"
    r"(?:\s+[\w:@-]{1,60}(?:=(?:\"[^\"<]{0,2000}\"|'[^'<]{0,2000}'|[^\s\"'<>=]{1,2000}))?){0,40}\s*/?>)"
)
"""A comment, or a sign that begins no tag: Python's parser of HTML takes long for many of these, or fails."""
_BLOCKS = ("p", "div", "br", "li", "tr", "blockquote", "h1", "h2", "h3", "pre")
_QUOTES = ("quote", "blockquote")
_GRAPH_CAME = (("membersAdded", True), ("membersJoined", True), ("membersDeleted", False), ("membersLeft", False))
_SKYPE_CAME = {"ThreadActivity/AddMember": True, "ThreadActivity/DeleteMember": False}
_SKYPE_PERSON = lazy_pattern(r"<(?:target|id)>(?:8:)?([^<>]{1,200})</(?:target|id)>")
"""Who came or went, in the XML of a notice."""
_SKYPE_INITIATOR = lazy_pattern(r"<initiator>(?:8:)?([^<>]{1,200})</initiator>")
"""Who did it."""


class _Words(HTMLParser):
    """The words of HTML, without those of quotes. `quoted`: the ids of quoted messages; `files`: what it links to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.quoted: list[str] = []
        self.files: list[dict[str, Any]] = []
        self.people: list[str] = []
        self._quotes = 0
        self.feed(_NO_TAG.sub(lambda match: "&lt;" if match[0] == "<" else "", html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if tag in _QUOTES:
            self._quotes += 1
            self.quoted += [found for key in ("messageid", "itemid") if (found := given.get(key))]
        elif tag in ("img", "emoji") and not self._quotes:
            shown = first_name(
                given.get("alt") if tag == "emoji" or "emoticon" in given.get("itemtype", "").lower() else ""
            )
            self.pieces.append(shown)
            if not shown and given.get("src"):
                self.files.append(attached(kind="picture", name=given.get("alt"), url=given["src"]))
        elif tag == "uriobject":
            kind = given.get("type", "file").partition(".")[0].lower()
            self.files.append(attached(kind=kind, url=given.get("uri")))
            self._quotes += 1
        elif tag == "at":
            self.people += [given["id"].removeprefix("8:")] if given.get("id") else []
            self.pieces.append("@")
        elif tag == "originalname" and self.files:
            self.files[-1] |= {"name": given.get("v", "")}
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in (*_QUOTES, "uriobject"):
            self._quotes = max(0, self._quotes - 1)
        if tag in ("p", "div", "li", "tr"):
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._quotes:
            self.pieces.append(data)

    @property
    def text(self) -> str:
        lines = "".join(self.pieces).replace("\xa0", " ").replace("@@", "@").split("\n")
        return re.sub(r"\n{3,}", "\n\n", re.sub(r"\n\n", "\n", "\n".join(line.rstrip() for line in lines))).strip()


def teams(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of `messages.json` of a personal Teams or Skype account, or of lists of `chatMessage` of
    Microsoft Graph, the oldest of a chat first; the room is the chat's id."""
    with source.open() as file:
        head = file.read(1 << 16).lstrip(b"\xef\xbb\xbf \t\r\n")
    skype = b'"MessageList"' in head or b'"conversations"' in head
    layout = _SKYPE if skype else as_list(source, _GRAPH)
    parsed, when = (_skype, "originalarrivaltime") if skype else (_graph, "createdDateTime")
    for member in oldest_first(source, layout, resume_from, _note_skype, lambda value: value.get(when)):
        yield parsed(member, source, options) if isinstance(member, Member) else member


def _note_skype(event: Event, facts: Facts) -> None:
    path = event.path
    if event.kind == "enter" and len(path) == 2 and path[0] == "conversations":
        facts.pop("name", None)
        facts.pop("members", None)
    elif event.kind == "scalar" and path == ("userId",):
        facts["owner"] = name(event.value).removeprefix("8:")
    elif event.kind == "scalar" and path[:1] == ("conversations",):
        if path[-1] in ("displayName", "topic") and event.value:
            facts["name"] = name(event.value)
        elif path[-1] == "members":
            facts["members"] = name(event.value)


def _skype(member: Member, source: Source, options: Options) -> Item:
    record, facts = member.value, member.facts
    own_id, sender, kind = name(record.get("id")), _person(record.get("from")), words(record.get("messagetype"))
    if not own_id or not sender:
        return member.bad("neither id nor from: not a message of Teams or Skype")
    content, properties = words(record.get("content")), obj(record.get("properties"))
    html, is_said = _Words(content), kind.startswith("RichText") or kind == "Text"
    moved = _SKYPE_PERSON.findall(content) if kind in _SKYPE_CAME else []
    initiator = "" if is_said else next(iter(_SKYPE_INITIATOR.findall(content)), "")
    chat = _person(record.get("conversationid"))
    group = chat.startswith("19:")
    listed = re.findall(r'"(?:8:)?([^"\[\],]+)"', facts.get("members", "")) if group else [facts.get("owner", ""), chat]
    room = RoomFacts(RoomKind.PRIVATE if group else RoomKind.DIRECT, tuple(filter(None, listed)) or None)
    gone = bool(properties.get("deletetime")) or (not content and bool(properties.get("edittime")))
    return spoken(
        member.position,
        options,
        id=own_id,
        room=chat or source.stem,
        sender=sender if is_said else initiator or sender.replace(chat, ""),
        called=name(record.get("displayName")),
        role=Role.USER if is_said else Role.SYSTEM,
        text=html.text if is_said else joined((kind.rpartition("/")[2], *moved)),
        at=record.get("originalarrivaltime"),
        deleted=gone,
        edited=None if gone else properties.get("edittime") or None,
        answers=html.quoted[0] if html.quoted else "",
        mentions=html.people,
        held=html.files,
        facts=named(room, facts.get("name", "")),
        moves=[Move(person, _SKYPE_CAME[kind]) for person in moved],
        several=True,
        reactions=_emotions(properties.get("emotions")),
    )


def _person(value: object) -> str:
    return name(value).removeprefix("8:")


def _emotions(given: object) -> dict[str, int]:
    """Return the counts of reactions, a list or the text of one."""
    held = parse_object(f'{{"all":{given}}}') if isinstance(given, str) else {"all": given}
    return {words(each.get("key")): len(objects(each.get("users"))) for each in objects(obj(held).get("all"))}


def _graph(member: Member, source: Source, options: Options) -> Item:
    record = member.value
    own_id, detail, channel = name(record.get("id")), obj(record.get("eventDetail")), obj(record.get("channelIdentity"))
    if not own_id or "createdDateTime" not in record:
        return member.bad("neither id nor createdDateTime: not a message of Teams")
    user, program = _identity(record.get("from") or detail.get("initiator"))
    body, system = obj(record.get("body")), words(record.get("messageType")) not in ("message", "")
    html = _Words(words(body.get("content"))) if body.get("contentType") == "html" else None
    event = words(detail.get("@odata.type")).rpartition(".")[2].removesuffix("EventMessageDetail")
    people = objects(detail.get("members"))
    came = next((came for begin, came in _GRAPH_CAME if event.startswith(begin)), None)
    told = joined((re.sub(r"(?<=[a-z])(?=[A-Z])", " ", event).lower(), *(each.get("displayName") for each in people)))
    said = joined((record.get("subject"), html.text if html else body.get("content")), "\n")
    quoted, held = _graph_held(record)
    chat = name(record.get("chatId"))
    kind = RoomKind.DIRECT if "@unq.gbl.spaces" in chat else RoomKind.PRIVATE if chat else None
    return spoken(
        member.position,
        options,
        id=own_id,
        room=first_name(chat, channel.get("channelId")) or source.stem,
        sender=name(user.get("id")),
        called=name(user.get("displayName")),
        role=Role.SYSTEM if system else Role.ASSISTANT if program else Role.USER,
        text=told if system else said,
        at=record.get("createdDateTime"),
        deleted=bool(record.get("deletedDateTime")),
        edited=record.get("lastEditedDateTime"),
        answers=quoted,
        root=name(record.get("replyToId")) if channel else "",
        mentions=(name(_identity(each.get("mentioned"))[0].get("id")) for each in objects(record.get("mentions"))),
        held=[*held, *(html.files if html else ())],
        facts=RoomFacts(kind) if kind else None,
        moves=[Move(name(each.get("id")), came) for each in people] if came is not None else (),
        several=True,
        reactions=counted(each.get("reactionType") for each in objects(record.get("reactions"))),
    )


def _identity(value: object) -> tuple[dict[str, Any], bool]:
    """Return who an identity of Graph is, and whether it is a program."""
    user, program = obj(obj(value).get("user")), obj(obj(value).get("application"))
    return user or program, bool(program) and not user


def _graph_held(record: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the id of the quoted message, and the files."""
    quoted, held = "", []
    for item in objects(record.get("attachments")):
        if item.get("contentType") == "messageReference":
            told = parse_object(words(item.get("content")))
            quoted = first_name(obj(told).get("messageId"), item.get("id"))
        elif each := attached(kind="file", name=item.get("name"), url=item.get("contentUrl")):
            held.append(each)
    return quoted, held
