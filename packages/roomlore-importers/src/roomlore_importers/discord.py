"""DiscordChatExporter's JSON: one channel per file; and messages of Discord's gateway."""

from collections.abc import Iterator, Mapping
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Parsed, Position, parse_time
from roomlore_importers.discord_gateway import EVENTS, as_json, exported
from roomlore_importers.export_files import Options, Source, derived_id
from roomlore_importers.json_stream import Event, Facts, Layout, Member, read_members
from roomlore_importers.shapes import attached, first_name, joined, kept, name, named, obj, objects, words

_SPOKEN = ("", "Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19", "20", "21", "23")
_KINDS = {
    "DirectTextChat": RoomKind.DIRECT, "1": RoomKind.DIRECT,
    "DirectGroupTextChat": RoomKind.PRIVATE, "3": RoomKind.PRIVATE,
    "GuildPrivateThread": RoomKind.PRIVATE, "12": RoomKind.PRIVATE,
}  # fmt: skip
"""A channel of a server may be closed to some of its members, which the export does not say: its kind stays unknown."""
_LAYOUT = Layout(
    streams=lambda path: path == ("messages",),
    start=lazy_pattern(r'\{\s*"id"\s*:'),
    plausible=lambda value: isinstance(value, dict) and "timestamp" in value and "author" in value,
    home=("messages", 0),
)


def read(source: Source, options: Options, resume_from: Position | None = None) -> Iterator[Item]:
    """Yield the messages of the export's channel; the room is the channel's id."""
    for member in read_members(source, _LAYOUT, resume_from, _note):
        yield _parsed(member, source, options) if isinstance(member, Member) else member


def _note(event: Event, facts: Facts) -> None:
    if event.kind == "scalar" and event.path == ("channel", "id"):
        facts["channel"] = name(event.value)
    elif event.kind == "scalar" and event.path in (("channel", "type"), ("channel", "name")):
        facts[event.path[1]] = name(event.value)


def _parsed(member: Member, source: Source, options: Options) -> Item:
    record = member.value
    if not isinstance(record.get("author"), dict) and not record.get("content") and "id" not in record:
        return member.bad("neither id, author nor content: not a Discord message")
    own_id = name(record.get("id")) or derived_id("discord", member.number, record)
    channel = member.facts.get("channel", "")
    message = _message(record, own_id, options.room_id or channel or source.stem, channel)
    kind = _KINDS.get(member.facts.get("type", ""))
    return Parsed(
        message,
        member.position,
        edited_at=parse_time(record.get("timestampEdited")),
        room=named(RoomFacts(kind) if kind else None, "" if options.room_id else member.facts.get("name", "")),
        moves=_moves(record, message),
    )


def discord_message(message: object, names: Mapping[str, str] | None = None) -> Message | None:
    """Return a message of the gateway or the HTTP API (JSON), or one of discord.py and its kin, as an import of
    DiscordChatExporter's export would store it. None for another event, for a part of a message that an edit gives,
    and for the empty message that shows in a thread what it was begun from. Raise `InvalidInput` if it is no message.

    `names`: of channels, roles and people that the JSON mentions without their names, by id. An object of discord.py
    knows them.
    """
    if isinstance(message, Mapping) and message.get("t", EVENTS[0]) not in EVENTS:
        return None
    told = obj(message.get("d")) or dict(message) if isinstance(message, Mapping) else as_json(message)
    own_id, channel = name(told.get("id")), name(told.get("channel_id"))
    if not (own_id and channel):
        raise InvalidInput("discord_message_invalid")
    record = exported(told, names or {})
    return None if record is None else _message(record, own_id, channel, channel)


def _message(record: dict[str, Any], own_id: str, room_id: str, channel: str) -> Message:
    author = obj(record.get("author"))
    mentioned = (name(mention.get("id")) for mention in objects(record.get("mentions")))
    return Message(
        id=own_id,
        room_id=room_id,
        sender_id=first_name(author.get("id"), author.get("name")) or "unknown",
        sender_name=first_name(author.get("nickname"), author.get("name")),
        role=_role(record, author),
        text=words(record.get("content")),
        sent_at=parse_time(record.get("timestamp")),
        reply_to=_reply(record, channel),
        mentions=tuple(filter(None, mentioned)),
        metadata=_metadata(record),
    )


def _moves(record: dict[str, Any], message: Message) -> tuple[Move, ...]:
    """Return who came or went: with a notice about others these are mentioned."""
    kind = name(record.get("type"))
    if kind in ("GuildMemberJoin", "7"):
        return () if obj(record.get("author")).get("isBot") is True else (Move(message.sender_id, True),)
    if kind not in ("RecipientAdd", "1", "RecipientRemove", "2"):
        return ()
    bots = {name(mention.get("id")) for mention in objects(record.get("mentions")) if mention.get("isBot") is True}
    return tuple(Move(mention, kind in ("RecipientAdd", "1")) for mention in message.mentions if mention not in bots)


def _role(record: dict[str, Any], author: dict[str, Any]) -> Role:
    if name(record.get("type")) not in _SPOKEN:
        return Role.SYSTEM
    return Role.ASSISTANT if author.get("isBot") is True else Role.USER


def _reply(record: dict[str, Any], channel: str) -> str | None:
    """Return the message answered; a reference into another channel is a forward or a crosspost."""
    reference = obj(record.get("reference"))
    if reference.get("type") == "Forward" or obj(record.get("forwardedMessage")):
        return None
    elsewhere = name(reference.get("channelId")) not in ("", channel)
    return None if elsewhere and channel else name(reference.get("messageId")) or None


def _metadata(record: dict[str, Any]) -> dict[str, Any]:
    forwarded = obj(record.get("forwardedMessage"))
    kind = name(record.get("type"))
    return kept(
        {
            "caption": joined((_caption(record), forwarded.get("content"), _caption(forwarded)), "\n"),
            "attachments": [*_attachments(record), *_attachments(forwarded)],
            "reactions": _reactions(record),
            "kind": "" if kind in ("Default", "Reply") else kind,
            "pinned": record.get("isPinned") is True,
        }
    )


def _caption(record: dict[str, Any]) -> str:
    """Return the names of files and stickers and the words of embeds."""
    shown = [attachment.get("fileName") for attachment in objects(record.get("attachments"))]
    shown += [sticker.get("name") for sticker in objects(record.get("stickers"))]
    for embed in objects(record.get("embeds")):
        fields = [joined((field.get("name"), field.get("value")), ": ") for field in objects(embed.get("fields"))]
        shown.append(joined((joined((embed.get("title"), embed.get("description"))), *fields), "\n"))
    return joined(shown, "\n")


def _attachments(record: dict[str, Any]) -> list[dict[str, Any]]:
    files = (
        attached(kind="file", name=attachment.get("fileName"), url=attachment.get("url"))
        for attachment in objects(record.get("attachments"))
    )
    stickers = (
        attached(kind="sticker", name=sticker.get("name"), url=sticker.get("sourceUrl"))
        for sticker in objects(record.get("stickers"))
    )
    poll = obj(record.get("poll"))
    asked = [attached(kind="poll", name=poll.get("question"), caption=poll.get("answers"))] if poll else []
    return [*files, *stickers, *asked]


def _reactions(record: dict[str, Any]) -> dict[str, Any]:
    pairs = (
        (obj(reaction.get("emoji")).get("name"), reaction.get("count")) for reaction in objects(record.get("reactions"))
    )
    return {emoji: count for emoji, count in pairs if isinstance(emoji, str)}
