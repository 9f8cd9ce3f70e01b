"""DiscordChatExporter's JSON: one channel per file."""

from collections.abc import Iterator
from typing import Any

from roomlore.core.audience import Move, RoomFacts, RoomKind
from roomlore.core.models import Message, Role
from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import Item, Parsed, Position, parse_time
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
    for found in read_members(source, _LAYOUT, resume_from, _note):
        yield _parsed(found, source, options) if isinstance(found, Member) else found


def _note(event: Event, facts: Facts) -> None:
    if event.kind == "scalar" and event.path == ("channel", "id"):
        facts["channel"] = name(event.value)
    elif event.kind == "scalar" and event.path in (("channel", "type"), ("channel", "name")):
        facts[event.path[1]] = name(event.value)


def _parsed(member: Member, source: Source, options: Options) -> Item:
    said = member.value
    if not isinstance(said.get("author"), dict) and not said.get("content") and "id" not in said:
        return member.bad("neither id, author nor content: not a Discord message")
    author = obj(said.get("author"))
    message = Message(
        id=name(said.get("id")) or derived_id("discord", member.number, said),
        room_id=options.room_id or member.facts.get("channel") or source.stem,
        sender_id=first_name(author.get("id"), author.get("name")) or "unknown",
        sender_name=first_name(author.get("nickname"), author.get("name")),
        role=_role(said, author),
        text=words(said.get("content")),
        sent_at=parse_time(said.get("timestamp")),
        reply_to=_reply(said, member.facts.get("channel", "")),
        mentions=tuple(found for one in objects(said.get("mentions")) if (found := name(one.get("id")))),
        metadata=_metadata(said),
    )
    kind = _KINDS.get(member.facts.get("type", ""))
    return Parsed(
        message,
        member.position,
        edited_at=parse_time(said.get("timestampEdited")),
        room=named(RoomFacts(kind) if kind else None, "" if options.room_id else member.facts.get("name", "")),
        moves=_moves(said, message),
    )


def _moves(said: dict[str, Any], message: Message) -> tuple[Move, ...]:
    """Return who came or went: with a notice about others these are mentioned."""
    kind = name(said.get("type"))
    if kind in ("GuildMemberJoin", "7"):
        return () if obj(said.get("author")).get("isBot") is True else (Move(message.sender_id, True),)
    if kind not in ("RecipientAdd", "1", "RecipientRemove", "2"):
        return ()
    bots = {name(one.get("id")) for one in objects(said.get("mentions")) if one.get("isBot") is True}
    return tuple(Move(one, kind in ("RecipientAdd", "1")) for one in message.mentions if one not in bots)


def _role(said: dict[str, Any], author: dict[str, Any]) -> Role:
    if name(said.get("type")) not in _SPOKEN:
        return Role.SYSTEM
    return Role.ASSISTANT if author.get("isBot") is True else Role.USER


def _reply(said: dict[str, Any], channel: str) -> str | None:
    """Return the message answered; a reference into another channel is a forward or a crosspost."""
    reference = obj(said.get("reference"))
    if reference.get("type") == "Forward" or obj(said.get("forwardedMessage")):
        return None
    elsewhere = name(reference.get("channelId")) not in ("", channel)
    return None if elsewhere and channel else name(reference.get("messageId")) or None


def _metadata(said: dict[str, Any]) -> dict[str, Any]:
    forwarded = obj(said.get("forwardedMessage"))
    kind = name(said.get("type"))
    return kept(
        {
            "caption": joined((_caption(said), forwarded.get("content"), _caption(forwarded)), "\n"),
            "attachments": [*_attachments(said), *_attachments(forwarded)],
            "reactions": _reactions(said),
            "kind": "" if kind in ("Default", "Reply") else kind,
            "pinned": said.get("isPinned") is True,
        }
    )


def _caption(said: dict[str, Any]) -> str:
    """Return the names of files and stickers and the words of embeds."""
    shown = [one.get("fileName") for one in objects(said.get("attachments"))]
    shown += [one.get("name") for one in objects(said.get("stickers"))]
    for one in objects(said.get("embeds")):
        fields = [joined((field.get("name"), field.get("value")), ": ") for field in objects(one.get("fields"))]
        shown.append(joined((joined((one.get("title"), one.get("description"))), *fields), "\n"))
    return joined(shown, "\n")


def _attachments(said: dict[str, Any]) -> list[dict[str, Any]]:
    files = (
        attached(kind="file", name=one.get("fileName"), url=one.get("url")) for one in objects(said.get("attachments"))
    )
    stickers = (
        attached(kind="sticker", name=one.get("name"), url=one.get("sourceUrl"))
        for one in objects(said.get("stickers"))
    )
    return [*files, *stickers]


def _reactions(said: dict[str, Any]) -> dict[str, Any]:
    pairs = ((obj(one.get("emoji")).get("name"), one.get("count")) for one in objects(said.get("reactions")))
    return {emoji: count for emoji, count in pairs if isinstance(emoji, str)}
