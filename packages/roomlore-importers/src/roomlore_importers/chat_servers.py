"""Exports of chat servers: Mattermost's bulk export, Rocket.Chat's messages, and Zulip's export of an organization."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from itertools import takewhile
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.models import Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Position
from roomlore_importers.export_files import Options, Source, derived_id
from roomlore_importers.json_stream import (
    Layout,
    Member,
    Walker,
    as_list,
    lines_or_document,
    read_json_lines,
    read_members,
    spread,
)
from roomlore_importers.shapes import attached, counted, first_name, joined, name, obj, objects, size, spoken, words

_AT = lazy_pattern(r"(?<![\w@])@([\w.-]{1,64}[\w-]|\w)")
"""A mention by the name of an account."""

# Mattermost

_MATTERMOST_CAME = {"system_join_channel": True, "system_leave_channel": False}
_MATTERMOST_MOVED = {
    "system_add_to_channel": ("addedUsername", True), "system_remove_from_channel": ("removedUsername", False),
}  # fmt: skip


@dataclass(slots=True)
class _Directory:
    """The accounts by their names, and the channels by team and name."""

    people: dict[str, str] = field(default_factory=dict)
    bots: set[str] = field(default_factory=set)
    rooms: dict[str, RoomFacts] = field(default_factory=dict)


def _directory(source: Source) -> _Directory:
    """Return what the export lists before its first post."""
    directory = _Directory()
    lines = (line.value for line in read_json_lines(source, None) if isinstance(line, Member))
    for record in takewhile(lambda line: line.get("type") not in ("post", "direct_post"), lines):
        user, bot, channel = (obj(record.get(key)) for key in ("user", "bot", "channel"))
        account = first_name(user.get("username"), bot.get("username"))
        if account:
            whole = joined((user.get("first_name"), user.get("last_name")))
            directory.people[account] = first_name(user.get("nickname"), whole, bot.get("display_name"), account)
        if bot:
            directory.bots.add(account)
        if channel:
            kind = RoomKind.PUBLIC if channel.get("type") == "O" else RoomKind.PRIVATE
            room = f"{words(channel.get('team'))}/{words(channel.get('name'))}"
            directory.rooms[room] = RoomFacts(kind, name=words(channel.get("display_name")))
    source.bytes_read = source.repaired = 0
    return directory


def mattermost(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the posts of all channels. The export has no ids: a room is a team and a channel, or the members of a
    direct one; a post has an id made of its room, author, time and words. An answer is in the thread of its post."""
    directory = _directory(source)
    for line in read_json_lines(source, resume_from):
        if not isinstance(line, Member):
            yield line
            continue
        post = obj(line.value.get("post")) or obj(line.value.get("direct_post"))
        if post or line.value.get("type") in ("post", "direct_post"):
            yield from spread(line, _posts(line, post, directory, options), resume_from)


def _posts(line: Member, post: dict[str, Any], directory: _Directory, options: Options) -> Iterator[Item]:
    listed = post.get("channel_members")
    members = tuple(sorted(map(name, listed))) if isinstance(listed, list) else ()
    room = f"{words(post.get('team'))}/{words(post.get('channel'))}"
    facts = directory.rooms.get(room)
    if members:
        room = f"private:{','.join(members)}"
        facts = RoomFacts(RoomKind.DIRECT if len(members) < 3 else RoomKind.PRIVATE, members)
    if not (members or post.get("channel")) or not post.get("user"):
        yield line.bad("neither channel nor user: not a post of Mattermost")
        return
    root = _post(line, post, "", room, directory, facts, options)
    yield root
    for reply in objects(post.get("replies")):
        yield _post(line, reply, _post_id(post, "", room), room, directory, facts, options)


def _post_id(post: dict[str, Any], root: str, room: str) -> str:
    return derived_id("mattermost", room, root, *(post.get(key) for key in ("user", "create_at", "message", "type")))


def _post(
    line: Member,
    post: dict[str, Any],
    root: str,
    room: str,
    directory: _Directory,
    facts: RoomFacts | None,
    options: Options,
) -> Item:
    kind, sender, props = words(post.get("type")), name(post.get("user")), obj(post.get("props"))
    program = sender in directory.bots or any(str(props.get(key)) == "true" for key in ("from_bot", "from_webhook"))
    shown = (joined((each.get("title"), each.get("text")), "\n") for each in objects(props.get("attachments")))
    text = words(post.get("message")) or joined(shown, "\n")
    key, came = _MATTERMOST_MOVED.get(kind, ("", True))
    moves = [Move(sender, _MATTERMOST_CAME[kind])] if kind in _MATTERMOST_CAME else [Move(name(props.get(key)), came)]
    return spoken(
        line.position,
        options,
        id=_post_id(post, root, room),
        room=room,
        sender=sender,
        called=first_name(props.get("override_username"), directory.people.get(sender)),
        role=Role.SYSTEM if kind.startswith("system_") else Role.ASSISTANT if program else Role.USER,
        text=text,
        at=post.get("create_at"),
        edited=post.get("edit_at") or None,
        root=root,
        mentions=(each for each in _AT.findall(text) if each in directory.people),
        held=[attached(kind="file", file=each.get("path")) for each in objects(post.get("attachments"))],
        facts=facts,
        moves=moves,
        reactions=counted(each.get("emoji_name") for each in objects(post.get("reactions"))),
        pinned=post.get("is_pinned") is True,
    )


# Rocket.Chat

_ROCKET = Layout(
    streams=lambda path: path[-1:] == ("messages",),
    start=lazy_pattern(r'\{\s*"[_a-z]+"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "ts" in value and "msg" in value,
    home=("messages", 0),
)
_ROCKET_CAME = {"uj": True, "ujt": True, "ul": False, "ult": False}
_ROCKET_NAMED = {"au": True, "added-user-to-team": True, "ru": False, "removed-user-from-team": False}
_ROCKET_LINK = lazy_pattern(r"\[ ?\]\(https?://[^\s()]{1,300}[?&]msg=(?P<id>\w{1,40})\)\s*")
"""The link in front of an answer, which shows no words."""
_ROCKET_LINKED = lazy_pattern(r"[?&]msg=(\w{1,40})")
"""The id of the quoted message in the address of a quote."""


def rocketchat(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of an export of a room, of a user's data, of the server's collection of messages or of an
    answer of its API. Only the last two have ids; people are known by their names of accounts."""
    yield from lines_or_document(source, options, resume_from, _rocket_lines, _rocket_document)


def _rocket_lines(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    for line in read_json_lines(source, resume_from):
        yield _rocket(line, source, options) if isinstance(line, Member) else line


def _rocket_document(source: Source, options: Options, resume_from: Position | None) -> Iterator[Item]:
    for member in read_members(source, as_list(source, _ROCKET), resume_from):
        yield _rocket(member, source, options) if isinstance(member, Member) else member


def _mongo(value: object) -> Any:
    """Return a time, also one as MongoDB's tools write it."""
    date = obj(value).get("$date", value)
    return obj(date).get("$numberLong", date)


def _rocket(member: Member, source: Source, options: Options) -> Item:
    record = member.value
    user, kind, text = obj(record.get("u")), first_name(record.get("type"), record.get("t")), words(record.get("msg"))
    sender = first_name(record.get("username"), user.get("username"))
    if "ts" not in record or not (sender or text):
        return member.bad("neither ts nor username: not a message of Rocket.Chat")
    quoted = ""
    if link := _ROCKET_LINK.match(text):
        quoted, text = link["id"], text[link.end() :]
    for each in objects(record.get("attachments")):
        linked = _ROCKET_LINKED.search(words(each.get("message_link")))
        quoted = linked[1] if linked else quoted
    moves = [Move(sender, _ROCKET_CAME[kind])] if kind in _ROCKET_CAME else []
    moves += [Move(text, _ROCKET_NAMED[kind])] if kind in _ROCKET_NAMED and "_id" in record else []
    gone = kind == "rm" or record.get("_hidden") is True
    given = obj(record.get("reactions")).items()
    return spoken(
        member.position,
        options,
        id=name(record.get("_id")) or derived_id("rocketchat", record.get("ts"), sender, text, kind),
        room=name(record.get("rid")) or source.stem,
        sender=sender,
        called=first_name(record.get("alias"), user.get("name"), sender),
        role=Role.SYSTEM if kind and not gone else Role.ASSISTANT if record.get("bot") else Role.USER,
        text=text,
        at=_mongo(record.get("ts")),
        deleted=gone,
        edited=_mongo(record.get("editedAt")),
        answers=quoted,
        root=name(record.get("tmid")),
        mentions=(name(each.get("username")) for each in objects(record.get("mentions"))),
        held=[_rocket_file(each) for each in objects(record.get("attachments")) if not each.get("message_link")],
        moves=moves,
        subtype=kind,
        reactions={emoji.strip(":"): size(obj(who).get("usernames")) for emoji, who in given},
    )


def _rocket_file(item: dict[str, Any]) -> dict[str, Any]:
    urls = {key: item.get(f"{key}_url") for key in ("image", "audio", "video")}
    kind = next((key for key, url in urls.items() if url), words(item.get("type")) or "file")
    stored, called = first_name(item.get("fileId")), first_name(item.get("fileName"), item.get("title"))
    where = {"file": f"assets/{stored}-{called}"} if stored else {"url": item.get("title_link") or urls.get(kind)}
    about = {"mime_type": item.get(f"{kind}_type"), "caption": item.get("description")}
    return attached(kind=kind, name=called, **about, **where)


# Zulip

_ZULIP = Layout(
    streams=lambda path: path == ("zerver_message",),
    start=lazy_pattern(r'\{\s*"[a-z_]+"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "date_sent" in value and "recipient" in value,
    home=("zerver_message", 0),
)
_REALM = "realm.json"
_LARGEST_REALM = 1 << 29
_LISTS = (
    "zerver_userprofile", "zerver_userprofile_mirrordummy", "zerver_userprofile_crossrealm", "zerver_stream",
    "zerver_recipient", "zerver_subscription", "zerver_reaction",
)  # fmt: skip
_REALM_LAYOUT = Layout(
    streams=lambda path: len(path) == 1 and path[0] in _LISTS,
    start=lazy_pattern(r'\{\s*"[a-z_]+"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "id" in value,
    home=("zerver_userprofile", 0),
)
_ZULIP_QUOTE = lazy_pattern(
    r"@_\*\*[^*\n]{1,200}\*\* \[[^\]\n]{1,40}\]\([^()\s]{1,400}/near/(?P<id>\d{1,18})\):\s*\n(?P<fence>`{3,20})quote\n"
    r"(?:.*?)\n(?P=fence)\s*",
    re.DOTALL,
)
"""A quote of an earlier message."""
_ZULIP_PERSON = lazy_pattern(r"@(?P<silent>_?)\*\*(?P<name>[^*|\n]{1,200})(?:\|(?P<id>\d{1,18}))?\*\*")
"""A mention; one with `_` calls nobody."""
_ZULIP_FILE = lazy_pattern(
    r"!?\[(?P<name>[^\[\]\n]{0,300})\]\((?:https?://[^/\s()]{1,200})?/user_uploads/(?P<file>[^()\s]{1,400})\)"
)
"""A file of the message."""
_NOTIFIER = "notification-bot@"


@dataclass(slots=True)
class _Realm:
    """The organization: its accounts, its channels, whom direct messages reach, and the reactions to messages."""

    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    recipients: dict[str, tuple[object, str]] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    reactions: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source) -> "_Realm":
        realm = cls()
        data = source.beside(_REALM, _LARGEST_REALM) or b""
        for event in Walker(BytesIO(data), _REALM_LAYOUT).events():
            if event.kind == "member" and isinstance(event.value, dict):
                realm.learn(str(event.path[0]).removeprefix("zerver_"), event.value)
        return realm

    def learn(self, table: str, row: dict[str, Any]) -> None:
        if table.startswith("userprofile"):
            self.people[name(row.get("id"))] = {key: row.get(key) for key in ("full_name", "email", "is_bot")}
        elif table == "stream":
            self.streams[name(row.get("id"))] = {key: row.get(key) for key in ("name", "invite_only")}
        elif table == "recipient":
            self.recipients[name(row.get("id"))] = row.get("type"), name(row.get("type_id"))
        elif table == "subscription" and row.get("active") is not False:
            self.members.setdefault(name(row.get("recipient")), []).append(name(row.get("user_profile")))
        elif table == "reaction":
            self.reactions.setdefault(name(row.get("message")), Counter())[words(row.get("emoji_name"))] += 1

    def room(self, recipient: str, sender: str) -> tuple[str, RoomFacts | None]:
        """Return the id of a room and what is known of it."""
        kind, place = self.recipients.get(recipient, (None, ""))
        if kind == 2:
            stream = self.streams.get(place, {})
            shut = stream.get("invite_only") is True
            return place, RoomFacts(RoomKind.PRIVATE if shut else RoomKind.PUBLIC, name=words(stream.get("name")))
        members = {sender, place} if kind == 1 else set(self.members.get(recipient, ()))
        people = tuple(sorted(members, key=lambda user: (len(user), user)))
        facts = RoomFacts(RoomKind.DIRECT if len(people) < 3 else RoomKind.PRIVATE, people)
        return (f"private:{','.join(people)}", facts) if people else (f"recipient:{recipient}", None)


def zulip(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of one file `messages-….json`, of the rooms and people in `realm.json` beside it. A topic is
    the topic of its messages; a quote is an answer."""
    realm = _Realm.of(source)
    for member in read_members(source, _ZULIP, resume_from):
        yield _zulip(member, options, realm) if isinstance(member, Member) else member


def _zulip(member: Member, options: Options, realm: _Realm) -> Item:
    record = member.value
    own_id, sender, recipient = (name(record.get(key)) for key in ("id", "sender", "recipient"))
    if not own_id or not recipient:
        return member.bad("neither id nor recipient: not a message of Zulip")
    room, facts = realm.room(recipient, sender)
    person, content = realm.people.get(sender, {}), words(record.get("content"))
    quote = _ZULIP_QUOTE.match(content)
    text = content[quote.end() :] if quote else content
    files = [
        attached(kind="file", name=each["name"], file=f"uploads/{each['file']}") for each in _ZULIP_FILE.finditer(text)
    ]
    called = [each for each in _ZULIP_PERSON.finditer(text) if not each["silent"]]
    notice = words(person.get("email")).startswith(_NOTIFIER) or record.get("type") == 2
    rewritten = '"prev_content"' in words(record.get("edit_history"))
    return spoken(
        member.position,
        options,
        id=own_id,
        room=room,
        sender=sender,
        called=words(person.get("full_name")),
        role=Role.SYSTEM if notice else Role.ASSISTANT if person.get("is_bot") is True else Role.USER,
        text=_ZULIP_PERSON.sub(lambda each: f"@{each['name']}", _ZULIP_FILE.sub("", text)).strip(),
        at=record.get("date_sent"),
        edited=record.get("last_edit_time") if rewritten else None,
        answers=quote["id"] if quote else "",
        topic=words(record.get("subject")) if facts and facts.members is None else "",
        mentions=(each["id"] or _by_name(realm, each["name"]) for each in called),
        held=files,
        facts=facts,
        reactions=dict(realm.reactions.get(own_id, {})),
    )


def _by_name(realm: _Realm, called: str) -> str:
    return next((user for user, person in realm.people.items() if person.get("full_name") == called), "")
