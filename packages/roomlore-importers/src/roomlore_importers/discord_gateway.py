"""Messages of Discord's gateway in the form in which DiscordChatExporter writes them.

Sources: docs.discord.com/developers/resources/message; `DiscordChatExporter.Core/Exporting/JsonMessageWriter.cs`,
`PlainTextMarkdownVisitor.cs` and `PlainTextMessageExtensions.cs` of Tyrrrz/DiscordChatExporter 2.47.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from roomlore.core.patterns import lazy_pattern
from roomlore.core.records import parse_time
from roomlore_importers.shapes import first_name, joined, name, obj, objects, words

EVENTS = ("MESSAGE_CREATE", "MESSAGE_UPDATE")
_KINDS = {
    0: "Default", 1: "RecipientAdd", 2: "RecipientRemove", 3: "Call", 4: "ChannelNameChange", 5: "ChannelIconChange",
    6: "ChannelPinnedMessage", 7: "GuildMemberJoin", 18: "ThreadCreated", 19: "Reply",
}  # fmt: skip
"""The kinds of messages that the exporter names; of others it writes the number."""
_STARTER = 21
_NOTICES = {
    "ChannelIconChange": "Changed the channel icon.", "ChannelPinnedMessage": "Pinned a message.",
    "ThreadCreated": "Started a thread.", "GuildMemberJoin": "Joined the server.",
}  # fmt: skip
_MARKUP = lazy_pattern(
    r"<(?P<what>@!?|@&|#!?)(?P<id>\d+)>|<a?:(?P<emoji>[^<>:\n]+):\d+>|<t:(?P<at>-?\d{1,12})(?::\w)?>"
)
"""A mention, an emoji of a server, a time."""
_VOICE = (2, 13)
"""The kinds of channels behind whose name the exporter writes "[voice]"."""


def exported(told: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any] | None:
    """Return a message as the exporter writes it. None for a part of a message, and for a thread's beginning."""
    number, author = told.get("type", 0), obj(told.get("author"))
    if not author or number == _STARTER:
        return None
    people = objects(told.get("mentions"))
    known = {name(who.get("id")): _called(who, obj(who.get("member"))) for who in people}
    known |= {**obj(told.get("names")), **names}
    kind = _KINDS.get(number, name(number))
    snapshots = [obj(each.get("message")) for each in objects(told.get("message_snapshots"))]
    reference = obj(told.get("message_reference"))
    return {
        **_held(told, known),
        "type": kind,
        "timestamp": told.get("timestamp"),
        "isPinned": told.get("pinned"),
        "content": _notice(told, kind, people) or _plain(told.get("content"), known),
        "author": {
            "id": author.get("id"),
            "nickname": _called(author, obj(told.get("member"))),
            "isBot": author.get("bot"),
        },
        "mentions": [{"id": who.get("id")} for who in people],
        "reference": {
            "type": "Forward" if reference.get("type") == 1 else "Default",
            "messageId": reference.get("message_id"),
            "channelId": reference.get("channel_id"),
        },
        "forwardedMessage": _held(snapshots[0], known) if snapshots else None,
    }


def _called(who: dict[str, Any], member: dict[str, Any]) -> str:
    return first_name(member.get("nick"), who.get("global_name"), who.get("username"))


def _notice(told: dict[str, Any], kind: str, people: list[dict[str, Any]]) -> str:
    """Return what the exporter writes for a notice, '' for a message that somebody wrote."""
    first = first_name(people[0].get("global_name"), people[0].get("username")) if people else ""
    content = words(told.get("content"))
    if kind == "RecipientAdd":
        return f"Added {first} to the group." if people else "Added a recipient."
    if kind == "RecipientRemove":
        itself = bool(people) and people[0].get("id") == obj(told.get("author")).get("id")
        return "Left the group." if itself else f"Removed {first or 'a recipient'}{' from the group' * bool(people)}."
    if kind == "ChannelNameChange":
        return f"Changed the channel name: {content}" if content.strip() else "Changed the channel name."
    if kind == "Call":
        began, ended = parse_time(told.get("timestamp")), parse_time(obj(told.get("call")).get("ended_timestamp"))
        minutes = (ended - began) / timedelta(minutes=1) if began and ended else 0
        return f"Started a call that lasted {int(minutes + 0.5):,} minutes."
    return _NOTICES.get(kind, "")


def _held(told: dict[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """Return the words, files, stickers, embeds and reactions of a message or of a forwarded one."""
    poll = obj(told.get("poll"))
    answers = (words(obj(answer.get("poll_media")).get("text")) for answer in objects(poll.get("answers")))
    asked = {"question": words(obj(poll.get("question")).get("text")), "answers": joined(answers, ", ")}
    return {
        "content": _plain(told.get("content"), known),
        "attachments": [{**file, "fileName": file.get("filename")} for file in objects(told.get("attachments"))],
        "stickers": objects(told.get("sticker_items")),
        "embeds": [_embed(embed, known) for embed in objects(told.get("embeds"))],
        "reactions": told.get("reactions"),
        "poll": asked if poll else None,
    }


def _embed(embed: dict[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    fields = [
        {key: _plain(field.get(key), known) for key in ("name", "value")} for field in objects(embed.get("fields"))
    ]
    return {key: _plain(embed.get(key), known) for key in ("title", "description")} | {"fields": fields}


def _plain(text: object, known: Mapping[str, str]) -> str:
    """Return a text with names in place of ids, as the exporter writes it."""

    def shown(match: re.Match[str]) -> str:
        if match["emoji"]:
            return f":{match['emoji']}:"
        if match["at"]:
            at = parse_time(int(match["at"]))
            return f"{at:%Y-%m-%d %H:%M} UTC" if at else match[0]
        called = known.get(match["id"])
        return f"{match['what'][0]}{called}" if called else match[0]

    return _MARKUP.sub(shown, words(text))


def as_json(message: Any) -> dict[str, Any]:
    """Return a message object of discord.py, or of a library made from it, as the gateway gives it, with the names of
    what it mentions."""
    told: dict[str, Any] = _snapshot(message) | {
        "id": name(getattr(message, "id", None)),
        "channel_id": name(getattr(getattr(message, "channel", None), "id", None)),
        "author": _user(getattr(message, "author", None)),
        "timestamp": _iso(getattr(message, "created_at", None)),
        "mentions": [_user(who) for who in getattr(message, "mentions", ())],
        "pinned": getattr(message, "pinned", None),
        "message_reference": _reference(getattr(message, "reference", None)),
        "call": {"ended_timestamp": _iso(getattr(getattr(message, "call", None), "ended_timestamp", None))},
        "message_snapshots": [
            {"message": _snapshot(each)} for each in getattr(message, "message_snapshots", None) or ()
        ],
    }
    return told | {"names": dict(_named(told, getattr(message, "guild", None)))}


def _named(told: dict[str, Any], guild: Any) -> Iterator[tuple[str, str]]:
    """Yield what the texts mention with its name, as far as the guild knows it."""
    texts = (told["content"], *map(str, told["embeds"]), *map(str, told["message_snapshots"]))
    for match in _MARKUP.finditer("\n".join(texts)) if guild is not None else ():
        kind = (match["what"] or "").rstrip("!")
        if kind:
            find = {"@": guild.get_member, "@&": guild.get_role, "#": guild.get_channel_or_thread}[kind]
            mentioned = find(int(match["id"]))
            if mentioned is not None:
                yield match["id"], _shown(mentioned)


def _shown(mentioned: Any) -> str:
    voice = getattr(getattr(mentioned, "type", None), "value", None) in _VOICE
    return f"{mentioned.name} [voice]" if voice else str(getattr(mentioned, "display_name", mentioned.name))


def _user(who: Any) -> dict[str, Any]:
    if who is None:
        return {}
    return {"id": name(who.id), "username": who.name, "global_name": who.display_name, "bot": who.bot}


def _reference(reference: Any) -> dict[str, Any]:
    kind = getattr(getattr(reference, "type", None), "value", 0)
    return {"type": kind, **{key: name(getattr(reference, key, None)) for key in ("message_id", "channel_id")}}


def _snapshot(message: Any) -> dict[str, Any]:
    poll = getattr(message, "poll", None)
    return {
        "type": getattr(getattr(message, "type", None), "value", 0),
        "content": words(getattr(message, "content", "")),
        "attachments": _fields(getattr(message, "attachments", ()), "filename", "url"),
        "sticker_items": _fields(getattr(message, "stickers", ()), "name", "url"),
        "embeds": [embed.to_dict() for embed in getattr(message, "embeds", ())],
        "poll": None if poll is None else _poll(poll),
    }


def _fields(listed: Iterable[Any], *fields: str) -> list[dict[str, Any]]:
    return [{field: getattr(each, field, None) for field in fields} for each in listed]


def _poll(poll: Any) -> dict[str, Any]:
    answers = [{"poll_media": {"text": answer.text}} for answer in poll.answers]
    return {"question": {"text": poll.question}, "answers": answers}


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
