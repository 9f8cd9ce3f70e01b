"""Telegram Desktop's `result.json`: one chat, or all chats of an account; and messages of the Bot API."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Parsed, Position, parse_time
from roomlore_importers.bot_api import exported, live_message, room_of, topic_of
from roomlore_importers.export_files import Options, Source, derived_id
from roomlore_importers.json_stream import Event, Facts, JsonPath, Layout, Member, read_members
from roomlore_importers.shapes import (
    attached,
    event_of,
    first_name,
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

_SERVICE_FACTS = ("title", "members", "inviter", "new_title", "message_id", "emoticon", "duration_seconds")
_FACTS = ("forwarded_from", "saved_from", "via_bot", "author", "quoted")
_KINDS = {
    "saved_messages": RoomKind.DIRECT,
    "personal_chat": RoomKind.DIRECT,
    "bot_chat": RoomKind.DIRECT,
    "private_group": RoomKind.PRIVATE,
    "private_supergroup": RoomKind.PRIVATE,
    "private_channel": RoomKind.PRIVATE,
    "public_supergroup": RoomKind.PUBLIC,
    "public_channel": RoomKind.PUBLIC,
}
_CAME_BY_THEMSELVES = ("join_group_by_link", "join_group_by_request")
_MOST_IN_TOPICS = 100_000
"""The most messages of a chat whose topics are known to later replies."""
_MOVED = {"create_group": True, "invite_members": True, "remove_members": False}


def _streams(path: JsonPath) -> bool:
    return bool(path) and path[-1] == "messages" and (len(path) == 1 or path[-3:-2] == ("list",))


_LAYOUT = Layout(
    streams=_streams,
    start=lazy_pattern(r'\{\s*"id"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "type" in value and "date" in value,
    home=("messages", 0),
    head=lazy_pattern(r'\{\s*"(?:name|type|id)"\s*:[^{}\[\]]{0,2000}?"messages"\s*:\s*\['),
    head_home=("chats", "list", None),
)


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of every chat; the room is the chat's id.

    With `options.room_id` all chats go into that room, and ids from a full export are "chat id/message id".
    """
    topics = _Topics()
    if resume_from and resume_from["facts"].get("topics"):
        _reread(source, topics, resume_from)
    for member in read_members(source, _LAYOUT, resume_from, _note):
        yield _parsed(member, source, options, topics) if isinstance(member, Member) else member


class _Topics:
    """The topics of a forum, and the messages in them: a reply is in the topic of what it answers."""

    def __init__(self) -> None:
        self._chat: JsonPath = ()
        self._opened: set[str] = set()
        self._of: dict[str, str] = {}

    def of(self, member: Member, own_id: str, answered: str) -> str | None:
        """Return the topic of the next message: the id of the message that opened it."""
        if member.path[:-1] != self._chat:
            self._chat, self._opened, self._of = member.path[:-1], set(), {}
        if member.value.get("action") == "topic_created":
            member.facts["topics"] = True
            self._opened.add(own_id)
            return own_id
        topic = answered if answered in self._opened else self._of.get(answered)
        if topic is not None:
            self._of[own_id] = topic
            if len(self._of) > _MOST_IN_TOPICS:
                del self._of[next(iter(self._of))]
        return topic


def _reread(source: Source, topics: _Topics, until: Position) -> None:
    """Learn the topics of the messages before a position."""
    with source.looked_at():
        for member in read_members(source, _LAYOUT, None, _note):
            if isinstance(member, Member):
                topics.of(member, name(member.value.get("id")), _answered(member.value))
            if member.position["offset"] >= until["offset"]:
                break


def _note(event: Event, facts: Facts) -> None:
    """Keep the id and the type of the open chat, and whose export it is."""
    if event.kind == "enter" and (event.path == () or event.path[-2:-1] == ("list",)):
        for key in ("chat", "type", "name", "topics"):
            facts.pop(key, None)
    elif event.kind == "scalar" and event.path == ("personal_information", "user_id"):
        facts["owner"] = f"user{name(event.value)}"
    elif event.kind == "scalar" and _is_of_chat(event.path):
        facts["chat" if event.path[-1] == "id" else str(event.path[-1])] = name(event.value)


def _is_of_chat(path: JsonPath) -> bool:
    return path[-1:] in (("id",), ("type",), ("name",)) and (len(path) == 1 or path[-3:-2] == ("list",))


def _parsed(member: Member, source: Source, options: Options, topics: _Topics) -> Item:
    record = member.value
    answered = _answered(record)
    topic = topics.of(member, name(record.get("id")), answered)
    if record.get("type") == "unsupported":
        return member.bad("neither text, sender nor time: Telegram Desktop does not export this kind of message")
    if not ({"id", "text", "from", "actor", "action"} & record.keys()):
        return member.bad("neither id, text nor sender: not a Telegram message")
    chat = member.facts.get("chat") or source.stem
    prefix = f"{chat}/" if options.room_id and len(member.path) > 2 else ""
    own_id = name(record.get("id")) or derived_id("telegram", chat, member.number, record)
    message = _message(record, own_id, options.room_id or chat, prefix, topic, options, _role(record, member.facts))
    return Parsed(
        message,
        member.position,
        edited_at=_time(record, "edited", options),
        room=None if prefix else named(_room(member.facts), "" if options.room_id else member.facts.get("name", "")),
        moves=() if prefix or message.role is not Role.SYSTEM else _moves(record, message),
    )


def _message(
    record: dict[str, Any], own_id: str, room_id: str, prefix: str, topic: str | None, options: Options, role: Role
) -> Message:
    answered = _answered(record)
    return Message(
        id=prefix + own_id,
        room_id=room_id,
        sender_id=first_name(record.get("from_id"), record.get("actor_id"), record.get("from"), record.get("actor"))
        or "unknown",
        sender_name=first_name(record.get("from"), record.get("actor")),
        role=role,
        text=_service_text(record) if role is Role.SYSTEM else _text(record.get("text")),
        sent_at=_time(record, "date", options),
        reply_to=prefix + answered if answered and answered != topic else None,
        topic_id=prefix + topic if topic else None,
        mentions=_mentions(record),
        metadata=_metadata(record),
    )


def telegram_message(update: Mapping[str, Any]) -> Message | None:
    """Return the message of an update of the Bot API, or of a message of it, as an import of Telegram Desktop's export
    would store it; of an edited one, the message as it is now. None for another update. Raise `InvalidInput` if it has
    no chat or no id. For an object of python-telegram-bot pass `update.to_dict()`.
    """
    told = live_message(event_of(update))
    if told is None:
        return None
    chat, own_id = obj(told.get("chat")), name(told.get("message_id"))
    if not (own_id and name(chat.get("id"))):
        raise InvalidInput("telegram_message_invalid")
    record = exported(told)
    role = Role.SYSTEM if record["type"] == "service" else Role.USER
    return _message(record, own_id, room_of(chat), "", topic_of(told, record), Options(), role)


def _role(record: dict[str, Any], facts: Facts) -> Role:
    """Return the role. In a chat with a bot, the bot's own messages have the id of the chat."""
    if record.get("type") == "service":
        return Role.SYSTEM
    of_bot = facts.get("type") == "bot_chat" and name(record.get("from_id")) == f"user{facts.get('chat')}"
    return Role.ASSISTANT if of_bot else Role.USER


def _room(facts: Facts) -> RoomFacts | None:
    """Return the kind of the chat; of a chat of two its people too, if the export says whose it is."""
    chat_type, owner = facts.get("type", ""), facts.get("owner", "")
    kind = _KINDS.get(chat_type)
    if kind is RoomKind.DIRECT and owner:
        other = (f"user{facts.get('chat')}",) if chat_type == "personal_chat" else ()
        return RoomFacts(kind, tuple(dict.fromkeys((owner, *other))))
    return RoomFacts(kind) if kind else None


def _moves(record: dict[str, Any], message: Message) -> tuple[Move, ...]:
    """Return who came or went. The export names others, and has an id for the actor only."""
    action, actor = words(record.get("action")), words(record.get("actor"))
    if action in _CAME_BY_THEMSELVES:
        return (Move(message.sender_id, True),)
    if action not in _MOVED:
        return ()
    came, named = _MOVED[action], texts(record.get("members"))
    others = tuple(Move(person, came, by_name=True) for person in named if person != actor)
    itself = actor in named or action == "create_group"
    return (Move(message.sender_id, came), *others) if itself else others


def _time(record: dict[str, Any], field: str, options: Options) -> datetime | None:
    exact = parse_time(record.get(f"{field}_unixtime"))
    return exact if exact is not None else local_time(record.get(field), options.timezone)


def _text(value: object) -> str:
    if isinstance(value, list):
        return "".join(part if isinstance(part, str) else _piece(obj(part)) for part in value)
    return words(value)


def _piece(part: dict[str, Any]) -> str:
    """Return a part of a text with what is behind it: a link that its words do not show."""
    text, link = words(part.get("text")), words(part.get("href"))
    return f"{text} ({link})" if link and link != text else text


def _service_text(record: dict[str, Any]) -> str:
    """Return a service action such as "pin_message" as words, with its object."""
    about = (record.get(key) for key in ("title", "new_title"))
    members = joined(texts(record.get("members")), ", ")
    return joined((words(record.get("action")).replace("_", " "), *about, members, _text(record.get("text"))))


def _answered(record: dict[str, Any]) -> str:
    """Return the id of the message answered or pinned, '' if there is none or it is one of another chat. In a forum,
    what answers nothing has the message that opened its topic here."""
    if "reply_to_peer_id" in record:
        return ""
    return name(record.get("reply_to_message_id")) or name(record.get("message_id"))


def _mentions(record: dict[str, Any]) -> tuple[str, ...]:
    parts = [*objects(record.get("text_entities")), *objects(record.get("text"))]
    users = (name(part.get("user_id")) for part in parts if part.get("type") == "mention_name")
    return tuple(dict.fromkeys(user if user.startswith("user") else f"user{user}" for user in users if user))


def _metadata(record: dict[str, Any]) -> dict[str, Any]:
    poll = obj(record.get("poll"))
    place = obj(record.get("location_information"))
    contact = obj(record.get("contact_information"))
    caption = (
        record.get("file_name"), record.get("title") if record.get("media_type") else "", record.get("performer"),
        record.get("sticker_emoji"), _text(poll.get("question")), record.get("place_name"), record.get("address"),
        contact.get("first_name"), contact.get("last_name"), record.get("game_title"), record.get("game_description"),
    )  # fmt: skip
    reactions = _reactions(record)
    service = record.get("type") == "service"
    return kept(
        {"caption": joined(caption), "action": record.get("action"), "location": place}
        | {"reactions": reactions}
        | {"attachments": [] if service else _attachments(record)}
        | {key: record.get(key) for key in (_SERVICE_FACTS if service else _FACTS)}
    )


def _reactions(record: dict[str, Any]) -> dict[str, int]:
    """Return the counts of reactions by their emoji, or by their kind if they have none of Unicode, such as "paid"."""
    counts: Counter[str] = Counter()
    for reaction in objects(record.get("reactions")):
        count = reaction.get("count")
        counts[first_name(reaction.get("emoji"), reaction.get("type"))] += count if isinstance(count, int) else 0
    return dict(counts)


def _attachments(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the picture or file, the poll, the place or the contact. Where the export left a file out, its place is a
    sentence in brackets."""
    kind = "photo" if "photo" in record else words(record.get("media_type"))
    place = first_name(record.get("photo"), record.get("file"))
    file = attached(
        kind=kind or ("file" if place else ""),
        name=record.get("file_name"),
        mime_type=record.get("mime_type"),
        caption=joined((record.get("title"), record.get("performer"), record.get("sticker_emoji"))),
        file="" if place.startswith("(") else place,
    )
    thrown = attached(kind="sticker" if record.get("dice") else "", caption=record.get("dice"))
    held = (file, _poll(record), _place(record), _contact(record), thrown)
    return [attachment for attachment in held if attachment]


def _poll(record: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a poll with their votes."""
    options = objects(obj(record.get("poll")).get("answers"))
    votes_of = (
        f"{_text(option.get('text'))} ({votes})" if (votes := name(option.get("voters"))) else _text(option.get("text"))
        for option in options
    )
    return attached(kind="poll", caption=joined(votes_of, ", ")) if "poll" in record else {}


def _place(record: dict[str, Any]) -> dict[str, Any]:
    at = obj(record.get("location_information"))
    shown = joined((words(at.get("latitude")), words(at.get("longitude"))), ",")
    return attached(kind="location", caption=shown) if at else {}


def _contact(record: dict[str, Any]) -> dict[str, Any]:
    who = obj(record.get("contact_information"))
    called = joined((who.get("first_name"), who.get("last_name")))
    return attached(kind="contact", name=called) if who else {}
