"""A Slack export, as folder or zip: a folder for each channel, a file for each day; and events of a bot in Slack."""

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape, unescape
from io import BytesIO
from pathlib import Path
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Bad, Item, Parsed, Position, parse_time
from roomlore_importers.export_files import UNREADABLE, Options, Source, derived_id, excerpt, open_zip, refuse_encrypted
from roomlore_importers.json_stream import Layout, Walker, start_at
from roomlore_importers.shapes import attached, event_of, first_name, joined, kept, name, obj, objects, words

_DAY_FILE = lazy_pattern(r"(?:.*/)?([^/]+)/(\d{4}-\d\d-\d\d)\.json")
DAY = lazy_pattern(r"\d{4}-\d\d-\d\d\.json")
"""The name of the file of a day."""
_LAYOUT = Layout(
    streams=lambda path: path == (),
    start=lazy_pattern(r'\{\s*"[a-z_]+"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "ts" in value and ("type" in value or "text" in value),
    home=(0,),
)
_PEOPLE = Layout(
    streams=lambda path: path == (),
    start=lazy_pattern(r'\{\s*"id"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "profile" in value,
    home=(0,),
)
_ROOMS = Layout(
    streams=lambda path: path == (),
    start=lazy_pattern(r'\{\s*"id"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "members" in value,
    home=(0,),
)
_KINDS = {
    "channels.json": RoomKind.PUBLIC,
    "groups.json": RoomKind.PRIVATE,
    "mpims.json": RoomKind.PRIVATE,
    "dms.json": RoomKind.DIRECT,
}
LISTS = frozenset(
    {*_KINDS, "users.json", "canvases.json", "integration_logs.json", "file_conversations.json", "lists.json"}
)
"""The files beside the folders of the channels."""
_FIXED = ("mpims.json", "dms.json")
"""Chats whose people never change."""
_MOVES = {"channel_join": True, "group_join": True, "channel_leave": False, "group_leave": False}
_PROGRAM = ("pinned_item", "unpinned_item", "reminder_add", "huddle_thread")
_PROGRAM_ENDS = (
    "_join",
    "_leave",
    "_topic",
    "_purpose",
    "_name",
    "_archive",
    "_unarchive",
    "_convert_to_private",
    "_added",
)
_MARKUP = lazy_pattern(r"<([^<>\n]+)>")
_BROADCASTS = ("!here", "!channel", "!everyone")
_DIALLED = ("mailto:", "tel:")
_BLOCK_MARKUP = {
    "user": ("user_id", "<@{}>"),
    "channel": ("channel_id", "<#{}>"),
    "usergroup": ("usergroup_id", "<!subteam^{}>"),
    "broadcast": ("range", "<!{}>"),
    "emoji": ("name", ":{}:"),
    "date": ("fallback", "{}"),
    "color": ("value", "{}"),
}
"""How a text writes what a block holds in this field, by the kind of the part."""
_INLINE = ("text", "link", *_BLOCK_MARKUP)
_DEEPEST = 20
_INDENT = "    "
_LARGEST = 1_000
_MENTION = lazy_pattern(r"<@([A-Z0-9]+)")


@dataclass(frozen=True, slots=True)
class _Directory:
    """The names of people and of channels by id, the ids of bots, and by the name of a channel's folder its id and what
    the export says of it."""

    people: dict[str, str]
    channels: dict[str, str]
    bots: frozenset[str]
    ids: dict[str, str]
    rooms: dict[str, RoomFacts]


class Export:
    """The files of an export by name: those in its own folder, and in the folders of its channels."""

    def __init__(self, source: Source) -> None:
        self._path = source.path
        self._folder = source.folder
        self._zip = None if source.path.is_dir() else open_zip(source.path)
        names = _zip_names(self._zip) if self._zip else _folder_names(source.path)
        self.names = sorted(file for file in names if self._is_own(file))

    def _is_own(self, file: str) -> bool:
        inside = file.removeprefix(self._folder)
        return file.startswith(self._folder) and inside.count("/") == (
            DAY.fullmatch(inside.rpartition("/")[2]) is not None
        )

    def refuse_encrypted(self) -> None:
        """Raise `InvalidInput` if the days need a password."""
        if self._zip is not None:
            refuse_encrypted(self._path, self._zip, self.days())

    def days(self) -> list[str]:
        """Return the day files, channel by channel, in time order."""
        days = [match for file in self.names if (match := _DAY_FILE.fullmatch(file))]
        return [match.group() for match in sorted(days, key=lambda match: (match[1], match[2], match.group()))]

    def read(self, file: str) -> bytes:
        return self._zip.read(file) if self._zip else (self._path / file).read_bytes()

    def directory(self) -> _Directory:
        """Return the people and rooms; damaged entries are left out."""
        users = {name(user.get("id")): user for user in self._listed("users.json", _PEOPLE)}
        bots = frozenset(user for user, account in users.items() if account.get("is_bot") is True) | {"USLACKBOT"}
        rooms: dict[str, RoomFacts] = {}
        channels: dict[str, str] = {}
        ids: dict[str, str] = {}
        for file in _KINDS:
            for room in self._listed(file, _ROOMS):
                room_id, called = name(room.get("id")), name(room.get("name"))
                channels[room_id] = called
                for folder in filter(None, (room_id, called)):
                    ids[folder] = room_id or called
                    rooms[folder] = _facts(file, room, bots)
        return _Directory({user: _person(account) for user, account in users.items()}, channels, bots, ids, rooms)

    def _listed(self, wanted: str, layout: Layout) -> Iterator[dict[str, Any]]:
        for file in (file_name for file_name in self.names if file_name == f"{self._folder}{wanted}"):
            try:
                data = self.read(file)
            except UNREADABLE:
                continue
            for event in Walker(BytesIO(data), layout).events():
                if event.kind == "member" and isinstance(event.value, dict):
                    yield event.value

    def close(self) -> None:
        if self._zip is not None:
            self._zip.close()


def _facts(file: str, room: dict[str, Any], bots: frozenset[str]) -> RoomFacts:
    listed = room.get("members")
    members = (
        tuple(member for member in map(name, listed) if member and member not in bots)
        if isinstance(listed, list)
        else None
    )
    since = parse_time(room.get("created")) if file in _FIXED else None
    return RoomFacts(_KINDS[file], members, since, name(room.get("name")))


def _zip_names(archive: zipfile.ZipFile) -> list[str]:
    return [
        entry_name
        for entry_name in archive.namelist()
        if entry_name.endswith(".json") and not entry_name.startswith("__MACOSX/")
    ]


def _folder_names(path: Path) -> list[str]:
    return [file.relative_to(path).as_posix() for file in path.rglob("*.json")]


def is_day(data: bytes) -> bool:
    """Return True if a file of a day begins with messages of Slack, or has none."""
    head = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(b"[") and (b'"ts"' in head or not head[1:].strip(b"] \t\r\n"))


def rooms_by_name(source: Source) -> set[str]:
    """Return the channels for which the export lists no id."""
    export = Export(source)
    try:
        return {_order(day)[0] for day in export.days()} - export.directory().ids.keys()
    finally:
        export.close()


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of all channels; the room is the channel's id, or its folder if the export lists no id.

    With `options.room_id` all channels go into that room and ids become "channel/ts".
    """
    export = Export(source)
    try:
        export.refuse_encrypted()
        directory = export.directory()
        for file in export.days():
            if not resume_from or _order(file) >= _order(resume_from["file"]):
                yield from _read_day(export, file, directory, source, options, resume_from)
    finally:
        export.close()


def _order(file: str) -> tuple[str, str, str]:
    match = _DAY_FILE.fullmatch(file)
    return (match[1], match[2], file) if match else ("", "", file)


def _read_day(
    export: Export, file: str, directory: _Directory, source: Source, options: Options, resume_from: Position | None
) -> Iterator[Item]:
    place = resume_from["place"] if resume_from and resume_from["file"] == file else None
    try:
        data = export.read(file)
    except UNREADABLE as error:
        yield Bad({"file": file, "place": start_at(0)}, 0, f"{file} cannot be read: {error}", "")
        return
    walker = Walker(BytesIO(data), _LAYOUT, place=place)
    base = source.bytes_read
    for event in walker.events():
        position = {"file": file, "place": walker.place()}
        number = event.path[0] + 1 if event.path and isinstance(event.path[0], int) else 1
        if event.kind == "broken":
            yield Bad(position, number, f"{file}: {event.value}", excerpt(event.text))
        elif event.kind == "member":
            yield _parsed(event.value, file, number, directory, position, options)
    source.bytes_read = base + len(data)
    source.repaired += walker.window.repaired


def _parsed(record: Any, file: str, number: int, directory: _Directory, position: Position, options: Options) -> Item:
    if not isinstance(record, dict) or not ({"ts", "text", "user"} & record.keys()):
        return Bad(position, number, f"{file}: neither ts, text nor user: not a Slack message", excerpt(str(record)))
    channel = _order(file)[0]
    sender = _sender(record)
    own_id = name(record.get("ts")) or derived_id("slack", file, number, record)
    room_id = options.room_id or directory.ids.get(channel) or options.id_of(channel)
    return Parsed(
        _message(record, own_id, room_id, f"{channel}/" if options.room_id else "", directory),
        position,
        edited_at=parse_time(obj(record.get("edited")).get("ts")),
        room=None if options.room_id else directory.rooms.get(channel),
        moves=() if options.room_id else _moves(record, sender, directory.bots),
    )


_EVENTS = ("message", "app_mention")
_NO_MESSAGES = ("message_deleted", "message_replied")
"""Events about a message that bring none."""


def slack_message(
    event: Mapping[str, Any], users: Mapping[str, Any] | None = None, channels: Mapping[str, Any] | None = None
) -> Message | None:
    """Return the message of a `message` event (alone or as the `event` of a callback), or of one of
    `conversations.history` with its `channel`, as an import of an export would store it; of `message_changed`, the
    message as it is now. None for another event. Raise `InvalidInput` if it names no channel or no `ts`.

    `users`, `channels`: by id, the answers of `users.info` and `conversations.info`, the objects in them, or only
    names. They are needed for what an export knows from its lists: the names of the sender and of whoever is mentioned.
    """
    event = event_of(event)
    told = obj(obj(event.get("payload")).get("event")) or obj(event.get("event")) or event
    if told.get("type", "message") not in _EVENTS or told.get("subtype") in _NO_MESSAGES:
        return None
    record = obj(told.get("message")) if told.get("subtype") == "message_changed" else told
    own_id, room_id = name(record.get("ts")), name(told.get("channel"))
    if not (own_id and room_id):
        raise InvalidInput("slack_message_invalid")
    return _message(record, own_id, room_id, "", _directory(users or {}, channels or {}))


def _directory(users: Mapping[str, Any], channels: Mapping[str, Any]) -> _Directory:
    users = {user: obj(account).get("user", account) for user, account in users.items()}
    channels = {room: obj(about).get("channel", about) for room, about in channels.items()}
    people = {user: _person(account) if isinstance(account, dict) else name(account) for user, account in users.items()}
    rooms = {room: name(about.get("name") if isinstance(about, dict) else about) for room, about in channels.items()}
    bots = frozenset(user for user, account in users.items() if obj(account).get("is_bot") is True)
    return _Directory(people, rooms, bots | {"USLACKBOT"}, {}, {})


def _sender(record: dict[str, Any]) -> str:
    return first_name(
        record.get("user"), record.get("bot_id"), obj(record.get("comment")).get("user"), record.get("username")
    )


def _message(record: dict[str, Any], own_id: str, room_id: str, prefix: str, directory: _Directory) -> Message:
    root, sender = name(record.get("thread_ts")), _sender(record)
    gone = record.get("subtype") == "tombstone"
    marked = "" if gone else words(record.get("text")) or _block_text(record.get("blocks"), 0)
    return Message(
        id=prefix + own_id,
        room_id=room_id,
        sender_id=sender or "unknown",
        sender_name=_sender_name(record, sender, directory.people),
        role=_role(record, directory.bots),
        text=_plain(marked, directory) or _attached_text(record, directory),
        sent_at=parse_time(name(record.get("ts"))),
        root_id=prefix + root if root and root != own_id else None,
        mentions=tuple(dict.fromkeys(_MENTION.findall(marked))),
        metadata={"deleted": True} if gone else _metadata(record, directory),
    )


def _moves(record: dict[str, Any], sender: str, bots: frozenset[str]) -> tuple[Move, ...]:
    came = _MOVES.get(words(record.get("subtype")))
    return () if came is None or not sender or sender in bots else (Move(sender, came),)


def _role(record: dict[str, Any], bots: frozenset[str]) -> Role:
    kind, user = words(record.get("subtype")), name(record.get("user"))
    if kind in _PROGRAM or kind.endswith(_PROGRAM_ENDS) or user == "USLACKBOT":
        return Role.SYSTEM
    return Role.ASSISTANT if kind == "bot_message" or record.get("bot_id") or user in bots else Role.USER


def _sender_name(record: dict[str, Any], sender: str, people: dict[str, str]) -> str:
    profile = obj(record.get("user_profile"))
    bot = obj(record.get("bot_profile"))
    return first_name(
        people.get(sender),
        profile.get("display_name"),
        profile.get("real_name"),
        record.get("username"),
        bot.get("name"),
    )


def _person(user: dict[str, Any]) -> str:
    profile = obj(user.get("profile"))
    return first_name(
        profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"), user.get("id")
    )


def _plain(text: str, directory: _Directory) -> str:
    """Return Slack's markup as people read it: @name, #channel, label (link)."""
    return unescape(_MARKUP.sub(lambda match: _unmarked(match[1], directory), text))


def _unmarked(inside: str, directory: _Directory) -> str:
    target, _, label = inside.partition("|")
    if target.startswith("@"):
        return "@" + (directory.people.get(target[1:]) or label or target[1:])
    if target.startswith("#"):
        return "#" + (label or directory.channels.get(target[1:]) or target[1:])
    if target in _BROADCASTS:
        return f"@{target[1:]}"
    if target.startswith("!"):
        return label if label else "@" + target[1:].removeprefix("subteam^").split("^")[0]
    if ":" not in target:
        return f"<{inside}>"
    if target.startswith(_DIALLED):
        return label or target.partition(":")[2]
    return f"{label} ({target})" if label and label not in target else target


def _block_text(value: object, level: int) -> str:
    """Return the words of blocks as Slack's markup: apps may write them there and leave the text empty."""
    if isinstance(value, list):
        inline = all(obj(inner_block).get("type") in _INLINE for inner_block in value)
        return joined((_block_text(inner_block, level) for inner_block in value), "" if inline else "\n")
    block = obj(value)
    kind = words(block.get("type"))
    if kind in ("text", "plain_text"):
        return _escaped(block, "text")
    if kind == "mrkdwn":
        return words(block.get("text"))
    if kind == "link":
        return f"<{escape(words(block.get('url')).replace('|', '%7C'), quote=False)}|{_escaped(block, 'text')}>"
    if kind == "date" and not block.get("fallback"):
        at = parse_time(block.get("timestamp"))
        return f"{at:%Y-%m-%d %H:%M} UTC" if at else ""
    if kind in _BLOCK_MARKUP:
        field, form = _BLOCK_MARKUP[kind]
        return form.format(_escaped(block, field))
    if kind == "rich_text_list":
        return _listed(block, level)
    inside = [block[key] for key in ("text", "fields", "elements") if isinstance(block.get(key), dict | list)]
    return joined((_block_text(inner_block, level + 1) for inner_block in inside if level < _DEEPEST), "\n")


def _escaped(block: dict[str, Any], field: str) -> str:
    """Return a text as Slack's markup writes it, so that no part of it is taken for markup."""
    return escape(words(block.get(field)), quote=False)


def _listed(block: dict[str, Any], level: int) -> str:
    """Return the items of a list as Slack writes them into the text of a message. A list inside another one is a list
    of its own with a larger `indent`; a numbered one that goes on behind it has an `offset`."""
    items = objects(block.get("elements")) if level < _DEEPEST else []
    indent, first = (_small(block.get(name)) for name in ("indent", "offset"))
    marks = {"bullet": "• ", "ordered": "{}. "}.get(words(block.get("style")), "")
    lines = (_block_text([item], level + 1) for item in items)
    return "\n".join(
        f"{_INDENT * indent}{marks.format(first + number)}{line}" for number, line in enumerate(lines, 1) if line
    )


def _small(value: object) -> int:
    return min(max(value, 0), _LARGEST) if isinstance(value, int) else 0


def _attached_text(record: dict[str, Any], directory: _Directory) -> str:
    """Return the text of attachments: bots often put everything there and leave the text empty."""
    if record.get("files"):
        return ""
    parts = (
        (attachment.get("pretext"), attachment.get("title"), attachment.get("text"))
        for attachment in objects(record.get("attachments"))
    )
    shown = joined((joined(part, "\n") for part in parts), "\n")
    fallback = joined((attachment.get("fallback") for attachment in objects(record.get("attachments"))), "\n")
    return _plain(shown or fallback, directory)


def _metadata(record: dict[str, Any], directory: _Directory) -> dict[str, Any]:
    files = objects(record.get("files")) or objects([record.get("file")])
    titles = [first_name(file.get("title"), file.get("name")) for file in files]
    previews = [
        joined((attachment.get("title"), attachment.get("text")), ": ")
        for attachment in objects(record.get("attachments"))
    ]
    reactions = {
        first_name(reaction.get("name")): reaction.get("count") for reaction in objects(record.get("reactions"))
    }
    return kept(
        {
            "caption": _plain(joined((*titles, *(previews if words(record.get("text")) else ())), "\n"), directory),
            "attachments": [attachment for attachment in map(_file, files) if attachment],
            # The Events API calls a message with files so, exports and `conversations.history` do not.
            "subtype": "" if record.get("subtype") == "file_share" else record.get("subtype"),
            "reactions": reactions,
            "topic": record.get("topic"),
        }
    )


def _file(record: dict[str, Any]) -> dict[str, Any]:
    """Return a file. Its address is left out, since exports put a token of the workspace into it."""
    title, called = words(record.get("title")), words(record.get("name"))
    return attached(
        kind="file", name=called, mime_type=record.get("mimetype"), caption=title if title != called else ""
    )
